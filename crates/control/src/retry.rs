//! When what failed is tried again: after a wait that doubles with each failure in a row.

/// Failures in a row after which callers that wait for a compaction are told: those that asked for one,
/// whichever job failed, and writers that only a compaction can let go on.
pub(crate) const PATIENCE: u32 = 3;
/// Shortest wait before a failed job is tried again, nanoseconds.
const FIRST: u64 = 100_000_000;
/// Longest such wait, nanoseconds.
pub(crate) const LONGEST: u64 = 10_000_000_000;

/// Failures of flushes, compactions and edits since the last success of any.
#[derive(Clone, Debug, Default)]
pub(crate) struct Retry {
    failures: u32,
    /// Compactions are not started before this instant.
    compactions_from: u64,
}

impl Retry {
    /// Something was built or committed.
    pub(crate) fn succeeded(&mut self) {
        self.failures = 0;
    }
    /// One more failure.
    pub(crate) fn failed(&mut self) {
        self.failures += 1;
    }
    /// Compactions wait, from `now` on.
    pub(crate) fn hold_compactions(&mut self, now: u64) {
        self.compactions_from = self.next(now);
    }
    /// True if compactions may be started.
    pub(crate) fn compactions_may_start(&self, now: u64) -> bool {
        now >= self.compactions_from
    }
    /// The instant at which to try again what failed `now`.
    pub(crate) fn next(&self, now: u64) -> u64 {
        now + (FIRST << self.failures.min(7)).min(LONGEST)
    }
    /// Failures since the last success.
    pub(crate) fn failures(&self) -> u32 {
        self.failures
    }
}
