//! Transactions: what they read, what they refuse, what is left of them.
//!
//! Histories of threads are checked for what the kind of transaction promises; savepoints, reads and
//! iterators against a model; conflicts after flushes and compactions that leave as little as they
//! may of what was written.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::common::{Content, scan, tiny, within};
use lithify::merge::Add;
use lithify::{
    Builder, Concurrency, Db, DbIter, Durability, ErrorKind, ReadOptions, Settings, Transaction,
    TransactionOptions, WriteOptions,
};
use lithify_base::{ComparatorRef, ReverseBytewise, bytewise};
use lithify_env::sync::Mutex;
use lithify_env::{Env, OsRt, Rt, RtOptions};

const LONG: Duration = Duration::from_secs(60);

fn both() -> [TransactionOptions; 2] {
    [TransactionOptions::optimistic(), TransactionOptions::pessimistic().with_lock_timeout(LONG)]
}

fn open(settings: Settings) -> Db {
    Builder::new(settings).env(Env::in_memory(RtOptions::default())).open("/db").unwrap()
}

fn number(value: Option<impl AsRef<[u8]>>) -> u64 {
    value.map_or(0, |v| u64::from_le_bytes(v.as_ref().try_into().unwrap()))
}

fn kind<T: std::fmt::Debug>(result: lithify::Result<T>) -> ErrorKind {
    result.unwrap_err().kind()
}

/// Runs `work` in transactions until one commits; how many tries that took.
fn run(
    db: &Db,
    options: &TransactionOptions,
    work: impl Fn(&mut Transaction) -> lithify::Result<()>,
) -> u64 {
    for tries in 1.. {
        let mut txn = db.begin_transaction(options.clone());
        match work(&mut txn).and_then(|()| txn.commit()) {
            Ok(()) => return tries,
            Err(e) if matches!(e.kind(), ErrorKind::Busy | ErrorKind::Deadlock) => {}
            Err(e) => panic!("{e:?}"),
        }
    }
    unreachable!()
}

// ---- what threads see of each other

/// Transfers between accounts keep the sum, for everyone who looks at any moment, while memtables
/// are flushed and compacted away under the transactions.
#[test]
fn transfers_keep_the_sum() {
    const ACCOUNTS: u64 = 12;
    const START: u64 = 1000;
    for options in both() {
        let db = open(tiny());
        for n in 0..ACCOUNTS {
            db.put(n.to_le_bytes(), START.to_le_bytes()).unwrap();
        }
        let tries = AtomicU64::new(0);
        let over = AtomicU64::new(0);
        std::thread::scope(|s| {
            for thread in 0..3u64 {
                let (db, options, tries, over) = (&db, &options, &tries, &over);
                s.spawn(move || {
                    let mut rng = fastrand::Rng::with_seed(thread);
                    for round in 0..150u64 {
                        let (from, to) = (rng.u64(0..ACCOUNTS), rng.u64(0..ACCOUNTS - 1));
                        let to = if to >= from { to + 1 } else { to };
                        let amount = rng.u64(1..20);
                        let tried = run(db, options, |txn| {
                            let rest = number(txn.get_for_update(from.to_le_bytes())?);
                            let there = number(txn.get_for_update(to.to_le_bytes())?);
                            std::thread::yield_now();
                            let amount = amount.min(rest);
                            txn.put(from.to_le_bytes(), (rest - amount).to_le_bytes())?;
                            txn.put(to.to_le_bytes(), (there + amount).to_le_bytes())?;
                            // Filling memtables.
                            txn.put((1000 + thread * 1000 + round).to_le_bytes(), [7; 700])
                        });
                        tries.fetch_add(tried, Ordering::Relaxed);
                    }
                    over.fetch_add(1, Ordering::Relaxed);
                });
            }
            let sum = |values: Vec<u64>| assert_eq!(values.iter().sum::<u64>(), ACCOUNTS * START);
            while over.load(Ordering::Relaxed) < 3 {
                let txn = db.begin_transaction(options.clone().with_snapshot());
                sum((0..ACCOUNTS).map(|n| number(txn.get(n.to_le_bytes()).unwrap())).collect());
            }
            sum((0..ACCOUNTS).map(|n| number(db.get(n.to_le_bytes()).unwrap())).collect());
        });
        // Two that wait for each other's locks are few; two that meet are not.
        let tries = tries.into_inner();
        let met = options.concurrency == Concurrency::Pessimistic || tries > 450;
        assert!(met, "no two met in {tries} tries");
        assert!(db.stats().counts.flushes > 2, "no memtable was flushed");
    }
}

/// One committed transaction of a history: values it read, values it wrote.
struct Done {
    reads: BTreeMap<u8, u64>,
    writes: BTreeMap<u8, u64>,
}

/// Whether `history` has an order in which each transaction reads what it did read: the graph of who
/// comes before whom (wrote what the other read or overwrote, read what the other overwrote) has no
/// circle. Each value says which one it followed, which gives the order of a key's values.
fn is_serializable(history: &[Done]) -> bool {
    let mut writer = BTreeMap::new();
    let mut follows = BTreeMap::new();
    for (n, done) in history.iter().enumerate() {
        for (key, value) in &done.writes {
            assert!(writer.insert((*key, *value), n).is_none(), "a value was written twice");
            let before = done.reads[key];
            if follows.insert((*key, before), n).is_some() {
                return false; // two replaced the same value: an update was lost
            }
        }
    }
    let mut after: Vec<Vec<usize>> = vec![Vec::new(); history.len()];
    for (n, done) in history.iter().enumerate() {
        for read in &done.reads {
            let read = (*read.0, *read.1);
            if let Some(w) = writer.get(&read) {
                after[*w].push(n);
            }
            if let Some(w) = follows.get(&read).filter(|w| **w != n) {
                after[n].push(*w);
            }
        }
    }
    let mut before = vec![0; history.len()];
    after.iter().flatten().for_each(|n| before[*n] += 1);
    let mut ready: Vec<usize> = (0..history.len()).filter(|n| before[*n] == 0).collect();
    let mut ordered = 0;
    while let Some(n) = ready.pop() {
        ordered += 1;
        for next in &after[n] {
            before[*next] -= 1;
            if before[*next] == 0 {
                ready.push(*next);
            }
        }
    }
    ordered == history.len()
}

/// What three threads do to three keys, each reading some and writing some of those it read.
fn random_history(options: &TransactionOptions, for_update: bool, seed: u64) -> Vec<Done> {
    let db = open(tiny());
    let history = Mutex::new(Vec::new());
    let fresh = AtomicU64::new(1);
    std::thread::scope(|s| {
        for thread in 0..3 {
            let (db, history, fresh) = (&db, &history, &fresh);
            s.spawn(move || {
                let mut rng = fastrand::Rng::with_seed(seed * 3 + thread);
                for _ in 0..60 {
                    let mut txn = db.begin_transaction(options.clone());
                    let mut done = Done { reads: BTreeMap::new(), writes: BTreeMap::new() };
                    let mut play = || -> lithify::Result<()> {
                        for _ in 0..rng.u8(1..4) {
                            let key = rng.u8(0..3);
                            if done.reads.contains_key(&key) {
                                continue;
                            }
                            let read = match for_update {
                                true => txn.get_for_update([key])?,
                                false => txn.get([key])?,
                            };
                            done.reads.insert(key, number(read));
                            std::thread::yield_now();
                            if rng.bool() {
                                let value = fresh.fetch_add(1, Ordering::Relaxed);
                                txn.put([key], value.to_le_bytes())?;
                                done.writes.insert(key, value);
                            }
                        }
                        Ok(())
                    };
                    let played = play();
                    match played.and_then(|()| txn.commit()) {
                        Ok(()) => history.lock().push(done),
                        Err(e) => {
                            let refused = [ErrorKind::Busy, ErrorKind::Deadlock];
                            assert!(refused.contains(&e.kind()), "{e:?}");
                        }
                    }
                }
            });
        }
    });
    history.into_inner()
}

/// With every read for update, histories of both kinds are serializable, with and without snapshots.
#[test]
fn reads_for_update_make_histories_serializable() {
    for options in both() {
        for options in [options.clone(), options.with_snapshot()] {
            for seed in 0..5 {
                let history = random_history(&options, true, seed);
                assert!(history.len() > 20, "{options:?}: almost nothing got through");
                assert!(is_serializable(&history), "{options:?}, seed {seed}");
            }
        }
    }
}

/// The checker sees the three anomalies that weaker reads let through.
#[test]
fn the_checker_of_histories_can_say_no() {
    let done = |reads: &[(u8, u64)], writes: &[(u8, u64)]| Done {
        reads: reads.iter().copied().collect(),
        writes: writes.iter().copied().collect(),
    };
    // One after the other.
    let one = || done(&[(0, 0)], &[(0, 1)]);
    assert!(is_serializable(&[one(), done(&[(0, 1)], &[(0, 2)])]));
    // A lost update.
    assert!(!is_serializable(&[one(), done(&[(0, 0)], &[(0, 2)])]));
    // Write skew.
    let skew = |own, value| done(&[(0, 0), (1, 0)], &[(own, value)]);
    assert!(!is_serializable(&[skew(0, 1), skew(1, 2)]));
    // A reader that sees one half of a transaction.
    let both = done(&[(0, 0), (1, 0)], &[(0, 1), (1, 2)]);
    assert!(!is_serializable(&[both, done(&[(0, 1), (1, 0)], &[])]));
}

/// What plain reads are isolated from, as documented: with a snapshot no update is lost but write
/// skew is possible; without one an update may be lost.
#[test]
fn plain_reads_give_what_is_documented() {
    for options in both() {
        let db = open(tiny());
        let snap = options.clone().with_snapshot();
        // An update on a stale read is refused with a snapshot, at the write or at the commit.
        let mut late = db.begin_transaction(snap.clone());
        assert!(late.get(b"n").unwrap().is_none());
        db.put(b"n", b"1").unwrap();
        assert!(late.get(b"n").unwrap().is_none(), "a snapshot has moved");
        assert_eq!(kind(late.put(b"n", b"late").and_then(|()| late.commit())), ErrorKind::Busy);
        assert_eq!(db.get(b"n").unwrap().unwrap(), b"1");
        // It is lost without: the read was not for update.
        let mut late = db.begin_transaction(options.clone());
        assert_eq!(late.get(b"n").unwrap().unwrap(), b"1");
        db.put(b"n", b"2").unwrap();
        assert_eq!(late.get(b"n").unwrap().unwrap(), b"2", "a read without snapshot is stale");
        late.put(b"n", b"late").unwrap();
        late.commit().unwrap();
        // Each reads what the other writes: both commit if they read plainly, one if for update.
        let snap = snap.with_lock_timeout(Duration::ZERO);
        let (mut a, mut b) =
            (db.begin_transaction(snap.clone()), db.begin_transaction(snap.clone()));
        assert!(a.get(b"y").unwrap().is_none() && b.get(b"x").unwrap().is_none());
        a.put(b"x", b"a").unwrap();
        b.put(b"y", b"b").unwrap();
        a.commit().unwrap();
        b.commit().unwrap();
        let (mut a, mut b) = (db.begin_transaction(snap.clone()), db.begin_transaction(snap));
        a.get_for_update(b"y").unwrap();
        b.get_for_update(b"x").unwrap();
        match options.concurrency {
            Concurrency::Optimistic => {
                a.put(b"x", b"a").unwrap();
                b.put(b"y", b"b").unwrap();
                a.commit().unwrap();
                assert_eq!(kind(b.commit()), ErrorKind::Busy);
            }
            Concurrency::Pessimistic => {
                assert_eq!(kind(a.put(b"x", b"a")), ErrorKind::TimedOut);
                assert_eq!(kind(b.put(b"y", b"b")), ErrorKind::TimedOut);
            }
        }
    }
}

// ---- conflicts

/// What others do to a key that a transaction relies on, as a batch of their own.
type Change = (&'static str, fn(&Db) -> lithify::Result<()>);

const CHANGES: [Change; 4] = [
    ("put", |db| db.put(b"key", b"other")),
    ("the same put", |db| db.put(b"key", b"value")),
    ("delete", |db| db.delete(b"key")),
    ("delete range", |db| db.delete_range(b"k", b"l")),
];
/// And what becomes of that before the commit.
const AFTERWARDS: [Change; 4] = [
    ("nothing", |_| Ok(())),
    ("a flush", Db::flush),
    ("a compaction", |db| db.compact_range(None, None)),
    ("two compactions", |db| {
        db.compact_range(None, None)?;
        db.put(b"kay", b"neighbour")?;
        db.delete(b"kez")?;
        db.compact_range(None, None)
    }),
];

/// A write is noticed, whatever became of it: flushed, compacted to the last level where sequence
/// numbers and deletions vanish.
#[test]
fn a_conflict_is_found_wherever_the_write_went() {
    for (what, change) in CHANGES {
        for (then, afterwards) in AFTERWARDS {
            for snapshot in [false, true] {
                for claim in ["put", "get_for_update"] {
                    let db = open(tiny());
                    for key in ["kay", "key", "kez"] {
                        db.put(key, b"value").unwrap();
                    }
                    db.compact_range(None, None).unwrap();
                    let mut options = TransactionOptions::optimistic();
                    options.snapshot = snapshot;
                    let mut txn = db.begin_transaction(options.clone());
                    let mut other = db.begin_transaction(options);
                    for (txn, key) in [(&mut txn, "key"), (&mut other, "kex")] {
                        match claim {
                            "put" => txn.put(key, b"mine").unwrap(),
                            _ => drop(txn.get_for_update(key).unwrap()),
                        }
                        txn.put("mine".to_owned() + key, b"mine").unwrap();
                    }
                    change(&db).unwrap();
                    afterwards(&db).unwrap();
                    let case = format!("{claim}, snapshot {snapshot}, {what}, then {then}");
                    let e = txn.commit().expect_err(&case);
                    assert_eq!(e.kind(), ErrorKind::Busy, "{case}: {e}");
                    assert!(e.to_string().contains("\"key\" was written"), "{e}");
                    assert!(db.get(b"minekey").unwrap().is_none(), "{case}");
                    // A range deletion is a write of all keys in its range.
                    let ended = other.commit();
                    assert_eq!(ended.is_err(), what == "delete range", "{case}: {ended:?}");
                }
            }
        }
    }
}

/// A value that came after the first claim, was read, and then deleted and compacted away with
/// its deletion. Of the key nothing is left but the moment at which it was read.
#[test]
fn a_deletion_that_left_nothing_is_found() {
    let db = open(tiny());
    let mut txn = db.begin_transaction(TransactionOptions::optimistic());
    txn.get_for_update(b"another").unwrap();
    db.put(b"key", b"young").unwrap();
    assert_eq!(txn.get_for_update(b"key").unwrap().unwrap(), b"young");
    db.delete(b"key").unwrap();
    db.compact_range(None, None).unwrap();
    txn.put(b"derived", b"young").unwrap();
    assert_eq!(kind(txn.commit()), ErrorKind::Busy);
}

/// A key that was not there, came and went is written after the snapshot; but once a compaction has
/// found that its deletion hides nothing, the key is as it was, and claiming it loses no write.
#[test]
fn a_key_that_came_and_went_is_as_it_was() {
    let db = open(tiny());
    for compacted in [false, true] {
        let begun = both().map(|options| db.begin_transaction(options.with_snapshot()));
        db.put(b"key", b"1").unwrap();
        db.delete(b"key").unwrap();
        if compacted {
            two_compactions(&db);
        }
        for mut txn in begun {
            assert!(txn.get(b"key").unwrap().is_none());
            let ended = txn.put(b"key", b"2").and_then(|()| txn.commit());
            assert_eq!(ended.is_ok(), compacted, "{ended:?}");
            assert_eq!(db.get(b"key").unwrap().is_some(), compacted);
            // For the other one it comes and goes once more.
            if compacted {
                db.delete(b"key").unwrap();
                two_compactions(&db);
            }
        }
    }
}

fn two_compactions(db: &Db) {
    let (_, change) = AFTERWARDS[3];
    change(db).unwrap();
}

/// A transaction that only read commits if its reads hold together.
#[test]
fn reads_alone_are_checked_too() {
    let db = open(tiny());
    for change in [false, true] {
        let mut txn = db.begin_transaction(TransactionOptions::optimistic());
        txn.get_for_update(b"a").unwrap();
        if change {
            db.put(b"a", b"1").unwrap();
        }
        txn.get_for_update(b"b").unwrap();
        assert_eq!(txn.commit().is_err(), change);
    }
    // Plain reads are in no one's way.
    let txn = db.begin_transaction(TransactionOptions::optimistic());
    txn.get(b"a").unwrap();
    db.put(b"a", b"2").unwrap();
    txn.commit().unwrap();
}

// ---- locks

/// A lock keeps others out until its transaction ends, in whichever way, and no longer.
#[test]
fn a_lock_ends_with_its_transaction() {
    let db = open(tiny());
    let begin = || {
        let options = TransactionOptions::pessimistic().with_lock_timeout(Duration::ZERO);
        db.begin_transaction(options)
    };
    let ends: [fn(Transaction); 4] = [
        |txn| txn.commit().unwrap(),
        |mut txn| {
            txn.rollback().unwrap();
            assert!(txn.is_empty());
        },
        drop,
        |mut txn| {
            // Back to before the lock.
            txn.rollback_to_savepoint().unwrap();
            txn.commit().unwrap();
        },
    ];
    for end in ends {
        let mut first = begin();
        first.set_savepoint();
        first.put(b"key", b"first").unwrap();
        let mut second = begin();
        let refused = second.get_for_update(b"key").unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::TimedOut);
        let holder = format!("transaction {} held", first.id());
        assert!(refused.to_string().contains(&holder), "{refused}");
        assert_eq!(kind(second.delete(b"key")), ErrorKind::TimedOut);
        second.put(b"yek", b"second").unwrap();
        end(first);
        second.put(b"key", b"second").unwrap();
        second.commit().unwrap();
        assert_eq!(db.get(b"key").unwrap().unwrap(), b"second");
    }
}

/// Who waits gets the lock when it is free, and a time-out when it is not in time.
#[test]
fn a_wait_for_a_lock_ends_in_time() {
    let db = open(tiny());
    let mut first = db.begin_transaction(TransactionOptions::pessimistic());
    first.put(b"key", b"1").unwrap();
    first.put(b"n", 41u64.to_le_bytes()).unwrap();
    let limit = Duration::from_millis(60);
    let clock = OsRt::new(RtOptions::default());
    let begun = clock.now();
    let impatient = TransactionOptions::pessimistic().with_lock_timeout(limit);
    let mut second = db.begin_transaction(impatient);
    assert_eq!(kind(second.put(b"key", b"2")), ErrorKind::TimedOut);
    let waited = clock.now() - begun;
    assert!((limit..LONG / 2).contains(&waited), "{waited:?}");
    within(LONG, "a wait for a lock", {
        let db = db.clone();
        move || {
            let patient = TransactionOptions::pessimistic().with_lock_timeout(Duration::MAX);
            let mut third = db.begin_transaction(patient);
            std::thread::scope(|s| {
                s.spawn(|| {
                    let read = number(third.get_for_update(b"n").unwrap());
                    third.put(b"n", (read + 1).to_le_bytes()).unwrap();
                    third.commit().unwrap();
                });
                first.commit().unwrap();
            });
        }
    });
    // It could only read what the first had committed.
    assert_eq!(number(db.get(b"n").unwrap()), 42);
}

/// Transactions in a circle: one is told within moments, though all would wait for a minute, and
/// the others come through.
#[test]
fn a_deadlock_is_found_at_once() {
    for length in [2u8, 3, 5] {
        let db = open(tiny());
        let refused: Vec<bool> = within(LONG / 2, "a deadlock", {
            let db = db.clone();
            move || {
                let ready = std::sync::Barrier::new(length as usize);
                std::thread::scope(|s| {
                    let all: Vec<_> = (0..length)
                        .map(|n| {
                            let (db, ready) = (&db, &ready);
                            s.spawn(move || {
                                let [_, options] = both();
                                let mut txn = db.begin_transaction(options);
                                txn.put([n], [n]).unwrap();
                                ready.wait();
                                match txn.put([(n + 1) % length], [n]) {
                                    Ok(()) => txn.commit().map(|()| false).unwrap(),
                                    Err(e) => {
                                        assert_eq!(e.kind(), ErrorKind::Deadlock, "{e}");
                                        true
                                    }
                                }
                            })
                        })
                        .collect();
                    all.into_iter().map(|t| t.join().unwrap()).collect()
                })
            }
        });
        assert_eq!(refused.iter().filter(|r| **r).count(), 1, "{refused:?}");
    }
}

// ---- one transaction against a model

/// How a database holds a key of the model.
type Form = fn(&[u8]) -> Vec<u8>;

/// A transaction and what it must show.
struct Life {
    rng: fastrand::Rng,
    form: Form,
    db: Db,
    /// What is committed, and what the transaction reads of it.
    base: Content,
    seen: Content,
    own: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    savepoints: Vec<BTreeMap<Vec<u8>, Option<Vec<u8>>>>,
}

impl Life {
    fn key(&mut self) -> Vec<u8> {
        let n = self.rng.u8(0..40);
        vec![b'k'; usize::from(n % 3)].into_iter().chain([n]).collect()
    }
    fn shown(&self) -> Content {
        let mut all = self.seen.clone();
        for (key, value) in &self.own {
            match value {
                Some(value) => all.insert(key.clone(), value.clone()),
                None => all.remove(key),
            };
        }
        all
    }
    /// A change by another writer, which the transaction sees if it has no snapshot.
    fn other(&mut self) {
        let (a, b) = (self.key(), self.key());
        if self.rng.u8(0..4) == 0 && a < b {
            // The forms of both orders ascend with the model's keys.
            self.db.delete_range((self.form)(&a), (self.form)(&b)).unwrap();
            self.base.retain(|k, _| !(&a..&b).contains(&k));
        } else {
            let value = vec![self.rng.u8(..); self.rng.usize(0..300)];
            self.db.put((self.form)(&a), &value).unwrap();
            self.base.insert(a, value);
        }
        match self.rng.u8(0..20) {
            0 => self.db.flush().unwrap(),
            1 => self.db.compact_range(None, None).unwrap(),
            _ => {}
        }
    }
    /// One walk of a fresh iterator, both ways, against what must be shown.
    fn walk(&mut self, mut iter: DbIter, content: &Content) {
        let keys: Vec<(Vec<u8>, &Vec<u8>)> =
            content.iter().map(|(k, v)| ((self.form)(k), v)).collect();
        let mut at: Option<usize> = None;
        for _ in 0..25 {
            let near = self.key();
            let from = content.range(near.clone()..).count();
            let till = content.range(..=near.clone()).count();
            let near = (self.form)(&near);
            at = match (self.rng.u8(0..8), at) {
                (0, _) => {
                    iter.seek(near);
                    (from > 0).then(|| keys.len() - from)
                }
                (1, _) => {
                    iter.seek_for_prev(near);
                    till.checked_sub(1)
                }
                (2, None) => {
                    iter.seek_to_first();
                    (!keys.is_empty()).then_some(0)
                }
                (_, None) => {
                    iter.seek_to_last();
                    keys.len().checked_sub(1)
                }
                (3..6, Some(n)) => {
                    iter.next();
                    (n + 1 < keys.len()).then_some(n + 1)
                }
                (_, Some(n)) => {
                    iter.prev();
                    n.checked_sub(1)
                }
            };
            let shown = iter.valid().then(|| (iter.key(), iter.value()));
            let expected = at.map(|n| (&keys[n].0[..], &keys[n].1[..]));
            assert_eq!(shown, expected);
            iter.status().unwrap();
        }
    }
    fn step(&mut self, txn: &mut Transaction) {
        let key = self.key();
        let form = (self.form)(&key);
        match self.rng.u8(0..100) {
            0..35 => {
                let value = vec![self.rng.u8(..); self.rng.usize(0..300)];
                txn.put(form, &value).unwrap();
                self.own.insert(key, Some(value));
            }
            35..50 => {
                txn.delete(form).unwrap();
                self.own.insert(key, None);
            }
            50..65 => {
                let expected = self.shown().remove(&key);
                assert_eq!(txn.get(form).unwrap().as_deref(), expected.as_deref());
            }
            65..72 => {
                txn.set_savepoint();
                self.savepoints.push(self.own.clone());
            }
            72..79 => match self.savepoints.pop() {
                Some(before) => {
                    txn.rollback_to_savepoint().unwrap();
                    self.own = before;
                }
                None => assert_eq!(kind(txn.rollback_to_savepoint()), ErrorKind::NotFound),
            },
            79..82 => match self.savepoints.pop() {
                Some(_) => txn.pop_savepoint().unwrap(),
                None => assert_eq!(kind(txn.pop_savepoint()), ErrorKind::NotFound),
            },
            82..84 => {
                txn.rollback().unwrap();
                self.own.clear();
                self.savepoints.clear();
            }
            _ => {
                let content = self.shown();
                let iter = txn.iter().unwrap();
                // It shows nothing of what comes later.
                if self.rng.bool() && !self.savepoints.is_empty() {
                    txn.rollback_to_savepoint().unwrap();
                    self.own = self.savepoints.pop().unwrap();
                }
                txn.put((self.form)(b"later"), b"later").unwrap();
                self.own.insert(b"later".to_vec(), Some(b"later".to_vec()));
                self.walk(iter, &content);
            }
        }
    }
}

/// Random lives: own writes over the snapshot, both ways, savepoints and rollbacks, while others
/// write, flush and compact; in byte order and in the reverse of it.
#[test]
fn a_transaction_shows_what_its_model_does() {
    let orders: [(ComparatorRef, Form); 2] = [
        (bytewise(), <[u8]>::to_vec),
        // Each byte is inverted behind a zero; the end is a one, above all that could follow.
        (std::sync::Arc::new(ReverseBytewise), |key| {
            key.iter().flat_map(|b| [0, !b]).chain([1]).collect()
        }),
    ];
    for seed in 0..24u64 {
        let (order, form) = orders[(seed % 2) as usize].clone();
        let builder = Builder::new(tiny()).comparator(order);
        let db = builder.env(Env::in_memory(RtOptions::default())).open("/db").unwrap();
        let mut life = Life {
            rng: fastrand::Rng::with_seed(seed),
            form,
            db: db.clone(),
            base: Content::new(),
            seen: Content::new(),
            own: BTreeMap::new(),
            savepoints: Vec::new(),
        };
        for _ in 0..60 {
            life.other();
        }
        let snapshot = seed % 3 != 0;
        let [options, _] = both();
        let mut txn = db.begin_transaction(match snapshot {
            true => options.with_snapshot(),
            false => options,
        });
        life.seen = life.base.clone();
        for _ in 0..120 {
            if life.rng.u8(0..3) == 0 {
                life.other();
                if !snapshot {
                    life.seen = life.base.clone();
                }
            }
            life.step(&mut txn);
        }
        // Others wrote the same keys, so it is refused, and nothing of it is there.
        let claims_met = !life.own.is_empty();
        match txn.commit() {
            Err(e) => assert_eq!(e.kind(), ErrorKind::Busy),
            Ok(()) if claims_met => {
                life.seen = life.base.clone();
                life.base = life.shown();
            }
            Ok(()) => {}
        }
        // Another one, with no other about, must get through whole.
        let mut txn = db.begin_transaction(both()[1].clone());
        life.seen = life.base.clone();
        life.own.clear();
        life.savepoints.clear();
        for _ in 0..40 {
            life.step(&mut txn);
        }
        txn.commit().unwrap();
        let expected: Content =
            life.shown().into_iter().map(|(k, v)| ((life.form)(&k), v)).collect();
        assert_eq!(scan(&db).unwrap(), expected, "seed {seed}");
    }
}

/// Merges and single deletes of a transaction over what is committed, on which others merge, too.
#[test]
fn a_transaction_merges_into_what_it_reads() {
    for options in both() {
        for seed in 0..6 {
            let builder = Builder::new(tiny()).merge_operator(std::sync::Arc::new(Add));
            let db = builder.env(Env::in_memory(RtOptions::default())).open("/db").unwrap();
            let mut rng = fastrand::Rng::with_seed(seed);
            let mut model = BTreeMap::new();
            for round in 0..12 {
                let mut txn = db.begin_transaction(options.clone());
                let mut own: BTreeMap<u8, u64> = model.clone();
                for _ in 0..25 {
                    let key = rng.u8(0..5);
                    let n = rng.u64(1..100);
                    match rng.u8(0..8) {
                        0 => {
                            txn.put([key], n.to_le_bytes()).unwrap();
                            own.insert(key, n);
                        }
                        1 => {
                            txn.delete([key]).unwrap();
                            own.remove(&key);
                        }
                        2 => {
                            // Of a key of its own, which was put once.
                            let single = [100 + round];
                            txn.put(single, n.to_le_bytes()).unwrap();
                            txn.single_delete(single).unwrap();
                            assert!(txn.get(single).unwrap().is_none());
                            break;
                        }
                        _ => {
                            txn.merge([key], n.to_le_bytes()).unwrap();
                            *own.entry(key).or_insert(0) += n;
                        }
                    }
                    let read = txn.get([key]).unwrap();
                    assert_eq!(read.map(|v| number(Some(v))), own.get(&key).copied());
                    let mut iter = txn.iter().unwrap();
                    iter.seek_to_last();
                    for (key, n) in own.iter().rev() {
                        assert_eq!((iter.key(), number(Some(iter.value()))), (&[*key][..], *n));
                        iter.prev();
                    }
                    assert!(!iter.valid());
                    iter.status().unwrap();
                }
                if rng.bool() {
                    txn.commit().unwrap();
                    model = own;
                }
                match rng.u8(0..4) {
                    0 => db.flush().unwrap(),
                    1 => db.compact_range(None, None).unwrap(),
                    _ => {}
                }
            }
            let left: BTreeMap<u8, u64> =
                scan(&db).unwrap().into_iter().map(|(k, v)| (k[0], number(Some(v)))).collect();
            assert_eq!(left, model, "seed {seed}");
        }
        // Another writer's operand is a write like any other, and no operator is told.
        let db = open(tiny());
        let mut txn = db.begin_transaction(options);
        txn.merge(b"key", b"operand").unwrap();
        assert_eq!(kind(txn.commit()), ErrorKind::InvalidArgument);
        assert!(scan(&db).unwrap().is_empty());
    }
}

// ---- options and ends

#[test]
fn a_commit_is_as_durable_as_asked() {
    for options in both() {
        let db = open(tiny());
        let syncs = |durability: Option<Durability>| {
            let before = db.stats().counts.wal_syncs;
            let write = WriteOptions { durability, no_wait: false };
            let mut txn = db.begin_transaction(options.clone().with_write(write));
            txn.put(b"key", b"value").unwrap();
            txn.commit().unwrap();
            db.stats().counts.wal_syncs - before
        };
        assert_eq!(syncs(None), 0);
        assert_eq!(syncs(Some(Durability::Sync)), 1);
        assert_eq!(syncs(Some(Durability::NoWal)), 0);
    }
}

#[test]
fn limits_are_told() {
    for options in both() {
        let db = open(tiny());
        let mut txn = db.begin_transaction(options.with_max_keys(2));
        txn.put(b"a", b"1").unwrap();
        txn.get_for_update(b"b").unwrap();
        txn.delete(b"a").unwrap();
        let e = txn.put(b"c", b"1").unwrap_err();
        assert_eq!(e.kind(), ErrorKind::LimitExceeded);
        assert!(e.to_string().contains("raise max_keys"), "{e}");
        assert_eq!(kind(txn.put(b"", b"1")), ErrorKind::LimitExceeded);
        assert_eq!(txn.len(), 2);
        txn.rollback().unwrap();
        txn.put(b"c", b"1").unwrap();
        txn.commit().unwrap();
        assert_eq!(scan(&db).unwrap().len(), 1);
    }
}

/// A transaction outlives a close no better than the handle does, and frees its locks all the same.
#[test]
fn a_transaction_does_not_outlive_the_database() {
    let db = open(tiny());
    for options in both() {
        let mut txn = db.begin_transaction(options);
        txn.put(b"key", b"value").unwrap();
        drop(txn);
    }
    let other = open(tiny());
    let mut all: Vec<Transaction> = both().map(|o| db.begin_transaction(o)).into();
    for (n, txn) in all.iter_mut().enumerate() {
        txn.put([n as u8], b"value").unwrap();
        let foreign = ReadOptions::at(&other.snapshot());
        assert_eq!(kind(txn.iter_opt(&foreign).map(|_| ())), ErrorKind::InvalidArgument);
    }
    db.close().unwrap();
    for txn in all {
        assert_eq!(kind(txn.get([0])), ErrorKind::ShuttingDown);
        assert_eq!(kind(txn.commit()), ErrorKind::ShuttingDown);
    }
}
