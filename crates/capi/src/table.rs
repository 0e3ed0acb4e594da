//! Options of tables, and of universal and FIFO compaction.

use crate::kept::{Kept, keeps, rows};
use crate::options::{Caching, Options};
use crate::raw::{export, give};
use crate::shared::Cache;

/// `rocksdb_block_based_table_options_t`.
#[derive(Clone)]
pub(crate) struct TableOptions {
    block_bytes: u32,
    format_version: u32,
    bloom_bits: u32,
    whole_keys: bool,
    /// Size of the parts of an index, and whether it has parts.
    part_bytes: u32,
    two_levels: bool,
    /// The default leaves that of the database's options.
    cache: Caching,
    kept: Kept,
}
keeps!(TableOptions);

/// `rocksdb_filterpolicy_t`: bits for each key.
#[derive(Clone, Copy)]
pub(crate) struct FilterPolicy(u32);

impl TableOptions {
    pub(crate) fn put(&self, options: &mut Options) {
        let s = &mut options.settings;
        s.block_bytes = self.block_bytes;
        s.format_version = self.format_version;
        s.bloom_bits = self.bloom_bits;
        s.whole_key_filtering = self.whole_keys;
        s.partition_bytes = Some(if self.two_levels { self.part_bytes } else { 0 });
        if !matches!(self.cache, Caching::Own) {
            options.cache = self.cache.clone();
        }
        options.kept.join(&self.kept);
        options.table = Some(self.clone());
    }
}

impl Default for TableOptions {
    fn default() -> TableOptions {
        TableOptions {
            block_bytes: 4 << 10,
            format_version: 6,
            bloom_bits: 0,
            whole_keys: true,
            part_bytes: 4 << 10,
            two_levels: false,
            cache: Caching::Own,
            kept: Kept::default(),
        }
    }
}

fn bits(per_key: f64) -> FilterPolicy {
    FilterPolicy((per_key.round().max(0.0) as u32).min(50))
}

export! {
    fn rocksdb_block_based_options_create() -> *mut TableOptions {
        Ok(give(TableOptions::default()))
    }
    fn rocksdb_block_based_options_destroy(options: own TableOptions) {
        drop(options);
        Ok(())
    }
    fn rocksdb_block_based_options_set_filter_policy(options: &mut TableOptions, policy: own FilterPolicy) {
        options.bloom_bits = policy.map_or(0, |policy| policy.0);
        Ok(())
    }
    fn rocksdb_block_based_options_set_block_cache(options: &mut TableOptions, cache: maybe Cache) {
        options.cache = cache.map_or(Caching::Own, |cache| Caching::Shared(cache.blocks().clone()));
        Ok(())
    }
    fn rocksdb_block_based_options_set_no_block_cache(options: &mut TableOptions, no_cache: u8) {
        if no_cache != 0 {
            options.cache = Caching::Least;
        }
        Ok(())
    }
    fn rocksdb_filterpolicy_create_bloom(bits_per_key: f64) -> *mut FilterPolicy {
        Ok(give(bits(bits_per_key)))
    }
    fn rocksdb_filterpolicy_create_bloom_full(bits_per_key: f64) -> *mut FilterPolicy {
        Ok(give(bits(bits_per_key)))
    }
    fn rocksdb_filterpolicy_create_ribbon(bloom_equivalent_bits_per_key: f64) -> *mut FilterPolicy {
        Ok(give(bits(bloom_equivalent_bits_per_key)))
    }
    fn rocksdb_filterpolicy_create_ribbon_hybrid(bloom_bits: f64, bloom_before_level: i32) -> *mut FilterPolicy {
        let _ = bloom_before_level;
        Ok(give(bits(bloom_bits)))
    }
    fn rocksdb_filterpolicy_destroy(policy: own FilterPolicy) {
        drop(policy);
        Ok(())
    }
}

rows! { TableOptions;
    exact rocksdb_block_based_options_set_block_size _: usize = 4 << 10, |o, v| {
        let taken = v.clamp(512, 1 << 20).next_power_of_two();
        if taken != v {
            o.kept.note("block_size", format!("{v} (taken as {taken})"));
        }
        o.block_bytes = taken as u32;
    };
    exact rocksdb_block_based_options_set_format_version _: i32 = 7, |o, v|
        o.format_version = o.kept.within("format_version", u32::try_from(v).unwrap_or(0), 5, 6);
    exact rocksdb_block_based_options_set_whole_key_filtering _: u8 = 1, |o, v| o.whole_keys = v != 0;
    exact rocksdb_block_based_options_set_metadata_block_size _: u64 = 4 << 10, |o, v| {
        let v = u32::try_from(v).unwrap_or(u32::MAX);
        o.part_bytes = o.kept.within("metadata_block_size", v, 1 << 10, 1 << 20);
    };
    exact rocksdb_block_based_options_set_index_type _: i32 = 0, |o, v| {
        o.two_levels = v == 2;
        if v == 1 || v == 3 {
            o.kept.note("index_type", format!("{v} (taken as 0)"));
        }
    };
    noted rocksdb_block_based_options_set_partition_filters _: u8 = 0;
    noted rocksdb_block_based_options_set_data_block_hash_ratio _: f64 = 0.75;
    noted rocksdb_block_based_options_set_data_block_index_type _: i32 = 0;
    noted rocksdb_block_based_options_set_top_level_index_pinning_tier _: i32 = 0;
    noted rocksdb_block_based_options_set_partition_pinning_tier _: i32 = 0;
    noted rocksdb_block_based_options_set_unpartitioned_pinning_tier _: i32 = 0;
    noted rocksdb_block_based_options_set_cache_index_and_filter_blocks _: u8 = 0;
    noted rocksdb_block_based_options_set_cache_index_and_filter_blocks_with_high_priority _: u8 = 1;
    noted rocksdb_block_based_options_set_pin_l0_filter_and_index_blocks_in_cache _: u8 = 0;
    noted rocksdb_block_based_options_set_pin_top_level_index_and_filter _: u8 = 1;
    noted rocksdb_block_based_options_set_block_restart_interval _: i32 = 16;
    noted rocksdb_block_based_options_set_index_block_restart_interval _: i32 = 1;
    noted rocksdb_block_based_options_set_optimize_filters_for_memory _: u8 = 1;
    noted rocksdb_block_based_options_set_checksum _: u8 = 4;
    noted rocksdb_block_based_options_set_block_size_deviation _: i32 = 10;
    noted rocksdb_block_based_options_set_use_delta_encoding _: u8 = 1;
}

/// `rocksdb_universal_compaction_options_t`.
#[derive(Clone)]
pub(crate) struct UniversalOptions {
    ratio: u32,
    least: u32,
    most: u32,
    amplification: u32,
    kept: Kept,
}
keeps!(UniversalOptions);

impl Default for UniversalOptions {
    fn default() -> UniversalOptions {
        UniversalOptions {
            ratio: 1,
            least: 2,
            most: u32::MAX,
            amplification: 200,
            kept: Kept::default(),
        }
    }
}

impl UniversalOptions {
    pub(crate) fn put(&self, options: &mut Options) {
        let s = &mut options.settings;
        s.universal_size_ratio = self.ratio;
        s.universal_min_merge_width = self.least;
        s.universal_max_merge_width = self.most;
        s.max_size_amplification_percent = self.amplification;
        options.kept.join(&self.kept);
    }
}

export! {
    fn rocksdb_universal_compaction_options_create() -> *mut UniversalOptions {
        Ok(give(UniversalOptions::default()))
    }
    fn rocksdb_universal_compaction_options_destroy(options: own UniversalOptions) {
        drop(options);
        Ok(())
    }
}

rows! { UniversalOptions;
    exact rocksdb_universal_compaction_options_set_size_ratio
        rocksdb_universal_compaction_options_get_size_ratio: i32 = 1,
        |o, v| o.ratio = u32::try_from(v).unwrap_or(0).min(10_000);
    exact rocksdb_universal_compaction_options_set_min_merge_width
        rocksdb_universal_compaction_options_get_min_merge_width: i32 = 2,
        |o, v| o.least = u32::try_from(v).unwrap_or(0).max(2);
    exact rocksdb_universal_compaction_options_set_max_merge_width
        rocksdb_universal_compaction_options_get_max_merge_width: i32 = -1,
        |o, v| o.most = u32::try_from(v).unwrap_or(u32::MAX).max(2);
    exact rocksdb_universal_compaction_options_set_max_size_amplification_percent
        rocksdb_universal_compaction_options_get_max_size_amplification_percent: i32 = 200,
        |o, v| o.amplification = u32::try_from(v).unwrap_or(0).clamp(1, 100_000);
    noted rocksdb_universal_compaction_options_set_compression_size_percent
        rocksdb_universal_compaction_options_get_compression_size_percent: i32 = -1;
    noted rocksdb_universal_compaction_options_set_stop_style
        rocksdb_universal_compaction_options_get_stop_style: i32 = 1;
}

/// `rocksdb_fifo_compaction_options_t`.
#[derive(Clone)]
pub(crate) struct FifoOptions {
    bytes: u64,
    compacts: bool,
    kept: Kept,
}
keeps!(FifoOptions);

impl Default for FifoOptions {
    fn default() -> FifoOptions {
        FifoOptions { bytes: 1 << 30, compacts: false, kept: Kept::default() }
    }
}

impl FifoOptions {
    pub(crate) fn put(&self, options: &mut Options) {
        options.settings.fifo_max_bytes = self.bytes;
        options.settings.fifo_allow_compaction = self.compacts;
    }
}

export! {
    fn rocksdb_fifo_compaction_options_create() -> *mut FifoOptions {
        Ok(give(FifoOptions::default()))
    }
    fn rocksdb_fifo_compaction_options_destroy(options: own FifoOptions) {
        drop(options);
        Ok(())
    }
}

rows! { FifoOptions;
    exact rocksdb_fifo_compaction_options_set_max_table_files_size
        rocksdb_fifo_compaction_options_get_max_table_files_size: u64 = 1 << 30, |o, v| o.bytes = v;
    exact rocksdb_fifo_compaction_options_set_allow_compaction
        rocksdb_fifo_compaction_options_get_allow_compaction: u8 = 0, |o, v| o.compacts = v != 0;
}

/// `rocksdb_cuckoo_table_options_t`.
#[derive(Clone, Default)]
pub(crate) struct CuckooOptions {
    kept: Kept,
}
keeps!(CuckooOptions);

rows! { CuckooOptions;
    noted rocksdb_cuckoo_options_set_hash_ratio _: f64 = 0.9;
    noted rocksdb_cuckoo_options_set_max_search_depth _: u32 = 100;
    noted rocksdb_cuckoo_options_set_cuckoo_block_size _: u32 = 5;
    noted rocksdb_cuckoo_options_set_identity_as_first_hash _: u8 = 0;
    noted rocksdb_cuckoo_options_set_use_module_hash _: u8 = 1;
}

export! {
    fn rocksdb_cuckoo_options_create() -> *mut CuckooOptions {
        Ok(give(CuckooOptions::default()))
    }
    fn rocksdb_cuckoo_options_destroy(options: own CuckooOptions) {
        drop(options);
        Ok(())
    }
}
