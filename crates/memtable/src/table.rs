//! The table that readers share and the one writer that fills it.
//!
//! Keeps: exactly one [`MemWriter`] per table, so the index sees one writer, or those that it shares
//! the table with ([`shared`]); when `add` returns, filter and index know the entry; counters are exact
//! for a thread that learnt of the last addition from the writer, and for all once the table is frozen.
//! Leaves to others: sequence numbers and their publication, the decision to freeze.

use std::sync::Arc;

use lithify_base::{ComparatorRef, Key, KeyRange, Kind, Seq, Tag};
use lithify_env::OutOfMemory;
use xxhash_rust::xxh3::xxh3_64;

use crate::arena::{Arena, ArenaPool, Rec};
use crate::bloom::Bloom;
use crate::index::{At, First, Growth, Index, Last, Order};
use crate::iter::{MemIter, Versions, Walk};
use crate::rangedel::{RangeTombstone, RangeTombstones};
use crate::sync::{AtomicU64, Mutex, Ordering};

mod shared;

pub use shared::SharedWriter;

/// Bytes that one entry is expected to take, to size the filter.
const ENTRY_BYTES_EXPECTED: usize = 128;

/// Bytes that an entry takes at most besides key and value: its header, its padding, and its share of
/// new nodes.
const ENTRY: usize = 128;
/// Bytes of the nodes that one entry may need at once.
const NODES: usize = 8 << 10;

/// What a memtable is made for.
pub struct MemTableOptions {
    /// Order of user keys.
    pub order: ComparatorRef,
    /// Bytes the table is expected to hold; it may grow beyond.
    pub arena_bytes: usize,
    /// Whether lookups of absent keys are answered by a filter (about 1% of the memory).
    pub bloom: bool,
}

/// Totals that the writer keeps. Only it stores, so plain loads and stores do.
struct Totals {
    entries: AtomicU64,
    sum: AtomicU64,
    first_seq: AtomicU64,
    last_seq: AtomicU64,
}

impl Totals {
    #[inline(always)]
    fn note_seq(&self, seq: Seq) {
        if seq < self.first_seq.load(Ordering::Relaxed) {
            self.first_seq.store(seq, Ordering::Relaxed);
        }
        if seq > self.last_seq.load(Ordering::Relaxed) {
            self.last_seq.store(seq, Ordering::Relaxed);
        }
    }
    #[inline(always)]
    fn note_entries(&self, count: u64, sum: u64) {
        let Totals { entries, sum: total, .. } = self;
        total.store(total.load(Ordering::Relaxed).wrapping_add(sum), Ordering::Relaxed);
        entries.store(entries.load(Ordering::Relaxed) + count, Ordering::Relaxed);
    }
}

/// A write buffer: sorted entries and range tombstones, read by many while one writes.
pub struct MemTable {
    index: Index,
    bloom: Option<Bloom>,
    bytewise: bool,
    order: ComparatorRef,
    rangedels: RangeTombstones,
    totals: Totals,
    /// Keys that the filter is to have room for once there are any.
    keys: usize,
    /// Held to split nodes while there are shared writers.
    splits: Mutex<()>,
    arena: Arena,
}

/// The right to add to a [`MemTable`]; there is one per table.
pub struct MemWriter {
    table: Arc<MemTable>,
    /// Shared writers that are about. While there are any, this one adds nothing itself; or
    /// [`UNBEGUN`].
    shared: usize,
}

/// Nothing was added yet: the table has no memory of the pool's, and a filter for no keys. It stands
/// for a number of shared writers, so that what looks for those looks for this, too.
const UNBEGUN: usize = usize::MAX;

/// The share of one entry in a conservation ledger: a mix of the key's XXH3-64, the tag and the
/// length of the value. Shares are added with wrap-around, so that order does not matter.
///
/// `mix(xxh3(key) + tag * 0x9e3779b97f4a7c15 + value_len * 0xd1b54a32d192ed03)`, `mix` being the
/// finaliser of MurmurHash3; all arithmetic modulo 2^64.
pub fn entry_sum(key: &[u8], tag: Tag, value_len: usize) -> u64 {
    hashed_entry_sum(xxh3_64(key), tag, value_len)
}

#[inline(always)]
fn hashed_entry_sum(key_hash: u64, tag: Tag, value_len: usize) -> u64 {
    let mut h = key_hash
        .wrapping_add(tag.0.wrapping_mul(0x9e37_79b9_7f4a_7c15))
        .wrapping_add((value_len as u64).wrapping_mul(0xd1b5_4a32_d192_ed03));
    h = (h ^ h >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    h = (h ^ h >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    h ^ h >> 33
}

impl MemTable {
    /// An empty table and its writer. Memory comes from `pool`, once something is added: until then a
    /// table takes less than 2 KiB.
    ///
    /// # Panics
    /// If there is none.
    #[allow(clippy::new_ret_no_self, reason = "a table without its writer is of no use")]
    pub fn new(options: MemTableOptions, pool: Arc<dyn ArenaPool>) -> (Arc<MemTable>, MemWriter) {
        MemTable::try_new(options, pool).unwrap_or_else(|none| panic!("write buffer: {none}"))
    }

    /// The same.
    ///
    /// # Errors
    /// If there is no memory.
    pub fn try_new(
        options: MemTableOptions,
        pool: Arc<dyn ArenaPool>,
    ) -> Result<(Arc<MemTable>, MemWriter), OutOfMemory> {
        let MemTableOptions { order, arena_bytes, bloom } = options;
        let arena = Arena::new(pool, arena_bytes);
        let filter = if bloom { Bloom::bytes(0) } else { 0 };
        // SAFETY: no other thread knows the arena yet.
        unsafe { arena.seed(Index::EMPTY_BYTES + filter)? };
        // SAFETY: no other thread knows the arena yet, and it lies behind its users in the table, so
        // it is dropped after them.
        let (index, bloom) = unsafe { (Index::new(&arena), bloom.then(|| Bloom::new(&arena, 0))) };
        let table = Arc::new(MemTable {
            index,
            bloom,
            bytewise: order.is_bytewise(),
            order,
            rangedels: RangeTombstones::default(),
            totals: Totals {
                entries: AtomicU64::new(0),
                sum: AtomicU64::new(0),
                first_seq: AtomicU64::new(Seq::MAX),
                last_seq: AtomicU64::new(0),
            },
            keys: arena_bytes / ENTRY_BYTES_EXPECTED,
            splits: Mutex::new(()),
            arena,
        });
        Ok((table.clone(), MemWriter { table, shared: UNBEGUN }))
    }

    pub(crate) fn index(&self) -> &Index {
        &self.index
    }
    #[inline(always)]
    pub(crate) fn order(&self) -> Order<'_> {
        if self.bytewise { Order::Bytewise } else { Order::By(&*self.order) }
    }
    /// The probe before the internal key `(user, tag)`.
    #[inline(always)]
    pub(crate) fn at<'a>(&'a self, user: &'a [u8], tag: Tag) -> At<'a> {
        At { order: self.order(), user, tag, behind: false }
    }
    /// The first record behind the position of `probe`.
    #[inline(always)]
    pub(crate) fn find(&self, probe: &At<'_>) -> Option<Rec<'_>> {
        self.index.locate(probe, |leaf, n, at| if at < n { leaf.rec(at) } else { leaf.hi() })
    }
    #[inline(always)]
    pub(crate) fn same_key(&self, a: &[u8], b: &[u8]) -> bool {
        if self.bytewise { a == b } else { self.order.compare(a, b).is_eq() }
    }

    /// The newest entry of `key` with a sequence number up to `at`: its tag and value. Range
    /// tombstones are not looked at; see [`covering`](MemTable::covering).
    #[inline]
    pub fn get_newest(&self, key: &[u8], at: Seq) -> Option<(Tag, &[u8])> {
        if !self.may_contain(key) {
            return None;
        }
        let rec = self.find(&self.at(key, Tag::seek(at)))?;
        self.same_key(rec.user(), key).then(|| (rec.tag(), rec.value()))
    }

    /// Asks for the memory that adding `key` will touch. Worth it where something that takes longer than a miss of
    /// all caches comes before that.
    #[inline]
    pub fn prefetch(&self, key: &[u8]) {
        // A comparator of the user's is called for what is added, and no more often than that.
        if self.bytewise
            && let Some(leaf) = self.index.leaf_ahead(&self.at(key, Tag(u64::MAX)))
        {
            leaf.prefetch_whole();
        }
    }

    /// The entries of `key` with sequence numbers up to `at`, newest first.
    pub fn entries<'t, 'k>(&'t self, key: &'k [u8], at: Seq) -> Versions<'t, 'k> {
        Versions::new(self, key, at)
    }

    /// False if the table certainly has no entry of `key`. Always true without a filter.
    #[inline]
    pub fn may_contain(&self, key: &[u8]) -> bool {
        // A comparator may call different bytes equal, so the filter serves byte order only.
        self.bloom.as_ref().is_none_or(|b| !self.bytewise || b.may_contain(xxh3_64(key)))
    }

    /// An iterator that keeps the table alive.
    pub fn iter(self: &Arc<MemTable>) -> MemIter {
        MemIter::new(self.clone())
    }
    /// All entries in order, fast. Entries added during the walk may or may not be met.
    pub fn walk(&self) -> Walk<'_> {
        Walk::new(self)
    }
    /// The entries behind `(user, tag)` in order: a walk that goes on where one was left.
    pub fn walk_after(&self, user: &[u8], tag: Tag) -> Walk<'_> {
        Walk::after(self, user, tag)
    }

    /// True if there are range tombstones. One atomic load.
    #[inline]
    pub fn has_range_tombstones(&self) -> bool {
        self.rangedels.count() != 0
    }
    /// All range tombstones in the order of their arrival.
    pub fn range_tombstones(&self) -> Arc<[RangeTombstone]> {
        self.rangedels.snapshot()
    }
    /// The newest range tombstone over `key` with a sequence number up to `at`. Takes time linear
    /// in the number of range tombstones; readers of many keys build fragments instead.
    #[inline]
    pub fn covering(&self, key: &[u8], at: Seq) -> Option<Seq> {
        self.rangedels.covering(key, at, &*self.order)
    }

    /// Memory that entries, index, filter and range tombstones occupy, in bytes. This is what a
    /// write buffer budget counts.
    pub fn bytes(&self) -> usize {
        self.arena.used() + self.rangedels.bytes()
    }
    /// As [`bytes`](MemTable::bytes), but with the whole chunks taken from the pool. This is what
    /// a memory budget counts.
    pub fn reserved_bytes(&self) -> usize {
        self.arena.reserved() + self.rangedels.bytes()
    }
    /// Number of entries, without range tombstones.
    pub fn entry_count(&self) -> u64 {
        self.totals.entries.load(Ordering::Relaxed)
    }
    /// Number of range tombstones.
    pub fn range_deletes(&self) -> u64 {
        self.rangedels.count() as u64
    }
    /// True if nothing was added.
    pub fn is_empty(&self) -> bool {
        self.entry_count() == 0 && !self.has_range_tombstones()
    }
    /// Smallest sequence number of entries and range tombstones.
    pub fn first_seq(&self) -> Option<Seq> {
        (!self.is_empty()).then(|| self.totals.first_seq.load(Ordering::Relaxed))
    }
    /// Largest sequence number of entries and range tombstones.
    pub fn last_seq(&self) -> Option<Seq> {
        (!self.is_empty()).then(|| self.totals.last_seq.load(Ordering::Relaxed))
    }
    /// Number of entries and the wrapping sum of their [`entry_sum`]s. A flush writes exactly
    /// these entries. Exact once the table is frozen.
    pub fn ledger(&self) -> (u64, u64) {
        (self.entry_count(), self.totals.sum.load(Ordering::Relaxed))
    }

    /// The smallest range of user keys that holds all entries and range tombstones; its end is
    /// excluded if a range tombstone reaches furthest.
    pub fn range(&self) -> Option<KeyRange> {
        let entries = self.ends().map(|(lo, hi)| KeyRange::incl(lo, hi));
        let deletes = self.range_tombstones();
        deletes
            .iter()
            .map(|t| KeyRange::excl(t.lo.clone(), t.hi.clone()))
            .chain(entries)
            .reduce(|a, b| a.hull(&b, &*self.order))
    }
    /// Smallest and largest user key, counting both ends of range tombstones.
    pub fn bounds(&self) -> Option<(Key, Key)> {
        self.range().map(|range| (range.lo, range.hi.key))
    }
    /// First and last user key of the entries.
    fn ends(&self) -> Option<(&[u8], &[u8])> {
        let first = self.index.locate(&First, |leaf, n, _| leaf.rec(0).filter(|_| n > 0))?;
        let last =
            self.index.locate(&Last, |leaf, n, _| n.checked_sub(1).and_then(|i| leaf.rec(i)))?;
        Some((first.user(), last.user()))
    }
    /// True if an entry or a range tombstone lies in `range`.
    pub fn overlaps(&self, range: &KeyRange) -> bool {
        let order = &*self.order;
        let deletes = self.range_tombstones();
        let deleted =
            |t: &RangeTombstone| KeyRange::excl(t.lo.clone(), t.hi.clone()).overlaps(range, order);
        if deletes.iter().any(deleted) {
            return true;
        }
        let first = self.find(&self.at(&range.lo, Tag(u64::MAX)));
        first.is_some_and(|rec| !range.hi.is_before(rec.user(), order))
    }
}

impl MemWriter {
    /// The table this writer fills.
    pub fn table(&self) -> &Arc<MemTable> {
        &self.table
    }

    /// Sees to it that `entries` entries with `bytes` bytes of keys and values together find memory
    /// when they are added.
    ///
    /// # Errors
    /// If there is none; the table is as it was.
    ///
    /// # Panics
    /// While there are shared writers, as the next.
    #[inline(always)]
    pub fn try_reserve(&mut self, entries: usize, bytes: usize) -> Result<(), OutOfMemory> {
        let room = bytes.saturating_add(entries.saturating_mul(ENTRY)).saturating_add(NODES);
        if self.shared != 0 {
            self.begin()?;
        }
        // SAFETY: `self` is the only writer of the table and borrowed exclusively.
        unsafe { self.table.arena.try_reserve(room) }
    }

    /// Takes the first memory of the pool: for the filter, and the first entries.
    ///
    /// # Errors
    /// If the pool has none; the table is as it was.
    ///
    /// # Panics
    /// If there are shared writers.
    #[cold]
    fn begin(&mut self) -> Result<(), OutOfMemory> {
        assert!(self.shared == UNBEGUN, "shared writers are about");
        let MemTable { arena, bloom, keys, .. } = &*self.table;
        let filter = bloom.as_ref().map_or(0, |_| Bloom::bytes(*keys));
        // SAFETY: `self` is the only writer of the table and borrowed exclusively; nothing was added,
        // and the filter is of the same table.
        unsafe {
            arena.try_reserve(filter + NODES)?;
            if let Some(bloom) = bloom {
                bloom.grow(arena, *keys);
            }
        }
        self.shared = 0;
        Ok(())
    }

    /// As [`begin`](MemWriter::begin), for those that reserved nothing.
    #[cold]
    fn begin_or_panic(&mut self) {
        self.begin().unwrap_or_else(|none| panic!("write buffer: {none}"));
    }

    /// Adds an entry. Sequence numbers may come in any order. An internal key should come once;
    /// if it comes again, both entries are kept and which one is found first is not specified.
    ///
    /// # Panics
    /// If `kind` is [`Kind::RangeDelete`], key or value is 4 GiB or longer, or there is no memory for
    /// them; [`try_reserve`](MemWriter::try_reserve) before finds that out.
    pub fn add(&mut self, seq: Seq, kind: Kind, key: &[u8], value: &[u8]) {
        assert!(kind != Kind::RangeDelete, "range deletions have a call of their own");
        if self.shared != 0 {
            self.begin_or_panic();
        }
        let table = &*self.table;
        let tag = Tag::new(seq, kind);
        let hash = xxh3_64(key);
        if let Some(bloom) = &table.bloom {
            bloom.prefetch(hash);
        }
        // SAFETY: `self` is the only writer of the table and borrowed exclusively; arena and
        // index belong to the same table.
        unsafe {
            let rec = table.arena.append(tag, key, value);
            Growth::new(&table.index, &table.arena, table.order()).insert(rec);
        }
        // Last, when its line has arrived: no reader looks for the key before it is published.
        if let Some(bloom) = &table.bloom {
            bloom.add(hash);
        }
        table.totals.note_seq(seq);
        table.totals.note_entries(1, hashed_entry_sum(hash, tag, value.len()));
    }

    /// Deletes everything in `[lo, hi)` that is older than `seq`. An empty range is nothing.
    pub fn add_range_delete(&mut self, seq: Seq, lo: &[u8], hi: &[u8]) {
        if self.table.order.compare(lo, hi).is_ge() {
            return;
        }
        self.table.totals.note_seq(seq);
        self.table.rangedels.add(RangeTombstone { lo: lo.into(), hi: hi.into(), seq });
    }

    /// Gives up the right to write: the table is frozen from here on.
    ///
    /// # Panics
    /// While there are shared writers.
    pub fn freeze(self) -> Arc<MemTable> {
        assert!(matches!(self.shared, 0 | UNBEGUN), "shared writers are about");
        self.table
    }
}
