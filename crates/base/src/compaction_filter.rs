//! Compaction filters: users decide what compactions keep.
//!
//! Keeps: a filter that panics keeps the value. [`decide`] is the only way to call one.
//! Leaves to others: which values a filter is asked about (`lithify_merge`).

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// What a filter wants done with a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision<'a> {
    /// It stays.
    Keep,
    /// The key is deleted.
    Remove,
    /// The key gets this value.
    Change(Cow<'a, [u8]>),
}

/// What a filter is told besides key and value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterContext {
    /// Level that the compaction writes to.
    pub level: u8,
    /// No older data lies below any key of the compaction: what is removed leaves nothing behind.
    pub bottommost: bool,
    /// When the compaction began, seconds since 1970.
    pub now: u64,
}

/// One compaction, as a filter of its own is made for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FilterJob {
    /// Level that the compaction writes to.
    pub level: u8,
    /// It reads every table of the family.
    pub full: bool,
    /// A user asked for it.
    pub manual: bool,
}

impl FilterJob {
    /// Of these facts.
    pub fn new(level: u8, full: bool, manual: bool) -> FilterJob {
        FilterJob { level, full, manual }
    }
}

/// Decides which values compactions keep, to drop what is out of date or to rewrite old forms.
///
/// It is asked about a value that is the newest version of its key among the compaction's inputs and
/// newer than every snapshot that was taken before the compaction began; a newer version may lie
/// elsewhere. It is not asked by flushes, nor about deletions and merge operands; a value that operands
/// were combined to counts as one. A value is asked about each time a compaction meets it, and no
/// moment is promised for that: reads may find a value that the next compaction removes.
///
/// Several compactions ask at once. The answer must follow from the arguments alone. A filter may read its
/// database; what writes to it, waits for it or closes it is refused as `InvalidArgument`, because it would
/// wait for the compaction that asks. It may write to other databases.
///
/// What a snapshot shows never changes while it is held:
/// - One that was taken before a compaction began: the filter is not asked about what it sees.
/// - One that was taken while a compaction ran: the filter may have been asked about what it sees. If
///   that compaction removes or changes anything, the snapshot goes on reading the tables and memtables
///   from before, and keeps them until it is dropped, as an iterator does.
/// - One that was taken once the output was installed: it shows what the filter left.
///
/// Reads without a snapshot, and iterators made from then on, see a removal as soon as the output is
/// installed; older iterators do not. RocksDB's filters ignore snapshots, whose answers may change there.
pub trait CompactionFilter: Send + Sync + 'static {
    /// Name for logs, for example `expired-sessions`.
    fn name(&self) -> &str;
    /// What is to be done with `value` of `key`.
    fn filter<'a>(&self, context: &FilterContext, key: &[u8], value: &'a [u8]) -> Decision<'a>;
    /// The filter of one compaction, which is asked in place of this one and dropped with it; `None`, the
    /// default, if this one serves all. A compaction that is tried again asks again.
    fn for_compaction(&self, job: &FilterJob) -> Option<CompactionFilterRef> {
        let _ = job;
        None
    }
}

/// A shared compaction filter.
pub type CompactionFilterRef = Arc<dyn CompactionFilter>;

/// The filter that a compaction asks: its own if `filter` makes one. One that panics makes none.
pub fn filter_of(filter: &CompactionFilterRef, job: &FilterJob) -> CompactionFilterRef {
    let own = catch_unwind(AssertUnwindSafe(|| filter.for_compaction(job))).unwrap_or_default();
    own.unwrap_or_else(|| filter.clone())
}

/// Asks a filter; one that panics keeps the value.
pub fn decide<'a>(
    filter: &dyn CompactionFilter,
    context: &FilterContext,
    key: &[u8],
    value: &'a [u8],
) -> Decision<'a> {
    let asked = || filter.filter(context, key, value);
    catch_unwind(AssertUnwindSafe(asked)).unwrap_or(Decision::Keep)
}
