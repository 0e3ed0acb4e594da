//! `lithify backup`: made twice, listed, checked, restored, thinned out, damaged.
#![allow(clippy::disallowed_methods, reason = "a test sets up its world by itself")]

mod common;

use common::{lithify, ok};

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
