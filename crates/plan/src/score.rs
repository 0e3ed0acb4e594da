//! How full each level is, and how much work that means.
//!
//! Scores are RocksDB's (`ComputeCompactionScore`): idle runs over the trigger in L0, idle bytes
//! over the target below, 1 and more meaning "compact". With dynamic levels a level that will
//! receive much from above is put back, since compacting it now would be repeated soon. Scores are
//! thousandths in an integer, so that two machines always agree on the order.
//!
//! Bytes count compensated: a file full of deletions is larger than it looks.

use std::fmt;

use lithify_base::Level;

use crate::options::PlanOptions;
use crate::view::View;

/// A level's need for compaction, in thousandths. [`Score::ONE`] is the threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Score(pub u64);

/// RocksDB's `kScoreScale`: lifts the scores of levels that really are over their target above
/// those of levels that only will be.
const SCALE: u64 = 10;

impl Score {
    /// The threshold.
    pub const ONE: Score = Score(1000);

    /// `part / whole`.
    pub fn ratio(part: u64, whole: u64) -> Score {
        let s = u128::from(part) * 1000 / u128::from(whole.max(1));
        Score(u64::try_from(s).unwrap_or(u64::MAX))
    }
    fn scaled(self) -> Score {
        Score(self.0.saturating_mul(SCALE))
    }
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:02}", self.0 / 1000, self.0 % 1000 / 10)
    }
}

/// Every level that can give data away with its score, the neediest first, ties by level.
pub fn ranked(view: &View) -> Vec<(Level, Score)> {
    let mut all = Vec::with_capacity(usize::from(view.options.last_level()));
    let mut coming = view.version.bytes(0);
    all.push((0, l0_score(view)));
    for level in 1..view.options.last_level() {
        let bytes = view.version.bytes(level);
        all.push((level, level_score(view, level, coming)));
        let drains = view.targets.unnecessary.is_some_and(|u| level <= u);
        let target = if drains { 0 } else { view.targets.bytes(level) };
        coming = coming.saturating_add(bytes.saturating_sub(target));
    }
    all.sort_by_key(|&(_, score)| std::cmp::Reverse(score));
    all
}

/// L0: idle runs over the trigger, or bytes over what the base level should hold.
///
/// With dynamic levels, the base level decides what "many bytes" are: a score too low stalls
/// writers, one too high starves the level below.
fn l0_score(view: &View) -> Score {
    let options = view.options;
    let runs = view.idle_runs(0).count() as u64;
    let bytes = view.idle_compensated(0);
    let mut score = Score::ratio(runs, u64::from(options.l0_trigger()));
    if !options.dynamic_levels {
        return score.max(Score::ratio(bytes, options.level_base_bytes));
    }
    if bytes >= options.level_base_bytes {
        score = score.max(Score(1010));
    }
    let base = view.targets.base;
    let target = view.targets.bytes(base);
    if bytes > target {
        let held = view.version.level(base).compensated_bytes();
        score = score.max(Score::ratio(bytes, held.max(target)));
    }
    if score > Score::ONE { score.scaled() } else { score }
}

/// A level below L0, into which `coming` bytes are about to be compacted.
fn level_score(view: &View, level: Level, coming: u64) -> Score {
    let idle = view.idle_compensated(level);
    let target = view.targets.bytes(level);
    if !view.options.dynamic_levels || idle < target {
        return drained(view, level, idle, Score::ratio(idle, target));
    }
    drained(view, level, idle, Score::ratio(idle, target.saturating_add(coming)).scaled())
}

/// A level above the base level must be emptied, the upper ones first.
fn drained(view: &View, level: Level, idle: u64, score: Score) -> Score {
    match view.targets.unnecessary {
        Some(lowest) if idle > 0 && level <= lowest => {
            score.max(Score(1001 + u64::from(lowest - level)).scaled())
        }
        _ => score,
    }
}

/// Bytes that compactions will have to rewrite until no level is over its target: RocksDB's
/// "estimated pending compaction bytes". Writers slow down and stop on it.
///
/// L0 and the base level count whole once L0 is due. Further down each level's excess is rewritten
/// together with its share of the next level: `excess x (1 + next / this)`.
pub fn debt(version: &lithify_lsm::Version, options: &PlanOptions) -> u64 {
    let targets = crate::levels::Targets::of(version, options);
    let l0 = version.bytes(0);
    let due = version.level(0).runs().len() as u64 >= u64::from(options.l0_trigger())
        || l0 >= options.level_base_bytes;
    let mut debt = if due { l0 } else { 0 };
    let mut incoming = debt;
    for level in targets.base..options.last_level() {
        let here = version.bytes(level);
        if level == targets.base && due {
            debt = debt.saturating_add(here);
        }
        let size = here.saturating_add(incoming);
        let excess = size.saturating_sub(targets.bytes(level));
        let next = version.bytes(level + 1);
        if excess > 0 && next > 0 {
            let share = u128::from(excess) * u128::from(next) / u128::from(size);
            debt = debt.saturating_add(excess).saturating_add(share as u64);
        }
        incoming = excess;
    }
    debt
}
