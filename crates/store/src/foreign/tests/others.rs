//! Tables and directories that others wrote, read through this room.
//!
//! The golden tables of `format` are always read. With `LITHIFY_ORACLES=1`, RocksDB's `ldb` (which
//! must be on the path) makes databases in several shapes, and every one of its tables is read.
// RocksDB's tool needs a real disk and a process; nothing here reaches the library.
#![allow(clippy::disallowed_methods, reason = "the test runs programs and reads files")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use crate::manifest;
use lithify_base::{Bytewise, CfId, InternalKey, Kind, MAX_SEQ, bytewise};
use lithify_env::{Mapped, OpenOpts, PosixFs};
use lithify_files::Dir;
use lithify_format::filter::key_hash;
use lithify_format::table::naive::NaiveTableReader;
use lithify_tables::cache::{TableCache, TableOptions};
use lithify_tables::sst::verify::verify;
use lithify_tables::sst::{OpenTable, TableIter, TableReader, Verify};

fn open(path: &Path) -> Arc<TableReader> {
    use lithify_env::Fs;
    let file = PosixFs::new().open(path, OpenOpts::read()).unwrap();
    TableReader::open(OpenTable::new(file, path.display().to_string(), bytewise())).unwrap()
}

fn entries(table: &Arc<TableReader>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut iter = TableIter::new(table.clone());
    let mut found = Vec::new();
    iter.seek_to_first();
    while iter.valid() {
        let key = InternalKey { user: iter.user_key(), tag: iter.tag() };
        found.push((key.to_vec(), iter.value().to_vec()));
        iter.next();
    }
    iter.status().unwrap();
    found
}

#[test]
fn golden_tables_read_as_the_naive_reader_reads_them() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../format/tests/golden");
    let mut seen = 0;
    for entry in std::fs::read_dir(golden).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "sst") {
            continue;
        }
        let bytes = std::fs::read(&path).unwrap();
        let naive = NaiveTableReader::open(&bytes).unwrap();
        let table = open(&path);
        let expected = naive.entries().unwrap();
        assert_eq!(entries(&table), expected, "{}", path.display());
        for (key, value) in &expected {
            let key = InternalKey::decode(key).unwrap();
            let found = table.get(key.user, key_hash(key.user), key.tag.seq()).unwrap();
            assert_eq!(found.map(|(tag, v)| (tag, v.to_vec())), Some((key.tag, value.clone())));
            assert!(naive.may_contain(key.user, &Bytewise).unwrap());
        }
        let ranges: u64 = table.stored_tombstones().tombs();
        assert_eq!(ranges > 0, !naive.tombstones().unwrap().is_empty());
        assert_eq!(verify(&table).unwrap().entries, expected.len() as u64);
        seen += 1;
    }
    assert!(seen >= 8, "{seen} golden tables");
}

/// Runs `ldb` on `db`; `input` goes to its standard input.
fn ldb(db: &Path, args: &[&str], input: &str) -> String {
    use std::io::Write;
    let mut child = Command::new("ldb")
        .arg(format!("--db={}", db.display()))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("`ldb` is on the path (package rocksdb-tools)");
    // A tool that fails early closes its input; what it says then is more telling.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let out = child.wait_with_output().unwrap();
    assert!(out.status.success(), "ldb {args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

#[test]
fn databases_of_rocksdb_are_read_table_by_table() {
    if std::env::var_os("LITHIFY_ORACLES").is_none() {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    for codec in ["no", "snappy", "lz4"] {
        for bloom in ["3", "10"] {
            for block in ["256", "4096"] {
                let db: PathBuf = scratch.path().join(format!("{codec}-{bloom}-{block}"));
                let compression = format!("--compression_type={codec}");
                let shape = [
                    &compression[..],
                    &format!("--bloom_bits={bloom}"),
                    &format!("--block_size={block}"),
                    "--write_buffer_size=65536",
                    "--create_if_missing",
                ];
                rocksdb_directory(&db, &shape);
            }
        }
    }
}

fn rocksdb_directory(db: &Path, shape: &[&str]) {
    let pair = |i: u32, round: &str| {
        (
            format!("key{:06}", i * 7919 % 5000),
            format!("{round}-{i}-{}", "v".repeat(i as usize % 90)),
        )
    };
    let mut model = BTreeMap::new();
    for round in ["first", "second"] {
        let mut input = String::new();
        for i in 0..4000 {
            let (key, value) = pair(i, round);
            input += &format!("{key} ==> {value}\n");
            model.insert(key, value);
        }
        ldb(db, &[shape, &["load"]].concat(), &input);
        ldb(db, &["compact"], "");
    }
    ldb(db, &["deleterange", "key001000", "key001100"], "");
    model.retain(|k, _| !("key001000".."key001100").contains(&k.as_str()));
    // Moves the memtable of the range deletion into a table.
    ldb(db, &["compact"], "");

    let dir = Dir::new(Arc::new(PosixFs::new()), db);
    let recovered = manifest::recover(&dir).unwrap().unwrap();
    let version = manifest::family_version(&recovered.state, CfId(0), bytewise()).unwrap();
    assert!(version.file_count() > 0);
    let options = TableOptions {
        order: bytewise(),
        prefixes: lithify_base::Prefixes::default(),
        blocks: None,
        verify: Verify::Always,
        direct: false,
        mapped: Mapped::No,
    };
    let tables = TableCache::new(dir, options, 100);
    let mut found = BTreeMap::new();
    for file in version.files() {
        let table = tables.open(file).unwrap();
        verify(&table).unwrap();
        for (key, value) in entries(&table) {
            let key = InternalKey::decode(&key).unwrap();
            let hash = key_hash(key.user);
            assert_eq!(table.get(key.user, hash, MAX_SEQ).unwrap().unwrap().1[..], value[..]);
            if key.tag.kind() == Some(Kind::Value) {
                let text = |b: &[u8]| String::from_utf8(b.to_vec()).unwrap();
                found.entry(text(key.user)).or_insert(text(&value));
            }
        }
    }
    assert!(found == model, "{}: {} keys of {}", db.display(), found.len(), model.len());
}
