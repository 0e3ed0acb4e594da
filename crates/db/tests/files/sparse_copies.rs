//! Copies with holes (`cp --sparse=always`) of sound databases and backups are sound (reliability F23).
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "files as another program copies them"
)]

use std::fs::{self, File};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;

use lithify::verify::verify;
use lithify::{Backups, Builder, Compression, Db, Settings};
use lithify_env::{Env, PosixFs, RtOptions};

const MIB: usize = 1 << 20;

/// Lengths of values, all zeros: blocks of one, and of many.
fn lengths() -> Vec<usize> {
    let mut all = vec![3 * MIB / 2; 12];
    all.extend([100, 5000, 40 * MIB]);
    all
}

fn settings() -> Settings {
    let mut s = Settings::default();
    (s.compression_upper, s.compression_lower) = (Compression::None, Compression::None);
    s.auto_compaction = false;
    s
}

/// A copy of a file or directory without its pages of zeros.
fn copy_with_holes(from: &Path, to: &Path) {
    if from.is_dir() {
        fs::create_dir(to).unwrap();
        for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
            copy_with_holes(&entry.path(), &to.join(entry.file_name()));
        }
        return;
    }
    let (bytes, copy) = (fs::read(from).unwrap(), File::create(to).unwrap());
    copy.set_len(bytes.len() as u64).unwrap();
    for (n, page) in bytes.chunks(4096).enumerate() {
        if page.iter().any(|&b| b != 0) {
            copy.write_all_at(page, n as u64 * 4096).unwrap();
        }
    }
}

/// Bytes that a directory takes on disk.
fn on_disk(dir: &Path) -> u64 {
    let each = |entry: fs::DirEntry| match entry.metadata().unwrap() {
        meta if meta.is_dir() => on_disk(&entry.path()),
        meta => meta.blocks() * 512,
    };
    fs::read_dir(dir).unwrap().map(|entry| each(entry.unwrap())).sum()
}

fn check(db: &Db, what: &str) {
    for (n, len) in lengths().into_iter().enumerate() {
        let value = db.get([n as u8]).unwrap_or_else(|e| panic!("{what}: value {n}: {e}"));
        let value = value.unwrap_or_else(|| panic!("{what}: value {n} is gone"));
        assert!(value.len() == len && value.iter().all(|&b| b == 0), "{what}: value {n}");
    }
    let mut scan = db.iter().unwrap();
    let mut count = 0;
    scan.seek_to_first();
    while scan.valid() {
        count += 1;
        scan.next();
    }
    scan.status().unwrap();
    assert_eq!(count, lengths().len(), "{what}");
}

fn builder() -> Builder {
    Builder::new(settings())
}

/// A database with all values in one table, or all in its log.
fn made(at: &Path, flushed: bool) {
    let db = builder().open(at).unwrap();
    for (n, len) in lengths().into_iter().enumerate() {
        db.put([n as u8], vec![0; len]).unwrap();
    }
    if flushed {
        db.flush().unwrap();
    }
    db.close().unwrap();
}

fn is_sound(at: &Path, home: &Path) {
    let what = at.file_name().unwrap().to_str().unwrap();
    let report = verify(std::sync::Arc::new(PosixFs::new()), at, None, &mut |_| {}).unwrap();
    assert!(report.is_clean(), "{what}: {report:?}");
    let saved = home.join(format!("{what}-saved"));
    let report = builder().salvage(at, &saved, &mut |_| {}).unwrap();
    assert_eq!(report.keys, lengths().len() as u64, "{what}: {report:?}");
    let db = builder().open(&saved).unwrap();
    check(&db, "what was salvaged");
    db.close().unwrap();
    let db = builder().open(at).unwrap();
    check(&db, what);
    db.compact_range(None, None).unwrap();
    check(&db, "what was compacted");
    db.close().unwrap();
}

#[test]
fn a_copy_with_holes_is_as_sound_as_its_original() {
    for flushed in [true, false] {
        let home = tempfile::tempdir().unwrap();
        let (db, holes) = (home.path().join("db"), home.path().join("holes"));
        made(&db, flushed);
        copy_with_holes(&db, &holes);
        fs::remove_dir_all(&db).unwrap();
        // Tables are next to nothing, logs have a page in each block.
        assert!(on_disk(&holes) < 32 << 20, "{}", on_disk(&holes));
        is_sound(&holes, home.path());
    }
}

#[test]
fn a_table_of_holes_that_does_not_open_is_searched() {
    let home = tempfile::tempdir().unwrap();
    let (db, holes) = (home.path().join("db"), home.path().join("holes"));
    made(&db, true);
    copy_with_holes(&db, &holes);
    let found = [&db, &holes].map(|at| {
        let names = fs::read_dir(at).unwrap().map(|entry| entry.unwrap().path());
        for table in names.filter(|path| path.extension().is_some_and(|end| end == "sst")) {
            let file = File::options().write(true).open(&table).unwrap();
            let len = file.metadata().unwrap().len();
            file.write_all_at(&[0xee; 53], len - 53).unwrap();
        }
        let saved = at.with_extension("saved");
        builder().salvage(at, &saved, &mut |_| {}).unwrap()
    });
    // The largest blocks are not found in either.
    assert!(found[0].keys >= 12, "{found:?}");
    assert_eq!(found[0].keys, found[1].keys, "{found:?}");
}

#[test]
fn a_backup_with_holes_is_verified_and_restored() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name);
    made(&path("db"), true);
    let env = Env::os(RtOptions::default());
    let db = builder().env(env.clone()).open(path("db")).unwrap();
    let backups = Backups::open_in(path("backups"), env.clone()).unwrap();
    backups.create(&db, &mut |_| {}).unwrap();
    db.close().unwrap();
    drop(backups);
    copy_with_holes(&path("backups"), &path("holes"));
    assert!(on_disk(&path("holes")) < 1 << 20);
    let backups = Backups::open_in(path("holes"), env).unwrap();
    assert_eq!(backups.verify(1, &mut |_| {}).unwrap().len(), 0);
    backups.restore(1, path("restored"), &mut |_| {}).unwrap();
    let db = builder().open(path("restored")).unwrap();
    check(&db, "what was restored");
    db.close().unwrap();
}
