//! Ranges of keys as a whole: sizes within their bound, and dropped tables that bring nothing back.
#![allow(clippy::disallowed_methods, reason = "real files")]

use std::sync::Arc;

use crate::common::{Content, eager, scan, shown, tiny};
use lithify::merge::Append;
use lithify::{Builder, Db, ErrorKind, Policy, SizeOptions};
use lithify_env::{Env, MemFs, OsRt, RtOptions};

fn key(n: u32) -> Vec<u8> {
    format!("{n:05}").into_bytes()
}

/// The answer is off by at most a block, and its share of the tail, at each end and for each run.
#[test]
fn sizes_are_true_to_a_block_at_each_end_of_each_run() {
    let scratch = tempfile::tempdir().unwrap();
    let mut settings = tiny();
    settings.compression_lower = lithify::Compression::None;
    let db = Db::open(scratch.path().join("db"), settings).unwrap();
    let mut rng = fastrand::Rng::with_seed(5);
    const KEYS: u32 = 4000;
    const VALUE: usize = 100;
    for _ in 0..12_000 {
        let value: Vec<u8> = (0..VALUE).map(|_| rng.u8(..)).collect();
        db.put(key(rng.u32(0..KEYS)), value).unwrap();
    }
    db.compact_range(None, None).unwrap();
    let content = scan(&db).unwrap();
    let all = db.approximate_sizes(&[(key(0), key(KEYS))], &SizeOptions::default()).unwrap()[0];
    // A copy has the tables of now, and none that is about to be deleted.
    let copy = scratch.path().join("copy");
    db.checkpoint(&copy).unwrap();
    let tables: u64 = std::fs::read_dir(copy)
        .unwrap()
        .map(|e| e.unwrap())
        .filter(|e| e.path().extension().is_some_and(|e| e == "sst"))
        .map(|e| e.metadata().unwrap().len())
        .sum();
    assert_eq!(all, tables, "all of it is known exactly");
    // One run is left: what an entry takes is known to a few bytes.
    let each = all as f64 / content.len() as f64;
    let block = 2.0 * (512.0 + VALUE as f64) * 1.3;
    let mut uneven = 0;
    for _ in 0..300 {
        let (a, b) = (rng.u32(0..KEYS), rng.u32(0..KEYS));
        let (from, to) = (key(a.min(b)), key(a.max(b)));
        let told =
            db.approximate_sizes(&[(&from, &to)], &SizeOptions::default()).unwrap()[0] as f64;
        let true_size = content.range(from..to).count() as f64 * each;
        uneven += u32::from(told != true_size);
        // Tables differ a little in what an entry takes.
        assert!((told - true_size).abs() <= 2.0 * block + true_size * 0.05, "{told} {true_size}");
    }
    assert!(uneven > 0);
    // Memtables are counted exactly.
    db.put(key(KEYS + 1), [7; 50]).unwrap();
    let both = SizeOptions { tables: false, memtables: true };
    let sizes = db.approximate_sizes(&[(key(0), key(KEYS)), (key(KEYS), key(KEYS + 9))], &both);
    assert_eq!(sizes.unwrap(), [0, 55]);
    let backward = db.approximate_sizes(&[(key(9), key(1))], &both);
    assert_eq!(backward.unwrap_err().kind(), ErrorKind::InvalidArgument);
    db.close().unwrap();
}

/// A key of a dropped table is gone or has a value newer than all that was dropped; outside of the
/// range nothing changes.
#[test]
fn dropping_tables_brings_nothing_back() {
    for (i, policy) in Policy::ALL.into_iter().enumerate() {
        let mut rng = fastrand::Rng::with_seed(i as u64);
        let rt = Arc::new(OsRt::new(RtOptions { compact_threads: 4, ..RtOptions::default() }));
        let env = Env { fs: Arc::new(MemFs::new()), rt };
        let settings = eager(policy, &mut rng);
        let open = || Builder::new(settings.clone()).env(env.clone()).open("db").unwrap();
        let mut db = open();
        let mut content = Content::new();
        let mut gone = 0;
        for round in 0..30u32 {
            for _ in 0..200 {
                let k = key(rng.u32(0..800));
                match rng.u8(0..10) {
                    0 => {
                        db.delete(&k).unwrap();
                        content.remove(&k);
                    }
                    _ => {
                        let v = format!("{round}/{}", "v".repeat(rng.usize(0..300))).into_bytes();
                        db.put(&k, &v).unwrap();
                        content.insert(k, v);
                    }
                }
            }
            match rng.u8(0..3) {
                0 => db.flush().unwrap(),
                1 => db.compact_range(None, None).unwrap(),
                _ => {}
            }
            let held = (db.iter().unwrap(), content.clone());
            let (a, b) = (rng.u32(0..800), rng.u32(0..800));
            let (from, to) = (key(a.min(b)), key(a.max(b)));
            match rng.bool() {
                true => db.delete_files_in_range(Some(&from), Some(&to)).unwrap(),
                false => db.delete_files_in_ranges(&[(&from, &to)]).unwrap(),
            }
            let left = scan(&db).unwrap();
            for (k, v) in &content {
                match left.get(k) {
                    Some(now) => assert_eq!(now, v, "an older value came back"),
                    None => assert!((&from..&to).contains(&k), "a key outside is gone"),
                }
            }
            assert!(left.keys().all(|k| content.contains_key(k)), "a deleted key came back");
            gone += content.len() - left.len();
            let (mut iter, then) = held;
            assert_eq!(shown(&mut iter).unwrap(), then, "an iterator shows what it showed");
            content = left;
            if rng.u8(0..4) == 0 {
                drop(iter);
                db.close().unwrap();
                db = open();
                assert_eq!(scan(&db).unwrap(), content);
            }
        }
        assert!(gone > 100, "{policy:?}: {gone} keys were dropped");
        db.flush().unwrap();
        db.wait_idle(None).unwrap();
        db.delete_files_in_range(None, None).unwrap();
        assert!(scan(&db).unwrap().is_empty());
        db.close().unwrap();
    }
}

/// What is newer than a dropped table stays: an operand, with nothing to be combined with.
#[test]
fn operands_above_a_dropped_table_stay_alone() {
    let env = Env { fs: Arc::new(MemFs::new()), rt: Arc::new(OsRt::new(RtOptions::default())) };
    let open = || {
        let list = Arc::new(Append::default());
        Builder::new(tiny()).merge_operator(list).env(env.clone()).open("db").unwrap()
    };
    let db = open();
    db.put(b"k", b"base").unwrap();
    db.compact_range(None, None).unwrap();
    db.merge(b"k", b"one").unwrap();
    db.merge(b"k", b"two").unwrap();
    assert_eq!(db.get(b"k").unwrap().unwrap(), b"base,one,two");
    db.delete_files_in_range(None, None).unwrap();
    assert_eq!(db.get(b"k").unwrap().unwrap(), b"one,two");
    db.close().unwrap();
    let db = open();
    assert_eq!(db.get(b"k").unwrap().unwrap(), b"one,two");
    db.close().unwrap();
}
