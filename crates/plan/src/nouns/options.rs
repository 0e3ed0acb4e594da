//! What a planner is told about the tree it should aim for. Names and defaults follow RocksDB.

use lithify_base::{Level, MAX_LEVELS};

use crate::nouns::places::Places;
use crate::nouns::pri::CompactionPri;

/// Which compaction rules shape the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum PolicyKind {
    /// One run per level, every flush merged into the base level at once: least space and read
    /// cost, most rewriting.
    Leveled,
    /// Runs pile up in level 0 until their trigger, leveled below: RocksDB's default rules.
    Hybrid,
    /// Runs pile up at every level until so many cover a key, then become one run of the next level:
    /// least rewriting, most space and read cost.
    Tiered,
    /// `Hybrid`; where a level's way down is locked, its data is stacked on top of the next level as
    /// an extra run instead of waiting (DownForce).
    DfLeveled,
    /// `Tiered`, where newer runs may go down while older ones are still on their way (DownForce).
    DfTiered,
    /// Flushes are cut into key ranges, buckets, and each goes down by itself (BucketLSM).
    Bucket,
    /// Both: buckets make the jobs of level 0 narrow, stacking lets them go while the next level is
    /// locked.
    BucketDf,
    /// Levels, buckets and merges in place, each where it is worth its bytes: what a job reads and
    /// writes has a price, which follows what limits the machine. What a database takes that states
    /// nothing else; docs/papers.md says what it was measured against.
    #[default]
    Adaptive,
    /// The tree is a sequence of runs by age, and neighbours of similar size are merged: RocksDB's
    /// universal compaction. Little rewriting; now and then nearly all of the data is rewritten.
    Universal,
    /// Nothing is rewritten, and the oldest files are dropped once there are too many bytes or they
    /// are too old: RocksDB's FIFO compaction. **It forgets data by design**, snapshots or not; a key
    /// reads as its newest value or, once the file with that is dropped, as absent.
    Fifo,
}

impl PolicyKind {
    /// Every rule set that keeps data until it is deleted, the simplest first: all but
    /// [`Fifo`](PolicyKind::Fifo).
    pub const ALL: [PolicyKind; 9] = [
        PolicyKind::Leveled,
        PolicyKind::Hybrid,
        PolicyKind::Tiered,
        PolicyKind::DfLeveled,
        PolicyKind::DfTiered,
        PolicyKind::Bucket,
        PolicyKind::BucketDf,
        PolicyKind::Adaptive,
        PolicyKind::Universal,
    ];
    /// Every rule set, that which forgets included, which is the last.
    pub const EVERY: [PolicyKind; 10] = {
        let mut every = [PolicyKind::Fifo; 10];
        let (keeping, _) = every.split_at_mut(PolicyKind::ALL.len());
        keeping.copy_from_slice(&PolicyKind::ALL);
        every
    };
    /// The names of all rule sets, that which forgets included.
    pub fn names() -> Vec<&'static str> {
        PolicyKind::EVERY.map(PolicyKind::name).to_vec()
    }
    /// Its name on command lines and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            PolicyKind::Leveled => "leveled",
            PolicyKind::Hybrid => "hybrid",
            PolicyKind::Tiered => "tiered",
            PolicyKind::DfLeveled => "df-leveled",
            PolicyKind::DfTiered => "df-tiered",
            PolicyKind::Bucket => "bucket",
            PolicyKind::BucketDf => "bucket-df",
            PolicyKind::Adaptive => "adaptive",
            PolicyKind::Universal => "universal",
            PolicyKind::Fifo => "fifo",
        }
    }
    /// The rule set of that name.
    pub fn from_name(name: &str) -> Option<PolicyKind> {
        PolicyKind::EVERY.into_iter().find(|p| p.name() == name)
    }
    /// Levels pile up runs and have no target size.
    pub const fn is_tiered(self) -> bool {
        matches!(self, PolicyKind::Tiered | PolicyKind::DfTiered)
    }
    /// Whole runs are taken, so there is no order in which the files of a level go down.
    pub const fn takes_runs(self) -> bool {
        self.is_tiered() || matches!(self, PolicyKind::Universal | PolicyKind::Fifo)
    }
    /// Data may be stacked over a locked way.
    pub const fn stacks(self) -> bool {
        matches!(self, PolicyKind::DfLeveled | PolicyKind::DfTiered | PolicyKind::BucketDf)
    }
    /// Flushes are cut at bucket bounds.
    pub const fn has_buckets(self) -> bool {
        matches!(self, PolicyKind::Bucket | PolicyKind::BucketDf | PolicyKind::Adaptive)
    }
    /// Buckets of a tree's first map, for a database with so many compaction threads and memtables of so many bytes.
    /// `adaptive` does not look at the threads: it keeps as many compactions at work as are of use.
    pub fn first_buckets(self, compaction_threads: u32, memtable_bytes: u64) -> u32 {
        match self {
            PolicyKind::Adaptive => adaptive_buckets(memtable_bytes),
            _ => compaction_threads.max(FIRST_BUCKETS),
        }
    }
    /// Threads that transfer, for a database with so many compaction threads and files of so many bytes. Each job keeps
    /// several transfers under way, and a flush's writes must not queue behind a compaction's reads; these threads mostly
    /// wait. `adaptive` does not look at the compaction threads: with more transfers at once flushes wait in the queue of
    /// the disk. The larger files are, the larger are their transfers, so fewer keep a disk as busy.
    ///
    /// ```
    /// use lithify_plan::PolicyKind::{Adaptive, Hybrid};
    /// let adaptive = [4, 16, 24, 64, 1024].map(|mib| Adaptive.transfer_threads(2, mib << 20));
    /// assert_eq!(adaptive, [64, 64, 42, 16, 16]);
    /// assert_eq!([1, 2, 32].map(|threads| Hybrid.transfer_threads(threads, 64 << 20)), [16, 32, 256]);
    /// ```
    pub fn transfer_threads(self, compaction_threads: u32, file_bytes: u64) -> u32 {
        match self {
            PolicyKind::Adaptive => {
                let files = TRANSFERS_OF / file_bytes.max(1);
                files.clamp(TRANSFERS_EACH.into(), TRANSFERS_ADAPTIVE.into()) as u32
            }
            _ => compaction_threads
                .saturating_mul(TRANSFERS_EACH)
                .clamp(TRANSFERS_EACH, TRANSFERS_MOST),
        }
    }
}

/// Fewest buckets of a first map: of two or three none could ever be twice as hot as the average.
pub(crate) const FIRST_BUCKETS: u32 = 8;

/// A small L0 with many short files must not be mistaken for a deep one, yet every run is one more
/// child of each iterator: this many runs stop writes at any depth.
pub(crate) const L0_RUNS_MAX: usize = 2000;
/// A trigger above this counts as this: what writers wait for must be due before they are stopped.
const TRIGGER_MAX: u32 = L0_RUNS_MAX as u32 / 2;

/// Most buckets of a first map of `adaptive`, where each gets [`WORTH_A_FILE`] of a memtable. `adaptive` needs few jobs at
/// once, as each waits until it is worth its bytes; but the more buckets there are, the shorter are its jobs, and the less
/// the other buckets gather meanwhile. Each file costs the thread that flushes as much time as 115 KiB of entries, and where nothing
/// else limits writers, that thread does: 16 files of 16 MiB made them a seventh slower.
const MANY_BUCKETS: u32 = 12;
/// Bytes of a memtable beside which a file more costs a flush next to nothing.
const WORTH_A_FILE: u64 = 4 << 20;
/// Transfers at once for each compaction thread, and the most.
const TRANSFERS_EACH: u32 = 16;
const TRANSFERS_MOST: u32 = 256;
/// Most transfers at once under `adaptive`: as many as the files that have so many bytes together, 16 MiB each. With fewer
/// it loses more to other policies in the lab; with files of 64 MiB a quarter compacts as much, and flushes take three
/// quarters of the time (`docs/internals/compaction.md`).
const TRANSFERS_ADAPTIVE: u32 = 64;
const TRANSFERS_OF: u64 = 1 << 30;

/// Buckets of a map of `adaptive`, with memtables of so many bytes, while no more compactions are of use.
pub(crate) fn adaptive_buckets(memtable_bytes: u64) -> u32 {
    let fill = u32::try_from(memtable_bytes / WORTH_A_FILE).unwrap_or(u32::MAX);
    fill.clamp(FIRST_BUCKETS, MANY_BUCKETS)
}

/// When data may be stacked over a locked way (G1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum DfWhen {
    /// Under write pressure: it defers work, which pays only while writers would wait for it.
    #[default]
    Pressure,
    /// Whenever the level is over target (the paper's mode).
    Always,
}

/// How buckets are made and adapted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketOptions {
    /// Buckets at the beginning, at least 1; commonly the compaction slots.
    pub initial: u32,
    /// Compactions at once that have been of use of late, as control tells; 0 while that is not known. Under
    /// `adaptive` there may be as many buckets.
    pub useful: u32,
    /// Flushes whose bytes count for a bucket's temperature, at least 1.
    pub window: u32,
    /// A bucket is split above this temperature, in percent of the average.
    pub split_percent: u32,
    /// A bucket is merged with a neighbour at or below this temperature, in percent.
    pub merge_percent: u32,
    /// A flush should leave at least this many bytes per bucket, on average.
    pub min_file_bytes: u64,
    /// Buckets are split and merged. Otherwise the first map stays.
    pub adapt: bool,
    /// A bucket changes only while it has no L0 files (the paper's rule, which constant writing
    /// hardly ever meets).
    pub only_when_empty: bool,
    /// A bucket with two runs and its share of the base level's target goes down early, as
    /// RocksDB's score by bytes would have it.
    pub by_bytes: bool,
}

impl Default for BucketOptions {
    fn default() -> BucketOptions {
        BucketOptions {
            initial: FIRST_BUCKETS,
            useful: 0,
            window: 10,
            split_percent: 200,
            merge_percent: 50,
            min_file_bytes: 1 << 20,
            adapt: true,
            only_when_empty: false,
            by_bytes: true,
        }
    }
}

/// Settings of the planner, for one column family.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanOptions {
    /// The rule set.
    pub policy: PolicyKind,
    /// Levels in use, 2 to 7.
    pub levels: u8,
    /// Idle L0 runs at which L0 is compacted; over one key, where there are buckets.
    pub l0_trigger: u32,
    /// L0 depth at which writes are slowed down.
    pub l0_slowdown: u32,
    /// L0 depth at which writes stop.
    pub l0_stop: u32,
    /// Bytes that L0 held when these settings came, or the fewest since then: what is there already stops no writes.
    pub l0_found_bytes: u64,
    /// Target size of the base level, in bytes.
    pub level_base_bytes: u64,
    /// Target size of a level divided by that of the level above, at least 2.
    pub multiplier: u32,
    /// Size at which an output file is closed, in bytes.
    pub file_bytes: u64,
    /// Most bytes a compaction should take. One seed with its overlap may exceed it.
    /// 0 means 25 x `file_bytes`.
    pub max_compaction_bytes: u64,
    /// Parts into which a compaction is cut that are merged side by side, at least 1. To the planner
    /// it is one job all the same: one admission, one edit.
    pub max_subcompactions: u32,
    /// Choose the base level and the targets from the size of the largest level, so that at most
    /// about a tenth of the data lies above it. Otherwise the base level is 1.
    pub dynamic_levels: bool,
    /// Order in which the files of a level are considered.
    pub pri: CompactionPri,
    /// Propose nothing but what users ask for.
    pub disable_auto: bool,
    /// Frozen memtables at which writes stop, at least 1.
    pub max_memtables: u32,
    /// Size at which a memtable is frozen, in bytes.
    pub memtable_bytes: u64,
    /// Debt at which writes are slowed down, in bytes; 0 for never.
    pub soft_debt: u64,
    /// Debt at which writes stop, in bytes; 0 for never.
    pub hard_debt: u64,
    /// Idle runs over a key at which a level is taken down, at least 2 (tiered policies).
    pub tiered_runs: u32,
    /// Bytes above the last level's base run, in percent of that run, at which they are merged into
    /// it (tiered policies); above the oldest run (universal).
    pub size_amp_percent: u32,
    /// A run joins newer ones unless it is larger than they are together, by more than this many
    /// percent (universal).
    pub universal_size_ratio: u32,
    /// Fewest runs of similar size that are worth merging, at least 2 (universal).
    pub universal_min_merge_width: u32,
    /// Most runs merged at once, unless it is for space, at least 2 (universal).
    pub universal_max_merge_width: u32,
    /// What is merged for space goes in slices where it is more than one job should take (universal).
    pub universal_incremental: bool,
    /// Bytes of all files at which the oldest are dropped (fifo).
    pub fifo_max_bytes: u64,
    /// Small files of L0 are merged among themselves (fifo).
    pub fifo_allow_compaction: bool,
    /// Seconds after which data is dropped (fifo), or goes down to the bottom (others); 0 for never.
    pub ttl_seconds: u64,
    /// Seconds after which every file is rewritten; 0 for never.
    pub periodic_seconds: u64,
    /// Bytes of the newer runs, in percent of the oldest one's, above which they are taken down
    /// although no level is over its target; 0 for never.
    pub max_space_amp_percent: u32,
    /// When data may be stacked over a locked way (G1).
    pub df_when: DfWhen,
    /// Runs that may cover a key of a level because of stacking, base included; one more in the
    /// level that L0 goes to (G3).
    pub df_max_depth: u32,
    /// Extra bytes a level may hold or be promised, in percent of its target (G3).
    pub df_extra_percent: u32,
    /// Runs of all levels that may cover a key because of stacking (G4). At three quarters of it,
    /// merging extra runs goes before other work.
    pub max_read_amp: u32,
    /// Built jobs that may wait for older ones (G6).
    pub max_waiting_jobs: u32,
    /// L0 runs under compaction count for stalls, as reads still look at them. Otherwise they do
    /// not, which is what BucketLSM's code does.
    pub stall_counts_compacting: bool,
    /// How buckets are made and adapted.
    pub buckets: BucketOptions,
    /// In which table directory the files of each level are.
    pub places: Places,
}

impl Default for PlanOptions {
    fn default() -> PlanOptions {
        PlanOptions {
            policy: PolicyKind::Hybrid,
            levels: 7,
            l0_trigger: 4,
            l0_slowdown: 20,
            l0_stop: 36,
            l0_found_bytes: 0,
            level_base_bytes: 256 << 20,
            multiplier: 10,
            file_bytes: 64 << 20,
            max_compaction_bytes: 0,
            max_subcompactions: 1,
            dynamic_levels: true,
            pri: CompactionPri::MinOverlappingRatio,
            disable_auto: false,
            max_memtables: 2,
            memtable_bytes: 64 << 20,
            soft_debt: 64 << 30,
            hard_debt: 256 << 30,
            tiered_runs: 4,
            size_amp_percent: 200,
            universal_size_ratio: 1,
            universal_min_merge_width: 2,
            universal_max_merge_width: u32::MAX,
            universal_incremental: true,
            fifo_max_bytes: 1 << 30,
            fifo_allow_compaction: false,
            ttl_seconds: 0,
            periodic_seconds: 0,
            max_space_amp_percent: 0,
            df_when: DfWhen::Pressure,
            df_max_depth: 3,
            df_extra_percent: 100,
            max_read_amp: 40,
            max_waiting_jobs: 8,
            stall_counts_compacting: true,
            buckets: BucketOptions::default(),
            places: [0; MAX_LEVELS],
        }
    }
}

impl PlanOptions {
    /// The settings of a rule set, otherwise as they are by default.
    pub fn preset(policy: PolicyKind) -> PlanOptions {
        PlanOptions { policy, ..PlanOptions::default() }
    }
    /// DownForce as its paper has it: on `DfLeveled` or `DfTiered`, stacking whenever a
    /// level is over target, without a bound on extra bytes.
    pub fn paper_downforce(policy: PolicyKind) -> PlanOptions {
        PlanOptions {
            df_when: DfWhen::Always,
            df_max_depth: 8,
            df_extra_percent: u32::MAX,
            dynamic_levels: false,
            ..PlanOptions::preset(policy)
        }
    }
    /// BucketLSM as its paper has it: buckets change only while empty, only runs trigger.
    pub fn paper_bucket() -> PlanOptions {
        let buckets =
            BucketOptions { only_when_empty: true, by_bytes: false, ..BucketOptions::default() };
        PlanOptions { dynamic_levels: false, buckets, ..PlanOptions::preset(PolicyKind::Bucket) }
    }
    /// Buckets whose bounds never change, to see what adapting is worth.
    pub fn static_buckets() -> PlanOptions {
        let buckets = BucketOptions { adapt: false, ..BucketOptions::default() };
        PlanOptions { buckets, ..PlanOptions::preset(PolicyKind::Bucket) }
    }
    /// Runs of `level` that may cover a key because of stacking, base included.
    pub fn max_depth(&self, level: u8, base: u8) -> u32 {
        self.df_max_depth.saturating_add(u32::from(level == base)).max(2)
    }
    /// Extra bytes a level with this target may hold or be promised.
    pub fn max_extra_bytes(&self, target: u64) -> u64 {
        match self.df_extra_percent {
            u32::MAX => u64::MAX,
            p => (u128::from(target) * u128::from(p) / 100).try_into().unwrap_or(u64::MAX),
        }
    }
    /// The depth of L0 from which it goes before all other levels, where many jobs run at once: half
    /// way from where writers are slowed down to where they are stopped.
    pub fn l0_urgent(&self) -> u32 {
        let room = self.l0_stop.saturating_sub(self.l0_slowdown);
        self.l0_slowdown.saturating_add(room / 2).max(1)
    }
    /// L0 depth at which writers feel a pressure that more threads and stacking are worth:
    /// RocksDB's `GetL0ThresholdSpeedupCompaction`.
    pub fn l0_speed_up(&self) -> u32 {
        let trigger = self.l0_trigger();
        let quarter = trigger.saturating_add(self.l0_slowdown.saturating_sub(trigger) / 4);
        trigger.saturating_mul(2).min(quarter)
    }
    /// Most bytes a compaction should take.
    pub fn max_job_bytes(&self) -> u64 {
        match self.max_compaction_bytes {
            0 => self.file_bytes.saturating_mul(25),
            n => n,
        }
    }
    /// The deepest level in use.
    pub fn last_level(&self) -> u8 {
        self.levels.clamp(2, lithify_base::MAX_LEVELS as u8) - 1
    }
    /// Idle L0 runs at which the policy in use compacts L0.
    pub fn l0_trigger(&self) -> u32 {
        match self.policy {
            PolicyKind::Leveled => 1,
            // Writers that are stopped add no run: what they wait for must be due by then.
            PolicyKind::Tiered | PolicyKind::DfTiered => self.tier_runs(0),
            _ => self.l0_trigger.clamp(1, TRIGGER_MAX),
        }
    }
    /// Runs of the tree from which `universal` looks for some to merge. Writers that are stopped add no
    /// run, so it is less than what stops them.
    pub fn universal_trigger(&self) -> usize {
        self.l0_trigger.min(TRIGGER_MAX).min(self.l0_stop.saturating_sub(1)) as usize
    }
    /// Idle runs over a key at which `level` is taken down (tiered policies).
    pub fn tier_runs(&self, level: Level) -> u32 {
        match level {
            0 => self.tiered_runs.max(2).min(self.l0_stop.max(1)),
            _ => self.tiered_runs.max(2),
        }
    }
}
