//! Settings of a way to run: sizes down to the smallest there may be, and what else must not show.

use lithify::prefix::{CappedPrefix, FixedPrefix};
use lithify::{Compression, Durability, Policy, PrefixExtractorRef, Settings};
use lithify_env::Random;
use lithify_env::sync::Arc;
use lithify_plan::{BucketOptions, DfWhen, PlanOptions};

/// How filters take prefixes of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefixes {
    None,
    Fixed(usize),
    Capped(usize),
}

impl Prefixes {
    /// What does it.
    pub fn extractor(self) -> Option<PrefixExtractorRef> {
        match self {
            Prefixes::None => None,
            Prefixes::Fixed(bytes) => Some(Arc::new(FixedPrefix::new(bytes))),
            Prefixes::Capped(most) => Some(Arc::new(CappedPrefix::new(most))),
        }
    }
}

/// Slow ones, in place of that of the deeper levels.
pub const RARE_CODECS: [Option<Compression>; 10] = {
    let mut codecs = [None; 10];
    (codecs[8], codecs[9]) = (Some(Compression::Zlib(1)), Some(Compression::Bzip2));
    codecs
};

pub fn merge_widths(s: &mut Settings, r: &mut Random) {
    s.universal_size_ratio = *pick(r, &[0, 1, 60]);
    (s.universal_min_merge_width, s.universal_max_merge_width) =
        *pick(r, &[(2, u32::MAX), (2, 2), (3, 4)]);
    s.max_size_amplification_percent = *pick(r, &[25, 200, 5000]);
    s.universal_incremental = r.one_in(2);
}

/// Settings of families, in a database with settings `db`.
pub fn of_families(db: &Settings, r: &mut Random) -> Settings {
    let mut s = db.clone();
    s.policy = Some(*pick(r, &Policy::EVERY));
    s.plan = None;
    s.compaction_pri = Settings::default().compaction_pri;
    s.block_bytes = *pick(r, &[512, 4096]);
    s.bloom_bits = *pick(r, &[0, 10]);
    s.partition_bytes = *pick(r, &[None, Some(0), Some(1 << 10)]);
    s
}

pub fn pick<'a, T>(random: &mut Random, of: &'a [T]) -> &'a T {
    &of[random.below(of.len() as u64) as usize]
}

pub fn settings(policy: Policy, r: &mut Random) -> Settings {
    let codecs = &[Compression::None, Compression::Lz4, Compression::Snappy];
    let mut s = Settings::default();
    s.policy = Some(policy);
    s.memtable_bytes = *pick(r, &[64 << 10, 64 << 10, 256 << 10, 4 << 20]);
    s.memtable_count = 2 + r.below(4) as u32;
    let memtables = s.memtable_bytes * u64::from(s.memtable_count);
    s.memory_budget = memtables + *pick(r, &[1 << 20, 1 << 20, 4 << 20, 256 << 20]);
    s.level_base_bytes = *pick(r, &[64 << 10, 256 << 10, 8 << 20]);
    s.level_multiplier = *pick(r, &[2, 4, 10]);
    s.file_bytes = *pick(r, &[16 << 10, 16 << 10, 64 << 10, 4 << 20]);
    s.block_bytes = *pick(r, &[512, 512, 4096, 64 << 10]);
    s.l0_trigger = 1 + r.below(5) as u32;
    s.l0_slowdown = s.l0_trigger + 1 + r.below(8) as u32;
    s.l0_stop = s.l0_slowdown + 1 + r.below(8) as u32;
    s.compaction_threads = *pick(r, &[1, 2, 4, 8]);
    s.flush_threads = 1 + r.below(3) as u32;
    s.dynamic_levels = r.one_in(2);
    s.format_version = 5 + r.below(2) as u32;
    s.compression_upper = *pick(r, codecs);
    s.compression_lower = *pick(r, codecs);
    s.bloom_bits = *pick(r, &[0, 1, 10, 20]);
    s.event_log = r.one_in(2);
    s.auto_compaction = !r.one_in(8);
    if !s.auto_compaction {
        // Nothing else would ever make room.
        (s.l0_slowdown, s.l0_stop) = (100_000, 100_000);
    }
    let levels = &[Durability::NoWal, Durability::Buffered, Durability::Os, Durability::Sync];
    s.durability = *pick(r, levels);
    if !r.one_in(4) {
        let buckets = BucketOptions {
            initial: *pick(r, &[1, 3, 8, 64]),
            window: 3,
            split_percent: 150,
            merge_percent: 60,
            min_file_bytes: 1 << 10,
            only_when_empty: r.one_in(6),
            by_bytes: r.one_in(2),
            ..BucketOptions::default()
        };
        let few_wait = r.one_in(4);
        s.plan = Some(Box::new(PlanOptions {
            df_when: DfWhen::Always,
            df_max_depth: 2 + r.below(5) as u32,
            df_extra_percent: u32::MAX,
            tiered_runs: 2 + r.below(3) as u32,
            max_waiting_jobs: if few_wait { 1 } else { 8 },
            buckets,
            ..PlanOptions::default()
        }));
    }
    s.partition_bytes = *pick(r, &[None, Some(0), Some(1 << 10), Some(4 << 10)]);
    s
}
