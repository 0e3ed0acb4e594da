//! Ends of lives and sizes at their limits: closing and dropping never hang and never lose, however
//! many threads are at work; what is too large is refused with nothing written (reliability F14, F18).
#![allow(clippy::disallowed_methods, reason = "the tests measure and wait in real time")]

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::common::{scan, tiny, within};
use lithify::{
    Builder, Db, Durability, ErrorKind, MAX_KEY_BYTES, MAX_VALUE_BYTES, ReadOptions, WriteBatch,
    WriteOptions,
};
use lithify_env::{Env, FaultFs, MemFs, OsRt, RtOptions};

const LONGEST: Duration = Duration::from_secs(60);
const WRITERS: usize = 4;

/// Closing while others write: they are told, nothing hangs, nothing acknowledged is lost.
#[test]
fn closing_tells_active_writers() {
    within(LONGEST, "closing", || {
        let scratch = tempfile::tempdir().unwrap();
        for round in 0..10u64 {
            let db = Db::open(scratch.path(), tiny()).unwrap();
            let mut acknowledged: Vec<u64> = Vec::new();
            std::thread::scope(|s| {
                let writers: Vec<_> = (0..WRITERS as u64)
                    .map(|writer| {
                        let db = db.clone();
                        s.spawn(move || {
                            for i in 0u64.. {
                                let key = format!("{round}/{writer}/{i:08}");
                                let options = WriteOptions::at(match i % 3 {
                                    0 => Durability::NoWal,
                                    1 => Durability::Buffered,
                                    _ => Durability::Os,
                                });
                                if let Err(e) = db.put_opt(key, [7; 100], &options) {
                                    assert_eq!(e.kind(), ErrorKind::ShuttingDown, "{e:?}");
                                    return i;
                                }
                            }
                            unreachable!("the loop ends with an error")
                        })
                    })
                    .collect();
                std::thread::sleep(Duration::from_millis(20));
                db.clone().close().unwrap();
                acknowledged.extend(writers.into_iter().map(|w| w.join().unwrap()));
            });
            // Every use of a handle that is left says so.
            assert_eq!(db.put(b"k", b"v").unwrap_err().kind(), ErrorKind::ShuttingDown);
            assert_eq!(db.flush().unwrap_err().kind(), ErrorKind::ShuttingDown);
            assert_eq!(db.compact_range(None, None).unwrap_err().kind(), ErrorKind::ShuttingDown);
            db.close().unwrap();
            let db = Db::open(scratch.path(), tiny()).unwrap();
            for (writer, count) in acknowledged.iter().enumerate() {
                for i in 0..*count {
                    let key = format!("{round}/{writer}/{i:08}");
                    assert!(db.get(&key).unwrap().is_some(), "{key} of {count} is gone");
                }
            }
        }
    });
}

#[test]
fn the_last_handle_closes() {
    within(LONGEST, "dropping", || {
        let scratch = tempfile::tempdir().unwrap();
        for i in 0..5u32 {
            let db = Db::open(scratch.path(), tiny()).unwrap();
            let other = db.clone();
            drop(db);
            // Unlogged writes are flushed by the close, however it comes about.
            let options = WriteOptions::at(Durability::NoWal);
            other.put_opt(i.to_be_bytes(), b"kept", &options).unwrap();
            drop(other);
        }
        let db = Db::open(scratch.path(), tiny()).unwrap();
        assert_eq!(scan(&db).unwrap().len(), 5);
    });
}

/// An iterator owns what it shows: it goes on after its database is closed, and after another
/// handle has compacted its files away.
#[test]
fn an_iterator_outlives_its_database() {
    let scratch = tempfile::tempdir().unwrap();
    let db = Db::open(scratch.path(), tiny()).unwrap();
    for i in 0..3000u32 {
        db.put(i.to_be_bytes(), [i as u8; 50]).unwrap();
    }
    db.compact_range(None, None).unwrap();
    for i in 0..100u32 {
        db.put(i.to_be_bytes(), b"in memory").unwrap();
    }
    let mut iter = db.iter().unwrap();
    iter.seek_to_first();
    drop(db);
    let db = Db::open(scratch.path(), tiny()).unwrap();
    let tables = || -> BTreeSet<OsString> {
        let files = std::fs::read_dir(scratch.path()).unwrap().map(|e| e.unwrap().file_name());
        files.filter(|f| f.to_str().is_some_and(|f| f.ends_with(".sst"))).collect()
    };
    let before = tables();
    assert!(before.len() > 2, "{before:?}");
    db.delete_range([0], [0xff]).unwrap();
    db.compact_range(None, None).unwrap();
    let late = Instant::now() + LONGEST;
    while !tables().is_disjoint(&before) {
        assert!(Instant::now() < late, "compacted away and still there: {:?}", tables());
        std::thread::sleep(Duration::from_millis(5));
    }
    for i in 0..3000u32 {
        assert!(iter.valid(), "ended at {i}: {:?}", iter.status());
        assert_eq!(iter.key(), i.to_be_bytes());
        let value: &[u8] = if i < 100 { b"in memory" } else { &[i as u8; 50] };
        assert_eq!(iter.value(), value);
        iter.next();
    }
    assert!(!iter.valid());
    iter.status().unwrap();
    assert!(scan(&db).unwrap().is_empty());
}

#[test]
fn reading_beside_a_writer() {
    let scratch = tempfile::tempdir().unwrap();
    let nothing = Db::open_read_only(scratch.path(), tiny()).unwrap_err();
    assert_eq!(nothing.kind(), ErrorKind::NotFound, "{nothing:?}");
    let db = Db::open(scratch.path(), tiny()).unwrap();
    for i in 0..500u32 {
        db.put(i.to_be_bytes(), [1; 100]).unwrap();
    }
    db.flush().unwrap();
    for i in 500..800u32 {
        db.put(i.to_be_bytes(), [2; 100]).unwrap();
    }
    let names = || {
        let mut names: Vec<_> =
            std::fs::read_dir(scratch.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        names
    };
    assert!(db.wait_idle(Some(Duration::from_secs(10))).unwrap());
    std::thread::sleep(Duration::from_millis(150)); // obsolete files go
    let before = names();
    let reader = Db::open_read_only(scratch.path(), tiny()).unwrap();
    assert_eq!(scan(&reader).unwrap().len(), 800, "what the log holds counts");
    for refused in [
        reader.put(b"k", b"v").unwrap_err(),
        reader.delete(b"k").unwrap_err(),
        reader.flush().unwrap_err(),
        reader.compact_range(None, None).unwrap_err(),
    ] {
        assert_eq!(refused.kind(), ErrorKind::ReadOnly, "{refused:?}");
    }
    db.put(b"later", b"unseen").unwrap();
    assert!(reader.get(b"later").unwrap().is_none());
    reader.close().unwrap();
    assert_eq!(before, names(), "nothing was changed");
    db.close().unwrap();
}

/// A range to compact may lie beside all keys: there is nothing to do, which is no mistake.
#[test]
fn compacting_where_nothing_is() {
    let world = Env::in_memory(RtOptions::default());
    let db = Builder::new(tiny()).env(world).open("db").unwrap();
    db.put(b"m", b"v").unwrap();
    db.compact_range(None, Some(b"a")).unwrap();
    db.compact_range(Some(b"x"), None).unwrap();
    db.compact_range(Some(b"a"), Some(b"b")).unwrap();
    let swapped = db.compact_range(Some(b"b"), Some(b"a")).unwrap_err();
    assert_eq!(swapped.kind(), ErrorKind::InvalidArgument);
}

#[test]
fn what_is_too_large_is_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let db = Db::open(scratch.path(), tiny()).unwrap();
    let long_key = vec![b'k'; MAX_KEY_BYTES + 1];
    let long_value = vec![0; MAX_VALUE_BYTES + 1];
    let mut batch = WriteBatch::new();
    let refusals = [
        (db.delete_range(b"b", b"a"), ErrorKind::InvalidArgument),
        (db.delete_range(b"b", b""), ErrorKind::InvalidArgument),
        (db.put(&long_key, b"v"), ErrorKind::LimitExceeded),
        (db.delete(&long_key), ErrorKind::LimitExceeded),
        (db.put(b"k", &long_value), ErrorKind::LimitExceeded),
        (batch.put(b"k", &long_value), ErrorKind::LimitExceeded),
        (batch.delete_range(&long_key, &long_key), ErrorKind::LimitExceeded),
    ];
    for (i, (result, kind)) in refusals.into_iter().enumerate() {
        let e = result.unwrap_err();
        assert_eq!(e.kind(), kind, "refusal {i}: {e:?}");
    }
    assert!(batch.is_empty());
    assert!(scan(&db).unwrap().is_empty(), "nothing was written");
    db.write(&batch).unwrap();
    db.delete_range(b"a", b"a").unwrap();
    assert!(db.get(b"").unwrap().is_none());
    assert_eq!(db.stats().counts.flushes, 0);
}

/// Far larger than the memtable, and legal.
#[test]
fn what_is_large_is_written() {
    within(LONGEST, "large entries", || {
        let scratch = tempfile::tempdir().unwrap();
        let long_key = vec![b'k'; MAX_KEY_BYTES];
        let value: Vec<u8> = (0..40 << 20u32).map(|i: u32| (i >> 3) as u8).collect();
        let check = |db: &Db| {
            assert!(db.get(b"big").unwrap().unwrap() == value[..]);
            assert!(db.get(&long_key).unwrap().unwrap() == b"long"[..]);
            assert_eq!(db.get(b"small").unwrap().unwrap(), b"1");
            assert!(db.get(b"batch/0999").unwrap().unwrap() == value[..4000]);
            assert_eq!(scan(db).unwrap().len(), 1003);
        };
        let db = Db::open(scratch.path(), tiny()).unwrap();
        db.put(b"big", &value).unwrap();
        db.put(&long_key, b"long").unwrap();
        db.put(b"small", b"1").unwrap();
        let mut batch = WriteBatch::new();
        for i in 0..1000 {
            batch.put(format!("batch/{i:04}"), &value[..4000]).unwrap();
        }
        db.write_opt(&batch, &WriteOptions::sync()).unwrap();
        check(&db);
        db.flush().unwrap();
        check(&db);
        db.compact_range(None, None).unwrap();
        check(&db);
        db.put(b"big", &value).unwrap();
        db.close().unwrap();
        check(&Db::open(scratch.path(), tiny()).unwrap());
    });
}

/// A log that is cut at its beginning again and again: deletions of ranges that lie in each other. Together they had
/// as many pieces as the square of their number, and the process died of that, also when it opened the log again.
#[test]
fn deletions_within_each_other_end() {
    within(LONGEST, "range deletions", || {
        let scratch = tempfile::tempdir().unwrap();
        let key = |n: u32| n.to_be_bytes();
        let count = 30_000;
        let db = Db::open(scratch.path(), Default::default()).unwrap();
        let mut batch = WriteBatch::new();
        for n in 0..=count {
            db.put(key(n), b"entry").unwrap();
            batch.delete_range(key(0), key(n)).unwrap();
        }
        let before = db.snapshot();
        // In one batch, so in one memtable.
        db.write(&batch).unwrap();
        let left = |db: &Db| db.range(..).map(|entry| entry.unwrap().0).collect::<Vec<_>>();
        let last = [key(count)];
        assert!(left(&db).iter().eq(last.iter()), "{} entries are left", left(&db).len());
        assert_eq!(db.range_opt(.., &ReadOptions::at(&before)).count(), 1 + count as usize);
        drop(before);
        // The log has them.
        drop(db);
        let db = Db::open(scratch.path(), Default::default()).unwrap();
        assert!(left(&db).iter().eq(last.iter()));
        db.flush().unwrap();
        assert!(left(&db).iter().eq(last.iter()));
        // One by one they do not stay in a memtable, where each read looks through all.
        let flushes = db.stats().counts.flushes;
        for n in 0..count {
            db.delete_range(key(0), key(n)).unwrap();
        }
        db.wait_idle(None).unwrap();
        assert!(db.stats().counts.flushes >= flushes + 2);
        db.compact_range(None, None).unwrap();
        assert!(left(&db).iter().eq(last.iter()));
        db.close().unwrap();
    });
}

/// While a flush hangs, memory fills up: who does not want to wait is told, who waits goes on as
/// soon as the disk does.
#[test]
fn who_does_not_wait_is_told() {
    within(LONGEST, "a hanging disk", a_hanging_disk);
}

fn a_hanging_disk() {
    let hangs = Arc::new(AtomicBool::new(true));
    let seen = hangs.clone();
    let fs = FaultFs::new(Arc::new(MemFs::new()), move |op| {
        while op.path.extension().is_some_and(|e| e == "sst") && seen.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(1));
        }
        None
    });
    let env = Env { fs: Arc::new(fs), rt: Arc::new(OsRt::new(RtOptions::default())) };
    let db = Builder::new(tiny()).env(env).open("/db").unwrap();
    let hasty = WriteOptions { no_wait: true, ..WriteOptions::default() };
    let mut written = 0u32;
    let stalled = loop {
        match db.put_opt(written.to_be_bytes(), [1; 1000], &hasty) {
            Ok(()) => written += 1,
            Err(e) => break e,
        }
        assert!(written < 10_000);
    };
    assert_eq!(stalled.kind(), ErrorKind::Stalled, "{stalled:?}");
    std::thread::scope(|s| {
        let waits = s.spawn(|| db.put(b"patient", b"1"));
        std::thread::sleep(Duration::from_millis(50));
        assert!(!waits.is_finished(), "it should wait for memory");
        assert_eq!(db.get(0u32.to_be_bytes()).unwrap().unwrap(), [1; 1000], "reads never wait");
        hangs.store(false, Ordering::Relaxed);
        waits.join().unwrap().unwrap();
    });
    db.flush().unwrap();
    assert_eq!(scan(&db).unwrap().len(), written as usize + 1);
    let stalls: Duration = db.stats().stalls.iter().map(|s| s.1).sum();
    assert!(stalls >= Duration::from_millis(40), "{stalls:?}");
    db.close().unwrap();
}
