//! Tables of ours before RocksDB: every table of a database, all levels of it, is ingested with
//! its sequence numbers; RocksDB verifies each block and then sees what we see.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lithify::prefix::FixedPrefix;
use lithify::{Builder, Compression, Db, Policy, Settings, Snapshot};
use lithify_base::{CfId, bytewise};
use lithify_env::PosixFs;
use lithify_files::Dir;
use lithify_journal::files::FileName;
use lithify_store::manifest;
use rocksdb::{DB, ReadOptions};

use crate::c_api;
use crate::read::{open, read_every_way};

const CODECS: [Compression; 6] = [
    Compression::None,
    Compression::Snappy,
    Compression::Lz4,
    Compression::Zlib(6),
    Compression::Bzip2,
    Compression::Zstd(3),
];

/// Settings that make many small tables.
pub fn small() -> Settings {
    let mut s = Settings::default();
    s.memtable_bytes = 128 << 10;
    s.memory_budget = 16 << 20;
    s.level_base_bytes = 256 << 10;
    s.file_bytes = 128 << 10;
    s.block_bytes = 1024;
    s.compaction_threads = 2;
    s
}

/// Puts, deletes and deletions of ranges; the snapshots keep old versions alive.
pub fn fill(db: &Db, writes: usize, seed: u64) -> Vec<Snapshot> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut snapshots = Vec::new();
    for i in 0..writes {
        let n = rng.u32(0..2000);
        let key = match rng.u8(0..20) {
            0 => vec![b'k'; 1 + n as usize],
            1..4 => (0..1 + n % 12).map(|_| rng.u8(..)).collect(),
            _ => format!("key{n:05}").into_bytes(),
        };
        let len = if rng.u8(0..50) == 0 { 9000 } else { rng.usize(0..200) };
        let value: Vec<u8> = (0..len).map(|i| if i % 2 == 0 { rng.u8(..) } else { b'=' }).collect();
        match rng.u8(0..100) {
            0..8 => db.delete(&key).unwrap(),
            8 => db.delete_range(&key, [&key[..], b"~"].concat()).unwrap(),
            _ => db.put(&key, value).unwrap(),
        }
        if i % 150 == 0 {
            snapshots.push(db.snapshot());
        }
    }
    snapshots
}

/// Both iterate alike, forward and backward, and find each key and no other. The count of keys.
pub fn same_content(ours: &Db, theirs: &DB) -> usize {
    let mut a = ours.iter().unwrap();
    let mut whole = ReadOptions::default();
    whole.set_total_order_seek(true);
    let mut b = theirs.raw_iterator_opt(whole);
    let mut keys = 0;
    a.seek_to_first();
    b.seek_to_first();
    while a.valid() {
        assert_eq!((Some(a.key()), Some(a.value())), (b.key(), b.value()));
        assert_eq!(ours.get(a.key()).unwrap().as_deref(), Some(a.value()));
        assert_eq!(theirs.get(a.key()).unwrap().as_deref(), Some(a.value()));
        let absent = [a.key(), b"\x00absent"].concat();
        assert!(ours.get(&absent).unwrap().is_none() && theirs.get(&absent).unwrap().is_none());
        keys += 1;
        a.next();
        b.next();
    }
    a.status().unwrap();
    assert!(!b.valid(), "RocksDB has more: {:?}", b.key());
    b.status().unwrap();
    a.seek_to_last();
    b.seek_to_last();
    while a.valid() {
        assert_eq!((Some(a.key()), Some(a.value())), (b.key(), b.value()));
        a.prev();
        b.prev();
    }
    a.status().unwrap();
    assert!(!b.valid());
    keys
}

#[test]
fn every_version_codec_and_filter() {
    let (mut tables, mut keys) = (0, 0);
    for version in [5, 6] {
        for codec in CODECS {
            for bloom in [0, 10] {
                let mut settings = small();
                settings.format_version = version;
                settings.compression_upper = codec;
                settings.compression_lower = codec;
                settings.bloom_bits = bloom;
                let (t, k) = ingested(settings);
                tables += t;
                keys += k;
            }
        }
    }
    eprintln!("{tables} tables of ours ingested, {keys} keys read alike");
}

/// Every table's index and filter in parts, many versions of some keys among them.
#[test]
fn index_and_filter_in_parts() {
    for (version, codec) in [(5, Compression::Lz4), (6, Compression::None)] {
        let mut settings = small();
        settings.format_version = version;
        settings.compression_lower = codec;
        settings.partition_bytes = Some(1 << 10);
        settings.block_bytes = 512;
        let (tables, keys) = ingested(settings);
        eprintln!("{tables} tables of ours ingested, {keys} keys read alike");
    }
}

/// RocksDB asks our filters for prefixes, by the extractor that our tables name.
#[test]
fn prefixes_in_filters() {
    for (version, part, whole) in [(5, 0, true), (6, 1 << 10, true), (6, 1 << 10, false)] {
        let dir = tempfile::tempdir().unwrap();
        let mut settings = small();
        settings.format_version = version;
        settings.partition_bytes = Some(part);
        settings.whole_key_filtering = whole;
        settings.block_bytes = 512;
        let four = Arc::new(FixedPrefix::new(4));
        let builder = Builder::new(settings).prefix_extractor(four);
        let db = builder.open(dir.path().join("db")).unwrap();
        let snapshots = fill(&db, 6000, 5);
        db.flush().unwrap();
        db.wait_idle(None).unwrap();
        let tables = tables_deepest_first(&db, &dir.path().join("checkpoint"));
        let table = open(&tables[0]).unwrap();
        assert_eq!(table.properties().prefix_extractor_name, "rocksdb.FixedPrefix.4");
        let theirs = ingest_as(
            &tables,
            &dir.path().join("rocksdb"),
            "prefix_extractor=rocksdb.FixedPrefix.4;\
             block_based_table_factory={filter_policy=bloomfilter:10:false}",
        );
        same_content(&db, &theirs);
        let mut prefixes = 0;
        for n in 0..3000u32 {
            // Those of many keys, of one, and of none.
            let random = (n.wrapping_mul(2_654_435_761)).to_le_bytes();
            let start = match n % 3 {
                0 => format!("key{}", n / 3 % 10).into_bytes(),
                1 => random.to_vec(),
                _ => db_key(&db, n),
            };
            // RocksDB takes prefixes of what is too short without looking.
            if start.len() < 4 {
                continue;
            }
            let mut how = ReadOptions::default();
            how.set_prefix_same_as_start(true);
            let mut b = theirs.raw_iterator_opt(how);
            let limited = lithify::ReadOptions { prefix_same_as_start: true, ..Default::default() };
            let mut a = db.iter_opt(&limited).unwrap();
            a.seek(&start);
            b.seek(&start);
            prefixes += usize::from(a.valid());
            for _ in 0..20 {
                let shown = a.valid().then(|| (a.key(), a.value()));
                assert_eq!(shown, b.key().zip(b.value()), "{} {whole}", start.escape_ascii());
                if !a.valid() {
                    break;
                }
                a.next();
                b.next();
            }
            a.status().unwrap();
            b.status().unwrap();
        }
        assert!(prefixes > 300, "{prefixes} prefixes with keys");
        drop(snapshots);
    }
}

/// The first key from a place on that `n` chooses; that place if there is none.
fn db_key(db: &Db, n: u32) -> Vec<u8> {
    let from = vec![n as u8, (n >> 8) as u8];
    let mut iter = db.iter().unwrap();
    iter.seek(&from);
    if iter.valid() { iter.key().to_vec() } else { from }
}

/// Every compacted table with a dictionary.
#[test]
fn dictionaries() {
    for version in [5, 6] {
        let mut settings = small();
        settings.format_version = version;
        settings.compression_upper = Compression::Zstd(3);
        settings.compression_lower = Compression::Zstd(3);
        settings.max_dict_bytes = 2048;
        let (tables, keys) = ingested(settings);
        eprintln!("{tables} tables of ours ingested, {keys} keys read alike");
    }
}

/// A table whose index has two levels.
#[test]
fn a_two_level_index() {
    for version in [5, 6] {
        let dir = tempfile::tempdir().unwrap();
        let mut settings = small();
        settings.format_version = version;
        // One table: no buckets.
        settings.policy = Some(Policy::Hybrid);
        settings.memtable_bytes = 64 << 20;
        settings.memory_budget = 512 << 20;
        settings.file_bytes = 1 << 30;
        settings.block_bytes = 512;
        let db = Db::open(dir.path().join("db"), settings).unwrap();
        // One entry per block, and pairs of keys that differ in their last byte.
        for n in 0..24_000u64 {
            let mut head = fastrand::Rng::with_seed(n / 2);
            let head = std::iter::repeat_with(|| head.u8(..)).take(150);
            let key: Vec<u8> = head.chain([n as u8 % 2]).collect();
            db.put(key, vec![n as u8; 450]).unwrap();
        }
        db.flush().unwrap();
        let tables = tables_deepest_first(&db, &dir.path().join("checkpoint"));
        let table = open(&tables[0]).unwrap();
        assert_eq!(
            table.properties().index_type(),
            lithify_format::table::props::TWO_LEVEL,
            "no two levels"
        );
        let theirs = ingest_all(&tables, &dir.path().join("rocksdb"));
        assert_eq!(same_content(&db, &theirs), 24_000);
    }
}

/// Fills a database and has RocksDB ingest its tables; their count and the count of keys.
fn ingested(settings: Settings) -> (usize, usize) {
    let dir = tempfile::tempdir().unwrap();
    let what = format!("{settings:?}");
    let (version, partitioned) = (settings.format_version, settings.partition_bytes > Some(0));
    let dictionaries = settings.max_dict_bytes > 0;
    let db = Db::open(dir.path().join("db"), settings).unwrap();
    let snapshots = fill(&db, 6000, 3);
    db.flush().unwrap();
    db.wait_idle(None).unwrap();
    let tables = tables_deepest_first(&db, &dir.path().join("checkpoint"));
    assert!(tables.len() > 3, "{what}");
    let (mut in_parts, mut with_dictionary) = (0, 0);
    for path in &tables {
        let table = open(path).unwrap();
        assert_eq!(table.format_version(), version);
        with_dictionary += usize::from(table.decoder().dictionary_bytes() > 0);
        in_parts += usize::from(table.properties().index_partitions > 1);
        read_every_way(&table);
    }
    assert_eq!(in_parts > 3, partitioned, "{what}");
    assert_eq!(with_dictionary > 0, dictionaries, "{what}");
    let theirs = ingest_all(&tables, &dir.path().join("rocksdb"));
    let keys = same_content(&db, &theirs);
    drop(snapshots);
    // RocksDB's compaction reads every entry of ours and drops what no one sees.
    theirs.compact_range(None::<&[u8]>, None::<&[u8]>);
    assert_eq!(same_content(&db, &theirs), keys, "{what}");
    (tables.len(), keys)
}

/// A RocksDB database that took over `tables` and verified every block of them.
fn ingest_all(tables: &[PathBuf], dir: &Path) -> DB {
    ingest_as(tables, dir, "")
}

/// The same with `more` options.
fn ingest_as(tables: &[PathBuf], dir: &Path, more: &str) -> DB {
    let plain = "create_if_missing=true;disable_auto_compactions=true";
    let options = c_api::options(&format!("{plain};{more}"));
    let theirs = DB::open(&options, dir).unwrap();
    c_api::ingest(&theirs, tables).unwrap();
    c_api::verify_checksum(&theirs).unwrap();
    theirs
}

/// The tables of `db` in a checkpoint: older data first, as ingestion wants them.
pub fn tables_deepest_first(db: &Db, checkpoint: &Path) -> Vec<PathBuf> {
    db.checkpoint(checkpoint).unwrap();
    let dir = Dir::new(std::sync::Arc::new(PosixFs::new()), checkpoint);
    let found = manifest::recover(&dir).unwrap().unwrap();
    let tree = manifest::family_version(&found.state, CfId(0), bytewise()).unwrap();
    let runs: Vec<_> = tree.runs_newest_first().collect();
    let files = runs.iter().rev().flat_map(|run| run.files().iter());
    files.map(|f| dir.path_of(FileName::Table(f.backing.unwrap_or(f.id).0))).collect()
}
