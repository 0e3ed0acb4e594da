//! The log of a full memtable: made durable where that is asked for, and else not brought to the disk at all.

#![allow(clippy::disallowed_methods, reason = "the test waits for background work")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::common::tiny;
use lithify::{Builder, Db, Durability, WriteOptions};
use lithify_env::sync::Mutex;
use lithify_env::{Env, FaultFs, MemFs, OsRt, RtOptions};

/// The numbers of logs, in the order in which they were written to and synced.
#[derive(Default)]
struct Seen {
    written: Vec<u64>,
    synced: Vec<u64>,
}

fn number(path: &Path) -> Option<u64> {
    let is_log = path.extension().is_some_and(|end| end == "log");
    is_log.then(|| path.file_stem()?.to_str()?.parse().ok())?
}

fn open() -> (Db, Arc<Mutex<Seen>>) {
    let seen = Arc::new(Mutex::new(Seen::default()));
    let watch = seen.clone();
    let fs = FaultFs::new(Arc::new(MemFs::new()), move |op| {
        let log = number(op.path)?;
        let mut seen = watch.lock();
        match op.name {
            "write_at" if !seen.written.contains(&log) => seen.written.push(log),
            "sync_data" => seen.synced.push(log),
            _ => {}
        }
        None
    });
    let mut s = tiny();
    s.auto_compaction = false;
    (s.l0_slowdown, s.l0_stop) = (1000, 2000);
    let env = Env { fs: Arc::new(fs), rt: Arc::new(OsRt::new(RtOptions::default())) };
    (Builder::new(s).env(env).open("/db").unwrap(), seen)
}

/// Writes until so many logs were begun.
fn fill(db: &Db, seen: &Mutex<Seen>, logs: usize) {
    for n in 0u64.. {
        if seen.lock().written.len() >= logs {
            return;
        }
        db.put_opt(n.to_be_bytes(), [7; 200], &WriteOptions::at(Durability::Os)).unwrap();
    }
}

/// Their memtables are in tables soon, and the disk has better to do meanwhile.
#[test]
fn logs_are_not_synced_for_a_program_that_does_not_sync() {
    let (db, seen) = open();
    fill(&db, &seen, 100);
    let synced = seen.lock().synced.len();
    // Where writers rest for a moment, the last one is.
    assert!(synced <= 10, "{synced} of 100 logs were synced");
    db.close().unwrap();
}

/// A sync promises all that was written before it.
#[test]
fn a_sync_makes_the_logs_of_memtables_durable_that_are_not_in_tables() {
    let (db, seen) = open();
    let pause = db.pause_background().unwrap();
    fill(&db, &seen, 2);
    let written = seen.lock().written.clone();
    assert_eq!(seen.lock().synced, [], "of {written:?}");
    db.put_opt(b"last", b"1", &WriteOptions::at(Durability::Sync)).unwrap();
    let mut synced = seen.lock().synced.clone();
    synced.sort_unstable();
    synced.dedup();
    assert_eq!(synced, written);
    drop(pause);
    db.close().unwrap();
}

/// Waits until a log is synced.
fn until_synced(seen: &Mutex<Seen>, log: u64) {
    for _ in 0..1000 {
        if seen.lock().synced.contains(&log) {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("log {log} is not synced");
}

/// The next sync would wait for all of it.
#[test]
fn a_log_is_made_durable_at_once_for_a_program_that_syncs() {
    let (db, seen) = open();
    let pause = db.pause_background().unwrap();
    db.put_opt(b"first", b"1", &WriteOptions::at(Durability::Sync)).unwrap();
    seen.lock().synced.clear();
    fill(&db, &seen, 2);
    let ended = seen.lock().written[0];
    until_synced(&seen, ended);
    drop(pause);
    db.close().unwrap();
}

/// It stays, in case that the manifest's last edit is damaged one day.
#[test]
fn the_log_that_is_kept_is_made_durable() {
    let (db, seen) = open();
    db.put_opt(b"a", b"1", &WriteOptions::at(Durability::Os)).unwrap();
    db.flush().unwrap();
    let kept = seen.lock().written[0];
    until_synced(&seen, kept);
    db.close().unwrap();
}
