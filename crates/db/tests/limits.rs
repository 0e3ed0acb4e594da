//! Many threads, ends of lives, and sizes at their limits: every read is checked against what
//! was acknowledged before it and begun after it; closing and dropping never hang and never lose;
//! what is too large is refused with nothing written.
#![allow(clippy::disallowed_methods, reason = "the tests measure and wait in real time")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use common::{Content, scan, tiny, within};
use lithify::{
    Builder, Db, DbIter, Durability, ErrorKind, MAX_KEY_BYTES, MAX_VALUE_BYTES, ReadOptions,
    Settings, WriteBatch, WriteOptions,
};
use lithify_env::{Env, FaultFs, MemFs, OsRt, RtOptions};

const LONGEST: Duration = Duration::from_secs(60);
const WRITERS: usize = 4;
const KEYS: usize = 200;

/// What is known of one key: its versions only grow, and each fifth version deletes it.
#[derive(Default)]
struct Known {
    begun: AtomicU64,
    acknowledged: AtomicU64,
}

fn deletes(version: u64) -> bool {
    version.is_multiple_of(5)
}

/// Every key of every writer.
struct Board {
    keys: Vec<Known>,
    end: AtomicBool,
    reads: AtomicU64,
}

fn name(slot: usize) -> Vec<u8> {
    format!("w{}/{:05}", slot / KEYS, slot % KEYS).into_bytes()
}

fn content(slot: usize, version: u64) -> Vec<u8> {
    let mut v = version.to_be_bytes().to_vec();
    v.resize(8 + (slot * 31 + version as usize * 7) % 300, version as u8);
    v
}

impl Board {
    fn floor(&self) -> Vec<u64> {
        self.keys.iter().map(|k| k.acknowledged.load(Ordering::SeqCst)).collect()
    }
    fn ceiling(&self) -> Vec<u64> {
        self.keys.iter().map(|k| k.begun.load(Ordering::SeqCst)).collect()
    }

    /// The version that `found` shows is between what was acknowledged before the read and what
    /// was begun after it.
    fn check(&self, slot: usize, found: Option<&[u8]>, floor: u64, ceiling: u64) {
        self.reads.fetch_add(1, Ordering::Relaxed);
        let key = name(slot);
        let Some(found) = found else {
            // Version 0 is "never written", which is a multiple of five, too.
            let gone = (floor..=ceiling).any(deletes);
            assert!(gone, "{} is gone: {floor}..={ceiling}", key.escape_ascii());
            return;
        };
        let version = u64::from_be_bytes(*found.first_chunk().expect("a version"));
        assert!(
            (floor..=ceiling).contains(&version) && !deletes(version),
            "{} shows version {version}, not {floor}..={ceiling}",
            key.escape_ascii()
        );
        assert_eq!(found, content(slot, version), "{}", key.escape_ascii());
    }

    fn write(&self, db: &Db, writer: usize, rng: &mut fastrand::Rng) -> lithify::Result<()> {
        let all = [Durability::NoWal, Durability::Buffered, Durability::Os, Durability::Sync];
        let durability = if rng.u8(0..50) == 0 { all[3] } else { all[rng.usize(0..3)] };
        let options = WriteOptions::at(durability);
        let mut batch = WriteBatch::new();
        let count = if rng.u8(0..4) == 0 { rng.usize(2..8) } else { 1 };
        let mut touched: Vec<(usize, u64)> = Vec::new();
        for _ in 0..count {
            let slot = writer * KEYS + rng.usize(0..KEYS);
            if touched.iter().any(|t| t.0 == slot) {
                continue;
            }
            let version = self.keys[slot].begun.load(Ordering::SeqCst) + 1;
            touched.push((slot, version));
            match deletes(version) {
                true if rng.bool() => {
                    let mut after = name(slot);
                    after.push(0);
                    batch.delete_range(name(slot), after)?;
                }
                true => batch.delete(name(slot))?,
                false => batch.put(name(slot), content(slot, version))?,
            }
        }
        for (slot, version) in &touched {
            self.keys[*slot].begun.store(*version, Ordering::SeqCst);
        }
        db.write_opt(&batch, &options)?;
        for (slot, version) in &touched {
            self.keys[*slot].acknowledged.store(*version, Ordering::SeqCst);
        }
        Ok(())
    }

    fn read(&self, db: &Db, rng: &mut fastrand::Rng) {
        for _ in 0..50 {
            let slot = rng.usize(0..self.keys.len());
            let floor = self.keys[slot].acknowledged.load(Ordering::SeqCst);
            let found = db.get(name(slot)).unwrap();
            let ceiling = self.keys[slot].begun.load(Ordering::SeqCst);
            self.check(slot, found.as_deref(), floor, ceiling);
        }
        let floor = self.floor();
        let slots: Vec<usize> = (0..20).map(|_| rng.usize(0..self.keys.len())).collect();
        let keys: Vec<Vec<u8>> = slots.iter().map(|s| name(*s)).collect();
        let found = db.multi_get(&keys).unwrap();
        let ceiling = self.ceiling();
        for (slot, value) in slots.iter().zip(&found) {
            self.check(*slot, value.as_deref(), floor[*slot], ceiling[*slot]);
        }
    }

    /// A snapshot shows one moment, however it is read and however late.
    fn look_back(&self, db: &Db, rng: &mut fastrand::Rng) {
        let floor = self.floor();
        let snapshot = db.snapshot();
        let ceiling = self.ceiling();
        let options = ReadOptions::at(&snapshot);
        let first = walk(db.iter_opt(&options).unwrap(), rng.bool());
        for slot in 0..self.keys.len() {
            let found = first.get(&name(slot)).map(Vec::as_slice);
            self.check(slot, found, floor[slot], ceiling[slot]);
        }
        std::thread::sleep(Duration::from_millis(rng.u64(0..20)));
        let again = walk(db.iter_opt(&options).unwrap(), rng.bool());
        assert!(first == again, "a snapshot changed");
        for _ in 0..20 {
            let slot = rng.usize(0..self.keys.len());
            let found = db.get_opt(name(slot), &options).unwrap();
            assert_eq!(found.as_deref(), first.get(&name(slot)).map(Vec::as_slice));
        }
    }
}

fn walk(mut iter: DbIter, forward: bool) -> Content {
    let mut content = Content::new();
    if forward {
        iter.seek_to_first()
    } else {
        iter.seek_to_last()
    }
    while iter.valid() {
        assert!(content.insert(iter.key().to_vec(), iter.value().to_vec()).is_none());
        if forward { iter.next() } else { iter.prev() }
    }
    iter.status().unwrap();
    content
}

/// Runs writers, readers, flushes and compactions for `length`.
fn stress(settings: Settings, length: Duration) {
    let scratch = tempfile::tempdir().unwrap();
    let db = Db::open(scratch.path(), settings.clone()).unwrap();
    let board = Board {
        keys: (0..WRITERS * KEYS).map(|_| Known::default()).collect(),
        end: AtomicBool::new(false),
        reads: AtomicU64::new(0),
    };
    std::thread::scope(|s| {
        let (db, board) = (&db, &board);
        let work = |seed: u64, mut one: Box<dyn FnMut(&mut fastrand::Rng) + Send>| {
            let mut rng = fastrand::Rng::with_seed(seed);
            move || {
                while !board.end.load(Ordering::Relaxed) {
                    one(&mut rng);
                }
            }
        };
        for writer in 0..WRITERS {
            let one = move |rng: &mut fastrand::Rng| board.write(db, writer, rng).unwrap();
            s.spawn(work(writer as u64, unbounded(one)));
        }
        s.spawn(work(10, unbounded(move |rng| board.read(db, rng))));
        s.spawn(work(11, unbounded(move |rng| board.look_back(db, rng))));
        s.spawn(work(
            12,
            unbounded(move |rng| {
                std::thread::sleep(Duration::from_millis(rng.u64(0..50)));
                db.flush().unwrap();
            }),
        ));
        s.spawn(work(
            13,
            unbounded(move |rng| {
                std::thread::sleep(Duration::from_millis(rng.u64(0..100)));
                let (a, b) = (rng.usize(0..board.keys.len()), rng.usize(0..board.keys.len()));
                let (from, to) = (name(a.min(b)), name(a.max(b)));
                db.compact_range(Some(&from), Some(&to)).unwrap();
            }),
        ));
        std::thread::sleep(length);
        board.end.store(true, Ordering::Relaxed);
    });
    let last = board.ceiling();
    assert_eq!(last, board.floor(), "every write was acknowledged");
    let (writes, reads) = (last.iter().sum::<u64>(), board.reads.load(Ordering::Relaxed));
    println!("{writes} writes, {reads} reads checked");
    assert!(writes > 1000 && reads > 1000, "{writes} writes, {reads} reads");
    let check_all = |db: &Db| {
        let content = scan(db).unwrap();
        for (slot, version) in last.iter().enumerate() {
            board.check(slot, content.get(&name(slot)).map(Vec::as_slice), *version, *version);
        }
    };
    check_all(&db);
    db.close().unwrap();
    check_all(&Db::open(scratch.path(), settings).unwrap());
}

/// Ties a closure to the borrow of the scope it is spawned in.
fn unbounded<'a>(
    one: impl FnMut(&mut fastrand::Rng) + Send + 'a,
) -> Box<dyn FnMut(&mut fastrand::Rng) + Send + 'a> {
    Box::new(one)
}

#[test]
fn reads_under_stress_show_what_was_written() {
    within(LONGEST, "stress", || stress(tiny(), Duration::from_secs(5)));
}

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
    db.delete_range([0], [0xff]).unwrap();
    db.compact_range(None, None).unwrap();
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

#[test]
fn what_is_too_large_is_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let db = Db::open(scratch.path(), tiny()).unwrap();
    let long_key = vec![b'k'; MAX_KEY_BYTES + 1];
    let long_value = vec![0; MAX_VALUE_BYTES + 1];
    let mut batch = WriteBatch::new();
    let refusals = [
        (db.put(b"", b"v"), ErrorKind::InvalidArgument),
        (db.delete(b""), ErrorKind::InvalidArgument),
        (batch.put(b"", b"v"), ErrorKind::InvalidArgument),
        (db.delete_range(b"b", b"a"), ErrorKind::InvalidArgument),
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
