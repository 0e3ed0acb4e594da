//! Jobs of the modelled world from start to end: the threads they take, what they wait for, and the
//! files they leave.
//!
//! Leaves to others: what a job does next (`job`), how long the disk and the processors take for
//! it (`device`, `cores`).

use std::sync::Arc;

use lithify_base::{FileId, JobId, KeyRange, Pos};
use lithify_control::{Cutting, Event, MemId};
use lithify_lsm::{FileMeta, FileRef};
use lithify_plan::JobSpec;

use super::{Happening, Task, World};
use crate::job::{Done, Job, Parts, Source, Want};
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
            self.setup.load.overlap(),
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
            opens: 0,
        }));
    }

    pub(super) fn start_compaction(&mut self, id: JobId, spec: &JobSpec, inputs: &[FileRef]) {
        let version = self.core.version();
        let what = self.setup.trace.then(|| spec.describe(version));
        self.note(|| format!("job {id} {}  why: {}", what.unwrap_or_default(), spec.reason));
        let contents: Vec<_> = inputs.iter().map(|f| self.contents[&f.id].clone()).collect();
        let overlap = self.setup.load.overlap();
        let recipe = merge::merge(&contents, &spec.cuts, overlap, &self.setup.bytes, &self.space);
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
            opens: self.setup.opens * inputs.len() as u32,
        }));
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
                    let at = self.device.pooled(self.now, bytes);
                    self.queue_at(at, Happening::Io(id, done));
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
            return self.queue_at(at, Happening::Io(id, Done::Own));
        };
        let work = match flush {
            true => entries * self.setup.bytes.memory * self.setup.flush_ns,
            false => entries * self.setup.bytes.disk * self.setup.merge_ns,
        };
        self.computing.insert(id, entries);
        self.cores.start(self.now, work, Task::Job(id.0));
    }

    fn job_ends(&mut self, id: JobId) {
        let job = self.jobs.remove(&id).expect("it was asked what it wants");
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
        self.tell(Event::Built { job: id, adds, flow: job.flow });
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

/// The levels a compaction goes between.
fn levels(job: &Job) -> Option<(u8, u8)> {
    match job.source {
        Source::Flush(_) => None,
        Source::Compaction(_, from) => Some((from, job.out.level)),
    }
}
