//! Nothing left to choice: every position of the canonical workloads is crashed, every sync fails
//! in each of six ways, every call in each of ten.
//!
//! ```text
//!   positions   run once, crash after each change of the disk, in several kinds each
//!   reopenings  crash, open, crash after each change that the opening makes
//!   syncs       run with sync number n failing, then crash at and after the failure
//!   calls       run with call number n failing, open again, crash at the end
//! ```
//! Keeps: what is done follows from the workload and the [`Part`] alone, so a violation is seen
//! again by the same command.
//! Leaves to others: lives that the dice choose (`explore`).

use std::collections::BTreeSet;
use std::time::Duration;

use rustix::io::Errno;

use crate::choices::{Dice, Stream};
use crate::crash::{Kind, fingerprint, image};
use crate::disk::{Disk, Entry, Forgets};
use crate::explore::{caught, end, judge};
use crate::marks::Marks;
use crate::model::Journal;
use crate::pump::Order;
use crate::simfs::Fault;
use crate::workloads::Workload;
use crate::world::{Violation, World};

/// The ways in which a sync fails: the bytes stay readable and are never written, or go back, or
/// are still on their way, or some pages are written and others are not, or they stay and there is said to be no
/// space (all five reported once); or all later syncs fail, too.
pub const SYNC_WAYS: [(&str, Forgets, Errno, bool); 6] = [
    ("keeps", Forgets::Keeps, Errno::IO, false),
    ("reverts", Forgets::Reverts, Errno::IO, false),
    ("delays", Forgets::Delays, Errno::IO, false),
    ("writes some pages", Forgets::Partly(0), Errno::IO, false),
    ("keeps, with ENOSPC", Forgets::Keeps, Errno::NOSPC, false),
    ("keeps, and all later ones fail", Forgets::Keeps, Errno::IO, true),
];

/// A way in which call number `nth` fails, once or from then on.
type CallWay = fn(nth: u64, sticky: bool) -> Fault;

/// The ways in which a call fails, each once and for good.
pub const CALL_WAYS: [(&str, CallWay); 5] = [
    ("EIO", |nth, sticky| Fault::Call { nth, with: Errno::IO, sticky }),
    ("ENOSPC", |nth, sticky| Fault::Call { nth, with: Errno::NOSPC, sticky }),
    ("EINTR", |nth, sticky| Fault::Call { nth, with: Errno::INTR, sticky }),
    ("short", |nth, sticky| Fault::Short { nth, sticky }),
    ("done, and EIO", |nth, sticky| Fault::CallAfter { nth, with: Errno::IO, sticky }),
];

/// How much of everything is done.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// Kinds of crash at each position.
    pub kinds: usize,
    /// Crashes after each sync that failed.
    pub after_sync: usize,
    /// One call in so many fails.
    pub every_call: u64,
    /// The first of them.
    pub first_call: u64,
}

impl Part {
    /// All of it.
    pub const WHOLE: Part =
        Part { kinds: Kind::ALL.len(), after_sync: 16, every_call: 1, first_call: 0 };
}

/// What was done.
#[derive(Clone, Debug, Default)]
pub struct Count {
    /// Workloads.
    pub workloads: u64,
    /// Positions of logs, each of which was crashed.
    pub positions: u64,
    /// Positions inside of openings, each of which was crashed.
    pub reopenings: u64,
    /// Images that were opened and checked.
    pub images: u64,
    /// Images that were the same as one before.
    pub twins: u64,
    /// Syncs that failed, each in all of [`SYNC_WAYS`].
    pub sync_sites: u64,
    /// Calls that failed, each in all of [`CALL_WAYS`], once and for good.
    pub call_sites: u64,
    /// Lives in which something failed.
    pub disturbed: u64,
    /// Of them, those in which the failure was met.
    pub struck: u64,
}

/// A life that was recorded.
struct Recorded {
    log: Vec<Entry>,
    journal: Journal,
    /// What it reached that the log does not show.
    marks: Marks,
    /// Position at which something failed.
    strike: Option<usize>,
    calls: u64,
    syncs: u64,
}

/// Sweeps over one workload.
///
/// # Errors
/// The first violation, with what led to it.
pub fn sweep(workload: &Workload, part: &Part, count: &mut Count) -> Result<(), Violation> {
    let mut sweep = Sweep { workload, part, count, dice: Dice::new(Stream::listed(Vec::new())) };
    let blame = |what: String| move |v: Violation| Violation(format!("{what}: {v}"));
    sweep.count.workloads += 1;
    let calm = sweep.record(None).map_err(blame(workload.name.to_owned()))?;
    sweep.reaches(&calm).map_err(blame(workload.name.to_owned()))?;
    sweep.positions(&calm).map_err(blame(format!("{}, crashed", workload.name)))?;
    sweep.reopenings(&calm).map_err(blame(format!("{}, crashed twice", workload.name)))?;
    let armed = sweep.armed().map_err(blame(format!("{}, nothing fails", workload.name)))?;
    sweep.syncs(armed.syncs)?;
    sweep.calls(armed.calls)
}

struct Sweep<'a> {
    workload: &'a Workload,
    part: &'a Part,
    count: &'a mut Count,
    dice: Dice,
}

impl Sweep<'_> {
    /// Lives once, with `fault` from the beginning on.
    fn record(&mut self, fault: Option<Fault>) -> Result<Recorded, Violation> {
        let shape = self.workload.shape(fault.is_some());
        self.dice.swap(Stream::listed(Vec::new()));
        let mut world = World::new(Disk::default(), shape, self.dice.clone(), 1);
        let lived = caught(|| {
            if let Some(fault) = fault {
                world.arm(fault);
            }
            world.begin()?;
            (self.workload.play)(&mut world)?;
            if world.fs.first_strike().is_some() {
                world.in_order(Order::Calm);
                world.mend()?;
            }
            // The event log is written now and then only.
            world.pump.rest(Duration::from_millis(60));
            world.read_all()
        });
        if let Err(violation) = lived {
            end(world);
            return Err(violation);
        }
        let (calls, syncs) = world.fs.counts();
        let strike = world.fs.first_strike();
        let (journal, marks) = (world.journal.clone(), world.marks());
        let log = world.fs.take_log();
        caught(|| {
            world.kill();
            Ok(())
        })?;
        Ok(Recorded { log, journal, marks, strike, calls, syncs })
    }

    /// Lives once where storage may fail at any time and never does: a life in which it does is like this
    /// one up to then. Its syncs and calls are not those of a calm life, in which more happens.
    fn armed(&mut self) -> Result<Recorded, Violation> {
        let (nth, forgets, with) = (u64::MAX, Forgets::Keeps, Errno::IO);
        self.record(Some(Fault::Sync { nth, forgets, with, sticky: false }))
    }

    fn reaches(&self, recorded: &Recorded) -> Result<(), Violation> {
        let mut marks = recorded.marks.clone();
        marks.read(&recorded.log);
        for mark in self.workload.must {
            let times = self.workload.must.iter().filter(|m| *m == mark).count() as u64;
            if marks.count(mark) < times {
                return Err(Violation(format!("it does not reach `{mark}` {times} times")));
            }
        }
        Ok(())
    }

    /// Crashes every position.
    fn positions(&mut self, recorded: &Recorded) -> Result<(), Violation> {
        self.count.positions += recorded.log.len() as u64 + 1;
        let all = 0..=recorded.log.len();
        self.crash(Disk::default(), recorded, all, self.part.kinds).map(drop)
    }

    /// Crashes at each of `places`, in `kinds` ways each; the last world that opened.
    fn crash(
        &mut self,
        mut disk: Disk,
        recorded: &Recorded,
        places: impl Iterator<Item = usize>,
        kinds: usize,
    ) -> Result<(), Violation> {
        let mut seen = BTreeSet::new();
        for at in places {
            recorded.log[disk.position..at].iter().for_each(|entry| disk.apply(entry));
            for variant in 0..kinds {
                // Every kind comes to every position as the kinds asked for grow.
                let kind = Kind::ALL[(at * 5 + variant * 3) % Kind::ALL.len()];
                self.dice.swap(Stream::seeded((at * 16 + variant) as u64, self.workload.name));
                let image = image(&disk, kind, &self.dice);
                let kill = kind == Kind::Everything && recorded.strike.is_none();
                let expected = recorded.journal.expected(at, kill);
                if !seen.insert((fingerprint(&image), expected)) {
                    self.count.twins += 1;
                    continue;
                }
                let opened = self.open(image, recorded, at, kind);
                opened.map_err(|v| {
                    let (what, kind) = (entry_before(&recorded.log, at), kind.name());
                    Violation(format!("position {at} (after: {what}), {kind}, {expected:?}: {v}"))
                })?;
            }
        }
        Ok(())
    }

    /// Opens an image and checks it; what the opening did.
    fn open(
        &mut self,
        image: Disk,
        recorded: &Recorded,
        at: usize,
        kind: Kind,
    ) -> Result<Recorded, Violation> {
        let shape = self.workload.shape(recorded.strike.is_some());
        let mut world = World::new(image, shape, self.dice.clone(), 2);
        self.count.images += 1;
        let judged = caught(|| judge(&mut world, &recorded.journal, at, kind));
        if let Err(violation) = judged {
            end(world);
            return Err(violation);
        }
        let (calls, syncs) = world.fs.counts();
        let (journal, log) = (world.journal.clone(), world.fs.take_log());
        let marks = world.marks();
        caught(|| {
            world.kill();
            Ok(())
        })?;
        Ok(Recorded { log, journal, marks, strike: None, calls, syncs })
    }

    /// Crashes at three places, and again at every position of the opening after.
    fn reopenings(&mut self, recorded: &Recorded) -> Result<(), Violation> {
        let len = recorded.log.len();
        let mut disk = Disk::default();
        for at in [len / 3, 2 * len / 3, len] {
            recorded.log[disk.position..at].iter().for_each(|entry| disk.apply(entry));
            for kind in [Kind::Everything, Kind::Synced] {
                let image = image(&disk, kind, &self.dice);
                let opening = self.open(image.clone(), recorded, at, kind)?;
                self.count.reopenings += opening.log.len() as u64 + 1;
                let all = 0..=opening.log.len();
                self.crash(image, &opening, all, self.part.kinds)
                    .map_err(|v| Violation(format!("after {at} {}, {v}", kind.name())))?;
            }
        }
        Ok(())
    }

    /// Lets every sync fail, in each way.
    fn syncs(&mut self, syncs: u64) -> Result<(), Violation> {
        self.count.sync_sites += syncs;
        for nth in 0..syncs {
            for (way, forgets, with, sticky) in SYNC_WAYS {
                let name = self.workload.name;
                let blame = |v| Violation(format!("{name}, sync {nth} fails and {way}: {v}"));
                let disturbed = self.disturbed(Fault::Sync { nth, forgets, with, sticky });
                let recorded = disturbed.map_err(blame)?;
                let strike = recorded.strike.ok_or_else(unmet).map_err(blame)?;
                let places = spread(strike, recorded.log.len(), self.part.after_sync);
                self.crash(Disk::default(), &recorded, places, 2).map_err(blame)?;
            }
        }
        Ok(())
    }

    /// Lets calls fail, in each way.
    fn calls(&mut self, calls: u64) -> Result<(), Violation> {
        let Part { every_call, first_call, .. } = *self.part;
        for nth in (first_call % every_call..calls).step_by(every_call as usize) {
            self.count.call_sites += 1;
            for (way, fault) in CALL_WAYS {
                for sticky in [false, true] {
                    let name = self.workload.name;
                    let how = if sticky { "from then on" } else { "once" };
                    let blame = |v| Violation(format!("{name}, call {nth}, {way} {how}: {v}"));
                    let fault = fault(nth, sticky);
                    let recorded = self.disturbed(fault).map_err(blame)?;
                    let strike = match (recorded.strike, fault) {
                        (Some(strike), _) => strike,
                        (None, Fault::Call { .. }) => return Err(blame(unmet())),
                        // Only transfers can be cut short, and only changes be made.
                        (None, _) => continue,
                    };
                    let places = spread(strike, recorded.log.len(), 2);
                    self.crash(Disk::default(), &recorded, places, 1).map_err(blame)?;
                }
            }
        }
        Ok(())
    }

    fn disturbed(&mut self, fault: Fault) -> Result<Recorded, Violation> {
        self.count.disturbed += 1;
        let recorded = self.record(Some(fault))?;
        self.count.struck += u64::from(recorded.strike.is_some());
        Ok(recorded)
    }
}

fn unmet() -> Violation {
    Violation("it was never asked for".to_owned())
}

/// At most `most` places: right after `from`, and evenly on to `to`.
fn spread(from: usize, to: usize, most: usize) -> impl Iterator<Item = usize> {
    let near = most.div_ceil(2);
    let close = (from + 1..=to).take(near);
    let rest = to.saturating_sub(from + near);
    let far = most - near;
    let distant = (1..=far).filter(move |_| rest > 0).map(move |i| from + near + rest * i / far);
    let all: BTreeSet<usize> = close.chain(distant).collect();
    all.into_iter()
}

fn entry_before(log: &[Entry], at: usize) -> String {
    at.checked_sub(1).map_or_else(|| "nothing".to_owned(), |i| log[i].to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crashes_come_close_to_the_failure_and_reach_the_end() {
        let all: Vec<usize> = spread(10, 100, 6).collect();
        assert_eq!(all, [11, 12, 13, 42, 71, 100]);
        assert_eq!(spread(10, 12, 6).collect::<Vec<_>>(), [11, 12]);
        assert_eq!(spread(10, 10, 6).count(), 0);
    }
}
