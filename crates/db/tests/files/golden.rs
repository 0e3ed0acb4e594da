//! Whole directories of releases (contract P12): one that a release wrote opens and holds what it held;
//! one that a later release may have written is refused before a byte of it is changed.
//!
//! `golden/` has a directory for each release whose formats differ from those before, as a kill would
//! have left it. That of the formats of now is written by
//! `REWRITE=1 cargo test -p lithify --test files golden::`; those of earlier ones are never written again.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a test of bytes in files reads and writes files"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::common::image::{self, Image};
use crate::common::{Content, scan, tiny};
use lithify::{Builder, Compression, Db, Durability, Error, ErrorKind, Settings, WriteOptions};
use lithify_env::{Env, MemFs, OsRt, RtOptions};
use lithify_journal::manifest::{WireEdit, read_manifest};
use lithify_journal::wal::RecordWriter;
use lithify_journal::wal::record::HEADER_SIZE;

const DIRECTORY: &str = "/db";

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn settings() -> Settings {
    let mut s = tiny();
    s.event_log = false;
    s.auto_compaction = false;
    s.compression_upper = Compression::Lz4;
    s
}

fn open(fs: &MemFs) -> Result<Db, Error> {
    let rt = Arc::new(OsRt::new(RtOptions { seed: Some(1), ..RtOptions::default() }));
    Builder::new(settings()).env(Env { fs: Arc::new(fs.clone()), rt }).open(DIRECTORY)
}

/// Deletions, range deletions, several levels, a log with writes at every durability: the deeds, and
/// what they lead to.
fn live(fs: &MemFs) -> Db {
    let db = open(fs).unwrap();
    let key = |n: u32| format!("key{n:03}");
    for n in 0..60 {
        db.put(key(n), format!("first {n} ").repeat(3)).unwrap();
    }
    db.flush().unwrap();
    db.compact_range(None, None).unwrap();
    db.delete_range(key(10), key(20)).unwrap();
    (30..40).for_each(|n| db.put(key(n), format!("second {n}")).unwrap());
    db.delete(key(50)).unwrap();
    db.flush().unwrap();
    for (n, durability) in
        [(5, Durability::Os), (61, Durability::Sync), (62, Durability::Os), (63, Durability::Sync)]
    {
        db.put_opt(key(n), b"in the log", &WriteOptions::at(durability)).unwrap();
    }
    db.delete_range(key(40), key(42)).unwrap();
    db.put_opt(key(12), b"back", &WriteOptions::sync()).unwrap();
    db
}

fn content() -> Content {
    let mut all = Content::new();
    let key = |n: u32| format!("key{n:03}").into_bytes();
    for n in 0..60u32 {
        all.insert(key(n), format!("first {n} ").repeat(3).into_bytes());
    }
    all.retain(|k, _| !(&key(10)..&key(20)).contains(&k));
    (30..40).for_each(|n| drop(all.insert(key(n), format!("second {n}").into_bytes())));
    all.remove(&key(50));
    all.extend([5, 61, 62, 63].map(|n| (key(n), b"in the log".to_vec())));
    all.retain(|k, _| !(&key(40)..&key(42)).contains(&k));
    all.insert(key(12), b"back".to_vec());
    all
}

fn load(release: &Path) -> Image {
    let files = std::fs::read_dir(release).unwrap().map(|entry| entry.unwrap());
    let file = |e: std::fs::DirEntry| {
        (e.file_name().into_string().unwrap(), std::fs::read(e.path()).unwrap())
    };
    files.map(file).collect()
}

fn releases() -> Vec<(String, Image)> {
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    let dirs = std::fs::read_dir(golden()).unwrap().map(|entry| entry.unwrap().path());
    let mut all: Vec<_> = dirs.map(|dir| (name(&dir), load(&dir))).collect();
    all.sort();
    all
}

#[test]
fn directories_of_all_releases_open() {
    let now = golden().join(concat!(
        env!("CARGO_PKG_VERSION_MAJOR"),
        ".",
        env!("CARGO_PKG_VERSION_MINOR")
    ));
    if std::env::var_os("REWRITE").is_some() {
        let fs = MemFs::new();
        let db = live(&fs);
        let _ = std::fs::remove_dir_all(&now);
        std::fs::create_dir_all(&now).unwrap();
        for (name, bytes) in image::take(&fs, DIRECTORY) {
            std::fs::write(now.join(name), bytes).unwrap();
        }
        drop(db);
    }
    assert!(!releases().is_empty());
    for (release, image) in releases() {
        let fs = image::put(&image, DIRECTORY);
        for round in 0..2 {
            let db = open(&fs).unwrap_or_else(|e| panic!("{release}: {e:?}"));
            assert_eq!(scan(&db).unwrap(), content(), "{release}, opened {round} times before");
            let report =
                lithify::verify::verify(Arc::new(fs.clone()), DIRECTORY, None, &mut |_| {});
            assert!(report.unwrap().is_clean(), "{release}");
            db.compact_range(None, None).unwrap();
            assert_eq!(scan(&db).unwrap(), content(), "{release}, compacted");
            db.close().unwrap();
        }
    }
}

/// The file of a kind with the largest number.
fn newest<'a>(image: &'a mut Image, kind: &str) -> (&'a String, &'a mut Vec<u8>) {
    image.iter_mut().rfind(|(name, _)| image::kind(name) == kind).expect("there is one")
}

/// A record that only a later release understands, at the end of a log or manifest.
fn add_record(file: &mut Vec<u8>, add: impl FnOnce(&mut RecordWriter, &mut Vec<u8>)) {
    let mut writer = RecordWriter::at(file.len() as u64);
    add(&mut writer, file);
}

#[test]
fn files_of_later_releases_are_refused_before_a_byte_is_written() {
    type Change = fn(&mut Image) -> String;
    let changes: [(&str, Change); 3] = [
        ("an edit that may not be ignored", |image| {
            let (name, file) = newest(image, "MANIFEST");
            let number = name.trim_start_matches("MANIFEST-").parse().unwrap();
            let state = read_manifest(file, 0).unwrap().state;
            let (mut bytes, mut writer) = state.to_manifest(number);
            let at = bytes.len();
            writer.append(&WireEdit::default(), &mut bytes);
            let mut edit = bytes.split_off(at).split_off(HEADER_SIZE);
            // Tag 5000 of the manifest: no release has it, and it is not ignorable.
            edit.extend([0x88, 0x27, 1, 0]);
            add_record(&mut bytes, |writer, out| writer.append(&edit, out));
            *file = bytes;
            name.clone()
        }),
        ("a record of an unknown type", |image| {
            let (name, file) = newest(image, "log");
            add_record(file, |writer, out| writer.append_special(0x5f, b"later", out));
            name.clone()
        }),
        ("a seal of a later version", |image| {
            let (name, file) = newest(image, "log");
            let mut seal = [0; 38];
            seal[0] = 200;
            add_record(file, |writer, out| writer.append_special(0xc0, &seal, out));
            name.clone()
        }),
    ];
    for (release, image) in releases() {
        for (what, change) in changes {
            let mut later = image.clone();
            let name = change(&mut later);
            let fs = image::put(&later, DIRECTORY);
            let e = open(&fs).map(drop).expect_err(what);
            assert_eq!(e.kind(), ErrorKind::Unsupported, "{release}, {what}: {e:?}");
            assert!(e.to_string().contains(&name), "{release}, {what}: {e}");
            assert!(image::take(&fs, DIRECTORY) == later, "{release}, {what}: a byte was changed");
        }
    }
}

/// A table alone says nothing before it is read: the manifest speaks for all. A program that reads it is told,
/// and no compaction takes it for something else.
#[test]
fn a_table_of_a_later_release_is_refused_by_who_reads_it() {
    for (release, mut image) in releases() {
        let (name, table) = newest(&mut image, "table");
        let name = name.clone();
        // The version, behind the checksum kind and 40 bytes of handles.
        let at = table.len() - 12;
        table[at..at + 4].copy_from_slice(&900u32.to_le_bytes());
        let before = image[&name].clone();
        let fs = image::put(&image, DIRECTORY);
        let told = |e: Error, what: &str| {
            assert_eq!(e.kind(), ErrorKind::Unsupported, "{release}, {what}: {e:?}");
            assert!(e.to_string().contains(&name), "{release}, {what}: {e}");
        };
        match open(&fs) {
            Err(e) => told(e, "an open"),
            Ok(db) => {
                told(scan(&db).unwrap_err(), "a scan");
                told(db.compact_range(None, None).unwrap_err(), "a compaction");
                drop(db.close());
                assert_eq!(image::take(&fs, DIRECTORY)[&name], before, "the table stays as it is");
            }
        }
    }
}
