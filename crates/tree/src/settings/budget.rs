//! From what a machine can spare to every other setting.
//!
//! A user states up to three budgets: memory, threads, disk. [`Settings::for_budget`] derives the
//! rest, by the rules beside each setting in [`table`](super::table). Whatever is set besides stays
//! as it is; a setting counts as set if it is not what the budgets give.
//!
//! Keeps: the default settings are those of the default budget.

use super::table::ROWS;
use super::{Compression, Durability, Settings};
use crate::settings::CompactionPri;

/// Memtables that share a memory budget.
const MEMTABLES: u32 = 4;
/// The share of memory that one memtable gets: half of all for four of them.
const MEMTABLE_SHARE: u64 = 8;
/// Larger memtables gain little: a flush of this size has the disk's full rate.
const MEMTABLE_MAX: u64 = 256 << 20;
/// Files larger than this make a compaction hold more than it needs to.
const FILE_MAX: u64 = 64 << 20;
const FILE_MIN: u64 = 2 << 20;
/// Threads for each that flushes.
const THREADS_PER_FLUSH: u32 = 8;

/// What a database may take of its machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Bytes of memory for everything: memtables, buffers of flushes and compactions, cached
    /// blocks, and the metadata of tables. Default: 512 MiB.
    pub memory: u64,
    /// Compactions that may run at once, each on a thread of its own. Default: the processor's
    /// parallelism.
    pub threads: u32,
    /// Bytes on disk, `None` for what the disk has. Default: `None`.
    pub disk: Option<u64>,
}

impl Default for Budget {
    fn default() -> Budget {
        let threads = std::thread::available_parallelism().map_or(2, |n| n.get().min(256) as u32);
        Budget { memory: 512 << 20, threads, disk: None }
    }
}

/// Half of the memory in four memtables, in whole stretches of 2 MiB where they are that large.
pub(super) fn memtable_bytes(memory: u64) -> u64 {
    let share = (memory / MEMTABLE_SHARE).clamp(64 << 10, MEMTABLE_MAX);
    share - share % if share >= 2 << 20 { 2 << 20 } else { 4 << 10 }
}

impl Settings {
    /// Settings for what a machine can spare; everything follows from it. Any field may be changed
    /// afterwards; [`explain`](Settings::explain) tells which were.
    ///
    /// ```
    /// use lithify::{Budget, Settings};
    ///
    /// let small = Settings::for_budget(Budget { memory: 64 << 20, ..Budget::default() });
    /// assert_eq!(small.memtable_bytes, 8 << 20);
    /// small.check()?;
    /// # Ok::<(), lithify::Error>(())
    /// ```
    pub fn for_budget(budget: Budget) -> Settings {
        let memtable = memtable_bytes(budget.memory);
        let debt = |all: u64, share: u64| budget.disk.map_or(all, |disk| (disk / share).min(all));
        Settings {
            create_if_missing: true,
            error_if_exists: false,
            private_files: false,
            memory_budget: budget.memory,
            buffer_bytes: None,
            disk_budget: budget.disk,
            memtable_bytes: memtable,
            memtable_count: MEMTABLES,
            max_wal_bytes: 0,
            concurrent_memtable_writes: false,
            durability: Durability::Os,
            compaction_threads: budget.threads,
            max_subcompactions: 1,
            flush_threads: (budget.threads / THREADS_PER_FLUSH).clamp(1, 4),
            policy: None,
            compaction_pri: CompactionPri::MinOverlappingRatio,
            auto_compaction: true,
            l0_trigger: 4,
            l0_slowdown: 20,
            l0_stop: 36,
            level_base_bytes: memtable * 4,
            level_multiplier: 10,
            dynamic_levels: true,
            file_bytes: memtable.clamp(FILE_MIN, FILE_MAX),
            soft_debt_bytes: debt(64 << 30, 8),
            hard_debt_bytes: debt(256 << 30, 4),
            universal_size_ratio: 1,
            universal_min_merge_width: 2,
            universal_max_merge_width: u32::MAX,
            universal_incremental: true,
            max_size_amplification_percent: 200,
            fifo_max_bytes: budget.disk.map_or(1 << 30, |disk| disk / 2),
            fifo_allow_compaction: false,
            ttl_seconds: 0,
            periodic_compaction_seconds: 0,
            max_space_amp_percent: 0,
            deletion_window: 0,
            deletion_trigger: 1000,
            deletion_ratio_percent: 0,
            delayed_write_rate: 16 << 20,
            background_rate: 0,
            auto_tuned_rate: false,
            block_bytes: 4096,
            format_version: 6,
            compression_upper: Compression::None,
            compression_lower: Compression::Lz4,
            max_dict_bytes: 0,
            bloom_bits: 10,
            whole_key_filtering: true,
            partition_bytes: 0,
            direct_background_io: true,
            direct_reads: false,
            max_open_files: None,
            verify_checksums: true,
            event_log: true,
            plan: None,
            unchecked: false,
            as_rocksdb: false,
        }
    }

    /// The budgets that these settings state.
    pub fn budget(&self) -> Budget {
        Budget {
            memory: self.memory_budget,
            threads: self.compaction_threads,
            disk: self.disk_budget,
        }
    }

    /// These settings under another budget: what followed from the old one follows from the new one,
    /// and what was set stays.
    #[must_use]
    pub fn with_budget(self, budget: Budget) -> Settings {
        let (old, mut new) = (Settings::for_budget(self.budget()), Settings::for_budget(budget));
        for row in ROWS.iter().filter(|row| !row.is_budget()) {
            if (row.show)(&self) != (row.show)(&old) {
                (row.copy)(&self, &mut new);
            }
        }
        let Settings { plan, unchecked, as_rocksdb, .. } = self;
        Settings { plan, unchecked, as_rocksdb, ..new }
    }
}
