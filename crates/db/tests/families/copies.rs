//! Backups, checkpoints and followers of a database with several column families: each shows all of them
//! at one moment, in their own orders and under their own operators.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::{Content, scan, tiny};
use lithify::merge::Add;
use lithify::{
    Backups, Builder, ColumnFamilyOptions, Db, ErrorKind, Policy, ReverseBytewise, Settings,
    WriteBatch,
};

const NAMES: [&str; 3] = ["default", "back", "sums"];

fn own(name: &str) -> ColumnFamilyOptions {
    let mut settings = tiny();
    settings.policy = Some(if name == "back" { Policy::Universal } else { Policy::Leveled });
    let options = ColumnFamilyOptions::new().settings(settings);
    match name {
        "back" => options.comparator(Arc::new(ReverseBytewise)),
        _ => options.merge_operator(Arc::new(Add)),
    }
}

fn builder() -> Builder {
    let named = |b: Builder, name: &&str| b.column_family(name, own(name));
    NAMES[1..].iter().fold(Builder::new(tiny()), named)
}

fn made(dir: &Path) -> Db {
    let db = builder().open(dir).unwrap();
    NAMES[1..].iter().for_each(|name| drop(db.create_column_family(name, own(name)).unwrap()));
    db
}

/// Batches over all families, `count` of them from `first` on: each adds one to the sum.
fn write(db: &Db, first: u32, count: u32) {
    let all = NAMES.map(|name| db.column_family(name).unwrap());
    for n in first..first + count {
        let mut batch = WriteBatch::new();
        for family in &all[..2] {
            batch.put_cf(family, n.to_be_bytes(), vec![n as u8; 120]).unwrap();
        }
        batch.merge_cf(&all[2], b"sum", 1u64.to_le_bytes()).unwrap();
        db.write(&batch).unwrap();
    }
}

fn contents(db: &Db) -> [Content; 3] {
    NAMES.map(|name| scan(&db.column_family(name).unwrap()).unwrap())
}

/// All families show the same batch; its number.
fn batches(db: &Db) -> u64 {
    let [plain, back, sums] = contents(db);
    assert!(plain == back, "{} and {} keys", plain.len(), back.len());
    let sum = sums.get(&b"sum"[..]).map_or(0, |v| u64::from_le_bytes(v[..].try_into().unwrap()));
    assert_eq!(plain.len() as u64, sum);
    sum
}

#[test]
fn a_backup_has_all_families_at_its_moment() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| -> PathBuf { place.path().join(name) };
    let db = made(&at("db"));
    let backups = Backups::open(at("backups")).unwrap();
    let mut made = Vec::new();
    for round in 0..3 {
        write(&db, round * 500, 500);
        if round == 1 {
            let stop = AtomicBool::new(false);
            // Others write meanwhile: it has a first part of that, in all families the same.
            made.push(std::thread::scope(|s| {
                s.spawn(|| {
                    let mut n = 10_000;
                    while !stop.load(Ordering::Relaxed) {
                        write(&db, n, 1);
                        n += 1;
                    }
                });
                let summary = backups.create(&db, &mut |_| {});
                stop.store(true, Ordering::Relaxed);
                summary.unwrap()
            }));
        } else {
            made.push(backups.create(&db, &mut |_| {}).unwrap());
        }
    }
    // Once nothing is compacted any more.
    assert!(db.wait_idle(None).unwrap());
    backups.create(&db, &mut |_| {}).unwrap();
    let again = backups.create(&db, &mut |_| {}).unwrap();
    assert_eq!(again.copied, 0, "what is there is not copied again");
    let whole = contents(&db);
    let count = batches(&db);
    db.close().unwrap();
    for (summary, (least, most)) in made.iter().zip([(500, 500), (1000, count), (count, count)]) {
        assert!(backups.verify(summary.id, &mut |_| {}).unwrap().is_empty());
        let to = at(&format!("restored-{}", summary.id));
        backups.restore(summary.id, &to, &mut |_| {}).unwrap();
        let db = builder().open(&to).unwrap();
        assert_eq!(db.column_families(), NAMES);
        let shown = batches(&db);
        assert!((least..=most).contains(&shown), "{shown} is not in {least} to {most}");
        // It is a database like any other.
        write(&db, 50_000, 300);
        for name in NAMES {
            db.column_family(name).unwrap().compact_range(None, None).unwrap();
        }
        assert_eq!(batches(&db), shown + 300);
        db.close().unwrap();
        // And remembers what its families were opened with.
        let families = Settings::stored_families_in(&to, &tiny()).unwrap();
        assert_eq!(families["back"].policy, Some(Policy::Universal));
    }
    let last = at(&format!("restored-{}", again.id));
    backups.restore(again.id, &last, &mut |_| {}).unwrap();
    let db = builder().open(&last).unwrap();
    assert!(contents(&db) == whole);
    db.close().unwrap();
}

#[test]
fn a_follower_sees_families_come_and_go() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("db");
    let db = builder().open(&dir).unwrap();
    let follower = builder().open_follower(&dir).unwrap();
    assert_eq!(follower.view().column_families(), ["default"]);
    for name in &NAMES[1..] {
        db.create_column_family(name, own(name)).unwrap();
    }
    follower.catch_up().unwrap();
    assert_eq!(follower.view().column_families(), NAMES);
    std::thread::scope(|s| {
        let writer = s.spawn(|| {
            for round in 0..10 {
                write(&db, round * 100, 100);
                let name = NAMES[round as usize % 3];
                db.column_family(name).unwrap().flush().unwrap();
            }
        });
        let mut shown = 0;
        while !writer.is_finished() {
            match follower.catch_up() {
                Ok(_) => {}
                Err(e) => assert_eq!(e.kind(), ErrorKind::Stalled, "{e}"),
            }
            let now = batches(&follower.view());
            assert!(now >= shown, "time runs forward: {now} after {shown}");
            shown = now;
        }
    });
    follower.catch_up().unwrap();
    let old = follower.view();
    assert_eq!(batches(&old), 1000);
    db.drop_column_family("back").unwrap();
    follower.catch_up().unwrap();
    assert_eq!(follower.view().column_families(), ["default", "sums"]);
    assert_eq!(batches(&old), 1000, "an old view stays as it was");
    db.close().unwrap();
}
