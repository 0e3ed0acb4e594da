//! A block cache that several databases share, with one bound for all of them.
//!
//! Keeps: cached blocks, indexes and filters of all its databases and what their cursors read ahead stay together within
//! its capacity, but for a sixteenth of it that blocks have in any case.
//! Leaves to others: memtables and buffers, of which each database has its own.

use lithify_env::sync::Arc;
use lithify_env::sync::atomic::{AtomicU64, Ordering};
use lithify_tables::cache::BlockCache;

use super::resources::shards;

/// The part of a cache that blocks have whatever open tables take.
pub(crate) const BLOCKS_LEAST: u64 = 16;

/// A cache for blocks, indexes and filters of all databases that are opened with it. Clones are the same cache. It may
/// outlive its databases, whose blocks go as others need their room.
#[derive(Clone)]
pub struct SharedCache {
    bytes: Arc<AtomicU64>,
    blocks: Arc<BlockCache>,
}

impl SharedCache {
    /// A cache of `bytes` bytes.
    pub fn new(bytes: u64) -> SharedCache {
        let blocks = BlockCache::new(bytes, shards());
        SharedCache { bytes: Arc::new(AtomicU64::new(bytes)), blocks }
    }
    /// Capacity in bytes.
    pub fn capacity(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
    /// Changes the capacity. A smaller one evicts at once.
    pub fn set_capacity(&self, bytes: u64) {
        self.bytes.store(bytes, Ordering::Relaxed);
        self.blocks.set_room(bytes);
        self.blocks.set_capacity(self.of_blocks());
    }
    /// Bytes of cached blocks, those included of databases that are closed.
    pub fn usage(&self) -> u64 {
        self.blocks.counts().bytes
    }
    /// Bytes of memory that it takes: those blocks, and what the cache needs to find them.
    pub fn memory(&self) -> u64 {
        let counts = self.blocks.counts();
        counts.bytes + counts.tables
    }
    pub(crate) fn blocks(&self) -> &Arc<BlockCache> {
        &self.blocks
    }
    /// Gives blocks what open tables and cursors leave.
    pub(crate) fn fit(&self) {
        self.blocks.fit(self.of_blocks(), self.capacity());
    }
    fn of_blocks(&self) -> u64 {
        let others = self.blocks.resident() + self.blocks.ahead_bytes();
        self.capacity().saturating_sub(others).max(self.capacity() / BLOCKS_LEAST)
    }
}

impl std::fmt::Debug for SharedCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SharedCache({} of {} bytes)", self.usage(), self.capacity())
    }
}
