//! The world around the core: virtual time, the writer, jobs, the disk and the processors. It
//! tells [`Core`] what happened and carries out its commands, as the shell of a database does, and
//! after each installed tree checks the invariants of trees and jobs.
//!
//! Keeps: everything that happens is in one queue, ordered by time and then by when it was put
//! there, so a setup and a seed give one life.
//!
//! Chapters: `jobs` from their start to their end, `writer` who fills memtables. Here is time, and what
//! the core hears and says.

mod jobs;
mod writer;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::sync::Arc;

use anyhow::{Result, anyhow, bail};
use lithify_base::{FileId, JobId, bytewise};
use lithify_control::{Command, Core, Event, MemId, NewEdit};
use lithify_lsm::{Edit, FileMeta, FileRef, Version, check};
use lithify_plan::{Cause, Kind};

use crate::card::Card;
use crate::client::{Gate, Keys};
use crate::cores::Cores;
use crate::device::Device;
use crate::job::{Done, Job, Want};
use crate::memtable::MemTable;
use crate::overlap::Overlap;
use crate::pool::Pool;
use crate::setup::Setup;
use crate::space::{Content, Space};
use crate::tally::{Span, Step, Tally};

/// How often the upkeep looks around, nanoseconds.
const TICK: u64 = 50_000_000;

const DAY: u64 = 86_400_000_000_000;
/// A load that takes longer is given up, nanoseconds. It has 17 million ticks, a minute or two of ours.
const LOAD_MAX: u64 = 10 * DAY;

/// Longer stops are counted by themselves, nanoseconds: what a user calls a hiccup.
pub const LONG: u64 = 10_000_000;

/// Draws of keys for each cell of a full memtable, if it has that many writes.
const DRAWS: u32 = 8;

/// Who computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Task {
    /// The writer.
    Client,
    /// A job.
    Job(u64),
    /// A thread that transfers.
    Transfer(u64),
}

/// What a thread moves for a job.
#[derive(Clone, Copy, Debug)]
struct Transfer {
    job: JobId,
    done: Done,
    bytes: u64,
}

/// A transfer that has a thread.
#[derive(Clone, Copy, Debug)]
struct Moving {
    transfer: Transfer,
    /// What the pool said of it.
    first: bool,
    /// When the device is through with it.
    served: u64,
}

/// What a job merges at the moment.
#[derive(Clone, Copy, Debug)]
struct Slice {
    entries: f64,
    /// Who is at it: a core, and a card if one merges.
    workers: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    /// A job's own operation ended.
    Own(JobId),
    /// The device is through with this transfer.
    Moved(u64),
    /// The card is through with a slice of this job.
    Merged(JobId),
    ManifestWritten,
    EditSynced,
    ClientWakes(u64),
    Tick,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum ClientState {
    Computing,
    Waiting {
        cause: Cause,
        stop: bool,
        since: u64,
    },
    /// Between two bursts, or before the next write is due.
    Resting,
    Over,
}

/// A whole life.
#[derive(Clone, Debug, PartialEq)]
pub struct Life {
    /// While the client wrote.
    pub load: Span,
    /// Until the core was content.
    pub drain: Span,
    /// User bytes.
    pub user_bytes: f64,
    /// Seconds of the load in which the client rested between bursts, or before a write was due.
    pub rested: f64,
    /// Seconds that stops longer than [`LONG`] took.
    pub long_waits: f64,
    /// Seconds by which writes were late, some at a time, if they were offered at a rate.
    pub late: Vec<f64>,
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
    /// When the world changed, if it did, in seconds.
    pub changed: Option<f64>,
    /// Operations of the disk until the end.
    pub operations: u64,
    /// Tenths of a second.
    pub steps: Vec<Step>,
    /// Trees installed.
    pub installs: u64,
    /// What happened when, if that was asked for.
    pub trace: Vec<String>,
}

impl Life {
    /// User bytes per second until the tree was quiet, not counting the client's own rests.
    pub fn rate(&self) -> f64 {
        let seconds = self.load.seconds - self.rested + self.drain.seconds;
        self.user_bytes / seconds.max(1e-9)
    }
    /// Bytes written to tables, flushes included, per user byte.
    pub fn amplification(&self) -> f64 {
        (self.load.all_written() + self.drain.all_written()) as f64 / self.user_bytes.max(1.0)
    }
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
    overlap: Overlap,
    core: Core,
    now: u64,
    queue: BinaryHeap<Reverse<(u64, u64, Happening)>>,
    order: u64,
    cores: Cores,
    device: Device,
    card: Option<Card>,
    keys: Keys,
    gate: Gate,
    client: ClientState,
    /// Distinguishes the present wait from those before.
    wait: u64,
    written: u64,
    quantum: u64,
    /// Nanoseconds between bursts, and those of long stops.
    rested: u64,
    long_waits: u64,
    late: Vec<f64>,
    /// When the world changed.
    changed: Option<u64>,
    mem: MemTable,
    mem_id: u64,
    frozen: BTreeMap<MemId, MemTable>,
    contents: BTreeMap<FileId, Arc<Content>>,
    jobs: BTreeMap<JobId, Job>,
    /// Flushes that have a thread, and those that wait for one with what they want.
    flushing: Vec<JobId>,
    flush_line: VecDeque<(JobId, Want)>,
    computing: BTreeMap<JobId, Slice>,
    /// Compactions that are built and that the core has not heard of yet, with the level they came from.
    held: BTreeMap<JobId, (u8, Event)>,
    /// Of compactions; flushes are first.
    urgencies: BTreeMap<JobId, u8>,
    pool: Pool<Transfer>,
    /// By number; numbers that are free again.
    moving: Vec<Option<Moving>>,
    unmoving: Vec<u64>,
    /// Those that wait for a core, and how many have one.
    copies: VecDeque<u64>,
    copying: u32,
    next_file: u64,
    tally: Tally,
    worst_debt: u64,
    /// Bytes that jobs moved and the core was not told of.
    untold: u64,
    trace: Vec<String>,
    error: Option<anyhow::Error>,
}

/// Lives through a setup.
///
/// # Errors
/// A broken invariant, a core that gave up, or a tree that does not come to rest.
pub fn live(setup: &Setup) -> Result<Life> {
    let mut world = World::new(setup);
    // As an opened database has it: only behind the load a caller waits for the tree to be quiet.
    world.tell(Event::Awaited { by: 0 });
    if matches!(setup.change, Some((0, _))) {
        world.change();
    }
    world.queue_at(0, Happening::Tick);
    world.client_goes_on();
    while world.client != ClientState::Over {
        world.step()?;
        if world.now > LOAD_MAX {
            bail!(
                "{} of {} writes are done after {} days of the modelled world; give fewer writes, or a \
                 faster machine",
                world.written,
                setup.num,
                LOAD_MAX / DAY
            );
        }
    }
    let load = world.tally.cut(world.now);
    let at_load_end = world.shape();
    let disk_bytes = world.device.moved;
    let began = world.now;
    world.tell(Event::Awaited { by: 1 });
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
        rested: world.rested as f64 / 1e9,
        long_waits: world.long_waits as f64 / 1e9,
        late: std::mem::take(&mut world.late),
        at_load_end,
        at_end: world.shape(),
        worst_debt: world.worst_debt,
        cpu_seconds: world.cores.spent / 1e9,
        disk_bytes,
        changed: world.changed.map(|at| at as f64 / 1e9),
        operations: world.device.operations,
        steps: world.tally.steps,
        installs: world.core.installs(),
        trace: world.trace,
    })
}

impl World<'_> {
    fn new(setup: &Setup) -> World<'_> {
        let space = Space::new(setup.keys, setup.cells);
        let memtable_writes = setup.plan.memtable_bytes as f64 / setup.bytes.memory;
        let quantum = (memtable_writes / 128.0).max(1.0) as u64;
        let grain = (memtable_writes / f64::from(DRAWS * space.cells)).max(1.0) as u64;
        World {
            setup,
            space,
            overlap: setup.load.overlap(setup.keys),
            core: Core::new(setup.control(), Version::empty(bytewise()), 1),
            now: 0,
            queue: BinaryHeap::new(),
            order: 0,
            cores: Cores::new(setup.cores),
            device: Device::new(setup.device),
            card: setup.card.clone().map(Card::new),
            keys: Keys::new(&setup.load, &space, setup.seed, grain),
            gate: Gate::default(),
            client: ClientState::Computing,
            wait: 0,
            written: 0,
            quantum,
            rested: 0,
            long_waits: 0,
            late: Vec::new(),
            changed: None,
            mem: MemTable::new(space.cells, 0),
            mem_id: 1,
            frozen: BTreeMap::new(),
            contents: BTreeMap::new(),
            jobs: BTreeMap::new(),
            flushing: Vec::new(),
            flush_line: VecDeque::new(),
            computing: BTreeMap::new(),
            held: BTreeMap::new(),
            urgencies: BTreeMap::new(),
            pool: Pool::new(setup.transfer_threads()),
            moving: Vec::new(),
            unmoving: Vec::new(),
            copies: VecDeque::new(),
            copying: 0,
            next_file: 1,
            tally: Tally::default(),
            worst_debt: 0,
            untold: 0,
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
        self.release();
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
            for step in &mut self.tally.steps[steps..] {
                (step.debt, step.l0_depth) = (debt, depth);
            }
        }
    }

    fn task_ends(&mut self, at: u64) {
        self.time(at);
        match self.cores.end(at) {
            Some(Task::Client) => self.client_wrote(),
            Some(Task::Job(no)) => self.merged(JobId(no)),
            Some(Task::Transfer(id)) => self.copied(id),
            None => {}
        }
    }

    fn happen(&mut self, what: Happening) {
        match what {
            Happening::Own(id) => {
                if let Some(job) = self.jobs.get_mut(&id) {
                    job.done(Done::Own);
                    self.drive(id);
                }
            }
            Happening::Moved(id) => self.moved(id),
            Happening::Merged(id) => self.merged(id),
            Happening::ManifestWritten => {
                let at = self.device.serve(self.now, 0);
                self.queue_at(at, Happening::EditSynced);
            }
            Happening::EditSynced => self.tell(Event::EditSynced),
            Happening::ClientWakes(wait) => {
                if wait == self.wait {
                    self.client_wakes();
                }
            }
            Happening::Tick => {
                let bytes = std::mem::take(&mut self.untold);
                self.tell(Event::Moved { bytes });
                self.tell(Event::Tick);
                self.queue_at(self.now + TICK, Happening::Tick);
            }
        }
    }

    // ---- the core

    fn tell(&mut self, event: Event) {
        let before = self.core.installs();
        let commands = self.core.on(event, self.now);
        if self.setup.check {
            self.check(before);
        }
        // Debt is of the tree, so it has its peaks where one is installed.
        if self.core.installs() > before && self.client != ClientState::Over {
            self.worst_debt = self.worst_debt.max(self.core.debt());
        }
        for command in commands {
            self.execute(command);
        }
    }

    /// The invariants of jobs, and of the tree if there are more than `installs`.
    fn check(&mut self, installs: u64) {
        let flights = self.core.in_flight();
        if let Err(v) = lithify_plan::check::jobs(self.core.version(), flights) {
            self.fail(anyhow!("{v}"));
        }
        if self.core.installs() > installs
            && let Err(v) = check::all(self.core.version())
        {
            self.fail(anyhow!("{v}"));
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
            Command::Stall(pressure) => {
                self.note(|| format!("writes: {pressure:?}"));
                self.gate.press(pressure, self.mem_written(), self.now);
                if matches!(self.client, ClientState::Waiting { .. }) {
                    self.client_wakes();
                }
            }
            Command::ReadOnly { error } => self.fail(anyhow!("writes are refused: {error}")),
            Command::Hurry { job, prio } => self.hurry(job, prio),
            Command::Discard { files } => self.forget(&files),
            Command::FlushesFail(_)
            | Command::CompactionsFail(_)
            | Command::RequestDone { .. }
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

    /// Files that left the tree are deleted, which is a matter of names and waits for no device.
    fn sweep(&mut self, obsolete: &[FileRef]) {
        let version = self.core.version();
        let gone = obsolete.iter().map(|f| f.id).filter(|id| version.file(*id).is_none());
        self.forget(&gone.collect::<Vec<_>>());
    }

    fn forget(&mut self, files: &[FileId]) {
        for id in files {
            self.contents.remove(id);
        }
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
