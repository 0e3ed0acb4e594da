//! Options of a database and of a family: which of RocksDB's mean what here. The rows are the table; what
//! takes more than a number is below them.
//!
//! Keeps: an option is noted only if to ignore it can change neither what a read returns nor what survives
//! a crash; whatever else is missing here is refused.
//! Leaves to others: options of tables (`table`), and objects that several databases share (`shared`).

use std::path::Path;

use lithify::env::Env;
use lithify::{
    Builder, ColumnFamilyOptions, CompactionFilterRef, CompactionPri, ComparatorRef, Compression,
    Durability, Error, MergeOperatorRef, Policy, PrefixExtractorRef, Settings, SharedCache,
    SharedMemtables, TableDir,
};

use crate::kept::{Kept, keeps, rows};
use crate::places::{DbPath, Places, TableDirs};
use crate::raw::{Res, export, give};
use crate::shared::{Cache, Env as EnvHandle, Logger, RateLimiter, WriteBuffers};
use crate::table::{CuckooOptions, FifoOptions, TableOptions, UniversalOptions};
use crate::users::Users;

/// `rocksdb_options_t`: what a database and its families are opened with.
#[derive(Clone)]
pub(crate) struct Options {
    pub(crate) settings: Settings,
    pub(crate) create_families: bool,
    pub(crate) parts: Parts,
    pub(crate) codecs: Codecs,
    pub(crate) cache: Caching,
    /// What bounds the memtables together with those of other databases.
    pub(crate) memtables: Option<SharedMemtables>,
    /// What bounds those of all families, where that is not given; 0 is no bound.
    memtable_bytes: usize,
    /// All families end at one moment after a crash: no write goes past the log, which is the same for all.
    pub(crate) atomic_flush: bool,
    /// Directories that it names.
    pub(crate) places: Places,
    /// Who counts what its databases do.
    pub(crate) statistics: Option<Users>,
    /// The options of tables that were given.
    pub(crate) table: Option<TableOptions>,
    /// Window, trigger and ratio at which tables with deletions are marked, as they were given.
    collectors: Vec<(usize, usize, f64)>,
    pub(crate) env: Option<Env>,
    pub(crate) logger: Option<Logger>,
    pub(crate) kept: Kept,
}
keeps!(Options);

/// Where a database keeps blocks that were read.
#[derive(Clone, Default)]
pub(crate) enum Caching {
    /// In a cache of its own, of a size that follows from other options.
    #[default]
    Own,
    /// In as small a one as there can be.
    Least,
    /// In one that other databases may have as well.
    Shared(SharedCache),
}

impl Caching {
    /// The cache, if others may have it.
    pub(crate) fn shared(&self) -> Option<&SharedCache> {
        match self {
            Caching::Shared(cache) => Some(cache),
            _ => None,
        }
    }
}

/// What the program's own functions do.
#[derive(Clone, Default)]
pub(crate) struct Parts {
    pub(crate) order: Option<ComparatorRef>,
    pub(crate) operator: Option<MergeOperatorRef>,
    pub(crate) filter: Option<CompactionFilterRef>,
    /// Makes a filter for each compaction; asked if there is no filter.
    pub(crate) factory: Option<CompactionFilterRef>,
    pub(crate) prefixes: Option<PrefixExtractorRef>,
}

impl Parts {
    /// True if compactions ask a filter.
    pub(crate) fn filters(&self) -> bool {
        self.filter.is_some() || self.factory.is_some()
    }
}

/// Compression as RocksDB names it, which becomes ours when all of it is known.
#[derive(Clone, Default)]
pub(crate) struct Codecs {
    /// That of all levels, or of each.
    levels: Vec<i32>,
    bottommost: Option<i32>,
    level: Option<i32>,
    bottommost_level: Option<i32>,
    dictionary: u32,
}

/// Bytes of memory beside the memtables that a database has in any case.
const LEAST_BESIDE: u64 = 8 << 20;
/// RocksDB's number for "as the other levels".
const DISABLED: i32 = 255;
/// RocksDB's "default compression level".
const DEFAULT_LEVEL: i32 = 32767;

impl Options {
    /// RocksDB's defaults.
    pub(crate) fn new() -> Options {
        let mut settings = Settings::default();
        settings.create_if_missing = false;
        // RocksDB's options are what was set or its defaults; none follows from another.
        settings.derived_from = None;
        Options {
            settings,
            create_families: false,
            parts: Parts::default(),
            codecs: Codecs::default(),
            cache: Caching::Own,
            memtables: None,
            memtable_bytes: 0,
            atomic_flush: false,
            places: Places::default(),
            statistics: None,
            table: None,
            collectors: Vec::new(),
            env: None,
            logger: None,
            kept: Kept::default(),
        }
    }

    /// These options as settings that are sound, and what there is to note.
    ///
    /// # Errors
    /// `Unsupported` naming an option that is refused.
    pub(crate) fn resolved(&self) -> Res<(Settings, String)> {
        let mut kept = self.kept.clone();
        let mut s = self.settings.clone();
        self.codecs.put(&mut s, &mut kept)?;
        kept.check()?;
        if s.l0_slowdown < s.l0_trigger {
            kept.note(
                "level0_slowdown_writes_trigger",
                format!("{} (taken as {})", s.l0_slowdown, s.l0_trigger),
            );
            s.l0_slowdown = s.l0_trigger;
        }
        if s.l0_stop < s.l0_slowdown {
            kept.note(
                "level0_stop_writes_trigger",
                format!("{} (taken as {})", s.l0_stop, s.l0_slowdown),
            );
            s.l0_stop = s.l0_slowdown;
        }
        if s.direct_reads && s.mapped_reads == Some(true) {
            let what = "allow_mmap_reads=1: use_direct_reads goes past what is mapped; set one of the two to 0";
            return Err(Error::unsupported(what));
        }
        if s.hard_debt_bytes != 0 && s.soft_debt_bytes > s.hard_debt_bytes {
            s.soft_debt_bytes = s.hard_debt_bytes;
        }
        s.universal_max_merge_width = s.universal_max_merge_width.max(s.universal_min_merge_width);
        if s.deletion_window > 0 {
            s.deletion_trigger = s.deletion_trigger.clamp(1, s.deletion_window);
        }
        if s.effective_policy() == Policy::Fifo {
            s.fifo_max_bytes = s.fifo_max_bytes.max(s.memtable_bytes.saturating_mul(2));
        }
        if self.atomic_flush && s.durability == Durability::NoWal {
            kept.note("durability", "no-wal (taken as buffered: atomic_flush=1)".to_owned());
            s.durability = Durability::Buffered;
        }
        let runs = [Policy::Universal, Policy::Fifo].contains(&s.effective_policy());
        if runs && s.compaction_pri != CompactionPri::default() {
            kept.note("compaction_pri", "no effect with universal and FIFO compaction".to_owned());
            s.compaction_pri = CompactionPri::default();
        }
        // One budget: the memtables, and beside them as much as a cache of that size would need, of which a quarter is for
        // what is not counted.
        let memtables = s.memtable_bytes.saturating_mul(u64::from(s.memtable_count));
        let least = memtables.saturating_add(LEAST_BESIDE);
        s.memory_budget = match &self.cache {
            Caching::Own => s.memory_budget.max(least),
            Caching::Least => least,
            Caching::Shared(cache) => {
                let bytes = cache.capacity();
                memtables.saturating_add(bytes.saturating_add(bytes / 3)).max(least)
            }
        };
        Ok((s, kept.told()))
    }

    /// What a database is opened with.
    ///
    /// # Errors
    /// As [`resolved`](Options::resolved).
    pub(crate) fn builder(&self) -> Res<(Builder, String)> {
        self.builder_for(0, self.places.of_default())
    }

    /// The same for the database in `path`.
    ///
    /// # Errors
    /// As [`resolved`](Options::resolved), also where an option names another directory.
    pub(crate) fn builder_at(&self, path: &Path) -> Res<Builder> {
        self.places.check(path)?;
        Ok(self.builder()?.0)
    }

    /// The same with a memory budget of at least `budget` bytes, as a family may need, and with these directories
    /// for tables.
    ///
    /// # Errors
    /// As [`resolved`](Options::resolved).
    pub(crate) fn builder_for(
        &self,
        budget: u64,
        table_dirs: Vec<TableDir>,
    ) -> Res<(Builder, String)> {
        let (mut settings, notes) = self.resolved()?;
        settings.table_dirs = table_dirs;
        settings.memory_budget = settings.memory_budget.max(budget);
        let mut builder = Builder::new(settings).create_among_files();
        let Parts { order, operator, filter, factory, prefixes } = self.parts.clone();
        if let Some(order) = order {
            builder = builder.comparator(order);
        }
        if let Some(operator) = operator {
            builder = builder.merge_operator(operator);
        }
        if let Some(filter) = filter.or(factory) {
            builder = builder.compaction_filter(filter);
        }
        if let Some(prefixes) = prefixes {
            builder = builder.prefix_extractor(prefixes);
        }
        if let Some(env) = &self.env {
            builder = builder.env(env.clone());
        }
        Ok((builder, notes))
    }

    /// The bound of the memtables of all families, if there is one.
    pub(crate) fn memtable_bound(&self) -> Option<SharedMemtables> {
        let own = || SharedMemtables::new(self.memtable_bytes as u64, false);
        self.memtables.clone().or_else(|| (self.memtable_bytes > 0).then(own))
    }

    /// What was asked of collectors of deletions, as RocksDB says it.
    pub(crate) fn collector_text(&self) -> String {
        let one = |(window, trigger, ratio): &(usize, usize, f64)| {
            format!(
                "CompactOnDeletionCollector (Sliding window size = {window} Deletion trigger = \
                 {trigger} Deletion ratio = {ratio}); "
            )
        };
        self.collectors.iter().map(one).collect()
    }

    /// What a family of a database with these directories for tables is opened with.
    ///
    /// # Errors
    /// As [`resolved`](Options::resolved).
    pub(crate) fn family(&self, table_dirs: &TableDirs) -> Res<(ColumnFamilyOptions, String)> {
        let (mut settings, notes) = self.resolved()?;
        settings.table_dirs = table_dirs.of(Some(&self.places));
        let mut family = ColumnFamilyOptions::new().settings(settings);
        let Parts { order, operator, filter, factory, prefixes } = self.parts.clone();
        if let Some(order) = order {
            family = family.comparator(order);
        }
        if let Some(operator) = operator {
            family = family.merge_operator(operator);
        }
        if let Some(filter) = filter.or(factory) {
            family = family.compaction_filter(filter);
        }
        if let Some(prefixes) = prefixes {
            family = family.prefix_extractor(prefixes);
        }
        Ok((family, notes))
    }
}

impl Codecs {
    fn put(&self, s: &mut Settings, kept: &mut Kept) -> Res<()> {
        let first = self.levels.first().copied();
        let last =
            self.bottommost.filter(|codec| *codec != DISABLED).or(self.levels.last().copied());
        if let Some(codec) = first {
            s.compression_upper = codec_of(codec, self.level, "compression", kept)?;
        }
        if let Some(codec) = last {
            let level = self.bottommost_level.filter(|_| self.bottommost.is_some()).or(self.level);
            s.compression_lower = codec_of(codec, level, "bottommost_compression", kept)?;
        }
        let zstd = [s.compression_upper, s.compression_lower];
        let zstd = zstd.iter().any(|codec| matches!(codec, Compression::Zstd(_)));
        s.max_dict_bytes = match self.dictionary {
            0 => s.max_dict_bytes,
            _ if !zstd => {
                kept.note("max_dict_bytes", "no effect without Zstandard".to_owned());
                0
            }
            bytes => bytes.clamp(256, 1 << 20),
        };
        Ok(())
    }
}

fn codec_of(
    codec: i32,
    level: Option<i32>,
    name: &'static str,
    kept: &mut Kept,
) -> Res<Compression> {
    let level = level.filter(|level| *level != DEFAULT_LEVEL);
    Ok(match codec {
        0 => Compression::None,
        1 => Compression::Snappy,
        2 => Compression::Zlib(level.filter(|level| *level > 0).unwrap_or(6).min(9)),
        3 => Compression::Bzip2,
        4 => Compression::Lz4,
        5 => {
            kept.note(name, "lz4hc (taken as lz4)".to_owned());
            Compression::Lz4
        }
        7 if cfg!(feature = "zstd") => Compression::Zstd(level.unwrap_or(3).clamp(1, 19)),
        7 => {
            return Err(Error::unsupported(format!(
                "{name}=zstd: this library was built without it; use lz4"
            )));
        }
        other => {
            return Err(Error::unsupported(format!(
                "{name}={other}: there is no such codec here; use lz4"
            )));
        }
    })
}

fn number(value: i32) -> u32 {
    u32::try_from(value).unwrap_or(0)
}

/// Threads as RocksDB shares `jobs` out: one in four for flushes.
fn jobs(o: &mut Options, jobs: i32) {
    let jobs = number(jobs).clamp(2, 256);
    o.settings.flush_threads = (jobs / 4).clamp(1, 16);
    o.settings.compaction_threads = (jobs - o.settings.flush_threads.min(jobs - 1)).max(1);
}

rows! { Options;
    exact rocksdb_options_set_create_if_missing rocksdb_options_get_create_if_missing: u8 = 0,
        |o, v| o.settings.create_if_missing = v != 0;
    exact rocksdb_options_set_create_missing_column_families
        rocksdb_options_get_create_missing_column_families: u8 = 0, |o, v| o.create_families = v != 0;
    exact rocksdb_options_set_error_if_exists rocksdb_options_get_error_if_exists: u8 = 0,
        |o, v| o.settings.error_if_exists = v != 0;
    exact rocksdb_options_set_write_buffer_size rocksdb_options_get_write_buffer_size: usize = 64 << 20,
        |o, v| o.settings.memtable_bytes = o.kept.within("write_buffer_size", v as u64, 64 << 10, 2 << 30);
    exact rocksdb_options_set_max_write_buffer_number rocksdb_options_get_max_write_buffer_number: i32 = 2,
        |o, v| o.settings.memtable_count = o.kept.within("max_write_buffer_number", number(v), 2, 64);
    exact rocksdb_options_set_max_background_jobs rocksdb_options_get_max_background_jobs: i32 = 2, jobs;
    exact rocksdb_options_increase_parallelism _: i32 = 16, |o, v| {
        o.kept.set("rocksdb_options_set_max_background_jobs", v);
        jobs(o, v);
    };
    exact rocksdb_options_set_max_background_compactions
        rocksdb_options_get_max_background_compactions: i32 = -1,
        |o, v| if v > 0 { o.settings.compaction_threads = number(v).min(256) };
    exact rocksdb_options_set_max_background_flushes rocksdb_options_get_max_background_flushes: i32 = -1,
        |o, v| if v > 0 { o.settings.flush_threads = number(v).min(16) };
    exact rocksdb_options_set_max_subcompactions rocksdb_options_get_max_subcompactions: u32 = 1,
        |o, v| o.settings.max_subcompactions = o.kept.within("max_subcompactions", v, 1, 64);
    exact rocksdb_options_set_max_open_files rocksdb_options_get_max_open_files: i32 = -1,
        |o, v| o.settings.max_open_files =
            (v >= 0).then(|| o.kept.within("max_open_files", number(v), 16, 1 << 20));
    exact rocksdb_options_set_max_total_wal_size rocksdb_options_get_max_total_wal_size: u64 = 0,
        |o, v| o.settings.max_wal_bytes = v;
    exact rocksdb_options_set_level0_file_num_compaction_trigger
        rocksdb_options_get_level0_file_num_compaction_trigger: i32 = 4,
        |o, v| o.settings.l0_trigger = o.kept.within("level0_file_num_compaction_trigger", number(v), 1, 1 << 30);
    exact rocksdb_options_set_level0_slowdown_writes_trigger
        rocksdb_options_get_level0_slowdown_writes_trigger: i32 = 20,
        |o, v| if v > 0 { o.settings.l0_slowdown = number(v) };
    exact rocksdb_options_set_level0_stop_writes_trigger
        rocksdb_options_get_level0_stop_writes_trigger: i32 = 36,
        |o, v| if v > 0 { o.settings.l0_stop = number(v) };
    exact rocksdb_options_set_target_file_size_base rocksdb_options_get_target_file_size_base: u64 = 64 << 20,
        |o, v| o.settings.file_bytes = o.kept.within("target_file_size_base", v, 16 << 10, 64 << 30);
    exact rocksdb_options_set_max_bytes_for_level_base
        rocksdb_options_get_max_bytes_for_level_base: u64 = 256 << 20,
        |o, v| o.settings.level_base_bytes = o.kept.within("max_bytes_for_level_base", v, 64 << 10, 1 << 50);
    exact rocksdb_options_set_max_bytes_for_level_multiplier
        rocksdb_options_get_max_bytes_for_level_multiplier: f64 = 10.0,
        |o, v| o.settings.level_multiplier =
            o.kept.within("max_bytes_for_level_multiplier", v.round() as u32, 2, 100);
    exact rocksdb_options_set_level_compaction_dynamic_level_bytes
        rocksdb_options_get_level_compaction_dynamic_level_bytes: u8 = 1,
        |o, v| o.settings.dynamic_levels = v != 0;
    exact rocksdb_options_set_soft_pending_compaction_bytes_limit
        rocksdb_options_get_soft_pending_compaction_bytes_limit: usize = 64 << 30,
        |o, v| o.settings.soft_debt_bytes = v as u64;
    exact rocksdb_options_set_hard_pending_compaction_bytes_limit
        rocksdb_options_get_hard_pending_compaction_bytes_limit: usize = 256 << 30,
        |o, v| o.settings.hard_debt_bytes = v as u64;
    exact rocksdb_options_set_disable_auto_compactions _: i32 = 0,
        |o, v| o.settings.auto_compaction = v == 0;
    exact rocksdb_options_set_ttl rocksdb_options_get_ttl: u64 = u64::MAX - 1,
        |o, v| o.settings.ttl_seconds = if v >= u64::MAX - 1 { 0 } else { v.min(3_162_240_000) };
    exact rocksdb_options_set_periodic_compaction_seconds
        rocksdb_options_get_periodic_compaction_seconds: u64 = u64::MAX - 1,
        |o, v| o.settings.periodic_compaction_seconds =
            if v >= u64::MAX - 1 { 0 } else { v.min(3_162_240_000) };
    exact rocksdb_options_set_use_direct_reads rocksdb_options_get_use_direct_reads: u8 = 0,
        |o, v| o.settings.direct_reads = v != 0;
    exact rocksdb_options_set_allow_mmap_reads rocksdb_options_get_allow_mmap_reads: u8 = 0,
        |o, v| o.settings.mapped_reads = Some(v != 0);
    exact rocksdb_options_set_use_direct_io_for_flush_and_compaction
        rocksdb_options_get_use_direct_io_for_flush_and_compaction: u8 = 0,
        |o, v| o.settings.direct_background_io = v != 0;
    exact rocksdb_options_set_allow_concurrent_memtable_write
        rocksdb_options_get_allow_concurrent_memtable_write: u8 = 1,
        |o, v| o.settings.concurrent_memtable_writes = v != 0;
    exact rocksdb_options_set_manual_wal_flush rocksdb_options_get_manual_wal_flush: u8 = 0,
        |o, v| o.settings.durability = if v != 0 { Durability::Buffered } else { Durability::Os };
    exact rocksdb_options_set_compression rocksdb_options_get_compression: i32 = 4,
        |o, v| o.codecs.levels = vec![v];
    exact rocksdb_options_set_bottommost_compression rocksdb_options_get_bottommost_compression: i32 = DISABLED,
        |o, v| o.codecs.bottommost = Some(v);
    exact rocksdb_options_set_compaction_style rocksdb_options_get_compaction_style: i32 = 0, style;
    exact rocksdb_options_set_compaction_pri rocksdb_options_get_compaction_pri: i32 = 3, priority;
    // A sync is `fdatasync` or stronger either way.
    noted rocksdb_options_set_use_fsync _: i32 = 0;
    exact rocksdb_options_set_db_write_buffer_size rocksdb_options_get_db_write_buffer_size: usize = 0,
        |o, v| o.memtable_bytes = v;
    noted rocksdb_options_set_paranoid_checks rocksdb_options_get_paranoid_checks: u8 = 1;
    noted rocksdb_options_set_max_file_opening_threads rocksdb_options_get_max_file_opening_threads: i32 = 16;
    noted rocksdb_options_set_num_levels rocksdb_options_get_num_levels: i32 = 7;
    noted rocksdb_options_set_target_file_size_multiplier
        rocksdb_options_get_target_file_size_multiplier: i32 = 1;
    noted rocksdb_options_set_min_write_buffer_number_to_merge
        rocksdb_options_get_min_write_buffer_number_to_merge: i32 = 1;
    noted rocksdb_options_set_max_write_buffer_size_to_maintain
        rocksdb_options_get_max_write_buffer_size_to_maintain: i64 = 0;
    noted rocksdb_options_set_enable_pipelined_write rocksdb_options_get_enable_pipelined_write: u8 = 0;
    noted rocksdb_options_set_unordered_write rocksdb_options_get_unordered_write: u8 = 0;
    noted rocksdb_options_set_max_log_file_size rocksdb_options_get_max_log_file_size: usize = 0;
    noted rocksdb_options_set_log_file_time_to_roll rocksdb_options_get_log_file_time_to_roll: usize = 0;
    noted rocksdb_options_set_keep_log_file_num rocksdb_options_get_keep_log_file_num: usize = 1000;
    noted rocksdb_options_set_recycle_log_file_num rocksdb_options_get_recycle_log_file_num: usize = 0;
    noted rocksdb_options_set_max_manifest_file_size rocksdb_options_get_max_manifest_file_size: usize = 1 << 30;
    noted rocksdb_options_set_table_cache_numshardbits rocksdb_options_get_table_cache_numshardbits: i32 = 6;
    noted rocksdb_options_set_arena_block_size rocksdb_options_get_arena_block_size: usize = 0;
    noted rocksdb_options_set_manifest_preallocation_size
        rocksdb_options_get_manifest_preallocation_size: usize = 4 << 20;
    noted rocksdb_options_set_allow_mmap_writes rocksdb_options_get_allow_mmap_writes: u8 = 0;
    noted rocksdb_options_set_is_fd_close_on_exec rocksdb_options_get_is_fd_close_on_exec: u8 = 1;
    noted rocksdb_options_set_stats_dump_period_sec rocksdb_options_get_stats_dump_period_sec: u32 = 600;
    noted rocksdb_options_set_stats_persist_period_sec rocksdb_options_get_stats_persist_period_sec: u32 = 600;
    noted rocksdb_options_set_advise_random_on_open rocksdb_options_get_advise_random_on_open: u8 = 1;
    noted rocksdb_options_set_use_adaptive_mutex rocksdb_options_get_use_adaptive_mutex: u8 = 0;
    noted rocksdb_options_set_bytes_per_sync rocksdb_options_get_bytes_per_sync: u64 = 0;
    noted rocksdb_options_set_wal_bytes_per_sync rocksdb_options_get_wal_bytes_per_sync: u64 = 0;
    noted rocksdb_options_set_writable_file_max_buffer_size
        rocksdb_options_get_writable_file_max_buffer_size: u64 = 1 << 20;
    noted rocksdb_options_set_enable_write_thread_adaptive_yield
        rocksdb_options_get_enable_write_thread_adaptive_yield: u8 = 1;
    noted rocksdb_options_set_max_sequential_skip_in_iterations
        rocksdb_options_get_max_sequential_skip_in_iterations: u64 = 8;
    noted rocksdb_options_set_optimize_filters_for_hits _: i32 = 0;
    noted rocksdb_options_set_delete_obsolete_files_period_micros
        rocksdb_options_get_delete_obsolete_files_period_micros: u64 = 21_600_000_000;
    noted rocksdb_options_set_memtable_prefix_bloom_size_ratio
        rocksdb_options_get_memtable_prefix_bloom_size_ratio: f64 = 0.0;
    noted rocksdb_options_set_memtable_whole_key_filtering _: u8 = 0;
    noted rocksdb_options_set_max_compaction_bytes rocksdb_options_get_max_compaction_bytes: u64 = 0;
    noted rocksdb_options_set_write_dbid_to_manifest rocksdb_options_get_write_dbid_to_manifest: u8 = 1;
    noted rocksdb_options_set_track_and_verify_wals_in_manifest
        rocksdb_options_get_track_and_verify_wals_in_manifest: u8 = 0;
    noted rocksdb_options_set_min_level_to_compress _: i32 = 0;
    noted rocksdb_options_set_memtable_huge_page_size rocksdb_options_get_memtable_huge_page_size: usize = 0;
    noted rocksdb_options_set_max_successive_merges rocksdb_options_get_max_successive_merges: usize = 0;
    noted rocksdb_options_set_bloom_locality rocksdb_options_get_bloom_locality: u32 = 0;
    noted rocksdb_options_set_inplace_update_support rocksdb_options_get_inplace_update_support: u8 = 0;
    noted rocksdb_options_set_inplace_update_num_locks rocksdb_options_get_inplace_update_num_locks: usize = 10_000;
    noted rocksdb_options_set_report_bg_io_stats _: i32 = 0;
    noted rocksdb_options_set_avoid_unnecessary_blocking_io
        rocksdb_options_get_avoid_unnecessary_blocking_io: u8 = 0;
    noted rocksdb_options_set_experimental_mempurge_threshold
        rocksdb_options_get_experimental_mempurge_threshold: f64 = 0.0;
    noted rocksdb_options_set_skip_stats_update_on_db_open
        rocksdb_options_get_skip_stats_update_on_db_open: u8 = 0;
    noted rocksdb_options_set_info_log_level rocksdb_options_get_info_log_level: i32 = 1;
    noted rocksdb_options_set_enable_blob_files rocksdb_options_get_enable_blob_files: u8 = 0;
    noted rocksdb_options_set_min_blob_size rocksdb_options_get_min_blob_size: u64 = 0;
    noted rocksdb_options_set_blob_file_size rocksdb_options_get_blob_file_size: u64 = 256 << 20;
    noted rocksdb_options_set_blob_compression_type rocksdb_options_get_blob_compression_type: i32 = 0;
    noted rocksdb_options_set_enable_blob_gc rocksdb_options_get_enable_blob_gc: u8 = 0;
    noted rocksdb_options_set_blob_gc_age_cutoff rocksdb_options_get_blob_gc_age_cutoff: f64 = 0.25;
    noted rocksdb_options_set_blob_gc_force_threshold rocksdb_options_get_blob_gc_force_threshold: f64 = 1.0;
    noted rocksdb_options_set_blob_compaction_readahead_size
        rocksdb_options_get_blob_compaction_readahead_size: u64 = 0;
    noted rocksdb_options_set_dump_malloc_stats _: u8 = 0;
    exact rocksdb_options_set_atomic_flush rocksdb_options_get_atomic_flush: u8 = 0,
        |o, v| o.atomic_flush = v != 0;
    noted rocksdb_options_set_wal_compression rocksdb_options_get_wal_compression: i32 = 0;
    noted rocksdb_options_compaction_readahead_size rocksdb_options_get_compaction_readahead_size: usize = 2 << 20;
    noted rocksdb_options_set_statistics_level rocksdb_options_get_statistics_level: i32 = 0;
    refused rocksdb_options_set_allow_ingest_behind rocksdb_options_get_allow_ingest_behind: u8 = 0,
        "what is taken in is newer than what is there; leave it out";
    // Logs are not kept once they are not needed.
    refused rocksdb_options_set_WAL_ttl_seconds rocksdb_options_get_WAL_ttl_seconds: u64 = 0,
        "logs are not archived; leave it out";
    refused rocksdb_options_set_WAL_size_limit_MB rocksdb_options_get_WAL_size_limit_MB: u64 = 0,
        "logs are not archived; leave it out";
}

fn style(o: &mut Options, style: i32) {
    o.settings.policy = match style {
        1 => Some(Policy::Universal),
        2 => Some(Policy::Fifo),
        _ => None,
    };
    let why = (!(0..=2).contains(&style))
        .then(|| format!("{style}: there is no such style; use 0, 1 or 2"));
    o.kept.refuse("compaction_style", why);
}

fn priority(o: &mut Options, pri: i32) {
    o.settings.compaction_pri = match pri {
        0 => CompactionPri::ByCompensatedSize,
        1 => CompactionPri::OldestLargestSeqFirst,
        2 => CompactionPri::OldestSmallestSeqFirst,
        4 => CompactionPri::RoundRobin,
        _ => CompactionPri::MinOverlappingRatio,
    };
}

export! {
    fn rocksdb_options_set_db_paths(options: &mut Options, paths: many *const DbPath, n: usize) {
        let paths = paths.handles(n, "db_paths")?.into_iter().map(|path| path.0.clone());
        options.places.db_paths = paths.collect();
        Ok(())
    }
    fn rocksdb_options_set_cf_paths(options: &mut Options, paths: many *const DbPath, n: usize) {
        let paths = paths.handles(n, "cf_paths")?.into_iter().map(|path| path.0.clone());
        options.places.cf_paths = paths.collect();
        Ok(())
    }
    fn rocksdb_options_create() -> *mut Options {
        Ok(give(Options::new()))
    }
    fn rocksdb_options_destroy(options: own Options) {
        drop(options);
        Ok(())
    }
    fn rocksdb_options_create_copy(options: &Options) -> *mut Options {
        Ok(give(options.clone()))
    }
    fn rocksdb_options_set_block_based_table_factory(options: &mut Options, tables: maybe TableOptions) {
        if let Some(tables) = tables {
            tables.put(options);
        }
        Ok(())
    }
    fn rocksdb_options_set_compression_per_level(options: &mut Options, levels: many i32, n: usize) {
        options.codecs.levels = levels.first(n, "level_values")?;
        Ok(())
    }
    fn rocksdb_options_set_compression_options(
        options: &mut Options, w_bits: i32, level: i32, strategy: i32, max_dict_bytes: i32
    ) {
        let _ = (w_bits, strategy);
        options.codecs.level = Some(level);
        options.codecs.dictionary = number(max_dict_bytes);
        Ok(())
    }
    fn rocksdb_options_set_bottommost_compression_options(
        options: &mut Options, w_bits: i32, level: i32, strategy: i32, max_dict_bytes: i32, enabled: u8
    ) {
        let _ = (w_bits, strategy);
        if enabled != 0 {
            options.codecs.bottommost_level = Some(level);
            options.codecs.dictionary = number(max_dict_bytes);
        }
        Ok(())
    }
    fn rocksdb_options_set_compression_options_zstd_max_train_bytes(options: &mut Options, bytes: i32) {
        options.kept.note("zstd_max_train_bytes", bytes.to_string());
        Ok(())
    }
    fn rocksdb_options_set_compression_options_parallel_threads(options: &mut Options, threads: i32) {
        options.kept.note("compression_parallel_threads", threads.to_string());
        Ok(())
    }
    fn rocksdb_options_set_bottommost_compression_options_zstd_max_train_bytes(
        options: &mut Options, bytes: i32, enabled: u8
    ) {
        if enabled != 0 {
            options.kept.note("bottommost_zstd_max_train_bytes", bytes.to_string());
        }
        Ok(())
    }
    fn rocksdb_options_set_max_bytes_for_level_multiplier_additional(
        options: &mut Options, levels: many i32, n: usize
    ) {
        let levels = levels.first(n, "level_values")?;
        if levels.iter().any(|factor| *factor != 1) {
            options.kept.note("max_bytes_for_level_multiplier_additional", format!("{levels:?}"));
        }
        Ok(())
    }
    fn rocksdb_options_optimize_for_point_lookup(options: &mut Options, block_cache_size_mb: u64) {
        options.settings.bloom_bits = 10;
        let bytes = block_cache_size_mb.min(u64::MAX >> 20) << 20;
        options.cache = Caching::Shared(SharedCache::new(bytes));
        options.kept.set("rocksdb_options_set_memtable_prefix_bloom_size_ratio", 0.02);
        Ok(())
    }
    fn rocksdb_options_optimize_level_style_compaction(options: &mut Options, memtable_memory_budget: u64) {
        let quarter = memtable_memory_budget / 4;
        options.settings.memtable_bytes = options.kept.within("write_buffer_size", quarter, 64 << 10, 2 << 30);
        options.settings.l0_trigger = 2;
        options.settings.level_base_bytes = memtable_memory_budget.clamp(64 << 10, 1 << 50);
        options.kept.set_all(&[
            ("rocksdb_options_set_write_buffer_size", quarter),
            ("rocksdb_options_set_min_write_buffer_number_to_merge", 2),
            ("rocksdb_options_set_max_write_buffer_number", 6),
            ("rocksdb_options_set_level0_file_num_compaction_trigger", 2),
            ("rocksdb_options_set_target_file_size_base", memtable_memory_budget / 8),
            ("rocksdb_options_set_max_bytes_for_level_base", memtable_memory_budget),
            ("rocksdb_options_set_compaction_style", 0),
        ]);
        Ok(())
    }
    fn rocksdb_options_optimize_universal_style_compaction(options: &mut Options, memtable_memory_budget: u64) {
        let quarter = memtable_memory_budget / 4;
        options.settings.memtable_bytes = options.kept.within("write_buffer_size", quarter, 64 << 10, 2 << 30);
        style(options, 1);
        options.kept.set_all(&[
            ("rocksdb_options_set_write_buffer_size", quarter),
            ("rocksdb_options_set_min_write_buffer_number_to_merge", 2),
            ("rocksdb_options_set_max_write_buffer_number", 6),
            ("rocksdb_options_set_compaction_style", 1),
        ]);
        Ok(())
    }
    fn rocksdb_options_prepare_for_bulk_load(options: &mut Options) {
        options.settings.auto_compaction = false;
        options.settings.l0_trigger = 1 << 30;
        options.settings.l0_slowdown = 1 << 30;
        options.settings.l0_stop = 1 << 30;
        options.settings.soft_debt_bytes = 0;
        options.settings.hard_debt_bytes = 0;
        options.kept.set_all(&[
            ("rocksdb_options_set_level0_file_num_compaction_trigger", 1 << 30),
            ("rocksdb_options_set_level0_slowdown_writes_trigger", 1 << 30),
            ("rocksdb_options_set_level0_stop_writes_trigger", 1 << 30),
            ("rocksdb_options_set_soft_pending_compaction_bytes_limit", 0),
            ("rocksdb_options_set_hard_pending_compaction_bytes_limit", 0),
            ("rocksdb_options_set_max_compaction_bytes", 1 << 60),
            ("rocksdb_options_set_num_levels", 2),
            ("rocksdb_options_set_max_write_buffer_number", 6),
            ("rocksdb_options_set_min_write_buffer_number_to_merge", 1),
            ("rocksdb_options_set_max_background_flushes", 4),
            ("rocksdb_options_set_max_background_compactions", 2),
            ("rocksdb_options_set_target_file_size_base", 256 << 20),
        ]);
        Ok(())
    }
    // Set as a number, told as a flag.
    fn rocksdb_options_get_use_fsync(options: &Options) -> i32 {
        let set: i32 = options.kept.get("rocksdb_options_set_use_fsync").unwrap_or(0);
        Ok(i32::from(set != 0))
    }
    fn rocksdb_options_set_memtable_vector_rep(options: &mut Options) {
        options.kept.note("memtable_factory", "vector".to_owned());
        Ok(())
    }
    fn rocksdb_options_set_hash_skip_list_rep(options: &mut Options, buckets: usize, height: i32, branching: i32) {
        options.kept.note("memtable_factory", format!("hash_skiplist({buckets},{height},{branching})"));
        Ok(())
    }
    fn rocksdb_options_set_hash_link_list_rep(options: &mut Options, buckets: usize) {
        options.kept.note("memtable_factory", format!("hash_linkedlist({buckets})"));
        Ok(())
    }
    fn rocksdb_options_set_wal_recovery_mode(options: &mut Options, mode: i32) {
        // The promised bytes must be there, and a torn tail is cut: one rule for modes 0 and 2.
        let why = match mode {
            0 | 2 => None,
            1 => Some("1: the torn end of a log, which was promised to none, is cut; use 2".to_owned()),
            _ => Some(format!("{mode}: damaged records are never skipped; salvage takes out what is readable")),
        };
        options.kept.set("wal_recovery_mode", mode);
        options.kept.refuse("wal_recovery_mode", why);
        Ok(())
    }
    fn rocksdb_options_get_wal_recovery_mode(options: &Options) -> i32 {
        Ok(options.kept.get("wal_recovery_mode").unwrap_or(2))
    }
    fn rocksdb_options_set_db_log_dir(options: &mut Options, dir: text) {
        if !dir.is_empty() {
            options.kept.note("db_log_dir", dir.to_owned());
        }
        Ok(())
    }
    fn rocksdb_options_set_universal_compaction_options(options: &mut Options, universal: maybe UniversalOptions) {
        if let Some(universal) = universal {
            universal.put(options);
        }
        Ok(())
    }
    fn rocksdb_options_set_fifo_compaction_options(options: &mut Options, fifo: maybe FifoOptions) {
        if let Some(fifo) = fifo {
            fifo.put(options);
        }
        Ok(())
    }
    fn rocksdb_options_set_ratelimiter(options: &mut Options, limiter: maybe RateLimiter) {
        options.settings.background_rate = limiter.map_or(0, RateLimiter::bytes);
        options.settings.auto_tuned_rate = limiter.is_some_and(RateLimiter::tunes);
        Ok(())
    }
    fn rocksdb_options_add_compact_on_deletion_collector_factory(
        options: &mut Options, window: usize, trigger: usize
    ) {
        deletions(options, window, trigger, 0.0);
        Ok(())
    }
    fn rocksdb_options_add_compact_on_deletion_collector_factory_del_ratio(
        options: &mut Options, window: usize, trigger: usize, ratio: f64
    ) {
        deletions(options, window, trigger, ratio);
        Ok(())
    }
    fn rocksdb_options_set_write_buffer_manager(options: &mut Options, buffers: maybe WriteBuffers) {
        options.memtables = buffers.map(|buffers| buffers.memtables().clone());
        Ok(())
    }
    fn rocksdb_options_set_plain_table_factory(
        options: &mut Options, user_key_len: u32, bloom_bits: i32, hash_ratio: f64, sparseness: usize,
        huge_page: usize, encoding: u8, full_scan: u8, stores_index: u8
    ) {
        let _ = (bloom_bits, hash_ratio, sparseness, huge_page, encoding, full_scan, stores_index);
        options.kept.note("table_factory", format!("plain({user_key_len})"));
        Ok(())
    }
    fn rocksdb_options_set_cuckoo_table_factory(options: &mut Options, tables: maybe CuckooOptions) {
        let _ = tables;
        options.kept.note("table_factory", "cuckoo".to_owned());
        Ok(())
    }
    fn rocksdb_options_set_row_cache(options: &mut Options, cache: maybe Cache) {
        if cache.is_some() {
            options.kept.note("row_cache", "set".to_owned());
        }
        Ok(())
    }
    fn rocksdb_options_set_blob_cache(options: &mut Options, cache: maybe Cache) {
        if cache.is_some() {
            options.kept.note("blob_cache", "set".to_owned());
        }
        Ok(())
    }
    fn rocksdb_options_set_env(options: &mut Options, env: maybe EnvHandle) {
        options.env = env.and_then(EnvHandle::world);
        Ok(())
    }
    fn rocksdb_options_get_info_log(options: &Options) -> *mut Logger {
        Ok(options.logger.clone().map_or(std::ptr::null_mut(), give))
    }
    fn rocksdb_options_set_info_log(options: &mut Options, logger: maybe Logger) {
        options.logger = logger.cloned();
        Ok(())
    }
}

fn deletions(o: &mut Options, window: usize, trigger: usize, ratio: f64) {
    o.collectors.push((window, trigger, ratio));
    o.settings.deletion_window = o.kept.within("deletion_window", window as u64, 0, 1_000_000_000);
    o.settings.deletion_trigger = trigger as u64;
    o.settings.deletion_ratio_percent =
        if ratio > 0.0 { ((ratio * 100.0).round() as u32).min(100) } else { 0 };
}
