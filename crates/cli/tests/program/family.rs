//! `lithify family`: families are listed, made and dropped; refusals say what to do.

use crate::common::{lithify, ok};

/// Exit code and what was said.
fn refused(arguments: &[&str]) -> (Option<i32>, String) {
    let out = lithify(arguments);
    (out.status.code(), String::from_utf8(out.stderr).unwrap())
}

#[test]
fn families_come_and_go() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("db").to_str().unwrap().to_owned();
    let list = || ok(&["family", "list", &dir]);
    // A database is made if need be, as by `put`.
    ok(&["family", "create", "--db", &dir, "trees"]);
    ok(&["family", "create", "--db", &dir, "--reverse", "newest"]);
    assert_eq!(list(), "default\ntrees\nnewest\n");
    let json: Vec<String> = serde_json::from_str(&ok(&["family", "list", &dir, "--json"])).unwrap();
    assert_eq!(json, ["default", "trees", "newest"]);
    for key in ["1", "2"] {
        ok(&["put", "--db", &dir, "--family", "trees", key, "a"]);
        ok(&["put", "--db", &dir, "--family", "newest", key, "b"]);
    }
    assert_eq!(ok(&["scan", "--db", &dir, "--family", "trees"]), "1\ta\n2\ta\n");
    assert_eq!(ok(&["scan", "--db", &dir, "--family", "newest"]), "2\tb\n1\tb\n");
    ok(&["family", "drop", "--db", &dir, "trees"]);
    assert_eq!(list(), "default\nnewest\n");
    // Another of that name has nothing of the one before.
    ok(&["family", "create", "--db", &dir, "trees"]);
    assert_eq!(list(), "default\nnewest\ntrees\n");
    assert_eq!(ok(&["scan", "--db", &dir, "--family", "trees"]), "");
}

#[test]
fn refusals_say_what_to_do() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("db").to_str().unwrap().to_owned();
    let (code, said) = refused(&["family", "list", &dir]);
    assert!(code == Some(1) && said.contains("holds no database"), "{said}");
    let (code, said) = refused(&["family", "drop", "--db", &dir, "trees"]);
    assert!(code == Some(1) && said.contains("holds no database"), "{said}");
    ok(&["family", "create", "--db", &dir, "trees"]);
    let (code, said) = refused(&["family", "create", "--db", &dir, "trees"]);
    assert!(code == Some(2) && said.contains("--family trees"), "{said}");
    let (code, said) = refused(&["family", "create", "--db", &dir, ""]);
    assert!(code == Some(1) && said.contains("name"), "{said}");
    let (code, said) = refused(&["family", "drop", "--db", &dir, "shrubs"]);
    assert!(code == Some(2) && said.contains("the database has default, trees"), "{said}");
    let (code, said) = refused(&["family", "drop", "--db", &dir, "default"]);
    assert!(code == Some(2) && said.contains("always there"), "{said}");
    assert_eq!(ok(&["family", "list", &dir]), "default\ntrees\n");
    let help = ok(&["family", "--help"]);
    for part in ["family create --db", "family drop --db", "--family trees", "default"] {
        assert!(help.contains(part), "`{part}` is not in: {help}");
    }
}

#[test]
fn salvage_takes_all_families() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
    let (dir, new) = (path("db"), path("new"));
    ok(&["family", "create", "--db", &dir, "trees"]);
    ok(&["put", "--db", &dir, "apple", "red"]);
    ok(&["put", "--db", &dir, "--family", "trees", "apple", "malus"]);
    let told = ok(&["salvage", &dir, "--to", &new]);
    assert!(told.contains("family `trees`: 1 key"), "{told}");
    assert_eq!(ok(&["scan", "--db", &new]), "apple\tred\n");
    assert_eq!(ok(&["scan", "--db", &new, "--family", "trees"]), "apple\tmalus\n");
    let told = ok(&["salvage", &dir, "--to", &path("again"), "--json"]);
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["families"][1]["name"], "trees");
    assert_eq!(told["families"][1]["keys"], 1);
}

/// The operator of a family is given with the family's name.
#[test]
fn operators_are_given_by_family() {
    use lithify::merge::built_in;
    use lithify::{Builder, ColumnFamilyOptions, Settings};
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("db").to_str().unwrap().to_owned();
    let db = Builder::new(Settings::default()).open(&dir).unwrap();
    let counts = ColumnFamilyOptions::new().merge_operator(built_in("stringappend").unwrap());
    let counts = db.create_column_family("words", counts).unwrap();
    counts.merge("a", "1").unwrap();
    counts.merge("a", "2").unwrap();
    drop(counts);
    db.close().unwrap();
    let get = ["get", "--db", &dir, "--family", "words", "a"];
    let (code, said) = refused(&get);
    assert!(code == Some(1) && said.contains("--merge-operator words=NAME"), "{said}");
    let given = [&get[..], &["--merge-operator", "words=stringappend"]].concat();
    assert_eq!(ok(&given), "1,2\n");
    let (code, said) = refused(&[&get[..], &["--merge-operator", "words=product"]].concat());
    assert!(code == Some(2) && said.contains("uint64add"), "{said}");
}
