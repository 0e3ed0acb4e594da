//! Taking over directories of other engines from the command line, and the way back.
#![allow(clippy::disallowed_methods, reason = "a test sets up its world by itself")]

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::common::{lithify, ok};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../db/tests/foreign").join(name)
}

/// A copy of a directory of another engine.
pub(crate) fn copied(name: &str, to: &Path) -> String {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(golden(name)).unwrap().map(Result::unwrap) {
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
    to.to_str().unwrap().to_owned()
}

/// What the engine that made it showed, as `scan --hex` prints it.
fn shown(name: &str) -> String {
    std::fs::read_to_string(golden(&format!("{name}.content"))).unwrap().replace(' ', "\t")
}

#[test]
fn a_directory_is_taken_over_and_settled() {
    let scratch = tempfile::tempdir().unwrap();
    let from = copied("rocksdb-versions", &scratch.path().join("rocks"));
    assert_eq!(ok(&["scan", "--hex", "--db", &from]), shown("rocksdb-versions"));
    let to = scratch.path().join("fruit").to_str().unwrap().to_owned();
    let told = ok(&["import", &from, &to, "--verify", "--json"]);
    let told: Value = serde_json::from_str(&told).unwrap();
    let keys = shown("rocksdb-versions").lines().count();
    assert_eq!((&told["maker"], &told["keys_compared"]), (&"RocksDB".into(), &keys.into()));
    assert_eq!((&told["linked"], &told["copied"]), (&told["tables"], &0.into()));
    assert_eq!(ok(&["scan", "--hex", "--db", &to]), shown("rocksdb-versions"));
    ok(&["compact", "--settle", &to]);
    assert_eq!(ok(&["scan", "--hex", "--db", &to]), shown("rocksdb-versions"));
    assert_eq!(ok(&["scan", "--hex", "--db", &from]), shown("rocksdb-versions"));
    let again = lithify(&["import", &from, &to]);
    assert_eq!(again.status.code(), Some(1), "there is something in it");
}

#[test]
fn a_directory_of_leveldb_is_upgraded_where_it_is() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = copied("leveldb-snappy", &scratch.path().join("level"));
    let kept = scratch.path().join("kept").to_str().unwrap().to_owned();
    let refused = lithify(&["put", "--db", &dir, "key", "value"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("lithify import --in-place"), "{said}");
    let told = ok(&["import", "--in-place", &dir, "--keep", &kept, "--verify"]);
    assert!(told.contains("taken over from LevelDB") && told.contains("way back"), "{told}");
    ok(&["put", "--db", &dir, "zzz", "new"]);
    assert!(ok(&["scan", "--hex", "--db", &dir]).starts_with(&shown("leveldb-snappy")));
    assert_eq!(ok(&["scan", "--hex", "--db", &kept]), shown("leveldb-snappy"));
}

#[test]
fn column_families_are_taken_over() {
    let scratch = tempfile::tempdir().unwrap();
    let from = copied("rocksdb-families", &scratch.path().join("rocks"));
    let to = scratch.path().join("fruit").to_str().unwrap().to_owned();
    ok(&["import", &from, &to, "--verify"]);
    assert_eq!(ok(&["scan", "--hex", "--db", &to]), shown("rocksdb-families"));
    let other = ok(&["scan", "--hex", "--db", &to, "--family", "other"]);
    assert_eq!(other, shown("rocksdb-families.other"));
}

#[test]
fn what_is_not_taken_over_is_named() {
    let scratch = tempfile::tempdir().unwrap();
    let from = copied("rocksdb-families", &scratch.path().join("rocks"));
    let options = Path::new(&from).join("OPTIONS-000007");
    let text = std::fs::read_to_string(&options).unwrap();
    std::fs::write(&options, text.replace("=BlockBasedTable", "=PlainTable")).unwrap();
    let to = scratch.path().join("new");
    let out = lithify(&["import", &from, to.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.code() == Some(1) && said.contains("`PlainTable`"), "{said}");
    assert!(!to.exists());
    for wrong in [&["import", &from][..], &["import", "--keep", "x", &from, "y"], &["compact"]] {
        assert_eq!(lithify(wrong).status.code(), Some(2), "{wrong:?}");
    }
}
