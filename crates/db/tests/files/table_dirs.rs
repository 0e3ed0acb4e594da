//! Tables in several directories: where they go and stay, who may have a directory, and what becomes of the
//! tables in copies.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a test of where files are looks for them"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{Content, scan, tiny};
use lithify::{Backups, Builder, ColumnFamilyOptions, Db, ErrorKind, Policy, Settings};

/// The directories of a test: `db`, and those of its tables.
struct Ground(tempfile::TempDir);

impl Ground {
    fn new() -> Ground {
        Ground(tempfile::tempdir().unwrap())
    }
    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
    /// Levels 0 and 1 in `fast`, 2 in `mid`, the others in `large`.
    fn settings(&self) -> Settings {
        let mut s = tiny();
        s.dynamic_levels = false;
        s.table_dirs([
            (self.at("fast"), 2 * s_base()),
            (self.at("mid"), 3 * s_base()),
            (self.at("large"), 0),
        ])
    }
    fn open(&self) -> Db {
        Db::open(self.at("db"), self.settings()).unwrap()
    }
}

fn s_base() -> u64 {
    tiny().level_base_bytes
}

/// Numbers of the tables in a directory, which may not be there.
fn tables(dir: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(".sst")).collect();
    names.sort();
    names
}

fn fill(db: &Db, first: u32, count: u32) {
    for n in first..first + count {
        let key = (n.wrapping_mul(2_654_435_761)).to_be_bytes();
        db.put(key, vec![n as u8; 150]).unwrap();
    }
}

/// Each table is in the directory of its level, and nowhere else is one that is needed.
fn check_places(db: &Db, ground: &Ground, of_level: [&str; 7]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for file in db.live_files() {
        let dir = of_level[usize::from(file.level)];
        let there = ground.at(dir).join(&file.name).exists();
        assert!(there, "{} of level {} is not in {dir}", file.name, file.level);
        *counts.entry(dir.to_owned()).or_insert(0) += 1;
    }
    counts
}

const BY_LEVEL: [&str; 7] = ["fast", "fast", "mid", "large", "large", "large", "large"];

#[test]
fn tables_are_in_the_directories_of_their_levels() {
    for policy in [None, Some(Policy::Leveled), Some(Policy::Universal), Some(Policy::Tiered)] {
        let ground = Ground::new();
        let mut settings = ground.settings();
        settings.policy = policy;
        // A flush goes to the first, as long as nothing is compacted.
        let resting = Settings { auto_compaction: false, ..settings.clone() };
        let db = Db::open(ground.at("db"), resting).unwrap();
        fill(&db, 0, 100);
        db.flush().unwrap();
        assert_eq!(check_places(&db, &ground, BY_LEVEL), [("fast".to_owned(), 1)].into());
        db.close().unwrap();
        let mut db = Db::open(ground.at("db"), settings.clone()).unwrap();
        let mut met = BTreeMap::new();
        for round in 0..6 {
            fill(&db, round * 4000, 4000);
            if round == 5 {
                // What is compacted by hand is no exception.
                db.compact_range(None, None).unwrap();
            }
            db.wait_idle(None).unwrap();
            met.extend(check_places(&db, &ground, BY_LEVEL));
            if round % 2 == 1 {
                let content = scan(&db).unwrap();
                db.close().unwrap();
                db = Db::open(ground.at("db"), settings.clone()).unwrap();
                assert!(scan(&db).unwrap() == content);
            }
        }
        assert!(tables(&ground.at("db")).is_empty(), "{policy:?}");
        assert!(met.contains_key("large"), "{policy:?}: {met:?}");
        db.close().unwrap();
        let report = Builder::new(settings.clone()).verify(ground.at("db"), &mut |_| {}).unwrap();
        assert!(report.is_clean() && report.tables > 0, "{policy:?}: {:?}", report.findings);
        // Nothing is left over, in no directory.
        assert!(report.orphans.is_empty(), "{policy:?}: {:?}", report.orphans);
        let read_only = Builder::new(settings.clone()).open_read_only(ground.at("db")).unwrap();
        assert_eq!(scan(&read_only).unwrap().len(), 24_000);
        let follower = Builder::new(settings).open_follower(ground.at("db")).unwrap();
        assert_eq!(scan(&follower.view()).unwrap().len(), 24_000);
    }
}

#[test]
fn orphans_are_collected_in_every_directory() {
    let ground = Ground::new();
    let db = ground.open();
    fill(&db, 0, 4000);
    db.flush().unwrap();
    db.wait_idle(None).unwrap();
    let content = scan(&db).unwrap();
    db.close().unwrap();
    // As a crash leaves one whose number was handed out.
    let orphan = ground.at("mid").join("000001.sst");
    fs::write(&orphan, "short").unwrap();
    let foreign = ground.at("mid").join("notes.sst");
    fs::write(&foreign, "not ours").unwrap();
    let db = ground.open();
    assert!(!orphan.exists() && foreign.exists());
    assert!(scan(&db).unwrap() == content);
    // A number that a file of another directory has is not used again.
    db.close().unwrap();
    fs::write(ground.at("large").join("000900.sst"), "short").unwrap();
    let db = ground.open();
    fill(&db, 4000, 100);
    db.flush().unwrap();
    let numbers = db.live_files().into_iter().map(|f| f.name[..6].parse::<u64>().unwrap());
    assert!(numbers.max().unwrap() > 900);
}

#[test]
fn directories_that_are_missing_or_anothers_are_refused() {
    let ground = Ground::new();
    let db = ground.open();
    fill(&db, 0, 8000);
    db.flush().unwrap();
    db.wait_idle(None).unwrap();
    let content = scan(&db).unwrap();
    db.close().unwrap();
    let refused = |settings: &Settings, path: &str, says: &str| {
        let builder = || Builder::new(settings.clone());
        for e in [
            builder().open(ground.at(path)).unwrap_err(),
            builder().open_read_only(ground.at(path)).unwrap_err(),
        ] {
            assert_eq!(e.kind(), ErrorKind::InvalidArgument, "{e}");
            assert!(e.to_string().contains(says), "{e}");
        }
    };
    refused(&tiny(), "db", "db_paths and cf_paths of RocksDB");
    let some = tiny().table_dirs([(ground.at("fast"), 0)]);
    refused(&some, "db", "db_paths and cf_paths of RocksDB");
    // The same ones in another order are as good.
    let mut turned = ground.settings();
    turned.table_dirs.reverse();
    let db = Db::open(ground.at("db"), turned).unwrap();
    assert!(scan(&db).unwrap() == content);
    db.close().unwrap();

    let other = ground.settings();
    let e = Db::open(ground.at("other"), other).unwrap_err();
    assert!(e.to_string().contains("tables of another database are kept here"), "{e}");
    assert!(!ground.at("other").exists(), "nothing was made");
    Db::open(ground.at("home"), tiny()).unwrap().close().unwrap();
    let into_home = tiny().table_dirs([(ground.at("home"), 0)]);
    let e = Db::open(ground.at("other"), into_home).unwrap_err();
    assert!(e.to_string().contains("there is a database here already"), "{e}");
    let e = Db::open(ground.at("fast"), tiny()).unwrap_err();
    assert!(e.to_string().contains("tables of another database are kept here"), "{e}");
    let e = Builder::new(tiny()).destroy(ground.at("fast"));
    assert!(e.is_ok() && !tables(&ground.at("fast")).is_empty());
    let five = tiny().table_dirs((0..5).map(|n| (ground.at(&n.to_string()), 0)));
    let e = Db::open(ground.at("other"), five).unwrap_err();
    assert!(e.to_string().contains("table_dirs has 5 directories"), "{e}");
    let db = ground.open();
    assert!(scan(&db).unwrap() == content);
}

/// What a copy holds is in one directory, and the copy keeps away from those of its origin.
#[test]
fn copies_have_all_tables_at_home() {
    let ground = Ground::new();
    let db = ground.open();
    fill(&db, 0, 12_000);
    db.flush().unwrap();
    db.wait_idle(None).unwrap();
    let content = scan(&db).unwrap();
    db.checkpoint(ground.at("checkpoint")).unwrap();
    let backups = Backups::open(ground.at("backups")).unwrap();
    let backup = backups.create(&db, &mut |_| {}).unwrap();
    assert!(backups.verify(backup.id, &mut |_| {}).unwrap().is_empty());
    backups.restore(backup.id, ground.at("restored"), &mut |_| {}).unwrap();
    db.close().unwrap();
    for name in ["checkpoint", "restored"] {
        // They have the id of their origin, and are refused its directories all the same.
        let e = Db::open(ground.at(name), ground.settings()).unwrap_err();
        assert!(e.to_string().contains("this one is a copy of it"), "{e}");
        let db = Db::open(ground.at(name), tiny()).unwrap();
        assert!(scan(&db).unwrap() == content);
        db.close().unwrap();
        // Its tables move on into directories of its own.
        let own = [(ground.at(&format!("{name}-tables")), 0)];
        let db = Db::open(ground.at(name), tiny().table_dirs(own)).unwrap();
        fill(&db, 0, 1000);
        db.compact_range(None, None).unwrap();
        assert!(!tables(&ground.at(&format!("{name}-tables"))).is_empty());
        db.close().unwrap();
    }
    let report = Builder::new(ground.settings())
        .salvage(ground.at("db"), ground.at("salvaged"), &mut |_| {})
        .unwrap();
    assert!(report.lost.is_empty(), "{:?}", report.lost);
    let db = Db::open(ground.at("salvaged"), tiny()).unwrap();
    assert!(scan(&db).unwrap() == content);
    assert!(scan(&ground.open()).unwrap() == content);
}

#[test]
fn a_family_has_directories_of_its_own() {
    let ground = Ground::new();
    let own = |dir: &str| {
        let settings = tiny().table_dirs([(ground.at(dir), 0)]);
        ColumnFamilyOptions::new().settings(settings)
    };
    // One inside the directory of the database, as RocksDB's users have it.
    let builder = || {
        let builder = Builder::new(tiny()).column_family("cold", own("db/cold"));
        builder.create_missing_column_families()
    };
    let db = builder().open(ground.at("db")).unwrap();
    let families = |db: &Db| ["cold", "late"].map(|name| db.column_family(name).unwrap());
    db.create_column_family("late", own("late")).unwrap();
    for family in families(&db) {
        fill(&family, 0, 3000);
        family.flush().unwrap();
    }
    assert!(tables(&ground.at("db")).is_empty());
    assert!(!tables(&ground.at("db/cold")).is_empty() && !tables(&ground.at("late")).is_empty());
    fill(&db, 0, 3000);
    db.flush().unwrap();
    assert!(!tables(&ground.at("db")).is_empty());
    db.wait_idle(None).unwrap();
    let content: [Content; 2] = families(&db).map(|family| scan(&family).unwrap());
    db.close().unwrap();

    let e = builder().open(ground.at("db")).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidArgument, "{e}");
    let builder = || builder().column_family("late", own("late"));
    let db = builder().open(ground.at("db")).unwrap();
    assert!(families(&db).map(|family| scan(&family).unwrap()) == content);
    // What is not the database's can't be taken at run time either.
    fs::create_dir(ground.at("strange")).unwrap();
    fs::write(ground.at("strange").join("000001.sst"), "strange").unwrap();
    let e = db.create_column_family("strange", own("strange")).unwrap_err();
    assert!(e.to_string().contains("there are tables here"), "{e}");
    db.drop_column_family("late").unwrap();
    db.delete_obsolete_files().unwrap();
    assert!(tables(&ground.at("late")).is_empty());
    // From outside, into the family's directory.
    let mut table = Builder::new(tiny()).table(ground.at("outside.sst")).unwrap();
    table.put(b"zz", b"outside").unwrap();
    table.finish().unwrap();
    let before = tables(&ground.at("db/cold")).len();
    let cold = db.column_family("cold").unwrap();
    cold.ingest(&[ground.at("outside.sst")], &lithify::IngestOptions::default()).unwrap();
    assert_eq!(tables(&ground.at("db/cold")).len(), before + 1);
    assert_eq!(cold.get(b"zz").unwrap().as_deref(), Some(&b"outside"[..]));
    drop(cold);
    db.close().unwrap();
    builder().destroy(ground.at("db")).unwrap();
    assert!(!ground.at("db").exists() && !ground.at("late").exists());
}

/// What was in one directory goes on in several: tables move when they are compacted, and a move to a
/// level of another directory is a rewrite.
#[test]
fn a_database_moves_into_directories() {
    let ground = Ground::new();
    let mut home = tiny();
    home.dynamic_levels = false;
    let db = Db::open(ground.at("db"), home).unwrap();
    fill(&db, 0, 10_000);
    db.flush().unwrap();
    db.wait_idle(None).unwrap();
    let content = scan(&db).unwrap();
    db.close().unwrap();
    let db = ground.open();
    assert!(scan(&db).unwrap() == content);
    fill(&db, 0, 10_000);
    db.compact_range(None, None).unwrap();
    let home = ground.at("db");
    let live = db.live_files().into_iter().filter(|file| file.directory == home).count();
    assert_eq!(live, 0, "still at home");
    // A job that is about to end may hold some.
    db.delete_obsolete_files().unwrap();
    let left = tables(&home).len();
    assert!(left == 0, "{left} are still at home");
    assert!(scan(&db).unwrap() == content);
}

/// What RocksDB 7.8 left of a life with two `db_paths`, in a new place: level 0 in `fast`, level 1 in `large`,
/// the last keys in the log.
fn of_rocksdb() -> (Ground, Settings) {
    let ground = Ground::new();
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/foreign/rocksdb-paths");
    for dir in ["db", "fast", "large"] {
        fs::create_dir(ground.at(dir)).unwrap();
        for entry in fs::read_dir(from.join(dir)).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), ground.at(dir).join(entry.file_name())).unwrap();
        }
    }
    let mut settings = tiny();
    settings.dynamic_levels = false;
    let dirs = [(ground.at("fast"), settings.level_base_bytes), (ground.at("large"), 0)];
    (ground, settings.table_dirs(dirs))
}

fn is_of_rocksdb(content: &Content) {
    let expected = (0..200).map(|i| (format!("key{i:05}").into(), format!("value {i}").into()));
    assert!(*content == expected.collect());
}

#[test]
fn directories_of_rocksdb_are_taken_over() {
    let (ground, settings) = of_rocksdb();
    let listed = || -> Vec<String> {
        let names = |dir| {
            let entries = fs::read_dir(ground.at(dir)).unwrap();
            entries.map(move |entry| format!("{dir}/{}", entry.unwrap().file_name().display()))
        };
        let mut all: Vec<String> = ["db", "fast", "large"].into_iter().flat_map(names).collect();
        all.sort();
        all
    };
    let before = listed();
    // Without its paths, or with one too few, it is refused as it is.
    let one = tiny().table_dirs([(ground.at("fast"), 0)]);
    for settings in [tiny(), one] {
        let builder = || Builder::new(settings.clone());
        let import = lithify::import::ImportOptions::default();
        for e in [
            builder().open_read_only(ground.at("db")).unwrap_err(),
            builder().import(ground.at("db"), ground.at("new"), import, &mut |_| {}).unwrap_err(),
            builder().open(ground.at("db")).unwrap_err(),
        ] {
            assert!(e.to_string().contains("is in directory number 1"), "{e}");
            assert_eq!(e.kind(), ErrorKind::InvalidArgument, "{e}");
        }
    }
    let left = |names: Vec<String>| -> Vec<String> {
        names.into_iter().filter(|name| name != "db/LOCK").collect()
    };
    assert_eq!(left(listed()), before, "nothing was written");
    let db = Builder::new(settings.clone()).open_read_only(ground.at("db")).unwrap();
    is_of_rocksdb(&scan(&db).unwrap());
    db.close().unwrap();
    // Into a new directory, which has all tables.
    let options = lithify::import::ImportOptions { verify: true, ..Default::default() };
    let report = Builder::new(settings.clone())
        .import(ground.at("db"), ground.at("new"), options, &mut |_| {})
        .unwrap();
    assert_eq!((report.tables, report.keys), (3, Some(200)));
    let db = Db::open(ground.at("new"), tiny()).unwrap();
    is_of_rocksdb(&scan(&db).unwrap());
    db.close().unwrap();
    assert_eq!(left(listed()), before);
    // As it is.
    let kept = ground.at("kept");
    let e = Builder::new(settings.clone())
        .import_in_place(ground.at("db"), Some(&kept), Default::default(), &mut |_| {})
        .unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Unsupported, "{e}");
    let db = Db::open(ground.at("db"), settings.clone()).unwrap();
    is_of_rocksdb(&scan(&db).unwrap());
    let of_level = ["fast", "large", "large", "large", "large", "large", "large"];
    assert!(check_places(&db, &ground, of_level).len() == 2);
    db.compact_range(None, None).unwrap();
    check_places(&db, &ground, of_level);
    db.close().unwrap();
    let db = Db::open(ground.at("db"), settings).unwrap();
    is_of_rocksdb(&scan(&db).unwrap());
}
