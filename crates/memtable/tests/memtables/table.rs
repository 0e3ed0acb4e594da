//! What a memtable says about itself: memory, counters, bounds, range tombstones, odd entries.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lithify_base::{KeyRange, Kind, MAX_SEQ, Tag, bytewise};
use lithify_env::{OutOfMemory, RegionPool};
use lithify_memtable::{
    ArenaChunk, ArenaPool, HeapPool, MemIter, MemTable, MemTableOptions, MemWriter, entry_sum,
};

fn with_pool(arena_bytes: usize, pool: Arc<dyn ArenaPool>) -> (Arc<MemTable>, MemWriter) {
    MemTable::new(MemTableOptions { order: bytewise(), arena_bytes, bloom: true }, pool)
}

fn small() -> (Arc<MemTable>, MemWriter) {
    with_pool(1 << 16, Arc::new(HeapPool))
}

/// Tables are read by all threads, writers and iterators move between them.
const _: () = {
    const fn shared<T: Send + Sync + 'static>() {}
    const fn moved<T: Send + 'static>() {}
    shared::<MemTable>();
    moved::<MemWriter>();
    moved::<MemIter>();
};

#[test]
fn an_empty_table_answers_nothing() {
    let (table, _writer) = small();
    assert!(table.is_empty() && !table.has_range_tombstones());
    assert_eq!(table.get_newest(b"", MAX_SEQ), None);
    assert_eq!(table.entries(b"a", MAX_SEQ).next(), None);
    assert_eq!((table.bounds(), table.first_seq(), table.last_seq()), (None, None, None));
    assert_eq!(table.ledger(), (0, 0));
    assert_eq!(table.walk().next(), None);
    assert!(!table.overlaps(&KeyRange::incl(&b""[..], &b"z"[..])));
    let mut iter = table.iter();
    iter.seek_to_last();
    assert!(!iter.valid());
    iter.seek(b"", Tag(u64::MAX));
    assert!(!iter.valid());
}

#[test]
fn versions_come_newest_first_and_stop_at_the_key() {
    let (table, mut writer) = small();
    for seq in 1..=500 {
        writer.add(seq, Kind::Merge, b"k", &seq.to_le_bytes());
        writer.add(seq + 1000, Kind::Value, b"k\0", b"");
    }
    for at in [0, 1, 2, 250, 500, MAX_SEQ] {
        let seqs: Vec<_> = table.entries(b"k", at).map(|(tag, _)| tag.seq()).collect();
        assert_eq!(seqs, (1..=at.min(500)).rev().collect::<Vec<_>>());
    }
    let (tag, value) = table.get_newest(b"k", 77).unwrap();
    assert_eq!((tag, value), (Tag::new(77, Kind::Merge), &77u64.to_le_bytes()[..]));
    assert_eq!(table.entries(b"j", MAX_SEQ).count(), 0);
}

#[test]
#[cfg_attr(miri, ignore = "10 MiB are too many")]
fn memory_is_counted_honestly() {
    let (table, mut writer) = small();
    let start = table.bytes();
    let mut payload = 0;
    for i in 0..2_000u64 {
        let value = vec![7; (i % 300) as usize];
        writer.add(i + 1, Kind::Value, &i.to_le_bytes(), &value);
        payload += 8 + value.len();
    }
    let used = table.bytes() - start;
    assert!(used > payload + 2_000 * 16, "entries and their headers are counted");
    assert!(used < payload + 2_000 * 16 + 2_000 * 64, "the index costs less than 64 B an entry");
    assert!(table.reserved_bytes() >= table.bytes());
    assert!(table.reserved_bytes() <= table.bytes() + (64 << 10));

    let before = table.bytes();
    writer.add(9_000, Kind::Value, b"large", &vec![1; 10 << 20]);
    let grown = table.bytes() - before;
    assert!((10 << 20..(10 << 20) + (64 << 10) + 64).contains(&grown));
    writer.add_range_delete(9_001, b"a", &[b'b'; 1000]);
    assert!(table.bytes() > before + grown + 1000);
    assert_eq!(table.get_newest(b"large", MAX_SEQ).unwrap().1.len(), 10 << 20);
}

#[test]
#[cfg_attr(miri, ignore = "maps memory")]
fn regions_go_back_when_the_last_user_leaves() {
    let pool = RegionPool::new(64 << 20);
    let (table, mut writer) = with_pool(1 << 20, Arc::new(pool.clone()));
    for i in 0..30_000u64 {
        writer.add(i + 1, Kind::Value, &i.to_be_bytes(), &[0; 200]);
    }
    let rest = table.reserved_bytes() - pool.in_use();
    assert!(rest < 2 << 10, "what an empty table takes is not the pool's");
    let mut iter = writer.freeze().iter();
    drop(table);
    iter.seek_to_last();
    assert_eq!(iter.user_key(), 29_999u64.to_be_bytes());
    drop(iter);
    assert_eq!(pool.in_use(), 0);

    // A recycled region is full of old records; none of them may show.
    let (table, mut writer) = with_pool(1 << 20, Arc::new(pool));
    assert!((0..30_000u64).all(|i| table.get_newest(&i.to_be_bytes(), MAX_SEQ).is_none()));
    writer.add(1, Kind::Value, b"x", b"y");
    assert_eq!(
        table.walk().collect::<Vec<_>>(),
        [(&b"x"[..], Tag::new(1, Kind::Value), &b"y"[..])]
    );
}

#[test]
#[cfg_attr(miri, ignore = "maps memory")]
fn a_table_takes_memory_of_its_pool_when_it_is_written_to() {
    let pool = RegionPool::new(64 << 20);
    let (table, mut writer) = with_pool(64 << 20, Arc::new(pool.clone()));
    assert!(table.get_newest(b"a", MAX_SEQ).is_none() && table.is_empty());
    assert!(table.bounds().is_none() && table.walk().next().is_none());
    writer.add_range_delete(1, b"a", b"b");
    assert_eq!(pool.in_use(), 0, "nothing was added");
    assert!(table.reserved_bytes() < 4 << 10, "{}", table.reserved_bytes());
    writer.add(2, Kind::Value, b"a", b"1");
    assert!(pool.in_use() >= 2 << 20);
    assert!(!table.may_contain(b"b"), "the filter has its lines");
    assert_eq!(table.get_newest(b"a", MAX_SEQ).unwrap().1, b"1");

    // Frozen as it was made, or shared before anything else.
    let (_, writer) = with_pool(64 << 20, Arc::new(pool.clone()));
    assert!(writer.freeze().is_empty());
    let (table, mut writer) = with_pool(64 << 20, Arc::new(pool));
    let mut share = writer.share(1, 2).unwrap();
    share.add(1, Kind::Value, b"k", b"v");
    writer.take_back(share);
    assert_eq!(table.get_newest(b"k", MAX_SEQ).unwrap().1, b"v");
}

/// Has no memory as long as it is told so.
struct Poor(AtomicBool);

impl ArenaPool for Poor {
    fn chunk(&self, bytes: usize) -> Result<Box<dyn ArenaChunk>, OutOfMemory> {
        if self.0.load(Ordering::Relaxed) {
            Err(OutOfMemory { bytes })
        } else {
            HeapPool.chunk(bytes)
        }
    }
    fn granule(&self) -> usize {
        HeapPool.granule()
    }
}

#[test]
fn a_table_that_finds_no_memory_for_its_first_entry_is_as_it_was() {
    let pool = Arc::new(Poor(AtomicBool::new(true)));
    let (table, mut writer) = with_pool(1 << 16, pool.clone());
    let before = table.reserved_bytes();
    assert!(writer.try_reserve(1, 2).is_err() && writer.try_reserve(1, 2).is_err());
    assert_eq!((table.reserved_bytes(), table.is_empty()), (before, true));
    pool.0.store(false, Ordering::Relaxed);
    writer.try_reserve(1, 2).unwrap();
    writer.add(1, Kind::Value, b"k", b"v");
    assert!(table.may_contain(b"k") && !table.may_contain(b"l"));
}

#[test]
fn range_tombstones_are_kept_beside_the_entries() {
    let (table, mut writer) = small();
    writer.add(5, Kind::Value, b"m", b"1");
    writer.add_range_delete(7, b"c", b"f");
    writer.add_range_delete(9, b"e", b"z");
    writer.add_range_delete(11, b"z", b"z");
    writer.add_range_delete(12, b"z", b"a");
    assert_eq!((table.range_deletes(), table.entry_count()), (2, 1));
    assert_eq!((table.first_seq(), table.last_seq()), (Some(5), Some(9)));
    assert_eq!(table.covering(b"e", MAX_SEQ), Some(9));
    assert_eq!(table.covering(b"e", 8), Some(7));
    assert_eq!(table.covering(b"e", 6), None);
    assert_eq!(table.covering(b"f", 8), None);
    assert_eq!(table.covering(b"z", MAX_SEQ), None);
    let (lo, hi) = table.bounds().unwrap();
    assert_eq!((&*lo, &*hi), (&b"c"[..], &b"z"[..]));
    assert!(!table.range().unwrap().hi.inclusive);
    assert!(table.overlaps(&KeyRange::incl(&b"d"[..], &b"d"[..])));
    assert!(!table.overlaps(&KeyRange::incl(&b"a"[..], &b"b"[..])));
    assert!(!table.overlaps(&KeyRange::incl(&b"z"[..], &b"zz"[..])));
    let first = table.range_tombstones();
    assert!(Arc::ptr_eq(&first, &table.range_tombstones()), "the snapshot is shared");
    writer.add_range_delete(20, b"a", b"b");
    assert_eq!((first.len(), table.range_tombstones().len()), (2, 3));
    assert_eq!(table.ledger(), (1, entry_sum(b"m", Tag::new(5, Kind::Value), 1)));
}

#[test]
fn overlap_looks_between_entries() {
    let (table, mut writer) = small();
    for i in (0..1000u16).step_by(10) {
        writer.add(u64::from(i) + 1, Kind::Value, &i.to_be_bytes(), b"");
    }
    let key = |i: u16| i.to_be_bytes().to_vec();
    assert!(table.overlaps(&KeyRange::incl(key(500), key(500))));
    assert!(!table.overlaps(&KeyRange::incl(key(501), key(509))));
    assert!(!table.overlaps(&KeyRange::excl(key(501), key(510))));
    assert!(table.overlaps(&KeyRange::incl(key(501), key(510))));
    assert!(!table.overlaps(&KeyRange::incl(key(991), key(2000))));
}

#[test]
fn a_repeated_internal_key_harms_nothing() {
    let (table, mut writer) = small();
    for i in 0..300u64 {
        writer.add(3, Kind::Value, b"same", &i.to_le_bytes());
        writer.add(i + 10, Kind::Value, &[b'r', i as u8], b"");
    }
    assert_eq!(table.walk().count(), 600);
    assert!(table.get_newest(b"same", MAX_SEQ).is_some());
}

#[test]
#[cfg_attr(miri, ignore = "80,000 entries are too many")]
fn descending_and_ascending_fills_stay_small() {
    let fill = |key: fn(u64) -> u64| {
        let (table, mut writer) = small();
        for i in 0..20_000 {
            writer.add(i + 1, Kind::Value, &key(i).to_be_bytes(), b"");
        }
        assert!(table.walk().is_sorted_by(|a, b| a.0 < b.0));
        assert_eq!(table.walk().count(), 20_000);
        table.bytes() as f64 / 20_000.0 - 24.0
    };
    // 17 B an entry in full leaves; 34 B in half-full ones.
    let (up, down) = (fill(|i| i), fill(|i| u64::MAX - i));
    let streams = fill(|i| (i % 7) << 32 | i);
    // Full leaves, then a hole behind every one of them that is filled downwards.
    let holes = fill(|i| if i < 10_000 { i << 20 } else { ((20_000 - i) << 20) - i });
    assert!(
        up < 21.0 && down < 42.0 && streams < 24.0 && holes < 42.0,
        "{up} {down} {streams} {holes}"
    );
}
