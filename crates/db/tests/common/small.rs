//! Settings of small trees, in which much happens after few writes.

use lithify::{Policy, Settings};
use lithify_plan::{BucketOptions, DfWhen, PlanOptions};

/// Settings under which a few hundred writes flush, compact and roll logs.
pub fn tiny() -> Settings {
    let mut s = Settings::default();
    s.memtable_bytes = 64 << 10;
    s.memtable_count = 3;
    s.memory_budget = 8 << 20;
    s.level_base_bytes = 128 << 10;
    s.level_multiplier = 3;
    s.file_bytes = 32 << 10;
    s.block_bytes = 512;
    s.l0_trigger = 2;
    s.compaction_threads = 2;
    s
}

/// Small settings under which all that a policy can do is due at once: data is stacked whenever its
/// way is locked, and buckets that a few flushes made hot or cold are split and merged.
pub fn eager(policy: Policy, rng: &mut fastrand::Rng) -> Settings {
    let mut s = tiny();
    s.policy = Some(policy);
    s.compaction_threads = 4;
    let buckets = BucketOptions {
        initial: rng.u32(4..9),
        window: 3,
        split_percent: 150,
        merge_percent: 60,
        min_file_bytes: 1 << 10,
        only_when_empty: rng.u8(0..8) == 0,
        by_bytes: rng.bool(),
        ..BucketOptions::default()
    };
    s.plan = Some(Box::new(PlanOptions {
        df_when: DfWhen::Always,
        df_max_depth: 6,
        df_extra_percent: u32::MAX,
        tiered_runs: rng.u32(2..4),
        max_waiting_jobs: if rng.u8(0..4) == 0 { 1 } else { 8 },
        buckets,
        ..PlanOptions::default()
    }));
    s
}
