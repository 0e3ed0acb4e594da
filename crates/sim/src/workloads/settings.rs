//! What the canonical workloads are set to: a policy each, so small that a few hundred writes flush,
//! compact and roll logs.

use lithify::{Policy, Settings};
use lithify_plan::{BucketOptions, DfWhen, PlanOptions};

fn small(policy: Policy) -> Settings {
    let mut s = Settings::default();
    s.policy = Some(policy);
    s.memtable_bytes = 64 << 10;
    s.memtable_count = 4;
    s.memory_budget = 4 << 20;
    s.level_base_bytes = 64 << 10;
    s.level_multiplier = 2;
    s.file_bytes = 16 << 10;
    s.block_bytes = 1024;
    s.l0_trigger = 2;
    s.l0_slowdown = 8;
    s.l0_stop = 12;
    s.compaction_threads = 4;
    s.flush_threads = 2;
    s
}

/// As small, with a planner that does all it can soon.
fn eager(policy: Policy) -> Settings {
    let mut s = small(policy);
    let buckets = BucketOptions {
        initial: 4,
        window: 3,
        split_percent: 150,
        merge_percent: 60,
        min_file_bytes: 1 << 10,
        ..BucketOptions::default()
    };
    s.plan = Some(Box::new(PlanOptions {
        df_when: DfWhen::Always,
        df_max_depth: 4,
        df_extra_percent: u32::MAX,
        tiered_runs: 2,
        buckets,
        ..PlanOptions::default()
    }));
    s
}

pub(super) fn hybrid() -> Settings {
    small(Policy::Hybrid)
}
/// Wide compactions are merged in parts.
pub(super) fn in_parts() -> Settings {
    let mut s = hybrid();
    s.max_subcompactions = 4;
    s
}
pub(super) fn leveled() -> Settings {
    small(Policy::Leveled)
}
pub(super) fn tiered() -> Settings {
    eager(Policy::Tiered)
}
pub(super) fn df_leveled() -> Settings {
    let mut s = eager(Policy::DfLeveled);
    s.l0_trigger = 1;
    s
}
pub(super) fn df_tiered() -> Settings {
    eager(Policy::DfTiered)
}
pub(super) fn bucket() -> Settings {
    eager(Policy::Bucket)
}
pub(super) fn bucket_df() -> Settings {
    eager(Policy::BucketDf)
}
