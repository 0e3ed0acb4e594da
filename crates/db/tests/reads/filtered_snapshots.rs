//! Snapshots and compaction filters: what a snapshot shows never changes while it is held, whatever
//! filters take away meanwhile. Each test pins a sentence of `CompactionFilter`'s documentation.
#![allow(clippy::disallowed_methods, reason = "threads of the test's own")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use lithify::{
    Builder, ColumnFamilyOptions, CompactOptions, CompactionFilter, Db, DbIter, Decision,
    FilterContext, ReadOptions, TransactionOptions,
};
use lithify_env::sync::Mutex;
use lithify_env::{Env, RtOptions};

use crate::common::tiny;

const KEYS: u64 = 507;

fn world() -> Env {
    Env::in_memory(RtOptions { upkeep_threads: 2, ..RtOptions::default() })
}

/// Removes keys that are odd and changes those that 10 divides. The first question of each compaction
/// while the gate is there is told, and waits for an answer.
#[derive(Default)]
struct Gated {
    gate: Mutex<Option<(Sender<()>, Receiver<()>)>>,
    asked: AtomicU64,
}

impl Gated {
    /// A gate: what hears of the question, and what answers it.
    fn shut(&self) -> (Receiver<()>, Sender<()>) {
        let (question, heard) = channel();
        let (answer, answered) = channel();
        *self.gate.lock() = Some((question, answered));
        (heard, answer)
    }
}

impl CompactionFilter for Gated {
    fn name(&self) -> &str {
        "gated"
    }
    fn filter<'a>(&self, _: &FilterContext, key: &[u8], _: &'a [u8]) -> Decision<'a> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        if let Some((question, answered)) = self.gate.lock().take() {
            question.send(()).unwrap();
            answered.recv_timeout(Duration::from_secs(60)).unwrap();
        }
        let number = u64::from_be_bytes(key.try_into().unwrap());
        match number {
            n if !n.is_multiple_of(2) => Decision::Remove,
            n if n.is_multiple_of(10) => Decision::Change(b"changed"[..].into()),
            _ => Decision::Keep,
        }
    }
}

type Content = Vec<(Vec<u8>, Vec<u8>)>;

fn content(mut all: DbIter) -> Content {
    let mut found = Content::new();
    all.seek_to_first();
    while all.valid() {
        found.push((all.key().to_vec(), all.value().to_vec()));
        all.next();
    }
    all.status().unwrap();
    found
}

/// Fails if they differ, and says in how much.
#[track_caller]
fn same(found: Content, expected: &Content) {
    let lost = expected.iter().filter(|pair| !found.contains(pair)).count();
    let more = found.iter().filter(|pair| !expected.contains(pair)).count();
    assert!(&found == expected, "of {} pairs {lost} are lost, {more} are new", expected.len());
}

fn fill(db: &Db, value: &str) {
    for n in 0..KEYS {
        db.put(n.to_be_bytes(), value).unwrap();
    }
    db.flush().unwrap();
}

fn filtered(value: &str) -> Content {
    let kept = (0..KEYS).filter(|n| n.is_multiple_of(2));
    let pair = |n: u64| {
        let value = if n.is_multiple_of(10) { "changed" } else { value };
        (n.to_be_bytes().to_vec(), value.into())
    };
    kept.map(pair).collect()
}

fn whole(value: &str) -> Content {
    (0..KEYS).map(|n| (n.to_be_bytes().to_vec(), value.into())).collect()
}

const REWRITE: CompactOptions = CompactOptions { cancel: None, rewrite: true };

fn open(env: &Env, filter: &Arc<Gated>) -> Db {
    let mut settings = tiny();
    settings.auto_compaction = false;
    settings.memtable_bytes = 1 << 20;
    Builder::new(settings).compaction_filter(filter.clone()).env(env.clone()).open("db").unwrap()
}

/// Compacts, and does `meanwhile` after the compaction's filter was asked and before its output is shown.
fn compact_while<T>(db: &Db, filter: &Gated, meanwhile: impl FnOnce() -> T) -> T {
    let (heard, answer) = filter.shut();
    std::thread::scope(|scope| {
        let compaction = scope.spawn(|| db.compact_range_opt(None, None, &REWRITE).unwrap());
        heard.recv_timeout(Duration::from_secs(60)).unwrap();
        let result = meanwhile();
        answer.send(()).unwrap();
        compaction.join().unwrap();
        result
    })
}

/// The case that was met: 490 of 507 values were gone under a snapshot that had shown them.
#[test]
fn a_snapshot_taken_during_a_filtering_compaction_keeps_its_answers() {
    let (env, filter) = (world(), Arc::new(Gated::default()));
    let db = open(&env, &filter);
    fill(&db, "first");
    let at = compact_while(&db, &filter, || {
        // Neither in the tables that are compacted nor flushed when their output is shown.
        db.put(KEYS.to_be_bytes(), "late").unwrap();
        let at = ReadOptions::at(&db.snapshot());
        assert_eq!(content(db.iter_opt(&at).unwrap()).len() as u64, KEYS + 1);
        at
    });
    let mut expected = whole("first");
    expected.push((KEYS.to_be_bytes().to_vec(), b"late".to_vec()));
    let shows = |expected: &Content| {
        same(content(db.iter_opt(&at).unwrap()), expected);
        let keys: Vec<&Vec<u8>> = expected.iter().map(|(key, _)| key).collect();
        for (key, value) in expected {
            assert_eq!(db.get_opt(key, &at).unwrap().as_deref(), Some(&value[..]));
        }
        let values = db.multi_get_opt(&keys, &at).unwrap();
        assert!(values.iter().zip(expected).all(|(v, (_, e))| v.as_deref() == Some(&e[..])));
    };
    shows(&expected);
    // Without a snapshot, and with one taken now, what the filter left is there.
    let mut now = filtered("first");
    now.push((KEYS.to_be_bytes().to_vec(), b"late".to_vec()));
    same(content(db.iter().unwrap()), &now);
    let after = ReadOptions::at(&db.snapshot());
    // Whatever comes then: other values, flushes, more compactions with the filter.
    fill(&db, "second");
    db.compact_range_opt(None, None, &REWRITE).unwrap();
    same(content(db.iter_opt(&after).unwrap()), &now);
    shows(&expected);
    let old = content(db.iter_opt(&at).unwrap());
    drop(at);
    same(old, &expected);
    drop(after);
    db.compact_range_opt(None, None, &REWRITE).unwrap();
    db.close().unwrap();
}

/// "It is not asked about what a snapshot can see that was taken before the compaction began."
#[test]
fn a_filter_is_not_asked_about_what_earlier_snapshots_see() {
    let (env, filter) = (world(), Arc::new(Gated::default()));
    let db = open(&env, &filter);
    fill(&db, "first");
    let at = ReadOptions::at(&db.snapshot());
    db.compact_range_opt(None, None, &REWRITE).unwrap();
    assert_eq!(filter.asked.load(Ordering::Relaxed), 0);
    same(content(db.iter().unwrap()), &whole("first"));
    fill(&db, "second");
    db.compact_range_opt(None, None, &REWRITE).unwrap();
    assert_eq!(filter.asked.load(Ordering::Relaxed), KEYS);
    same(content(db.iter_opt(&at).unwrap()), &whole("first"));
    same(content(db.iter().unwrap()), &filtered("second"));
    db.close().unwrap();
}

/// What such a snapshot keeps is freed with it, and one in which nothing was taken away keeps nothing.
#[test]
fn what_a_snapshot_keeps_from_a_filter_goes_with_it() {
    let (env, filter) = (world(), Arc::new(Gated::default()));
    let db = open(&env, &filter);
    fill(&db, "first");
    let tables = || {
        let all = env.fs.list(std::path::Path::new("db")).unwrap();
        all.iter().filter(|e| e.name.ends_with(".sst")).map(|e| e.name.clone()).collect::<Vec<_>>()
    };
    let before = tables();
    let held = compact_while(&db, &filter, || db.snapshot());
    let clone = held.clone();
    drop(held);
    let waits = |gone: bool| {
        let late = std::time::Instant::now() + Duration::from_secs(30);
        while tables().iter().any(|table| before.contains(table)) == gone {
            assert!(std::time::Instant::now() < late, "the old tables stay");
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    std::thread::sleep(Duration::from_millis(300));
    waits(false);
    drop(clone);
    waits(true);
    // All that is left was judged: nothing is removed or changed any more but to what it is.
    db.close().unwrap();
}

/// Each family has a filter and a tree of its own.
#[test]
fn a_snapshot_keeps_its_answers_in_every_family() {
    let (env, filter) = (world(), Arc::new(Gated::default()));
    let other = Arc::new(Gated::default());
    let db = open(&env, &filter);
    let options = ColumnFamilyOptions::new().compaction_filter(other.clone());
    let family = db.create_column_family("other", options).unwrap();
    fill(&db, "first");
    fill(&family, "other");
    let at = compact_while(&db, &filter, || {
        let at = ReadOptions::at(&db.snapshot());
        family.compact_range_opt(None, None, &REWRITE).unwrap();
        at
    });
    // The family's compaction began with the snapshot there.
    assert_eq!(other.asked.load(Ordering::Relaxed), 0);
    same(content(db.iter_opt(&at).unwrap()), &whole("first"));
    same(content(family.iter_opt(&at).unwrap()), &whole("other"));
    same(content(db.iter().unwrap()), &filtered("first"));
    drop(at);
    let at = compact_while(&family, &other, || ReadOptions::at(&db.snapshot()));
    same(content(family.iter_opt(&at).unwrap()), &whole("other"));
    same(content(family.iter().unwrap()), &filtered("other"));
    db.close().unwrap();
}

/// Transactions read at their snapshot; so do iterators that were there before.
#[test]
fn transactions_and_iterators_keep_their_answers() {
    let (env, filter) = (world(), Arc::new(Gated::default()));
    let db = open(&env, &filter);
    fill(&db, "first");
    let mut early = db.iter().unwrap();
    early.seek_to_first();
    let mut transaction = compact_while(&db, &filter, || {
        let mut transaction = db.begin_transaction(TransactionOptions::optimistic());
        transaction.set_snapshot();
        transaction
    });
    transaction.put(1u64.to_be_bytes(), "own").unwrap();
    assert_eq!(transaction.get(3u64.to_be_bytes()).unwrap().unwrap(), "first");
    let mut expected = whole("first");
    expected[1].1 = b"own".to_vec();
    same(content(transaction.iter().unwrap()), &expected);
    same(content(early), &whole("first"));
    drop(transaction);
    db.close().unwrap();
}

/// Snapshots come and go while compactions filter what a writer puts: each shows the same at its end as
/// when it was taken.
#[test]
fn snapshots_at_any_moment_keep_their_answers() {
    let (env, filter) = (world(), Arc::new(Gated::default()));
    let mut settings = tiny();
    settings.memtable_bytes = 64 << 10;
    let db = Builder::new(settings).compaction_filter(filter.clone()).env(env).open("db").unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut rng = fastrand::Rng::with_seed(1);
            while !stop.load(Ordering::Relaxed) {
                let key = rng.u64(0..2 * KEYS).to_be_bytes();
                db.put(key, rng.u64(..).to_be_bytes().repeat(8)).unwrap();
            }
        });
        for reader in 0..2 {
            let db = &db;
            scope.spawn(move || {
                let mut rng = fastrand::Rng::with_seed(reader);
                for _ in 0..150 {
                    let at = ReadOptions::at(&db.snapshot());
                    let before = content(db.iter_opt(&at).unwrap());
                    std::thread::sleep(Duration::from_millis(rng.u64(0..15)));
                    let after = content(db.iter_opt(&at).unwrap());
                    same(after, &before);
                }
            });
        }
        let began = Instant::now();
        while filter.asked.load(Ordering::Relaxed) < 20_000
            && began.elapsed() < Duration::from_secs(120)
        {
            std::thread::sleep(Duration::from_millis(10));
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(filter.asked.load(Ordering::Relaxed) >= 20_000, "the filter was hardly asked");
    assert!(db.stats().counts.compactions > 3);
    db.close().unwrap();
}
