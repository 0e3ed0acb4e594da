//! `lithify backup`: made twice, listed, checked, restored, thinned out, damaged.
#![allow(clippy::disallowed_methods, reason = "a test sets up its world by itself")]

use crate::common::{lithify, ok};

#[test]
fn backups_are_made_listed_checked_and_restored() {
    let scratch = tempfile::tempdir().unwrap();
    let path = |name: &str| scratch.path().join(name).display().to_string();
    let (db, backups, again) = (path("db"), path("backups"), path("again"));
    ok(&["put", "--db", &db, "apple", "red"]);
    assert!(ok(&["backup", "create", "--db", &db, &backups]).starts_with("backup 1: "));
    ok(&["put", "--db", &db, "apple", "green"]);
    assert!(ok(&["backup", "create", "--db", &db, &backups]).starts_with("backup 2: "));
    let list: serde_json::Value =
        serde_json::from_str(&ok(&["backup", "list", &backups, "--json"])).unwrap();
    assert_eq!((&list[0]["id"], &list[1]["id"]), (&1.into(), &2.into()));
    assert_eq!(ok(&["backup", "verify", &backups]), "backup 2 is good\n");
    ok(&["backup", "restore", &backups, &again, "--id", "1"]);
    assert_eq!(ok(&["get", "--db", &again, "apple"]), "red\n");
    assert!(ok(&["verify", &again]).contains("all good"));
    assert_eq!(ok(&["backup", "purge", &backups, "--keep", "1"]), "1 backup deleted\n");
    assert!(!lithify(&["backup", "restore", &backups, &path("x"), "--id", "1"]).status.success());
    for entry in std::fs::read_dir(scratch.path().join("backups/shared")).unwrap() {
        let path = entry.unwrap().path();
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[10] ^= 1;
        std::fs::write(&path, bytes).unwrap();
    }
    let damaged = lithify(&["backup", "verify", &backups]);
    assert_eq!(damaged.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&damaged.stdout).contains("not what was backed up"));
}

#[test]
fn backups_of_rocksdb_are_refused_and_stay() {
    let scratch = tempfile::tempdir().unwrap();
    let path = |name: &str| scratch.path().join(name).display().to_string();
    ok(&["put", "--db", &path("db"), "apple", "red"]);
    for (name, text) in
        [("meta/1", "1600000000\n5\n0\n"), ("private/1/CURRENT", "MANIFEST-000005\n")]
    {
        let file = scratch.path().join("backups").join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }
    let backups = path("backups");
    for args in [
        &["backup", "create", "--db", &path("db"), &backups][..],
        &["backup", "purge", &backups, "--all"],
        &["backup", "list", &backups],
        &["backup", "verify", &backups],
    ] {
        let refused = lithify(args);
        let said = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(1), "{args:?}");
        assert!(said.contains("`meta/1`") && said.contains("choose another"), "{args:?}: {said}");
    }
    let left: Vec<_> =
        std::fs::read_dir(&backups).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
    assert_eq!(
        std::fs::read(scratch.path().join("backups/meta/1")).unwrap(),
        b"1600000000\n5\n0\n"
    );
}
