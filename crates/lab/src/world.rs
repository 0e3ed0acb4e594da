//! The world around the mind: virtual time, the writer, jobs, the disk and the processors. It
//! tells [`Core`] what happened and carries out its commands, as the shell of a database does, and
//! after each installed tree checks the invariants of trees and jobs.
//!
//! Keeps: everything that happens is in one queue, ordered by time and then by when it was put
//! there, so a setup and a seed give one life.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::sync::Arc;

use anyhow::{Result, anyhow, bail};
use lithify_base::{FileId, JobId, KeyRange, Pos, bytewise};
use lithify_control::{Command, Core, Cutting, Event, MemId, NewEdit};
use lithify_lsm::{Edit, FileMeta, FileRef, Version, check};
use lithify_plan::{Cause, JobSpec, Kind};

use crate::client::{Gate, Keys, Verdict};
use crate::cores::Cores;
use crate::device::Device;
use crate::job::{Done, Job, Parts, Source, Want};
use crate::memtable::{self, MemTable};
use crate::merge;
use crate::setup::Setup;
use crate::space::{Content, Space, key};
use crate::tally::{Span, Step, Tally};

/// How often the upkeep looks around, nanoseconds.
const TICK: u64 = 50_000_000;

/// Who computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Task {
    /// The writer.
    Client,
    /// A job.
    Job(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    Io(JobId, Done),
    ManifestWritten,
    EditSynced,
    Unlinked,
    ClientWakes(u64),
    Tick,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum ClientState {
    Computing,
    Waiting { cause: Cause, stop: bool, since: u64 },
    Over,
}

/// A whole life.
#[derive(Clone, Debug, PartialEq)]
pub struct Life {
    /// While the client wrote.
    pub load: Span,
    /// Until the mind was content.
    pub drain: Span,
    /// User bytes.
    pub user_bytes: f64,
    /// The tree when the load ended.
    pub at_load_end: Shape,
    /// The tree when all was done.
    pub at_end: Shape,
    /// The worst debt of the load.
    pub worst_debt: u64,
    /// Core seconds of everybody.
    pub cpu_seconds: f64,
    /// Bytes that went over the disk during the load.
    pub disk_bytes: u64,
    /// Tenths of a second.
    pub steps: Vec<Step>,
    /// Trees installed.
    pub installs: u64,
    /// What happened when, if that was asked for.
    pub trace: Vec<String>,
}

/// What a tree looks like.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shape {
    /// Bytes per level.
    pub bytes: Vec<u64>,
    /// Bytes of stacked runs.
    pub extra: u64,
    /// Runs over the worst key of level 0.
    pub l0_depth: u32,
    /// Runs a read may have to look at.
    pub depth: u32,
    /// Bytes of compaction outstanding.
    pub debt: u64,
    /// Buckets.
    pub buckets: usize,
}

struct World<'a> {
    setup: &'a Setup,
    space: Space,
    core: Core,
    now: u64,
    queue: BinaryHeap<Reverse<(u64, u64, Happening)>>,
    order: u64,
    cores: Cores,
    device: Device,
    keys: Keys,
    gate: Gate,
    client: ClientState,
    /// Distinguishes the present wait from those before.
    wait: u64,
    written: u64,
    quantum: u64,
    mem: MemTable,
    mem_id: u64,
    frozen: BTreeMap<MemId, MemTable>,
    contents: BTreeMap<FileId, Arc<Content>>,
    jobs: BTreeMap<JobId, Job>,
    /// Flushes that have a thread, and those that wait for one with what they want.
    flushing: Vec<JobId>,
    flush_line: VecDeque<(JobId, Want)>,
    computing: BTreeMap<JobId, f64>,
    unlinks: u64,
    next_file: u64,
    tally: Tally,
    worst_debt: u64,
    trace: Vec<String>,
    error: Option<anyhow::Error>,
}

/// Lives through a setup.
///
/// # Errors
/// A broken invariant, a mind that gave up, or a tree that does not come to rest.
pub fn live(setup: &Setup) -> Result<Life> {
    let mut world = World::new(setup);
    world.queue_at(0, Happening::Tick);
    world.client_goes_on();
    while world.client != ClientState::Over {
        world.step()?;
    }
    let load = world.tally.cut(world.now);
    let at_load_end = world.shape();
    let disk_bytes = world.device.moved;
    let began = world.now;
    while !(world.core.is_idle() && world.jobs.is_empty()) {
        world.step()?;
        if (world.now - began) as f64 / 1e9 > setup.drain_limit {
            bail!("the tree does not come to rest: {:?}", world.core.version());
        }
    }
    Ok(Life {
        load,
        drain: world.tally.cut(world.now),
        user_bytes: setup.num as f64 * setup.bytes.user,
        at_load_end,
        at_end: world.shape(),
        worst_debt: world.worst_debt,
        cpu_seconds: world.cores.spent / 1e9,
        disk_bytes,
        steps: world.tally.steps,
        installs: world.core.installs(),
        trace: world.trace,
    })
}

impl World<'_> {
    fn new(setup: &Setup) -> World<'_> {
        let space = Space::new(setup.keys, setup.cells);
        let memtable_writes = setup.plan.memtable_bytes as f64 / setup.bytes.memory;
        let quantum = (65_536.0 / setup.bytes.memory).min(memtable_writes / 32.0).max(1.0) as u64;
        World {
            setup,
            space,
            core: Core::new(setup.control(), Version::empty(bytewise()), 1),
            now: 0,
            queue: BinaryHeap::new(),
            order: 0,
            cores: Cores::new(setup.cores),
            device: Device::new(setup.device),
            keys: Keys::new(&setup.load, &space, setup.seed),
            gate: Gate::default(),
            client: ClientState::Computing,
            wait: 0,
            written: 0,
            quantum,
            mem: MemTable::new(space.cells, 0),
            mem_id: 1,
            frozen: BTreeMap::new(),
            contents: BTreeMap::new(),
            jobs: BTreeMap::new(),
            flushing: Vec::new(),
            flush_line: VecDeque::new(),
            computing: BTreeMap::new(),
            unlinks: 0,
            next_file: 1,
            tally: Tally::default(),
            worst_debt: 0,
            trace: Vec::new(),
            error: None,
        }
    }

    fn queue_at(&mut self, at: u64, what: Happening) {
        self.order += 1;
        self.queue.push(Reverse((at, self.order, what)));
    }

    /// Whatever comes next.
    fn step(&mut self) -> Result<()> {
        let queued = self.queue.peek().map(|Reverse((at, ..))| *at);
        let ended = self.cores.next_end();
        match (queued, ended) {
            (Some(q), Some(e)) if e <= q => self.task_ends(e),
            (None, Some(e)) => self.task_ends(e),
            (Some(_), _) => {
                let Reverse((at, _, what)) = self.queue.pop().expect("peeked at");
                self.time(at);
                self.happen(what);
            }
            (None, None) => bail!("nothing will ever happen again"),
        }
        match self.error.take() {
            Some(error) => Err(error.context(format!("at {:.3} s", self.now as f64 / 1e9))),
            None => Ok(()),
        }
    }

    fn time(&mut self, now: u64) {
        let steps = self.tally.steps.len();
        self.now = self.now.max(now);
        self.tally.advance(self.now);
        if self.tally.steps.len() > steps {
            let debt = self.core.debt();
            let depth = self.core.version().max_depth(0);
            if self.client != ClientState::Over {
                self.worst_debt = self.worst_debt.max(debt);
            }
            for step in &mut self.tally.steps[steps..] {
                (step.debt, step.l0_depth) = (debt, depth);
            }
        }
    }

    fn task_ends(&mut self, at: u64) {
        self.time(at);
        match self.cores.end(at) {
            Some(Task::Client) => self.client_wrote(),
            Some(Task::Job(no)) => {
                let id = JobId(no);
                let entries = self.computing.remove(&id).unwrap_or(0.0);
                let Some(job) = self.jobs.get_mut(&id) else { return };
                job.computed(entries);
                self.drive(id);
            }
            None => {}
        }
    }

    fn happen(&mut self, what: Happening) {
        match what {
            Happening::Io(id, done) => {
                if let Some(job) = self.jobs.get_mut(&id) {
                    job.done(done);
                    self.drive(id);
                }
            }
            Happening::ManifestWritten => {
                let at = self.device.serve(self.now, 0);
                self.queue_at(at, Happening::EditSynced);
            }
            Happening::EditSynced => self.tell(Event::EditSynced),
            Happening::Unlinked => {
                self.unlinks -= 1;
                self.unlink();
            }
            Happening::ClientWakes(wait) => {
                if wait == self.wait {
                    self.client_wakes();
                }
            }
            Happening::Tick => {
                self.tell(Event::Tick);
                self.queue_at(self.now + TICK, Happening::Tick);
            }
        }
    }

    // ---- the mind

    fn tell(&mut self, event: Event) {
        let before = self.core.installs();
        let commands = self.core.on(event, self.now);
        let flights = self.core.in_flight();
        let order = self.setup.plan.commit_order;
        if let Err(v) = lithify_plan::check::jobs(self.core.version(), flights, order) {
            self.fail(anyhow!("{v}"));
        }
        if self.core.installs() > before
            && let Err(v) = check::all(self.core.version())
        {
            self.fail(anyhow!("{v}"));
        }
        for command in commands {
            self.execute(command);
        }
    }

    fn note(&mut self, what: impl FnOnce() -> String) {
        if self.setup.trace {
            self.trace.push(format!("{:.6} {}", self.now as f64 / 1e9, what()));
        }
    }

    fn fail(&mut self, error: anyhow::Error) {
        self.error.get_or_insert(error);
    }

    fn execute(&mut self, command: Command) {
        match command {
            Command::StartFlush { job, mem, out, cutting } => {
                self.start_flush(job, mem, out, &cutting);
            }
            Command::StartCompaction { job, spec, inputs, .. } => {
                self.start_compaction(job, &spec, &inputs);
            }
            Command::Commit { edits } => {
                for NewEdit { edit, what } in edits {
                    self.note(|| format!("commit {what}"));
                    self.count_moves(&edit);
                }
                let at = self.device.serve(self.now, 0);
                self.queue_at(at, Happening::ManifestWritten);
            }
            Command::Install { no, flushed, obsolete, .. } => {
                self.note(|| format!("tree {no} installed"));
                if let Some(mem) = flushed {
                    self.frozen.retain(|m, _| *m > mem);
                }
                self.sweep(&obsolete);
            }
            Command::Press(pressure) => {
                self.note(|| format!("writes: {pressure:?}"));
                self.gate.pressure = pressure;
                if matches!(self.client, ClientState::Waiting { .. }) {
                    self.client_wakes();
                }
            }
            Command::ReadOnly { error } => self.fail(anyhow!("writes are refused: {error}")),
            // The modelled device has one queue, in which nobody overtakes anybody.
            Command::Hurry { .. } => {}
            Command::Trouble(_)
            | Command::Stuck(_)
            | Command::ManualDone { .. }
            | Command::Abort { .. } => {}
        }
    }

    fn count_moves(&mut self, edit: &Edit) {
        let stays = |f: &FileMeta| edit.deletes.iter().any(|d| d.1 == f.id);
        if !edit.deletes.is_empty() && edit.adds.iter().all(stays) && !edit.adds.is_empty() {
            let kind = self.tally.span.kinds.entry(Kind::Move).or_default();
            kind.jobs += 1;
            kind.read += edit.adds.iter().map(|f| f.bytes).sum::<u64>();
        }
    }

    /// Files that left the tree are deleted, one after the other.
    fn sweep(&mut self, obsolete: &[FileRef]) {
        let idle = self.unlinks == 0;
        for f in obsolete {
            if self.core.version().file(f.id).is_none() && self.contents.remove(&f.id).is_some() {
                self.unlinks += 1;
            }
        }
        if idle {
            self.unlink();
        }
    }

    fn unlink(&mut self) {
        if self.unlinks > 0 {
            let at = self.device.serve(self.now, 0);
            self.queue_at(at, Happening::Unlinked);
        }
    }

    // ---- jobs

    fn start_flush(&mut self, id: JobId, mem: MemId, out: Pos, cutting: &Cutting) {
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

    fn start_compaction(&mut self, id: JobId, spec: &JobSpec, inputs: &[FileRef]) {
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
    fn drive(&mut self, id: JobId) {
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

    // ---- the writer

    /// The writer is at the gate, or at the end.
    fn client_goes_on(&mut self) {
        let left = self.setup.num - self.written;
        if left == 0 {
            self.client = ClientState::Over;
            return;
        }
        let writes = self.quantum.min(left);
        if self.mem_is_full() {
            // It passed the gate before; the verdict on this very freeze may be to stop.
            self.freeze();
            match self.gate.pass(0.0, self.now) {
                Verdict::Pass => {}
                wait => return self.client_waits(wait),
            }
        }
        match self.gate.pass(writes as f64 * self.setup.bytes.user, self.now) {
            Verdict::Pass => {}
            wait => return self.client_waits(wait),
        }
        self.client = ClientState::Computing;
        let work = writes as f64 * self.setup.client_ns;
        self.cores.start(self.now, work, Task::Client);
    }

    fn mem_is_full(&self) -> bool {
        let bytes = self.mem.count as f64 * self.setup.bytes.memory;
        bytes >= self.setup.plan.memtable_bytes as f64 && self.gate.pressure.stop.is_none()
    }

    fn client_wrote(&mut self) {
        let writes = self.quantum.min(self.setup.num - self.written);
        for _ in 0..writes {
            let cell = self.keys.pick(self.written, self.setup.num);
            self.mem.add(cell);
            self.written += 1;
        }
        self.tally.step.bytes += writes as f64 * self.setup.bytes.user;
        self.client_goes_on();
    }

    fn freeze(&mut self) {
        let next = MemTable::new(self.space.cells, self.written);
        let full = std::mem::replace(&mut self.mem, next);
        let bytes = (full.count as f64 * self.setup.bytes.memory) as u64;
        let mem = MemId(self.mem_id);
        self.mem_id += 1;
        self.frozen.insert(mem, full);
        self.tell(Event::Frozen { mem, bytes, log_number: self.mem_id });
    }

    fn client_waits(&mut self, verdict: Verdict) {
        let Verdict::Wait(cause, until) = verdict else { unreachable!("it may pass") };
        self.client = ClientState::Waiting { cause, stop: until.is_none(), since: self.now };
        self.tally.stalled = true;
        self.wait += 1;
        if let Some(at) = until {
            self.queue_at(at, Happening::ClientWakes(self.wait));
        }
    }

    fn client_wakes(&mut self) {
        let ClientState::Waiting { cause, stop, since } = self.client else { return };
        let seconds = (self.now - since) as f64 / 1e9;
        let waited = self.tally.span.waited.entry(cause).or_default();
        match stop {
            true => waited.1 += seconds,
            false => waited.0 += seconds,
        }
        self.tally.stalled = false;
        self.wait += 1;
        self.client = ClientState::Computing;
        self.client_goes_on();
    }

    fn shape(&self) -> Shape {
        let version = self.core.version();
        let levels = 0..lithify_base::MAX_LEVELS as u8;
        let extras = levels.clone().skip(1).flat_map(|l| version.level(l).runs());
        Shape {
            bytes: levels.clone().map(|l| version.bytes(l)).collect(),
            extra: extras.filter(|r| r.pos.stratum.0 > 0).map(|r| r.bytes()).sum(),
            l0_depth: version.max_depth(0),
            depth: levels.map(|l| version.max_depth(l)).sum(),
            debt: self.core.debt(),
            buckets: version.buckets().map_or(0, |m| m.len()),
        }
    }
}

/// The levels a compaction goes between.
fn levels(job: &Job) -> Option<(u8, u8)> {
    match job.source {
        Source::Flush(_) => None,
        Source::Compaction(_, from) => Some((from, job.out.level)),
    }
}
