//! What works while writes are stopped: a sync, the ways to make room, and the answer to a write that does not wait.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "real threads and time")]

use std::sync::Arc;
use std::time::Duration;

use crate::common::{tiny, within};
use lithify::{Builder, Db, Durability, ErrorKind, WriteOptions};
use lithify_env::{Env, MemFs, OsRt, RtOptions};

const LONGEST: Duration = Duration::from_secs(60);

fn open(fs: &MemFs) -> Db {
    let env = Env { fs: Arc::new(fs.clone()), rt: Arc::new(OsRt::new(RtOptions::default())) };
    Builder::new(tiny()).env(env).open("/db").unwrap()
}

fn put(db: &Db, n: u64) -> lithify::Result<()> {
    db.put_opt(format!("{n:08}"), [7; 1000], &WriteOptions::at(Durability::NoWal))
}

#[test]
fn a_full_disk_lets_a_sync_pass_and_ranges_be_dropped() {
    within(LONGEST, "a full disk", || {
        let fs = MemFs::new();
        let db = open(&fs);
        db.put("logged", "1").unwrap();
        (0..500).for_each(|n| put(&db, n).unwrap());
        db.flush().unwrap();
        assert!(db.wait_idle(None).unwrap());
        // Less than a flush needs, and enough for an edit of the manifest.
        fs.set_capacity(fs.used() + (40 << 10));
        let full = (500..2000).find_map(|n| put(&db, n).err()).expect("the disk is full");
        assert_eq!(full.kind(), ErrorKind::NoSpace, "{full}");
        db.sync().unwrap();
        let used = fs.used();
        // A flush that is tried meanwhile may have the room for a moment.
        let dropped = (0..500).find(|_| {
            std::thread::sleep(Duration::from_millis(5));
            db.delete_files_in_range(Some(b"00000000"), Some(b"00000500")).is_ok()
        });
        assert!(dropped.is_some(), "the range is still there");
        db.delete_obsolete_files().unwrap();
        assert!(fs.used() < used, "{} of {used} bytes", fs.used());
        fs.set_capacity(u64::MAX);
        let again = (0..2000).find(|_| {
            std::thread::sleep(Duration::from_millis(5));
            put(&db, 3000).is_ok()
        });
        assert!(again.is_some(), "writes do not go on");
        db.close().unwrap();
    });
}

#[test]
fn a_writer_that_is_stopped_holds_up_nothing_but_writes() {
    within(LONGEST, "a stop", || {
        let db = open(&MemFs::new());
        let pause = db.pause_background().unwrap();
        let writer = {
            let db = db.clone();
            std::thread::spawn(move || (0..400).try_for_each(|n| put(&db, n)))
        };
        let no_wait = WriteOptions { no_wait: true, ..WriteOptions::at(Durability::NoWal) };
        // Until the writer waits, and from then on for ever, as nothing is flushed.
        let stalled = loop {
            match db.put_opt("key", "value", &no_wait) {
                Ok(()) => std::thread::sleep(Duration::from_millis(1)),
                Err(error) => break error,
            }
        };
        assert_eq!(stalled.kind(), ErrorKind::Stalled, "{stalled}");
        std::thread::sleep(Duration::from_millis(50));
        assert!(!writer.is_finished());
        db.sync().unwrap();
        assert_eq!(db.put_opt("key", "value", &no_wait).unwrap_err().kind(), ErrorKind::Stalled);
        drop(pause);
        writer.join().unwrap().unwrap();
        db.close().unwrap();
    });
}
