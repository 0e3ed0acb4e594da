//! Groups whose large batches their own writers insert: several threads at once in one memtable.

#![allow(clippy::disallowed_methods, reason = "threads and waits of the test's own")]

use std::cmp::Ordering;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use crate::common::{Content, scan, tiny, within};
use lithify::merge::Add;
use lithify::{
    Builder, ColumnFamilyOptions, Db, Durability, ErrorKind, Settings, WriteBatch, WriteOptions,
};
use lithify_base::Comparator;
use lithify_env::{Env, RtOptions};

const LONGEST: Duration = Duration::from_secs(60);
/// Entries of a batch that is large enough.
const LARGE: u32 = 64;

fn sharing() -> Settings {
    let mut settings = tiny();
    settings.concurrent_memtable_writes = true;
    settings
}

fn number(value: &[u8]) -> u64 {
    u64::from_le_bytes(value.try_into().unwrap())
}

/// Writers of large batches, each in a stretch of keys of its own and one counter of all. A batch
/// writes its number to all keys of its stretch but one, which a range deletion takes.
#[test]
fn what_several_insert_is_what_each_wrote() {
    const WRITERS: usize = 4;
    const ROUNDS: u64 = 40;
    within(LONGEST, "writers of large batches", || {
        for concurrent in [true, false] {
            let mut settings = tiny();
            settings.memtable_bytes = 256 << 10;
            settings.concurrent_memtable_writes = concurrent;
            let env = Env::in_memory(RtOptions::default());
            let open = || {
                Builder::new(settings.clone())
                    .merge_operator(Arc::new(Add))
                    .env(env.clone())
                    .open("/db")
                    .unwrap()
            };
            let db = open();
            let done = AtomicUsize::new(0);
            std::thread::scope(|s| {
                for w in 0..WRITERS as u8 {
                    let (db, done) = (&db, &done);
                    s.spawn(move || {
                        for round in 1..=ROUNDS {
                            let mut batch = WriteBatch::new();
                            for k in 0..LARGE as u8 {
                                batch.put([w, k], round.to_le_bytes()).unwrap();
                            }
                            batch.delete_range([w, 7], [w, 8]).unwrap();
                            batch.merge([0xff], 1u64.to_le_bytes()).unwrap();
                            let at = [Durability::Os, Durability::NoWal, Durability::Buffered];
                            let options = WriteOptions::at(at[round as usize % 3]);
                            db.write_opt(&batch, &options).unwrap();
                            // What is acknowledged is seen at once.
                            assert_eq!(number(&db.get([w, 3]).unwrap().unwrap()), round);
                            assert!(db.get([w, 7]).unwrap().is_none());
                        }
                        done.fetch_add(1, SeqCst);
                    });
                }
                let mut last = [0; WRITERS];
                let mut count = 0;
                while done.load(SeqCst) < WRITERS {
                    check(&scan(&db).unwrap(), &mut last, &mut count);
                }
            });
            let all = scan(&db).unwrap();
            check(&all, &mut [ROUNDS; WRITERS], &mut (WRITERS as u64 * ROUNDS));
            let own = db.stats().counts.own_inserts;
            assert!(concurrent || own == 0, "{own} batches were inserted side by side");
            db.close().unwrap();
            assert_eq!(scan(&open()).unwrap(), all);
        }
    });
}

/// Each stretch shows one batch as a whole, no older one than was seen before, and the counter counts
/// exactly the batches that are seen.
fn check(content: &Content, last: &mut [u64], count: &mut u64) {
    let mut seen = 0;
    for (w, last) in last.iter_mut().enumerate() {
        let of = |k: u32| content.get(&[w as u8, k as u8][..]).map_or(0, |v| number(v));
        let round = of(0);
        assert!((1..LARGE).all(|k| of(k) == if k == 7 { 0 } else { round }), "half a batch");
        assert!(round >= *last, "a write was seen and is gone");
        *last = round;
        seen += round;
    }
    let counted = content.get(&[0xff][..]).map_or(0, |v| number(v));
    assert_eq!(counted, seen, "writes are not seen in the order of their numbers");
    assert!(seen >= *count);
    *count = seen;
}

/// Keeps writers where the test wants them: a thread that compares `hold` stays until told, who compares
/// `left` or `right` waits for the other a moment, and `trap` panics once it is armed. Who compares `behind`
/// stays until told, too, and then panics if the trap is armed.
#[derive(Default)]
struct Stage {
    held: AtomicBool,
    go: AtomicBool,
    met: [AtomicBool; 2],
    together: AtomicBool,
    armed: AtomicBool,
    behind: AtomicBool,
    go_on: AtomicBool,
}

impl Stage {
    fn act(&self, key: &[u8]) {
        match key {
            b"hold" => {
                self.held.store(true, SeqCst);
                wait(Duration::from_secs(20), || self.go.load(SeqCst));
            }
            b"left" | b"right" if !self.together.load(SeqCst) => {
                let me = usize::from(key == b"right");
                self.met[me].store(true, SeqCst);
                let met = || self.met[1 - me].load(SeqCst) || self.together.load(SeqCst);
                if wait(Duration::from_millis(300), met) {
                    self.together.store(true, SeqCst);
                }
                self.met[me].store(false, SeqCst);
            }
            b"behind" if !self.go_on.load(SeqCst) => {
                self.behind.store(true, SeqCst);
                wait(Duration::from_secs(20), || self.go_on.load(SeqCst));
                assert!(!self.armed.load(SeqCst), "trapped");
            }
            b"trap" => assert!(!self.armed.load(SeqCst), "trapped"),
            _ => {}
        }
    }
}

fn wait(most: Duration, until: impl Fn() -> bool) -> bool {
    let mut left = most.as_millis();
    while !until() && left > 0 {
        std::thread::sleep(Duration::from_millis(1));
        left -= 1;
    }
    until()
}

impl Comparator for Stage {
    fn name(&self) -> &'static str {
        "stage"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        // The key that is being inserted; it meets others that are there already.
        self.act(b);
        a.cmp(b)
    }
}

/// How a write ended: its result, or its panic.
type End = std::thread::Result<lithify::Result<()>>;

/// Two large batches in one group, the first one's writer holding the turn. Once both are being
/// inserted, the one that `trapped` names panics. The database after that, and how both ended.
fn side_by_side(trapped: Option<usize>) -> (Arc<Stage>, Env, Db, Vec<End>) {
    for attempt in 1..=40 {
        let stage = Arc::new(Stage::default());
        let env = Env::in_memory(RtOptions::default());
        let db = open(&stage, &env);
        db.put(b"first", b"1").unwrap();
        stage.armed.store(true, SeqCst);
        let ends: Vec<End> = std::thread::scope(|s| {
            s.spawn(|| db.put(b"hold", b"1").unwrap());
            assert!(wait(Duration::from_secs(20), || stage.held.load(SeqCst)));
            let writers = [b"left".as_slice(), b"right"].map(|key| {
                let mut batch = WriteBatch::new();
                batch.put(key, b"1").unwrap();
                if trapped.is_some_and(|at| [b"left".as_slice(), b"right"][at] == key) {
                    batch.put(b"trap", b"1").unwrap();
                }
                (0..LARGE).for_each(|n| batch.put([key, &n.to_be_bytes()].concat(), b"1").unwrap());
                let db = &db;
                let writer = s.spawn(move || catch_unwind(AssertUnwindSafe(|| db.write(&batch))));
                // The first in the line is the next who holds the turn.
                std::thread::sleep(Duration::from_millis(5 * attempt));
                writer
            });
            stage.go.store(true, SeqCst);
            writers.into_iter().map(|w| w.join().unwrap()).collect()
        });
        if stage.together.load(SeqCst) {
            return (stage, env, db, ends);
        }
    }
    panic!("two large batches of one group were never inserted side by side");
}

fn open(stage: &Arc<Stage>, env: &Env) -> Db {
    Builder::new(sharing()).comparator(stage.clone()).env(env.clone()).open("/db").unwrap()
}

#[test]
fn a_waiter_inserts_beside_the_holder() {
    within(LONGEST, "two batches side by side", || {
        let (_, _, db, ends) = side_by_side(None);
        assert!(ends.iter().all(|end| matches!(end, Ok(Ok(())))));
        assert_eq!(db.stats().counts.own_inserts, 1);
        assert_eq!(scan(&db).unwrap().len(), 2 + 2 * (LARGE as usize + 1));
    });
}

/// Whichever of the two panics, the other is told that the outcome is not known, nothing of either is seen, and
/// writing ends until the next open, which shows them whole: the log has both.
#[test]
fn a_panic_beside_others_is_told_to_all() {
    within(LONGEST, "a panic beside others", || {
        for trapped in [0, 1] {
            let (stage, env, db, ends) = side_by_side(Some(trapped));
            assert!(ends[trapped].is_err(), "the writer learns of the panic");
            let other = ends[1 - trapped].as_ref().unwrap().as_ref().unwrap_err();
            assert_eq!(other.kind(), ErrorKind::OutcomeUnknown);
            assert_eq!(scan(&db).unwrap().len(), 2);
            assert_eq!(db.put(b"later", b"1").unwrap_err().kind(), ErrorKind::ReadOnly);
            db.close().unwrap();
            stage.armed.store(false, SeqCst);
            let db = open(&stage, &env);
            assert_eq!(scan(&db).unwrap().len(), 3 + 2 * (LARGE as usize + 1));
        }
    });
}

/// In a group with batches of other families those are the holder's, and one number orders them all.
#[test]
fn families_and_large_batches_share_groups() {
    within(LONGEST, "families and large batches", || {
        let db =
            Builder::new(sharing()).env(Env::in_memory(RtOptions::default())).open("/db").unwrap();
        let side = db.create_column_family("side", ColumnFamilyOptions::new()).unwrap();
        std::thread::scope(|s| {
            for w in 0..4u8 {
                let (db, side) = (&db, &side);
                s.spawn(move || {
                    for round in 0..30u64 {
                        let mut batch = WriteBatch::new();
                        for k in 0..LARGE as u8 {
                            batch.put([w, k], round.to_le_bytes()).unwrap();
                        }
                        if w % 2 == 0 {
                            batch.put_cf(side, [w], round.to_le_bytes()).unwrap();
                        }
                        db.write(&batch).unwrap();
                    }
                });
            }
        });
        let all = scan(&db).unwrap();
        assert!(all.len() == 4 * LARGE as usize && all.values().all(|v| number(v) == 29));
        for w in [0u8, 2] {
            assert_eq!(number(&side.get([w]).unwrap().unwrap()), 29);
        }
    });
}

/// A database where the put of `behind` is in the log, and its writer, who inserts it, has passed the turn
/// on; then `meanwhile` has begun, until `is_far` says that it is as far as it comes before that writer ends.
/// How both ended.
fn behind_the_turn<T: Send>(
    armed: bool,
    meanwhile: impl Fn(&Db) -> T + Sync,
    is_far: impl Fn(&Db, u64) -> bool,
) -> (Arc<Stage>, Env, Db, std::thread::Result<lithify::Result<()>>, T) {
    let stage = Arc::new(Stage::default());
    let env = Env::in_memory(RtOptions::default());
    let db = open(&stage, &env);
    db.put(b"first", b"1").unwrap();
    // One that finds the turn taken: for a while others are taken to be about.
    for attempt in 1..=40 {
        stage.go.store(false, SeqCst);
        stage.held.store(false, SeqCst);
        let waited = std::thread::scope(|s| {
            s.spawn(|| db.put(b"hold", b"1").unwrap());
            assert!(wait(Duration::from_secs(20), || stage.held.load(SeqCst)));
            let second = s.spawn(|| db.put(b"second", b"1").unwrap());
            std::thread::sleep(Duration::from_millis(5 * attempt));
            let waits = !second.is_finished();
            stage.go.store(true, SeqCst);
            waits
        });
        if waited {
            break;
        }
    }
    stage.armed.store(armed, SeqCst);
    let (first, second) = std::thread::scope(|s| {
        let first = s.spawn(|| catch_unwind(AssertUnwindSafe(|| db.put(b"behind", b"1"))));
        assert!(wait(Duration::from_secs(20), || stage.behind.load(SeqCst)));
        let logged = db.stats().counts.wal_bytes;
        let second = s.spawn(|| meanwhile(&db));
        assert!(wait(Duration::from_secs(20), || is_far(&db, logged)), "it waits for the turn");
        assert!(!second.is_finished());
        assert_eq!(db.get(b"next").unwrap(), None);
        stage.go_on.store(true, SeqCst);
        (first.join().unwrap(), second.join().unwrap())
    });
    (stage, env, db, first, second)
}

/// While one inserts, the next one is at the log; it is seen after the first.
#[test]
fn the_next_is_at_the_log_while_one_inserts() {
    within(LONGEST, "two halves of writes side by side", || {
        let next = |db: &Db| db.put(b"next", b"2");
        let logged = |db: &Db, before| db.stats().counts.wal_bytes > before;
        let (_, _, db, first, second) = behind_the_turn(false, next, logged);
        assert!(matches!((first, second), (Ok(Ok(())), Ok(()))));
        assert_eq!(db.get(b"next").unwrap().as_deref(), Some(&b"2"[..]));
        assert_eq!(db.get(b"behind").unwrap().as_deref(), Some(&b"1"[..]));
    });
}

/// What takes the turn for more than a write finds all before it in the memtable.
#[test]
fn a_flush_waits_for_what_is_inserted_behind_the_turn() {
    within(LONGEST, "a flush and an insert", || {
        let soon = |_: &Db, _| {
            std::thread::sleep(Duration::from_millis(20));
            true
        };
        let (stage, env, db, first, flushed) = behind_the_turn(false, |db| db.flush(), soon);
        assert!(matches!((first, flushed), (Ok(Ok(())), Ok(()))));
        assert_eq!(db.stats().counts.flushes, 1);
        db.close().unwrap();
        assert_eq!(open(&stage, &env).get(b"behind").unwrap().as_deref(), Some(&b"1"[..]));
    });
}

/// If the one that inserts panics, the next one, which is in the log, is told that its outcome is not known. Neither
/// is seen before the next open, which shows both.
#[test]
fn a_panic_behind_the_turn_is_told_to_the_next() {
    within(LONGEST, "a panic behind the turn", || {
        let next = |db: &Db| db.put(b"next", b"2");
        let logged = |db: &Db, before| db.stats().counts.wal_bytes > before;
        let (stage, env, db, first, second) = behind_the_turn(true, next, logged);
        assert!(first.is_err(), "the writer learns of the panic");
        assert_eq!(second.unwrap_err().kind(), ErrorKind::OutcomeUnknown);
        assert_eq!(db.put(b"later", b"1").unwrap_err().kind(), ErrorKind::ReadOnly);
        let seen: Vec<_> = scan(&db).unwrap().into_keys().collect();
        assert_eq!(seen, [&b"first"[..], b"hold", b"second"]);
        db.close().unwrap();
        stage.armed.store(false, SeqCst);
        let content = scan(&open(&stage, &env)).unwrap();
        assert!(content.contains_key(&b"behind"[..]) && content.contains_key(&b"next"[..]));
    });
}
