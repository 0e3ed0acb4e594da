//! Several writers with shares of one table: nothing is lost, doubled or out of order,
//! whichever of them meet; readers beside them see all that was published; and the one writer goes on where they ended.

use std::cmp::Ordering::Less;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use lithify_base::{Comparator, ComparatorRef, Kind, MAX_SEQ, ReverseBytewise, Seq, Tag, bytewise};
use lithify_memtable::naive::Naive;
use lithify_memtable::{Audit, HeapPool, MemTable, MemTableOptions, MemWriter, SharedWriter};

const WRITERS: u64 = 4;
/// Entries of one share.
const EACH: u64 = if cfg!(miri) { 12 } else { 400 };
const GROUPS: u64 = if cfg!(miri) { 2 } else { 12 };
/// The longest key and value.
const BYTES: usize = 36 + 90;

/// The key written with number `seq`. Shapes differ in how often writers meet in a leaf.
fn key(shape: u64, seq: Seq) -> Vec<u8> {
    let scattered = seq.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    match shape {
        0 => scattered.to_be_bytes().to_vec(),
        // All at the end.
        1 => seq.to_be_bytes().to_vec(),
        // Each writer ascends by itself, and prefixes grow.
        2 => format!("a/prefix/of/some/length/{}/{seq:08}", seq / EACH % WRITERS).into_bytes(),
        // A few keys with many versions.
        _ => vec![b'k', (scattered % 7) as u8],
    }
}

fn value(seq: Seq) -> Vec<u8> {
    format!("{seq:>0$}", (seq % 90) as usize).into_bytes()
}

fn table(order: ComparatorRef, bloom: bool) -> (Arc<MemTable>, MemWriter) {
    // Far less than goes in, so that chunks end while others write.
    MemTable::new(MemTableOptions { order, arena_bytes: 1 << 12, bloom }, Arc::new(HeapPool))
}

/// What share `at` of the group from `first` on adds.
fn numbers(first: Seq, at: u64) -> std::ops::Range<Seq> {
    first + at * EACH..first + (at + 1) * EACH
}

fn fill(writer: &mut SharedWriter, shape: u64, numbers: std::ops::Range<Seq>) {
    for seq in numbers {
        match seq % 97 {
            0 => writer.add_range_delete(seq, &key(0, seq), b"\xff\xff"),
            1 => writer.add(seq, Kind::Delete, &key(shape, seq), b""),
            _ => writer.add(seq, Kind::Value, &key(shape, seq), &value(seq)),
        }
    }
}

/// Points and scans at what is published, until `done`.
fn read(table: &Arc<MemTable>, shape: u64, published: &AtomicU64, done: &AtomicBool) {
    let mut rng = fastrand::Rng::with_seed(shape);
    while !done.load(Ordering::Acquire) {
        let last = published.load(Ordering::Acquire);
        for seq in (0..20.min(last)).map(|_| rng.u64(1..=last)).filter(|seq| seq % 97 > 1) {
            let (tag, found) = table.get_newest(&key(shape, seq), seq).expect("published");
            assert_eq!((tag.seq(), found), (seq, &value(seq)[..]));
        }
        let entries = (1..=last).filter(|seq| seq % 97 != 0).count();
        assert_eq!(table.walk().filter(|(_, tag, _)| tag.seq() <= last).count(), entries);
    }
}

fn write_together(shape: u64, order: &ComparatorRef, bloom: bool) {
    let (table, mut writer) = table(order.clone(), bloom);
    let mut naive = Naive::new(order.clone());
    let (published, done) = (AtomicU64::new(0), AtomicBool::new(false));
    let mut next: Seq = 1;
    std::thread::scope(|scope| {
        let (table, published, done) = (&table, &published, &done);
        let reader = scope.spawn(move || read(table, shape, published, done));
        for _ in 0..GROUPS {
            let bytes = EACH as usize * BYTES;
            writer.try_reserve((WRITERS * EACH) as usize, WRITERS as usize * bytes).unwrap();
            let threads: Vec<_> = (0..WRITERS)
                .map(|at| {
                    let mut share = writer.share(EACH as usize, bytes).unwrap();
                    scope.spawn(move || {
                        fill(&mut share, shape, numbers(next, at));
                        share
                    })
                })
                .collect();
            threads.into_iter().for_each(|thread| writer.take_back(thread.join().unwrap()));
            next += WRITERS * EACH;
            // And alone again.
            writer.add(next, Kind::Value, &key(shape, next), &value(next));
            published.store(next, Ordering::Release);
            next += 1;
        }
        done.store(true, Ordering::Release);
        reader.join().expect("the reader is content");
    });
    let alone = WRITERS * EACH + 1;
    for seq in 1..next {
        match seq % 97 {
            _ if seq % alone == 0 => naive.add(seq, Kind::Value, &key(shape, seq), &value(seq)),
            0 => naive.add_range_delete(seq, &key(0, seq), b"\xff\xff"),
            1 => naive.add(seq, Kind::Delete, &key(shape, seq), b""),
            _ => naive.add(seq, Kind::Value, &key(shape, seq), &value(seq)),
        }
    }
    assert!(table.walk().eq(naive.all()), "shape {shape}: in order, and all of it");
    let mut audit = Audit::default();
    naive.all().for_each(|(key, tag, value)| audit.take(key, tag, value.len()));
    audit.settle(&table).unwrap();
    assert_eq!((table.first_seq(), table.last_seq()), (Some(1), Some(next - 1)));
    for seq in (1..next).step_by(13).filter(|seq| seq % 97 != 0) {
        assert!(table.get_newest(&key(shape, seq), MAX_SEQ).is_some());
        assert_eq!(
            table.covering(&key(shape, seq), seq),
            naive.covering(&key(shape, seq), seq),
            "shape {shape}, {seq}"
        );
    }
}

#[test]
fn what_several_write_is_what_one_would() {
    for shape in 0..4 {
        write_together(shape, &bytewise(), shape % 2 == 0);
    }
    write_together(0, &(Arc::new(ReverseBytewise) as ComparatorRef), true);
}

#[test]
fn the_one_writer_waits_for_its_shares() {
    let (table, mut writer) = table(bytewise(), false);
    let share = writer.share(1, 2).unwrap();
    let add = |writer: &mut MemWriter| {
        catch_unwind(AssertUnwindSafe(|| writer.add(1, Kind::Value, b"k", b"v"))).is_ok()
    };
    assert!(!add(&mut writer), "two kinds of writers at once");
    assert!(catch_unwind(AssertUnwindSafe(|| writer.try_reserve(1, 1))).is_err());
    writer.take_back(share);
    assert!(add(&mut writer));
    assert_eq!(table.entry_count(), 1);
    // A share takes what it is for, and no byte more.
    let mut share = writer.share(2, 5).unwrap();
    share.add(2, Kind::Value, b"key", b"v");
    share.add(3, Kind::Value, b"k", b"");
    let more = catch_unwind(AssertUnwindSafe(|| share.add(4, Kind::Value, &[7; 99], b"")));
    assert!(more.is_err());
    writer.take_back(share);
    assert_eq!((table.entry_count(), table.last_seq()), (3, Some(3)));
}

/// Panics at the key `!`.
struct Picky;
impl Comparator for Picky {
    fn name(&self) -> &'static str {
        "picky"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
        assert!(a != b"!" && b != b"!", "no such key, please");
        a.cmp(b)
    }
}

/// A comparator that panics in one writer holds no other up.
#[test]
fn a_panic_leaves_no_window_open() {
    const EACH: u16 = if cfg!(miri) { 12 } else { 250 };
    let (table, mut writer) = table(Arc::new(Picky), false);
    let mut shares = [writer.share(500, 2_000).unwrap(), writer.share(500, 2_000).unwrap()];
    for n in 0..EACH {
        for (at, share) in shares.iter_mut().enumerate() {
            let key = n.to_be_bytes();
            share.add(2 * u64::from(n) + at as u64 + 1, Kind::Value, &key, b"v");
            let bad = || share.add(1, Kind::Value, b"!", b"");
            assert!(catch_unwind(AssertUnwindSafe(bad)).is_err() || n == 0);
        }
    }
    shares.into_iter().for_each(|share| writer.take_back(share));
    let met: Vec<(Vec<u8>, Tag)> = table.walk().map(|(k, tag, _)| (k.to_vec(), tag)).collect();
    assert!(met.is_sorted_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)) == Less));
    assert_eq!(met.len(), 2 * usize::from(EACH));
}
