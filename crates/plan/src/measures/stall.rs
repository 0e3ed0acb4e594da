//! When writers must slow down or stop: a pure function of the tree, the memtables and the
//! settings. RocksDB's conditions in RocksDB's order, except that L0 counts by depth: the
//! runs that cover one key, which is what a read pays, locked ones included.

use std::fmt;

use lithify_base::{FileId, MAX_LEVELS};
use lithify_lsm::{Version, index};

use crate::measures::score;
use crate::nouns::options::{L0_RUNS_MAX, PlanOptions, PolicyKind};
use crate::nouns::spec::InFlight;
use crate::nouns::view::{MemState, View};

/// How hard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Verdict {
    /// Writes go ahead.
    #[default]
    None,
    /// Writes are slowed down.
    Delay,
    /// Writes wait.
    Stop,
}

/// Why. Every stall in the event log names one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// Too many memtables wait for their flush.
    MemtableLimit,
    /// Too many L0 runs cover one key.
    L0Files,
    /// L0 holds more bytes than its stop trigger times two memtables, six under `adaptive`; or three quarters of them, from where
    /// on writers are paced. Where the settings came later, as many as it held then are the three quarters, if they are more.
    L0Bytes,
    /// Compaction is too far behind.
    PendingBytes,
    /// Stacked runs make a read look at more runs than it may.
    ReadAmp,
    /// What is left of the disk, or of its budget, is kept for flushes and for compactions that free
    /// more.
    DiskSpace,
}

impl Cause {
    /// Every cause, in the order of their declaration.
    pub const ALL: [Cause; 6] = [
        Cause::MemtableLimit,
        Cause::L0Files,
        Cause::L0Bytes,
        Cause::PendingBytes,
        Cause::ReadAmp,
        Cause::DiskSpace,
    ];

    /// Its name in logs and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Cause::MemtableLimit => "memtable_limit",
            Cause::L0Files => "l0_files",
            Cause::L0Bytes => "l0_bytes",
            Cause::PendingBytes => "pending_bytes",
            Cause::ReadAmp => "read_amp",
            Cause::DiskSpace => "disk_space",
        }
    }
}

/// A stall verdict with the figures it rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Stall {
    /// How hard.
    pub verdict: Verdict,
    /// Why; `None` without a stall.
    pub cause: Option<Cause>,
    /// L0 runs over the key that most of them cover.
    pub l0_depth: u32,
    /// Estimated bytes that compactions still have to rewrite.
    pub debt: u64,
}

/// Buckets make many files of one run; this many files of L0 stop writes at any depth.
const L0_FILES_MAX: usize = 20_000;

/// True if L0 has half as many runs or files as it may, or three quarters of the bytes: even what is not deep is
/// due. Where memtables are small beside the base level it may have that many bytes and little depth, as keys
/// that are written in their order have.
pub(crate) fn is_crowded(version: &Version, options: &PlanOptions) -> bool {
    let l0 = version.level(0);
    l0.runs().len() >= L0_RUNS_MAX / 2
        || l0.file_count() >= L0_FILES_MAX / 2
        || version.bytes(0) >= l0_bytes_slowdown(options)
}

/// The verdict for the next write.
pub fn stall(version: &Version, mem: &MemState, options: &PlanOptions) -> Stall {
    verdict(version, mem, options, version.max_depth(0))
}

/// The same, for settings under which runs that a job in flight takes away do not count.
pub fn stall_while(
    version: &Version,
    inflight: &[InFlight],
    mem: &MemState,
    options: &PlanOptions,
) -> Stall {
    if options.stall_counts_compacting {
        return stall(version, mem, options);
    }
    let held = |id| inflight.iter().any(|j| j.spec.inputs.contains(&id));
    verdict(version, mem, options, depth_without(version, held))
}

/// The depth of L0 once the files that are `gone` have left it.
pub fn depth_without(version: &Version, gone: impl Fn(FileId) -> bool) -> u32 {
    let all = index::intervals(version.level(0).runs(), version.order(), gone);
    all.iter().map(|i| i.idle_depth).max().unwrap_or(0)
}

/// True if writers wait, or soon will: L0 is deep, memtables wait, or writes are slowed (G1).
pub fn is_pressed(version: &Version, mem: &MemState, options: &PlanOptions) -> bool {
    version.max_depth(0) >= options.l0_speed_up()
        || mem.frozen >= options.max_memtables.saturating_sub(1).max(2)
        || stall(version, mem, options).verdict > Verdict::None
}

impl View<'_> {
    /// True if writers wait, or soon will: stacking and more threads are worth their price.
    pub fn is_pressed(&self) -> bool {
        *self.pressed.get_or_init(|| is_pressed(self.version, self.mem, self.options))
    }
}

/// How many of `slots` compactions should run: one while nothing presses, all under pressure
/// (RocksDB's speed-up rule). Pressure is what [`is_pressed`] says, or a debt of an eighth of the
/// largest level and twice the base level's target.
pub fn slots_wanted(
    version: &Version,
    mem: &MemState,
    options: &PlanOptions,
    slots: usize,
) -> usize {
    let largest = (1..=options.last_level()).map(|l| version.bytes(l)).max().unwrap_or(0);
    let much = (largest / 8).max(options.level_base_bytes.saturating_mul(2));
    match is_pressed(version, mem, options) || score::debt(version, options) >= much {
        true => slots,
        false => slots.min(1),
    }
}

fn verdict(version: &Version, mem: &MemState, options: &PlanOptions, l0_depth: u32) -> Stall {
    let debt = score::debt(version, options);
    let with = |verdict, cause| Stall { verdict, cause: Some(cause), l0_depth, debt };
    // A store that forgets goes through its data by age: its L0 is the whole tree.
    let auto = !options.disable_auto && options.policy != PolicyKind::Fifo;
    let limit = options.max_memtables.max(1);

    if mem.frozen >= limit {
        return with(Verdict::Stop, Cause::MemtableLimit);
    }
    if auto && (l0_depth >= options.l0_stop || l0_is_full(version)) {
        return with(Verdict::Stop, Cause::L0Files);
    }
    if auto && version.bytes(0) >= l0_bytes_stop(options) {
        return with(Verdict::Stop, Cause::L0Bytes);
    }
    if auto && options.hard_debt > 0 && debt >= options.hard_debt {
        return with(Verdict::Stop, Cause::PendingBytes);
    }
    // With three memtables or fewer the last one is no early warning but the normal case.
    if limit > 3 && mem.frozen >= limit - 1 {
        return with(Verdict::Delay, Cause::MemtableLimit);
    }
    if auto && l0_depth >= options.l0_slowdown {
        return with(Verdict::Delay, Cause::L0Files);
    }
    if auto && options.soft_debt > 0 && debt >= options.soft_debt {
        return with(Verdict::Delay, Cause::PendingBytes);
    }
    if auto && options.policy.stacks() && read_amp(version) > options.max_read_amp {
        return with(Verdict::Delay, Cause::ReadAmp);
    }
    Stall { verdict: Verdict::None, cause: None, l0_depth, debt }
}

/// Bytes of L0 that stop writes at any depth. Without buckets depth is the number of runs, and RocksDB
/// stops on that alone.
pub fn l0_bytes_stop(options: &PlanOptions) -> u64 {
    if !options.policy.has_buckets() {
        return u64::MAX;
    }
    // As many memtables as depth would allow, and as much again for runs merged in place.
    // What `adaptive` merges in place it keeps longer, until that is worth going down.
    let times = if options.policy == PolicyKind::Adaptive { 6 } else { 2 };
    let stop = (times * u64::from(options.l0_stop)).saturating_mul(options.memtable_bytes.max(1));
    // Under other settings, as with smaller memtables, L0 may have more than that already.
    stop.max((options.l0_found_bytes / 3).saturating_mul(4))
}

/// Bytes of L0 from which on writers are paced, so that they do not run into that stop: three quarters of it.
pub fn l0_bytes_slowdown(options: &PlanOptions) -> u64 {
    l0_bytes_stop(options) / 4 * 3
}

fn l0_is_full(version: &Version) -> bool {
    let l0 = version.level(0);
    l0.runs().len() >= L0_RUNS_MAX || l0.file_count() >= L0_FILES_MAX
}

/// Runs a read may have to look at: the depths of all levels.
pub fn read_amp(version: &Version) -> u32 {
    (0..MAX_LEVELS as u8).map(|l| version.max_depth(l)).sum()
}

impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.verdict)?;
        if let Some(cause) = self.cause {
            write!(f, " {cause:?}")?;
        }
        write!(f, "  depth={} debt={}", self.l0_depth, self.debt)
    }
}
