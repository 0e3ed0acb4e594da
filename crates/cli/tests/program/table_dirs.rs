//! `--table-dir`: tables in other directories than the database's own.

use crate::common::{lithify, ok};

#[test]
fn every_command_takes_directories_of_tables() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
    let (db, fast, cold) = (at("db"), at("fast") + ":1MiB", format!("trees={}", at("cold")));
    let dirs = ["--table-dir", &fast, "--table-dir", &at("large")];
    let with = |command: &[&str]| ok(&[command, &dirs, &["--table-dir", &cold]].concat());
    with(&["family", "create", "--db", &db, "trees"]);
    for key in ["1", "2"] {
        with(&["put", "--db", &db, key, "a"]);
        with(&["put", "--db", &db, "--family", "trees", key, "b"]);
    }
    with(&["compact", &db]);
    let tables = |name: &str| {
        let entries = std::fs::read_dir(at(name)).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.extension().is_some_and(|e| e == "sst")).count()
    };
    assert!(tables("large") > 0 && tables("cold") > 0 && tables("db") == 0);
    // Who only looks at it sees them, too.
    let there = tables("fast") + tables("large") + tables("cold");
    let top = ok(&["top", &db, "--count", "1"]);
    let line = top.lines().find(|line| line.starts_with("tables ")).unwrap();
    assert!(line.contains(&format!(" {there} files, ")) && line.contains(" KiB; growing"), "{top}");
    assert_eq!(with(&["scan", "--db", &db]), "1\ta\n2\ta\n");
    assert_eq!(with(&["scan", "--db", &db, "--family", "trees"]), "1\tb\n2\tb\n");
    assert!(with(&["verify", &db]).contains("read: "));
    with(&["salvage", &db, "--to", &at("salvaged")]);
    assert_eq!(ok(&["scan", "--db", &at("salvaged"), "--family", "trees"]), "1\tb\n2\tb\n");
    let out = lithify(&["scan", "--db", &db]);
    let said = String::from_utf8(out.stderr).unwrap();
    assert!(!out.status.success() && said.contains("--table-dir"), "{said}");
}
