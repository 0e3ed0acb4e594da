//! Whatever ends, a thread may be waiting for it: none waits for ever, nothing is deleted under
//! a reader, and a closed or read-only handle leaves the directory alone (reliability F1, F20).

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the test has threads of its own and waits for background work"
)]

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use crate::common::{scan, tiny, within};
use lithify::{
    Builder, ColumnFamilyOptions, Comparator, Db, Durability, ErrorKind, IngestOptions,
    ReadOptions, Settings, WriteOptions,
};
use lithify_env::{Env, FaultFs, MemFs, OsRt, RtOptions};

const LONGEST: Duration = Duration::from_secs(20);

fn calm() -> Settings {
    let mut s = tiny();
    s.auto_compaction = false;
    s
}

fn tables(dir: &Path) -> BTreeSet<String> {
    let names = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name());
    names.map(|n| n.into_string().unwrap()).filter(|n| n.ends_with(".sst")).collect()
}

/// A table that moved has two places, and a reader may pin it at the first.
#[test]
fn a_moved_table_stays_while_its_old_place_is_pinned() {
    let scratch = tempfile::tempdir().unwrap();
    let mut settings = calm();
    settings.l0_trigger = 1;
    settings.dynamic_levels = false;
    let db = Db::open(scratch.path(), settings).unwrap();
    for i in 0..100u32 {
        db.put(i.to_be_bytes(), b"v").unwrap();
    }
    db.flush().unwrap();
    let first = tables(scratch.path());
    let mut iter = db.iter().unwrap(); // pins the table where it is, and has not opened it
    db.set_auto_compaction(true);
    db.wait_idle(None).unwrap();
    let counts = db.stats().counts;
    assert_eq!((counts.compactions, counts.trivial_moves), (0, 1), "{}", db.picture());
    db.delete_range([0], [0xff]).unwrap();
    db.compact_range(None, None).unwrap();
    std::thread::sleep(Duration::from_millis(200)); // what is not needed is deleted
    iter.seek_to_first();
    for i in 0..100u32 {
        assert!(iter.valid(), "{:?}", iter.status());
        assert_eq!(iter.key(), i.to_be_bytes());
        iter.next();
    }
    iter.status().unwrap();
    drop(iter);
    for _ in 0..100 {
        if tables(scratch.path()).is_disjoint(&first) {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("the table stays although it is not needed");
}

#[test]
fn a_closed_handle_reads_no_more() {
    let scratch = tempfile::tempdir().unwrap();
    let db = Db::open(scratch.path(), calm()).unwrap();
    db.put(b"a", b"1").unwrap();
    let other = db.clone();
    db.close().unwrap();
    assert_eq!(other.get(b"a").unwrap_err().kind(), ErrorKind::ShuttingDown);
    assert_eq!(other.multi_get(&[b"a"]).unwrap_err().kind(), ErrorKind::ShuttingDown);
    assert_eq!(other.iter().err().unwrap().kind(), ErrorKind::ShuttingDown);
    assert_eq!(other.put(b"a", b"2").unwrap_err().kind(), ErrorKind::ShuttingDown);
    assert_eq!(other.checkpoint("x").unwrap_err().kind(), ErrorKind::ShuttingDown);
}

/// Tables may be called as LevelDB calls them: they are compacted, and go once they are not needed.
#[test]
fn tables_of_the_older_name_are_compacted_and_deleted() {
    let scratch = tempfile::tempdir().unwrap();
    let older = |dir: &Path| {
        let names = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path());
        names.filter(|n| n.extension().is_some_and(|e| e == "ldb")).count()
    };
    let db = Db::open(scratch.path(), calm()).unwrap();
    for value in [b"1", b"2"] {
        db.put(b"a", value).unwrap();
        db.flush().unwrap();
    }
    db.close().unwrap();
    for name in tables(scratch.path()) {
        let path = scratch.path().join(name);
        std::fs::rename(&path, path.with_extension("ldb")).unwrap();
    }
    assert_eq!(older(scratch.path()), 2);
    let db = Db::open(scratch.path(), calm()).unwrap();
    assert_eq!(db.get(b"a").unwrap().as_deref(), Some(&b"2"[..]));
    db.compact_range(None, None).unwrap();
    within(LONGEST, "deleting tables of the older name", move || {
        while older(scratch.path()) > 0 {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(db.get(b"a").unwrap().as_deref(), Some(&b"2"[..]));
    });
}

/// Who closes a database that is being closed is told when it is, and how that went.
#[test]
fn a_second_close_waits_for_the_first() {
    let hold = Arc::new(AtomicBool::new(false));
    let fs = {
        let hold = hold.clone();
        FaultFs::new(Arc::new(MemFs::new()), move |op| {
            let flushes = op.name == "create" && op.path.extension().is_some_and(|e| e == "sst");
            while flushes && hold.load(SeqCst) {
                std::thread::sleep(Duration::from_millis(1));
            }
            flushes.then(|| std::io::Error::other("no new tables").into())
        })
    };
    let env = Env { fs: Arc::new(fs), rt: Arc::new(OsRt::new(RtOptions::default())) };
    let db = Builder::new(calm()).env(env).open("db").unwrap();
    let unlogged = WriteOptions { durability: Some(Durability::NoWal), ..WriteOptions::default() };
    db.put_opt(b"a", b"1", &unlogged).unwrap();
    hold.store(true, SeqCst);
    let closers: Vec<_> = std::iter::repeat_with(|| db.clone())
        .take(2)
        .map(|db| std::thread::spawn(move || db.close()))
        .collect();
    std::thread::sleep(Duration::from_millis(50));
    assert!(closers.iter().all(|c| !c.is_finished()), "what no log holds is not safe yet");
    hold.store(false, SeqCst);
    within(LONGEST, "two that close", move || {
        for closer in closers {
            closer.join().unwrap().expect_err("the flush fails, and both are told");
        }
    });
    drop(db);
}

/// What is on its way into the directory has names that are those of the next owner's files.
#[test]
fn a_close_waits_for_an_ingestion() {
    let hold = Arc::new(AtomicBool::new(false));
    let memory = Arc::new(MemFs::new());
    let fs = {
        let hold = hold.clone();
        FaultFs::new(memory.clone(), move |op| {
            let staged = op.path.extension().is_some_and(|e| e == "dbtmp");
            while op.name == "create" && staged && hold.load(SeqCst) {
                std::thread::sleep(Duration::from_millis(1));
            }
            None
        })
    };
    let rt = Arc::new(OsRt::new(RtOptions::default()));
    let env = Env { fs: Arc::new(fs), rt: rt.clone() };
    let db = Builder::new(calm()).env(env.clone()).open("db").unwrap();
    let mut table = Builder::new(calm()).env(env).table("table").unwrap();
    table.put(b"a", b"outside").unwrap();
    table.finish().unwrap();
    hold.store(true, SeqCst);
    let (one, other) = (db.clone(), db);
    let ingestion = std::thread::spawn(move || one.ingest(&["table"], &IngestOptions::default()));
    std::thread::sleep(Duration::from_millis(50));
    let closer = std::thread::spawn(move || other.close());
    std::thread::sleep(Duration::from_millis(50));
    assert!(!closer.is_finished(), "the lock must not go before");
    hold.store(false, SeqCst);
    within(LONGEST, "an ingestion and a close", move || {
        assert_eq!(ingestion.join().unwrap().unwrap_err().kind(), ErrorKind::ShuttingDown);
        closer.join().unwrap().unwrap();
    });
    let db = Builder::new(calm()).env(Env { fs: memory, rt }).open("db").unwrap();
    assert_eq!(db.get(b"a").unwrap(), None);
}

/// A family that was dropped refuses writes, which says nothing of the others.
#[test]
fn a_handle_of_a_dropped_family_closes_as_any_other() {
    let scratch = tempfile::tempdir().unwrap();
    let db = Db::open(scratch.path(), calm()).unwrap();
    let family = db.create_column_family("f", ColumnFamilyOptions::default()).unwrap();
    db.drop_column_family("f").unwrap();
    db.put_opt(b"a", b"1", &WriteOptions::at(Durability::NoWal)).unwrap();
    Db::clone(&family).close().unwrap();
    drop(db);
    let db = Db::open(scratch.path(), calm()).unwrap();
    assert_eq!(db.get(b"a").unwrap().as_deref(), Some(&b"1"[..]));
}

/// The log is lost, and nothing can be flushed: what was acknowledged without a sync is nowhere.
#[test]
fn a_close_says_what_is_lost() {
    let broken = Arc::new(AtomicBool::new(false));
    let fs = {
        let broken = broken.clone();
        FaultFs::new(Arc::new(MemFs::new()), move |op| {
            let fails = op.name.contains("sync") && broken.load(SeqCst);
            fails.then(|| std::io::Error::other("no sync").into())
        })
    };
    let env = Env { fs: Arc::new(fs), rt: Arc::new(OsRt::new(RtOptions::default())) };
    let db = Builder::new(calm()).env(env).open("db").unwrap();
    db.put_opt(b"a", b"1", &WriteOptions::at(Durability::Buffered)).unwrap();
    broken.store(true, SeqCst);
    let failed = db.put_opt(b"b", b"2", &WriteOptions::at(Durability::Sync)).unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::OutcomeUnknown);
    db.close().expect_err("the first write is lost");
}

/// Compaction is due in the tree that a read-only handle shows, and none of its business.
#[test]
fn a_read_only_handle_compacts_nothing() {
    let scratch = tempfile::tempdir().unwrap();
    let db = Db::open(scratch.path(), calm()).unwrap();
    for _ in 0..6 {
        db.put(b"a", b"1").unwrap();
        db.flush().unwrap();
    }
    db.close().unwrap();
    let before = tables(scratch.path());
    let db = Db::open_read_only(scratch.path(), calm()).unwrap();
    db.set_auto_compaction(true);
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(db.get(b"a").unwrap().as_deref(), Some(&b"1"[..]));
    drop(db);
    assert_eq!(tables(scratch.path()), before);
}

/// Compactions fail and pause; meanwhile they are switched off, so that nothing is due any more.
#[test]
fn a_wait_for_quiet_hears_of_it() {
    within(LONGEST, "waiting for quiet", || {
        let armed = Arc::new(AtomicBool::new(false));
        let fs = {
            let armed = armed.clone();
            FaultFs::new(Arc::new(MemFs::new()), move |op| {
                let table = op.path.extension().is_some_and(|e| e == "sst");
                let fails = armed.load(SeqCst) && table && op.name == "create";
                fails.then(|| std::io::Error::other("no new tables").into())
            })
        };
        let env = Env { fs: Arc::new(fs), rt: Arc::new(OsRt::new(RtOptions::default())) };
        let db = Builder::new(calm()).env(env).open("db").unwrap();
        for _ in 0..4 {
            db.put(b"a", b"1").unwrap();
            db.flush().unwrap();
        }
        armed.store(true, SeqCst);
        db.set_auto_compaction(true);
        let waiter = {
            let db = db.clone();
            std::thread::spawn(move || db.wait_idle(None))
        };
        while db.stats().counts.job_failures == 0 {
            std::thread::yield_now();
        }
        db.set_auto_compaction(false);
        assert!(waiter.join().unwrap().unwrap());
    });
}

/// Byte order, until a key frightens it.
#[derive(Default)]
struct Fussy(AtomicBool);

impl Comparator for Fussy {
    fn name(&self) -> &'static str {
        "test.Fussy"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let frightened = self.0.load(SeqCst) && (a == b"boo" || b == b"boo");
        assert!(!frightened, "frightened");
        a.cmp(b)
    }
}

/// A comparator that panics takes its writer down, and no other.
#[test]
fn a_write_that_panics_leaves_none_waiting() {
    within(LONGEST, "a panicking write", || {
        let scratch = tempfile::tempdir().unwrap();
        let order = Arc::new(Fussy::default());
        let open = || Builder::new(calm()).comparator(order.clone()).open(scratch.path());
        let db = open().unwrap();
        db.put(b"a", b"1").unwrap();
        db.put(b"z", b"1").unwrap();
        order.0.store(true, SeqCst);
        let outcome = catch_unwind(AssertUnwindSafe(|| db.put(b"boo", b"2")));
        assert!(outcome.is_err(), "the writer learns of the panic");
        assert_eq!(db.put(b"c", b"3").unwrap_err().kind(), ErrorKind::ReadOnly);
        assert_eq!(db.get(b"a").unwrap().as_deref(), Some(&b"1"[..]));
        db.close().unwrap();
        order.0.store(false, SeqCst);
        let db = open().unwrap();
        let content = scan(&db).unwrap();
        assert!(content.contains_key(&b"a"[..]) && content.contains_key(&b"z"[..]));
    });
}

/// The same in a flush: the job ends, its waiters are told, the database closes, nothing is lost.
#[test]
fn a_flush_that_panics_is_told() {
    within(LONGEST, "a panicking flush", || {
        let scratch = tempfile::tempdir().unwrap();
        let order = Arc::new(Fussy::default());
        let open = || Builder::new(calm()).comparator(order.clone()).open(scratch.path());
        let db = open().unwrap();
        for key in [&b"a"[..], b"boo", b"z"] {
            db.put(key, b"1").unwrap();
        }
        db.delete_range(b"b", b"c").unwrap(); // makes the flush compare
        order.0.store(true, SeqCst);
        assert_eq!(db.flush().unwrap_err().kind(), ErrorKind::Internal);
        assert_eq!(db.put(b"c", b"3").unwrap_err().kind(), ErrorKind::ReadOnly);
        db.close().unwrap();
        order.0.store(false, SeqCst);
        let db = open().unwrap();
        assert_eq!(scan(&db).unwrap().len(), 2, "all but the deleted one");
    });
}

#[test]
fn latencies_are_sampled() {
    let scratch = tempfile::tempdir().unwrap();
    let db = Db::open(scratch.path(), calm()).unwrap();
    let options = WriteOptions::at(Durability::NoWal);
    for i in 0..1000u32 {
        db.put_opt(i.to_be_bytes(), b"v", &options).unwrap();
        db.get(i.to_be_bytes()).unwrap();
    }
    db.flush().unwrap();
    let stats = db.stats();
    let samples = [stats.write_latency, stats.get_latency].map(|l| l.count);
    assert!(samples.iter().all(|n| (10..200).contains(n)), "{samples:?}");
    assert_eq!(stats.flush_duration.count, 1);
}

/// A snapshot's number means nothing in another database.
#[test]
fn a_foreign_snapshot_is_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let open = |name: &str| Db::open(scratch.path().join(name), calm()).unwrap();
    let (here, there) = (open("here"), open("there"));
    here.put(b"a", b"1").unwrap();
    let options = ReadOptions::at(&there.snapshot());
    let kinds = [
        here.get_opt(b"a", &options).unwrap_err().kind(),
        here.multi_get_opt(&[b"a"], &options).unwrap_err().kind(),
        here.iter_opt(&options).err().unwrap().kind(),
    ];
    assert_eq!(kinds, [ErrorKind::InvalidArgument; 3]);
    let own = ReadOptions::at(&here.snapshot());
    here.put(b"a", b"2").unwrap();
    assert_eq!(here.get_opt(b"a", &own).unwrap().as_deref(), Some(&b"1"[..]));
}

/// A stopped write holds the turn, and compaction, which it waits for, may never succeed.
#[test]
fn a_stopped_write_does_not_hold_up_the_close() {
    within(LONGEST, "closing beside a stopped write", || {
        let fs = FaultFs::new(Arc::new(MemFs::new()), |op| {
            let table = op.path.extension().is_some_and(|e| e == "sst");
            let thread = std::thread::current();
            let compacts = thread.name().is_some_and(|name| name.ends_with("compact"));
            let fails = table && compacts && op.name == "create";
            fails.then(|| std::io::Error::other("no compactions").into())
        });
        let env = Env { fs: Arc::new(fs), rt: Arc::new(OsRt::new(RtOptions::default())) };
        let mut settings = tiny();
        (settings.l0_slowdown, settings.l0_stop) = (3, 4);
        let db = Builder::new(settings).env(env).open("db").unwrap();
        let writer = {
            let db = db.clone();
            std::thread::spawn(move || {
                loop {
                    if let Err(e) = db.put(b"a", b"1").and_then(|()| db.flush()) {
                        return e;
                    }
                }
            })
        };
        while db.stats().levels[0].runs < 4 {
            std::thread::yield_now();
        }
        std::thread::sleep(Duration::from_millis(50)); // by now it waits
        assert!(!writer.is_finished());
        db.close().unwrap();
        assert_eq!(writer.join().unwrap().kind(), ErrorKind::ShuttingDown);
    });
}

/// A destructor that runs as its thread unwinds writes like any other code.
#[test]
fn a_write_while_a_thread_unwinds_leaves_the_database_as_it_was() {
    struct Last(Db);
    impl Drop for Last {
        fn drop(&mut self) {
            self.0.put(b"last", b"1").unwrap();
            self.0.flush().unwrap();
        }
    }
    let env = Env::in_memory(RtOptions::default());
    let db = Builder::new(calm()).env(env.clone()).open("db").unwrap();
    let buffered = WriteOptions::at(Durability::Buffered);
    db.put_opt(b"before", b"1", &buffered).unwrap();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _last = Last(db.clone());
        std::panic::resume_unwind(Box::new(0));
    }));
    assert!(panicked.is_err());
    db.put(b"next", b"1").unwrap();
    db.close().unwrap();
    let db = Builder::new(calm()).env(env).open("db").unwrap();
    assert_eq!(scan(&db).unwrap().len(), 3);
}
