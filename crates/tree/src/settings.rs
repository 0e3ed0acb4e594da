//! What a user may set. Everything has a default that is right for most, a unit and a range;
//! [`Settings::check`] refuses contradictions by name and says how to mend them.
//!
//! Components (the world, the comparator, a shared cache) are not settings: they go through
//! `Builder`.

mod budget;
mod stored;
pub(crate) mod table;
mod text;
pub(crate) mod translate;

pub use budget::Budget;
pub use table::EffectiveSetting;

use lithify_base::{Error, Result};
use lithify_env::Tuning;
use lithify_plan::PlanOptions;
#[doc(inline)]
pub use lithify_plan::{CompactionPri, PolicyKind as Policy};

/// How far a write must have travelled before it is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Durability {
    /// No write-ahead log at all: the write survives only once its memtable is flushed.
    NoWal,
    /// In the store's own log buffer: order is kept, but a crash of the process may lose the
    /// last writes.
    Buffered,
    /// Handed to the operating system: survives a crash or kill of the process.
    #[default]
    Os,
    /// On stable storage: survives power loss.
    Sync,
}

/// Compaction threads from which [`Policy::Bucket`] is the better default. Measured: with two it
/// rewrites more than `Hybrid` in the same time, with four it fills 1.7 times as fast.
const BUCKET_THREADS: u32 = 4;

/// The part of what memtables leave of the memory that buffers of jobs get.
const BUFFER_SHARE: u64 = 4;
/// The part that is left for what nobody counts: tables being built keep the keys of their blocks and
/// the hashes of their filters, cursors read ahead, and allocators keep more than they hand out.
const UNCOUNTED_SHARE: u64 = 4;

/// Block compression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Blocks as they are.
    None,
    /// LZ4 block format.
    Lz4,
    /// Snappy.
    Snappy,
    /// Zlib at this level (1 to 9). Zstandard is both faster and smaller; Zlib is for a RocksDB that was
    /// built without it.
    Zlib(i32),
    /// Bzip2, slower by far than all others; for a RocksDB that has nothing else.
    Bzip2,
    /// Zstandard at this level (1 to 19); needs the cargo feature `zstd`.
    Zstd(i32),
}

/// Everything a user may set. Start from [`Settings::default`], or from what the machine can spare
/// ([`Settings::for_budget`]), and change fields.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Settings {
    /// Create the database if it does not exist. Default: true.
    pub create_if_missing: bool,
    /// Refuse to open a database that exists. Default: false.
    pub error_if_exists: bool,
    /// New files and directories are for their owner alone (0600, 0700), whatever the umask allows. Those
    /// that are there stay as they are. Default: false, the umask decides.
    pub private_files: bool,
    /// Bytes for everything that grows: memtables (`memtable_bytes * memtable_count`), buffers of
    /// flushes and compactions (`buffer_bytes`), indexes and filters of open tables, and cached
    /// blocks, which get the rest but for a quarter of what is beside the memtables. At least 1 MiB
    /// above the memtables. Default: 512 MiB.
    pub memory_budget: u64,
    /// Bytes for the buffers of flushes and compactions, shared by as many as may run at once: the
    /// more, the larger their reads and writes, from 64 KiB to 2 MiB each. Default: a quarter of what
    /// the memtables leave of `memory_budget`.
    pub buffer_bytes: Option<u64>,
    /// Bytes that tables may take on disk: compactions that would need more wait for space, as on a
    /// full disk, and so do writes while what is left is needed to flush the memtables and for a
    /// narrow compaction that frees some (`NoSpace` once nothing can be freed). One
    /// such compaction at a time, of each column family, may exceed it while it runs. At least 16 memtables. Default: `None`,
    /// what the disk has.
    pub disk_budget: Option<u64>,
    /// Size at which a memtable is frozen and flushed. 64 KiB to 2 GiB. Default: 64 MiB.
    pub memtable_bytes: u64,
    /// Most memtables in memory, the active one included; a write waits beyond. 2 to 64.
    /// Default: 4.
    pub memtable_count: u32,
    /// Bytes of logs that are kept before memtables are flushed to let them go: with several column
    /// families one that is rarely written holds back the log of all. 0 = four times what the
    /// memtables of all families may take. Default: 0.
    pub max_wal_bytes: u64,
    /// Let writers whose batches share a commit group insert them into the memtable side by side, if
    /// the batches are large: of 48 entries or more, none for another column family. RocksDB's
    /// `allow_concurrent_memtable_write`. For machines with idle cores; with two, no gain was
    /// measured. Default: false.
    pub concurrent_memtable_writes: bool,
    /// Durability of a write that does not say. Default: [`Durability::Os`].
    pub durability: Durability,
    /// Compactions that may run at once. 1 to 256. Default: the processor's parallelism.
    pub compaction_threads: u32,
    /// Parts into which a wide compaction is cut at keys, each merged by whichever compaction
    /// thread is free. 1 to 64; more than `compaction_threads` gains nothing. They commit as one, and
    /// each writes files of its own, so a compaction is cut into no more parts than it writes files.
    /// It shortens compactions that others wait for, as those of level 0 under
    /// [`Policy::Hybrid`]. Default: 1, which merges each compaction as a whole.
    pub max_subcompactions: u32,
    /// Flushes that may run at once. 1 to 16. Default: 1.
    pub flush_threads: u32,
    /// Compaction rules; a directory may be opened with others each time. Default: what suits
    /// `compaction_threads` best, [`Policy::Hybrid`] for one to three, [`Policy::Bucket`] for more.
    pub policy: Option<Policy>,
    /// Which file of a level goes down first. [`Policy::Tiered`] and [`Policy::DfTiered`] take whole
    /// runs, so any but the default is refused with them. Default:
    /// [`CompactionPri::MinOverlappingRatio`].
    pub compaction_pri: CompactionPri,
    /// Whether compaction runs by itself. Default: true.
    pub auto_compaction: bool,
    /// Runs in level 0 that start a compaction. Default: 4.
    pub l0_trigger: u32,
    /// Runs in level 0 at which writes are slowed. Default: 20.
    pub l0_slowdown: u32,
    /// Runs in level 0 at which writes stop. Default: 36.
    pub l0_stop: u32,
    /// Target size of the first level below 0, bytes. Default: 256 MiB.
    pub level_base_bytes: u64,
    /// Each level's target over the one above. 2 to 100. Default: 10.
    pub level_multiplier: u32,
    /// Derive level targets from the largest level's actual size, which bounds space
    /// amplification. Default: true.
    pub dynamic_levels: bool,
    /// Size at which a table file is cut, bytes. Default: 64 MiB.
    pub file_bytes: u64,
    /// Compaction debt at which writes are slowed, bytes; 0 = never. Default: 64 GiB.
    pub soft_debt_bytes: u64,
    /// Compaction debt at which writes stop, bytes; 0 = never. Default: 256 GiB.
    pub hard_debt_bytes: u64,
    /// [`Policy::Universal`]: a run joins the newer ones unless it is larger than they are together,
    /// by more than this many percent. At most 10,000. Default: 1.
    pub universal_size_ratio: u32,
    /// [`Policy::Universal`]: fewest runs of similar size that are worth merging, from 2. Default: 2.
    pub universal_min_merge_width: u32,
    /// [`Policy::Universal`]: most runs merged at once, unless it is to save space, from 2.
    /// Default: no limit.
    pub universal_max_merge_width: u32,
    /// [`Policy::Universal`]: a merge into the oldest run that is larger than 25 `file_bytes` goes in
    /// slices of that size, side by side, which takes little spare disk. Otherwise it is one job, and
    /// the disk needs room for all of it twice, as in RocksDB by default. Default: true.
    pub universal_incremental: bool,
    /// Bytes above the oldest run, in percent of it, at which all becomes one run: 200 means that
    /// the store may take three times the space of its data. For [`Policy::Universal`], and
    /// for the last level of [`Policy::Tiered`] and [`Policy::DfTiered`]. 1 to 100,000. Default: 200.
    pub max_size_amplification_percent: u32,
    /// [`Policy::Fifo`]: bytes of all tables above which the oldest are dropped, at least two
    /// memtables and at most `disk_budget`. RocksDB's `max_table_files_size`. Default: half of
    /// `disk_budget`, else 1 GiB.
    pub fifo_max_bytes: u64,
    /// [`Policy::Fifo`]: small tables are merged among themselves, so that reads look at fewer.
    /// Default: false.
    pub fifo_allow_compaction: bool,
    /// Seconds that data may take until it is in the last level, where deletions and what they hide
    /// leave the disk: tables with older data go down whatever the sizes. [`Policy::Fifo`] drops
    /// tables of that age instead. 0 = never, up to 100 years. RocksDB's `ttl`. Default: 0.
    pub ttl_seconds: u64,
    /// Seconds after which every table is rewritten or taken down, so that newer settings and released
    /// snapshots take effect on it; 0 = never, up to 100 years. Not for [`Policy::Fifo`]. Default: 0.
    pub periodic_compaction_seconds: u64,
    /// Bytes of the newer runs, in percent of the oldest one's, above which compactions towards the
    /// bottom are pulled forward under any policy but [`Policy::Fifo`]; 0 = never, at most 100,000.
    /// Overwritten and deleted data takes at most this share. Default: 0.
    pub max_space_amp_percent: u32,
    /// Neighbouring entries of a new table that are looked at together for deletions; 0 = none.
    /// RocksDB's `CompactOnDeletionCollector` has it as its sliding window. At most 1,000,000,000.
    /// Default: 0.
    pub deletion_window: u64,
    /// Deletions in a window at which the table is compacted soon, from 1 up to the window.
    /// Default: 1,000.
    pub deletion_trigger: u64,
    /// Deletions in percent of a new table's entries at which it is compacted soon; 0 = never,
    /// at most 100. Default: 0.
    pub deletion_ratio_percent: u32,
    /// Slowest rate to which writes are slowed down before they stop, bytes per second.
    /// Default: 16 MiB/s.
    pub delayed_write_rate: u64,
    /// Bytes per second that flushes and compactions together read and write, flushes first; 0 = as
    /// fast as they can. At least 16 KiB/s. Default: 0.
    pub background_rate: u64,
    /// Let the rate follow what is used of it, up to `background_rate`: work that could spread does
    /// not come in bursts. Default: false.
    pub auto_tuned_rate: bool,
    /// Logical size of a data block; a power of two, 512 B to 1 MiB. Default: 4 KiB.
    pub block_bytes: u32,
    /// Table format to write: 5 (RocksDB 6.6 and later read it) or 6 (8.6 and later).
    /// Default: 6.
    pub format_version: u32,
    /// Compression of levels 0 to 2. Default: none.
    pub compression_upper: Compression,
    /// Compression of deeper levels. Default: LZ4.
    pub compression_lower: Compression,
    /// Largest dictionary of a table in levels with Zstandard, in bytes: what its blocks have in common is
    /// kept once, which makes small blocks of similar entries much smaller. It is trained by each
    /// compaction from a sample of its inputs, a hundred times as large and at most 8 MiB. 0 = none, else
    /// 256 B to 1 MiB; 16 KiB suits most. Tables of flushes and of
    /// `TableBuilder` have none.
    /// RocksDB's `max_dict_bytes`. Default: 0.
    pub max_dict_bytes: u32,
    /// Bits per key of the Bloom filters; 0 = no filters, at most 50. Default: 10.
    pub bloom_bits: u32,
    /// Whether filters hold whole keys besides the prefixes that the
    /// prefix extractor takes. Without them they are smaller, and a
    /// look-up of a key that is not there reads a table with others of its prefix in vain. Keys
    /// without a prefix are then in no filter. Without an extractor filters hold whole keys whatever this
    /// says. Default: true.
    pub whole_key_filtering: bool,
    /// Size of the parts into which the index and the filter of a table are cut, in bytes: parts are
    /// read when they are needed and kept in the block cache as data blocks are, so that tables may be
    /// many more than there is memory for their indexes. Reads whose parts are not in the cache take
    /// up to two reads of the file more. 1 KiB to 1 MiB; 0 = all of both stays in memory while a table
    /// is open, but for an index over 1 MiB. RocksDB's `metadata_block_size`, with its two-level index
    /// and partitioned filters. Default: 0.
    pub partition_bytes: u32,
    /// Read and write with direct IO in flushes and compactions, so that they neither copy
    /// through nor sweep the page cache. Falls back by itself where the file system refuses.
    /// Default: true.
    pub direct_background_io: bool,
    /// Read user data with direct IO too; then only the block cache caches. Default: false.
    pub direct_reads: bool,
    /// Most table files that are held open, 16 to 1,048,576; beyond, files that were not read lately
    /// are closed, and opened again when they are. Indexes and filters stay in memory. Transfers
    /// under way, logs and files being written come on top, a few dozen at most. A
    /// `Follower` keeps all tables of its views open whatever this says. Default:
    /// three quarters of what the process may open (`ulimit -n`) when the database is opened.
    pub max_open_files: Option<u32>,
    /// Verify the checksum of every block read from disk. Default: true.
    pub verify_checksums: bool,
    /// Write the event log (`EVENTS`, JSON lines) into the directory. Default: true.
    pub event_log: bool,
    /// For tests: the planner's options that no setting above reaches, instead of those of the
    /// policy's preset. A small tree can be made to stack, split and merge all the time.
    #[doc(hidden)]
    pub plan: Option<Box<PlanOptions>>,
    /// For measuring what checks cost: sums of blocks are not verified on reads and in compactions,
    /// what engines return is not certified, and flushes do not audit memtables.
    #[doc(hidden)]
    pub unchecked: bool,
    /// For tests: tables are written as RocksDB writes them, without counts of their blocks, and with range
    /// deletions that reach beyond the bounds of the table, where they do not count.
    #[doc(hidden)]
    pub as_rocksdb: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings::for_budget(Budget::default())
    }
}

impl Settings {
    /// Checks ranges and contradictions.
    ///
    /// # Errors
    /// [`InvalidArgument`](lithify_base::ErrorKind::InvalidArgument) naming the setting, its
    /// value, and what would be accepted.
    pub fn check(&self) -> Result<()> {
        within("memtable_bytes", self.memtable_bytes, 64 << 10, 2 << 30)?;
        within("memtable_count", self.memtable_count.into(), 2, 64)?;
        within("compaction_threads", self.compaction_threads.into(), 1, 256)?;
        within("max_subcompactions", self.max_subcompactions.into(), 1, 64)?;
        within("flush_threads", self.flush_threads.into(), 1, 16)?;
        within("level_multiplier", self.level_multiplier.into(), 2, 100)?;
        within("level_base_bytes", self.level_base_bytes, 64 << 10, 1 << 50)?;
        within("file_bytes", self.file_bytes, 16 << 10, 64 << 30)?;
        within("block_bytes", self.block_bytes.into(), 512, 1 << 20)?;
        within("format_version", self.format_version.into(), 5, 6)?;
        within("bloom_bits", self.bloom_bits.into(), 0, 50)?;
        if self.max_dict_bytes > 0 {
            within("max_dict_bytes", self.max_dict_bytes.into(), 256, 1 << 20)?;
            let zstd = |c| matches!(c, Compression::Zstd(_));
            if !zstd(self.compression_upper) && !zstd(self.compression_lower) {
                return Err(Error::invalid(
                    "max_dict_bytes is for Zstandard alone; set compression_lower to it, or \
                     max_dict_bytes to 0",
                ));
            }
        }
        if self.partition_bytes > 0 {
            within("partition_bytes", self.partition_bytes.into(), 1 << 10, 1 << 20)?;
        }
        within("delayed_write_rate", self.delayed_write_rate, 16 << 10, 1 << 50)?;
        within("universal_size_ratio", self.universal_size_ratio.into(), 0, 10_000)?;
        let (least, most) = (self.universal_min_merge_width, self.universal_max_merge_width);
        within("universal_min_merge_width", least.into(), 2, most.max(2).into())?;
        within("universal_max_merge_width", most.into(), least.into(), u32::MAX.into())?;
        let amp = self.max_size_amplification_percent;
        within("max_size_amplification_percent", amp.into(), 1, 100_000)?;
        within("ttl_seconds", self.ttl_seconds, 0, CENTURY)?;
        within("periodic_compaction_seconds", self.periodic_compaction_seconds, 0, CENTURY)?;
        within("max_space_amp_percent", self.max_space_amp_percent.into(), 0, 100_000)?;
        within("deletion_window", self.deletion_window, 0, 1_000_000_000)?;
        if self.deletion_window > 0 {
            within("deletion_trigger", self.deletion_trigger, 1, self.deletion_window)?;
        }
        within("deletion_ratio_percent", self.deletion_ratio_percent.into(), 0, 100)?;
        if self.background_rate > 0 {
            within("background_rate", self.background_rate, 16 << 10, 1 << 50)?;
        }
        if self.auto_tuned_rate && self.background_rate == 0 {
            return Err(Error::invalid(
                "auto_tuned_rate needs a limit: set background_rate, or leave both out",
            ));
        }
        if let Some(files) = self.max_open_files {
            within("max_open_files", files.into(), 16, 1 << 20)?;
        }
        if self.error_if_exists && !self.create_if_missing {
            return Err(Error::invalid(
                "error_if_exists refuses a database that is there, and create_if_missing = off one that \
                 is not; clear one of the two",
            ));
        }
        if !self.block_bytes.is_power_of_two() {
            return Err(Error::invalid(format!(
                "block_bytes = {} is not a power of two; try {}",
                self.block_bytes,
                self.block_bytes.next_power_of_two()
            )));
        }
        if !(1 <= self.l0_trigger
            && self.l0_trigger <= self.l0_slowdown
            && self.l0_slowdown <= self.l0_stop)
        {
            return Err(Error::invalid(format!(
                "l0_trigger = {}, l0_slowdown = {}, l0_stop = {} must rise in this order, from 1",
                self.l0_trigger, self.l0_slowdown, self.l0_stop
            )));
        }
        let policy = self.effective_policy();
        let takes_runs = policy.takes_runs();
        if takes_runs && self.compaction_pri != CompactionPri::default() {
            return Err(Error::invalid(format!(
                "compaction_pri = {} says which file goes down first, and policy = {} takes whole \
                 runs; leave it out, or choose another policy, such as {}",
                self.compaction_pri.name(),
                policy.name(),
                Policy::Hybrid.name()
            )));
        }
        if policy == Policy::Fifo && self.fifo_max_bytes < self.memtable_bytes.saturating_mul(2) {
            return Err(Error::invalid(format!(
                "fifo_max_bytes = {} would drop a memtable of {} soon after it is flushed; set it to \
                 {} or more, or memtable_bytes to less",
                self.fifo_max_bytes,
                self.memtable_bytes,
                self.memtable_bytes.saturating_mul(2)
            )));
        }
        if policy == Policy::Fifo
            && let Some(disk) = self.disk_budget.filter(|disk| *disk < self.fifo_max_bytes)
        {
            return Err(Error::invalid(format!(
                "fifo_max_bytes = {} is more than disk_budget = {disk}, so that nothing would be \
                 forgotten before the disk is full; set it to {} or less, or raise disk_budget",
                self.fifo_max_bytes,
                disk / 2
            )));
        }
        if self.soft_debt_bytes > self.hard_debt_bytes && self.hard_debt_bytes != 0 {
            return Err(Error::invalid(format!(
                "soft_debt_bytes = {} is above hard_debt_bytes = {}; lower it, or set 0 for never",
                self.soft_debt_bytes, self.hard_debt_bytes
            )));
        }
        let memtables = self.memtable_bytes.saturating_mul(u64::from(self.memtable_count));
        if self.memory_budget < memtables.saturating_add(1 << 20) {
            return Err(Error::invalid(format!(
                "memory_budget = {} leaves less than 1 MiB of cache beside {} memtables of {} \
                 bytes; raise it to {}, lower memtable_bytes or memtable_count, or leave them to \
                 Settings::for_budget",
                self.memory_budget,
                self.memtable_count,
                self.memtable_bytes,
                memtables.saturating_add(8 << 20)
            )));
        }
        if let Some(buffers) = self.buffer_bytes
            && self.cache_budget() < 1 << 20
        {
            return Err(Error::invalid(format!(
                "buffer_bytes = {buffers} leaves less than 1 MiB of cache, as memory_budget has {} \
                 beside the memtables, a quarter of which nobody counts; leave it out, or raise \
                 memory_budget",
                self.beside_memtables()
            )));
        }
        if let Some(disk) = self.disk_budget
            && disk < 16 * self.memtable_bytes
        {
            return Err(Error::invalid(format!(
                "disk_budget = {disk} is below 16 memtables of {} bytes; raise it to {}, or lower \
                 memtable_bytes",
                self.memtable_bytes,
                16 * self.memtable_bytes
            )));
        }
        for (name, c) in [("upper", self.compression_upper), ("lower", self.compression_lower)] {
            if let Compression::Zlib(level) = c
                && !(1..=9).contains(&level)
            {
                return Err(Error::invalid(format!(
                    "compression_{name}: Zlib level {level} is not in 1 to 9"
                )));
            }
            if let Compression::Zstd(level) = c {
                if !(1..=19).contains(&level) {
                    return Err(Error::invalid(format!(
                        "compression_{name}: Zstandard level {level} is not in 1 to 19"
                    )));
                }
                if !cfg!(feature = "zstd") {
                    return Err(Error::invalid(format!(
                        "compression_{name} = Zstandard needs the cargo feature `zstd`; enable \
                         it, or use Lz4"
                    )));
                }
            }
        }
        Ok(())
    }

    /// These settings for a column family of a database with settings `db`: what concerns the
    /// database as a whole is the database's.
    pub(crate) fn in_database(self, db: &Settings) -> Settings {
        Settings {
            create_if_missing: db.create_if_missing,
            error_if_exists: db.error_if_exists,
            private_files: db.private_files,
            memory_budget: db.memory_budget,
            buffer_bytes: db.buffer_bytes,
            disk_budget: db.disk_budget,
            background_rate: db.background_rate,
            auto_tuned_rate: db.auto_tuned_rate,
            max_wal_bytes: db.max_wal_bytes,
            concurrent_memtable_writes: db.concurrent_memtable_writes,
            durability: db.durability,
            compaction_threads: db.compaction_threads,
            flush_threads: db.flush_threads,
            direct_background_io: db.direct_background_io,
            direct_reads: db.direct_reads,
            max_open_files: db.max_open_files,
            verify_checksums: db.verify_checksums,
            event_log: db.event_log,
            unchecked: db.unchecked,
            as_rocksdb: db.as_rocksdb,
            ..self
        }
    }

    /// The compaction rules in force: those that were set, else what suits the number of
    /// compaction threads.
    pub fn effective_policy(&self) -> Policy {
        self.policy.unwrap_or(match self.compaction_threads >= BUCKET_THREADS {
            true => Policy::Bucket,
            false => Policy::Hybrid,
        })
    }

    /// What memtables leave of the memory.
    fn beside_memtables(&self) -> u64 {
        let memtables = self.memtable_bytes.saturating_mul(u64::from(self.memtable_count));
        self.memory_budget.saturating_sub(memtables)
    }

    /// Bytes of buffers of flushes and compactions: as set, else the share they get.
    pub(crate) fn effective_buffer_bytes(&self) -> u64 {
        self.buffer_bytes.unwrap_or(self.beside_memtables() / BUFFER_SHARE)
    }

    /// Bytes left for cached blocks and table metadata.
    pub(crate) fn cache_budget(&self) -> u64 {
        let left = self.beside_memtables();
        let others = self.effective_buffer_bytes().saturating_add(left / UNCOUNTED_SHARE);
        left.saturating_sub(others)
    }

    /// How the rate of background work is found.
    pub(crate) fn tuning(&self) -> Tuning {
        if self.auto_tuned_rate { Tuning::Auto } else { Tuning::Fixed }
    }

    /// The size of transfers of flushes and compactions.
    pub(crate) fn write_bytes(&self) -> usize {
        let jobs = u64::from(self.compaction_threads + self.flush_threads);
        lithify_compact::write_bytes(self.file_bytes, self.effective_buffer_bytes() / jobs)
    }
}

/// A hundred years in seconds: a longer time to live is a mistake of units.
const CENTURY: u64 = 100 * 366 * 24 * 3600;

fn within(name: &str, value: u64, lo: u64, hi: u64) -> Result<()> {
    if (lo..=hi).contains(&value) {
        return Ok(());
    }
    Err(Error::invalid(format!("{name} = {value} is not in {lo} to {hi}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_priority_needs_files_to_choose_from() {
        let mut s = Settings { compaction_pri: CompactionPri::RoundRobin, ..Settings::default() };
        for policy in Policy::ALL {
            s.policy = Some(policy);
            match policy {
                p if p.takes_runs() => {
                    let error = s.check().unwrap_err().to_string();
                    assert!(error.contains("compaction_pri = round-robin"), "{error}");
                    assert!(error.contains(policy.name()), "{error}");
                }
                _ => s.check().unwrap(),
            }
        }
        for pri in CompactionPri::ALL {
            assert_eq!(CompactionPri::from_name(pri.name()), Some(pri));
        }
    }

    #[test]
    fn what_cannot_hold_together_is_refused_with_its_fix() {
        let told = |s: Settings| s.check().unwrap_err().to_string();
        let nothing =
            Settings { create_if_missing: false, error_if_exists: true, ..Settings::default() };
        assert!(told(nothing).contains("clear one of the two"));
        let (mut full, gib) = (Settings::default(), 1 << 30);
        full.policy = Some(Policy::Fifo);
        (full.fifo_max_bytes, full.disk_budget) = (8 * gib, Some(4 * gib));
        let what = told(full.clone());
        assert!(
            what.contains("fifo_max_bytes = 8589934592") && what.contains("2147483648"),
            "{what}"
        );
        full.fifo_max_bytes = 2 * gib;
        full.check().unwrap();
        // To another policy the bound means nothing.
        (full.fifo_max_bytes, full.policy) = (8 * gib, Some(Policy::Leveled));
        full.check().unwrap();
    }

    #[test]
    fn sizes_at_their_end_do_not_wrap_around() {
        for policy in Policy::ALL {
            let with = |name: &str| {
                let mut settings = Settings { policy: Some(policy), ..Settings::default() };
                settings.set(name, &u64::MAX.to_string()).unwrap();
                settings
            };
            let error = with("memtable_bytes").check().unwrap_err();
            assert_eq!(error.kind(), lithify_base::ErrorKind::InvalidArgument, "{error}");
            assert_eq!(
                with("memtable_bytes").effective_buffer_bytes(),
                0,
                "memtables leave nothing"
            );
            assert_eq!(with("buffer_bytes").cache_budget(), 0, "buffers leave nothing");
            let whole = with("memory_budget").cache_budget();
            assert!(whole > u64::MAX / 4, "most of it is cache: {whole}");
        }
    }

    #[test]
    fn the_policy_follows_the_threads_unless_it_is_set() {
        let with = |compaction_threads, policy| {
            Settings { compaction_threads, policy, ..Settings::default() }.effective_policy()
        };
        let own: Vec<Policy> = (1..=5).map(|threads| with(threads, None)).collect();
        let (hybrid, bucket) = (Policy::Hybrid, Policy::Bucket);
        assert_eq!(own, [hybrid, hybrid, hybrid, bucket, bucket]);
        assert_eq!(with(8, Some(Policy::Leveled)), Policy::Leveled);
    }
}
