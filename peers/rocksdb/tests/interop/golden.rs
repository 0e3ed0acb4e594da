//! The small directories of RocksDB that the plain tests take over (`crates/db/tests/foreign`).
//!
//! `REWRITE=1` makes them anew, as a kill would leave them; else RocksDB opens copies of them and must
//! show what the files beside them say, so that the plain tests compare with RocksDB's word.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use rocksdb::{ColumnFamilyDescriptor, DB, IteratorMode, Options, WriteBatch};

use crate::c_api;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/db/tests/foreign")
}

fn options(more: &str, table: &str) -> Options {
    c_api::options(&format!(
        "create_if_missing=true;write_buffer_size=1048576;disable_auto_compactions=true;\
         keep_log_file_num=1;{more}block_based_table_factory={{block_size=512;{table}\
         filter_policy=bloomfilter:10:false}}"
    ))
}

fn key(n: u32) -> String {
    format!("key{n:03}")
}

/// A generation of writes: puts, deletions, a range deletion.
fn write(db: &DB, generation: u32) {
    let mut rng = fastrand::Rng::with_seed(u64::from(generation));
    for _ in 0..60 {
        let n = rng.u32(0..150);
        match rng.u8(0..10) {
            0 => db.delete(key(n)).unwrap(),
            _ => db.put(key(n), format!("{generation}-{n} ").repeat(rng.usize(0..8))).unwrap(),
        }
    }
    let from = rng.u32(0..140);
    let mut batch = WriteBatch::default();
    batch.delete_range(key(from), key(from + 5));
    batch.put(key(from + 2), "back");
    db.write(batch).unwrap();
}

/// Tables of every version, in three levels and level 0, and a log.
fn versions(path: &Path) -> DB {
    let tables = [
        ("compression=kNoCompression;", "format_version=2;checksum=kCRC32c;"),
        ("compression=kSnappyCompression;", "format_version=3;checksum=kxxHash;"),
        (
            "compression=kLZ4Compression;",
            "format_version=4;checksum=kxxHash64;index_type=kTwoLevelIndexSearch;\
             partition_filters=true;metadata_block_size=256;",
        ),
        ("compression=kNoCompression;", "format_version=5;whole_key_filtering=false;"),
        (
            "compression=kLZ4Compression;",
            "format_version=6;index_type=kBinarySearchWithFirstKey;\
             data_block_index_type=kDataBlockBinaryAndHash;",
        ),
        ("compression=kSnappyCompression;", "format_version=7;index_block_restart_interval=4;"),
    ];
    let mut open: Option<DB> = None;
    for (generation, (family, table)) in (0..).zip(tables) {
        drop(open.take());
        let db = DB::open(&options(family, table), path).unwrap();
        write(&db, generation);
        db.flush().unwrap();
        if generation == 1 {
            db.compact_range(None::<&[u8]>, None::<&[u8]>);
            write(&db, 10);
            db.flush().unwrap();
        }
        write(&db, 20 + generation);
        open = Some(db);
    }
    open.unwrap()
}

/// Logs written over the bytes of older ones.
fn recycled(path: &Path) -> DB {
    let db = DB::open(&options("recycle_log_file_num=2;", ""), path).unwrap();
    for generation in 0..6 {
        write(&db, generation);
        if generation < 5 {
            db.flush().unwrap();
        }
    }
    db
}

/// Two families, both with tables and writes in the log.
fn families(path: &Path) -> DB {
    let mut with = options("", "");
    with.create_missing_column_families(true);
    let all = ["default", "other"].map(|n| ColumnFamilyDescriptor::new(n, options("", "")));
    let db = DB::open_cf_descriptors(&with, path, all).unwrap();
    write(&db, 1);
    let other = db.cf_handle("other").unwrap();
    (0..40).for_each(|n| db.put_cf(other, key(n), format!("other {n}")).unwrap());
    db.flush().unwrap();
    db.flush_cf(other).unwrap();
    write(&db, 2);
    let mut batch = WriteBatch::default();
    batch.put("both", "default");
    batch.put_cf(other, "both", "other");
    batch.delete_cf(other, key(7));
    db.write(batch).unwrap();
    db
}

/// What RocksDB shows, in hexadecimal.
fn content(db: &DB, family: &str) -> String {
    let mut text = String::new();
    let family = db.cf_handle(family);
    let hex = |out: &mut String, bytes: &[u8]| {
        bytes.iter().for_each(|b| write!(out, "{b:02x}").unwrap());
    };
    let all = match family {
        Some(family) => db.iterator_cf(family, IteratorMode::Start),
        None => db.iterator(IteratorMode::Start),
    };
    for entry in all {
        let (key, value) = entry.unwrap();
        hex(&mut text, &key);
        text.push(' ');
        hex(&mut text, &value);
        text.push('\n');
    }
    text
}

/// Copies what counts: of the options files the newest.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    let names = std::fs::read_dir(from).unwrap().map(|e| e.unwrap().file_name());
    let mut names: Vec<String> = names.map(|n| n.into_string().unwrap()).collect();
    names.sort();
    let newest = names.iter().rfind(|n| n.starts_with("OPTIONS-")).cloned();
    let counts = |name: &String| {
        ["CURRENT", "IDENTITY"].contains(&name.as_str())
            || name.starts_with("MANIFEST-")
            || name.ends_with(".sst")
            || name.ends_with(".log")
            || Some(name) == newest.as_ref()
    };
    for name in names.iter().filter(|name| counts(name)) {
        std::fs::copy(from.join(name), to.join(name)).unwrap();
    }
}

#[test]
fn golden_directories_of_rocksdb() {
    type Make = fn(&Path) -> DB;
    let all: [(&str, Make, &[&str]); 3] = [
        ("rocksdb-versions", versions, &["default"]),
        ("rocksdb-recycled", recycled, &["default"]),
        ("rocksdb-families", families, &["default", "other"]),
    ];
    for (name, make, families) in all {
        let scratch = tempfile::tempdir().unwrap();
        let golden = folder().join(name);
        let of = |family: &str| match family {
            "default" => folder().join(format!("{name}.content")),
            other => folder().join(format!("{name}.{other}.content")),
        };
        if std::env::var_os("REWRITE").is_some() {
            let db = make(scratch.path());
            let _ = std::fs::remove_dir_all(&golden);
            copy(scratch.path(), &golden);
            for family in families {
                std::fs::write(of(family), content(&db, family)).unwrap();
            }
        }
        let scratch = tempfile::tempdir().unwrap();
        copy(&golden, scratch.path());
        let all = families.iter().map(|n| ColumnFamilyDescriptor::new(*n, options("", "")));
        let db = DB::open_cf_descriptors(&options("", ""), scratch.path(), all).unwrap();
        c_api::verify_checksum(&db).unwrap();
        for family in families {
            let said = std::fs::read_to_string(of(family)).unwrap();
            assert!(said.lines().count() > 30, "{name}, {family}");
            assert_eq!(content(&db, family), said, "{name}, {family}");
        }
    }
}
