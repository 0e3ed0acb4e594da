//! Readers: what they see while trees are installed, and what they pin while files go.

use std::sync::atomic::{AtomicBool, Ordering};

use lithify::{Db, DbIter, IngestOptions, Policy, ReadOptions, WriteBatch};
use lithify_env::sync::Arc;
use lithify_testkit::schedules::{explore, thread};

use crate::world::{Cell, World, number, value};

const KEYS: [&str; 4] = ["a", "b", "c", "d"];

/// Writes every key with number `n`, at once.
fn generation(db: &Db, n: u64) {
    let mut batch = WriteBatch::new();
    for key in KEYS {
        batch.put(key, value(n)).unwrap();
    }
    db.write(&batch).unwrap();
}

/// The generation that `iter` shows.
fn shown(iter: &mut DbIter) -> u64 {
    let mut seen = Vec::new();
    iter.seek_to_first();
    while iter.valid() {
        seen.push(number(iter.value()));
        iter.next();
    }
    iter.status().unwrap();
    assert!(seen.len() == KEYS.len() && seen.iter().all(|n| *n == seen[0]), "a mixture: {seen:?}");
    seen[0]
}

/// An iterator shows what it showed, although every file under it is replaced and deleted.
#[test]
fn an_iterator_outlives_its_files() {
    explore("an iterator outlives its files", || {
        let world = World::new(Policy::Hybrid);
        let db = world.open();
        generation(&db, 1);
        db.flush().unwrap();
        let reader = {
            let db = db.clone();
            thread::spawn(move || {
                let mut iter = db.iter().unwrap();
                let first = shown(&mut iter);
                assert_eq!(shown(&mut iter), first, "another look shows something else");
                first
            })
        };
        generation(&db, 2);
        db.flush().unwrap();
        db.compact_range(None, None).unwrap();
        let seen = reader.join().unwrap();
        assert_eq!(shown(&mut db.iter().unwrap()), 2);
        db.close().unwrap();
        // Nothing is pinned any more, and what a job held until its very end goes now.
        let db = world.open();
        let live = db.stats().levels.iter().map(|l| l.files).sum::<usize>();
        assert_eq!(world.tables(), live, "files that are not needed stay, or others went");
        assert_eq!(shown(&mut db.iter().unwrap()), 2);
        db.close().unwrap();
        seen
    });
}

/// A reader that has the view of before an ingestion at hand sees no write behind it without what came in, also where
/// the memtable is empty.
#[test]
fn an_ingestion_meets_a_reader() {
    explore("an ingestion meets a reader", || {
        let world = World::new(Policy::Hybrid);
        let db = world.open();
        let mut table = db.table_builder("/outside.sst").unwrap();
        table.put("t", value(1)).unwrap();
        table.finish().unwrap();
        let reader = {
            let db = db.clone();
            thread::spawn(move || {
                let mut seen = 0;
                for _ in 0..3 {
                    let found = db.multi_get(&["t", "k"]).unwrap();
                    let (t, k) = (found[0].is_some(), found[1].is_some());
                    assert!(t || !k, "the write behind the ingestion, and not what came in");
                    seen = u64::from(t) + u64::from(k);
                }
                seen
            })
        };
        db.ingest(&["/outside.sst"], &IngestOptions::default()).unwrap();
        db.put("k", value(2)).unwrap();
        let seen = reader.join().unwrap();
        db.close().unwrap();
        seen
    });
}

/// A read finds the newest write while memtables become files and files become others.
fn reads_meet_installs(policy: Policy) -> u64 {
    let world = World::new(policy);
    let db = world.open();
    let cell: Arc<Cell> = Arc::default();
    cell.write(&db, "k").unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let worker = {
        let (db, cell, over) = (db.clone(), cell.clone(), over.clone());
        thread::spawn(move || {
            db.flush().unwrap();
            cell.write(&db, "k").unwrap();
            db.flush().unwrap();
            db.compact_range(None, None).unwrap();
            over.store(true, Ordering::SeqCst);
        })
    };
    let mut early = 0;
    while !over.load(Ordering::SeqCst) {
        early += u64::from(cell.read(&db, "k") == 1);
        // PCT lets a thread that goes on without end go on.
        thread::yield_now();
    }
    worker.join().unwrap();
    assert_eq!(cell.read(&db, "k"), 2);
    db.close().unwrap();
    early.min(4)
}

#[test]
fn reads_meet_new_trees() {
    explore("reads meet new trees", || reads_meet_installs(Policy::Hybrid));
}

#[test]
fn reads_meet_new_trees_of_stacked_data() {
    explore("reads meet new trees, stacked", || reads_meet_installs(Policy::DfTiered));
}

/// A snapshot shows the same before and after compactions that began before or after it.
#[test]
fn a_snapshot_meets_a_compaction() {
    explore("a snapshot meets a compaction", || {
        let world = World::new(Policy::Hybrid);
        let db = world.open();
        generation(&db, 1);
        db.flush().unwrap();
        let worker = {
            let db = db.clone();
            thread::spawn(move || {
                generation(&db, 2);
                db.compact_range(None, None).unwrap();
                generation(&db, 3);
                db.compact_range(None, None).unwrap();
            })
        };
        let snapshot = db.snapshot();
        let at = ReadOptions::at(&snapshot);
        let early = number(&db.get_opt("a", &at).unwrap().unwrap());
        worker.join().unwrap();
        assert_eq!(number(&db.get_opt("d", &at).unwrap().unwrap()), early);
        assert_eq!(shown(&mut db.iter_opt(&at).unwrap()), early);
        assert_eq!(shown(&mut db.iter().unwrap()), 3);
        db.close().unwrap();
        early
    });
}

/// A checkpoint holds a first part of what one writer wrote, with all that was acknowledged before.
#[test]
fn a_checkpoint_meets_a_writer() {
    explore("a checkpoint meets a writer", || {
        let world = World::new(Policy::Bucket);
        let db = world.open();
        let cell: Arc<Cell> = Arc::default();
        let writer = {
            let (db, cell) = (db.clone(), cell.clone());
            thread::spawn(move || {
                for n in 0..8 {
                    cell.write(&db, KEYS[n % 4]).unwrap();
                }
            })
        };
        let least = cell.acked();
        db.checkpoint("/copy").unwrap();
        let copy = world.read("/copy");
        let found = KEYS.map(|k| copy.get(k).unwrap().map_or(0, |v| number(&v)));
        let last = found.into_iter().max().unwrap();
        // Key i has the newest number up to `last` that is i + 1 modulo 4.
        for (i, n) in found.into_iter().enumerate() {
            let due = (0..=last).rev().find(|n| *n > 0 && (*n - 1) % 4 == i as u64);
            assert_eq!(n, due.unwrap_or(0), "a hole: {found:?}");
        }
        assert!(last >= least, "{last} of {least} writes");
        drop(copy);
        writer.join().unwrap();
        db.close().unwrap();
        last
    });
}

/// Reports look at everything while everything moves.
#[test]
fn reports_are_made_at_any_time() {
    explore("reports are made at any time", || {
        let world = World::new(Policy::DfLeveled);
        let db = world.open();
        let worker = {
            let db = db.clone();
            thread::spawn(move || {
                for n in 1..=8 {
                    db.put(KEYS[n as usize % 4], value(n)).unwrap();
                }
                db.compact_range(None, None).unwrap();
            })
        };
        let mut seen = Vec::new();
        for _ in 0..3 {
            assert!(!db.explain().to_string().is_empty());
            db.picture();
            seen.push(db.stats().counts.flushes);
        }
        worker.join().unwrap();
        db.close().unwrap();
        seen
    });
}
