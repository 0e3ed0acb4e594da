//! A block cache that several databases share, with one bound for all of them.
//!
//! Keeps: cached blocks, indexes and filters of all its databases and what their cursors read ahead stay together within
//! its capacity, but for a sixteenth of it that blocks have in any case. So do memtables that were told to.
//! Leaves to others: other memtables (`SharedMemtables` has a bound for them) and buffers.

use std::sync::Arc;

use lithify_env::sync::atomic::{AtomicU64, Ordering};

use super::BlockCache;

/// The part of a cache that blocks have whatever open tables take.
pub const BLOCKS_LEAST: u64 = 16;

/// A cache for blocks, indexes and filters of all databases that are opened with it. Clones are the same cache. It may
/// outlive its databases, whose blocks go as others need their room.
#[derive(Clone)]
pub struct SharedCache {
    bytes: Arc<AtomicU64>,
    /// What memtables take of them.
    charged: Arc<AtomicU64>,
    blocks: Arc<BlockCache>,
}

impl SharedCache {
    /// A cache of `bytes` bytes.
    pub fn new(bytes: u64) -> SharedCache {
        let blocks = BlockCache::new(bytes, BlockCache::shards());
        SharedCache { bytes: Arc::new(AtomicU64::new(bytes)), charged: Arc::default(), blocks }
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
    /// Bytes of cached blocks, those included of databases that are closed, and of memtables that count against it
    /// (`SharedMemtables::within_cache`).
    pub fn usage(&self) -> u64 {
        self.blocks.counts().bytes + self.charged.load(Ordering::Relaxed)
    }
    /// Bytes of memory that it takes: those, and what the cache needs to find its blocks.
    pub fn memory(&self) -> u64 {
        self.usage() + self.blocks.counts().tables
    }
    /// Memtables took so many bytes; blocks make room at the next look of a database.
    pub fn charge(&self, bytes: u64) {
        self.charged.fetch_add(bytes, Ordering::Relaxed);
    }
    /// They gave them back.
    pub fn discharge(&self, bytes: u64) {
        self.charged.fetch_sub(bytes, Ordering::Relaxed);
    }
    /// The blocks.
    pub fn blocks(&self) -> &Arc<BlockCache> {
        &self.blocks
    }
    /// Gives blocks what open tables and cursors leave.
    pub fn fit(&self) {
        self.blocks.fit(self.of_blocks(), self.capacity());
    }
    fn of_blocks(&self) -> u64 {
        let memtables = self.charged.load(Ordering::Relaxed);
        let others = self.blocks.resident() + self.blocks.ahead_bytes() + memtables;
        self.capacity().saturating_sub(others).max(self.capacity() / BLOCKS_LEAST)
    }
}

impl std::fmt::Debug for SharedCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SharedCache({} of {} bytes)", self.usage(), self.capacity())
    }
}
