//! The bench's settings as RocksDB options, one by one.
//!
//! | setting | RocksDB |
//! |---|---|
//! | `policy` default, leveled, hybrid | leveled compaction style (runs in L0, leveled below) |
//! | `policy` universal | universal compaction style, its own settings as RocksDB has them |
//! | `background-threads` N | `max_background_compactions` N |
//! | `subcompactions` N | `max_subcompactions` N |
//! | `flush-threads` N | `max_background_flushes` N |
//! | `no-auto-compaction` | `disable_auto_compactions` |
//! | `memtable-bytes`, `memtables` | `write_buffer_size`, `max_write_buffer_number` |
//! | `level-base-bytes`, `level-multiplier`, `dynamic-level-bytes` | `max_bytes_for_level_base`, `..._multiplier`, `level_compaction_dynamic_level_bytes` |
//! | `file-bytes` | `target_file_size_base` (multiplier 1) |
//! | `l0-trigger`, `l0-slowdown`, `l0-stop` | `level0_file_num_compaction_trigger`, `..._slowdown_...`, `..._stop_...` |
//! | `compaction-pri` | `compaction_pri` |
//! | `wal` off, buffered, os, sync | `disableWAL`; `manual_wal_flush`; default; `WriteOptions::sync` |
//! | `compression` | `compression` for all levels, default level of the codec |
//! | `bloom-bits` | full Bloom filter, whole keys |
//! | `block-size`, `cache-bytes` | `block_size`, LRU `block_cache` (or none) |
//! | `direct-io-compaction`, `direct-reads`, `mapped-reads` | `use_direct_io_for_flush_and_compaction`, `use_direct_reads`, `allow_mmap_reads` |
//!
//! Not in the settings, and equal on both sides: format version 6, XXH3 block checksums verified
//! on every read, 16 keys per restart, all tables kept open. `allow_concurrent_memtable_write` is
//! off for one client thread, where it only costs time. Everything else is RocksDB's default.
//!
//! The shared library is a portable build on the system's allocator.

use anyhow::{Result, bail};
use lithify_bench::{BenchSettings, CompactionPri, Compression, OWN_POLICY, WalMode, Workload};
use rocksdb::{
    BlockBasedOptions, Cache, ChecksumType, DBCompactionStyle, DBCompressionType, Options,
    WriteOptions,
};

/// Options for `settings`.
pub(crate) fn store_options(settings: &BenchSettings, fresh: bool) -> Result<Options> {
    let mut o = Options::default();
    o.create_if_missing(fresh);
    o.set_error_if_exists(fresh);
    match settings.policy.as_str() {
        OWN_POLICY | "leveled" | "hybrid" => o.set_compaction_style(DBCompactionStyle::Level),
        "universal" => o.set_compaction_style(DBCompactionStyle::Universal),
        other => bail!(
            "RocksDB has no policy `{other}` here; use {OWN_POLICY}, leveled, hybrid or universal"
        ),
    }
    set_threads(&mut o, settings);
    set_tree(&mut o, settings);
    o.set_compression_type(codec(settings.compression));
    o.set_use_direct_io_for_flush_and_compaction(settings.direct_io_compaction);
    o.set_use_direct_reads(settings.direct_reads);
    o.set_allow_mmap_reads(settings.mapped_reads);
    o.set_manual_wal_flush(settings.wal == WalMode::Buffered);
    o.set_max_open_files(-1);
    o.set_stats_dump_period_sec(0);
    o.set_stats_persist_period_sec(0);
    o.set_block_based_table_factory(&table_options(settings));
    Ok(o)
}

#[expect(deprecated, reason = "the only way to give compactions and flushes threads apart")]
fn set_threads(o: &mut Options, settings: &BenchSettings) {
    let threads = settings.background_threads as i32;
    o.set_max_background_compactions(threads);
    o.set_max_background_flushes(settings.flush_threads as i32);
    o.set_max_subcompactions(u32::try_from(settings.subcompactions).unwrap_or(u32::MAX));
    o.set_disable_auto_compactions(settings.no_auto_compaction);
    let one_writer =
        settings.threads == 1 && !settings.workloads.contains(&Workload::ReadWhileWriting);
    o.set_allow_concurrent_memtable_write(!one_writer);
}

fn set_tree(o: &mut Options, settings: &BenchSettings) {
    o.set_write_buffer_size(settings.memtable_bytes as usize);
    o.set_max_write_buffer_number(settings.memtables as i32);
    o.set_max_bytes_for_level_base(settings.level_base_bytes);
    o.set_max_bytes_for_level_multiplier(settings.level_multiplier);
    o.set_level_compaction_dynamic_level_bytes(settings.dynamic_level_bytes);
    o.set_target_file_size_base(settings.file_bytes);
    o.set_level_zero_file_num_compaction_trigger(settings.l0_trigger as i32);
    o.set_level_zero_slowdown_writes_trigger(settings.l0_slowdown as i32);
    o.set_level_zero_stop_writes_trigger(settings.l0_stop as i32);
    o.set_compaction_pri(match settings.compaction_pri {
        CompactionPri::MinOverlappingRatio => rocksdb::CompactionPri::MinOverlappingRatio,
        CompactionPri::ByCompensatedSize => rocksdb::CompactionPri::ByCompensatedSize,
        CompactionPri::OldestLargestSeqFirst => rocksdb::CompactionPri::OldestLargestSeqFirst,
        CompactionPri::OldestSmallestSeqFirst => rocksdb::CompactionPri::OldestSmallestSeqFirst,
        CompactionPri::RoundRobin => rocksdb::CompactionPri::RoundRobin,
    });
}

fn codec(compression: Compression) -> DBCompressionType {
    match compression {
        Compression::None => DBCompressionType::None,
        Compression::Lz4 => DBCompressionType::Lz4,
        Compression::Zstd => DBCompressionType::Zstd,
        Compression::Snappy => DBCompressionType::Snappy,
    }
}

fn table_options(settings: &BenchSettings) -> BlockBasedOptions {
    let mut t = BlockBasedOptions::default();
    t.set_format_version(6);
    t.set_checksum_type(ChecksumType::XXH3);
    t.set_block_size(settings.block_size as usize);
    if settings.bloom_bits > 0.0 {
        t.set_bloom_filter(settings.bloom_bits, false);
    }
    match settings.cache_bytes {
        0 => t.disable_cache(),
        bytes => t.set_block_cache(&Cache::new_lru_cache(bytes as usize)),
    }
    t
}

/// Options of a write with durability `wal`.
pub(crate) fn write_options(wal: WalMode) -> WriteOptions {
    let mut o = WriteOptions::default();
    o.disable_wal(wal == WalMode::Off);
    o.set_sync(wal == WalMode::Sync);
    o
}
