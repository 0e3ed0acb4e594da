//! When what failed is tried again: after a wait that doubles with each failure in a row of the same kind.
//!
//! Keeps: what one kind of work says counts for no other. A flush that works does not show that a compaction
//! that has failed would, and one that fails is no reason for compactions to wait.

/// Failures in a row after which callers that wait for a compaction are told: those that asked for one,
/// whichever compaction or edit failed, and writers that only a compaction can let go on.
pub(crate) const PATIENCE: u32 = 3;
/// Shortest wait before a failed job is tried again, nanoseconds.
const FIRST: u64 = 100_000_000;
/// Longest such wait, nanoseconds.
pub(crate) const LONGEST: u64 = 10_000_000_000;

/// Failures of one kind of work since its last success.
#[derive(Clone, Debug, Default)]
pub(crate) struct BackOff {
    failures: u32,
}

impl BackOff {
    /// Something of this kind was built or committed.
    pub(crate) fn succeeded(&mut self) {
        self.failures = 0;
    }
    /// One more failure.
    pub(crate) fn failed(&mut self) {
        self.failures += 1;
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

/// The back-offs of a core, one for each kind of work that may fail.
#[derive(Clone, Debug, Default)]
pub(crate) struct Retry {
    pub(crate) flushes: BackOff,
    pub(crate) compactions: BackOff,
    /// Edits that found no space in the manifest, whatever jobs they are of.
    pub(crate) edits: BackOff,
    /// Compactions are not started before this instant.
    compactions_from: u64,
}

impl Retry {
    /// A compaction failed `now`: all of them wait.
    pub(crate) fn compaction_failed(&mut self, now: u64) {
        self.compactions.failed();
        self.compactions_from = self.compactions.next(now);
    }
    /// True if compactions may be started.
    pub(crate) fn compactions_may_start(&self, now: u64) -> bool {
        now >= self.compactions_from
    }
}
