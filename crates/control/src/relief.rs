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

use std::collections::BTreeMap;

use lithify_base::{FileId, JobId};
use lithify_lsm::Version;
use lithify_plan::stall::{depth_without, l0_bytes_stop};
use lithify_plan::{InFlight, JobState, PlanOptions};

/// The speed is a mean of about so long, nanoseconds.
const MEMORY: u64 = 1_000_000_000;
/// What a compaction is taken to have left, at least: one part in so many of its bytes.
const LEAST_PART: u64 = 16;
/// Compactions whose end is looked at, the first to end.
const LOOKED_AT: usize = 8;

/// What compactions at work have done, and how fast they go.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reliefs {
    /// Bytes that each has moved: an equal share of all that were.
    done: BTreeMap<JobId, u64>,
    /// Bytes per second that flushes and compactions move.
    speed: u64,
    at: u64,
}

/// What a memtable becomes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    /// Bytes that writers put into it.
    pub(crate) memory: u64,
    /// Bytes of its tables.
    pub(crate) table: u64,
}

impl Reliefs {
    /// Flushes and compactions moved so many bytes until `now`.
    pub(crate) fn moved(&mut self, bytes: u64, flights: &[InFlight], now: u64) {
        let span = now.saturating_sub(self.at).max(1);
        self.at = now;
        let running: Vec<JobId> = running(flights).map(|f| f.id).collect();
        self.done.retain(|job, _| running.contains(job));
        if running.is_empty() {
            return;
        }
        let each = bytes / running.len() as u64;
        for job in running {
            *self.done.entry(job).or_default() += each;
        }
        let speed = u128::from(bytes) * 1_000_000_000 / u128::from(span);
        let new = u128::from(span.min(MEMORY));
        let mean = u128::from(self.speed) * (u128::from(MEMORY) - new) + speed * new;
        self.speed = u64::try_from(mean / u128::from(MEMORY)).unwrap_or(u64::MAX);
    }

    /// Bytes that a compaction has left to move.
    fn left(&self, flight: &InFlight) -> u64 {
        let all = flight.spec.est.read.saturating_add(flight.spec.est.write);
        let done = self.done.get(&flight.id).copied().unwrap_or(0);
        match flight.state {
            JobState::Issued | JobState::Running => all.saturating_sub(done).max(all / LEAST_PART),
            JobState::WaitDeps | JobState::Committing => 0,
        }
    }

    /// The most bytes per second of writes with which level 0 stays below its stop until the compactions
    /// at work have made it shorter; `None` while none does. So many memtables are `coming`, the active
    /// one included, each of which becomes such a `run`.
    pub(crate) fn rate(
        &self,
        version: &Version,
        flights: &[InFlight],
        options: &PlanOptions,
        (coming, run): (u32, Run),
    ) -> Option<u64> {
        let in_l0 = |id: &FileId| version.file(*id).filter(|f| f.pos.level == 0);
        let upper = |f: &InFlight| f.spec.inputs.iter().filter_map(in_l0).map(|f| f.bytes).sum();
        let mut jobs: Vec<(u64, u64, &InFlight)> =
            flights.iter().map(|f| (self.left(f), upper(f), f)).filter(|job| job.1 > 0).collect();
        if jobs.is_empty() || self.speed == 0 {
            return None;
        }
        jobs.sort_by_key(|(left, _, flight)| (*left, flight.id));
        let each = self.speed / running(flights).count().max(1) as u64;
        let mut gone: Vec<FileId> = Vec::new();
        let mut merged = 0;
        let mut bytes = version.bytes(0) + u64::from(coming) * run.table;
        let mut least = u64::MAX;
        for (left, upper, flight) in jobs.into_iter().take(LOOKED_AT) {
            let depth = depth_without(version, |id| gone.contains(&id)) + merged + coming;
            let runs = u64::from(options.l0_stop.saturating_sub(depth));
            let room = l0_bytes_stop(options).saturating_sub(bytes) / run.table.max(1);
            let room = runs.min(room).saturating_mul(run.memory);
            // As long as `left` takes: room / (left / each).
            let rate = u128::from(room) * u128::from(each) / u128::from(left.max(1));
            least = least.min(u64::try_from(rate).unwrap_or(u64::MAX));
            gone.extend(&flight.spec.inputs);
            match flight.spec.out.level {
                0 => merged += 1,
                _ => bytes = bytes.saturating_sub(upper),
            }
        }
        Some(least)
    }
}

fn running(flights: &[InFlight]) -> impl Iterator<Item = &InFlight> {
    flights.iter().filter(|f| matches!(f.state, JobState::Running | JobState::Issued))
}
