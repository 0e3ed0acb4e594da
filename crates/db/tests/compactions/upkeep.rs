//! Compactions that time and contents ask for: old data, files full of deletions, files of long ago,
//! and a bound on space; each does what it promises to the files on the disk.
#![allow(clippy::disallowed_methods, reason = "the tests wait for background work")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::common::clock::{LONGEST, NOW, open, tables, until};
use crate::common::{scan, tiny};
use lithify::{Db, Policy, Settings};
use lithify_env::MemFs;

fn lazy(policy: Policy) -> Settings {
    let mut s = tiny();
    s.policy = Some(policy);
    s.l0_trigger = 8;
    s
}

fn key(n: u32) -> Vec<u8> {
    format!("key{n:05}").into_bytes()
}

/// All is written, settled at the bottom, deleted again, and flushed: tombstones lie over data.
fn deleted(db: &Db) {
    let mut rng = fastrand::Rng::with_seed(1);
    for n in 0..400 {
        let value: Vec<u8> = std::iter::repeat_with(|| rng.u8(..)).take(300).collect();
        db.put(key(n), value).unwrap();
    }
    db.compact_range(None, None).unwrap();
    for n in 0..400 {
        db.delete(key(n)).unwrap();
    }
    db.flush().unwrap();
}

fn bytes(db: &Db) -> u64 {
    db.stats().levels.iter().map(|l| l.bytes).sum()
}

/// Deletions take effect on the disk once they are as old as the time to live, under each policy.
#[test]
fn deletions_reach_the_disk_in_time() {
    for policy in [Policy::Hybrid, Policy::Tiered, Policy::BucketDf, Policy::Universal] {
        let (fs, shows) = (MemFs::new(), Arc::new(AtomicU64::new(NOW)));
        let mut settings = lazy(policy);
        settings.ttl_seconds = 3600;
        let db = open(&fs, settings, &shows);
        deleted(&db);
        shows.store(NOW + 3599, Ordering::Relaxed);
        assert!(db.wait_idle(Some(LONGEST)).unwrap());
        assert!(bytes(&db) > 100_000, "{}: {} bytes", policy.name(), bytes(&db));
        shows.store(NOW + 3600, Ordering::Relaxed);
        until("nothing is left", || bytes(&db) == 0 && tables(&fs) == 0);
        db.close().unwrap();
    }
}

/// A file full of deletions goes down at once, and one that was made before a crash or a close
/// after it.
#[test]
fn files_of_deletions_go_down() {
    for (window, ratio) in [(200, 0), (0, 90), (0, 0)] {
        let (fs, shows) = (MemFs::new(), Arc::new(AtomicU64::new(NOW)));
        let mut settings = lazy(Policy::Hybrid);
        (settings.deletion_window, settings.deletion_ratio_percent) = (window, ratio);
        settings.deletion_trigger = 150;
        settings.auto_compaction = false;
        let db = open(&fs, settings.clone(), &shows);
        deleted(&db);
        assert!(bytes(&db) > 100_000);
        db.close().unwrap();
        settings.auto_compaction = true;
        let db = open(&fs, settings, &shows);
        if window + u64::from(ratio) > 0 {
            until("nothing is left", || bytes(&db) == 0 && tables(&fs) == 0);
        } else {
            assert!(db.wait_idle(Some(LONGEST)).unwrap());
            assert!(bytes(&db) > 100_000, "without a trigger it all stays");
        }
        db.close().unwrap();
    }
}

/// What a snapshot kept at the bottom leaves with the periodic compaction after its release.
#[test]
fn files_are_made_anew() {
    let (fs, shows) = (MemFs::new(), Arc::new(AtomicU64::new(NOW)));
    let mut settings = lazy(Policy::Hybrid);
    settings.periodic_compaction_seconds = 86_400;
    let db = open(&fs, settings, &shows);
    let mut rng = fastrand::Rng::with_seed(2);
    let mut fill = || {
        for n in 0..400 {
            let value: Vec<u8> = std::iter::repeat_with(|| rng.u8(..)).take(300).collect();
            db.put(key(n), value).unwrap();
        }
    };
    fill();
    let snapshot = db.snapshot();
    fill();
    db.compact_range(None, None).unwrap();
    let (content, twice) = (scan(&db).unwrap(), bytes(&db));
    drop(snapshot);
    shows.store(NOW + 86_399, Ordering::Relaxed);
    assert!(db.wait_idle(Some(LONGEST)).unwrap());
    assert_eq!(bytes(&db), twice);
    shows.store(NOW + 86_400, Ordering::Relaxed);
    until("half of it is gone", || bytes(&db) < twice * 6 / 10);
    assert!(scan(&db).unwrap() == content);
    db.close().unwrap();
}

/// What lies above the oldest run stays within its bound, which it would not by itself.
#[test]
fn space_is_bounded() {
    let mut shares = Vec::new();
    for limit in [0, 25] {
        let (fs, shows) = (MemFs::new(), Arc::new(AtomicU64::new(NOW)));
        let mut settings = lazy(Policy::Hybrid);
        settings.max_space_amp_percent = limit;
        let db = open(&fs, settings, &shows);
        let mut rng = fastrand::Rng::with_seed(3);
        let mut put = |n: u32| {
            let value: Vec<u8> = std::iter::repeat_with(|| rng.u8(..)).take(300).collect();
            db.put(key(n), value).unwrap();
        };
        (0..1000).for_each(&mut put);
        db.compact_range(None, None).unwrap();
        // A third of it again, which is too little for level 0 to be due.
        (0..350).for_each(|n| put(n * 2));
        db.flush().unwrap();
        assert!(db.wait_idle(Some(LONGEST)).unwrap());
        let levels = db.stats().levels;
        let oldest = levels.iter().rev().find(|l| l.bytes > 0).unwrap();
        shares.push((bytes(&db) - oldest.bytes) * 100 / oldest.bytes);
        db.close().unwrap();
    }
    assert!(shares[0] > 25 && shares[1] <= 25, "{shares:?} percent");
}
