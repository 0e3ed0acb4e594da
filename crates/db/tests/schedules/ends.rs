//! Ends: closes in the middle of everything, failures, and callers that wait.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use lithify::{ErrorKind, Policy};
use lithify_env::sync::Arc;
use lithify_testkit::schedules::{explore, thread};

use crate::world::{Cell, KEYS, World, is_closed, number, two_writers, value};

/// A close ends every writer with an error that says so, and loses nothing that was acknowledged.
#[test]
fn a_close_meets_writers() {
    explore("a close meets writers", || {
        let world = World::new(Policy::Hybrid);
        let db = world.open();
        let (cells, writers) = two_writers(&db, 6);
        for _ in 0..20 {
            thread::yield_now();
        }
        db.close().unwrap();
        writers.into_iter().for_each(|w| w.join().unwrap());
        let acked = cells.each_ref().map(Cell::acked);
        let db = world.open();
        for (cell, key) in cells.iter().zip(KEYS) {
            cell.read(&db, key);
        }
        db.close().unwrap();
        acked
    });
}

/// A close waits for the jobs at work, and the next open finds everything.
fn close_over_jobs(policy: Policy) -> u64 {
    let world = World::new(policy);
    let db = world.open();
    for n in 1..=16u64 {
        db.put([n as u8 % 5], value(n)).unwrap();
    }
    let done = db.stats().counts;
    db.close().unwrap();
    let db = world.open();
    for n in 12..=16u64 {
        assert_eq!(number(&db.get([n as u8 % 5]).unwrap().unwrap()), n);
    }
    db.close().unwrap();
    done.flushes * 10 + done.compactions
}

#[test]
fn a_close_meets_jobs() {
    explore("a close meets jobs", || close_over_jobs(Policy::Leveled));
}

#[test]
fn a_close_meets_jobs_that_follow_others() {
    explore("a close meets jobs that follow others", || close_over_jobs(Policy::BucketDf));
}

/// Handles go one after the other from several threads; the last one closes.
#[test]
fn the_last_handle_closes() {
    explore("the last handle closes", || {
        let world = World::new(Policy::Hybrid);
        let db = world.open();
        let closers: Vec<_> = (0..2)
            .map(|n: u64| {
                let db = db.clone();
                thread::spawn(move || {
                    let written = db.put([n as u8], value(n + 1));
                    if let Err(e) = &written {
                        assert!(is_closed(e), "{e}");
                    }
                    if n == 0 {
                        db.close().unwrap();
                    }
                    written.is_ok()
                })
            })
            .collect();
        drop(db);
        let written: Vec<bool> = closers.into_iter().map(|c| c.join().unwrap()).collect();
        let db = world.open();
        for (n, ok) in written.iter().enumerate() {
            assert!(!ok || number(&db.get([n as u8]).unwrap().unwrap()) == n as u64 + 1);
        }
        db.close().unwrap();
        written
    });
}

/// Flushes, compactions and silence are waited for by several callers at once.
#[test]
fn callers_wait_for_each_others_work() {
    explore("callers wait for each other's work", || {
        let world = World::new(Policy::DfTiered);
        let db = world.open();
        for n in 1..=4 {
            db.put([n as u8], value(n)).unwrap();
        }
        let flusher = {
            let db = db.clone();
            thread::spawn(move || db.flush().unwrap())
        };
        let compactor = {
            let db = db.clone();
            thread::spawn(move || db.compact_range(None, Some(&[3])).unwrap())
        };
        assert!(db.wait_idle(None).unwrap());
        let early = db.stats().counts;
        flusher.join().unwrap();
        compactor.join().unwrap();
        assert!(db.wait_idle(None).unwrap());
        let all = db.stats().counts;
        db.close().unwrap();
        (early.flushes, early.trivial_moves, all.flushes, all.trivial_moves)
    });
}

/// When the manifest can't be written, those who wait hear of it, none hangs, and nothing that
/// the log holds is lost.
#[test]
fn a_lost_manifest_wakes_everyone() {
    explore("a lost manifest wakes everyone", || {
        let sound = World::new(Policy::Hybrid);
        let files = sound.fs.clone();
        let calls = Arc::new(AtomicU64::new(0));
        let world = sound.failing(move |op| {
            let manifest = op.path.to_string_lossy().contains("MANIFEST");
            let open = 4; // writes and syncs of an open
            let fails = manifest
                && matches!(op.name, "write_at" | "sync_data" | "sync_all")
                && calls.fetch_add(1, Ordering::SeqCst) >= open;
            fails.then(|| io::Error::other("the manifest is gone").into())
        });
        let db = world.open();
        let cell: Arc<Cell> = Arc::default();
        let writer = {
            let (db, cell) = (db.clone(), cell.clone());
            thread::spawn(move || {
                for _ in 0..40 {
                    if let Err(e) = cell.write(&db, "k") {
                        assert!(matches!(e.kind(), ErrorKind::ReadOnly | ErrorKind::Io), "{e:?}");
                        return;
                    }
                }
                panic!("forty writes, and no flush is missed");
            })
        };
        let flushed = db.flush();
        cell.read(&db, "k");
        writer.join().unwrap();
        let _ = db.close();
        let again = World { fs: files, settings: world.settings };
        let db = again.open();
        cell.read(&db, "k");
        db.close().unwrap();
        (flushed.is_ok(), cell.acked())
    });
}

/// A job that fails is tried again; writers that wait for it, and those ordered after it, go on.
#[test]
fn a_failed_job_is_tried_again() {
    explore("a failed job is tried again", || {
        let calls = Arc::new(AtomicU64::new(0));
        let world = World::new(Policy::DfLeveled).failing(move |op| {
            let table = op.path.extension().is_some_and(|e| e == "sst");
            let fails = table
                && matches!(op.name, "sync_data" | "sync_all")
                && matches!(calls.fetch_add(1, Ordering::SeqCst), 1 | 3);
            fails.then(|| io::Error::other("a table that can't be synced").into())
        });
        let db = world.open();
        let reader = {
            let db = db.clone();
            thread::spawn(move || db.get([1]).unwrap().map_or(0, |v| number(&v)))
        };
        for n in 1..=14u64 {
            match db.put([n as u8 % 4], value(n)) {
                Ok(()) => {}
                // Told instead of being left to wait; tried again below.
                Err(e) => assert_eq!(e.kind(), ErrorKind::NotCommitted, "{e:?}"),
            }
        }
        let seen = reader.join().unwrap();
        while db.flush().is_err() {
            thread::yield_now();
        }
        let failures = db.stats().counts.job_failures;
        db.close().unwrap();
        assert!(failures > 0, "no job failed");
        (failures, seen)
    });
}
