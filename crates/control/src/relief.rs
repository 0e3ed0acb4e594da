//! How fast writers may go so that level 0 does not reach its stop before it gets shorter.
//!
//! ```text
//!   14 runs of 4 MiB lie there, writes stop at 36, and the compaction that takes ten of them down has
//!   250 MB to move at 120 MB/s: 21 runs of room for the next 2.1 s, so writers get 42 MB/s
//! ```
//!
//! A rule that looks at level 0 alone lets writers fill it within a moment, and then they wait for the
//! rest of a compaction. With its end in sight they go on all the while, at the rate that compactions
//! sustain (Luo and Carey, "On performance stability in LSM-based storage systems", VLDB 2020).
//!
//! Keeps: an estimate only slows writers down. What stops them is the tree (`plan::stall`).

use std::collections::{BTreeMap, BTreeSet};

use lithify_base::{FileId, JobId};
use lithify_lsm::Version;
use lithify_plan::stall::depth_without;
use lithify_plan::{InFlight, JobState, PlanOptions};

use crate::jobs::running;

/// The speed is a mean of about so long, nanoseconds.
const MEMORY: u64 = 1_000_000_000;
/// And is believed once it was seen for so long.
const BELIEVED: u64 = 50_000_000;
/// What a compaction is taken to have left, at least: one part in so many of its bytes.
const LEAST_PART: u64 = 16;
/// Compactions whose end is looked at, the first to end.
const LOOKED_AT: usize = 8;

/// What compactions at work have done, and how fast they go. Bytes are told of the whole database: beside
/// other column families at work, a job is taken to be further than it is, and writers go faster.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reliefs {
    /// Bytes that each has moved: an equal share of all that were.
    done: BTreeMap<JobId, u64>,
    /// Bytes per second that flushes and compactions move while compactions are at work, the mean of
    /// `seen` nanoseconds.
    speed: u64,
    seen: u64,
    /// Until when it was seen.
    at: u64,
    /// The depth of level 0 once each of these compactions, and those before it, are in the tree: of which
    /// tree, which, and how deep.
    depths: (u64, Vec<JobId>, Vec<u32>),
}

impl Reliefs {
    /// No compaction was at work until `now`: that says nothing of how fast they are.
    pub(crate) fn rest(&mut self, now: u64) {
        self.at = now;
    }

    /// Flushes and compactions moved so many bytes until `now`.
    pub(crate) fn moved(&mut self, bytes: u64, flights: &[InFlight], now: u64) {
        let running: Vec<JobId> = running(flights).map(|f| f.id).collect();
        self.done.retain(|job, _| running.contains(job));
        if running.is_empty() {
            return self.rest(now);
        }
        let each = bytes / running.len() as u64;
        for job in running {
            *self.done.entry(job).or_default() += each;
        }
        let span = now.saturating_sub(self.at).max(1);
        self.at = now;
        let seen = self.seen.saturating_add(span).min(MEMORY.max(span));
        let before = u128::from(self.speed) * u128::from(seen - span);
        let mean = (before + u128::from(bytes) * 1_000_000_000) / u128::from(seen);
        self.speed = u64::try_from(mean).unwrap_or(u64::MAX);
        self.seen = seen.min(MEMORY);
    }

    /// Bytes that a compaction has left to move.
    fn left(&self, flight: &InFlight) -> u64 {
        let all = flight.spec.est.read.saturating_add(flight.spec.est.write);
        let done = self.done.get(&flight.id).copied().unwrap_or(0);
        match flight.state {
            JobState::Running => all.saturating_sub(done).max(all / LEAST_PART),
            JobState::WaitDeps | JobState::Committing => 0,
        }
    }

    /// The most bytes per second of writes with which level 0 stays below its stop until the compactions
    /// at work have made it shorter; `None` while none does. So many memtables are `coming`, the active one
    /// included, each of which has so many bytes of writes. `installs` is the number of the tree.
    pub(crate) fn rate(
        &mut self,
        (installs, version): (u64, &Version),
        flights: &[InFlight],
        options: &PlanOptions,
        (coming, writes): (u32, u64),
    ) -> Option<u64> {
        let in_l0 = |id: &FileId| version.file(*id).filter(|f| f.pos.level == 0);
        let takes = |f: &&InFlight| f.spec.inputs.iter().any(|id| in_l0(id).is_some());
        let mut jobs: Vec<(u64, &InFlight)> =
            flights.iter().filter(takes).map(|f| (self.left(f), f)).collect();
        if jobs.is_empty() || self.speed == 0 || self.seen < BELIEVED {
            return None;
        }
        jobs.sort_by_key(|(left, flight)| (*left, flight.id));
        jobs.truncate(LOOKED_AT);
        let ids: Vec<JobId> = jobs.iter().map(|(_, flight)| flight.id).collect();
        if self.depths.0 != installs || self.depths.1 != ids {
            let mut gone = BTreeSet::new();
            let without = |flight: &InFlight| {
                gone.extend(flight.spec.inputs.iter().filter(|id| in_l0(id).is_some()).copied());
                depth_without(version, |id| gone.contains(&id))
            };
            let depths = jobs.iter().map(|(_, flight)| *flight).map(without).collect();
            self.depths = (installs, ids, depths);
        }
        let each = self.speed / running(flights).count().max(1) as u64;
        let (mut depth, mut merged) = (version.max_depth(0), 0);
        let mut least = u64::MAX;
        for ((left, flight), after) in jobs.into_iter().zip(&self.depths.2) {
            let runs = u64::from(options.l0_stop.saturating_sub(depth + merged + coming));
            // As long as `left` takes: room / (left / each).
            let room = u128::from(runs) * u128::from(writes);
            let rate = room * u128::from(each) / u128::from(left.max(1));
            least = least.min(u64::try_from(rate).unwrap_or(u64::MAX));
            depth = *after;
            merged += u32::from(flight.spec.out.level == 0);
            if !is_deep(depth + merged, options) {
                break;
            }
        }
        Some(least)
    }
}

/// Whether level 0 is half way to its slow-down: before that nothing is near.
pub(crate) fn is_deep(depth: u32, options: &PlanOptions) -> bool {
    2 * depth >= options.l0_slowdown
}
