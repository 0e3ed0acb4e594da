//! Column families whose values expire, each after a time of its own, under a clock that is set by hand.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use crate::common::clock::{NOW, world};
use crate::common::{scan, tiny};
use lithify::merge::Add;
use lithify::{Builder, ColumnFamilyOptions, ErrorKind, TtlDb, WriteBatch};
use lithify_env::MemFs;

fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// `short` and `sums` expire by themselves; `plain` has no times.
fn builder(fs: &MemFs, clock: &Arc<AtomicU64>) -> Builder {
    Builder::new(tiny())
        .env(world(fs, clock))
        .column_family("short", ColumnFamilyOptions::new().ttl(seconds(10)))
        .column_family("sums", sums())
}

fn sums() -> ColumnFamilyOptions {
    ColumnFamilyOptions::new().ttl(seconds(50)).merge_operator(Arc::new(Add))
}

fn made(fs: &MemFs, clock: &Arc<AtomicU64>) -> TtlDb {
    let db = builder(fs, clock).open_ttl("/db", seconds(100)).unwrap();
    db.create_column_family("short", ColumnFamilyOptions::new().ttl(seconds(10))).unwrap();
    db.create_column_family("sums", sums()).unwrap();
    db.db().create_column_family("plain", ColumnFamilyOptions::new()).unwrap();
    db
}

#[test]
fn each_family_has_a_time_to_live_of_its_own() {
    let (fs, clock) = (MemFs::new(), Arc::new(AtomicU64::new(NOW)));
    let db = made(&fs, &clock);
    let mut batch = WriteBatch::new();
    batch.put("k", "v").unwrap();
    for name in ["short", "sums", "plain"] {
        let family = db.db().column_family(name).unwrap();
        batch.put_cf(&family, "k", 7u64.to_le_bytes()).unwrap();
    }
    db.write(&batch).unwrap();
    // As each family shows it, and how long its values live.
    let shown = |db: &TtlDb| {
        let alive = |db: TtlDb| {
            let mut iter = db.iter().unwrap();
            iter.seek("k");
            let found = iter.key() == b"k";
            assert_eq!(found, db.get("k").unwrap().is_some());
            found
        };
        let families = ["default", "short", "sums"].map(|name| db.column_family(name).unwrap());
        families.map(alive)
    };
    let plain = |db: &TtlDb| db.db().column_family("plain").unwrap().get("k").unwrap();
    assert_eq!(plain(&db).as_deref(), Some(&7u64.to_le_bytes()[..]));
    assert_eq!(shown(&db), [true, true, true]);
    clock.fetch_add(10, SeqCst);
    assert_eq!(shown(&db), [true, true, true]);
    clock.fetch_add(1, SeqCst);
    assert_eq!(shown(&db), [true, false, true]);
    // It counts for one family and its handles.
    db.column_family("short").unwrap().set_ttl(seconds(20));
    assert_eq!(shown(&db), [true, true, true]);
    db.close().unwrap();

    // The next open has the time that it is given.
    let db = builder(&fs, &clock).open_ttl("/db", seconds(100)).unwrap();
    assert_eq!(shown(&db), [true, false, true]);
    // A compaction drops what has expired, of that family alone. There are keys around the others, so
    // that it has to meet them.
    for name in ["default", "short", "sums", "plain"] {
        let family = db.db().column_family(name).unwrap();
        let mut batch = WriteBatch::new();
        batch.put_cf(&family, "a", "").unwrap();
        batch.put_cf(&family, "z", "").unwrap();
        db.write(&batch).unwrap();
        family.flush().unwrap();
        family.compact_range(None, None).unwrap();
        let left = scan(&family).unwrap().into_keys().collect::<Vec<_>>();
        match name {
            "short" => assert_eq!(left, [b"a", b"z"]),
            _ => assert_eq!(left, [b"a", b"k", b"z"], "{name}"),
        }
    }
    clock.fetch_add(40, SeqCst);
    assert_eq!(shown(&db), [true, false, false]);
    assert!(plain(&db).is_some());
    db.close().unwrap();

    let db = builder(&fs, &clock).open_ttl_read_only("/db", seconds(100)).unwrap();
    assert_eq!(shown(&db), [true, false, false]);
    db.close().unwrap();
}

/// The operator of a family sees no times.
#[test]
fn operands_of_a_family_expire() {
    let (fs, clock) = (MemFs::new(), Arc::new(AtomicU64::new(NOW)));
    let db = made(&fs, &clock);
    let sums = db.column_family("sums").unwrap();
    let sum = |sums: &TtlDb| {
        let value = sums.get("k").unwrap();
        value.map(|value| u64::from_le_bytes(value[..].try_into().unwrap()))
    };
    sums.merge("k", 1u64.to_le_bytes()).unwrap();
    clock.fetch_add(30, SeqCst);
    let mut batch = WriteBatch::new();
    let family = db.db().column_family("sums").unwrap();
    batch.merge_cf(&family, "k", 2u64.to_le_bytes()).unwrap();
    db.write(&batch).unwrap();
    assert_eq!(sum(&sums), Some(3));
    family.compact_range(None, None).unwrap();
    clock.fetch_add(50, SeqCst);
    assert_eq!(sum(&sums), Some(3), "as old as its newest operand");
    clock.fetch_add(1, SeqCst);
    assert_eq!(sum(&sums), None);
    drop((sums, family));
    db.close().unwrap();
}

/// What is taken out of a directory keeps the times of its writing.
#[test]
fn salvage_keeps_times() {
    let (fs, clock) = (MemFs::new(), Arc::new(AtomicU64::new(NOW)));
    let db = made(&fs, &clock);
    db.column_family("short").unwrap().put("k", "v").unwrap();
    db.close().unwrap();
    clock.fetch_add(10, SeqCst);
    builder(&fs, &clock).salvage("/db", "/new", &mut |_| {}).unwrap();
    let db = builder(&fs, &clock).open_ttl("/new", seconds(100)).unwrap();
    let short = db.column_family("short").unwrap();
    assert_eq!(short.get("k").unwrap().as_deref(), Some(&b"v"[..]));
    clock.fetch_add(1, SeqCst);
    assert!(short.get("k").unwrap().is_none());
    drop(short);
    db.close().unwrap();
}

#[test]
fn a_time_to_live_in_the_wrong_place_is_refused() {
    let (fs, clock) = (MemFs::new(), Arc::new(AtomicU64::new(NOW)));
    let db = made(&fs, &clock);
    let error = db.column_family("plain").unwrap_err();
    assert!(error.kind() == ErrorKind::InvalidArgument && error.to_string().contains("ttl"));
    assert_eq!(db.column_family("nowhere").unwrap_err().kind(), ErrorKind::NotFound);
    let error = db.create_column_family("more", ColumnFamilyOptions::new()).unwrap_err();
    assert!(error.kind() == ErrorKind::InvalidArgument && error.to_string().contains("ttl"));
    let with = ColumnFamilyOptions::new().ttl(seconds(1));
    let error = db.db().create_column_family("more", with).unwrap_err();
    assert!(error.to_string().contains("open_ttl"), "{error}");
    assert_eq!(db.db().column_families(), ["default", "short", "sums", "plain"]);
    db.close().unwrap();
    for opened in [builder(&fs, &clock).open("/db"), builder(&fs, &clock).open_read_only("/db")] {
        let error = opened.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains("`short`"), "{error}");
    }
}
