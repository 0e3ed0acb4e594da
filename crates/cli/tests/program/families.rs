//! `--family`: what a command reads and writes is the family's, and nothing else.

use crate::common::{lithify, ok};
use lithify::{ColumnFamilyOptions, Db, Settings};

#[test]
fn commands_keep_to_their_family() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
    let dir = path("db");
    let db = Db::open(&dir, Settings::default()).unwrap();
    db.create_column_family("trees", ColumnFamilyOptions::new()).unwrap();
    db.close().unwrap();
    ok(&["put", "--db", &dir, "apple", "red"]);
    ok(&["put", "--db", &dir, "pear", "green"]);
    ok(&["put", "--db", &dir, "fig", "blue"]);
    ok(&["put", "--db", &dir, "--family", "trees", "apple", "malus"]);
    ok(&["put", "--db", &dir, "--family", "trees", "pear", "pyrus"]);
    let rows = path("rows.tsv");
    #[allow(clippy::disallowed_methods, reason = "a test sets up its world by itself")]
    std::fs::write(&rows, "name\tvalue\nplum\tprunus\nfig\tficus\nfir\tabies\n").unwrap();
    ok(&["load", "--db", &dir, "--family", "trees", "--value", "value", &rows]);
    ok(&["delete", "--db", &dir, "--family", "trees", "pear"]);
    ok(&["delete", "--db", &dir, "--family", "trees", "--from", "fi", "--to", "fir"]);
    assert_eq!(ok(&["scan", "--db", &dir]), "apple\tred\nfig\tblue\npear\tgreen\n");
    let trees = ok(&["scan", "--db", &dir, "--family", "trees"]);
    assert_eq!(trees, "apple\tmalus\nfir\tabies\nplum\tprunus\n");
    assert_eq!(ok(&["get", "--db", &dir, "--family", "trees", "apple"]), "malus\n");
    let out = lithify(&["get", "--db", &dir, "--family", "shrubs", "apple"]);
    assert_eq!(out.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&out.stderr).contains("default, trees"));
}
