//! Writers: full memtables, groups, stalls.

use lithify::{Durability, ErrorKind, Policy, WriteBatch, WriteOptions};
use lithify_testkit::schedules::{explore, thread};

use crate::world::{KEYS, World, number, two_writers, value};

/// Memtables are switched, flushed and waited for while two writers write and one reader reads.
fn full_memtables(policy: Policy) -> u64 {
    let world = World::new(policy);
    let db = world.open();
    let (cells, writers) = two_writers(&db, 6);
    for turn in 0..4 {
        cells[turn % 2].read(&db, KEYS[turn % 2]);
    }
    writers.into_iter().for_each(|w| w.join().unwrap());
    for (cell, key) in cells.iter().zip(KEYS) {
        assert_eq!(cell.read(&db, key), 6);
    }
    let flushes = db.stats().counts.flushes;
    db.close().unwrap();
    let db = world.open();
    for (cell, key) in cells.iter().zip(KEYS) {
        assert_eq!(cell.read(&db, key), 6);
    }
    db.close().unwrap();
    flushes
}

#[test]
fn writers_meet_full_memtables() {
    explore("writers meet full memtables", || full_memtables(Policy::Hybrid));
}

#[test]
fn writers_meet_full_memtables_cut_by_buckets() {
    explore("writers meet full memtables, by buckets", || full_memtables(Policy::BucketDf));
}

/// Groups of writers are one after the other, and a batch is seen whole or not at all. The number of
/// groups, or of batches that their writers inserted beside others if they may.
fn batches(concurrent: bool) -> u64 {
    let mut world = World::new(Policy::Hybrid);
    world.settings.concurrent_memtable_writes = concurrent;
    let db = world.open();
    let writers: Vec<_> = (0..3u64)
        .map(|w| {
            let db = db.clone();
            thread::spawn(move || {
                for n in 0..2 {
                    let mut batch = WriteBatch::new();
                    batch.put("left", (10 * w + n).to_le_bytes()).unwrap();
                    batch.put("right", (10 * w + n).to_le_bytes()).unwrap();
                    let sync = if w == 0 { Durability::Sync } else { Durability::Os };
                    db.write_opt(&batch, &WriteOptions::at(sync)).unwrap();
                }
            })
        })
        .collect();
    for _ in 0..3 {
        let mut iter = db.iter().unwrap();
        iter.seek_to_first();
        let mut seen = Vec::new();
        while iter.valid() {
            seen.push(iter.value().to_vec());
            iter.next();
        }
        iter.status().unwrap();
        assert!(seen.is_empty() || (seen.len() == 2 && seen[0] == seen[1]), "half a batch");
    }
    writers.into_iter().for_each(|w| w.join().unwrap());
    let counts = db.stats().counts;
    db.close().unwrap();
    let db = world.open();
    assert_eq!(&*db.get("left").unwrap().unwrap(), &*db.get("right").unwrap().unwrap());
    db.close().unwrap();
    if concurrent { counts.own_inserts } else { counts.commit_groups }
}

#[test]
fn a_batch_is_seen_whole() {
    explore("a batch is seen whole", || batches(false));
}

#[test]
fn a_batch_inserted_beside_others_is_seen_whole() {
    explore("a batch inserted beside others is seen whole", || batches(true));
}

/// Writers that would rather fail than wait do so, the others wait, and all come to their end.
#[test]
fn a_stall_holds_some_and_fails_others() {
    explore("a stall holds some and fails others", || {
        let mut world = World::new(Policy::Hybrid);
        world.settings.l0_slowdown = 2;
        world.settings.l0_stop = 2;
        let db = world.open();
        let patient = {
            let db = db.clone();
            thread::spawn(move || {
                for n in 1..=12 {
                    db.put("patient", value(n)).unwrap();
                }
            })
        };
        let mut refused = 0;
        for n in 1..=4 {
            let hasty = WriteOptions { no_wait: true, ..WriteOptions::default() };
            match db.put_opt("hasty", value(n), &hasty) {
                Ok(()) => assert_eq!(number(&db.get("hasty").unwrap().unwrap()), n),
                Err(e) => {
                    assert_eq!(e.kind(), ErrorKind::Stalled, "{e}");
                    refused += 1;
                }
            }
        }
        patient.join().unwrap();
        assert_eq!(number(&db.get("patient").unwrap().unwrap()), 12);
        db.close().unwrap();
        refused
    });
}

/// Writes that skip the log, synced writes and an explicit sync take turns; none is lost by a close.
#[test]
fn logged_and_unlogged_writes_mix() {
    explore("logged and unlogged writes mix", || {
        let world = World::new(Policy::Tiered);
        let db = world.open();
        let unlogged = {
            let db = db.clone();
            thread::spawn(move || {
                for n in 1..=4 {
                    let none = WriteOptions::at(Durability::NoWal);
                    db.put_opt("unlogged", value(n), &none).unwrap();
                }
            })
        };
        let synced = {
            let db = db.clone();
            thread::spawn(move || {
                for n in 1..=3 {
                    db.put_opt("synced", value(n), &WriteOptions::sync()).unwrap();
                }
            })
        };
        db.sync().unwrap();
        db.flush().unwrap();
        let early = db.get("unlogged").unwrap().map_or(0, |v| number(&v));
        unlogged.join().unwrap();
        synced.join().unwrap();
        db.close().unwrap();
        let db = world.open();
        assert_eq!(number(&db.get("unlogged").unwrap().unwrap()), 4);
        assert_eq!(number(&db.get("synced").unwrap().unwrap()), 3);
        db.close().unwrap();
        early
    });
}
