//! Real input: the Debian package index, keyed by name and version, the paragraph as value.
//!
//! Loaded, looked up, scanned by prefix, overwritten, compacted and verified against the source
//! text, through the binary and through the library; then reopened and verified again. The source
//! is parsed here once more, by other code than the loader's.
#![allow(clippy::disallowed_methods, reason = "a test sets up its world by itself")]

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output};

use lithify::{Db, ReadOptions, Settings, WriteBatch};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// The index as text; `None` on a machine that has no Debian package lists at all.
fn index() -> Option<Vec<u8>> {
    let dumped = Command::new("apt-cache").arg("dumpavail").output();
    if let Ok(out) = dumped
        && out.status.success()
        && out.stdout.len() > 100_000
    {
        return Some(out.stdout);
    }
    say("apt-cache has no index here; using the list of installed packages");
    match std::fs::read("/var/lib/dpkg/status") {
        Ok(text) => Some(text),
        Err(_) => {
            say("this is no Debian machine: the test on its package index is skipped");
            None
        }
    }
}

/// To standard error, past the capture of test output.
fn say(what: &str) {
    let _ = writeln!(std::io::stderr(), "debian_index: {what}");
}

/// Key and paragraph of every package, as the store should have them.
fn parse(text: &[u8]) -> Model {
    let text = std::str::from_utf8(text).expect("the index is UTF-8");
    let mut model = Model::new();
    for paragraph in text.split("\n\n") {
        let paragraph = paragraph.trim_matches('\n');
        let field = |name: &str| {
            let line = paragraph.lines().find(|line| line.starts_with(name));
            line.map(|line| line[name.len()..].trim())
        };
        if let (Some(package), Some(version)) = (field("Package:"), field("Version:")) {
            let key = format!("{package}/{version}");
            model.insert(key.into_bytes(), paragraph.as_bytes().to_vec());
        }
    }
    model
}

fn lithify(args: &[&str]) -> Output {
    let out = Command::new(env!("CARGO_BIN_EXE_lithify")).args(args).output().unwrap();
    let err = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "lithify {args:?} failed: {err}");
    out
}

/// Every key and value of the store, in order, is exactly the model's, both ways.
fn assert_same(db: &Db, model: &Model) {
    let mut iter = db.iter().unwrap();
    iter.seek_to_first();
    for (key, value) in model {
        assert!(iter.valid(), "the scan ends before {}", String::from_utf8_lossy(key));
        assert_eq!((iter.key(), iter.value()), (&key[..], &value[..]));
        iter.next();
    }
    assert!(!iter.valid(), "a key too many: {}", String::from_utf8_lossy(iter.key()));
    iter.status().unwrap();
    iter.seek_to_last();
    for key in model.keys().rev() {
        assert_eq!(iter.key(), &key[..]);
        iter.prev();
    }
    assert!(!iter.valid());
    iter.status().unwrap();
    for (key, value) in model.iter().step_by(17) {
        assert_eq!(db.get(key).unwrap().as_deref(), Some(&value[..]));
        let absent = [&key[..], b"~"].concat();
        assert_eq!(db.get(&absent).unwrap().as_deref(), None);
    }
}

/// What the command line shows of the store is the model's.
fn assert_shown(dir: &str, model: &Model) {
    for (key, value) in model.iter().step_by(model.len() / 7 + 1) {
        let key = std::str::from_utf8(key).unwrap();
        assert_eq!(&lithify(&["get", "--db", dir, "--raw", key]).stdout, value);
    }
    let shown = lithify(&["scan", "--db", dir, "--prefix", "lib", "--keys-only"]).stdout;
    let wanted: Vec<u8> = model
        .range(b"lib".to_vec()..b"lic".to_vec())
        .flat_map(|(key, _)| [&key[..], b"\n"].concat())
        .collect();
    assert!(!wanted.is_empty() && shown == wanted, "scan by prefix differs");
}

/// Overwrites, deletes and range-deletes, in the store and in the model.
fn change(db: &Db, model: &mut Model) {
    let mut batch = WriteBatch::new();
    let keys: Vec<Vec<u8>> = model.keys().cloned().collect();
    for (i, key) in keys.iter().enumerate() {
        if i % 11 == 0 {
            batch.delete(key).unwrap();
            model.remove(key);
        } else if i % 7 == 0 {
            let value = [b"overwritten: ", &key[..]].concat();
            batch.put(key, &value).unwrap();
            model.insert(key.clone(), value);
        }
    }
    db.write(&batch).unwrap();
    let (from, to) = (b"libx".to_vec(), b"liby".to_vec());
    db.delete_range(&from, &to).unwrap();
    model.retain(|key, _| *key < from || *key >= to);
}

#[test]
fn the_package_index_survives_everything() {
    let Some(text) = index() else { return };
    let mut model = parse(&text);
    assert!(model.len() > 50, "an index of {} packages", model.len());
    let scratch = tempfile::tempdir().unwrap();
    let (source, dir) = (scratch.path().join("index.deb822"), scratch.path().join("db"));
    std::fs::write(&source, &text).unwrap();
    let (source, dir) = (source.to_str().unwrap(), dir.to_str().unwrap());

    let loaded = lithify(&["load", "--db", dir, "--key", "Package,Version", "--json", source]);
    let summary = String::from_utf8(loaded.stdout).unwrap();
    assert!(summary.contains("\"rows\""), "{summary}");
    assert_shown(dir, &model);

    let mut settings = Settings::default();
    // Small tables, so that a few tens of MB make a tree with levels.
    settings.memtable_bytes = 4 << 20;
    settings.file_bytes = 2 << 20;
    settings.level_base_bytes = 8 << 20;
    let db = Db::open(dir, settings.clone()).unwrap();
    assert_same(&db, &model);
    let before = db.snapshot();
    let old = model.clone();
    change(&db, &mut model);
    assert_same(&db, &model);
    db.flush().unwrap();
    db.compact_range(None, None).unwrap();
    assert_same(&db, &model);
    let at_snapshot = ReadOptions::at(&before);
    for (key, value) in old.iter().step_by(11) {
        let found = db.get_opt(key, &at_snapshot).unwrap();
        assert_eq!(found.as_deref(), Some(&value[..]), "the snapshot lost a version");
    }
    drop((before, at_snapshot));
    db.close().unwrap();

    assert_shown(dir, &model);
    lithify(&["compact", "--db", dir]);
    lithify(&["verify", "--db", dir]);
    let copy = scratch.path().join("copy");
    lithify(&["checkpoint", "--db", dir, copy.to_str().unwrap()]);
    for place in [Path::new(dir), &copy] {
        lithify(&["verify", "--db", place.to_str().unwrap()]);
        let db = Db::open(place, settings.clone()).unwrap();
        assert_same(&db, &model);
        db.close().unwrap();
    }
}
