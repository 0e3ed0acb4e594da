//! What a planner is told about the tree it should aim for. Names and defaults follow RocksDB.

use crate::seed::Pri;

/// Which rule set shapes the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum PolicyKind {
    /// One run per level: every flush is merged into the base level at once. Reads look at the
    /// fewest runs; writes cost the most.
    Leveled,
    /// RocksDB's default: runs pile up in L0 until their trigger, leveled below.
    #[default]
    Hybrid,
}

/// Settings of the planner, for one column family.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanOptions {
    /// The rule set.
    pub policy: PolicyKind,
    /// Levels in use, 2 to 7.
    pub levels: u8,
    /// Idle L0 runs at which L0 is compacted (`hybrid`).
    pub l0_trigger: u32,
    /// L0 depth at which writes are slowed down.
    pub l0_slowdown: u32,
    /// L0 depth at which writes stop.
    pub l0_stop: u32,
    /// Target size of the base level, in bytes.
    pub level_base_bytes: u64,
    /// Target size of a level divided by that of the level above, at least 2.
    pub multiplier: u32,
    /// Size at which an output file is closed, in bytes.
    pub file_bytes: u64,
    /// Most bytes a compaction should take. One seed with its overlap may exceed it.
    /// 0 means 25 x `file_bytes`.
    pub max_compaction_bytes: u64,
    /// Choose the base level and the targets from the size of the largest level, so that at most
    /// about a tenth of the data lies above it. Otherwise the base level is 1.
    pub dynamic_levels: bool,
    /// Order in which the files of a level are considered.
    pub pri: Pri,
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
}

impl Default for PlanOptions {
    fn default() -> PlanOptions {
        PlanOptions {
            policy: PolicyKind::Hybrid,
            levels: 7,
            l0_trigger: 4,
            l0_slowdown: 20,
            l0_stop: 36,
            level_base_bytes: 256 << 20,
            multiplier: 10,
            file_bytes: 64 << 20,
            max_compaction_bytes: 0,
            dynamic_levels: true,
            pri: Pri::MinOverlappingRatio,
            disable_auto: false,
            max_memtables: 2,
            memtable_bytes: 64 << 20,
            soft_debt: 64 << 30,
            hard_debt: 256 << 30,
        }
    }
}

impl PlanOptions {
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
            PolicyKind::Hybrid => self.l0_trigger.max(1),
        }
    }
}
