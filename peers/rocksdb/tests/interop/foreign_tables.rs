//! RocksDB's tables before our reader.
//!
//! Each shape of table is made twice: by `SstFileWriter`, and by a database, from its memtable
//! and again by a compaction. What was written is known, entry by entry, since snapshots keep
//! every version and sequence numbers count the writes; RocksDB's own iterator must agree.

use std::path::Path;

use lithify_base::Kind;
use rocksdb::{DB, Options, ReadOptions, SstFileWriter, WriteBatch};

use crate::c_api;
use crate::history::{Entry, History, Range, join_operands};
use crate::read::{false_positives, open, read_every_way, tables_in};

const CODECS: [&str; 7] = [
    "kNoCompression",
    "kSnappyCompression",
    "kZlibCompression",
    "kBZip2Compression",
    "kLZ4Compression",
    "kLZ4HCCompression",
    "kZSTD",
];
const BLOOM: &str = "filter_policy=bloomfilter:10:false";
const PARTITIONED: &str = "index_type=kTwoLevelIndexSearch;partition_filters=true";

/// Options that change a table's bytes, in RocksDB's words.
#[derive(Clone, Debug)]
struct Shape {
    version: u32,
    codec: &'static str,
    /// Of the table; each ends in a semicolon.
    table: String,
    /// Of the column family; likewise.
    family: String,
}

impl Shape {
    fn new(version: u32, codec: &'static str, table: &[&str]) -> Shape {
        let table = table.iter().filter(|t| !t.is_empty()).map(|t| format!("{t};")).collect();
        Shape { version, codec, table, family: String::new() }
    }

    fn options(&self) -> Options {
        let Shape { version, codec, table, family } = self;
        let mut options = c_api::options(&format!(
            "create_if_missing=true;disable_auto_compactions=true;compression={codec};{family}\
             block_based_table_factory={{block_size=512;metadata_block_size=400;{table}\
             format_version={version}}}"
        ));
        options.set_merge_operator_associative("commas", join_operands);
        options
    }
}

/// What was read.
#[derive(Default, Debug)]
struct Seen {
    tables: usize,
    entries: usize,
    ranges: usize,
}

impl Seen {
    fn add(&mut self, other: Seen) {
        self.tables += other.tables;
        self.entries += other.entries;
        self.ranges += other.ranges;
    }
}

#[test]
fn every_version_codec_index_and_filter() {
    let mut seen = Seen::default();
    for version in [5, 6, 7] {
        for codec in CODECS {
            for index in ["", PARTITIONED] {
                for filter in ["", BLOOM] {
                    seen.add(both(&Shape::new(version, codec, &[index, filter])));
                }
            }
        }
    }
    eprintln!("{seen:?}");
    assert!(seen.tables >= 84 * 3);
}

#[test]
fn older_versions() {
    let mut seen = Seen::default();
    for version in [2, 3, 4] {
        for codec in CODECS {
            for table in [&[BLOOM][..], &[PARTITIONED, BLOOM]] {
                seen.add(both(&Shape::new(version, codec, table)));
            }
        }
    }
    eprintln!("{seen:?}");
}

#[test]
fn every_other_option_that_changes_bytes() {
    let mut seen = Seen::default();
    for version in [5, 6, 7] {
        for table in [
            "checksum=kNoChecksum",
            "checksum=kCRC32c",
            "checksum=kxxHash",
            "checksum=kxxHash64",
            "data_block_index_type=kDataBlockBinaryAndHash",
            "index_type=kBinarySearchWithFirstKey",
            "index_type=kTwoLevelIndexSearch",
            "index_type=kTwoLevelIndexSearch;partition_filters=true;\
             decouple_partitioned_filters=true",
            "index_shortening=kNoShortening",
            "index_shortening=kShortenSeparatorsAndSuccessor",
            "index_block_restart_interval=16",
            "block_restart_interval=1",
            "use_delta_encoding=false",
            "enable_index_compression=false",
            "super_block_alignment_size=4096;super_block_alignment_space_overhead_ratio=4",
            "separate_key_value_in_data_block=true",
            "separate_key_value_in_data_block=true;data_block_index_type=kDataBlockBinaryAndHash",
            "uniform_cv_threshold=10;index_block_search_type=kAuto",
            "optimize_filters_for_memory=true",
        ] {
            seen.add(both(&Shape::new(version, "kLZ4Compression", &[table, BLOOM])));
        }
        let ribbon = "filter_policy=ribbonfilter:10";
        seen.add(both(&Shape::new(version, "kZSTD", &[ribbon])));
        seen.add(both(&Shape::new(version, "kNoCompression", &["block_align=true"])));
        // A filter of key prefixes alone says nothing of whole keys.
        let prefixes = ["whole_key_filtering=false", BLOOM];
        let family = "prefix_extractor=rocksdb.CappedPrefix.3;".to_owned();
        let of_prefixes = Shape { family, ..Shape::new(version, "kLZ4Compression", &prefixes) };
        seen.add(both(&of_prefixes));
        seen.add(both(&Shape { table: "index_type=kHashSearch;".into(), ..of_prefixes }));
    }
    eprintln!("{seen:?}");
}

#[test]
fn dictionaries() {
    let mut seen = Seen::default();
    for version in 2..=7 {
        for codec in CODECS {
            for trained in [0, 100_000] {
                let family = format!(
                    "compression_opts={{max_dict_bytes=4096;zstd_max_train_bytes={trained};\
                     enabled=true}};bottommost_compression_opts={{max_dict_bytes=4096;\
                     zstd_max_train_bytes={trained};enabled=true}};"
                );
                let shape = Shape { family, ..Shape::new(version, codec, &[BLOOM]) };
                seen.add(both(&shape));
            }
        }
    }
    eprintln!("{seen:?}");
}

/// A table of `SstFileWriter` and tables of a database.
fn both(shape: &Shape) -> Seen {
    let dir = tempfile::tempdir().unwrap();
    let mut seen = lone_table(shape, &dir.path().join("table.sst"));
    seen.add(database(shape, &dir.path().join("db")));
    seen
}

/// Keys of every length from 1 to 300, and many of everyday lengths.
fn keys() -> Vec<Vec<u8>> {
    let long = (1..=300).map(|n| (0..n).map(|i| (n * 7 + i * n) as u8).collect::<Vec<u8>>());
    let short = (0..500).map(|i| format!("key{:05}", i * 3).into_bytes());
    let mut keys: Vec<_> = long.chain(short).collect();
    keys.sort();
    keys.dedup();
    keys
}

/// From empty to 200 KB; half of it compresses.
fn value(rng: &mut fastrand::Rng) -> Vec<u8> {
    let len = match rng.u32(0..1000) {
        0 => 200_000,
        1..50 => 0,
        50..100 => 3000,
        _ => rng.usize(0..120),
    };
    let first = rng.u8(..);
    (0..len).map(|i| if i % 2 == 0 { first } else { rng.u8(..) & 0x3f }).collect()
}

fn write_table(shape: &Shape, path: &Path) -> History {
    let options = shape.options();
    let mut table = SstFileWriter::create(&options);
    table.open(path).unwrap();
    let mut rng = fastrand::Rng::with_seed(7);
    let mut history = History::default();
    for key in keys() {
        let (kind, value) = match rng.u8(0..10) {
            0 => (Kind::Delete, Vec::new()),
            1 => (Kind::Merge, value(&mut rng)),
            _ => (Kind::Value, value(&mut rng)),
        };
        match kind {
            Kind::Delete => table.delete(&key),
            Kind::Merge => table.merge(&key, &value),
            _ => table.put(&key, &value),
        }
        .unwrap();
        history.entries.push(Entry { key, seq: 0, kind, value });
    }
    for (lo, hi) in [("key00100", "key00200"), ("key00300", "key00700")] {
        table.delete_range(lo, hi).unwrap();
        history.ranges.push(Range { lo: lo.into(), hi: hi.into(), seq: 0 });
    }
    table.finish().unwrap();
    history
}

fn lone_table(shape: &Shape, path: &Path) -> Seen {
    let written = write_table(shape, path);
    let table = open(path).unwrap_or_else(|e| panic!("{shape:?}: {e}"));
    assert_eq!(table.format_version(), shape.version, "{shape:?}");
    let read = read_every_way(&table);
    assert!(read == written, "{shape:?}");
    check_filter(shape, &table, &read);
    check_shape(shape, &table);

    // RocksDB agrees. There a deletion of a range hides nothing of its own table.
    let dir = tempfile::tempdir().unwrap();
    let db = DB::open(&shape.options(), dir.path()).unwrap();
    db.ingest_external_file(vec![path]).unwrap();
    same_view(&db, ReadOptions::default(), &read, u64::MAX, shape);
    Seen { tables: 1, entries: read.entries.len(), ranges: read.ranges.len() }
}

/// The options had the effect they are here for.
fn check_shape(shape: &Shape, table: &lithify_tables::sst::TableReader) {
    let props = table.properties();
    let is_two_level = props.index_type() == lithify_format::table::props::TWO_LEVEL;
    assert_eq!(is_two_level, shape.table.contains("kTwoLevel"), "{shape:?}");
    assert_eq!(props.filter_size > 0, shape.table.contains("filter_policy"), "{shape:?}");
    assert!(!is_two_level || props.index_partitions > 2, "{shape:?}");
}

fn check_filter(shape: &Shape, table: &lithify_tables::sst::TableReader, read: &History) {
    let (passed, of) = false_positives(table, &read.entries);
    // Older versions have an older filter, which is taken to hold everything.
    let whole_keys = !shape.table.contains("whole_key_filtering=false") && shape.version >= 5;
    if whole_keys && shape.table.contains("bloomfilter") {
        assert!(passed <= of / 20, "{shape:?}: {passed} of {of} absent keys pass");
    } else if !shape.table.contains("ribbonfilter") {
        // A partitioned filter knows that nothing is above its last key; one of prefixes alone denies
        // only what begins with a key that is shorter than those.
        assert!(passed + 10 > of, "{shape:?}: only {passed} of {of} absent keys pass");
    }
}

fn database(shape: &Shape, path: &Path) -> Seen {
    let db = DB::open(&shape.options(), path).unwrap();
    let mut snapshots = vec![db.snapshot()];
    let mut history = History::default();
    let keys = keys();
    let mut rng = fastrand::Rng::with_seed(11);
    for i in 0..900u64 {
        write_one(&db, &mut history, &keys, &mut rng, i + 1);
        snapshots.push(db.snapshot());
        if i == 300 {
            db.flush().unwrap();
        }
    }
    db.flush().unwrap();
    history.sort();

    let mut seen = Seen::default();
    for compact in [false, true] {
        if compact {
            db.compact_range(None::<&[u8]>, None::<&[u8]>);
        }
        let mut read = History::default();
        let live = db.live_files().unwrap();
        for file in &live {
            let table = open(&path.join(file.name.trim_start_matches('/'))).unwrap();
            assert_eq!(table.format_version(), shape.version, "{shape:?}");
            let of_table = read_every_way(&table);
            check_filter(shape, &table, &of_table);
            check_shape(shape, &table);
            read.entries.extend(of_table.entries);
            read.ranges.extend(of_table.ranges);
        }
        assert_eq!(live.len(), if compact { 1 } else { 2 });
        assert!(live.iter().all(|f| (f.level > 0) == compact));
        read.sort();
        if compact {
            settle(&mut history);
        }
        assert!(read.entries == history.entries, "{shape:?}");
        for (i, snapshot) in snapshots.iter().enumerate().skip(1).step_by(123) {
            assert_eq!(read.view(i as u64), history.view(i as u64), "{shape:?} at {i}");
            let mut at = ReadOptions::default();
            at.set_snapshot(snapshot);
            same_view(&db, at, &read, i as u64, shape);
        }
        seen.add(Seen {
            tables: live.len(),
            entries: read.entries.len(),
            ranges: read.ranges.len(),
        });
    }
    assert_eq!(tables_in(path).len(), 1, "compacted tables are gone");
    seen
}

/// What a compaction into the last level does to the entries, although snapshots keep every one:
/// a delete above nothing goes, and an operand above nothing is the value.
fn settle(history: &mut History) {
    let all = std::mem::take(&mut history.entries);
    for versions in all.chunk_by(|a, b| a.key == b.key) {
        let mut kept = versions.to_vec();
        while kept.last().is_some_and(|e| e.kind == Kind::Delete) {
            kept.pop();
        }
        if let Some(last) = kept.last_mut().filter(|e| e.kind == Kind::Merge) {
            last.kind = Kind::Value;
        }
        history.entries.extend(kept);
    }
}

/// One write of a random kind, as number `seq`.
fn write_one(db: &DB, history: &mut History, keys: &[Vec<u8>], rng: &mut fastrand::Rng, seq: u64) {
    let key = match rng.u8(0..4) {
        // Many versions of one key, over several blocks.
        0 => b"key00300".to_vec(),
        _ => keys[rng.usize(0..keys.len())].clone(),
    };
    if rng.u8(0..30) == 0 {
        let end = [&key[..], b"~"].concat();
        let mut batch = WriteBatch::default();
        batch.delete_range(&key, &end);
        db.write(batch).unwrap();
        history.ranges.push(Range { lo: key, hi: end, seq });
        return;
    }
    let (kind, value) = match rng.u8(0..12) {
        0 => (Kind::Delete, Vec::new()),
        1 => (Kind::Merge, value(rng)),
        _ => (Kind::Value, value(rng)),
    };
    match kind {
        Kind::Delete => db.delete(&key),
        Kind::Merge => db.merge(&key, &value),
        _ => db.put(&key, &value),
    }
    .unwrap();
    history.entries.push(Entry { key, seq, kind, value });
}

/// RocksDB's iterator shows what `read` says is visible at `at`.
fn same_view(db: &DB, how: ReadOptions, read: &History, at: u64, shape: &Shape) {
    let mut theirs = db.raw_iterator_opt(how);
    theirs.seek_to_first();
    for (key, value) in read.view(at) {
        assert_eq!(theirs.key(), Some(&key[..]), "{shape:?} at {at}");
        assert!(theirs.value() == Some(&value[..]), "{shape:?} at {at}");
        theirs.next();
    }
    assert!(!theirs.valid(), "{shape:?} at {at}: {:?} is left", theirs.key());
    theirs.status().unwrap();
}
