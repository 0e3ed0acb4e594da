//! Many tables and few descriptors: the usual limit of a process is far below what a large tree has.
//! Each case is a process of its own under a limit that the shell sets (reliability F5).
#![allow(clippy::disallowed_methods, reason = "real processes, real files")]

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use lithify::{Builder, CompactOptions, Db, ErrorKind, Settings};
use lithify_env::{Env, FaultFs, OsRt, PosixFs, RtOptions};

/// Descriptors that a child may have.
const LIMIT: usize = 64;
const KEYS: u32 = 12_000;
/// Names the directory of a child.
const CHILD: &str = "LITHIFY_DESCRIPTORS";

/// Settings that make hundreds of small tables.
fn settings() -> Settings {
    let mut s = crate::common::tiny();
    s.file_bytes = 16 << 10;
    s.level_base_bytes = 4 << 20;
    s.memory_budget = 4 << 20;
    s
}

fn key(n: u32) -> Vec<u8> {
    // All over the key space, and each once.
    n.wrapping_mul(0x9e37_79b1).to_be_bytes().to_vec()
}

fn value(n: u32) -> Vec<u8> {
    let mut value = vec![n as u8; 600];
    fastrand::Rng::with_seed(n.into()).fill(&mut value[4..]);
    value
}

/// Runs the test `name` of this file in a child with few descriptors.
fn under_a_limit(name: &str) {
    let scratch = tempfile::tempdir().unwrap();
    let this = std::env::current_exe().unwrap();
    let shell = format!("ulimit -n {LIMIT} && exec \"$0\" --exact descriptors::{name} --nocapture");
    let mut child = Command::new("sh");
    child.arg("-c").arg(shell).arg(this).env(CHILD, scratch.path());
    assert!(child.status().unwrap().success(), "{name} fails under a limit");
}

/// The child's directory; `None` in the parent, after it has run the child.
fn child(name: &str) -> Option<String> {
    let place = std::env::var(CHILD).ok();
    if place.is_none() {
        under_a_limit(name);
    }
    place
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Fills a database with far more tables than descriptors.
fn fill(db: &Db) -> usize {
    for n in 0..KEYS {
        db.put(key(n), value(n)).unwrap();
    }
    db.compact_range(None, None).unwrap();
    let tables = db.stats().levels.iter().map(|l| l.files).sum();
    assert!(tables > 4 * LIMIT, "only {tables} tables");
    tables
}

fn read_everything(db: &Db, seed: u64) {
    let mut rng = fastrand::Rng::with_seed(seed);
    for _ in 0..4_000 {
        let n = rng.u32(0..KEYS);
        assert_eq!(db.get(key(n)).unwrap().as_deref(), Some(&*value(n)));
    }
    let mut iter = db.iter().unwrap();
    let mut count = 0;
    iter.seek_to_first();
    while iter.valid() {
        count += 1;
        iter.next();
    }
    iter.status().unwrap();
    assert_eq!(count, KEYS);
}

#[test]
fn a_tree_far_larger_than_the_limit_is_written_and_read() {
    let Some(place) = child("a_tree_far_larger_than_the_limit_is_written_and_read") else { return };
    let db = Db::open(&place, settings()).unwrap();
    let tables = fill(&db);
    std::thread::scope(|s| {
        for seed in 0..3 {
            let db = &db;
            s.spawn(move || read_everything(db, seed));
        }
    });
    println!("{tables} tables, {} descriptors of {LIMIT}", descriptors());
    db.close().unwrap();
    let db = Db::open(&place, settings()).unwrap();
    read_everything(&db, 9);
    db.close().unwrap();
    let db = Db::open_read_only(&place, settings()).unwrap();
    read_everything(&db, 10);
}

/// An iterator that outlives its database shows the rest of it, or an error.
#[test]
fn an_iterator_outlives_a_database_with_too_many_tables() {
    let name = "an_iterator_outlives_a_database_with_too_many_tables";
    let Some(place) = child(name) else { return };
    let db = Db::open(&place, settings()).unwrap();
    fill(&db);
    let mut iter = db.iter().unwrap();
    iter.seek_to_first();
    let mut sorted: Vec<u32> = (0..KEYS).collect();
    sorted.sort_by_key(|n| key(*n));
    db.close().unwrap();
    let next = Db::open(&place, settings()).unwrap();
    next.delete_range([], [0xff; 5]).unwrap();
    next.compact_range(None, None).unwrap();
    let mut expected = sorted.iter();
    while iter.valid() {
        let n = *expected.next().unwrap();
        assert_eq!((iter.key(), iter.value()), (&*key(n), &*value(n)));
        iter.next();
    }
    match iter.status() {
        Ok(()) => assert_eq!(expected.next(), None, "it ends early and does not say so"),
        Err(e) => assert_eq!(e.kind(), ErrorKind::Io, "{e}"),
    }
    next.close().unwrap();
}

#[test]
fn a_cap_of_ones_own_holds() {
    let scratch = tempfile::tempdir().unwrap();
    let mut s = settings();
    s.max_open_files = Some(16);
    let db = Db::open(scratch.path(), s.clone()).unwrap();
    fill(&db);
    read_everything(&db, 3);
    let open = tables_open(scratch.path());
    assert!((1..=16).contains(&open), "{open} tables are open");
    db.close().unwrap();
    s.max_open_files = Some(15);
    let error = Db::open(scratch.path(), s).unwrap_err();
    assert!(error.to_string().contains("max_open_files = 15"), "{error}");
}

/// Tables of `place` that this process has open.
fn tables_open(place: &Path) -> usize {
    let all = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    let paths = all.filter_map(|entry| std::fs::read_link(entry.path()).ok());
    let place = place.canonicalize().unwrap();
    paths.filter(|p| p.starts_with(&place) && p.extension().is_some_and(|e| e == "sst")).count()
}

/// Logs on a disk that takes long to sync them are deleted, and closed, as soon as what they held is
/// in tables.
#[test]
fn logs_that_sync_slowly_do_not_stay_open() {
    let scratch = tempfile::tempdir().unwrap();
    let slow = FaultFs::new(Arc::new(PosixFs::new()), |op| {
        if op.name == "sync_data" && op.path.extension().is_some_and(|e| e == "log") {
            std::thread::sleep(Duration::from_millis(300));
        }
        None
    });
    let env = Env { fs: Arc::new(slow), rt: Arc::new(OsRt::new(RtOptions::default())) };
    let db = Builder::new(crate::common::tiny()).env(env).open(scratch.path().join("db")).unwrap();
    let logs = || {
        let links = std::fs::read_dir("/proc/self/fd").unwrap();
        let files = links.filter_map(|fd| std::fs::read_link(fd.ok()?.path()).ok());
        files
            .filter(|f| f.starts_with(scratch.path()) && f.to_string_lossy().contains(".log"))
            .count()
    };
    let (mut flushed, mut most) = (0, 0);
    for n in 0.. {
        db.put(key(n), value(n)).unwrap();
        if n % 50 == 0 {
            db.flush().unwrap();
            flushed += 1;
            std::thread::sleep(Duration::from_millis(2));
            most = most.max(logs());
            if flushed == 300 {
                break;
            }
        }
    }
    // What was written within two looks of the upkeep, and the one that is being synced.
    assert!(most < 60, "{most} logs open, of {flushed}");
    db.close().unwrap();
}

/// A follower holds every table of its views open. Where the process may not open so many, catching
/// up says so, and the view that there is stays.
#[test]
fn a_follower_without_descriptors_keeps_its_view() {
    let Some(place) = child("a_follower_without_descriptors_keeps_its_view") else { return };
    let mut s = settings();
    s.auto_compaction = false;
    s.max_open_files = Some(16);
    let primary = Db::open(&place, s.clone()).unwrap();
    let tables = |from: u32, to: u32| {
        for n in from..to {
            primary.put(key(n), value(n)).unwrap();
            primary.flush().unwrap();
        }
    };
    let count = |db: &Db| {
        let mut all = db.iter().unwrap();
        let mut count = 0;
        all.seek_to_first();
        while all.valid() {
            count += 1;
            all.next();
        }
        all.status().map(|()| count)
    };
    tables(0, 15);
    let follower = Db::open_follower(&place, s.clone()).unwrap();
    // Five views of 15 tables or more: the same files but for one each.
    let mut old = vec![follower.view()];
    for n in 15..19 {
        tables(n, n + 1);
        assert!(follower.catch_up().unwrap());
        old.push(follower.view());
    }
    for (n, view) in old.iter().enumerate() {
        assert_eq!(count(view).unwrap(), 15 + n);
    }
    tables(19, 120);
    let refused = follower.catch_up().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Io, "{refused}");
    assert!(refused.to_string().contains("ulimit -n"), "{refused}");
    let refused = Db::open_follower(&place, s).unwrap_err();
    assert!(refused.to_string().contains("ulimit -n"), "{refused}");
    assert_eq!(count(&follower.view()).unwrap(), 19);
    // Once the primary has few tables again, there is room.
    let rewrite = CompactOptions { rewrite: true, ..CompactOptions::default() };
    primary.compact_range_opt(None, None, &rewrite).unwrap();
    drop(old);
    assert_eq!(count(&follower.view()).unwrap(), 19, "its tables are gone");
    assert!(follower.catch_up().unwrap());
    assert_eq!(count(&follower.view()).unwrap(), 120);
    primary.close().unwrap();
}
