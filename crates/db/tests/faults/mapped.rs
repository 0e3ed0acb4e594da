//! Tables that are read out of mappings and are damaged, or cut, under an open database: what a read says is what it says
//! without a mapping, and the program goes on (reliability F9).
#![cfg(all(target_os = "linux", target_pointer_width = "64"))]
#![allow(clippy::disallowed_methods, reason = "real files, changed from outside")]

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::common::tiny;
use lithify::verify::verify;
use lithify::{Db, ErrorKind, Settings};
use lithify_env::{Fs, OpenOpts, PosixFs};

const KEYS: u32 = 3000;

fn settings(mapped: impl Into<Option<bool>>) -> Settings {
    let mut s = tiny();
    s.mapped_reads = mapped.into();
    s.auto_compaction = false;
    s.memtable_bytes = 1 << 20;
    s
}

fn key(n: u32) -> Vec<u8> {
    format!("key{n:05}").into_bytes()
}

fn value(n: u32) -> Vec<u8> {
    let mut value = vec![0; 100];
    fastrand::Rng::with_seed(n.into()).fill(&mut value);
    value
}

/// One table with all keys.
fn filled(directory: &Path) {
    let db = Db::open(directory, settings(false)).unwrap();
    for n in 0..KEYS {
        db.put(key(n), value(n)).unwrap();
    }
    db.compact_range(None, None).unwrap();
    db.close().unwrap();
}

fn table(directory: &Path) -> PathBuf {
    let files = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let tables: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|e| e == "sst")).collect();
    assert_eq!(tables.len(), 1, "{tables:?}");
    tables[0].clone()
}

fn is_mapped(table: &Path) -> bool {
    fs::read_to_string("/proc/self/maps").unwrap().contains(table.to_str().unwrap())
}

/// What each get said: nothing for its value, the kind of the error otherwise.
fn told(db: &Db) -> Vec<Option<ErrorKind>> {
    let told = |n| match db.get(key(n)) {
        Ok(got) => {
            assert_eq!(got.as_deref(), Some(&value(n)[..]), "key {n}");
            None
        }
        Err(e) => {
            assert!(e.to_string().contains(".sst"), "{e}");
            Some(e.kind())
        }
    };
    (0..KEYS).map(told).collect()
}

/// Left to the store, tables are mapped if they fit beside what the process has mapped already.
#[test]
fn tables_are_mapped_while_there_is_room() {
    let scratch = tempfile::tempdir().unwrap();
    let place = scratch.path().join("db");
    filled(&place);
    let table = table(&place);
    let large = scratch.path().join("large");
    fs::File::create(&large).unwrap().set_len(1 << 40).unwrap();
    for (mapped, alone, beside) in
        [(None, true, false), (Some(true), true, true), (Some(false), false, false)]
    {
        let seen = || {
            let db = Db::open(&place, settings(mapped)).unwrap();
            assert!(told(&db).iter().all(Option::is_none));
            is_mapped(&table)
        };
        assert_eq!(seen(), alone, "{mapped:?}");
        let other = PosixFs::new().open(&large, OpenOpts::read().mapped()).unwrap();
        assert_eq!(seen(), beside, "{mapped:?}");
        drop(other);
    }
}

/// What the gets of a database say after `harm` was done to its table, while it is open.
fn after(mapped: bool, harm: impl Fn(&fs::File, u64)) -> Vec<Option<ErrorKind>> {
    let scratch = tempfile::tempdir().unwrap();
    filled(scratch.path());
    let table = table(scratch.path());
    let db = Db::open(scratch.path(), settings(mapped)).unwrap();
    db.get(key(0)).unwrap().unwrap();
    assert_eq!(is_mapped(&table), mapped);
    let file = fs::File::options().read(true).write(true).open(&table).unwrap();
    harm(&file, file.metadata().unwrap().len());
    let told = told(&db);
    assert_eq!(db.get(key(0)).unwrap().unwrap(), value(0), "what is whole is read");
    db.put("more", "is written").unwrap();
    assert_eq!(db.get("more").unwrap().as_deref(), Some(&b"is written"[..]));
    db.close().unwrap();
    assert!(!is_mapped(&table));
    let report = verify(std::sync::Arc::new(PosixFs::new()), scratch.path(), None, &mut |_| {});
    assert!(!report.unwrap().is_clean(), "verify finds it");
    told
}

#[test]
fn a_table_that_is_cut_is_an_error_of_those_who_want_what_is_gone() {
    let cut = |file: &fs::File, len: u64| file.set_len(len / 2).unwrap();
    let (plain, mapped) = (after(false, cut), after(true, cut));
    assert_eq!(plain, mapped);
    let gone = mapped.iter().flatten().count();
    assert!((1000..2000).contains(&gone), "{gone} of {KEYS}");
    assert!(mapped.iter().flatten().all(|kind| *kind == ErrorKind::Corruption));
}

#[test]
fn a_damaged_block_is_found() {
    let harm = |file: &fs::File, len: u64| {
        let mut byte = [0];
        file.read_exact_at(&mut byte, len / 2).unwrap();
        file.write_all_at(&[byte[0] ^ 1], len / 2).unwrap();
    };
    let (plain, mapped) = (after(false, harm), after(true, harm));
    assert_eq!(plain, mapped);
    let gone = mapped.iter().flatten().count();
    assert!((1..200).contains(&gone), "{gone} of {KEYS}");
}
