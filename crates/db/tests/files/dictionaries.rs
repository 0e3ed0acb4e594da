//! Dictionaries: small similar entries take less space with one, and read as they did.
#![cfg(feature = "zstd")]
#![allow(clippy::disallowed_methods, reason = "real files")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::common::{Content, scan, tiny};
use lithify::{Compression, Db, ErrorKind, Settings};
use lithify_base::bytewise;
use lithify_env::{Fs, OpenOpts, PosixFs};
use lithify_format::table::metaindex::COMPRESSION_DICT;
use lithify_format::table::naive::NaiveTableReader;
use lithify_tables::sst::{OpenTable, TableReader, verify};

fn with_dictionary(bytes: u32) -> Settings {
    let mut s = tiny();
    s.compression_upper = Compression::Zstd(3);
    s.compression_lower = Compression::Zstd(3);
    s.max_dict_bytes = bytes;
    s.max_subcompactions = 2;
    s
}

fn sst_files(dir: &Path) -> impl Iterator<Item = PathBuf> {
    let paths = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|e| e == "sst"))
}

fn open_table(path: &Path) -> Arc<TableReader> {
    let file = PosixFs::new().open(path, OpenOpts::read()).unwrap();
    TableReader::open(OpenTable::new(file, path.display().to_string(), bytewise())).unwrap()
}

/// Bytes of data in the tables of `dir`, and how many of them have a dictionary; all are sound.
fn tables(dir: &Path) -> (u64, usize) {
    let (mut bytes, mut with) = (0, 0);
    for path in sst_files(dir) {
        let table = open_table(&path);
        verify::verify(&table).unwrap();
        bytes += table.data_bytes();
        with += usize::from(table.decoder().dictionary_bytes() > 0);
    }
    (bytes, with)
}

fn fill(dir: &Path, settings: Settings) -> (u64, usize) {
    let db = Db::open(dir, settings.clone()).unwrap();
    let mut model = Content::new();
    let mut rng = fastrand::Rng::with_seed(7);
    for n in 0..12_000u32 {
        let key = format!("customer/{:06}", rng.u32(0..6000)).into_bytes();
        let street = rng.u32(..);
        let value =
            format!("{{\"name\":\"customer {n}\",\"street\":\"{street} Long Road\"}}").into_bytes();
        db.put(&key, &value).unwrap();
        model.insert(key, value);
    }
    db.compact_range(None, None).unwrap();
    assert!(scan(&db).unwrap() == model);
    db.close().unwrap();
    let db = Db::open(dir, settings).unwrap();
    assert!(scan(&db).unwrap() == model);
    for (key, value) in model.iter().step_by(17) {
        assert_eq!(db.get(key).unwrap().as_deref(), Some(&value[..]));
    }
    db.close().unwrap();
    tables(dir)
}

#[test]
fn a_dictionary_saves_space_and_changes_nothing_else() {
    let home = tempfile::tempdir().unwrap();
    let (plain, none) = fill(&home.path().join("plain"), with_dictionary(0));
    let (small, with) = fill(&home.path().join("with"), with_dictionary(4096));
    assert_eq!(none, 0);
    assert!(with > 3, "{with} tables have one");
    println!("{small} bytes of data, {plain} without a dictionary");
    assert!(small * 10 < plain * 7, "{small} bytes, {plain} without a dictionary");
}

/// A bit of the dictionary, or of anything else: an error, never other content.
#[test]
fn a_flipped_bit_is_found() {
    let home = tempfile::tempdir().unwrap();
    fill(home.path(), with_dictionary(1024));
    let mut rng = fastrand::Rng::with_seed(3);
    let path = sst_files(home.path()).find(|p| open_table(p).decoder().dictionary_bytes() > 0);
    let path = path.expect("one of them has a dictionary");
    let good = std::fs::read(&path).unwrap();
    let dictionary = {
        let table = NaiveTableReader::open(&good).unwrap();
        let at = table.names().get(COMPRESSION_DICT).expect("the reader found it");
        at.offset as usize..(at.offset + at.size) as usize
    };
    let copy = home.path().join("copy");
    for n in 0..300 {
        let at = match n % 2 {
            0 => rng.usize(dictionary.clone()),
            _ => rng.usize(0..good.len()),
        };
        let mut bad = good.clone();
        bad[at] ^= 1 << rng.u8(0..8);
        std::fs::write(&copy, &bad).unwrap();
        let file = PosixFs::new().open(&copy, OpenOpts::read()).unwrap();
        let read = TableReader::open(OpenTable::new(file, "copy", bytewise()))
            .and_then(|table| verify::verify(&table).map(drop));
        let kind = read.expect_err("it is damaged").kind();
        assert!(matches!(kind, ErrorKind::Corruption | ErrorKind::Unsupported), "{at}: {kind:?}");
    }
}

#[test]
fn it_is_for_zstandard_alone() {
    let mut s = with_dictionary(4096);
    s.check().unwrap();
    for bytes in [1, 255, (1 << 20) + 1] {
        s.max_dict_bytes = bytes;
        assert!(s.check().unwrap_err().to_string().contains("max_dict_bytes"));
    }
    s.max_dict_bytes = 4096;
    (s.compression_upper, s.compression_lower) = (Compression::Lz4, Compression::None);
    assert_eq!(s.check().unwrap_err().kind(), ErrorKind::InvalidArgument);
}
