//! Two-phase commit: what is prepared is not visible, keeps its locks, and is there again after whatever happens to
//! handles, memtables, logs and the database, until it is committed or rolled back.

#![allow(clippy::disallowed_methods, reason = "a test waits for what must not happen")]

use std::sync::Arc;
use std::time::Duration;

use crate::common::tiny;
use lithify::merge::Add;
use lithify::{
    Backups, BatchEntry, Builder, CheckpointOptions, ColumnFamilyOptions, Db, Durability,
    ErrorKind, Settings, Transaction, TransactionOptions, WriteBatch, WriteOptions,
};
use lithify_env::sync::Mutex;
use lithify_env::{Env, FaultFs, Fs, RtOptions};

fn settings() -> Settings {
    let mut s = tiny();
    s.auto_compaction = false;
    (s.l0_slowdown, s.l0_stop) = (1000, 2000);
    s
}

fn open_at(env: &Env, path: &str) -> Db {
    let add = Arc::new(Add);
    Builder::new(settings()).merge_operator(add).env(env.clone()).open(path).unwrap()
}

fn open(env: &Env) -> Db {
    open_at(env, "/db")
}

fn world() -> Env {
    Env::in_memory(RtOptions::default())
}

fn options() -> TransactionOptions {
    TransactionOptions::pessimistic().with_lock_timeout(Duration::ZERO)
}

fn begin(db: &Db) -> Transaction {
    db.begin_transaction(options())
}

/// One that puts `value` under `key`, prepared as `name`.
fn prepared(db: &Db, name: &str, key: &str, value: &str) -> Transaction {
    let mut txn = begin(db);
    txn.put(key, value).unwrap();
    txn.prepare(name).unwrap();
    txn
}

fn has(db: &Db, key: &str) -> Option<String> {
    db.get(key).unwrap().map(|value| String::from_utf8(value.to_vec()).unwrap())
}

fn kind<T>(result: lithify::Result<T>) -> ErrorKind {
    result.err().expect("it is refused").kind()
}

/// Whether a transaction may write `key` now.
fn is_free(db: &Db, key: &str) -> bool {
    begin(db).put(key, "").is_ok()
}

/// Names of those without a handle.
fn names(db: &Db) -> Vec<String> {
    let all = db.prepared_transactions().unwrap();
    all.iter().map(|txn| String::from_utf8(txn.name().unwrap().to_vec()).unwrap()).collect()
}

fn take(db: &Db, name: &str) -> Transaction {
    let all = db.prepared_transactions().unwrap();
    all.into_iter().find(|txn| txn.name() == Some(name.as_bytes())).expect("it is prepared")
}

/// Fills memtables, so that many logs begin and end.
fn churn(db: &Db) {
    for n in 0..6u8 {
        for k in 0..20u8 {
            db.put([b'z', n, k], [n; 400]).unwrap();
        }
        db.flush().unwrap();
    }
    db.wait_idle(None).unwrap();
    db.delete_obsolete_files().unwrap();
}

fn logs(env: &Env) -> usize {
    let listed = env.fs.list("/db".as_ref()).unwrap();
    listed.iter().filter(|entry| entry.name.ends_with(".log")).count()
}

#[test]
fn what_is_prepared_shows_once_it_is_committed() {
    let env = world();
    let db = open(&env);
    let txn = prepared(&db, "pay", "stock", "1");
    assert_eq!(txn.name(), Some(&b"pay"[..]));
    assert_eq!(has(&db, "stock"), None);
    assert!(!is_free(&db, "stock"));
    assert_eq!(txn.get("stock").unwrap().as_deref(), Some(&b"1"[..]), "its own writes it sees");
    txn.commit().unwrap();
    assert_eq!(has(&db, "stock").unwrap(), "1");
    assert!(is_free(&db, "stock"));
    let mut txn = prepared(&db, "pay", "stock", "2");
    txn.rollback().unwrap();
    assert_eq!((has(&db, "stock").unwrap(), txn.name()), ("1".to_owned(), None));
    assert!(is_free(&db, "stock"));
    // It is as one that was just begun.
    txn.put("stock", "3").unwrap();
    txn.prepare("pay").unwrap();
    txn.commit().unwrap();
    db.close().unwrap();
    let db = open(&env);
    assert_eq!(has(&db, "stock").unwrap(), "3");
    assert!(names(&db).is_empty());
    db.close().unwrap();
}

#[test]
fn what_is_refused_leaves_all_as_it_was() {
    let env = world();
    let db = open(&env);
    let mut txn = begin(&db);
    txn.put("a", "1").unwrap();
    assert_eq!(kind(txn.prepare("")), ErrorKind::InvalidArgument);
    assert_eq!(kind(txn.prepare([b'x'; 513])), ErrorKind::InvalidArgument);
    let held = prepared(&db, "pay", "b", "1");
    assert_eq!(kind(txn.prepare("pay")), ErrorKind::InvalidArgument);
    assert_eq!(txn.name(), None);
    txn.put("a", "2").unwrap();
    txn.prepare([b'x'; 512]).unwrap();
    for result in [
        txn.put("c", "1"),
        txn.delete("a"),
        txn.get_for_update("c").map(drop),
        txn.prepare("once more"),
    ] {
        assert_eq!(kind(result), ErrorKind::InvalidArgument);
    }
    assert!(is_free(&db, "c"));
    txn.commit().unwrap();
    held.commit().unwrap();
    assert_eq!((has(&db, "a").unwrap(), has(&db, "b").unwrap()), ("2".into(), "1".into()));
    let mut txn = db.begin_transaction(TransactionOptions::optimistic());
    txn.put("a", "3").unwrap();
    let refused = txn.prepare("pay").unwrap_err();
    assert!(refused.to_string().contains("pessimistic"), "{refused}");
    txn.commit().unwrap();
    // Marks of the log are not for batches.
    let marked = [&[0; 12][..], &[0xC, 3], b"pay"].concat();
    assert_eq!(kind(WriteBatch::from_encoded(marked)), ErrorKind::Unsupported);
    db.close().unwrap();
}

#[test]
fn a_handle_that_is_dropped_leaves_it_prepared() {
    let env = world();
    let db = open(&env);
    drop(prepared(&db, "pay", "stock", "1"));
    assert!(!is_free(&db, "stock"));
    assert_eq!(names(&db), ["pay"]);
    let txn = take(&db, "pay");
    assert!(names(&db).is_empty(), "each is handed out once");
    assert_eq!(txn.get("stock").unwrap().as_deref(), Some(&b"1"[..]));
    drop(txn);
    take(&db, "pay").commit().unwrap();
    assert_eq!(has(&db, "stock").unwrap(), "1");
    assert!(is_free(&db, "stock") && names(&db).is_empty());
    db.close().unwrap();
}

#[test]
fn it_is_there_again_after_each_open_until_it_is_over() {
    let env = world();
    let db = open(&env);
    let cf = db.create_column_family("cf", ColumnFamilyOptions::new()).unwrap();
    db.merge("sum", 1u64.to_le_bytes()).unwrap();
    let mut txn = begin(&db);
    txn.merge("sum", 2u64.to_le_bytes()).unwrap();
    txn.put_cf(&cf, "k", "v").unwrap();
    txn.delete("gone").unwrap();
    db.put("gone", "not yet").unwrap();
    txn.prepare("pay").unwrap();
    drop(prepared(&db, "ship", "s", "1"));
    drop((txn, cf));
    db.close().unwrap();
    for round in 0..3 {
        let db = open(&env);
        assert!(!is_free(&db, "sum") && !is_free(&db, "gone") && !is_free(&db, "s"), "{round}");
        assert!(is_free(&db, "else"));
        assert_eq!(names(&db), ["pay", "ship"]);
        churn(&db);
        assert_eq!(names(&db), ["pay", "ship"]);
        assert_eq!(has(&db, "gone").unwrap(), "not yet");
        db.close().unwrap();
    }
    let db = open(&env);
    let cf = db.column_family("cf").unwrap();
    let pay = take(&db, "pay");
    assert_eq!(pay.get("sum").unwrap().unwrap()[..], 3u64.to_le_bytes());
    assert_eq!(pay.get_cf(&cf, "k").unwrap().as_deref(), Some(&b"v"[..]));
    pay.commit().unwrap();
    take(&db, "ship").rollback().unwrap();
    for _ in 0..2 {
        assert_eq!(db.get("sum").unwrap().unwrap()[..], 3u64.to_le_bytes());
        assert_eq!((has(&db, "gone"), has(&db, "s")), (None, None));
        assert_eq!(cf.get("k").unwrap().as_deref(), Some(&b"v"[..]));
        churn(&db);
    }
    drop(cf);
    db.close().unwrap();
    let db = open(&env);
    assert_eq!(db.get("sum").unwrap().unwrap()[..], 3u64.to_le_bytes(), "merged twice");
    assert!(names(&db).is_empty() && is_free(&db, "sum"));
    db.close().unwrap();
}

/// The log that holds a section is kept, and goes with those behind it once all is over.
#[test]
fn logs_stay_for_what_is_prepared_and_no_longer() {
    let env = world();
    let db = open(&env);
    db.put("first", "1").unwrap();
    churn(&db);
    assert!(logs(&env) <= 3);
    let txn = prepared(&db, "pay", "stock", "1");
    churn(&db);
    let kept = logs(&env);
    assert!(kept >= 6, "{kept} logs");
    txn.commit().unwrap();
    // What ended it may still be lost.
    db.delete_obsolete_files().unwrap();
    assert!(logs(&env) >= kept);
    churn(&db);
    churn(&db);
    assert!(logs(&env) <= 3, "{} logs", logs(&env));
    db.close().unwrap();
}

#[test]
fn copies_have_what_is_prepared_as_prepared() {
    let env = world();
    let db = open(&env);
    let txn = prepared(&db, "pay", "stock", "1");
    churn(&db);
    db.put("late", "1").unwrap();
    db.checkpoint("/plain").unwrap();
    let with_logs = CheckpointOptions { copy_logs_below: 1 << 30 };
    db.checkpoint_opt("/logs", &with_logs).unwrap();
    let backups = Backups::open_in("/backups", env.clone()).unwrap();
    let id = backups.create(&db, &mut |_| {}).unwrap().id;
    txn.commit().unwrap();
    assert!(backups.verify(id, &mut |_| {}).unwrap().is_empty());
    backups.restore(id, "/restored", &mut |_| {}).unwrap();
    for copy in ["/plain", "/logs", "/restored"] {
        for _ in 0..2 {
            let db = open_at(&env, copy);
            assert_eq!(names(&db), ["pay"], "{copy}");
            assert_eq!(
                (has(&db, "late").unwrap(), has(&db, "stock")),
                ("1".into(), None),
                "{copy}"
            );
            db.close().unwrap();
        }
        let db = open_at(&env, copy);
        take(&db, "pay").commit().unwrap();
        churn(&db);
        assert_eq!(has(&db, "stock").unwrap(), "1", "{copy}");
        db.close().unwrap();
        let db = open_at(&env, copy);
        assert!(names(&db).is_empty(), "{copy}");
        db.close().unwrap();
    }
    // Without open transactions there is nothing more than ever in a copy.
    db.checkpoint("/after").unwrap();
    let db_after = open_at(&env, "/after");
    assert!(names(&db_after).is_empty());
    assert_eq!(has(&db_after, "stock").unwrap(), "1");
    db_after.close().unwrap();
    db.close().unwrap();
}

/// Those that follow the log see the writes of a commit, once, where it was committed.
#[test]
fn updates_are_of_what_is_committed() {
    let env = world();
    let db = open(&env);
    let since = db.snapshot().sequence() + 1;
    db.put("a", "1").unwrap();
    let pay = prepared(&db, "pay", "b", "1");
    let mut ship = prepared(&db, "ship", "c", "1");
    db.put("d", "1").unwrap();
    pay.commit().unwrap();
    ship.rollback().unwrap();
    db.put("e", "1").unwrap();
    let mut next = since;
    let mut keys = Vec::new();
    for update in db.updates_since(since).unwrap() {
        let (number, batch) = update.unwrap();
        assert_eq!(number, next);
        next += batch.len() as u64;
        keys.extend(batch.entries().map(|entry| match entry {
            BatchEntry::Put(0, key, b"1") => key.to_vec(),
            other => panic!("{other:?}"),
        }));
    }
    assert_eq!(keys, [b"a", b"d", b"b", b"e"]);
    db.close().unwrap();
}

/// What would skip the log is in it all the same, or the promise would be none.
#[test]
fn a_durability_without_a_log_logs_it() {
    let env = world();
    let db = open(&env);
    let no_log = WriteOptions { durability: Some(Durability::NoWal), ..WriteOptions::default() };
    let mut txn = db.begin_transaction(options().with_write(no_log));
    txn.put("a", "1").unwrap();
    db.put_opt("unlogged", "1", &no_log).unwrap();
    txn.prepare("pay").unwrap();
    drop(txn);
    db.close().unwrap();
    let db = open(&env);
    assert_eq!((names(&db), has(&db, "unlogged").unwrap()), (vec!["pay".to_owned()], "1".into()));
    take(&db, "pay").commit().unwrap();
    assert_eq!(has(&db, "a").unwrap(), "1");
    db.close().unwrap();
}

/// A handle that only reads shows nothing of it, and ends none.
#[test]
fn a_reader_sees_none_of_it() {
    let env = world();
    let db = open(&env);
    drop(prepared(&db, "pay", "stock", "1"));
    db.close().unwrap();
    let add = Arc::new(Add);
    let reader = Builder::new(settings()).merge_operator(add).env(env.clone());
    let reader = reader.open_read_only("/db").unwrap();
    assert_eq!(has(&reader, "stock"), None);
    assert_eq!(kind(take(&reader, "pay").commit()), ErrorKind::ReadOnly);
    assert_eq!(names(&reader), ["pay"]);
    reader.close().unwrap();
    let db = open(&env);
    take(&db, "pay").commit().unwrap();
    db.close().unwrap();
}

/// A flush is not committed before the log that says how a transaction ended is durable: else a power cut takes the end
/// away, and leaves in tables what was committed.
#[test]
fn a_flush_waits_for_what_ended_a_transaction() {
    let held = Arc::new(Mutex::new(()));
    let (gate, Env { fs, rt }) = (held.clone(), world());
    let fs: Arc<dyn Fs> = Arc::new(FaultFs::new(fs, move |op| {
        if op.path.extension().is_some_and(|end| end == "log") && op.name.starts_with("sync") {
            drop(gate.lock());
        }
        None
    }));
    let db = open(&Env { fs, rt });
    let txn = prepared(&db, "pay", "stock", "1");
    let closed = held.lock();
    txn.commit().unwrap();
    std::thread::scope(|scope| {
        let flush = scope.spawn(|| db.flush());
        // As long as that takes many times over.
        std::thread::sleep(Duration::from_millis(300));
        assert!(!flush.is_finished(), "the log is not synced yet");
        assert_eq!(db.stats().levels.iter().map(|l| l.files).sum::<usize>(), 0);
        drop(closed);
        flush.join().unwrap().unwrap();
    });
    assert_eq!(db.stats().levels.iter().map(|l| l.files).sum::<usize>(), 1);
    db.close().unwrap();
}

/// Notes fill no memtable either, in one family and in several; nor does a log grow beyond the bound where no memtable is full.
#[test]
fn notes_end_logs_and_a_small_bound_flushes() {
    for families in 0..2 {
        let (env, mut small) = (world(), settings());
        small.max_wal_bytes = 1 << 20;
        (small.memtable_bytes, small.memory_budget) = (16 << 20, 64 << 20);
        let db = Builder::new(small).env(env.clone()).open("/db").unwrap();
        for n in 0..families {
            db.create_column_family(&n.to_string(), ColumnFamilyOptions::default()).unwrap();
        }
        let lens = || {
            let listed = env.fs.list("/db".as_ref()).unwrap().into_iter();
            listed.filter(|entry| entry.name.ends_with(".log")).map(|entry| entry.len)
        };
        let longest = || lens().max().unwrap_or(0);
        for n in 0..60u32 {
            let mut batch = WriteBatch::new();
            batch.log_data([7; 200_000]).unwrap();
            db.write(&batch).unwrap();
            assert!(longest() < 3 << 20, "{n}: {:?}", lens().collect::<Vec<_>>());
        }
        let flushed = db.stats().counts.flushes;
        for n in 0..60u32 {
            db.put(n.to_be_bytes(), [7; 100_000]).unwrap();
            assert!(longest() < 3 << 20, "{n}: {:?}", lens().collect::<Vec<_>>());
        }
        assert!(db.stats().counts.flushes > flushed + 2, "6 MB with logs of 1 MiB");
        db.wait_idle(None).unwrap();
        db.delete_obsolete_files().unwrap();
        let left: u64 = lens().sum();
        assert!(left < 6 << 20, "{left} of 18 MB are left");
        db.close().unwrap();
        let db = Builder::new(settings()).env(env).open("/db").unwrap();
        assert!((0..60u32).all(|n| db.get(n.to_be_bytes()).unwrap().is_some()));
        db.close().unwrap();
    }
}

/// What is prepared and rolled back fills no memtable, and logs end all the same.
#[test]
fn logs_end_without_a_write() {
    let (env, mut small) = (world(), settings());
    small.max_wal_bytes = 1 << 20;
    let db = Builder::new(small).env(env.clone()).open("/db").unwrap();
    let lens = || {
        let listed = env.fs.list("/db".as_ref()).unwrap().into_iter();
        listed.filter(|entry| entry.name.ends_with(".log")).map(|entry| entry.len)
    };
    for _ in 0..60 {
        let mut txn = begin(&db);
        txn.put("k", [7; 200_000]).unwrap();
        txn.prepare("pay").unwrap();
        txn.rollback().unwrap();
        assert!(lens().max().unwrap() < 3 << 20, "{:?}", lens().collect::<Vec<_>>());
    }
    db.wait_idle(None).unwrap();
    db.delete_obsolete_files().unwrap();
    let left: u64 = lens().sum();
    assert!(left < 6 << 20, "{left} of 12 MB are left");
    db.close().unwrap();
}
