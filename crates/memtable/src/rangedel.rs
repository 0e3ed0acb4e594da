//! The range tombstones of a memtable: a list in the order of arrival, which readers look through. A database flushes a
//! memtable that has many.
//!
//! Keeps: a reader that learnt of a tombstone's sequence number sees the tombstone.
//! Leaves to others: fragments, and how a tombstone hides entries.
//!
//! Tables without range deletions, nearly all of them, answer from one atomic load. The list
//! that readers get is a shared snapshot, rebuilt by the first reader after a change.

use std::sync::Arc;

use lithify_base::{Comparator, Key, Seq};

use crate::sync::{AtomicUsize, Mutex, Ordering};

/// "Everything in `[lo, hi)` that is older than `seq` is deleted."
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeTombstone {
    /// First deleted key.
    pub lo: Key,
    /// End of the deleted keys, excluded.
    pub hi: Key,
    /// Sequence number of the deletion.
    pub seq: Seq,
}

#[derive(Default)]
struct List {
    all: Vec<RangeTombstone>,
    shared: Option<Arc<[RangeTombstone]>>,
    bytes: usize,
}

/// The list of one memtable.
#[derive(Default)]
pub(crate) struct RangeTombstones {
    count: AtomicUsize,
    list: Mutex<List>,
}

impl RangeTombstones {
    /// Number of tombstones.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }
    /// Memory in bytes.
    pub(crate) fn bytes(&self) -> usize {
        if self.count() == 0 { 0 } else { self.list.lock().bytes }
    }
    /// Adds one.
    pub(crate) fn add(&self, tombstone: RangeTombstone) {
        let mut list = self.list.lock();
        // The list and its snapshot hold the structure; an Arc adds two counters to each key.
        let keys = tombstone.lo.len() + tombstone.hi.len();
        list.bytes += 2 * size_of::<RangeTombstone>() + 2 * 2 * size_of::<usize>() + keys;
        list.all.push(tombstone);
        list.shared = None;
        self.count.store(list.all.len(), Ordering::Release);
    }
    /// All of them, in the order of arrival.
    pub(crate) fn snapshot(&self) -> Arc<[RangeTombstone]> {
        if self.count() == 0 {
            return Arc::new([]);
        }
        let List { all, shared, .. } = &mut *self.list.lock();
        shared.get_or_insert_with(|| all.as_slice().into()).clone()
    }
    /// The newest sequence number up to `at` of a tombstone over `key`. Linear in their number.
    pub(crate) fn covering(&self, key: &[u8], at: Seq, order: &dyn Comparator) -> Option<Seq> {
        if self.count() == 0 {
            return None;
        }
        let covers = |t: &&RangeTombstone| {
            t.seq <= at && order.compare(&t.lo, key).is_le() && order.compare(key, &t.hi).is_lt()
        };
        self.snapshot().iter().filter(covers).map(|t| t.seq).max()
    }
}
