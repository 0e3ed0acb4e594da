//! A directory's life in RocksDB, from a seed: random writes, snapshots, compactions and closes, under
//! options that change from one open to the next.
//!
//! Keeps: the twin says what RocksDB shows; RocksDB's own view is compared with it before each close.

use std::path::Path;

use fastrand::Rng;
use rocksdb::{
    BottommostLevelCompaction, ColumnFamilyDescriptor, CompactOptions, DB, Options, ReadOptions,
    SstFileWriter, WaitForCompactOptions, WriteBatch,
};

use super::twin::{Content, Deed, Family, Mix, Twin, difference};
use crate::c_api;

/// What stays the same over all opens of a directory.
pub struct Kind {
    pub universal: bool,
    levels: u32,
    /// Fewer writes, and no codec that the plain tests lack.
    pub golden: bool,
}

impl Kind {
    /// Of a directory that was settled.
    pub const LEVELED: Kind = Kind { universal: false, levels: 7, golden: false };

    pub fn random(golden: bool, rng: &mut Rng) -> Kind {
        Kind { universal: rng.u8(0..3) == 0, levels: rng.u32(3..8), golden }
    }
}

const TABLES: [&str; 8] = [
    "",
    "index_type=kTwoLevelIndexSearch;metadata_block_size=256;",
    "index_type=kTwoLevelIndexSearch;partition_filters=true;metadata_block_size=256;",
    "index_type=kBinarySearchWithFirstKey;",
    "data_block_index_type=kDataBlockBinaryAndHash;",
    "use_delta_encoding=false;index_block_restart_interval=4;",
    "block_restart_interval=1;enable_index_compression=false;",
    "whole_key_filtering=false;",
];
const FILTERS: [&str; 4] = [
    "",
    "filter_policy=bloomfilter:10:false",
    "filter_policy=ribbonfilter:10",
    "filter_policy=ribbonfilter:10:1",
];
const SUMS: [&str; 4] = ["kCRC32c", "kxxHash", "kxxHash64", "kXXH3"];
const CODECS: [&str; 8] = [
    "kNoCompression",
    "kSnappyCompression",
    "kLZ4Compression",
    "kLZ4HCCompression",
    "kZlibCompression",
    "kBZip2Compression",
    "kZSTD",
    "kZSTD;compression_opts={max_dict_bytes=1024;zstd_max_train_bytes=20000;enabled=true}",
];

fn one<'a>(of: &[&'a str], rng: &mut Rng) -> &'a str {
    of[rng.usize(0..of.len())]
}

/// Options of one family for one open.
fn options(family: &Family, kind: &Kind, rng: &mut Rng) -> Options {
    let codecs = if kind.golden { &CODECS[..6] } else { &CODECS[..] };
    let style = match kind.universal {
        true => format!(
            "compaction_style=kCompactionStyleUniversal;compaction_options_universal=\
             {{size_ratio={};max_size_amplification_percent={};incremental={}}};",
            rng.u32(1..60),
            rng.u32(20..200),
            rng.bool()
        ),
        false => format!("level_compaction_dynamic_level_bytes={};", rng.bool()),
    };
    let operator = family.operator.map_or(String::new(), |o| format!("merge_operator={o};"));
    c_api::options(&format!(
        "{style}{operator}{order}{prefix}num_levels={levels};write_buffer_size=65536;\
         target_file_size_base={file};max_bytes_for_level_base={base};\
         max_bytes_for_level_multiplier={times};level0_file_num_compaction_trigger={trigger};\
         disable_auto_compactions={still};compression={codec};bottommost_compression={bottom};\
         block_based_table_factory={{block_size={block};format_version={version};checksum={sum};\
         {table}{filter}}}",
        order = order(family),
        prefix = one(&["", "", "prefix_extractor=rocksdb.CappedPrefix.4;"], rng),
        levels = kind.levels,
        file = [1 << 10, 4 << 10, 16 << 10][rng.usize(0..3)],
        base = [4 << 10, 16 << 10, 64 << 10][rng.usize(0..3)],
        times = rng.u32(2..5),
        trigger = rng.u32(2..5),
        still = rng.bool(),
        codec = one(codecs, rng),
        bottom = one(&codecs[..6], rng),
        block = [256, 1024, 4096][rng.usize(0..3)],
        version = rng.u32(2..8),
        sum = one(&SUMS, rng),
        table = one(&TABLES, rng),
        filter = one(&FILTERS, rng),
    ))
}

/// Options with which RocksDB opens any directory with this family; it compacts only when asked.
pub fn plain(family: &Family, more: &str) -> Options {
    let operator = family.operator.map_or(String::new(), |o| format!("merge_operator={o};"));
    c_api::options(&format!("{}{operator}{more}disable_auto_compactions=true", order(family)))
}

fn order(family: &Family) -> &'static str {
    if family.reverse { "comparator=rocksdb.ReverseBytewiseComparator;" } else { "" }
}

/// Opens the directory; what RocksDB logs for people is kept short.
pub fn open(
    path: &Path,
    families: &[Family],
    of: impl FnMut(&Family) -> Options,
    more: &str,
) -> DB {
    let mut with = c_api::options(&format!(
        "create_if_missing=true;keep_log_file_num=1;info_log_level=FATAL_LEVEL;\
         stats_dump_period_sec=0;stats_persist_period_sec=0;{more}"
    ));
    with.create_missing_column_families(true);
    let options = families.iter().map(of);
    let names = families.iter().map(|family| family.name.clone());
    let all = names.zip(options).map(|(name, of)| ColumnFamilyDescriptor::new(name, of));
    DB::open_cf_descriptors(&with, path, all).unwrap()
}

/// Opens, writes, moves data and closes.
pub fn session(path: &Path, twin: &mut Twin, kind: &Kind, rng: &mut Rng) {
    let more = format!(
        "avoid_flush_during_shutdown={};max_subcompactions={};max_background_jobs=2;",
        rng.u8(0..3) > 0,
        rng.u32(1..4)
    );
    let families = twin.families.clone();
    let db = open(path, &families, |family| options(family, kind, rng), &more);
    let mut snapshots = Vec::new();
    for _ in 0..rng.usize(3..if kind.golden { 12 } else { 20 }) {
        let family = rng.usize(0..families.len());
        burst(&db, twin, family, kind, rng);
        let handle = db.cf_handle(&families[family].name).unwrap();
        match rng.u8(0..10) {
            0..4 => db.flush_cf(handle).unwrap(),
            4..8 => {
                if rng.u8(0..3) > 0 {
                    db.flush_cf(handle).unwrap();
                }
                compact(&db, twin, family, rng);
            }
            8 => outside(&db, path, twin, family, rng),
            _ => {}
        }
        match rng.u8(0..6) {
            0 | 1 => snapshots.push(db.snapshot()),
            2 if !snapshots.is_empty() => {
                drop(snapshots.swap_remove(rng.usize(0..snapshots.len())))
            }
            3 => db.wait_for_compact(&WaitForCompactOptions::default()).unwrap(),
            _ => {}
        }
    }
    if rng.bool() {
        let all = families.iter().map(|family| db.cf_handle(&family.name).unwrap());
        all.filter(|_| rng.bool()).for_each(|handle| db.flush_cf(handle).unwrap());
    }
    agrees(&db, twin);
}

/// Writes in batches to a stretch of a family.
fn burst(db: &DB, twin: &mut Twin, family: usize, kind: &Kind, rng: &mut Rng) {
    let stretch = twin.stretch(family, rng);
    let mix = Mix::random(rng);
    let most = [10, 60, if kind.golden { 150 } else { 400 }][rng.usize(0..3)];
    let count = rng.usize(1..most);
    let together = rng.usize(1..20);
    let handle = db.cf_handle(&twin.families[family].name).unwrap();
    let mut batch = WriteBatch::default();
    for n in 1..=count {
        let deed = twin.deed(family, &stretch, mix, rng);
        twin.apply(family, &deed);
        match deed {
            Deed::Put(key, value) => batch.put_cf(handle, key, value),
            Deed::Delete(key) => batch.delete_cf(handle, key),
            Deed::Single(key) => batch.single_delete_cf(handle, key),
            Deed::Merge(key, operand) => batch.merge_cf(handle, key, operand),
            Deed::DeleteRange(lo, hi) => batch.delete_range_cf(handle, lo, hi),
        }
        if n % together == 0 || n == count {
            db.write(std::mem::take(&mut batch)).unwrap();
        }
    }
}

/// A manual compaction of a stretch of keys, or of all, to wherever the options have it.
fn compact(db: &DB, twin: &Twin, family: usize, rng: &mut Rng) {
    let stretch = twin.stretch(family, rng);
    let (lo, hi) = twin.families[family].bounds(&stretch, rng);
    let mut options = CompactOptions::default();
    options.set_bottommost_level_compaction(match rng.u8(0..4) {
        0 => BottommostLevelCompaction::Skip,
        1 => BottommostLevelCompaction::IfHaveCompactionFilter,
        2 => BottommostLevelCompaction::Force,
        _ => BottommostLevelCompaction::ForceOptimized,
    });
    options.set_exclusive_manual_compaction(rng.bool());
    let (from, to) = (rng.u8(0..5) > 0, rng.u8(0..5) > 0);
    let handle = db.cf_handle(&twin.families[family].name).unwrap();
    db.compact_range_cf_opt(handle, from.then_some(lo), to.then_some(hi), &options);
}

/// A table made outside and taken in, with values for keys of a stretch.
fn outside(db: &DB, path: &Path, twin: &mut Twin, family: usize, rng: &mut Rng) {
    let of = twin.families[family].clone();
    let puts: Vec<Deed> = twin
        .stretch(family, rng)
        .map(|at| twin.deed(family, &(at..at + 1), Mix::PUTS, rng))
        .filter(|deed| matches!(deed, Deed::Put(..)))
        .collect();
    if puts.is_empty() {
        return;
    }
    let options = c_api::options(order(&of));
    let mut writer = SstFileWriter::create(&options);
    let table = path.with_extension("table");
    writer.open(&table).unwrap();
    for deed in &puts {
        let Deed::Put(key, value) = deed else { unreachable!("the others were left out") };
        writer.put(key, value).unwrap();
        twin.apply(family, deed);
    }
    writer.finish().unwrap();
    db.ingest_external_file_cf(db.cf_handle(&of.name).unwrap(), vec![table]).unwrap();
}

/// What RocksDB shows of each family.
pub fn view(db: &DB, families: &[Family]) -> Vec<Content> {
    families.iter().map(|family| shown(db, family, false).into_iter().collect()).collect()
}

fn shown(db: &DB, family: &Family, backward: bool) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut whole = ReadOptions::default();
    whole.set_total_order_seek(true);
    let mut iter = db.raw_iterator_cf_opt(db.cf_handle(&family.name).unwrap(), whole);
    if backward {
        iter.seek_to_last()
    } else {
        iter.seek_to_first()
    }
    let mut all = Vec::new();
    while let Some((key, value)) = iter.item() {
        all.push((key.to_vec(), value.to_vec()));
        if backward { iter.prev() } else { iter.next() }
    }
    iter.status().unwrap();
    if backward {
        all.reverse();
    }
    all
}

/// RocksDB shows what the twin holds: scans both ways, and each key but those with operands. RocksDB 11.8.1
/// forgets the older ones of them at a get, not in a scan, where two tables of a level share a key and an
/// older deletion of a range.
pub fn agrees(db: &DB, twin: &Twin) {
    for (family, held) in twin.families.iter().zip(twin.state()) {
        for backward in [false, true] {
            if let Some(found) = difference(family, &shown(db, family, backward), &held) {
                panic!("RocksDB differs from the twin in family {}: {found}", family.name);
            }
        }
        let handle = db.cf_handle(&family.name).unwrap();
        for key in family.keys.iter().enumerate().filter(|k| !family.has_operands(k.0)).map(|k| k.1)
        {
            let found = db.get_cf(handle, key).unwrap();
            assert_eq!(found.as_ref(), held.get(key), "{} in RocksDB", key.escape_ascii());
        }
    }
}
