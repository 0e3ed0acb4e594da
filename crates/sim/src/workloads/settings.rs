//! What the canonical workloads are like: settings with a policy each, so small that a few hundred writes
//! flush, compact and roll logs.

#[cfg(feature = "zstd")]
use lithify::Compression;
use lithify::engine::mock::FaultPlan;
use lithify::{Policy, Settings};
use lithify_env::sync::Arc;
use lithify_plan::{BucketOptions, DfWhen, PlanOptions};

use crate::model::DEFAULT;
use crate::world::Shape;

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

pub(super) fn hybrid() -> Shape {
    Shape::plain(small(Policy::Hybrid))
}
/// Wide compactions are merged in parts.
pub(super) fn in_parts() -> Shape {
    let mut s = small(Policy::Hybrid);
    s.max_subcompactions = 4;
    Shape::plain(s)
}
/// Compactions use engines besides the CPU, one for each thing that goes wrong.
pub(super) fn with_engines(plans: &[FaultPlan]) -> Shape {
    Shape { engines: plans.to_vec(), ..hybrid() }
}
/// Writers insert large batches side by side.
pub(super) fn side_by_side() -> Shape {
    let mut s = small(Policy::Hybrid);
    s.concurrent_memtable_writes = true;
    Shape::plain(s)
}
/// Compactions train dictionaries.
#[cfg(feature = "zstd")]
pub(super) fn dictionaries() -> Shape {
    let mut s = small(Policy::Hybrid);
    (s.compression_upper, s.compression_lower) = (Compression::Zstd(1), Compression::Zstd(1));
    s.max_dict_bytes = 512;
    Shape::plain(s)
}
/// Values expire after 4 seconds, in a family they last for ever, and one has no times.
pub(super) fn expiring() -> Shape {
    let lifetimes = [(DEFAULT, 4), ("small", 0)].map(|(name, seconds)| (name.to_owned(), seconds));
    Shape { lifetimes: Arc::new(lifetimes.into()), ..hybrid() }
}
pub(super) fn leveled() -> Shape {
    Shape::plain(small(Policy::Leveled))
}
pub(super) fn tiered() -> Shape {
    Shape::plain(eager(Policy::Tiered))
}
pub(super) fn df_leveled() -> Shape {
    let mut s = eager(Policy::DfLeveled);
    s.l0_trigger = 1;
    Shape::plain(s)
}
pub(super) fn df_tiered() -> Shape {
    Shape::plain(eager(Policy::DfTiered))
}
pub(super) fn bucket() -> Shape {
    Shape::plain(eager(Policy::Bucket))
}
pub(super) fn bucket_df() -> Shape {
    Shape::plain(eager(Policy::BucketDf))
}
