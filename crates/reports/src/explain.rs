//! What limits writing now, as far as the database itself can tell: the verdict on writes and the
//! figures it rests on, the jobs at work with how far they are, what is wanted and can't be had, and
//! what would start if there were slots for it. Each list has the most important first.
//!
//! The moment is taken out under the core's lock and thought over without it, so asking often
//! disturbs no one.

#[cfg(test)]
mod tests;
mod text;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use lithify_base::{Error, JobId, KeyRange, Level};
use lithify_compact::{EngineReport, JobControl, PartProgress, PartStage};
use lithify_control::{Outlook, Pressure};
use lithify_env::sync::Arc;
use lithify_env::{Hanging, Mono};
use lithify_plan::{Blocked, Cause, InFlight, JobSpec, JobState, Prio, Verdict};

/// What the database says about the moment; `Db::explain` makes it and
/// `Display` prints it for people.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Explanation {
    /// How writes fare.
    pub writes: Writes,
    /// For how long that has been so, if writes are slowed or stopped and the handle writes.
    pub lasts: Option<Duration>,
    /// Why flushes fail at present, in words.
    pub flush_trouble: Option<String>,
    /// Why compactions get nowhere at present, in words.
    pub compaction_trouble: Option<String>,
    /// Engines that were named to the builder and get no work, each with why and what to do, in words.
    pub engine_trouble: Vec<String>,
    /// Calls to the disk that have not come back for seconds, the oldest first.
    pub hanging: Vec<HangingCall>,
    /// Transactions that are prepared and not over, of the whole database: no log from that of the first one on
    /// is deleted.
    pub prepared: usize,
    /// What writes are slowed and stopped by, each with where it stands.
    pub bounds: Vec<Bound>,
    /// Levels that hold data, 0 first.
    pub levels: Vec<LevelNeed>,
    /// Jobs at work: flushes first if memtables are what writers wait for, else the most urgent
    /// compaction first.
    pub jobs: Vec<JobReport>,
    /// What is wanted and can't be had, the most wanted first.
    pub blocked: Vec<Wish>,
    /// Compactions that could start now if there were slots for them, the most wanted first; at
    /// most 64.
    pub due: Vec<Wish>,
    /// Compactions being built.
    pub running: usize,
    /// Compactions that may run at once while it is as calm as now.
    pub slots_now: usize,
    /// What a byte costs that a compaction reads or writes: the compaction starts once it brings so many
    /// bytes one level down for each. 0 where bytes are free, as under every policy but
    /// [`Policy::Adaptive`](lithify_plan::PolicyKind::Adaptive).
    pub price: f64,
    /// Compactions that may run at once under pressure.
    pub slots: usize,
    /// False for a handle that only reads: the tree is explained as it lies, and `writes` says how
    /// they would fare.
    pub live: bool,
    /// Whether tables are compacted without being asked for (`auto_compaction`).
    pub automatic: bool,
}

/// How writes fare.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Writes {
    /// Nothing holds them back.
    Free,
    /// Nothing holds them back either; faster writers would be held to what flushes and compactions sustain.
    Paced {
        /// How many bytes per second that is.
        bytes_per_second: u64,
    },
    /// They are slowed down.
    Slowed {
        /// Name of the cause, as in [`Stats::stalls`](crate::stats::Stats::stalls).
        cause: &'static str,
        /// To how many bytes per second; unknown for a handle that only reads.
        bytes_per_second: Option<u64>,
    },
    /// They wait.
    Stopped {
        /// Name of the cause, as in [`Stats::stalls`](crate::stats::Stats::stalls).
        cause: &'static str,
    },
    /// They fail, with this message.
    Refused {
        /// The message.
        why: String,
    },
    /// Another handle writes, and only it knows.
    Unknown,
}

/// A call to the disk that does not come back. Short reads are not among them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HangingCall {
    /// What was called, such as `sync`, `write_at` or `sync_dir`.
    pub call: &'static str,
    /// On which file or directory.
    pub path: PathBuf,
    /// For how long.
    pub lasts: Duration,
}

/// One figure on which writes are slowed and stopped.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Bound {
    /// Name of the cause it is a measure of, as in [`Stats::stalls`](crate::stats::Stats::stalls).
    pub cause: &'static str,
    /// What is counted, in words.
    pub what: &'static str,
    /// Whether it counts bytes.
    pub in_bytes: bool,
    /// Where it stands.
    pub now: u64,
    /// From where on writes are slowed; `None` if they never are.
    pub slows_at: Option<u64>,
    /// From where on writes stop; `None` if they never do.
    pub stops_at: Option<u64>,
}

/// A level and its need for compaction.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LevelNeed {
    /// Level number.
    pub level: u8,
    /// Runs a read of one key may have to look at.
    pub depth: u32,
    /// Files.
    pub files: usize,
    /// Bytes on disk.
    pub bytes: u64,
    /// Bytes it should hold at most, where that is what counts.
    pub target_bytes: Option<u64>,
    /// Its need, in thousandths: from 1000 on the level is due.
    pub need: u64,
}

/// How far a job is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JobStage {
    /// It is given to a worker.
    Working,
    /// Its files are built, and it waits for older jobs to commit.
    WaitsFor(Vec<u64>),
    /// Its edit is being written to the manifest, or is next.
    Committing,
}

/// A flush or compaction at work.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct JobReport {
    /// Its number in the event log.
    pub job: u64,
    /// `Flush`, or the kind of compaction.
    pub kind: String,
    /// The topmost level it reads from; `None` for a flush.
    pub from: Option<u8>,
    /// The level it writes to.
    pub to: u8,
    /// First and last key of what it works on; `None` if its memtable is empty.
    pub keys: Option<(Vec<u8>, Vec<u8>)>,
    /// Bytes of its inputs.
    pub bytes: u64,
    /// Bytes of them that went through.
    pub done: u64,
    /// How far it is.
    pub stage: JobStage,
    /// Its parts in key order, if it is merged in several.
    pub parts: Vec<PartReport>,
    /// How long it has been at work; `None` once a worker is through with it.
    pub running: Option<Duration>,
    /// How long it will still take at its pace so far; `None` if it has none yet.
    pub left: Option<Duration>,
    /// Why it exists, in words; empty for a flush.
    pub why: String,
    /// How many of the blocked wishes wait for it.
    pub holds_up: usize,
}

/// A part of a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PartReport {
    /// Who has it.
    pub stage: PartStage,
    /// About how many bytes of the inputs it has.
    pub bytes: u64,
    /// Bytes of them that went through.
    pub done: u64,
}

/// A compaction that is wanted.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Wish {
    /// Its kind.
    pub kind: String,
    /// Why it is wanted, in words.
    pub why: String,
    /// Why it can't be had, in words; empty if only a slot is missing.
    pub because: String,
    /// Jobs at work that it waits for.
    pub waits_for: Vec<u64>,
    /// Bytes it would read; 0 if it never became a job.
    pub bytes: u64,
    /// The numbers of the files that it would take; empty if it never became a job.
    pub inputs: Vec<u64>,
}

impl Explanation {
    /// The same, from a handle that only reads, for who knows that another one writes, with `busy` files in its jobs:
    /// how its writes fare is unknown, and what would take one of these files is not due.
    pub fn beside(mut self, busy: &[u64]) -> Explanation {
        self.writes = Writes::Unknown;
        self.due.retain(|wish| !wish.inputs.iter().any(|file| busy.contains(file)));
        self
    }
}

impl JobReport {
    /// How much is done, in percent.
    pub fn percent(&self) -> u64 {
        match self.stage {
            JobStage::Working => percent(self.done, self.bytes),
            JobStage::WaitsFor(_) | JobStage::Committing => 100,
        }
    }
}

impl PartReport {
    /// How much is done, in percent.
    pub fn percent(&self) -> u64 {
        percent(self.done, self.bytes)
    }
}

fn percent(done: u64, bytes: u64) -> u64 {
    (u128::from(done) * 100 / u128::from(bytes.max(1))) as u64
}

/// What is taken out of a database for its explanation.
pub struct Moment {
    /// When it was.
    pub now: Mono,
    /// What the core of the family has before it.
    pub outlook: Outlook,
    /// Why the core takes no writes any more, in words.
    pub refusal: Option<String>,
    /// How the gate in front of writes stands.
    pub gate: GateReport,
    /// Jobs that a worker is busy with.
    pub at_work: BTreeMap<JobId, Arc<AtWork>>,
    /// Calls to the disk that have not come back for seconds.
    pub hanging: Vec<Hanging>,
    /// What the engines other than the CPU did.
    pub engines: Vec<EngineReport>,
    /// Transactions that are prepared.
    pub prepared: usize,
    /// The handle writes.
    pub live: bool,
}

/// What the gate in front of writes knows of the moment.
pub struct GateReport {
    /// The verdict on writes.
    pub pressure: Pressure,
    /// Bytes of writes that have gone to the active memtable.
    pub passed: u64,
    /// What writes fail with.
    pub refused: Option<Error>,
    /// Why flushes fail.
    pub trouble: Option<Error>,
    /// Why compactions get nowhere.
    pub stuck: Option<Error>,
    /// When the stall that is on began.
    pub since: Mono,
}

/// A job that a worker is busy with.
pub struct AtWork {
    /// How far it is, and how it is stopped.
    pub control: Arc<JobControl>,
    /// When it began.
    pub since: Mono,
    /// The keys of a flush; those of a compaction are in its spec.
    pub flushes: Option<KeyRange>,
}

impl Moment {
    /// What limits writing at this moment.
    pub fn explain(self) -> Explanation {
        let Moment { now, outlook, refusal, gate, at_work, hanging, engines, prepared, live } =
            self;
        let blocked = outlook.blocked();
        let writes = match (live, refusal.or_else(|| gate.refused.map(|e| e.to_string()))) {
            (true, Some(why)) => Writes::Refused { why },
            (true, None) => under(&gate.pressure, gate.pressure.rate(gate.passed, now.0)),
            (false, _) => would_be(&outlook),
        };
        let stalled = matches!(writes, Writes::Slowed { .. } | Writes::Stopped { .. });
        let told = |c: Hanging| HangingCall { call: c.op, path: c.path, lasts: now.since(c.since) };
        let mut jobs = job_reports(&at_work, &outlook, &blocked, now);
        if matches!(writes, Writes::Stopped { cause } | Writes::Slowed { cause, .. }
            if cause == Cause::MemtableLimit.name())
        {
            jobs.sort_by_key(|j| j.from.is_some());
        }
        Explanation {
            lasts: (live && stalled).then(|| now.since(gate.since)),
            writes,
            flush_trouble: gate.trouble.map(|e| e.to_string()),
            compaction_trouble: gate.stuck.map(|e| e.to_string()),
            engine_trouble: engines.iter().filter_map(engine_trouble).collect(),
            hanging: hanging.into_iter().map(told).collect(),
            prepared,
            bounds: bounds(&outlook, live),
            levels: levels(&outlook),
            jobs,
            blocked: blocked.iter().map(blocked_wish).collect(),
            due: outlook.due().iter().map(due_wish).collect(),
            running: outlook.running,
            slots_now: outlook.slots_wanted,
            price: f64::from(outlook.load.price) / 1000.0,
            slots: outlook.slots,
            live,
            automatic: !outlook.options.disable_auto,
        }
    }
}

/// Why an engine gets no work, if so: for ever, or for some parts.
fn engine_trouble(of: &EngineReport) -> Option<String> {
    let (name, why) = (of.name, of.last_lost.as_deref().unwrap_or_default());
    match &of.trouble {
        Some(trouble) => Some(format!("{name}: {trouble}")),
        None if of.passing == 0 => None,
        None => Some(format!(
            "{name}: the CPU does the next {} parts that it would get, as most of the last ones did not suit it; at \
             last: {why}",
            of.passing
        )),
    }
}

/// All jobs, the most urgent compactions first and flushes last.
fn job_reports(
    at_work: &BTreeMap<JobId, Arc<AtWork>>,
    outlook: &Outlook,
    blocked: &[Blocked],
    now: Mono,
) -> Vec<JobReport> {
    let mut compactions: Vec<&InFlight> = outlook.compactions.iter().collect();
    let raised = |id: JobId| outlook.raised.iter().find(|r| r.0 == id).map(|r| r.1);
    let prio = |j: &InFlight| -> Prio { raised(j.id).unwrap_or(j.spec.prio) };
    let holds_up = |id| blocked.iter().filter(|b| b.by.contains(&id)).count();
    compactions.sort_by_key(|j| std::cmp::Reverse((holds_up(j.id) > 0, prio(j))));
    let mut all: Vec<JobReport> = Vec::new();
    for j in compactions {
        let from = j.spec.inputs.iter().filter_map(|id| outlook.version.file(*id));
        let from: Option<Level> = from.map(|f| f.pos.level).min();
        let waits: Vec<u64> = j.spec.after.iter().map(|k| k.0).collect();
        let stage = match j.state {
            JobState::Running => JobStage::Working,
            JobState::WaitDeps if any_left(outlook, &waits) => JobStage::WaitsFor(waits),
            JobState::WaitDeps | JobState::Committing => JobStage::Committing,
        };
        all.push(JobReport {
            kind: format!("{:?}", j.spec.kind),
            from: from.or(Some(j.spec.out.level)),
            to: j.spec.out.level,
            keys: Some(ends(&j.spec.hull)),
            why: j.spec.reason.to_string(),
            holds_up: holds_up(j.id),
            ..report(j.id, j.spec.est.read, stage, at_work.get(&j.id), now)
        });
    }
    for &(id, _, building) in &outlook.flushes {
        let work = at_work.get(&id);
        let stage = if building { JobStage::Working } else { JobStage::Committing };
        let keys = work.and_then(|w| w.flushes.as_ref());
        all.push(JobReport { keys: keys.map(ends), ..report(id, 0, stage, work, now) });
    }
    all
}

fn any_left(outlook: &Outlook, jobs: &[u64]) -> bool {
    outlook.compactions.iter().any(|j| jobs.contains(&j.id.0))
}

/// A job as its worker knows it; a flush unless more is said.
fn report(
    id: JobId,
    bytes: u64,
    stage: JobStage,
    work: Option<&Arc<AtWork>>,
    now: Mono,
) -> JobReport {
    let (done, total) = work.map_or((bytes, bytes), |w| w.control.progress());
    let part = |p: PartProgress| PartReport { stage: p.stage, bytes: p.total, done: p.done };
    let parts = work.map_or_else(Vec::new, |w| w.control.parts()).into_iter().map(part).collect();
    let running = work.map(|w| now.since(w.since));
    let left = running.filter(|_| done > 0 && stage == JobStage::Working).map(|spent| {
        let nanos = spent.as_nanos() * u128::from(total - done) / u128::from(done);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    });
    JobReport {
        job: id.0,
        kind: "Flush".to_owned(),
        from: None,
        to: 0,
        keys: None,
        bytes: total,
        done,
        stage,
        parts,
        running,
        left,
        why: String::new(),
        holds_up: 0,
    }
}

fn ends(range: &KeyRange) -> (Vec<u8>, Vec<u8>) {
    (range.lo.to_vec(), range.hi.key.to_vec())
}

fn under(pressure: &Pressure, rate: Option<(u64, Cause)>) -> Writes {
    match (pressure.stop, pressure.delay, rate) {
        (Some(cause), _, _) => Writes::Stopped { cause: cause.name() },
        (None, Some((_, cause)), rate) => {
            Writes::Slowed { cause: cause.name(), bytes_per_second: rate.map(|(rate, _)| rate) }
        }
        (None, None, Some((bytes_per_second, _))) => Writes::Paced { bytes_per_second },
        (None, None, None) => Writes::Free,
    }
}

/// How writes would fare over this tree.
fn would_be(outlook: &Outlook) -> Writes {
    let stall = outlook.stall();
    let cause = stall.cause.map_or("", Cause::name);
    match stall.verdict {
        Verdict::None => Writes::Free,
        Verdict::Delay => Writes::Slowed { cause, bytes_per_second: None },
        Verdict::Stop => Writes::Stopped { cause },
    }
}

/// What writes are slowed and stopped by. Memtables are those of a handle that writes: beside it they can't be seen.
fn bounds(outlook: &Outlook, live: bool) -> Vec<Bound> {
    let (o, stall) = (&outlook.options, outlook.stall());
    let positive = |n: u64| (n > 0 && !o.disable_auto).then_some(n);
    let limit = o.max_memtables.max(1);
    let bound = |cause: Cause, what, in_bytes, now, slows_at, stops_at| Bound {
        cause: cause.name(),
        what,
        in_bytes,
        now,
        slows_at,
        stops_at,
    };
    let mut all = vec![
        bound(
            Cause::MemtableLimit,
            "memtables that wait for their flush",
            false,
            outlook.mem.frozen.into(),
            (limit > 3).then(|| u64::from(limit) - 1),
            Some(limit.into()),
        ),
        bound(
            Cause::L0Files,
            "runs of level 0 over one key",
            false,
            stall.l0_depth.into(),
            positive(o.l0_slowdown.into()),
            positive(o.l0_stop.into()),
        ),
        bound(
            Cause::PendingBytes,
            "bytes that compaction is behind",
            true,
            stall.debt,
            positive(o.soft_debt),
            positive(o.hard_debt),
        ),
    ];
    all.retain(|b| live || b.cause != Cause::MemtableLimit.name());
    if o.policy.has_buckets() {
        let slow = positive(lithify_plan::stall::l0_bytes_slowdown(o));
        let stop = positive(lithify_plan::stall::l0_bytes_stop(o));
        let l0 = outlook.version.bytes(0);
        all.push(bound(Cause::L0Bytes, "bytes in level 0", true, l0, slow, stop));
    }
    if o.policy.stacks() {
        let now = lithify_plan::stall::read_amp(&outlook.version);
        let slow = positive(u64::from(o.max_read_amp) + 1);
        all.push(bound(Cause::ReadAmp, "runs a read looks at", false, now.into(), slow, None));
    }
    all
}

fn levels(outlook: &Outlook) -> Vec<LevelNeed> {
    // From the last level nothing goes down, and other targets follow from its size: its own would always be reached.
    let last = (!outlook.options.policy.is_tiered()).then(|| outlook.options.last_level());
    let of = |(level, need, target): (Level, lithify_plan::Score, Option<u64>)| {
        let l = outlook.version.level(level);
        LevelNeed {
            level,
            depth: outlook.version.max_depth(level),
            files: l.file_count(),
            bytes: l.bytes(),
            target_bytes: target.filter(|_| Some(level) != last),
            need: if Some(level) == last { 0 } else { need.0 },
        }
    };
    outlook.levels().into_iter().map(of).collect()
}

fn blocked_wish(b: &Blocked) -> Wish {
    Wish {
        kind: format!("{:?}", b.kind),
        why: b.reason.to_string(),
        because: b.why.to_string(),
        waits_for: b.by.iter().map(|id| id.0).collect(),
        bytes: 0,
        inputs: Vec::new(),
    }
}

fn due_wish(spec: &JobSpec) -> Wish {
    Wish {
        kind: format!("{:?} to L{}", spec.kind, spec.out.level),
        why: spec.reason.to_string(),
        because: String::new(),
        waits_for: Vec::new(),
        bytes: spec.est.read,
        inputs: spec.inputs.iter().map(|id| id.0).collect(),
    }
}
