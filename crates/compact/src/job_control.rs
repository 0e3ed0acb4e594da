//! What the owner of a job at work holds of it: to stop it, to hurry it, and to see how far it is.

use lithify_env::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use lithify_env::sync::{Arc, Mutex};
use lithify_env::{SharedUrgency, Urgency};
use lithify_plan::Prio;

/// The control of one job, shared by the job and its owner.
#[derive(Debug)]
pub struct JobControl {
    stop: AtomicBool,
    urgency: SharedUrgency,
    done: AtomicU64,
    total: u64,
    /// Bytes read and written by all jobs of a database, as far as their owner asks for that.
    moved: Arc<AtomicU64>,
    /// Bytes read and written for each that is merged.
    moves: u64,
    /// Of a compaction that was cut into several.
    parts: Mutex<Vec<PartCount>>,
}

/// How far a part of a compaction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartStage {
    /// No worker has it.
    Waits,
    /// A worker has it.
    Working,
    /// Its files are built.
    Built,
}

/// How far a part of a compaction is, in figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartProgress {
    /// Who has it.
    pub stage: PartStage,
    /// Bytes merged.
    pub done: u64,
    /// About how many there are to merge.
    pub total: u64,
}

#[derive(Debug)]
struct PartCount {
    stage: PartStage,
    done: Arc<AtomicU64>,
    total: u64,
}

/// Counts what a part has done, and the whole with it.
pub(crate) struct PartControl {
    whole: Arc<JobControl>,
    part: Option<Arc<AtomicU64>>,
}

impl PartControl {
    pub(crate) fn advance(&self, bytes: u64) {
        self.whole.advance(bytes);
        if let Some(part) = &self.part {
            part.fetch_add(bytes, Ordering::Relaxed);
        }
    }
    /// So many bytes of what was counted are merged again.
    pub(crate) fn retreat(&self, bytes: u64) {
        self.whole.done.fetch_sub(bytes, Ordering::Relaxed);
        if let Some(part) = &self.part {
            part.fetch_sub(bytes, Ordering::Relaxed);
        }
    }
}

impl JobControl {
    /// Of a flush over `total` bytes of memtable. Nothing goes before it.
    pub fn flush(total: u64) -> JobControl {
        JobControl::new(Urgency::FIRST, 1, total)
    }
    /// Of a compaction over `total` bytes of inputs.
    pub fn compaction(prio: Prio, total: u64) -> JobControl {
        JobControl::new(urgency_of(prio), 2, total)
    }
    fn new(urgency: Urgency, moves: u64, total: u64) -> JobControl {
        JobControl {
            stop: AtomicBool::new(false),
            urgency: SharedUrgency::new(urgency),
            done: AtomicU64::new(0),
            total,
            moved: Arc::default(),
            moves,
            parts: Mutex::default(),
        }
    }

    /// The same, which adds to `moved` what the job reads and writes, bytes: of a flush what it writes, of a
    /// compaction what it merges twice, since it writes about as much.
    pub fn counted_in(self, moved: &Arc<AtomicU64>) -> JobControl {
        JobControl { moved: moved.clone(), ..self }
    }

    /// Makes a compaction end soon, with `ShuttingDown`. A flush goes on: its memtable is in no
    /// other hands.
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

    /// How far its parts are, in key order; none if it is not cut into several.
    pub fn parts(&self) -> Vec<PartProgress> {
        let progress = |part: &PartCount| PartProgress {
            stage: part.stage,
            done: match part.stage {
                PartStage::Built => part.total,
                // Here, too, a block may be counted twice.
                _ => part.done.load(Ordering::Relaxed).min(part.total),
            },
            total: part.total,
        };
        self.parts.lock().iter().map(progress).collect()
    }

    /// It is cut into parts of so many bytes.
    pub(crate) fn cut(&self, bytes: impl Iterator<Item = u64>) {
        let part = |total| PartCount { stage: PartStage::Waits, done: Arc::default(), total };
        *self.parts.lock() = bytes.map(part).collect();
    }
    pub(crate) fn set_stage(&self, part: usize, stage: PartStage) {
        if let Some(part) = self.parts.lock().get_mut(part) {
            part.stage = stage;
        }
    }
    /// Nothing is left of a part that was begun.
    pub(crate) fn rewind(&self, part: usize) {
        if let Some(part) = self.parts.lock().get(part) {
            self.done.fetch_sub(part.done.swap(0, Ordering::Relaxed), Ordering::Relaxed);
        }
    }
    /// The control for who works on a part.
    pub(crate) fn part(self: &Arc<JobControl>, no: usize) -> PartControl {
        let part = self.parts.lock().get(no).map(|part| part.done.clone());
        PartControl { whole: self.clone(), part }
    }
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
    pub(crate) fn urgency(&self) -> &SharedUrgency {
        &self.urgency
    }
    pub(crate) fn advance(&self, bytes: u64) {
        self.done.fetch_add(bytes, Ordering::Relaxed);
        self.moved.fetch_add(self.moves * bytes, Ordering::Relaxed);
    }
}

/// Compactions go behind everything that is first.
fn urgency_of(prio: Prio) -> Urgency {
    Urgency(1 + prio as u8)
}
