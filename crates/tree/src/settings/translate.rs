//! A user's settings as the rooms below want them: how output looks, and what the core and its planner
//! aim for.
//!
//! Leaves to others: which settings are sound ([`Settings::check`]).

use lithify_base::{MAX_LEVELS, Prefixes};
use lithify_compact::{LevelFormat, OutputOptions};
use lithify_env::Tuning;
use lithify_format::compress::Codec;
use lithify_plan::PlanOptions;
use lithify_plan::options::BucketOptions;
pub(crate) use lithify_settings::{Described, options_text};
use lithify_settings::{RESTART_INTERVAL, buffer_bytes, jobs};
use lithify_tables::sst::DeletionTrigger;

use super::{Compression, Settings};
use lithify_views::names::{DEFAULT_CF, DEFAULT_NAME};

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
        write_bytes: write_bytes(s),
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
            let initial = policy.first_buckets(s.compaction_threads, s.memtable_bytes);
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
            places: s.places(),
            ..base
        },
        compaction_slots: s.compaction_threads as usize,
        // One more than threads: a flush that only waits for its sync holds none, so the next
        // one is merged meanwhile.
        flush_slots: s.flush_threads as usize + 1,
        delayed_write_rate: s.delayed_write_rate,
    }
}

/// The size of transfers of flushes and compactions.
fn write_bytes(s: &Settings) -> usize {
    lithify_compact::write_bytes(s.file_bytes, buffer_bytes(s) / jobs(s))
}

/// How the rate of background work is found.
pub(crate) fn tuning(s: &Settings) -> Tuning {
    if s.auto_tuned_rate { Tuning::Auto } else { Tuning::Fixed }
}
