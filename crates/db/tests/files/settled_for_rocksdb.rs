//! Settled, a directory is one that RocksDB opens: no stacked runs below the topmost level, not even
//! in the history of its manifest. That RocksDB agrees, `cargo xtask interop` shows.
#![allow(clippy::disallowed_methods, reason = "a watchdog shared with other tests")]

use std::sync::Arc;

use crate::common::{image, scan, tiny};
use lithify::{Builder, Db, Policy};
use lithify_env::{Env, MemFs, OsRt, RtOptions};
use lithify_journal::manifest::WireEdit;
use lithify_journal::wal::{Found, RecordKind, RecordReader};

const DIRECTORY: &str = "/db";

fn open(fs: &MemFs) -> Db {
    let mut settings = tiny();
    settings.policy = Some(Policy::Tiered);
    let rt = Arc::new(OsRt::new(RtOptions { seed: Some(1), ..RtOptions::default() }));
    Builder::new(settings).env(Env { fs: Arc::new(fs.clone()), rt }).open(DIRECTORY).unwrap()
}

/// Files that the edits of the live manifest put where RocksDB would misread them.
fn misread(fs: &MemFs) -> usize {
    let image = image::take(fs, DIRECTORY);
    let current = String::from_utf8(image["CURRENT"].clone()).unwrap();
    let mut reader = RecordReader::new(&image[current.trim()], None);
    let mut stacked = 0;
    while let Found::Record(record) = reader.next_record() {
        assert_eq!(record.kind, RecordKind::Data);
        let edit = WireEdit::decode(&record.payload).unwrap();
        stacked += edit.added.iter().filter(|f| f.stratum > 0 || f.backing.is_some()).count();
    }
    stacked
}

#[test]
fn stacked_runs_settle() {
    let fs = MemFs::new();
    let db = open(&fs);
    let mut rng = fastrand::Rng::with_seed(7);
    for round in 0.. {
        assert!(round < 100, "no run was ever stacked:\n{}", db.picture());
        for _ in 0..1000 {
            let key = format!("key{:05}", rng.u32(0..20_000));
            db.put(key, vec![round as u8; rng.usize(0..100)]).unwrap();
        }
        db.delete_range("key01000", "key01010").unwrap();
        db.wait_idle(None).unwrap();
        if misread(&fs) > 0 {
            break;
        }
    }
    let content = scan(&db).unwrap();
    db.settle().unwrap();
    // What is written after it is kept, too.
    db.put("zzz", "in the log").unwrap();
    db.close().unwrap();
    assert_eq!(misread(&fs), 0);
    let db = open(&fs);
    let mut all = content;
    all.insert(b"zzz".to_vec(), b"in the log".to_vec());
    assert_eq!(scan(&db).unwrap(), all);

    // A tree that is settled is not compacted again.
    db.settle().unwrap();
    let before = db.stats().counts.compactions;
    db.settle().unwrap();
    assert_eq!(db.stats().counts.compactions, before);
    db.close().unwrap();
    assert_eq!(misread(&fs), 0);
}
