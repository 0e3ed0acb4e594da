//! How large each level should be, and which level L0 is compacted into.
//!
//! Static (and for tiered policies): the base level is 1, and each level's target is `multiplier`
//! times that of the one above. Dynamic (RocksDB's `level_compaction_dynamic_level_bytes`): targets are counted upwards
//! from the size of the largest level, so that about nine tenths of the data are in the last
//! level whatever the total is. The base level is the deepest that keeps its target at or below
//! `level_base_bytes`; levels above it stay empty. `universal` and `fifo` know no targets.
//!
//! ```text
//!   multiplier 10, base 256 MiB, last level L6 holds 30 GiB
//!   L6 30 GiB   L5 3 GiB   L4 307 MiB -> over 256 MiB, so one more: L3 30.7 MiB is the base level
//! ```

use lithify_base::{Level, MAX_LEVELS};
use lithify_lsm::Version;

use crate::nouns::options::{PlanOptions, PolicyKind};

/// Target sizes of one version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Targets {
    /// The level L0 is compacted into.
    pub base: Level,
    /// The deepest non-empty level that the targets have no use for; it and those above drain.
    pub unnecessary: Option<Level>,
    bytes: [u64; MAX_LEVELS],
}

impl Targets {
    /// The targets for `version`.
    pub fn of(version: &Version, options: &PlanOptions) -> Targets {
        match options.policy {
            PolicyKind::Universal | PolicyKind::Fifo => by_age(options),
            policy if options.dynamic_levels && !policy.is_tiered() => dynamic(version, options),
            _ => fixed(options),
        }
    }
    /// Target of `level` in bytes; `u64::MAX` where nothing needs to leave.
    pub fn bytes(&self, level: Level) -> u64 {
        self.bytes[usize::from(level)]
    }
}

/// Levels are nothing but ages: none has a target, and the last one is where old data ends up.
fn by_age(options: &PlanOptions) -> Targets {
    Targets { base: options.last_level(), unnecessary: None, bytes: [u64::MAX; MAX_LEVELS] }
}

fn fixed(options: &PlanOptions) -> Targets {
    let mut bytes = [u64::MAX; MAX_LEVELS];
    let mut size = options.level_base_bytes.max(1);
    for b in &mut bytes[1..] {
        *b = size;
        size = size.saturating_mul(u64::from(options.multiplier.max(2)));
    }
    Targets { base: 1, unnecessary: None, bytes }
}

fn dynamic(version: &Version, options: &PlanOptions) -> Targets {
    let last = options.last_level();
    let mut bytes = [u64::MAX; MAX_LEVELS];
    let largest = (1..=last).map(|l| version.bytes(l)).max().unwrap_or(0);
    let Some(first) = (1..=last).find(|&l| version.bytes(l) > 0) else {
        return Targets { base: last, unnecessary: None, bytes };
    };
    let multiplier = u64::from(options.multiplier.max(2));
    let base_max = options.level_base_bytes.max(1);
    let base_min = base_max / multiplier;

    // The size `first` would have if the last level were the largest one.
    let mut size = largest;
    let mut unnecessary = None;
    for level in (first..last).rev() {
        size /= multiplier;
        if unnecessary.is_none() && size <= base_min {
            unnecessary = Some(level);
        }
    }
    let mut base = first;
    if size <= base_min {
        // More levels are in use than the data needs.
        size = base_min + 1;
    } else {
        while base > 1 && size > base_max {
            base -= 1;
            size /= multiplier;
        }
        size = size.clamp(1, base_max);
    }
    for level in base..=last {
        // No target below `level_base_bytes`: a level smaller than L0 would always look urgent,
        // and L0 would fill up behind it.
        bytes[usize::from(level)] = size.max(base_max);
        size = size.saturating_mul(multiplier);
    }
    Targets { base, unnecessary, bytes }
}
