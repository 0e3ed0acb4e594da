//! The writes of a database once more, out of its logs; checkpoints that copy logs; files that are kept.
#![allow(clippy::disallowed_methods, reason = "a test of bytes in files reads files")]

use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::scan;
use lithify::{
    BatchEntry, Builder, CheckpointOptions, ColumnFamilyOptions, Db, Durability, ErrorKind,
    ReadOptions, Settings, Updates, WriteBatch, WriteOptions,
};

/// Memtables that nothing here fills.
fn roomy() -> Settings {
    let mut s = Settings::default();
    s.memory_budget = 256 << 20;
    s.memtable_bytes = 64 << 20;
    s
}

type Content = BTreeMap<(u32, Vec<u8>), Vec<u8>>;

/// Plays what is told into `content`; the number of the next write.
fn play(updates: &mut Updates, content: &mut Content, mut next: u64) -> u64 {
    for told in updates {
        let (first, batch) = told.unwrap();
        assert_eq!(first, next, "no write is left out, and none is told twice");
        for entry in batch.entries() {
            match entry {
                BatchEntry::Put(cf, key, value) => {
                    content.insert((cf, key.to_vec()), value.to_vec());
                }
                BatchEntry::Delete(cf, key) => drop(content.remove(&(cf, key.to_vec()))),
                other => panic!("{other:?} was not written"),
            }
        }
        next += batch.len() as u64;
    }
    next
}

#[test]
fn a_copy_that_is_told_all_writes_is_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path(), roomy()).unwrap();
    let more = db.create_column_family("more", ColumnFamilyOptions::new()).unwrap();
    let mut updates = db.updates_since(db.snapshot().sequence()).unwrap();
    let (over, mut content, mut next) = (AtomicBool::new(false), Content::new(), 1);
    std::thread::scope(|threads| {
        let writers: Vec<_> = (0..3u32)
            .map(|who| {
                let (db, more) = (db.clone(), more.clone());
                threads.spawn(move || {
                    let options = WriteOptions {
                        // What is buffered is told, too.
                        durability: (who == 1).then_some(Durability::Buffered),
                        ..WriteOptions::default()
                    };
                    for n in 0..500u32 {
                        let mut batch = WriteBatch::new();
                        let key = (n % 50 * 3 + who).to_be_bytes();
                        batch.put(key, vec![n as u8; 100]).unwrap();
                        batch.put_cf(&more, key, [n as u8]).unwrap();
                        if n % 7 == 0 {
                            batch.delete(key).unwrap();
                        }
                        db.write_opt(&batch, &options).unwrap();
                    }
                })
            })
            .collect();
        let (over, reader) = (&over, &mut updates);
        let follower = threads.spawn(move || {
            let (mut content, mut next) = (Content::new(), 1);
            loop {
                let last = over.load(Ordering::SeqCst);
                next = play(reader, &mut content, next);
                if last {
                    return (content, next);
                }
            }
        });
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        over.store(true, Ordering::SeqCst);
        (content, next) = follower.join().unwrap();
    });
    assert_eq!(next - 1, db.snapshot().sequence());
    let mut all = Content::new();
    for (cf, db) in [(0, &db), (more.id(), &*more)] {
        let found = scan(db).unwrap();
        all.extend(found.into_iter().map(|(key, value)| ((cf, key.to_vec()), value.to_vec())));
    }
    assert!(content == all, "{} and {} keys", content.len(), all.len());
    // From the middle of a batch on, that batch is told whole.
    let (first, batch) = db.updates_since(2).unwrap().next().unwrap().unwrap();
    assert!(first <= 2 && first + batch.len() as u64 > 2);
    db.close().unwrap();
    assert_eq!(updates.next().map(|told| told.unwrap_err().kind()), Some(ErrorKind::ShuttingDown));
    assert!(updates.next().is_none());
}

#[test]
fn a_gap_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path(), roomy()).unwrap();
    let kind = |since| db.updates_since(since).map(drop).map_err(|e| e.kind());
    assert_eq!(kind(1), Err(ErrorKind::NotFound));
    db.put("a", "1").unwrap();
    assert_eq!(kind(2), Err(ErrorKind::NotFound));
    // Writes that skip the log.
    let no_log = WriteOptions { durability: Some(Durability::NoWal), ..WriteOptions::default() };
    db.put_opt("b", "2", &no_log).unwrap();
    db.put("c", "3").unwrap();
    let mut updates = db.updates_since(1).unwrap();
    assert_eq!(updates.next().unwrap().unwrap().0, 1);
    assert_eq!(updates.next().unwrap().unwrap_err().kind(), ErrorKind::NotFound);
    assert!(updates.next().is_none());
    assert_eq!(kind(2), Err(ErrorKind::NotFound));
    assert_eq!(kind(3), Ok(()));
    // What went into a table.
    db.flush().unwrap();
    assert_eq!(kind(3), Err(ErrorKind::NotFound));
    db.put("d", "4").unwrap();
    assert_eq!(db.updates_since(4).unwrap().next().unwrap().unwrap().0, 4);
    // A new open has put all there was into tables.
    db.close().unwrap();
    let db = Db::open(dir.path(), roomy()).unwrap();
    assert_eq!(db.updates_since(4).unwrap_err().kind(), ErrorKind::NotFound);
    let reader = Db::open_read_only(dir.path(), roomy()).unwrap();
    assert_eq!(reader.updates_since(4).unwrap_err().kind(), ErrorKind::ReadOnly);
}

/// Damage below what was synced takes writes away. That is not told as writes that went into a table.
#[test]
fn rot_in_a_log_is_no_gap() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path(), roomy()).unwrap();
    for value in ["first", "second", "third"] {
        db.put_opt("a", value, &WriteOptions::sync()).unwrap();
    }
    let live = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        let at = bytes.windows(6).position(|bytes| bytes == b"second")?;
        path.extension().is_some_and(|of| of == "log").then_some((path, at))
    };
    let (path, at) = std::fs::read_dir(dir.path()).unwrap().find_map(live).unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.write_all_at(b"S", at as u64).unwrap();

    let mut updates = db.updates_since(1).unwrap();
    assert_eq!(updates.next().unwrap().unwrap().0, 1);
    for error in [updates.next().unwrap().unwrap_err(), db.updates_since(2).unwrap_err()] {
        assert!(error.is_corruption(), "{error}");
        assert_eq!(error.file(), path.to_str());
    }
    // What is in a later log can be told.
    db.flush().unwrap();
    db.put("b", "4").unwrap();
    assert_eq!(db.updates_since(4).unwrap().next().unwrap().unwrap().0, 4);
    db.close().unwrap();
}

fn files(dir: &Path, ending: &str) -> usize {
    let names = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|name| name.to_string_lossy().ends_with(ending)).count()
}

fn with_logs() -> CheckpointOptions {
    CheckpointOptions { copy_logs_below: u64::MAX }
}

#[test]
fn a_checkpoint_copies_small_logs() {
    let (dir, copies) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let db = Db::open(dir.path(), roomy()).unwrap();
    let more = db.create_column_family("more", ColumnFamilyOptions::new()).unwrap();
    let mut wanted = Vec::new();
    for round in 0..4u32 {
        db.put(format!("a{round}"), "1").unwrap();
        more.put(format!("b{round}"), "2").unwrap();
        // One family's log is older than the other's.
        if round == 1 {
            db.flush().unwrap();
        }
        let no_log =
            WriteOptions { durability: Some(Durability::NoWal), ..WriteOptions::default() };
        if round == 3 {
            more.put_opt("unlogged", "3", &no_log).unwrap();
        }
        let before = db.live_files().len() + more.live_files().len();
        let copy = copies.path().join(round.to_string());
        db.checkpoint_opt(&copy, &with_logs()).unwrap();
        let after = db.live_files().len() + more.live_files().len();
        assert_eq!(after > before, round == 3, "only what skipped the log has to be flushed");
        wanted.push((copy, scan(&db).unwrap(), scan(&more).unwrap()));
    }
    let flushed = copies.path().join("flushed");
    db.put("last", "1").unwrap();
    db.checkpoint_opt(&flushed, &CheckpointOptions::default()).unwrap();
    assert_eq!(files(&flushed, ".log"), 1);
    wanted.push((flushed, scan(&db).unwrap(), scan(&more).unwrap()));
    db.close().unwrap();
    for (copy, plain, others) in wanted {
        assert!(files(&copy, ".log") >= 1);
        let db = Db::open(&copy, roomy()).unwrap();
        assert!(scan(&db).unwrap() == plain, "{copy:?}");
        assert!(scan(&db.column_family("more").unwrap()).unwrap() == others, "{copy:?}");
        db.put("more", "of it").unwrap();
        db.close().unwrap();
        assert!(db_is_whole(&copy));
    }
}

/// A family that nothing is written to still names the log that it was made in, which is long gone.
#[test]
fn a_checkpoint_that_copies_logs_needs_none_that_are_gone() {
    let (dir, copies) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let db = Db::open(dir.path(), roomy()).unwrap();
    let idle = db.create_column_family("idle", ColumnFamilyOptions::new()).unwrap();
    for round in 0..3u32 {
        db.put(format!("a{round}"), "1").unwrap();
        if round == 1 {
            // From here on it has a write in a log that the other's flush does not free.
            idle.put("one", "2").unwrap();
        }
        db.flush().unwrap();
        db.put(format!("b{round}"), "1").unwrap();
        for (name, options) in [("logs", with_logs()), ("flushed", CheckpointOptions::default())] {
            let copy = copies.path().join(format!("{name}-{round}"));
            db.checkpoint_opt(&copy, &options).unwrap();
            let made = Db::open(&copy, roomy()).unwrap();
            assert!(scan(&made).unwrap() == scan(&db).unwrap(), "{copy:?}");
            let others = made.column_family("idle").unwrap();
            assert!(scan(&others).unwrap() == scan(&idle).unwrap(), "{copy:?}");
            made.close().unwrap();
            assert!(db_is_whole(&copy));
        }
    }
}

#[test]
fn a_checkpoint_that_copies_logs_beside_flushes_has_all_that_was_written() {
    let (dir, copies) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let db = Db::open(dir.path(), roomy()).unwrap();
    let more = db.create_column_family("more", ColumnFamilyOptions::new()).unwrap();
    std::thread::scope(|threads| {
        for family in [&db, &*more] {
            threads.spawn(|| (0..200).for_each(|_| family.flush().unwrap()));
        }
        for round in 0..60u32 {
            db.put(format!("a{round}"), "1").unwrap();
            more.put(format!("b{round}"), "2").unwrap();
            let copy = copies.path().join(round.to_string());
            db.checkpoint_opt(&copy, &with_logs()).unwrap();
            let made = Db::open(&copy, roomy()).unwrap();
            let counts = [&made, &*made.column_family("more").unwrap()]
                .map(|family| scan(family).unwrap().len() as u32);
            assert_eq!(counts, [round + 1; 2], "{copy:?}");
            made.close().unwrap();
            std::fs::remove_dir_all(copy).unwrap();
        }
    });
}

#[test]
fn a_handle_that_only_reads_makes_no_checkpoint_without_what_the_log_holds() {
    let (dir, copies) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let db = Db::open(dir.path(), roomy()).unwrap();
    db.put("a", "1").unwrap();
    let reader = Db::open_read_only(dir.path(), roomy()).unwrap();
    assert_eq!(reader.get("a").unwrap().as_deref(), Some(&b"1"[..]));
    let refused = [
        reader.checkpoint(copies.path().join("a")),
        reader.checkpoint_opt(copies.path().join("b"), &with_logs()),
    ];
    assert_eq!(refused.map(|r| r.unwrap_err().kind()), [ErrorKind::ReadOnly; 2]);
    db.flush().unwrap();
    let reader = Db::open_read_only(dir.path(), roomy()).unwrap();
    reader.checkpoint(copies.path().join("c")).unwrap();
    let made = Db::open(copies.path().join("c"), roomy()).unwrap();
    assert_eq!(made.get("a").unwrap().as_deref(), Some(&b"1"[..]));
}

#[test]
fn kept_files_go_when_the_last_guard_does() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path(), roomy()).unwrap();
    let gone = db.create_column_family("gone", ColumnFamilyOptions::new()).unwrap();
    let kept = [db.keep_files().unwrap(), db.keep_files().unwrap()];
    for n in 0..3 {
        for family in [&db, &*gone] {
            family.put("a", n.to_string()).unwrap();
            family.put("b", n.to_string()).unwrap();
            family.flush().unwrap();
        }
    }
    db.compact_range(None, None).unwrap();
    db.drop_column_family("gone").unwrap();
    drop(gone);
    let [first, second] = kept;
    drop(first);
    db.delete_obsolete_files().unwrap();
    assert!(files(dir.path(), ".sst") >= 7, "three and three, and what the compaction made");
    assert_eq!(db.int_property("rocksdb.is-file-deletions-enabled"), Some(0));
    drop(second);
    db.delete_obsolete_files().unwrap();
    assert_eq!(files(dir.path(), ".sst"), db.live_files().len());
    assert_eq!(db.int_property("rocksdb.is-file-deletions-enabled"), Some(1));
    db.close().unwrap();
    assert!(db_is_whole(dir.path()));
}

fn db_is_whole(dir: &Path) -> bool {
    Builder::new(roomy()).verify(dir, &mut |_| {}).unwrap().is_clean()
}

#[test]
fn a_read_of_memory_alone_reads_no_table() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path(), roomy()).unwrap();
    db.put("a", "1").unwrap();
    db.flush().unwrap();
    db.close().unwrap();
    let db = Db::open(dir.path(), roomy()).unwrap();
    db.put("b", "2").unwrap();
    let only = ReadOptions { cache_only: true, ..ReadOptions::default() };
    let stalled = |e: lithify::Error| assert_eq!(e.kind(), ErrorKind::Stalled, "{e}");
    assert_eq!(db.get_opt("b", &only).unwrap().as_deref(), Some(&b"2"[..]));
    stalled(db.get_opt("a", &only).unwrap_err());
    stalled(db.multi_get_opt(&["a", "b"], &only).unwrap_err());
    assert_eq!(db.get_with("b", &only, <[u8]>::len).unwrap(), Some(1));
    stalled(db.get_with("a", &only, <[u8]>::len).unwrap_err());
    let moved = db.iter_opt(&only).map(|mut iter| {
        iter.seek_to_first();
        assert!(!iter.valid());
        iter.status()
    });
    stalled(moved.and_then(|status| status).unwrap_err());
    // What was read is in memory then, and other reads go on as they were.
    assert_eq!(db.get("a").unwrap().as_deref(), Some(&b"1"[..]));
    assert_eq!(db.get_opt("a", &only).unwrap().as_deref(), Some(&b"1"[..]));
    db.close().unwrap();
}
