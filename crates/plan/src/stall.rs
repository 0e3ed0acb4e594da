//! When writers must slow down or stop: a pure function of the tree, the memtables and the
//! settings (B4). RocksDB's conditions in RocksDB's order, except that L0 counts by depth: the
//! runs that cover one key, which is what a read pays, locked ones included.

use std::fmt;

use lithify_lsm::Version;

use crate::options::PlanOptions;
use crate::score;
use crate::view::MemState;

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
    /// L0 holds more bytes than twice its stop trigger times a memtable.
    L0Bytes,
    /// Compaction is too far behind.
    PendingBytes,
}

impl Cause {
    /// Every cause, in the order of their declaration.
    pub const ALL: [Cause; 4] =
        [Cause::MemtableLimit, Cause::L0Files, Cause::L0Bytes, Cause::PendingBytes];

    /// Its name in logs and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Cause::MemtableLimit => "memtable_limit",
            Cause::L0Files => "l0_files",
            Cause::L0Bytes => "l0_bytes",
            Cause::PendingBytes => "pending_bytes",
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
    /// L0 runs over the worst key.
    pub l0_depth: u32,
    /// Estimated bytes that compactions still have to rewrite.
    pub debt: u64,
}

/// A small L0 with many short files must not be mistaken for a deep one, yet every run is one more
/// child of each iterator: this many runs stop writes at any depth.
const L0_RUNS_MAX: usize = 2000;

/// The verdict for the next write.
pub fn stall(version: &Version, mem: &MemState, options: &PlanOptions) -> Stall {
    let l0_depth = version.max_depth(0);
    let debt = score::debt(version, options);
    let with = |verdict, cause| Stall { verdict, cause: Some(cause), l0_depth, debt };
    let auto = !options.disable_auto;
    let limit = options.max_memtables.max(1);
    // As many memtables as depth would allow, and as much again for runs merged in place.
    let l0_limit = 2 * u64::from(options.l0_stop);
    let l0_limit = l0_limit.saturating_mul(options.memtable_bytes.max(1));
    let l0_runs = version.level(0).runs().len();

    if mem.frozen >= limit {
        return with(Verdict::Stop, Cause::MemtableLimit);
    }
    if auto && (l0_depth >= options.l0_stop || l0_runs >= L0_RUNS_MAX) {
        return with(Verdict::Stop, Cause::L0Files);
    }
    if auto && version.bytes(0) >= l0_limit {
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
    Stall { verdict: Verdict::None, cause: None, l0_depth, debt }
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
