//! The block cache: uncompressed blocks of open tables, and searchable parts of their indexes, bounded
//! by bytes.
//!
//! Keeps: total weight stays at or below the capacity; a block that was checked once when it was
//! read is served without another check. A block that is handed out stays alive as long as
//! someone holds it, evicted or not.
//! Leaves to others: reading and checking blocks (`sst::reader`), when a block is worth caching.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use lithify_base::{Error, ErrorKind, Result};
use lithify_env::SlotPool;
use lithify_env::sync::atomic::{AtomicU64, Ordering};
use quick_cache::{OptionsBuilder, Weighter, sync::Cache};
use rustc_hash::FxBuildHasher;

use super::missed::Missed;
use crate::sst::Fences;
use crate::sst::block::Block;

/// Blocks are about this large: sizes the bookkeeping of the cache, and bounds nothing.
const BLOCK_BYTES_GUESS: u64 = 4 << 10;
/// Memory of an entry besides its block: key, map slot, reference counts.
const ENTRY_BYTES: u64 = 96;
/// What cursors read ahead may take, beside the cache, as a part of its capacity.
const AHEAD_SHARE: u64 = 8;
/// The part of the capacity that stays free and resident where blocks were evicted, and its least bytes.
const IDLE_SHARE: u64 = 64;
const IDLE_MIN: usize = 64 << 10;
/// A cache that loses more than this part of what it holds evicts whole slabs.
const MUCH: u64 = 8;
/// Counters are split so that readers on different cores seldom share a cache line.
const COUNTER_STRIPES: usize = 16;

/// One open file in a cache. The cache numbers those that ask, so that two databases that share it,
/// or a file number used again after a restore, can never see each other's blocks; and it alone, so
/// that what it evicts is the same in equal runs.
pub struct CachedFile {
    cache: Arc<BlockCache>,
    number: u64,
    /// What is resident of the file besides its blocks, bytes.
    resident: u64,
    /// What its index and filter would take if they were whole, bytes.
    whole: u64,
}

impl CachedFile {
    /// The block at `offset`, if held. Counts a hit or a miss.
    #[inline]
    pub fn get(&self, offset: u64) -> Option<Block> {
        match self.cache.get(BlockKey { file: self.number, offset }) {
            Some(Held::Block(block)) => Some(block),
            _ => None,
        }
    }
    /// The block at `offset`, if held, for a cursor that comes to it later. Counts a hit, but no miss: the cursor asks
    /// again when it is there.
    #[inline]
    pub(crate) fn get_ahead(&self, offset: u64) -> Option<Block> {
        match self.cache.find(BlockKey { file: self.number, offset }) {
            Some(Held::Block(block)) => Some(block),
            _ => None,
        }
    }
    /// The part of an index whose block is at `offset`, if held. Counts as [`get`](CachedFile::get).
    #[inline]
    pub(crate) fn get_fences(&self, offset: u64) -> Option<Arc<Fences>> {
        match self.cache.get(BlockKey { file: self.number, offset }) {
            Some(Held::Fences(fences)) => Some(fences),
            _ => None,
        }
    }
    /// Adds a part of an index, checked.
    pub(crate) fn insert_fences(&self, offset: u64, fences: Arc<Fences>) {
        let key = BlockKey { file: self.number, offset };
        self.cache.blocks.insert(key, Held::Fences(fences));
    }
    /// Adds a checked block that was read. It may be dropped at once if it is larger than a shard, and a full cache only
    /// notes it the first time.
    pub fn insert(&self, offset: u64, block: Block) {
        let key = BlockKey { file: self.number, offset };
        if self.cache.takes(&key, block.memory()) {
            self.cache.blocks.insert(key, Held::Block(block));
        }
    }
    /// Bytes that are left for reading ahead, of all files.
    pub(crate) fn ahead_room(&self) -> u64 {
        let share = self.cache.capacity() / AHEAD_SHARE;
        share.saturating_sub(self.cache.ahead_bytes())
    }
    /// A cursor that held `before` bytes of read-ahead holds `now`.
    pub(crate) fn count_ahead(&self, before: u64, now: u64) {
        self.cache.ahead.fetch_add(now, Ordering::Relaxed);
        self.cache.ahead.fetch_sub(before, Ordering::Relaxed);
    }
    /// Says what is resident of the file besides its blocks, and what its index and filter would take if
    /// they were whole, in bytes, until it is closed.
    pub(crate) fn weigh(&mut self, resident: u64, whole: u64) {
        self.cache.resident.fetch_add(resident, Ordering::Relaxed);
        self.cache.resident.fetch_sub(self.resident, Ordering::Relaxed);
        self.cache.whole.fetch_add(whole, Ordering::Relaxed);
        self.cache.whole.fetch_sub(self.whole, Ordering::Relaxed);
        (self.resident, self.whole) = (resident, whole);
    }
    /// Forgets every block of the file; for one that is being deleted. Walks the whole cache.
    pub fn forget(&self) {
        self.cache.blocks.retain(|key, _| key.file != self.number);
        self.cache.look_at_room();
    }
}

impl Drop for CachedFile {
    fn drop(&mut self) {
        self.weigh(0, 0);
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct BlockKey {
    file: u64,
    offset: u64,
}

/// What is cached under the offset of a block.
#[derive(Clone)]
enum Held {
    Block(Block),
    Fences(Arc<Fences>),
}

#[derive(Clone)]
struct ByBytes;

impl Weighter<BlockKey, Held> for ByBytes {
    fn weight(&self, _: &BlockKey, held: &Held) -> u64 {
        let bytes = match held {
            Held::Block(block) => block.memory(),
            Held::Fences(fences) => size_of::<Fences>() + fences.memory(),
        };
        bytes as u64 + ENTRY_BYTES
    }
}

thread_local! {
    static HITS: Cell<u64> = const { Cell::new(0) };
}

thread_local! {
    static MEMORY_ONLY: Cell<bool> = const { Cell::new(false) };
}

/// Does something on this thread that reads no table file: what is not in memory is an error, `Stalled`.
pub fn in_memory_only<T>(only: bool, read: impl FnOnce() -> T) -> T {
    struct Back(bool);
    impl Drop for Back {
        fn drop(&mut self) {
            MEMORY_ONLY.set(self.0);
        }
    }
    let _back = only.then(|| Back(MEMORY_ONLY.replace(true)));
    read()
}

/// # Errors
/// `Stalled` if this thread reads memory only.
#[inline]
pub(crate) fn check_may_read() -> Result<()> {
    match MEMORY_ONLY.get() {
        false => Ok(()),
        true => {
            let what = "not in memory, and the read was to look at nothing else";
            Err(Error::new(ErrorKind::Stalled, what))
        }
    }
}

/// Lookups of the calling thread that found their block, in all caches, since it began.
pub fn thread_hits() -> u64 {
    HITS.get()
}

#[derive(Default)]
#[repr(align(64))]
struct Stripe {
    hits: AtomicU64,
    misses: AtomicU64,
}

/// What a cache did so far, and holds now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounts {
    /// Lookups that found their block.
    pub hits: u64,
    /// Lookups that did not.
    pub misses: u64,
    /// Bytes held, bookkeeping included.
    pub bytes: u64,
    /// Blocks held.
    pub blocks: u64,
    /// Bytes of the cache itself, and of its tables where no block takes them yet.
    pub tables: u64,
}

/// A shared, thread-safe cache of blocks.
pub struct BlockCache {
    blocks: Cache<BlockKey, Held, ByBytes, FxBuildHasher>,
    /// What blocks, chunks read ahead and filters of open tables lie in.
    memory: Arc<SlotPool>,
    stripes: [Stripe; COUNTER_STRIPES],
    files: AtomicU64,
    /// Of all open files together.
    resident: AtomicU64,
    /// What indexes and filters of all open files would take if they were whole.
    whole: AtomicU64,
    /// What there is for them and cached blocks.
    room: AtomicU64,
    /// What cursors hold of read-ahead.
    ahead: AtomicU64,
    /// As the cache has it, without asking each shard.
    capacity: AtomicU64,
    /// Bytes that blocks were added with since there was room last: from the capacity on the cache is full.
    filled: AtomicU64,
    /// What was read and not kept since.
    missed: Missed,
}

impl BlockCache {
    /// How many shards there are to be: enough that threads rarely meet.
    pub fn shards() -> usize {
        lithify_env::processors().map_or(4, |n| (4 * n).min(64))
    }

    /// A cache of at most `capacity` bytes, split into `shards` locks (a power of two; a few
    /// per core).
    pub fn new(capacity: u64, shards: usize) -> Arc<BlockCache> {
        let items = (capacity / BLOCK_BYTES_GUESS).clamp(1, 1 << 30) as usize;
        let options = OptionsBuilder::new()
            .shards(shards.max(1))
            .estimated_items_capacity(items)
            .weight_capacity(capacity)
            .build()
            .expect("every required option is set");
        let blocks = Cache::with_options(
            options,
            ByBytes,
            FxBuildHasher,
            quick_cache::sync::DefaultLifecycle::default(),
        );
        Arc::new(BlockCache {
            blocks,
            memory: SlotPool::new(idle_max(capacity)),
            stripes: Default::default(),
            files: AtomicU64::new(0),
            resident: AtomicU64::new(0),
            whole: AtomicU64::new(0),
            room: AtomicU64::new(capacity),
            ahead: AtomicU64::new(0),
            capacity: AtomicU64::new(capacity),
            filled: AtomicU64::new(0),
            missed: Missed::new(items),
        })
    }

    /// Where blocks of files that are cached here have their memory.
    pub(crate) fn memory(&self) -> &Arc<SlotPool> {
        &self.memory
    }

    /// A file that has no block here yet.
    pub fn open_file(self: &Arc<BlockCache>) -> CachedFile {
        let number = self.files.fetch_add(1, Ordering::Relaxed);
        CachedFile { cache: self.clone(), number, resident: 0, whole: 0 }
    }

    #[inline]
    fn get(&self, key: BlockKey) -> Option<Held> {
        let found = self.find(key);
        if found.is_none() {
            self.stripe(key).misses.fetch_add(1, Ordering::Relaxed);
        }
        found
    }

    /// Counts a hit, but no miss.
    #[inline]
    fn find(&self, key: BlockKey) -> Option<Held> {
        let found = self.blocks.get(&key)?;
        self.stripe(key).hits.fetch_add(1, Ordering::Relaxed);
        HITS.set(HITS.get() + 1);
        Some(found)
    }

    /// Whether a block of `bytes` that was read is kept: while there is room, and when it was read before, lately.
    fn takes(&self, key: &BlockKey, bytes: usize) -> bool {
        let filled = self.filled.load(Ordering::Relaxed);
        if filled >= self.capacity() {
            return self.missed.note(key);
        }
        self.filled.fetch_add(bytes as u64 + ENTRY_BYTES, Ordering::Relaxed);
        true
    }

    /// What is held, or may be, has changed by more than blocks that come and go.
    fn look_at_room(&self) {
        self.filled.store(self.blocks.weight(), Ordering::Relaxed);
    }

    #[inline]
    fn stripe(&self, key: BlockKey) -> &Stripe {
        &self.stripes[(key.offset >> 12) as usize % COUNTER_STRIPES]
    }

    /// What the cache itself takes, and its tables beyond what is counted with each block.
    fn tables(&self) -> u64 {
        let used = self.blocks.memory_used();
        let counted = self.blocks.len() as u64 * ENTRY_BYTES;
        let itself = (size_of::<BlockCache>() + self.missed.memory()) as u64;
        itself + ((used.entries + used.map) as u64).saturating_sub(counted)
    }

    /// Bytes of indexes, filters and properties of all files that are open. They
    /// are no part of the capacity.
    pub fn resident(&self) -> u64 {
        self.resident.load(Ordering::Relaxed)
    }

    /// Sets the bytes that there are for indexes and filters of open files and for cached blocks; at first the
    /// capacity.
    pub fn set_room(&self, bytes: u64) {
        self.room.store(bytes, Ordering::Relaxed);
    }

    /// Whether indexes and filters of all open files would take a quarter more than that if they were whole: a
    /// search needs them more than any cached block, and the quarter is a small part of a budget. What they do
    /// take says little: a compaction of all of them would see them small, and make them whole again.
    pub fn is_crowded(&self) -> bool {
        let room = self.room.load(Ordering::Relaxed);
        self.whole.load(Ordering::Relaxed) > room.saturating_add(room / 4)
    }

    /// Bytes that cursors have read ahead, beside the capacity; at most an eighth of it and a few pages
    /// for each cursor.
    pub fn ahead_bytes(&self) -> u64 {
        self.ahead.load(Ordering::Relaxed)
    }

    /// Changes the capacity. A smaller one evicts at once, and the memory goes back to the system before this returns. A much
    /// smaller one evicts by place, whole slabs, and not by use: blocks that were used longest ago lie between
    /// others, whose pages would stay.
    pub fn set_capacity(&self, bytes: u64) {
        self.capacity.store(bytes, Ordering::Relaxed);
        self.memory.set_idle_max(idle_max(bytes));
        let held = self.blocks.weight();
        // Dropped at the end: no lock of the cache is held then, and no slot of theirs is used again before.
        let gone = RefCell::new(Vec::new());
        if bytes < held - held / MUCH {
            let leave = self.memory.emptiest(bytes, held);
            self.blocks.retain(|_, held| match held {
                Held::Block(block) if block.lies_in(&leave) => {
                    gone.borrow_mut().push(block.clone());
                    false
                }
                _ => true,
            });
        }
        self.blocks.set_capacity(bytes);
        self.look_at_room();
    }

    /// Changes the capacity, unless it is within a 64th of `of` already: what a table more or less weighs is not worth
    /// an eviction run.
    pub fn fit(&self, bytes: u64, of: u64) {
        if self.capacity().abs_diff(bytes) > of / 64 {
            self.set_capacity(bytes);
        }
    }

    /// Bytes held, bookkeeping included.
    pub fn weight(&self) -> u64 {
        self.blocks.weight()
    }

    /// Capacity in bytes.
    pub fn capacity(&self) -> u64 {
        self.capacity.load(Ordering::Relaxed)
    }

    /// Counters and present size.
    pub fn counts(&self) -> CacheCounts {
        let sum = |f: fn(&Stripe) -> &AtomicU64| {
            self.stripes.iter().map(|s| f(s).load(Ordering::Relaxed)).sum()
        };
        CacheCounts {
            hits: sum(|s| &s.hits),
            misses: sum(|s| &s.misses),
            bytes: self.blocks.weight(),
            blocks: self.blocks.len() as u64,
            tables: self.tables(),
        }
    }
}

/// Bytes of memory that blocks of a cache of `capacity` leave for the next ones.
fn idle_max(capacity: u64) -> usize {
    usize::try_from(capacity / IDLE_SHARE).unwrap_or(usize::MAX).max(IDLE_MIN)
}

#[cfg(test)]
mod tests;
