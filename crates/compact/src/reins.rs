//! What the owner of a job at work holds of it: to stop it, to hurry it, and to see how far it is.

use lithify_env::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use lithify_env::{SharedUrgency, Urgency};
use lithify_plan::Prio;

/// The reins of one job, shared by the job and its owner.
#[derive(Debug)]
pub struct Reins {
    stop: AtomicBool,
    urgency: SharedUrgency,
    done: AtomicU64,
    total: u64,
}

impl Reins {
    /// Of a flush over `total` bytes of memtable. Nothing goes before it.
    pub fn flush(total: u64) -> Reins {
        Reins::new(Urgency::FIRST, total)
    }
    /// Of a compaction over `total` bytes of inputs.
    pub fn compaction(prio: Prio, total: u64) -> Reins {
        Reins::new(urgency_of(prio), total)
    }
    fn new(urgency: Urgency, total: u64) -> Reins {
        Reins {
            stop: AtomicBool::new(false),
            urgency: SharedUrgency::new(urgency),
            done: AtomicU64::new(0),
            total,
        }
    }

    /// Makes a compaction end soon, with `ShuttingDown`. A flush goes on: its memtable is in nobody
    /// else's hands.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }
    /// Makes the job, and its transfers that wait already, as urgent as `prio`.
    pub fn hurry(&self, prio: Prio) {
        self.urgency.set(urgency_of(prio));
    }
    /// How far the job is: bytes merged, and of how many. At the end it still syncs its files.
    pub fn progress(&self) -> (u64, u64) {
        // A block that lies in two sets is counted twice.
        (self.done.load(Ordering::Relaxed).min(self.total), self.total)
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
    pub(crate) fn urgency(&self) -> &SharedUrgency {
        &self.urgency
    }
    pub(crate) fn advance(&self, bytes: u64) {
        self.done.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// Compactions go behind everything that is first.
fn urgency_of(prio: Prio) -> Urgency {
    Urgency(1 + prio as u8)
}
