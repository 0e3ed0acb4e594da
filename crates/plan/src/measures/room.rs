//! How much room is kept free on the disk, so that flushes and one narrow job (`policies::narrow`)
//! can still run when it gets short.

use lithify_base::KeyRange;
use lithify_lsm::Version;

use crate::nouns::options::{PlanOptions, PolicyKind};
use crate::nouns::view::MemState;

/// What of a tree matters to [`is_short`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layers {
    /// Bytes of the largest file.
    pub largest: u64,
    /// Bytes of all files.
    pub all: u64,
    /// Some file lies over another: merging them may free something.
    pub overlap: bool,
}

impl Layers {
    /// Looks at every file.
    pub fn of(version: &Version) -> Layers {
        let order = version.order();
        let mut ranges: Vec<&KeyRange> = version.files().map(|f| &f.range).collect();
        ranges.sort_by(|a, b| order.compare(&a.lo, &b.lo));
        // A range that reaches into any later one reaches into the next one.
        let overlap = ranges.windows(2).any(|two| !two[0].is_before(two[1], order));
        let largest = version.files().map(|f| f.bytes).max().unwrap_or(0);
        let all = version.files().map(|f| f.bytes).fold(0, u64::saturating_add);
        Layers { largest, all, overlap }
    }
}

/// True if writers have to wait for room to be freed, with `left` bytes that tables may still take and
/// `disk` bytes free on the disk; `layers` is asked for only where both are few.
///
/// What is kept free is room for the memtables that are not flushed and for one narrow job, but no
/// more than an eighth of all there is for that; and for the log of the next memtable where it is the
/// disk that is short. Where nothing lies over anything there is nothing to keep room for: on a disk
/// writers go on then until it is full, and a budget still holds.
pub fn is_short(
    options: &PlanOptions,
    mem: &MemState,
    left: u64,
    disk: u64,
    layers: impl FnOnce() -> Layers,
) -> bool {
    // A store that forgets has a bound of its own, and nothing is freed while nothing may run.
    if options.disable_auto || options.policy == PolicyKind::Fifo {
        return false;
    }
    let flush = mem.frozen_bytes.saturating_add(options.memtable_bytes);
    let file = options.file_bytes.max(options.memtable_bytes);
    let most = flush.saturating_add(options.memtable_bytes).saturating_add(2 * file.min(1 << 62));
    if left.min(disk) >= most {
        return false;
    }
    let layers = layers();
    let job = |free: u64| (2 * layers.largest.min(file)).min((free.saturating_add(layers.all)) / 8);
    let with_job = |free: u64| flush.saturating_add(job(free));
    let over_budget = left < disk && left < flush;
    let log = options.memtable_bytes;
    over_budget
        || layers.overlap && (left < with_job(left) || disk < with_job(disk).saturating_add(log))
}
