//! Whole databases opened by the other engine.

use std::collections::BTreeMap;
use std::path::Path;

use lithify::import::ImportOptions;
use lithify::{Builder, ColumnFamilyOptions, Compression, Db, Settings};

use rocksdb::{
    ColumnFamilyDescriptor, DB, IteratorMode, Options, SstFileWriter, WaitForCompactOptions,
    WriteBatch,
};

use crate::c_api;
use crate::our_tables::{fill, same_content, small};

/// RocksDB with small tables and no compaction but what is asked for.
fn rocks(more: &str) -> Options {
    rocks_with_tables(more, "")
}

fn rocks_with_tables(more: &str, table: &str) -> Options {
    c_api::options(&format!(
        "create_if_missing=true;write_buffer_size=65536;disable_auto_compactions=true;\
         target_file_size_base=65536;{more}block_based_table_factory={{block_size=1024;{table}\
         filter_policy=bloomfilter:10:false}}"
    ))
}

/// Our directory, settled (compacted into one run per level, nothing in the log), is a RocksDB
/// directory: opened for writing, read, written, compacted; and ours again afterwards.
#[test]
fn rocksdb_opens_a_settled_directory_of_ours() {
    for (version, codec) in [
        (5, Compression::None),
        (6, Compression::Lz4),
        (6, Compression::Snappy),
        (6, Compression::Zstd(3)),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let mut settings = small();
        settings.format_version = version;
        settings.compression_upper = codec;
        settings.compression_lower = codec;
        let db = Db::open(dir.path(), settings.clone()).unwrap();
        drop(fill(&db, 6000, 9));
        db.compact_range(None, None).unwrap();
        db.wait_idle(None).unwrap();
        db.close().unwrap();

        let ours = Db::open_read_only(dir.path(), settings.clone()).unwrap();
        let theirs = DB::open(&rocks(""), dir.path()).unwrap();
        c_api::verify_checksum(&theirs).unwrap();
        let keys = same_content(&ours, &theirs);
        assert!(keys > 1000, "{keys} keys");
        drop(ours);

        // They write, we read; we write, they read.
        theirs.put("theirs", "1").unwrap();
        theirs.delete("key00001").unwrap();
        theirs.flush().unwrap();
        theirs.put("key00002", "theirs, in the log").unwrap();
        theirs.compact_range(None::<&[u8]>, None::<&[u8]>);
        drop(theirs);
        let db = Db::open(dir.path(), settings.clone()).unwrap();
        assert_eq!(db.get("theirs").unwrap().as_deref(), Some(&b"1"[..]));
        assert_eq!(db.get("key00001").unwrap().as_deref(), None);
        assert_eq!(db.get("key00002").unwrap().as_deref(), Some(&b"theirs, in the log"[..]));
        db.put("ours", "2").unwrap();
        drop(fill(&db, 2000, 10));
        db.compact_range(None, None).unwrap();
        db.wait_idle(None).unwrap();
        db.close().unwrap();
        let ours = Db::open_read_only(dir.path(), settings).unwrap();
        let theirs = DB::open(&rocks(""), dir.path()).unwrap();
        let keys = same_content(&ours, &theirs);
        eprintln!("version {version}, {codec:?}: {keys} keys");
    }
}

/// Opens RocksDB's directory with our engine while RocksDB has it open, and compares. RocksDB is
/// idle: what it flushes meanwhile might vanish from the logs after we read the manifest.
fn same_in_ours(dir: &Path, theirs: &DB) -> usize {
    theirs.wait_for_compact(&WaitForCompactOptions::default()).unwrap();
    let ours = Db::open_read_only(dir, Settings::default()).unwrap();
    same_content(&ours, theirs)
}

/// The writes of [`fill`], into RocksDB.
fn fill_theirs(db: &DB, writes: usize, seed: u64) {
    let mut rng = fastrand::Rng::with_seed(seed);
    for _ in 0..writes {
        let n = rng.u32(0..3000);
        let key = format!("key{n:05}");
        let len = if rng.u8(0..60) == 0 { 9000 } else { rng.usize(0..200) };
        match rng.u8(0..100) {
            0..8 => db.delete(&key).unwrap(),
            8 => {
                let mut batch = WriteBatch::default();
                batch.delete_range(&key, &format!("key{:05}", n + rng.u32(1..40)));
                db.write(batch).unwrap();
            }
            _ => db.put(&key, vec![rng.u8(..); len]).unwrap(),
        }
    }
}

/// The log tail, level 0, several levels, and what a reopen left.
#[test]
fn we_open_a_directory_of_rocksdb() {
    let mut total = 0;
    for compression in ["kNoCompression", "kSnappyCompression", "kLZ4Compression", "kZSTD"] {
        let dir = tempfile::tempdir().unwrap();
        let options = rocks(&format!("compression={compression};"));
        let db = DB::open(&options, dir.path()).unwrap();
        total += same_in_ours(dir.path(), &db);
        // In the log alone.
        fill_theirs(&db, 200, 1);
        total += same_in_ours(dir.path(), &db);
        // Level 0 and the log.
        fill_theirs(&db, 6000, 2);
        total += same_in_ours(dir.path(), &db);
        // One deep level, level 0 above it, and the log.
        db.compact_range(None::<&[u8]>, None::<&[u8]>);
        let levels = || db.live_files().unwrap().iter().map(|f| f.level).max();
        assert!(levels() > Some(0));
        total += same_in_ours(dir.path(), &db);
        fill_theirs(&db, 3000, 3);
        total += same_in_ours(dir.path(), &db);
        // Reopened: the logs became tables.
        drop(db);
        let db = DB::open(&options, dir.path()).unwrap();
        total += same_in_ours(dir.path(), &db);
        fill_theirs(&db, 100, 4);
        total += same_in_ours(dir.path(), &db);
    }
    eprintln!("{total} keys of RocksDB's directories read alike");
    assert!(total > 20_000);
}

/// Opened for writing: our compaction reads tables of every form, and what comes out is the same.
#[test]
fn we_take_over_a_directory_of_rocksdb() {
    let dictionary = "compression=kZSTD;compression_opts={max_dict_bytes=4096;\
                      zstd_max_train_bytes=100000;enabled=true};";
    let prefixes = "prefix_extractor=rocksdb.CappedPrefix.3;";
    let mut total = 0;
    for (family, table) in [
        ("", "format_version=5;checksum=kCRC32c;"),
        ("", "format_version=7;index_type=kTwoLevelIndexSearch;metadata_block_size=512;"),
        ("", "separate_key_value_in_data_block=true;"),
        ("", "use_delta_encoding=false;"),
        ("", "data_block_index_type=kDataBlockBinaryAndHash;block_restart_interval=1;"),
        ("", "index_type=kBinarySearchWithFirstKey;"),
        ("compression=kNoCompression;", "block_align=true;"),
        ("compression=kLZ4Compression;", "super_block_alignment_size=4096;"),
        (prefixes, "whole_key_filtering=false;"),
        (dictionary, ""),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let db = DB::open(&rocks_with_tables(family, table), dir.path()).unwrap();
        fill_theirs(&db, 2000, 5);
        db.compact_range(None::<&[u8]>, None::<&[u8]>);
        fill_theirs(&db, 2000, 6);
        let theirs = || db.iterator(IteratorMode::Start).map(Result::unwrap);
        let mut expected: BTreeMap<Vec<u8>, Vec<u8>> =
            theirs().map(|(k, v)| (k.into(), v.into())).collect();
        drop(db);

        let ours = Db::open(dir.path(), small()).unwrap();
        assert_eq!(content(&ours), expected, "{family} {table}");
        ours.put("key", "ours").unwrap();
        ours.delete_range("key01000", "key01100").unwrap();
        expected.insert(b"key".into(), b"ours".into());
        expected.retain(|k, _| !(&b"key01000"[..]..&b"key01100"[..]).contains(&&k[..]));
        ours.compact_range(None, None).unwrap();
        assert_eq!(content(&ours), expected, "{family} {table}");
        ours.close().unwrap();
        let ours = Db::open(dir.path(), small()).unwrap();
        assert_eq!(content(&ours), expected, "{family} {table}");
        for (key, value) in &expected {
            assert_eq!(ours.get(key).unwrap().as_deref(), Some(&value[..]));
        }
        total += expected.len();
    }
    eprintln!("{total} keys of RocksDB's directories taken over");
    assert!(total > 10_000);
}

fn content(db: &Db) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut iter = db.iter().unwrap();
    iter.seek_to_first();
    while iter.valid() {
        found.insert(iter.key().to_vec(), iter.value().to_vec());
        iter.next();
    }
    iter.status().unwrap();
    found
}

/// Deletions of ranges count although RocksDB's manifest does not say which tables have them.
#[test]
fn deletions_of_ranges_in_a_foreign_directory_hide_what_is_below() {
    let dir = tempfile::tempdir().unwrap();
    let db = DB::open(&rocks(""), dir.path()).unwrap();
    for i in 0..100 {
        db.put(format!("key{i:02}"), "there").unwrap();
    }
    db.flush().unwrap();
    db.compact_range(None::<&[u8]>, None::<&[u8]>);
    let mut batch = WriteBatch::default();
    batch.delete_range("key10", "key90");
    db.write(batch).unwrap();
    db.flush().unwrap();
    assert_eq!(same_in_ours(dir.path(), &db), 20);
    let ours = Db::open_read_only(dir.path(), Settings::default()).unwrap();
    assert_eq!(ours.get("key50").unwrap().as_deref(), None);
    drop((ours, db));

    // Opened for writing, flushed and compacted by us, they stay deleted.
    let ours = Db::open(dir.path(), small()).unwrap();
    assert_eq!(ours.get("key50").unwrap().as_deref(), None);
    ours.put("key50", "new").unwrap();
    ours.compact_range(None, None).unwrap();
    assert_eq!(content(&ours).len(), 21);
    ours.close().unwrap();
}

/// Two column families, in the directory of each engine, of which the other one shows every key: in
/// tables and in the log of RocksDB, in tables alone of ours, which is settled.
#[test]
fn several_families_both_ways() {
    const NAMES: [&str; 2] = ["default", "other"];
    let open_theirs = |dir: &Path| {
        let mut options = rocks("");
        options.create_missing_column_families(true);
        let families = NAMES.map(|name| ColumnFamilyDescriptor::new(name, rocks("")));
        DB::open_cf_descriptors(&options, dir, families).unwrap()
    };
    let read_theirs = |db: &DB, name: &str| -> BTreeMap<Vec<u8>, Vec<u8>> {
        let family = db.cf_handle(name).unwrap();
        let all = db.iterator_cf(&family, IteratorMode::Start);
        all.map(|entry| entry.map(|(k, v)| (k.into_vec(), v.into_vec())).unwrap()).collect()
    };
    let key = |n: u32| format!("key{n:05}").into_bytes();

    let dir = tempfile::tempdir().unwrap();
    let theirs = open_theirs(dir.path());
    for round in 0..2 {
        for n in 0..3000 {
            let mut batch = WriteBatch::default();
            for (i, name) in (0u32..).zip(NAMES) {
                let family = theirs.cf_handle(name).unwrap();
                batch.put_cf(&family, key(n * (i + 1)), format!("{round} {name} {n}"));
                if n % 7 == 0 {
                    batch.delete_cf(&family, key(n + i));
                }
            }
            theirs.write(batch).unwrap();
        }
        if round == 0 {
            theirs.flush_cf(&theirs.cf_handle("other").unwrap()).unwrap();
        }
    }
    let told = NAMES.map(|name| read_theirs(&theirs, name));
    assert_ne!(told[0], told[1]);
    drop(theirs);
    let ours = Db::open_read_only(dir.path(), Settings::default()).unwrap();
    let shows_all = |ours: &Db| {
        assert_eq!(ours.column_families(), NAMES);
        for (name, told) in NAMES.iter().zip(&told) {
            assert!(content(&ours.column_family(name).unwrap()) == *told, "{name} differs");
        }
    };
    shows_all(&ours);
    drop(ours);
    // Taken over, with what is in the log.
    let place = tempfile::tempdir().unwrap();
    let to = place.path().join("ours");
    let options = ImportOptions { verify: true, ..ImportOptions::default() };
    let report = Builder::new(small()).import(dir.path(), &to, options, &mut |_| {}).unwrap();
    assert!(report.linked > 0 && report.batches > 0, "{report:?}");
    let ours = Db::open(&to, small()).unwrap();
    shows_all(&ours);
    ours.close().unwrap();

    let dir = tempfile::tempdir().unwrap();
    let ours = Db::open(dir.path(), small()).unwrap();
    let other = ours.create_column_family("other", ColumnFamilyOptions::new()).unwrap();
    drop(fill(&ours, 6000, 3));
    drop(fill(&other, 4000, 4));
    ours.settle().unwrap();
    let told = [content(&ours), content(&other)];
    assert_ne!(told[0], told[1]);
    drop(other);
    ours.close().unwrap();
    let theirs = open_theirs(dir.path());
    c_api::verify_checksum(&theirs).unwrap();
    for (name, told) in NAMES.iter().zip(&told) {
        assert!(read_theirs(&theirs, name) == *told, "{name} differs");
    }
}

/// The entries of a table that RocksDB ingested have one sequence number, which its manifest knows.
#[test]
fn an_ingested_table_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let db = DB::open(&rocks(""), dir.path()).unwrap();
    db.put("key", "old").unwrap();
    let path = dir.path().join("table");
    let options = rocks("");
    let mut table = SstFileWriter::create(&options);
    table.open(&path).unwrap();
    table.put("key", "new").unwrap();
    table.finish().unwrap();
    db.ingest_external_file(vec![path]).unwrap();
    assert_eq!(db.get("key").unwrap().as_deref(), Some(&b"new"[..]));
    assert_eq!(same_in_ours(dir.path(), &db), 1);
}
