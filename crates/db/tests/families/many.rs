//! How many column families there may be: any number that a program makes can be opened again, and one
//! more than that is refused before anything of it is written.

#![allow(clippy::disallowed_methods, reason = "files that no test makes family by family")]

use std::collections::BTreeMap;
use std::path::Path;

use lithify::{Builder, ColumnFamilyOptions, Db, ErrorKind, Result, Settings};
use lithify_base::CfId;
use lithify_env::{Env, RtOptions};
use lithify_journal::manifest::{FamilyState, ManifestState};

/// Families that are fine whatever the budget.
const ALWAYS: u32 = 4096;

/// Those of a database with a budget of 4 MiB.
fn small() -> Settings {
    let mut settings = Settings::default();
    (settings.memory_budget, settings.memtable_bytes, settings.memtable_count) =
        (4 << 20, 1 << 20, 2);
    settings
}

fn open(env: &Env) -> Result<Db> {
    Builder::new(small()).env(env.clone()).open("db")
}

#[test]
fn two_hundred_families_in_four_mebibytes() {
    let env = Env::in_memory(RtOptions::default());
    let db = open(&env).unwrap();
    for n in 0..200 {
        let family = db.create_column_family(&n.to_string(), ColumnFamilyOptions::new()).unwrap();
        family.put(b"k", n.to_string()).unwrap();
    }
    db.close().unwrap();
    let db = open(&env).unwrap();
    assert_eq!(db.column_families().len(), 201);
    for n in 0..200 {
        let family = db.column_family(&n.to_string()).unwrap();
        let value = family.get(b"k").unwrap();
        assert_eq!(value.as_deref(), Some(n.to_string().as_bytes()));
        if n % 2 == 0 {
            db.drop_column_family(&n.to_string()).unwrap();
        }
    }
    db.close().unwrap();
    let db = open(&env).unwrap();
    assert_eq!(db.column_families().len(), 101);
    db.close().unwrap();
}

/// A directory with `count` families, the default one among them.
fn forged(dir: &Path, count: u32) {
    let mut state = ManifestState {
        db_id: Some("0f3a".to_owned()),
        next_file: 9,
        max_cf: count,
        ..ManifestState::default()
    };
    for n in 1..count {
        let family = FamilyState { name: n.to_string(), ..FamilyState::default() };
        state.families.insert(CfId(n), family);
    }
    std::fs::write(dir.join("MANIFEST-000005"), state.to_manifest(5).0).unwrap();
    std::fs::write(dir.join("CURRENT"), "MANIFEST-000005\n").unwrap();
    std::fs::write(dir.join("IDENTITY"), "0f3a").unwrap();
}

/// All files and what is in them, without the event log.
fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    let named = entries.map(|entry| (entry.file_name().into_string().unwrap(), entry.path()));
    let kept = named.filter(|(name, _)| !name.starts_with("EVENTS"));
    kept.map(|(name, path)| (name, std::fs::read(path).unwrap())).collect()
}

#[test]
fn what_could_not_be_opened_again_is_not_made() {
    let home = tempfile::tempdir().unwrap();
    forged(home.path(), ALWAYS);
    let open = || Db::open(home.path(), small()).unwrap();
    let db = open();
    assert_eq!(db.column_families().len(), ALWAYS as usize);
    let there = files(home.path());
    let refused = db.create_column_family("more", ColumnFamilyOptions::new()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::LimitExceeded, "{refused}");
    assert!(refused.to_string().contains("memory_budget"), "{refused}");
    assert!(files(home.path()) == there, "something was written");
    db.close().unwrap();
    let db = open();
    db.drop_column_family("7").unwrap();
    db.create_column_family("more", ColumnFamilyOptions::new()).unwrap();
    db.close().unwrap();
    let db = open();
    assert_eq!(db.column_families().len(), ALWAYS as usize);
    db.close().unwrap();
}
