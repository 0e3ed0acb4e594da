//! Which engine merges a part of a compaction: the one that is expected to be through first.
//!
//! What is known of an engine is what it says of itself ([`Caps`]), how much it was given that is not
//! done (its *backlog*, which shrinks with each set whose output is taken), and how the last parts went
//! (its *health*). The choice depends on these figures; the bytes of the output never do.
//!
//! An engine that gave up most of what it got, because that does not suit it, *lets parts pass*: after two such parts in a
//! row one, then 3, 7, up to 63, each time after one more was tried in vain. A part of which it merged more than half
//! ends that. So a database full of what a device does not merge has it try one part in 64, and one where such entries
//! are rare loses nothing. The parts that pass are those that it would have got; no clock is in it.
//!
//! Keeps: the CPU takes what no other engine gets, and never refuses. With no other engine there is
//! nothing to choose, and nothing is counted.
//! Leaves to others: going on with the CPU where an engine fails (`relay`).
//!
//! Worked example: a part of 10 MB costs the CPU 8.0 ms. The engine `gpu` says 0.2 ms and 0.1 ns a byte, so
//! 1.2 ms, and is busy for 6.0 ms: it would be through after 7.2 ms, and gets the part. Busy for 8.0 ms it
//! would need 9.2 ms, a little more than the CPU, and gets the part still, because that frees a core.
//! Behind a backlog of 10 ms the CPU is earlier by far. Two GPUs that are through at the same time, as those are that
//! take every part whatever it costs: the one with fewer bytes to do gets it, so a slower one gets fewer parts.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use lithify_base::zoo::{self, Bug};
use lithify_base::{Error, ErrorKind, Result};
use lithify_engine::{Caps, Cost, CpuEngine, Engine};
use lithify_env::sync::{Arc, Mutex};
use lithify_env::{Mono, Ticket, panic_message};
use lithify_merge::Recipe;
use lithify_merge::certify::Mode;

use crate::set_memory::{SetMemory, Share};

/// An engine other than the CPU is preferred up to this much more time, because it frees a core.
const FREES_A_CORE: f64 = 1.2;
/// How long an engine that failed gets nothing; after each further failure twice as long.
const REST: Duration = Duration::from_secs(60);
/// The longest of these.
const REST_MAX: Duration = Duration::from_secs(3600);
/// More failures make no rest longer.
const FAILURES_MAX: u32 = 7;
/// More parts in vain let no more parts pass.
const IN_VAIN_MAX: u32 = 7;

/// Whether an engine is fit for work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Health {
    /// Nothing speaks against it.
    #[default]
    Well,
    /// Its machine failed so many times, less the parts that went well meanwhile, and at last at this
    /// instant. It gets nothing before the other.
    Rests { failed: Mono, until: Mono, failures: u32 },
    /// What it returned was disproved. It gets nothing more while the database is open.
    Disproved,
}

impl Health {
    fn is_fit(self, now: Mono) -> bool {
        match self {
            Health::Well => true,
            Health::Rests { until, .. } => until <= now,
            Health::Disproved => zoo::on(Bug::LiarRouted),
        }
    }
    /// After one more failure.
    fn failed(self, now: Mono) -> Health {
        let failures = match self {
            Health::Well => 1,
            Health::Rests { failures, .. } => FAILURES_MAX.min(failures + 1),
            Health::Disproved => return Health::Disproved,
        };
        let rest = (REST * (1 << (failures - 1))).min(REST_MAX);
        Health::Rests { failed: now, until: now + rest, failures }
    }
    /// After a part that began at this instant and went well. It makes up for one failure, unless the engine
    /// has failed since: that some parts end well does not shorten the rest.
    fn succeeded(self, began: Mono) -> Health {
        match self {
            Health::Rests { failed, .. } if began <= failed => self,
            Health::Rests { failures: 0..=1, .. } => Health::Well,
            Health::Rests { failed, until, failures } => {
                Health::Rests { failed, until, failures: failures - 1 }
            }
            Health::Well | Health::Disproved => self,
        }
    }
}

/// Work that was given to an engine, and that it is not through with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Load {
    /// Nanoseconds, by its own prediction.
    nanos: u64,
    /// Bytes of input.
    bytes: u64,
}

impl Load {
    fn of(cost: Cost, bytes: u64) -> Load {
        Load { nanos: nanos(cost, bytes), bytes }
    }
    /// With `new` in the place of `old`, which is a part of it.
    fn with(self, old: Load, new: Load) -> Load {
        let with = |all: u64, old: u64, new: u64| all.saturating_sub(old).saturating_add(new);
        Load {
            nanos: with(self.nanos, old.nanos, new.nanos),
            bytes: with(self.bytes, old.bytes, new.bytes),
        }
    }
}

/// What is known of an engine when a part is to be merged.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    cost: Cost,
    backlog: Load,
    health: Health,
    /// It has not let go of a part that it failed over.
    owes: bool,
    /// It lets this part pass.
    passes: bool,
}

/// The candidate for a part of `bytes`, and when it is expected to be through, in nanoseconds from now;
/// `None` is the CPU.
fn choose(candidates: &[Candidate], cpu: Cost, bytes: u64, now: Mono) -> Option<(usize, u64)> {
    let fit = candidates.iter().enumerate();
    let fit = fit.filter(|(_, c)| c.health.is_fit(now) && !c.owes && !c.passes);
    let ends = fit
        .map(|(no, c)| (c.backlog.nanos.saturating_add(nanos(c.cost, bytes)), c.backlog.bytes, no));
    // Of equals the one that has the least to do, of these the one that was named first.
    let (end, _, no) = ends.min()?;
    let best = (no, end);
    (end as f64 <= FREES_A_CORE * nanos(cpu, bytes) as f64).then_some(best)
}

/// What an engine predicts for `bytes`; more than any other if its figures make no sense.
pub(crate) fn nanos(cost: Cost, bytes: u64) -> u64 {
    let nanos = cost.of(bytes);
    if nanos.is_finite() && nanos >= 0.0 { nanos as u64 } else { u64::MAX }
}

/// Why an engine was replaced by the CPU in the middle of a part, or did not begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// It does not take the recipe, or is busy.
    Refused,
    /// A set is larger than it takes.
    TooLarge,
    /// It says that a set does not suit it.
    Unsuitable,
    /// Its machine failed, or it says that the input is bad.
    Failed,
    /// It was silent for too long.
    Hung,
    /// What it returned was disproved.
    Disproved,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Why::Refused => "refused",
            Why::TooLarge => "set too large",
            Why::Unsuitable => "unsuitable",
            Why::Failed => "failed",
            Why::Hung => "hangs",
            Why::Disproved => "disproved",
        })
    }
}

/// What an engine other than the CPU did since the database was opened.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct EngineReport {
    /// Its name.
    pub name: &'static str,
    /// Parts of compactions that it was given; most compactions have one part.
    pub parts: u64,
    /// Sets of blocks that it merged and whose output was taken.
    pub sets: u64,
    /// Bytes of input blocks in these sets.
    pub bytes: u64,
    /// Parts that it refused.
    pub refusals: u64,
    /// Parts that the CPU went on with because a set was larger than the engine takes.
    pub too_large: u64,
    /// Parts that the CPU went on with because a set does not suit the engine, by its own word: entries of a kind that
    /// it does not merge, a key that is too long, no room.
    pub unsuitable: u64,
    /// Parts that it would have got and let pass, as most of those before did not suit it.
    pub passed: u64,
    /// Parts that it lets pass from now on.
    pub passing: u64,
    /// Parts that the CPU went on with because the machine failed or called the input bad, or because it panicked
    /// to merge a set again, which may be the user's own code.
    pub failures: u64,
    /// Parts that the CPU went on with because the engine was silent for too long.
    pub hangs: u64,
    /// Parts that the CPU went on with, or did again, because the engine's output was disproved.
    pub disproved: u64,
    /// Parts whose sets were smaller than the engine wants, because `buffer_bytes` leaves no more memory
    /// for them.
    pub small_sets: u64,
    /// Parts that it hung or failed over or gave up, and has not let go of: the ticket that it asked the host to wait for is
    /// not complete, or it holds input buffers of theirs. It gets no other part as long as there is one.
    pub unanswered: u64,
    /// Bytes of input buffers of these parts.
    pub held_bytes: u64,
    /// Why the CPU went on with a part or did it again, the last time that it did.
    pub last_lost: Option<String>,
    /// Why its machine gets no work any more, if so, and what to do about it ([`Engine::trouble`]).
    pub trouble: Option<String>,
    /// What the engine says of its machine ([`Engine::report`]).
    pub machine: Vec<(&'static str, f64)>,
}

/// What changes about an engine while the database is open.
#[derive(Default)]
struct Standing {
    backlog: Load,
    health: Health,
    /// Parts in a row most of which it gave up, and how many it lets pass from now on.
    in_vain: u32,
    passes: u32,
    debts: Vec<Debt>,
    report: EngineReport,
}

impl Standing {
    /// A part ended that suited it, or did not.
    fn suited(&mut self, suited: bool) {
        self.in_vain = if suited { 0 } else { IN_VAIN_MAX.min(self.in_vain + 1) };
        self.passes = (1 << self.in_vain.saturating_sub(1)) - 1;
    }
}

/// What is still out of a part that an engine hung or failed over or gave up.
struct Debt {
    /// What it last asked the host to wait for, if it hung over that.
    ticket: Option<Ticket>,
    /// The buffers of its sets.
    share: Arc<Share>,
}

impl Debt {
    fn is_paid(&self) -> bool {
        self.ticket.as_ref().is_none_or(Ticket::is_done) && self.share.held() == 0
    }
}

/// The engines of a database: those of the user's, in the order in which they were named, and the CPU.
pub struct Engines {
    others: Vec<Arc<dyn Engine>>,
    cpu: Arc<dyn Engine>,
    standings: Mutex<Vec<Standing>>,
    memory: Arc<SetMemory>,
}

impl Engines {
    /// These engines, and the CPU as the last one. All sets of the former may have `set_bytes` together,
    /// besides the buffers that parts have on the CPU: see [`set_bytes`](crate::set_bytes).
    pub fn new(others: Vec<Arc<dyn Engine>>, set_bytes: u64) -> Engines {
        let standings = Mutex::new(others.iter().map(|_| Standing::default()).collect());
        let memory = SetMemory::new(set_bytes);
        Engines { others, cpu: Arc::new(CpuEngine), standings, memory }
    }

    /// Whether `others` can be told apart: in logs and statistics an engine is known by its name.
    ///
    /// # Errors
    /// InvalidArgument with the name that two of them have, or that is the CPU's.
    pub fn check_names(others: &[Arc<dyn Engine>]) -> Result<()> {
        let mut known = vec![CpuEngine.caps().name];
        for name in others.iter().filter_map(|engine| caps_of(&**engine)).map(|caps| caps.name) {
            if known.contains(&name) {
                return Err(Error::invalid(format!(
                    "two engines are named \"{name}\": give each engine of a database, which has the one \
                     named \"cpu\" anyway, a name of its own (Caps::name)"
                )));
            }
            known.push(name);
        }
        Ok(())
    }

    /// With `cpu` in the place of the CPU, and no other.
    #[cfg(test)]
    pub(crate) fn in_place_of_cpu(cpu: Arc<dyn Engine>) -> Engines {
        Engines { cpu, ..Engines::new(Vec::new(), 0) }
    }

    /// The engine that never refuses.
    pub(crate) fn cpu(&self) -> &dyn Engine {
        &*self.cpu
    }

    /// A place on the engine that a part of about `bytes`, merged by `recipe`, goes to; `None` is the CPU.
    pub(crate) fn route(
        self: &Arc<Engines>,
        recipe: &Recipe,
        bytes: u64,
        now: Mono,
    ) -> Option<Place> {
        if self.others.is_empty() {
            return None;
        }
        let caps = self.others.iter().map(|engine| caps_for(&**engine, recipe));
        let caps: Vec<Option<Caps>> = caps.collect();
        let mut standings = self.standings.lock();
        for (standing, _) in standings.iter_mut().zip(&caps).filter(|(_, caps)| caps.is_none()) {
            standing.health = standing.health.failed(now);
            standing.report.failures += 1;
        }
        let caps: Vec<Caps> =
            caps.into_iter().map(|caps| caps.unwrap_or_else(|| CpuEngine.caps())).collect();
        let candidates = caps.iter().zip(&mut *standings);
        let candidates = candidates.map(|(caps, s)| {
            s.debts.retain(|debt| !debt.is_paid());
            let owes = !s.debts.is_empty();
            Candidate { cost: caps.cost, backlog: s.backlog, health: s.health, owes, passes: false }
        });
        let mut candidates: Vec<Candidate> = candidates.collect();
        let cpu = self.cpu.caps().cost;
        let (no, end) = loop {
            let (no, end) = choose(&candidates, cpu, bytes, now)?;
            let Some(left) = standings[no].passes.checked_sub(1) else { break (no, end) };
            standings[no].passes = left;
            standings[no].report.passed += 1;
            candidates[no].passes = true;
        };
        let load = Load::of(caps[no].cost, bytes);
        let standing = &mut standings[no];
        standing.backlog = standing.backlog.with(Load::default(), load);
        standing.report.parts += 1;
        drop(standings);
        let why = format!("{} expected, cpu {}", millis(end), millis(nanos(cpu, bytes)));
        let (of, share, caps) = (self.clone(), self.memory.share(), caps[no]);
        Some(Place { of, no, caps, load, taken: 0, began: now, share, disproved: false, why })
    }

    /// What the engines other than the CPU did.
    pub fn reports(&self) -> Vec<EngineReport> {
        let engines = self.others.iter().enumerate();
        let report = |(no, engine): (usize, &Arc<dyn Engine>)| {
            let name = caps_of(&**engine).map_or("an engine that panics", |caps| caps.name);
            let machine = guarded(|| engine.report()).unwrap_or_default();
            let trouble = guarded(|| engine.trouble()).unwrap_or_default();
            let standing = &self.standings.lock()[no];
            let debts = || standing.debts.iter().filter(|debt| !debt.is_paid());
            let (unanswered, held_bytes) =
                (debts().count() as u64, debts().map(|debt| debt.share.held()).sum());
            let (report, passing) = (standing.report.clone(), u64::from(standing.passes));
            EngineReport { name, passing, machine, trouble, unanswered, held_bytes, ..report }
        };
        engines.map(report).collect()
    }
}

/// Most sets that an engine is believed to hold at once.
const SETS_MAX: usize = 64;

/// What `engine` says of itself, within reason; none if it panics. Of an engine other than the CPU at least
/// the sums of all blocks are checked, and where it names no share of its sets to be proven all are.
pub(crate) fn caps_of(engine: &dyn Engine) -> Option<Caps> {
    guarded(|| engine.caps()).ok().map(believed)
}

/// The same of a part that is merged by `recipe`.
pub(crate) fn caps_for(engine: &dyn Engine, recipe: &Recipe) -> Option<Caps> {
    guarded(|| engine.caps_for(recipe)).ok().map(believed)
}

fn believed(caps: Caps) -> Caps {
    let certify = if caps.certify == Mode::Meta { Mode::Sums } else { caps.certify };
    Caps {
        set_bytes: caps.set_bytes.max(1),
        sets_in_flight: caps.sets_in_flight.clamp(1, SETS_MAX),
        ways: caps.ways.max(1),
        max_ways: caps.max_ways.max(1),
        certify,
        prove: caps.prove.max(1),
        ..caps
    }
}

/// What an engine does, which may be anything: a panic is a fault like others.
pub(crate) fn guarded<T>(call: impl FnOnce() -> T) -> Result<T> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|payload| {
        Error::new(ErrorKind::Internal, format!("a panic: {}", panic_message(&*payload)))
    })
}

fn millis(nanos: u64) -> String {
    format!("{:.1} ms", nanos as f64 / 1e6)
}

/// A part on an engine other than the CPU. What is left of it is in the backlog until the engine has lost it,
/// or the place is dropped.
pub(crate) struct Place {
    of: Arc<Engines>,
    no: usize,
    caps: Caps,
    /// In the backlog.
    load: Load,
    /// Bytes whose output was taken.
    taken: u64,
    /// When it was chosen.
    began: Mono,
    /// Of the memory for sets.
    share: Arc<Share>,
    /// The engine's output of this part was disproved.
    disproved: bool,
    why: String,
}

impl Place {
    pub(crate) fn engine(&self) -> &Arc<dyn Engine> {
        &self.of.others[self.no]
    }
    /// What the engine said of itself when it was chosen.
    pub(crate) fn caps(&self) -> &Caps {
        &self.caps
    }
    /// Whether each of its sets is proven, so that a lie says nothing about those that were taken before it.
    pub(crate) fn is_proven(&self) -> bool {
        self.caps.prove == 1 || zoo::on(Bug::UnprovenKept)
    }
    /// Why what it made does not count any more, although its parts ended well: it was disproved meanwhile,
    /// and not all of its sets were proven.
    pub(crate) fn doubt(&self) -> Option<Error> {
        let disproved = self.of.standings.lock()[self.no].health == Health::Disproved;
        let name = self.caps.name;
        (disproved && !self.is_proven()).then(|| {
            Error::new(
                ErrorKind::Internal,
                format!("engine {name} was disproved over another part"),
            )
        })
    }
    /// Why it was chosen.
    pub(crate) fn why(&self) -> &str {
        &self.why
    }
    fn standing(&self, change: impl FnOnce(&mut Standing)) {
        change(&mut self.of.standings.lock()[self.no]);
    }
    /// So much of it is in the backlog from now on.
    fn has_left(&mut self, load: Load) {
        let old = std::mem::replace(&mut self.load, load);
        self.standing(|s| s.backlog = s.backlog.with(old, load));
    }
    /// Products of a set of `bytes` were taken.
    pub(crate) fn took(&mut self, bytes: u64) {
        self.taken += bytes;
        self.has_left(Load::of(self.caps.cost, self.load.bytes.saturating_sub(bytes)));
        self.standing(|s| {
            s.report.sets += 1;
            s.report.bytes += bytes;
        });
    }
    /// What sets for it may take of the memory.
    pub(crate) fn share(&self) -> &Arc<Share> {
        &self.share
    }
    /// There is too little of it for sets as large as the engine wants.
    pub(crate) fn has_small_sets(&self) {
        self.standing(|s| s.report.small_sets += 1);
    }
    /// The part is through, and everything was in order.
    pub(crate) fn succeeded(&mut self) {
        self.has_left(Load::default());
        self.share.end();
        self.standing(|s| {
            s.health = s.health.succeeded(self.began);
            s.suited(true);
        });
    }
    /// The engine gets no other part before it has let go of this one: before `ticket` is complete, and all
    /// buffers of its sets are released.
    pub(crate) fn owes(&self, ticket: Option<Ticket>) {
        let debt = Debt { ticket, share: self.share.clone() };
        self.standing(|s| s.debts.push(debt));
    }
    /// The part goes on without the engine. One lie may show at once and again at the end.
    pub(crate) fn lost(&mut self, why: Why, error: &Error, now: Mono) {
        let lie = why == Why::Disproved;
        if lie && std::mem::replace(&mut self.disproved, true) {
            return;
        }
        let suited = self.taken > self.load.bytes;
        self.has_left(Load::default());
        self.share.end();
        self.standing(|s| {
            let counter = match why {
                Why::Refused => &mut s.report.refusals,
                Why::TooLarge => &mut s.report.too_large,
                Why::Unsuitable => &mut s.report.unsuitable,
                Why::Failed => &mut s.report.failures,
                Why::Hung => &mut s.report.hangs,
                Why::Disproved => &mut s.report.disproved,
            };
            *counter += 1;
            s.report.last_lost = Some(format!("{why}: {error}"));
            s.health = match why {
                Why::Refused | Why::TooLarge | Why::Unsuitable => s.health,
                Why::Failed | Why::Hung => s.health.failed(now),
                Why::Disproved => Health::Disproved,
            };
            if why == Why::Unsuitable {
                s.suited(suited);
            }
        });
        if lie {
            let _ = guarded(|| self.engine().disown(error));
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.share.end();
        self.has_left(Load::default());
    }
}

#[cfg(test)]
mod tests;
