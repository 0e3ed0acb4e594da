//! A store that forgets: what is read is the newest value or nothing, the oldest goes first, the bound
//! holds, and files leave the disk.
#![allow(clippy::disallowed_methods, reason = "the tests wait for background work")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::common::clock::{LONGEST, NOW, open, tables, until};
use crate::common::{scan, tiny};
use lithify::verify::verify;
use lithify::{Policy, ReadOptions, Settings};
use lithify_env::MemFs;

fn forgetting(max_bytes: u64) -> Settings {
    let mut s = tiny();
    s.policy = Some(Policy::Fifo);
    s.fifo_max_bytes = max_bytes;
    s
}

/// Every key in the store has its newest value, whatever was dropped, deleted or written again
/// meanwhile; the bound holds; a reopened store is the same.
fn live(seed: u64, merges: bool) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let fs = MemFs::new();
    let shows = Arc::new(AtomicU64::new(NOW));
    let mut settings = forgetting(256 << 10);
    settings.fifo_allow_compaction = merges;
    let mut db = open(&fs, settings.clone(), &shows);
    let mut model: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
    let mut lost = 0;
    for round in 0..12u32 {
        for n in 0..400u32 {
            let key = format!("k{:05}", rng.u32(0..3000)).into_bytes();
            if rng.u8(0..8) == 0 {
                db.delete(&key).unwrap();
                model.remove(&key);
            } else {
                let value = format!("{round}-{n}-{}", "v".repeat(rng.usize(0..400))).into_bytes();
                db.put(&key, &value).unwrap();
                model.insert(key, value);
            }
        }
        // A range deletion goes as all else does, but never before what it hides.
        if round % 4 == 3 {
            db.delete_range(b"k01000", b"k01100").unwrap();
            model.retain(|k, _| !(&b"k01000"[..]..&b"k01100"[..]).contains(&&k[..]));
        }
        db.flush().unwrap();
        assert!(db.wait_idle(Some(LONGEST)).unwrap());
        let content = scan(&db).unwrap();
        for (key, value) in &content {
            let key_text = key.escape_ascii();
            assert_eq!(model.get(key), Some(value), "seed {seed}: {key_text} is not the newest");
        }
        lost = model.len() - content.len();
        let bytes: u64 = db.stats().levels.iter().map(|l| l.bytes).sum();
        assert!(bytes <= 256 << 10, "seed {seed}: {bytes} bytes are kept");
        if round == 6 {
            db.close().unwrap();
            db = open(&fs, settings.clone(), &shows);
            assert!(scan(&db).unwrap() == content, "seed {seed}: another content after a reopen");
        }
    }
    assert!(lost > 0, "seed {seed}: nothing was ever forgotten");
    db.close().unwrap();
    let report = verify(Arc::new(fs.clone()), "/db", None, &mut |_| {}).unwrap();
    assert!(report.is_clean(), "{:?}", report.findings);
}

#[test]
fn what_is_read_is_the_newest_or_nothing() {
    for seed in 0..4 {
        live(seed, seed % 2 == 1);
    }
}

/// Keys are written once, in order: what is left is the end of the sequence, whole.
#[test]
fn the_oldest_go_first() {
    let (fs, shows) = (MemFs::new(), Arc::new(AtomicU64::new(NOW)));
    let db = open(&fs, forgetting(200 << 10), &shows);
    let snapshot = db.snapshot();
    db.put(b"a", b"before the snapshot").unwrap();
    let later = db.snapshot();
    for n in 0..6000u32 {
        db.put(format!("k{n:05}").as_bytes(), [7; 100]).unwrap();
    }
    db.flush().unwrap();
    assert!(db.wait_idle(Some(LONGEST)).unwrap());
    let left: Vec<Vec<u8>> = scan(&db).unwrap().into_keys().collect();
    let first: u32 = String::from_utf8(left[0][1..].to_vec()).unwrap().parse().unwrap();
    let expected: Vec<Vec<u8>> = (first..6000).map(|n| format!("k{n:05}").into_bytes()).collect();
    assert!(first > 1000 && left == expected, "{} keys from {first}", left.len());
    // A snapshot keeps nothing: it reads at its number what is still there.
    for snapshot in [&snapshot, &later] {
        let options = ReadOptions::at(snapshot);
        assert_eq!(db.get_opt(b"a", &options).unwrap(), None);
    }
    until("the files are deleted", || tables(&fs) == db.stats().levels[0].files);
    db.close().unwrap();
}

/// Files go once they are old, by the clock on the wall, and an iterator in use keeps reading them.
#[test]
fn old_files_go() {
    let (fs, shows) = (MemFs::new(), Arc::new(AtomicU64::new(NOW)));
    let mut settings = forgetting(1 << 30);
    settings.ttl_seconds = 3600;
    let db = open(&fs, settings, &shows);
    db.put(b"old", b"1").unwrap();
    db.put(b"again", b"1").unwrap();
    db.flush().unwrap();
    shows.store(NOW + 1800, Ordering::Relaxed);
    db.put(b"again", b"2").unwrap();
    db.flush().unwrap();
    let mut pinned = db.iter().unwrap();
    pinned.seek_to_first();
    assert_eq!(scan(&db).unwrap().len(), 2);

    shows.store(NOW + 3600, Ordering::Relaxed);
    until("the older file goes", || db.get(b"old").unwrap().is_none());
    assert_eq!(db.get(b"again").unwrap().as_deref(), Some(&b"2"[..]));
    assert_eq!((pinned.key(), pinned.value()), (&b"again"[..], &b"2"[..]));
    pinned.next();
    assert_eq!(pinned.key(), b"old");
    pinned.status().unwrap();
    drop(pinned);

    shows.store(NOW + 5400, Ordering::Relaxed);
    until("both are gone", || scan(&db).unwrap().is_empty() && tables(&fs) == 0);
    db.close().unwrap();
}

/// A store that was leveled before: its files are the oldest, and go one after the other.
#[test]
fn a_leveled_store_becomes_one_that_forgets() {
    let (fs, shows) = (MemFs::new(), Arc::new(AtomicU64::new(NOW)));
    let mut settings = tiny();
    settings.policy = Some(Policy::Hybrid);
    let db = open(&fs, settings, &shows);
    let mut rng = fastrand::Rng::with_seed(1);
    for n in 0..4000u32 {
        let value: Vec<u8> = std::iter::repeat_with(|| rng.u8(..)).take(200).collect();
        db.put(format!("k{:05}", n % 2000).as_bytes(), &value).unwrap();
    }
    db.compact_range(None, None).unwrap();
    let before = scan(&db).unwrap();
    db.close().unwrap();

    let db = open(&fs, forgetting(200 << 10), &shows);
    assert!(db.wait_idle(Some(LONGEST)).unwrap());
    let after = scan(&db).unwrap();
    assert!(!after.is_empty() && after.len() < before.len(), "{} keys are left", after.len());
    assert!(after.iter().all(|(k, v)| before.get(k) == Some(v)));
    db.close().unwrap();
}

#[test]
fn a_bound_below_two_memtables_is_refused() {
    let error = forgetting(100 << 10).check().unwrap_err().to_string();
    assert!(error.contains("fifo_max_bytes = 102400") && error.contains("131072"), "{error}");
}
