//! Identities in tables: RocksDB tells their cached blocks apart by session, database and number, so
//! each opening has a session of its own, copies of a database that went on apart included.
#![allow(clippy::disallowed_methods, reason = "a test sets up its world by itself")]

use std::collections::BTreeSet;
use std::path::Path;

use crate::common::tiny;
use lithify::{Builder, Db, TableBuilder};
use lithify_base::bytewise;
use lithify_env::{Env, OpenOpts, RtOptions};
use lithify_format::table::props::TableProps;
use lithify_tables::sst::{OpenTable, TableReader};

fn properties(env: &Env, path: &Path) -> TableProps {
    let file = env.fs.open(path, OpenOpts::read()).unwrap();
    let spec = OpenTable::new(file, path.display().to_string(), bytewise());
    TableReader::open(spec).unwrap().properties().clone()
}

/// Sessions of the tables in `dir`.
fn sessions(env: &Env, dir: &str) -> BTreeSet<String> {
    let dir = Path::new(dir);
    let names = env.fs.list(dir).unwrap().into_iter().map(|e| e.name);
    let tables = names.filter(|name| name.ends_with(".sst"));
    tables.map(|name| properties(env, &dir.join(name)).creating_session_identity).collect()
}

#[test]
fn each_opening_has_a_session_of_its_own() {
    let env = Env::in_memory(RtOptions::default());
    let open = |path: &str| {
        let mut settings = tiny();
        settings.auto_compaction = false;
        Builder::new(settings).env(env.clone()).open(path).unwrap()
    };
    let write = |db: &Db, key: &str| {
        db.put(key, key).unwrap();
        db.flush().unwrap();
    };
    let db = open("a");
    write(&db, "1");
    write(&db, "2");
    db.checkpoint("b").unwrap();
    let first = sessions(&env, "a");
    assert_eq!(first.len(), 1, "one of one opening");
    let form = |s: &String| s.len() == 20 && s.bytes().all(|b| b.is_ascii_alphanumeric());
    assert!(first.iter().all(form), "{first:?}");
    // Both go on, and use the same numbers.
    write(&db, "3");
    db.close().unwrap();
    let db = open("b");
    write(&db, "3");
    db.close().unwrap();
    assert_eq!(sessions(&env, "a"), first);
    let both = sessions(&env, "b");
    assert!(both.len() == 2 && both.is_superset(&first), "{both:?}");
    let db = open("a");
    write(&db, "4");
    let again = sessions(&env, "a");
    assert_eq!(again.len(), 2);
    assert!(again.is_disjoint(&both.difference(&first).cloned().collect()));
}

#[test]
fn tables_made_outside_have_one_each() {
    let dir = tempfile::tempdir().unwrap();
    let make = |name: &str| {
        let path = dir.path().join(name);
        let mut table = TableBuilder::create(&path, &tiny()).unwrap();
        table.put("key", "value").unwrap();
        table.finish().unwrap();
        let props = properties(&Env::os(RtOptions::default()), &path);
        assert_eq!(props.original_file_number, 1);
        (props.creating_db_identity, props.creating_session_identity)
    };
    let (a, b) = (make("a.sst"), make("b.sst"));
    assert!(a.0 != b.0 && a.1 != b.1 && a.1.len() == 20, "{a:?} {b:?}");
}
