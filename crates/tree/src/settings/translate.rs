//! A user's settings as the rooms below want them: how output looks, what the core and its planner
//! aim for, and RocksDB's options text.
//!
//! Leaves to others: which settings are sound ([`Settings::check`]).

use lithify_base::{MAX_LEVELS, Prefixes};
use lithify_compact::{LevelFormat, OutputOptions};
use lithify_format::compress::Codec;
use lithify_format::options::{self, DbOptions, FamilyOptions};
use lithify_plan::PlanOptions;
use lithify_plan::options::BucketOptions;
use lithify_store::sst::DeletionTrigger;

use super::table::ROWS;
use super::{Compression, Settings};
use crate::names::{DEFAULT_CF, DEFAULT_NAME};

/// Fewest buckets to begin with: of two or three none could ever be twice as hot as the average.
const BUCKETS_MIN: u32 = 8;
/// Entries per restart point of data blocks.
const RESTART_INTERVAL: u16 = 16;

/// How tables are written.
pub fn output_options(s: &Settings, prefixes: Prefixes) -> OutputOptions {
    let format = |c: Compression| match c {
        Compression::None => LevelFormat { codec: Codec::None, effort: 0 },
        Compression::Lz4 => LevelFormat { codec: Codec::Lz4, effort: 0 },
        Compression::Snappy => LevelFormat { codec: Codec::Snappy, effort: 0 },
        Compression::Zlib(level) => LevelFormat { codec: Codec::Zlib, effort: level },
        Compression::Bzip2 => LevelFormat { codec: Codec::Bzip2, effort: 0 },
        Compression::Zstd(level) => LevelFormat { codec: Codec::Zstd, effort: level },
    };
    let mut levels = [format(s.compression_lower); MAX_LEVELS];
    levels[..3].fill(format(s.compression_upper));
    OutputOptions {
        format_version: s.format_version,
        block_bytes: s.block_bytes,
        restart_interval: RESTART_INTERVAL,
        millibits: s.bloom_bits * 1000,
        partition_bytes: s.partition_bytes,
        dict_bytes: s.max_dict_bytes,
        whole_keys: s.whole_key_filtering || prefixes.get().is_none(),
        prefixes,
        levels,
        deletions: DeletionTrigger {
            window: s.deletion_window,
            deletes: s.deletion_trigger,
            ratio_percent: s.deletion_ratio_percent,
        },
        direct_io: s.direct_background_io,
        unchecked: s.unchecked,
        as_rocksdb: s.as_rocksdb,
        write_bytes: s.write_bytes(),
        cf_name: DEFAULT_NAME.to_owned(),
        cf: DEFAULT_CF,
    }
}

/// What the core and its planner aim for.
pub(crate) fn core_options(s: &Settings) -> lithify_control::Options {
    let policy = s.effective_policy();
    let base = match &s.plan {
        Some(plan) => PlanOptions { policy, ..(**plan).clone() },
        None => {
            let preset = PlanOptions::preset(policy);
            let initial = s.compaction_threads.max(BUCKETS_MIN);
            let buckets = BucketOptions { initial, ..preset.buckets };
            PlanOptions { buckets, ..preset }
        }
    };
    lithify_control::Options {
        plan: PlanOptions {
            l0_trigger: s.l0_trigger,
            l0_slowdown: s.l0_slowdown,
            l0_stop: s.l0_stop,
            level_base_bytes: s.level_base_bytes,
            multiplier: s.level_multiplier,
            file_bytes: s.file_bytes,
            max_subcompactions: s.max_subcompactions,
            pri: s.compaction_pri,
            dynamic_levels: s.dynamic_levels,
            disable_auto: !s.auto_compaction,
            max_memtables: s.memtable_count,
            memtable_bytes: s.memtable_bytes,
            universal_size_ratio: s.universal_size_ratio,
            universal_min_merge_width: s.universal_min_merge_width,
            universal_max_merge_width: s.universal_max_merge_width,
            universal_incremental: s.universal_incremental,
            size_amp_percent: s.max_size_amplification_percent,
            fifo_max_bytes: s.fifo_max_bytes,
            fifo_allow_compaction: s.fifo_allow_compaction,
            ttl_seconds: s.ttl_seconds,
            periodic_seconds: s.periodic_compaction_seconds,
            max_space_amp_percent: s.max_space_amp_percent,
            soft_debt: s.soft_debt_bytes,
            hard_debt: s.hard_debt_bytes,
            ..base
        },
        compaction_slots: s.compaction_threads as usize,
        // One more than threads: a flush that only waits for its sync holds none, so the next
        // one is merged meanwhile.
        flush_slots: s.flush_threads as usize + 1,
        delayed_write_rate: s.delayed_write_rate,
    }
}

/// The settings as RocksDB's options text, for tools and for a later open.
pub(crate) fn options_text(families: &[Described]) -> String {
    let s = &families[0].settings;
    let db = DbOptions {
        max_background_jobs: s.compaction_threads + s.flush_threads,
        max_subcompactions: s.max_subcompactions,
        max_open_files: s.max_open_files.map_or(-1, i64::from),
        max_total_wal_size: s.max_wal_bytes,
        db_write_buffer_size: 0,
        use_direct_reads: s.direct_reads,
        use_direct_io_for_flush_and_compaction: s.direct_background_io,
    };
    let own: Vec<(&str, String)> = ROWS.iter().map(|row| (row.name, (row.show)(s))).collect();
    let of_family = |family| family_options(family, s);
    options::write(&db, &families.iter().map(of_family).collect::<Vec<_>>(), &own)
}

/// What is written down of a family.
pub(crate) struct Described {
    pub(crate) name: String,
    pub(crate) settings: Settings,
    pub(crate) comparator: String,
    pub(crate) merge_operator: Option<String>,
    pub(crate) prefix_extractor: Option<String>,
}

/// The options of a family of a database with settings `db`.
fn family_options(family: &Described, db: &Settings) -> FamilyOptions {
    let s = &family.settings;
    let own = ROWS.iter().map(|row| (row.name, (row.show)(s), (row.show)(db)));
    let name = |c: Compression| match c {
        Compression::None => "kNoCompression",
        Compression::Lz4 => "kLZ4Compression",
        Compression::Snappy => "kSnappyCompression",
        Compression::Zlib(_) => "kZlibCompression",
        Compression::Bzip2 => "kBZip2Compression",
        Compression::Zstd(_) => "kZSTD",
    };
    FamilyOptions {
        name: family.name.clone(),
        comparator: family.comparator.clone(),
        merge_operator: family.merge_operator.clone(),
        prefix_extractor: family.prefix_extractor.clone(),
        num_levels: MAX_LEVELS as u32,
        target_file_size_multiplier: 1,
        block_restart_interval: u32::from(RESTART_INTERVAL),
        index_block_restart_interval: u32::from(RESTART_INTERVAL),
        write_buffer_size: s.memtable_bytes,
        max_write_buffer_number: s.memtable_count,
        compaction_pri: s.compaction_pri.rocksdb_name().to_owned(),
        level0_triggers: [s.l0_trigger, s.l0_slowdown, s.l0_stop],
        max_bytes_for_level_base: s.level_base_bytes,
        max_bytes_for_level_multiplier: f64::from(s.level_multiplier),
        dynamic_level_bytes: s.dynamic_levels,
        target_file_size_base: s.file_bytes,
        pending_compaction_limits: [s.soft_debt_bytes, s.hard_debt_bytes],
        disable_auto_compactions: !s.auto_compaction,
        compression: name(s.compression_upper).to_owned(),
        bottommost_compression: name(s.compression_lower).to_owned(),
        block_size: u64::from(s.block_bytes),
        bloom_bits_per_key: f64::from(s.bloom_bits),
        whole_key_filtering: s.whole_key_filtering,
        partition_bytes: u64::from(s.partition_bytes),
        format_version: s.format_version,
        own: own.filter(|(_, own, of_db)| own != of_db).map(|(name, own, _)| (name, own)).collect(),
    }
}
