//! The memtable against its naive twin: random operations, all directions, several shapes of keys
//! and orders.

use std::cmp::Ordering;
use std::sync::Arc;

use lithify_base::{Comparator, ComparatorRef, Kind, MAX_SEQ, ReverseBytewise, Tag, bytewise};
use lithify_memtable::naive::{Entry, Naive};
use lithify_memtable::{HeapPool, MemIter, MemTable, MemTableOptions, MemWriter, entry_sum};

const KINDS: [Kind; 4] = [Kind::Value, Kind::Delete, Kind::Merge, Kind::SingleDelete];
const ENTRIES: usize = if cfg!(miri) { 80 } else { 6_000 };
const PROBES: usize = if cfg!(miri) { 12 } else { 1_000 };
/// Entries from one range tombstone to the next.
const STRIDE: u64 = if cfg!(miri) { 19 } else { 97 };
const LONG: usize = if cfg!(miri) { 70 } else { 700 };

fn table(order: ComparatorRef, bloom: bool) -> (Arc<MemTable>, MemWriter) {
    let arena_bytes = if cfg!(miri) { 1 << 14 } else { 1 << 22 };
    MemTable::new(MemTableOptions { order, arena_bytes, bloom }, Arc::new(HeapPool))
}

/// Orders by length first, and calls upper and lower case equal.
struct Odd;
impl Comparator for Odd {
    fn name(&self) -> &'static str {
        "odd"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.len().cmp(&b.len()).then_with(|| a.to_ascii_lowercase().cmp(&b.to_ascii_lowercase()))
    }
}

type KeyShape = fn(&mut fastrand::Rng) -> Vec<u8>;

fn random_16(rng: &mut fastrand::Rng) -> Vec<u8> {
    rng.u128(..).to_be_bytes().to_vec()
}
fn short(rng: &mut fastrand::Rng) -> Vec<u8> {
    let alphabet = [0, 1, b'a', b'A', 0xff];
    (0..rng.usize(0..5)).map(|_| alphabet[rng.usize(..alphabet.len())]).collect()
}
fn padded_with_zeros(rng: &mut fastrand::Rng) -> Vec<u8> {
    let mut key = vec![b'k'; rng.usize(0..3)];
    key.resize(key.len() + rng.usize(0..20), 0);
    key
}
fn user(rng: &mut fastrand::Rng) -> Vec<u8> {
    format!("user{:012}", rng.u32(..100_000)).into_bytes()
}
fn long_prefix(rng: &mut fastrand::Rng) -> Vec<u8> {
    let place = ["europe/germany/berlin", "europe/germany/bonn", "asia"][rng.usize(..3)];
    format!("a/very/long/common/prefix/{place}/{}", rng.u32(..30_000)).into_bytes()
}
fn very_long(rng: &mut fastrand::Rng) -> Vec<u8> {
    let mut key = vec![b'x'; rng.usize(0..3) * LONG];
    key.extend_from_slice(&rng.u16(..500).to_be_bytes());
    key
}

const SHAPES: [KeyShape; 6] = [random_16, short, padded_with_zeros, user, long_prefix, very_long];

fn fill(shape: KeyShape, order: &ComparatorRef, bloom: bool) -> (Arc<MemTable>, Naive) {
    let mut rng = fastrand::Rng::with_seed(7);
    let (table, mut writer) = table(order.clone(), bloom);
    let mut twin = Naive::new(order.clone());
    let mut sum = 0u64;
    for seq in 1..=ENTRIES as u64 {
        let key = shape(&mut rng);
        let kind = KINDS[rng.usize(..KINDS.len())];
        let value = vec![seq as u8; rng.usize(0..40)];
        writer.add(seq, kind, &key, &value);
        twin.add(seq, kind, &key, &value);
        sum = sum.wrapping_add(entry_sum(&key, Tag::new(seq, kind), value.len()));
        if seq % STRIDE == 0 {
            let (lo, hi) = (shape(&mut rng), shape(&mut rng));
            writer.add_range_delete(seq, &lo, &hi);
            twin.add_range_delete(seq, &lo, &hi);
        }
    }
    let table_again = writer.freeze();
    assert!(Arc::ptr_eq(&table, &table_again));
    assert_eq!(table.ledger(), (ENTRIES as u64, sum));
    (table, twin)
}

fn here(iter: &MemIter) -> Option<Entry> {
    iter.valid().then(|| (iter.user_key().to_vec(), iter.tag(), iter.value().to_vec()))
}

fn compare(table: &Arc<MemTable>, twin: &Naive, shape: KeyShape) {
    assert!(table.walk().eq(twin.all()), "walk");
    let mut iter = table.iter();
    assert!(!iter.valid());
    iter.seek_to_first();
    for (key, tag, value) in twin.all() {
        assert_eq!((iter.user_key(), iter.tag(), iter.value()), (key, tag, value));
        iter.next();
    }
    assert!(!iter.valid());
    iter.seek_to_last();
    for (key, tag, value) in twin.all().rev() {
        assert_eq!((iter.user_key(), iter.tag(), iter.value()), (key, tag, value));
        iter.prev();
    }
    assert!(!iter.valid());

    let mut rng = fastrand::Rng::with_seed(8);
    let known: Vec<_> = twin.all().map(|(key, tag, _)| (key.to_vec(), tag)).collect();
    for i in 0..PROBES {
        // Known internal keys exactly, their neighbours, and keys that are probably absent.
        let (mut key, mut tag) = known[rng.usize(..known.len())].clone();
        match i % 4 {
            0 => {}
            1 => tag = Tag::seek(rng.u64(..ENTRIES as u64 + 10)),
            2 => (key, tag) = (shape(&mut rng), Tag(u64::MAX)),
            _ => tag = Tag(0),
        }
        iter.seek(&key, tag);
        assert_eq!(here(&iter), twin.seek(&key, tag), "seek {key:?} {tag:?}");
        iter.seek_for_prev(&key, tag);
        assert_eq!(here(&iter), twin.seek_for_prev(&key, tag), "seek_for_prev {key:?} {tag:?}");
        let at = [MAX_SEQ, tag.seq(), rng.u64(..ENTRIES as u64)][rng.usize(..3)];
        let versions: Vec<_> = twin.versions(&key, at).collect();
        assert_eq!(table.entries(&key, at).collect::<Vec<_>>(), versions);
        assert_eq!(table.get_newest(&key, at), versions.first().copied());
        assert_eq!(table.covering(&key, at), twin.covering(&key, at));
    }
}

#[test]
fn every_answer_matches_the_twin() {
    let orders: [ComparatorRef; 3] = [bytewise(), Arc::new(ReverseBytewise), Arc::new(Odd)];
    for (o, order) in orders.iter().enumerate() {
        for (s, shape) in SHAPES.into_iter().enumerate() {
            for bloom in [true, false] {
                // Each order and each shape, not each pair of them: a step takes a thousand times as long there.
                if cfg!(miri) && (s % orders.len() != o || !bloom) {
                    continue;
                }
                let (table, twin) = fill(shape, order, bloom);
                compare(&table, &twin, shape);
            }
        }
    }
}

/// A walk taken up again behind any entry goes on with the very next one.
#[test]
fn a_walk_can_be_taken_up_anywhere() {
    const RECORDS: u64 = if cfg!(miri) { 50 } else { 500 };
    let options =
        MemTableOptions { order: lithify_base::bytewise(), arena_bytes: 1 << 20, bloom: false };
    let (table, mut writer) = MemTable::new(options, Arc::new(HeapPool));
    for i in 0..RECORDS {
        let key = (i * 7919 % 251).to_be_bytes();
        writer.add(i + 1, lithify_base::Kind::Value, &key, b"v");
    }
    let all: Vec<_> = table.walk().map(|(k, t, _)| (k.to_vec(), t)).collect();
    assert_eq!(all.len(), RECORDS as usize);
    for (i, (key, tag)) in all.iter().enumerate() {
        let rest: Vec<_> = table.walk_after(key, *tag).map(|(k, t, _)| (k.to_vec(), t)).collect();
        assert_eq!(rest, all[i + 1..]);
    }
}
