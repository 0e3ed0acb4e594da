//! Tables made outside of any database: `SstFileWriter`'s ingested by us, ours by RocksDB, each over
//! what is there already, so that they get a sequence number that is not in their blocks.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lithify::merge::built_in;
use lithify::{Builder, Compression, Db, IngestOptions, TableBuilder};
use rocksdb::{DB, IngestExternalFileOptions, SstFileWriter};

use crate::c_api;
use crate::our_tables::{same_content, small};

type Content = BTreeMap<Vec<u8>, Vec<u8>>;

fn key(n: u32) -> Vec<u8> {
    format!("key{n:05}").into_bytes()
}

/// Entries of a table: a value, or a deletion.
fn entries(rng: &mut fastrand::Rng) -> BTreeMap<Vec<u8>, Option<Vec<u8>>> {
    (0..rng.usize(1..600))
        .map(|_| {
            let value = std::iter::repeat_with(|| rng.u8(b'a'..b'e')).take(80).collect();
            (key(rng.u32(0..2000)), (rng.u8(0..5) > 0).then_some(value))
        })
        .collect()
}

fn apply(content: &mut Content, entries: &BTreeMap<Vec<u8>, Option<Vec<u8>>>) {
    for (key, value) in entries {
        match value {
            Some(value) => drop(content.insert(key.clone(), value.clone())),
            None => drop(content.remove(key)),
        }
    }
}

fn holds(db: &Db, content: &Content) {
    let mut iter = db.iter().unwrap();
    iter.seek_to_first();
    for (key, value) in content {
        assert!(iter.valid() && (iter.key(), iter.value()) == (&key[..], &value[..]));
        assert_eq!(db.get(key).unwrap().as_deref(), Some(&value[..]));
        iter.next();
    }
    iter.status().unwrap();
    assert!(!iter.valid());
}

/// RocksDB's writer, in every format version and codec; we take its tables in over writes of ours,
/// with a snapshot held, and read, reopen and compact them.
#[test]
fn their_tables_in_our_database() {
    let mut tables = 0;
    for (i, text) in [
        "format_version=5;filter_policy=bloomfilter:10:false;",
        "format_version=6;filter_policy=bloomfilter:10:false;",
        "format_version=6;index_type=kTwoLevelIndexSearch;partition_filters=true;\
         filter_policy=ribbonfilter:10:0;metadata_block_size=400;",
        "format_version=7;",
    ]
    .into_iter()
    .enumerate()
    {
        for codec in ["kNoCompression", "kSnappyCompression", "kLZ4Compression", "kZSTD"] {
            let dir = tempfile::tempdir().unwrap();
            let mut rng = fastrand::Rng::with_seed(i as u64);
            let mut content = Content::new();
            let home = dir.path().join("db");
            let db = Db::open(&home, small()).unwrap();
            let mut snapshots = Vec::new();
            for round in 0..6 {
                for _ in 0..200 {
                    let (k, v) = (key(rng.u32(0..2000)), vec![rng.u8(..); 50]);
                    db.put(&k, &v).unwrap();
                    content.insert(k, v);
                }
                snapshots.push((db.snapshot(), content.clone()));
                let path = dir.path().join(format!("{round}.sst"));
                let entries = entries(&mut rng);
                let options = c_api::options(&format!(
                    "compression={codec};block_based_table_factory={{block_size=512;{text}}}"
                ));
                let mut writer = SstFileWriter::create(&options);
                writer.open(&path).unwrap();
                for (key, value) in &entries {
                    match value {
                        Some(value) => writer.put(key, value).unwrap(),
                        None => writer.delete(key).unwrap(),
                    }
                }
                writer.finish().unwrap();
                db.ingest(&[&path], &IngestOptions::default()).unwrap();
                apply(&mut content, &entries);
                tables += 1;
                holds(&db, &content);
            }
            for (snapshot, then) in &snapshots {
                let at = lithify::ReadOptions::at(snapshot);
                for n in 0..2000 {
                    let k = key(n);
                    let now = db.get_opt(&k, &at).unwrap();
                    assert_eq!(now.as_deref(), then.get(&k).map(Vec::as_slice));
                }
            }
            drop(snapshots);
            db.close().unwrap();
            let db = Db::open(&home, small()).unwrap();
            holds(&db, &content);
            db.compact_range(None, None).unwrap();
            holds(&db, &content);
            db.close().unwrap();
        }
    }
    eprintln!("{tables} tables of RocksDB's SstFileWriter taken in");
}

/// Tables of our builder, ingested by RocksDB over what it has, which makes it give them a number.
#[test]
fn our_tables_in_their_database() {
    let mut tables = 0;
    for version in [5, 6] {
        for codec in [Compression::None, Compression::Lz4, Compression::Snappy] {
            let dir = tempfile::tempdir().unwrap();
            let mut settings = small();
            settings.format_version = version;
            settings.compression_lower = codec;
            let ours = Db::open(dir.path().join("ours"), small()).unwrap();
            let options = c_api::options("create_if_missing=true");
            let at = dir.path().join("theirs");
            let theirs = DB::open(&options, &at).unwrap();
            let mut rng = fastrand::Rng::with_seed(u64::from(version));
            for round in 0..6 {
                for _ in 0..200 {
                    let (k, v) = (key(rng.u32(0..2000)), vec![rng.u8(..); 50]);
                    ours.put(&k, &v).unwrap();
                    theirs.put(&k, &v).unwrap();
                }
                let path = dir.path().join(format!("{round}.sst"));
                let mut table = TableBuilder::create(&path, &settings).unwrap();
                let from = rng.u32(0..2000);
                table.delete_range(key(from), key(from + rng.u32(0..300))).unwrap();
                for (key, value) in entries(&mut rng) {
                    match value {
                        Some(value) => table.put(key, value).unwrap(),
                        None => table.delete(key).unwrap(),
                    }
                }
                table.finish().unwrap();
                ours.ingest(&[&path], &IngestOptions::default()).unwrap();
                take_in(&theirs, &path);
                tables += 1;
                same_content(&ours, &theirs);
            }
            c_api::verify_checksum(&theirs).unwrap();
            drop(theirs);
            let theirs = DB::open(&options, &at).unwrap();
            let keys = same_content(&ours, &theirs);
            theirs.compact_range(None::<&[u8]>, None::<&[u8]>);
            assert_eq!(same_content(&ours, &theirs), keys);
            ours.close().unwrap();
        }
    }
    eprintln!("{tables} tables of our builder ingested by RocksDB");
}

/// What a table may have besides values and deletions.
trait Maker {
    fn put(&mut self, key: &[u8], value: u64);
    fn merge(&mut self, key: &[u8], operand: u64);
    fn delete(&mut self, key: &[u8]);
    fn delete_range(&mut self, from: &[u8], to: &[u8]);
}

impl Maker for SstFileWriter<'_> {
    fn put(&mut self, key: &[u8], value: u64) {
        SstFileWriter::put(self, key, value.to_le_bytes()).unwrap();
    }
    fn merge(&mut self, key: &[u8], operand: u64) {
        SstFileWriter::merge(self, key, operand.to_le_bytes()).unwrap();
    }
    fn delete(&mut self, key: &[u8]) {
        SstFileWriter::delete(self, key).unwrap();
    }
    fn delete_range(&mut self, from: &[u8], to: &[u8]) {
        SstFileWriter::delete_range(self, from, to).unwrap();
    }
}

impl Maker for TableBuilder {
    fn put(&mut self, key: &[u8], value: u64) {
        TableBuilder::put(self, key, value.to_le_bytes()).unwrap();
    }
    fn merge(&mut self, key: &[u8], operand: u64) {
        TableBuilder::merge(self, key, operand.to_le_bytes()).unwrap();
    }
    fn delete(&mut self, key: &[u8]) {
        TableBuilder::delete(self, key).unwrap();
    }
    fn delete_range(&mut self, from: &[u8], to: &[u8]) {
        TableBuilder::delete_range(self, from, to).unwrap();
    }
}

/// A table of every kind of entry; the ranges overlap its own keys, which they leave alone.
fn make(table: &mut impl Maker, rng: &mut fastrand::Rng) {
    for _ in 0..rng.usize(0..3) {
        let from = rng.u32(0..300);
        table.delete_range(&key(from), &key(from + rng.u32(1..40)));
    }
    for n in (0..300).filter(|_| rng.u8(0..3) == 0).collect::<Vec<u32>>() {
        match rng.u8(0..5) {
            0 => table.delete(&key(n)),
            1 => table.put(&key(n), rng.u64(0..1000)),
            _ => table.merge(&key(n), rng.u64(0..1000)),
        }
    }
}

/// Tables of either maker with operands and deletions of ranges, each ingested by both databases, which
/// hold the same: over values, operands and deletions that are there already.
#[test]
fn operands_and_ranges_come_in_both_ways() {
    for version in [5, 6, 7] {
        let dir = tempfile::tempdir().unwrap();
        let mut settings = small();
        settings.format_version = version.min(6);
        let builder = || Builder::new(settings.clone()).merge_operator(built_in("max").unwrap());
        let ours = builder().open(dir.path().join("ours")).unwrap();
        let options = c_api::options(&format!(
            "create_if_missing=true;merge_operator=max;\
             block_based_table_factory={{format_version={version};block_size=512}}"
        ));
        let theirs = DB::open(&options, dir.path().join("theirs")).unwrap();
        let mut rng = fastrand::Rng::with_seed(u64::from(version));
        for round in 0..12 {
            for _ in 0..100 {
                let (k, v) = (key(rng.u32(0..300)), rng.u64(0..1000).to_le_bytes());
                match rng.u8(0..4) {
                    0 => {
                        ours.put(&k, v).unwrap();
                        theirs.put(&k, v).unwrap();
                    }
                    1 => {
                        ours.delete(&k).unwrap();
                        theirs.delete(&k).unwrap();
                    }
                    _ => {
                        ours.merge(&k, v).unwrap();
                        theirs.merge(&k, v).unwrap();
                    }
                }
            }
            let path = dir.path().join(format!("{round}.sst"));
            if round % 3 == 0 {
                let mut table = SstFileWriter::create(&options);
                table.open(&path).unwrap();
                make(&mut table, &mut rng);
                table.finish().unwrap();
            } else {
                // One that names its operator, and one that does not.
                let mut table = match round % 3 {
                    1 => builder().table(&path).unwrap(),
                    _ => TableBuilder::create(&path, &settings).unwrap(),
                };
                make(&mut table, &mut rng);
                table.finish().unwrap();
            }
            ours.ingest(&[&path], &IngestOptions::default()).unwrap();
            take_in(&theirs, &path);
            assert!(same_content(&ours, &theirs) > 20);
        }
        c_api::verify_checksum(&theirs).unwrap();
        theirs.compact_range(None::<&[u8]>, None::<&[u8]>);
        ours.compact_range(None, None).unwrap();
        let keys = same_content(&ours, &theirs);
        eprintln!("version {version}: {keys} keys read alike");
        ours.close().unwrap();
    }
}

fn take_in(theirs: &DB, path: &Path) {
    let mut how = IngestExternalFileOptions::default();
    how.set_snapshot_consistency(true);
    how.set_allow_global_seqno(true);
    let paths: Vec<PathBuf> = vec![path.to_owned()];
    theirs.ingest_external_file_opts(&how, paths).unwrap();
}
