//! Entries of ranges as std's iterators, from both ends, against a map: every form of range, orders other than
//! that of bytes, deletions, operands, snapshots, transactions and values that expire.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::common::clock::{NOW, world};
use crate::common::tiny;
use lithify::env::{Env, MemFs, OsRt, RtOptions};
use lithify::merge::Append;
use lithify::{
    Builder, ColumnFamilyOptions, ComparatorRef, Db, Entries, ErrorKind, KeyBounds, ReadOptions,
    Result, ReverseBytewise, TransactionOptions, Value,
};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn memory() -> Env {
    let rt = OsRt::new(RtOptions { seed: Some(1), ..RtOptions::default() });
    Env { fs: Arc::new(MemFs::new()), rt: Arc::new(rt) }
}

fn open(order: Option<ComparatorRef>) -> Db {
    let builder = Builder::new(tiny()).env(memory()).merge_operator(Arc::new(Append::new(b",")));
    let builder = match order {
        Some(order) => builder.comparator(order),
        None => builder,
    };
    builder.open("/db").unwrap()
}

fn any_key(rng: &mut fastrand::Rng) -> Vec<u8> {
    let letters = (0..rng.usize(0..4)).map(|_| *rng.choice(b"ab\0\xff").unwrap());
    letters.collect()
}

/// Puts, deletions, range deletions, operands, and now and then a flush.
fn write(db: &Db, model: &mut Model, rng: &mut fastrand::Rng) {
    let key = any_key(rng);
    match rng.u8(0..40) {
        0 => db.flush().unwrap(),
        1 if db.comparator_name().contains("Bytewise") => {
            let (a, b) = (any_key(rng), any_key(rng));
            let reverse = db.comparator_name().contains("Reverse");
            let (from, to) = if (a <= b) ^ reverse { (a, b) } else { (b, a) };
            db.delete_range(&from, &to).unwrap();
            model.retain(|k, _| match reverse {
                false => *k < from || *k >= to,
                true => *k > from || *k <= to,
            });
        }
        2..8 => {
            db.delete(&key).unwrap();
            model.remove(&key);
        }
        8..12 => {
            let operand = vec![b'm'; rng.usize(1..3)];
            db.merge(&key, &operand).unwrap();
            model.entry(key).and_modify(|v| *v = [&v[..], &operand].join(&b',')).or_insert(operand);
        }
        _ => {
            let value = vec![rng.u8(..); rng.usize(0..60)];
            db.put(&key, &value).unwrap();
            model.insert(key, value);
        }
    }
}

fn owned(entry: Result<(Value, Value)>) -> (Vec<u8>, Vec<u8>) {
    let (key, value) = entry.unwrap();
    (key.into(), value.into())
}

fn any_bound(rng: &mut fastrand::Rng) -> Bound<Vec<u8>> {
    match rng.u8(0..4) {
        0 => Bound::Unbounded,
        1 => Bound::Excluded(any_key(rng)),
        _ => Bound::Included(any_key(rng)),
    }
}

/// Whether `key` is within, where `reverse` says how keys are ordered.
fn within(key: &[u8], (low, high): &(Bound<Vec<u8>>, Bound<Vec<u8>>), reverse: bool) -> bool {
    let before = |a: &[u8], b: &[u8]| if reverse { b < a } else { a < b };
    let above = match low {
        Bound::Unbounded => true,
        Bound::Included(low) => !before(key, low),
        Bound::Excluded(low) => before(low, key),
    };
    above
        && match high {
            Bound::Unbounded => true,
            Bound::Included(high) => !before(high, key),
            Bound::Excluded(high) => before(key, high),
        }
}

/// Takes from both ends as `rng` says, until nothing is left of either.
fn take(mut shown: Entries, mut wanted: VecDeque<(Vec<u8>, Vec<u8>)>, rng: &mut fastrand::Rng) {
    let (front, turns) = (rng.u8(0..=4), rng.u8(1..8));
    loop {
        let forward = rng.u8(0..4) < front;
        for _ in 0..rng.u8(0..turns) + 1 {
            let (one, other) = match forward {
                true => (shown.next(), wanted.pop_front()),
                false => (shown.next_back(), wanted.pop_back()),
            };
            assert_eq!(one.map(owned), other);
        }
        if wanted.is_empty() && rng.bool() {
            assert!(shown.next().is_none() && shown.next_back().is_none());
            return;
        }
    }
}

#[test]
fn every_range_is_that_of_a_map_from_both_ends() {
    for seed in 0..12 {
        let rng = &mut fastrand::Rng::with_seed(seed);
        let reverse = seed % 3 == 2;
        let db = open(reverse.then(|| Arc::new(ReverseBytewise) as ComparatorRef));
        let mut model = Model::new();
        for _ in 0..30 {
            (0..rng.u8(1..30)).for_each(|_| write(&db, &mut model, rng));
            let range = (any_bound(rng), any_bound(rng));
            let inside = model.iter().filter(|(k, _)| within(k, &range, reverse));
            let mut wanted: Vec<_> = inside.map(|(k, v)| (k.clone(), v.clone())).collect();
            if reverse {
                wanted.reverse();
            }
            let snapshot = db.snapshot();
            let now = db.range(range.clone());
            // What is written later is seen by neither.
            let before = model.clone();
            (0..5).for_each(|_| write(&db, &mut model, rng));
            take(now, wanted.clone().into(), rng);
            take(db.range_opt(range, &ReadOptions::at(&snapshot)), wanted.into(), rng);
            let mut all: Vec<_> = before.into_iter().collect();
            if reverse {
                all.reverse();
            }
            take(db.range_opt(.., &ReadOptions::at(&snapshot)), all.into(), rng);
        }
        db.close().unwrap();
    }
}

/// Every way to write a range down, over every type of bytes that people have at hand.
#[test]
fn ranges_are_written_as_in_rust() {
    let db = open(None);
    for key in ["a", "b", "ba", "c"] {
        db.put(key, key).unwrap();
    }
    fn keys(entries: impl Iterator<Item = Result<(Value, Value)>>) -> String {
        let key =
            |entry: Result<(Value, Value)>| String::from_utf8(entry.unwrap().0.into()).unwrap();
        entries.map(key).collect::<Vec<_>>().join(" ")
    }
    assert_eq!(keys(db.range(..)), "a b ba c");
    assert_eq!(keys(db.range("b"..)), "b ba c");
    assert_eq!(keys(db.range(.."b")), "a");
    assert_eq!(keys(db.range(..="b")), "a b");
    assert_eq!(keys(db.range("a".to_owned().."b".to_owned())), "a");
    assert_eq!(keys(db.range(vec![b'a']..=vec![b'b'])), "a b");
    assert_eq!(keys(db.range(*b"b"..*b"c")), "b ba");
    assert_eq!(keys(db.range(&b"b"[..]..&b"c"[..])), "b ba");
    let open_start = (Bound::Excluded("b"), Bound::<&str>::Unbounded);
    assert_eq!(keys(db.range(open_start)), "ba c");
    assert_eq!(keys(db.range(open_start).rev()), "c ba");
    assert_eq!(keys(db.range("b".."b")), "", "an empty range has nothing");
    assert_eq!(keys(db.range("c".."a")), "", "nor has one that ends before it starts");
    assert_eq!(keys(db.range("c".."a").rev()), "");
    assert_eq!(keys(db.prefix("b")), "b ba");
    assert_eq!(keys(db.prefix("b").rev()), "ba b");
    assert_eq!(keys(db.range(..).step_by(2)), "a ba");
    let options = ReadOptions::default().with_lower_bound("b").with_upper_bound("c");
    assert_eq!(keys(db.range_opt(.., &options)), "b ba");
    let begins = db.prefix_iter("b").unwrap();
    assert_eq!(begins.key(), b"b", "a cursor over a prefix starts at its first key");
    fn is_bounds<B: KeyBounds>(_: B) {}
    is_bounds(String::new()..);
    db.close().unwrap();
}

/// An error comes once, as an entry, and then nothing.
#[test]
fn an_error_is_the_last_entry() {
    let db = open(None);
    db.put("a", "1").unwrap();
    let other = open(None);
    let snapshot = other.snapshot();
    let mut wrong = db.range_opt(.., &ReadOptions::at(&snapshot));
    assert_eq!(wrong.next().unwrap().unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert!(wrong.next().is_none() && wrong.next_back().is_none());
    let before = db.range(..);
    db.clone().close().unwrap();
    let mut late = db.range(..);
    assert_eq!(late.next_back().unwrap().unwrap_err().kind(), ErrorKind::ShuttingDown);
    assert!(late.next().is_none());
    assert_eq!(before.count(), 1, "what was begun goes on");
    other.close().unwrap();
}

/// A value that the operator does not take ends the walk there, from either side.
#[test]
fn an_entry_that_cannot_be_combined_ends_the_walk() {
    let builder = Builder::new(tiny()).env(memory()).merge_operator(Arc::new(lithify::merge::Add));
    let db = builder.open("/db").unwrap();
    db.put("a", 1u64.to_le_bytes()).unwrap();
    db.put("b", "no number of eight bytes").unwrap();
    db.merge("b", 1u64.to_le_bytes()).unwrap();
    db.put("c", 1u64.to_le_bytes()).unwrap();
    let kinds = |entries: &mut dyn Iterator<Item = Result<(Value, Value)>>| {
        entries.map(|e| e.err().map(|e| e.kind())).collect::<Vec<_>>()
    };
    let failed = [None, Some(ErrorKind::MergeFailed)];
    assert_eq!(kinds(&mut db.range(..)), failed);
    assert_eq!(kinds(&mut db.range(..).rev()), failed);
    db.close().unwrap();
}

#[test]
fn a_transaction_shows_its_own_writes_in_ranges() {
    let db = open(None);
    let family = db.create_column_family("other", ColumnFamilyOptions::new()).unwrap();
    for key in ["a", "b", "c"] {
        db.put(key, "old").unwrap();
    }
    let mut txn = db.begin_transaction(TransactionOptions::optimistic());
    txn.put("bb", "new").unwrap();
    txn.delete("c").unwrap();
    txn.put_cf(&family, "x", "new").unwrap();
    let keys = |entries: Entries| entries.map(|e| owned(e).0).collect::<Vec<_>>();
    assert_eq!(keys(txn.range("b"..)), [b"b".to_vec(), b"bb".to_vec()]);
    assert_eq!(keys(txn.prefix("b")), [b"b".to_vec(), b"bb".to_vec()]);
    assert_eq!(keys(txn.range_cf(&family, ..)), [b"x".to_vec()]);
    assert_eq!(keys(family.range(..)).len(), 0);
    txn.commit().unwrap();
    assert_eq!(keys(family.range(..)), [b"x".to_vec()]);
    db.close().unwrap();
}

#[test]
fn what_expired_is_in_no_range() {
    let (fs, clock) = (MemFs::new(), Arc::new(AtomicU64::new(NOW)));
    let builder = Builder::new(tiny()).env(world(&fs, &clock));
    let db = builder.open_ttl("/db", Duration::from_secs(100)).unwrap();
    for n in 0..10u8 {
        db.put([b'k', n], [n; 3]).unwrap();
        clock.fetch_add(10, Ordering::SeqCst);
    }
    clock.fetch_add(45, Ordering::SeqCst);
    let alive: Vec<_> = (5..10u8).map(|n| (vec![b'k', n], vec![n; 3])).collect();
    let shown: Vec<_> = db.range(..).map(owned).collect();
    assert_eq!(shown, alive);
    let mut back: Vec<_> = db.prefix("k").rev().map(owned).collect();
    back.reverse();
    assert_eq!(back, alive);
    assert_eq!(db.range([b'k', 7]..).count(), 3);
    // A value without a time is an error, and the last thing that comes.
    db.db().put("l", "x").unwrap();
    let mut all = db.range(..);
    assert_eq!(all.by_ref().take(5).map(owned).collect::<Vec<_>>(), alive);
    assert!(all.next().unwrap().unwrap_err().is_corruption());
    assert!(all.next().is_none() && all.next_back().is_none());
    db.close().unwrap();
}

/// Families are there after `open_column_family` and after an open that makes what is missing, once.
#[test]
fn families_are_opened_or_made() {
    let env = memory();
    let options = || ColumnFamilyOptions::new().merge_operator(Arc::new(lithify::merge::Add));
    for round in 1..=2u64 {
        let db = Builder::new(tiny())
            .env(env.clone())
            .column_family("sums", options())
            .create_missing_column_families()
            .open("/db")
            .unwrap();
        let sums = db.column_family("sums").unwrap();
        sums.merge("n", 1u64.to_le_bytes()).unwrap();
        assert_eq!(sums.get("n").unwrap().unwrap(), round.to_le_bytes());
        let same = db.open_column_family("sums", ColumnFamilyOptions::new()).unwrap();
        assert_eq!(same.id(), sums.id());
        db.open_column_family("more", ColumnFamilyOptions::new()).unwrap().put("a", "1").unwrap();
        assert_eq!(db.column_families(), ["default", "sums", "more"]);
        let wrong = db.open_column_family("", ColumnFamilyOptions::new()).unwrap_err();
        assert_eq!(wrong.kind(), ErrorKind::InvalidArgument, "{wrong}");
        db.close().unwrap();
    }
    // Without being asked for, an open makes none.
    let db = Builder::new(tiny())
        .env(env)
        .column_family("not-there", ColumnFamilyOptions::new())
        .column_family("sums", options())
        .open("/db")
        .unwrap();
    assert_eq!(db.column_families(), ["default", "sums", "more"]);
    db.close().unwrap();
}

/// The same for values that expire, of which some families have none.
#[test]
fn families_of_values_that_expire_are_opened_or_made() {
    let (fs, clock) = (MemFs::new(), Arc::new(AtomicU64::new(NOW)));
    for _ in 0..2 {
        let db = Builder::new(tiny())
            .env(world(&fs, &clock))
            .column_family("short", ColumnFamilyOptions::new().ttl(Duration::from_secs(5)))
            .column_family("plain", ColumnFamilyOptions::new())
            .create_missing_column_families()
            .open_ttl("/db", Duration::from_secs(100))
            .unwrap();
        let short = db.column_family("short").unwrap();
        short.put("a", "1").unwrap();
        assert_eq!(short.range(..).count(), 1);
        clock.fetch_add(7, Ordering::SeqCst);
        assert_eq!(short.range(..).count(), 0);
        db.db().column_family("plain").unwrap().put("a", "1").unwrap();
        let again = ColumnFamilyOptions::new().ttl(Duration::from_secs(5));
        assert_eq!(db.open_column_family("short", again).unwrap().range(..).count(), 0);
        db.close().unwrap();
    }
}
