//! Jobs of the modelled world from start to end: the threads they take, what they wait for, and the
//! files they leave.
//!
//! Leaves to others: what a job does next (`job`), how long the disk and the processors take for
//! it (`device`, `cores`).

use std::collections::BTreeSet;
use std::sync::Arc;

use lithify_base::{FileId, JobId, KeyRange, Pos};
use lithify_control::{Cutting, Event, MemId};
use lithify_lsm::{FileMeta, FileRef};
use lithify_plan::{InFlight, JobSpec, Prio};

use super::{Happening, Moving, Slice, Task, Transfer, World};
use crate::job::{Job, Parts, Source, Want};
use crate::pool::FIRST;
use crate::setup::{CommitOrder, write_bytes};
use crate::space::{Content, key};
use crate::{memtable, merge};

impl World<'_> {
    pub(super) fn start_flush(&mut self, id: JobId, mem: MemId, out: Pos, cutting: &Cutting) {
        let table = self.frozen.get(&mem).expect("a frozen memtable stays until it is flushed");
        let bytes_in = (table.count as f64 * self.setup.bytes.memory) as u64;
        let seqs = (table.before + 1, table.before + table.count.max(1));
        let flushing = memtable::flush(
            table,
            cutting,
            self.core.version(),
            &self.setup.plan,
            &self.overlap,
            &self.setup.bytes,
            &self.space,
        );
        self.begin(Job::new(Parts {
            id,
            source: Source::Flush(mem),
            out,
            recipe: flushing.recipe,
            flow: flushing.flow,
            seqs,
            epoch: u64::from(out.stratum.0),
            began: self.now,
            bytes_in,
            disk: self.setup.bytes.disk,
            write: write_bytes(self.setup.plan.file_bytes),
            opens: Vec::new(),
        }));
    }

    pub(super) fn start_compaction(&mut self, id: JobId, spec: &JobSpec, inputs: &[FileRef]) {
        let version = self.core.version();
        let what = self.setup.trace.then(|| spec.describe(version));
        self.note(|| format!("job {id} {}  why: {}", what.unwrap_or_default(), spec.reason));
        let contents: Vec<_> = inputs.iter().map(|f| self.contents[&f.id].clone()).collect();
        let write = write_bytes(self.setup.plan.file_bytes);
        let runs = inputs.iter().map(|f| f.pos).collect::<BTreeSet<_>>().len();
        let set = merge::set_bytes(runs, write);
        let bytes = &self.setup.bytes;
        let recipe = merge::merge(&contents, &spec.cuts, set, &self.overlap, bytes, &self.space);
        let tail = |f: &FileRef| (f.entries as f64 * bytes.tail) as u64;
        self.urgencies.insert(id, urgency(spec.prio));
        let from = inputs.iter().map(|f| f.pos.level).min().unwrap_or(0);
        let seq = |f: fn(&FileRef) -> u64| inputs.iter().map(f);
        self.begin(Job::new(Parts {
            id,
            source: Source::Compaction(spec.kind, from),
            out: spec.out,
            recipe,
            flow: None,
            seqs: (seq(|f| f.seqs.0).min().unwrap_or(0), seq(|f| f.seqs.1).max().unwrap_or(0)),
            epoch: seq(|f| f.epoch).min().unwrap_or(0),
            began: self.now,
            bytes_in: seq(|f| f.bytes).sum(),
            disk: self.setup.bytes.disk,
            write,
            opens: inputs.iter().map(tail).collect(),
        }));
    }

    /// Transfers that wait get the threads that are free.
    pub(super) fn pump(&mut self) {
        while let Some((transfer, first)) = self.pool.pick() {
            let served = self.device.serve(self.now, transfer.bytes);
            let id = self.unmoving.pop().unwrap_or_else(|| {
                self.moving.push(None);
                self.moving.len() as u64 - 1
            });
            self.moving[id as usize] = Some(Moving { transfer, first, served });
            self.copies.push_back(id);
        }
        self.copy();
    }

    /// Copies are short, so those that have a core keep it to their end, and no more than cores go on
    /// at once; the others wait.
    pub(super) fn copy(&mut self) {
        while f64::from(self.copying) < self.cores.count()
            && let Some(id) = self.copies.pop_front()
        {
            let Some(Moving { transfer, served, .. }) = self.moving[id as usize] else { continue };
            let (each, byte) = self.setup.io_ns;
            let sleep = if served > self.now { self.setup.sleep_ns } else { 0.0 };
            let work = each + sleep + byte * transfer.bytes as f64;
            self.copying += 1;
            self.cores.start(self.now, work, Task::Transfer(id));
        }
    }

    /// A thread has copied what it transfers; the device may take longer.
    pub(super) fn copied(&mut self, id: u64) {
        self.copying -= 1;
        self.copy();
        match self.moving[id as usize].map_or(0, |m| m.served) {
            served if served > self.now => self.queue_at(served, Happening::Moved(id)),
            _ => self.moved(id),
        }
    }

    /// A transfer has ended: its thread takes another one, and its job goes on.
    pub(super) fn moved(&mut self, id: u64) {
        let Some(Moving { transfer, first, .. }) = self.moving[id as usize].take() else { return };
        self.unmoving.push(id);
        self.pool.end(first);
        self.untold += transfer.bytes;
        if let Some(job) = self.jobs.get_mut(&transfer.job) {
            job.done(transfer.done);
            self.drive(transfer.job);
        }
        self.pump();
    }

    /// What waits of a job is as urgent as `prio` from now on.
    pub(super) fn hurry(&mut self, job: JobId, prio: Prio) {
        if let Some(now) = self.urgencies.get_mut(&job) {
            *now = urgency(prio);
            self.pool.hurry(job.0, urgency(prio));
        }
    }

    fn begin(&mut self, job: Job) {
        let id = job.id;
        self.tally.begin(levels(&job));
        self.jobs.insert(id, job);
        self.drive(id);
    }

    /// Does what a job wants until it has to wait. A flush keeps its thread until then.
    pub(super) fn drive(&mut self, id: JobId) {
        while let Some(job) = self.jobs.get_mut(&id) {
            let (want, flush) = (job.want(), job.is_flush());
            match want {
                Want::Wait if job.is_busy() => return,
                Want::Wait => return self.leave_thread(id),
                Want::Io(done, bytes) => {
                    let urgency = self.urgencies.get(&id).copied().unwrap_or(FIRST);
                    self.pool.push(urgency, id.0, Transfer { job: id, done, bytes });
                    self.pump();
                }
                Want::Over => {
                    self.leave_thread(id);
                    return self.job_ends(id);
                }
                want if flush && !self.take_thread(id) => {
                    return self.flush_line.push_back((id, want));
                }
                want => return self.occupy(id, want),
            }
        }
    }

    /// A flush that has no thread takes one; false if there is none.
    fn take_thread(&mut self, id: JobId) -> bool {
        let there = self.flushing.contains(&id);
        if !there && self.flushing.len() < self.setup.flush_threads as usize {
            self.flushing.push(id);
            return true;
        }
        there
    }

    /// A job has to wait or is over: the next flush in line gets its thread, if it has one.
    fn leave_thread(&mut self, id: JobId) {
        let before = self.flushing.len();
        self.flushing.retain(|&f| f != id);
        if self.flushing.len() < before
            && let Some((next, want)) = self.flush_line.pop_front()
        {
            self.flushing.push(next);
            self.occupy(next, want);
        }
    }

    /// A job computes or waits for an operation, on a thread.
    fn occupy(&mut self, id: JobId, want: Want) {
        let flush = self.jobs[&id].is_flush();
        let Want::Compute(entries) = want else {
            let at = self.device.serve(self.now, 0);
            return self.queue_at(at, Happening::Own(id));
        };
        // What is cut costs more, spread over its entries.
        let cut = match &self.jobs[&id] {
            job if job.flow.is_some() => {
                let files = job.recipe.files.len() as f64;
                files * self.setup.cut_ns / job.bytes_in.max(1) as f64
            }
            _ => 0.0,
        };
        let asked = self.jobs.get_mut(&id).map_or(0, Job::take_asked) as f64;
        let bytes = entries * self.setup.bytes.disk;
        let (work, workers) = match &mut self.card {
            _ if flush => (entries * self.setup.bytes.memory * (self.setup.flush_ns + cut), 1),
            None => (bytes * self.setup.merge_ns, 1),
            Some(card) => {
                let at = card.serve(self.now, bytes, bytes * self.jobs[&id].kept());
                let host = bytes * card.host_ns();
                self.queue_at(at, Happening::Merged(id));
                (host, 2)
            }
        };
        self.computing.insert(id, Slice { entries, workers });
        let work = work + asked * self.setup.ask_ns;
        self.cores.start(self.now, work, Task::Job(id.0));
    }

    /// A core, or the card, is through with the slice that a job merges; the last of them takes it further.
    pub(super) fn merged(&mut self, id: JobId) {
        let Some(slice) = self.computing.get_mut(&id) else { return };
        slice.workers -= 1;
        if slice.workers > 0 {
            return;
        }
        let entries = slice.entries;
        self.computing.remove(&id);
        if let Some(job) = self.jobs.get_mut(&id) {
            job.computed(entries);
            self.drive(id);
        }
    }

    fn job_ends(&mut self, id: JobId) {
        let job = self.jobs.remove(&id).expect("it was asked what it wants");
        self.urgencies.remove(&id);
        self.tally.end(levels(&job));
        let (files, seconds) = (job.recipe.files.len(), (self.now - job.began) as f64 / 1e9);
        self.note(|| format!("job {id} made {files} files in {seconds:.3} s"));
        let adds: Vec<FileMeta> = job.recipe.files.iter().map(|f| self.file(f, &job)).collect();
        let written: u64 = adds.iter().map(|f| f.bytes).sum();
        self.tally.span.written[usize::from(job.out.level)] += written;
        if let Source::Compaction(kind, _) = job.source {
            let kind = self.tally.span.kinds.entry(kind).or_default();
            kind.jobs += 1;
            kind.read += job.bytes_in;
            kind.written += written;
            kind.seconds += (self.now - job.began) as f64 / 1e9;
        }
        let built = Event::Built { job: id, adds, flow: job.flow };
        match job.source {
            Source::Compaction(_, from) if self.has_to_wait(id, from) => {
                self.note(|| format!("job {id} waits for older ones from L{from}"));
                self.held.insert(id, (from, built));
            }
            _ => self.tell(built),
        }
    }

    /// True if a job from level `from` may not commit yet, because one of that level that was issued before has
    /// not. Older jobs wait for older ones still, so there is always one that need not wait.
    fn has_to_wait(&self, id: JobId, from: u8) -> bool {
        let level = |job: &InFlight| {
            let inputs = job.spec.inputs.iter().filter_map(|&file| self.core.version().file(file));
            inputs.map(|f| f.pos.level).min()
        };
        self.setup.commit_order == CommitOrder::Issue
            && self.core.in_flight().iter().any(|k| k.id < id && level(k) == Some(from))
    }

    /// Tells the core of built jobs that waited and need not any more.
    pub(super) fn release(&mut self) {
        while let Some((&id, _)) =
            self.held.iter().find(|(id, held)| !self.has_to_wait(**id, held.0))
        {
            let Some((_, built)) = self.held.remove(&id) else { return };
            self.tell(built);
        }
    }

    fn file(&mut self, content: &Content, job: &Job) -> FileMeta {
        let id = FileId(self.next_file);
        self.next_file += 1;
        let range = KeyRange::incl(key(content.keys.start), key(content.keys.end - 1));
        let mut f = FileMeta::new(id, job.out, range);
        let entries = content.entries();
        f.bytes = (entries * self.setup.bytes.disk) as u64;
        f.entries = entries.round() as u64;
        f.raw_key_bytes = f.entries * 16;
        f.raw_value_bytes = (entries * (self.setup.bytes.user - 16.0).max(0.0)) as u64;
        f.seqs = job.seqs;
        f.epoch = job.epoch;
        self.contents.insert(id, Arc::new(content.clone()));
        f
    }
}

/// Compactions go behind everything that is first.
fn urgency(prio: Prio) -> u8 {
    1 + prio as u8
}

/// The levels a compaction goes between.
fn levels(job: &Job) -> Option<(u8, u8)> {
    match job.source {
        Source::Flush(_) => None,
        Source::Compaction(_, from) => Some((from, job.out.level)),
    }
}
