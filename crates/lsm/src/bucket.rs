//! The bucket map: key intervals at which flushes are cut, with what flowed into each lately.
//!
//! A hint, never truth: files carry their own bounds, and losing or outdating the map costs speed
//! only. This is the value; splitting and merging buckets belongs to `plan`.

use lithify_base::{Comparator, Key};

/// What one bucket received inside the window of recent flushes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BucketStat {
    /// Bytes flushed into the bucket, oldest flush of the window first.
    pub flushed: Vec<u64>,
    /// Flushes since the bucket was last split or merged.
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
    /// The bucket that holds `key`.
    pub fn bucket_of(&self, key: &[u8], order: &dyn Comparator) -> usize {
        self.bounds.partition_point(|b| order.compare(b, key).is_le())
    }
}
