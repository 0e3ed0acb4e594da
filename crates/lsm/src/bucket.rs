//! The bucket map: key intervals at which flushes are cut, with what flowed into each lately.
//!
//! A hint, never truth: files carry their own bounds, and losing or outdating the map costs speed
//! only. This is the value; splitting and merging buckets belongs to `plan`.

use lithify_base::{Comparator, Key, KeyRange};

/// What one bucket received inside the window of recent flushes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BucketStat {
    /// Bytes flushed into the bucket, oldest flush of the window first. All buckets of a map have
    /// an entry for each of its flushes, so entries of one index belong to one flush.
    pub flushed: Vec<u64>,
    /// Per entry of `flushed`, counted from the newest, keys that divide its bytes into equal
    /// parts. Lost with a restart: then no point to split at is known for some flushes.
    pub sketches: Vec<Vec<Key>>,
    /// Flushes since the bucket was last split or merged; 0 since the last flush.
    pub age: u32,
}

/// Bounds and statistics of all buckets. Bucket `i` is `[bounds[i-1], bounds[i])`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BucketMap {
    /// Number of changes since the map was made.
    pub epoch: u64,
    /// Inner bounds, one fewer than buckets, strictly increasing.
    pub bounds: Vec<Key>,
    /// One per bucket.
    pub stats: Vec<BucketStat>,
}

impl BucketMap {
    /// One bucket that covers the key space.
    pub fn single() -> BucketMap {
        BucketMap { epoch: 0, bounds: Vec::new(), stats: vec![BucketStat::default()] }
    }
    /// Number of buckets, at least 1.
    pub fn len(&self) -> usize {
        self.bounds.len() + 1
    }
    /// Always false: a map covers the key space.
    pub fn is_empty(&self) -> bool {
        false
    }
    /// The keys of bucket `i`: the first one, unless it has none, and where the next one begins.
    pub fn bounds_of(&self, i: usize) -> (Option<&Key>, Option<&Key>) {
        (i.checked_sub(1).and_then(|p| self.bounds.get(p)), self.bounds.get(i))
    }
    /// The buckets that `range` has keys in.
    pub fn buckets_of(
        &self,
        range: &KeyRange,
        order: &dyn Comparator,
    ) -> std::ops::RangeInclusive<usize> {
        let first = self.bucket_of(&range.lo, order);
        let ends_before = |b: &Key| order.compare(b, &range.hi.key).is_lt();
        let last = match range.hi.inclusive {
            true => self.bucket_of(&range.hi.key, order),
            false => self.bounds.partition_point(ends_before),
        };
        first..=last.max(first)
    }
    /// Bytes that flowed into bucket `i` inside the window.
    pub fn flow(&self, i: usize) -> u64 {
        self.stats[i].flushed.iter().fold(0, |s, &b| s.saturating_add(b))
    }
    /// Bytes that flowed into all buckets inside the window.
    pub fn flow_of_all(&self) -> u64 {
        (0..self.stats.len()).fold(0, |s, i| s.saturating_add(self.flow(i)))
    }
    /// The bucket that holds `key`.
    pub fn bucket_of(&self, key: &[u8], order: &dyn Comparator) -> usize {
        self.bounds.partition_point(|b| order.compare(b, key).is_le())
    }
}
