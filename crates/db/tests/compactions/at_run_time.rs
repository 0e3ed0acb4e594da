//! What an open database does besides storing: it is paced, held back, called off, listened to, asked
//! by name, and changed.
#![allow(clippy::disallowed_methods, reason = "threads and clocks of the test's own")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use lithify::{
    Builder, CancelToken, CompactOptions, Db, DbEvent, ErrorKind, EventKind, EventListener,
    IngestOptions, Settings,
};
use lithify_env::sync::Mutex;
use lithify_env::{Env, RtOptions};

use crate::common::tiny;

fn open(settings: Settings) -> (Db, Env) {
    let env = Env::in_memory(RtOptions { upkeep_threads: 2, ..RtOptions::default() });
    (Builder::new(settings).env(env.clone()).open("db").unwrap(), env)
}

fn fill(db: &Db, keys: u64) {
    for n in 0..keys {
        db.put(n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes(), [7; 100]).unwrap();
    }
}

/// Asks again and again, for a minute: a disk that others keep busy takes seconds for a sync.
fn soon(what: &str, mut is: impl FnMut() -> bool) {
    let late = Instant::now() + Duration::from_secs(60);
    while !is() {
        assert!(Instant::now() < late, "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn tables(env: &Env) -> Vec<String> {
    let listed = env.fs.list("db".as_ref()).unwrap();
    listed.into_iter().map(|e| e.name).filter(|n| n.ends_with(".sst")).collect()
}

#[test]
fn a_pause_holds_flushes_and_compactions_and_nests() {
    let (db, env) = open(tiny());
    fill(&db, 5000);
    let outer = db.pause_background().unwrap();
    let inner = db.pause_background().unwrap();
    // What was being deleted just then goes.
    std::thread::sleep(Duration::from_millis(100));
    let before = (tables(&env), db.stats().counts.flushes);
    // More than a memtable, less than all of them.
    fill(&db, 800);
    drop(inner);
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!((tables(&env), db.stats().counts.flushes), before, "one pause is left");
    assert!(!db.wait_idle(Some(Duration::from_millis(1))).unwrap(), "a memtable waits");
    drop(outer);
    db.flush().unwrap();
    assert!(db.stats().counts.flushes > before.1);
    let pause = db.pause_background().unwrap();
    db.put(b"last", b"1").unwrap();
    db.clone().close().unwrap();
    drop(pause);
    assert_eq!(db.pause_background().unwrap_err().kind(), ErrorKind::ShuttingDown);
}

#[test]
fn a_manual_compaction_that_is_called_off_leaves_nothing_behind() {
    let mut settings = tiny();
    settings.auto_compaction = false;
    let (db, env) = open(settings);
    fill(&db, 20_000);
    db.flush().unwrap();
    let before = tables(&env);
    // Slow enough to be at work for long.
    db.set_settings(&[("background_rate", "64KiB")]).unwrap();
    let token = CancelToken::new();
    let options = CompactOptions { cancel: Some(token.clone()), ..CompactOptions::default() };
    let began = Instant::now();
    let error = std::thread::scope(|scope| {
        let compaction = scope.spawn(|| db.compact_range_opt(None, None, &options).unwrap_err());
        soon("a compaction begins", || db.stats().running_compactions > 0);
        std::thread::sleep(Duration::from_millis(50));
        token.cancel();
        compaction.join().unwrap()
    });
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert!(began.elapsed() < Duration::from_secs(9), "it did not run to its end");
    soon("its files go", || tables(&env) == before);
    assert_eq!(db.stats().running_compactions, 0);
    // The next request is served, and is not called off by it.
    db.set_settings(&[("background_rate", "0")]).unwrap();
    let error = db.compact_range_opt(None, None, &options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled, "the token stays cancelled");
    db.compact_range(None, None).unwrap();
    let (levels, counted) = (db.stats().levels, db.iter().unwrap());
    assert_eq!(levels.iter().map(|l| l.runs).sum::<usize>(), 1);
    drop(counted);
    db.close().unwrap();
}

#[test]
fn one_token_calls_off_compactions_of_several_databases() {
    let mut settings = tiny();
    settings.auto_compaction = false;
    let ((quick, _), (slow, _)) = (open(settings.clone()), open(settings));
    fill(&quick, 100);
    fill(&slow, 20_000);
    slow.flush().unwrap();
    slow.set_settings(&[("background_rate", "64KiB")]).unwrap();
    let token = CancelToken::new();
    let options = CompactOptions { cancel: Some(token.clone()), ..CompactOptions::default() };
    let error = std::thread::scope(|scope| {
        let compaction = scope.spawn(|| slow.compact_range_opt(None, None, &options));
        soon("a compaction begins", || slow.stats().running_compactions > 0);
        // It is over, and the other one, which goes by the same number there, is not.
        quick.compact_range_opt(None, None, &options).unwrap();
        token.cancel();
        compaction.join().unwrap().unwrap_err()
    });
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    quick.close().unwrap();
    slow.close().unwrap();
}

#[test]
fn background_work_keeps_to_its_rate() {
    let mut settings = tiny();
    settings.auto_compaction = false;
    settings.memtable_bytes = 512 << 10;
    settings.background_rate = 1 << 20;
    let (db, _env) = open(settings);
    let began = Instant::now();
    for _ in 0..4 {
        fill(&db, 4000);
        db.flush().unwrap();
    }
    let written = db.stats().counts.flush_bytes;
    // What the last flush moved is not waited for.
    let least = (written - written / 3) as f64 / f64::from(1 << 20);
    assert!(written > 1500 << 10, "{written}");
    assert!(began.elapsed().as_secs_f64() >= least, "{written} in {:?}", began.elapsed());
    db.close().unwrap();
}

#[derive(Default)]
struct Ears {
    heard: Mutex<Vec<(EventKind, Option<u64>)>>,
    panics: bool,
}

impl EventListener for Ears {
    fn on_event(&self, event: &DbEvent) {
        let number = ["file", "job", "files"].into_iter().find_map(|name| event.number(name));
        self.heard.lock().push((event.kind(), number));
        assert!(!self.panics, "on purpose");
    }
}

#[test]
fn listeners_hear_what_happens_and_a_panic_of_one_hurts_no_other() {
    let env = Env::in_memory(RtOptions { upkeep_threads: 2, ..RtOptions::default() });
    let (good, bad) =
        (Arc::new(Ears::default()), Arc::new(Ears { panics: true, ..Ears::default() }));
    let builder = Builder::new(tiny()).env(env).listener(bad.clone()).listener(good.clone());
    let db = builder.open("db").unwrap();
    fill(&db, 5000);
    db.compact_range(None, None).unwrap();
    db.set_settings(&[("l0_trigger", "3")]).unwrap();
    db.close().unwrap();
    let heard = good.heard.lock();
    let all = |kind| heard.iter().filter(move |(k, _)| *k == kind).map(|(_, n)| *n);
    assert_eq!(all(EventKind::FlushBegun).count(), all(EventKind::FlushDone).count());
    for done in all(EventKind::CompactionDone) {
        assert!(all(EventKind::CompactionBegun).any(|begun| begun == done), "{done:?}");
    }
    assert!(all(EventKind::FlushDone).count() > 0 && all(EventKind::CompactionDone).count() > 0);
    let created: Vec<_> = all(EventKind::TableCreated).collect();
    assert!(all(EventKind::TableDeleted).count() > 0);
    assert!(all(EventKind::TableDeleted).all(|gone| created.contains(&gone)));
    assert_eq!(all(EventKind::SettingsChanged).count(), 1);
    assert_eq!(bad.heard.lock().len(), 1, "it is not called again");
}

#[test]
fn listeners_hear_of_tables_from_outside() {
    let env = Env::in_memory(RtOptions { upkeep_threads: 2, ..RtOptions::default() });
    let ears = Arc::new(Ears::default());
    let db = Builder::new(tiny()).env(env).listener(ears.clone()).open("db").unwrap();
    for name in ["a.sst", "b.sst"] {
        let mut table = db.table_builder(name).unwrap();
        table.put(name, b"1").unwrap();
        table.finish().unwrap();
    }
    db.ingest(&["a.sst", "b.sst"], &IngestOptions::default()).unwrap();
    db.ingest(&["a.sst"; 2], &IngestOptions::default()).unwrap_err();
    db.close().unwrap();
    let heard = ears.heard.lock();
    let ingested: Vec<_> = heard.iter().filter(|(k, _)| *k == EventKind::Ingested).collect();
    assert_eq!(ingested, [&(EventKind::Ingested, Some(2))], "two tables, once");
}

#[test]
fn properties_are_what_they_are_in_rocksdb() {
    let mut settings = tiny();
    settings.auto_compaction = false;
    let (db, _env) = open(settings);
    fill(&db, 1000);
    db.flush().unwrap();
    db.put(b"a", b"1").unwrap();
    let number = |name: &str| db.int_property(name).unwrap_or_else(|| panic!("{name}"));
    assert_eq!(number("rocksdb.estimate-num-keys"), 1001);
    assert_eq!(number("rocksdb.num-entries-active-mem-table"), 1);
    assert_eq!(number("rocksdb.num-files-at-level0"), db.stats().levels[0].files as u64);
    assert_eq!(number("rocksdb.live-sst-files-size"), db.stats().disk_bytes);
    assert_eq!(number("rocksdb.num-snapshots"), 0);
    let snapshot = db.snapshot();
    assert_eq!(number("rocksdb.num-snapshots"), 1);
    assert_eq!(number("rocksdb.oldest-snapshot-sequence"), 1001);
    drop(snapshot);
    assert_eq!(number("rocksdb.is-write-stopped"), 0);
    assert_eq!(db.property("rocksdb.num-files-at-level6").as_deref(), Some("0"));
    assert!(db.property("rocksdb.stats").unwrap().contains("write amplification"));
    for unknown in ["rocksdb.num-files-at-level99", "rocksdb.nothing", "stats", ""] {
        assert_eq!(db.property(unknown), None, "{unknown}");
    }
    db.close().unwrap();
}

#[test]
fn settings_change_while_the_database_is_open() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let mut settings = tiny();
    settings.auto_compaction = false;
    let db = Db::open(&path, settings).unwrap();
    for round in 0..3 {
        db.put(b"key", [round]).unwrap();
        db.flush().unwrap();
    }
    assert!(db.wait_idle(None).unwrap());
    assert_eq!(db.stats().levels[0].runs, 3, "nothing compacts by itself");
    let told = |changes: &[(&str, &str)]| db.set_settings(changes).unwrap_err().to_string();
    let fixed = told(&[("l0_trigger", "3"), ("block_bytes", "8KiB")]);
    assert!(fixed.contains("block_bytes can't be changed while"), "{fixed}");
    assert!(told(&[("l0_triger", "3")]).contains("did you mean `l0_trigger`?"));
    assert!(told(&[("l0_trigger", "50")]).contains("must rise in this order"));
    assert_eq!(db.settings().l0_trigger, tiny().l0_trigger, "all or nothing");
    db.set_settings(&[("auto_compaction", "on"), ("l0_trigger", "3")]).unwrap();
    // All of it goes down while writes seem to go on, and as much as is too many once they rest.
    soon("level 0 is compacted", || db.stats().levels[0].runs < 3);
    db.close().unwrap();
    let (stored, file) = Settings::stored_in(&path).unwrap().expect("an OPTIONS file");
    assert!(stored.auto_compaction && stored.l0_trigger == 3 && file.starts_with("OPTIONS-"));
    assert_eq!(stored.memtable_bytes, tiny().memtable_bytes);
    let read = Db::open_read_only(&path, Settings::default()).unwrap();
    let refused = read.set_settings(&[("l0_trigger", "4")]).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ReadOnly);
}

/// Memtables are flushed at the size that is in force, and the cache has what the memtables in force leave.
#[test]
fn memtables_change_while_the_database_is_open() {
    let mut settings = tiny();
    settings.auto_compaction = false;
    (settings.memtable_bytes, settings.memtable_count) = (64 << 10, 4);
    settings.memory_budget = 32 << 20;
    let (db, env) = open(settings.clone());
    let put = |from: usize| {
        for i in from..from + 1000 {
            db.put(format!("{i:06}"), [7; 500]).unwrap();
        }
        assert!(db.wait_idle(None).unwrap());
        db.stats().levels[0].runs
    };
    let runs = put(0);
    assert!(runs >= 5, "half a megabyte fills memtables of 64 KiB: {runs}");
    let refused = db.set_settings(&[("memtable_bytes", "16MiB")]).unwrap_err().to_string();
    assert!(refused.contains("memory_budget = 33554432 leaves less than 1 MiB"), "{refused}");
    let runs = put(1000);
    assert!(runs >= 10, "what was refused is not in force: {runs}");

    for i in 0..2000 {
        assert!(db.get(format!("{i:06}")).unwrap().is_some());
    }
    let cached = db.stats().cache_bytes;
    assert!(cached > 512 << 10, "{cached}");
    db.set_settings(&[("memtable_bytes", "15MiB"), ("memtable_count", "2")]).unwrap();
    let left = db.stats().cache_bytes;
    assert!(left < cached, "memtables may take nearly all: {left} of {cached}");
    assert!(put(2000) <= runs + 1, "what was in the memtable, and no more");

    db.set_settings(&[("memtable_bytes", "64KiB"), ("memtable_count", "4")]).unwrap();
    let runs = db.stats().levels[0].runs;
    assert!(put(3000) >= runs + 5, "{:?}", db.stats().levels[0]);
    db.close().unwrap();
    let db = Builder::new(settings).env(env).open("db").unwrap();
    for i in 0..4000 {
        assert_eq!(db.get(format!("{i:06}")).unwrap().as_deref(), Some(&[7; 500][..]));
    }
    db.close().unwrap();
}
