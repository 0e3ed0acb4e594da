//! A way to run the database that must not show: its settings, the order of its jobs, and what is done
//! to it between two operations of the client (flushes, compactions, restarts, copies, kills).

use std::fmt;

use lithify::{CompactionPri, Durability, Policy, Settings};
use lithify_env::Random;
use lithify_env::random::derive_seed;
use lithify_sim::pump::Order;

use crate::settings::{Prefixes, RARE_CODECS, merge_widths, of_families, pick, settings};

/// What ends a life now and then, unnoticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restart {
    Never,
    /// It is closed and opened.
    Close,
    /// What is on the disk in the middle of everything is opened elsewhere.
    Kill,
    /// Life goes on in a checkpoint.
    Copy,
}

/// One way to run.
#[derive(Clone, Debug)]
pub struct Variant {
    pub settings: Settings,
    /// Those of the other families.
    pub families: Settings,
    pub prefixes: Prefixes,
    pub restart: Restart,
    /// A restart comes once in so many operations.
    pub odds: u64,
    /// A flush follows every so many writes; 0 for none.
    pub flush_every: u64,
    /// A compaction of some keys comes once in so many operations; 0 for none.
    pub compact_odds: u64,
    /// Background steps between operations, at most.
    pub pace: u64,
    pub order: Order,
    /// Reads leave nothing in the cache.
    pub uncached: bool,
    /// Transfers are cut short.
    pub short: bool,
    pub seed: u64,
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = &self.settings;
        write!(
            f,
            "{}, {:?}, restart {:?} 1/{}, flush every {}, compact 1/{}, pace {}, {:?}{}{}; memtables \
             {}, budget {}, files {}, blocks {}, l0 {}/{}/{}, threads {}+{}, parts {}, {}, {:?}/{:?}, bloom {} in {}, \
             prefixes {:?}, version {}, buckets {:?}{}; families {}",
            s.effective_policy().name(),
            s.durability,
            self.restart,
            self.odds,
            self.flush_every,
            self.compact_odds,
            self.pace,
            self.order,
            if self.uncached { ", uncached" } else { "" },
            if self.short { ", short transfers" } else { "" },
            s.memtable_count,
            s.memory_budget,
            s.file_bytes,
            s.block_bytes,
            s.l0_trigger,
            s.l0_slowdown,
            s.l0_stop,
            s.compaction_threads,
            s.flush_threads,
            s.max_subcompactions,
            s.compaction_pri.name(),
            s.compression_upper,
            s.compression_lower,
            s.bloom_bits,
            s.partition_bytes.map_or("auto".to_owned(), |n| n.to_string()),
            self.prefixes,
            s.format_version,
            s.plan.as_ref().map(|p| (p.buckets.initial, p.max_waiting_jobs)),
            if s.as_rocksdb { ", tables as RocksDB's" } else { "" },
            self.families.effective_policy().name(),
        )
    }
}

impl Variant {
    /// Variant `index` of a seed. The policies go round, so that neighbours have them all.
    pub fn new(seed: u64, index: u64) -> Variant {
        let mut random = Random::from_seed(derive_seed(seed, &format!("variant {index}")));
        let r = &mut random;
        let policy =
            Policy::EVERY[(seed.wrapping_add(index) % Policy::EVERY.len() as u64) as usize];
        let restarts = [Restart::Never, Restart::Close, Restart::Kill, Restart::Copy];
        let restart = *pick(r, &restarts);
        let mut settings = settings(policy, r);
        if restart == Restart::Kill {
            settings.durability = *pick(r, &[Durability::Os, Durability::Sync]);
        }
        let flush_every = *pick(r, &[0, 0, 50, 7, 1]);
        let mut variant = Variant {
            families: settings.clone(),
            prefixes: Prefixes::None,
            settings,
            restart,
            odds: *pick(r, &[20, 60, 200]),
            flush_every,
            compact_odds: *pick(r, &[0, 0, 30, 200]),
            pace: *pick(r, &[0, 4, 30, 2000]),
            order: *pick(r, &[Order::Chosen, Order::Chosen, Order::Calm]),
            uncached: r.one_in(4),
            short: r.one_in(5),
            seed: r.next_u64(),
        };
        variant.settings.max_subcompactions = *pick(r, &[1, 2, 4]);
        let pri = *pick(r, &CompactionPri::ALL);
        if !policy.takes_runs() {
            variant.settings.compaction_pri = pri;
        }
        let ways = [Prefixes::None, Prefixes::Fixed(2), Prefixes::Fixed(4), Prefixes::Capped(3)];
        variant.prefixes = *pick(r, &ways);
        variant.settings.whole_key_filtering = r.one_in(2) || variant.prefixes == Prefixes::None;
        let codec = *pick(r, &RARE_CODECS);
        variant.settings.compression_lower = codec.unwrap_or(variant.settings.compression_lower);
        if policy == Policy::Universal {
            merge_widths(&mut variant.settings, r);
        }
        variant.settings.as_rocksdb = variant.seed.is_multiple_of(3);
        variant.families = of_families(&variant.settings, r);
        variant
    }
}
