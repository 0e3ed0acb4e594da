//! Who made a directory, and what its options file says of where things are.

use std::path::Path;

use lithify_base::ErrorKind;
use lithify_env::sync::Arc;
use lithify_env::{Fs, MemFs};
use lithify_files::testing::{dir_on, overwrite};
use lithify_journal::manifest::ManifestState;

use super::*;
use crate::manifest::{ManifestLog, recover};

mod others;

const OPTIONS: &str = "[Version]\n  rocksdb_version=11.8.1\n[DBOptions]\n  max_open_files=-1\n\
    [CFOptions \"default\"]\n  comparator=leveldb.BytewiseComparator\n  merge_operator={id=counter;}\n\
    prefix_extractor=rocksdb.FixedPrefix.4\n[TableOptions/BlockBasedTable \"default\"]\n";

fn with(text: &str) -> (MemFs, Dir) {
    let fs = MemFs::new();
    let dir = dir_on(Arc::new(fs.clone()));
    overwrite(&dir, FileName::Options(4), b"damaged, and older");
    overwrite(&dir, FileName::Options(7), text.as_bytes());
    overwrite(&dir, FileName::Wal(9), b"");
    (fs, dir)
}

#[test]
fn what_the_newest_options_say() {
    let said = declared(&with(OPTIONS).1, &(9..99)).unwrap();
    assert_eq!(said.number, Some(7));
    assert_eq!(said.merge_operators["default"], "counter");
    assert_eq!(said.prefix_extractors["default"], "rocksdb.FixedPrefix.4");
    assert_eq!(said.comparators["default"], "leveldb.BytewiseComparator");
    assert_eq!(declared(&dir_on(Arc::new(MemFs::new())), &(0..99)).unwrap().number, None);
    let error = declared(&with("[DBOptions]\nno value\n").1, &(9..99)).unwrap_err();
    assert!(error.is_corruption() && error.file().unwrap().ends_with("OPTIONS-000007"), "{error}");
}

#[test]
fn logs_elsewhere_are_named() {
    let text = OPTIONS.replace("[DBOptions]", "[DBOptions]\n  wal_dir=/logs/");
    let (fs, dir) = with(&text);
    declared(&dir, &(9..99)).unwrap();
    // The newest log here is older than the oldest that is needed.
    assert_eq!(declared(&dir, &(10..99)).unwrap_err().kind(), ErrorKind::Unsupported);
    fs.create_dir_all(Path::new("/logs")).unwrap();
    declared(&dir, &(9..99)).unwrap();
    overwrite(&Dir::new(Arc::new(fs), "/logs"), FileName::Wal(9), b"");
    let error = declared(&dir, &(9..99)).unwrap_err();
    assert!(error.to_string().contains("wal_dir"), "{error}");
    // Those there are older than any that is needed.
    declared(&dir, &(10..99)).unwrap();
}

#[test]
fn makers_are_told_apart() {
    let dir = dir_on(Arc::new(MemFs::new()));
    drop(
        ManifestLog::create(&dir, 3, ManifestState { next_file: 9, ..Default::default() }).unwrap(),
    );
    let ours = recover(&dir).unwrap().unwrap();
    assert_eq!(maker(&dir, &ours).unwrap(), Maker::Lithify);
    let plain = Recovered { ours: false, ..ours };
    assert_eq!(maker(&dir, &plain).unwrap(), Maker::LevelDb);
    let mut named = plain.clone();
    named.state.db_id = Some("id".to_owned());
    assert_eq!(maker(&dir, &named).unwrap(), Maker::RocksDb);
    overwrite(&dir, FileName::Options(7), b"");
    assert_eq!(maker(&dir, &plain).unwrap(), Maker::RocksDb);
}
