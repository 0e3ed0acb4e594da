//! What cannot be taken over: RocksDB's own directories with each feature that is not read here are
//! refused by its name, before a byte is written.

use std::path::Path;

use lithify::import::ImportOptions;
use lithify::{Builder, Db, ErrorKind, Settings};
use rocksdb::{DB, Options, WriteBatch};

use crate::c_api;
use crate::history::join_operands;

fn rocks(more: &str) -> Options {
    c_api::options(&format!("create_if_missing=true;disable_auto_compactions=true;{more}"))
}

/// Names, lengths and contents of all files that say what the database is. RocksDB goes on writing its
/// own log of messages, and LOCK may be made.
fn files(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let all = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name());
    let mut names: Vec<String> = all.map(|n| n.into_string().unwrap()).collect();
    names.retain(|n| !n.starts_with("LOG") && n != "LOCK");
    names.sort();
    names.into_iter().map(|n| (n.clone(), std::fs::read(dir.join(n)).unwrap())).collect()
}

/// Reading shows an error that names the feature, never a wrong value.
fn not_read(dir: &Path, word: &str) {
    let found = Db::open_read_only(dir, Settings::default()).and_then(|db| {
        let mut iter = db.iter()?;
        iter.seek_to_first();
        while iter.valid() {
            iter.next();
        }
        iter.status()
    });
    named(found.unwrap_err(), word);
}

fn named(error: lithify::Error, word: &str) {
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert!(error.to_string().contains(word), "`{word}` is not in: {error}");
    eprintln!("{error}");
}

/// No way in takes it over, and all leave it as it is.
fn not_taken_over(dir: &Path, word: &str) {
    let before = files(dir);
    let place = tempfile::tempdir().unwrap();
    let (to, kept) = (place.path().join("new"), place.path().join("kept"));
    let options = ImportOptions::default();
    let builder = || Builder::new(Settings::default());
    named(builder().import(dir, &to, options, &mut |_| {}).unwrap_err(), word);
    named(builder().import_in_place(dir, Some(&kept), options, &mut |_| {}).unwrap_err(), word);
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0, "{word}: something was made");
    assert!(files(dir) == before, "{word}: the source was changed");
}

/// Each feature in a log, and flushed to a table.
fn in_log_and_table(options: &Options, word: &str, write: impl Fn(&DB)) {
    for flushed in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let db = DB::open(options, dir.path()).unwrap();
        write(&db);
        if flushed {
            db.flush().unwrap();
        }
        not_read(dir.path(), word);
        // RocksDB flushes nothing on its way out here, so the log stays what it is.
        drop(db);
        not_taken_over(dir.path(), word);
    }
}

/// A batch with one entry of this kind, as RocksDB's log has it.
fn batch_of(kind: u8, key: &[u8], value: &[u8]) -> WriteBatch {
    let mut bytes = vec![0; 8];
    bytes.extend(1u32.to_le_bytes());
    bytes.push(kind);
    for part in [key, value] {
        bytes.push(u8::try_from(part.len()).unwrap());
        bytes.extend(part);
    }
    WriteBatch::from_data(&bytes)
}

#[test]
fn wide_columns() {
    in_log_and_table(&rocks("avoid_flush_during_shutdown=true"), "wide columns", |db| {
        db.put("key", "plain").unwrap();
        // Version 1, one column of the name `c` with a value of one byte.
        db.write(batch_of(0x16, b"wide", b"\x01\x01\x01c\x01v")).unwrap();
    });
}

#[test]
fn user_defined_timestamps() {
    let options = rocks("comparator=leveldb.BytewiseComparator.u64ts");
    in_log_and_table(&options, "timestamps", |db| {
        db.put_with_ts("key", 7u64.to_le_bytes(), "value").unwrap();
    });
}

#[test]
fn values_in_files_of_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let db = DB::open(&rocks("enable_blob_files=true;min_blob_size=10;"), dir.path()).unwrap();
    db.put("key", [b'v'; 1000]).unwrap();
    db.flush().unwrap();
    not_read(dir.path(), "blob");
    drop(db);
    not_taken_over(dir.path(), "blob");
}

#[test]
fn operands_of_an_unknown_operator() {
    let mut options = rocks("avoid_flush_during_shutdown=true");
    options.set_merge_operator_associative("commas", join_operands);
    in_log_and_table(&options, "merge", |db| db.merge("key", "1").unwrap());
}

/// A log in compressed records.
#[test]
fn compressed_logs() {
    let dir = tempfile::tempdir().unwrap();
    let db = DB::open(&rocks("wal_compression=kZSTD;avoid_flush_during_shutdown=true"), dir.path());
    let db = db.unwrap();
    db.put("key", [b'v'; 1000]).unwrap();
    not_read(dir.path(), "compress");
    drop(db);
    not_taken_over(dir.path(), "compress");
}
