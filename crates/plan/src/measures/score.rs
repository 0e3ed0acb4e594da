//! How full each level is, and how much work that means.
//!
//! Scores are RocksDB's (`ComputeCompactionScore`): idle runs over the trigger in L0, idle bytes
//! over the target below, 1 and more meaning "compact". With dynamic levels a level that will
//! receive much from above is put back, since compacting it now would be repeated soon. Scores are
//! thousandths in an integer, so that two machines always agree on the order.
//!
//! Bytes count compensated: a file full of deletions is larger than it looks.

use lithify_base::Level;
use lithify_lsm::{Run, Version};

use crate::measures::stall::is_crowded;
use crate::nouns::levels::Targets;
use crate::nouns::options::{PlanOptions, PolicyKind};
use crate::nouns::score::Score;
use crate::nouns::view::View;

/// RocksDB's `kScoreScale`: lifts the scores of levels that really are over their target above
/// those of levels that only will be.
const SCALE: u64 = 10;

/// A score over the threshold that goes before those of levels that only will be over theirs.
fn scaled(score: Score) -> Score {
    Score(score.0.saturating_mul(SCALE))
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
pub(crate) fn l0_score(view: &View) -> Score {
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
    if score > Score::ONE { scaled(score) } else { score }
}

/// A level below L0, into which `coming` bytes are about to be compacted.
fn level_score(view: &View, level: Level, coming: u64) -> Score {
    let idle = view.idle_compensated(level);
    let target = view.targets.bytes(level);
    if !view.options.dynamic_levels || idle < target {
        return drained(view, level, idle, Score::ratio(idle, target));
    }
    drained(view, level, idle, scaled(Score::ratio(idle, target.saturating_add(coming))))
}

/// A level above the base level must be emptied, the upper ones first.
fn drained(view: &View, level: Level, idle: u64, score: Score) -> Score {
    match view.targets.unnecessary {
        Some(lowest) if idle > 0 && level <= lowest => {
            score.max(scaled(Score(1001 + u64::from(lowest - level))))
        }
        _ => score,
    }
}

/// What a level needs under the policies that stack: the trigger. Bytes on their way out do
/// not count, those under a merge inside the level do: they stay. L0 counts runs; over one key,
/// where there are buckets; its bytes too under `adaptive`.
///
/// ```text
///   need = (base + extras - leaving) / target
/// ```
pub fn need(view: &View, level: Level) -> Score {
    if level == 0 {
        return l0_need(view);
    }
    let mut here = view.version.level(level).compensated_bytes();
    for k in view.flights().iter().filter(|k| k.out.level > level) {
        let leaving = k.inputs.iter().filter(|f| f.pos.level == level);
        here = here.saturating_sub(leaving.map(|f| f.compensated_bytes()).sum());
    }
    drained(view, level, here, Score::ratio(here, view.targets.bytes(level)))
}

fn l0_need(view: &View) -> Score {
    if !view.options.policy.has_buckets() {
        return l0_score(view);
    }
    let (options, trigger) = (view.options, u64::from(view.options.l0_trigger()));
    let depth = view.l0_intervals().iter().map(|i| i.idle_depth).max().unwrap_or(0);
    let by_runs = Score::ratio(u64::from(depth), trigger);
    if options.policy != PolicyKind::Adaptive || depth == 0 {
        return by_runs;
    }
    // What `steps/gather.rs` looks for; what is one run deep waits for twice the bytes. What may stay at rest is counted as it is.
    let resting = is_resting(view);
    let bytes = if resting { view.idle_bytes(0) } else { view.idle_compensated(0) };
    let need = match u64::from(depth) >= trigger.min(2) {
        true => by_runs.max(Score::ratio(bytes, options.level_base_bytes)),
        false => Score::ratio(bytes, options.level_base_bytes.saturating_mul(2)),
    };
    // Writers who rest add no run: those over other keys do not count then (`steps/rest.rs`).
    let runs = if view.load.written { view.idle_runs(0).count() as u64 } else { 0 };
    let need = if depth > 1 { need.max(Score::ratio(runs, trigger)) } else { need };
    if !resting && must_drain(view) { need.max(Score::ONE) } else { need }
}

/// True while writers rest and level 0 is neither crowded nor in the way of room that must be freed.
pub(crate) fn is_resting(view: &View) -> bool {
    !view.load.written && !view.limits.short && !is_crowded(view.version, view.options)
}

/// L0 as a whole has too many files or bytes, however they are spread.
pub(crate) fn must_drain(view: &View) -> bool {
    is_crowded(view.version, view.options)
        || view.idle_compensated(0) >= view.options.level_base_bytes.saturating_mul(2)
}

/// Levels with a need, the most urgent first, each with its need. The rank sets a level's need,
/// with what is arriving, against that of the next one: what would only be stuck there can wait.
///
/// ```text
///   rank(l) = (need(l) + arriving(l)) / max(0.01, the same of l + 1)
/// ```
pub fn by_rank(view: &View) -> Vec<(Level, Score)> {
    let last = view.options.last_level();
    let arriving = |level: Level| {
        let jobs = view.flights().iter().filter(|k| k.out.level == level && k.from() < level);
        let bytes = jobs.map(|k| k.bytes()).fold(0, u64::saturating_add);
        Score::ratio(bytes, view.targets.bytes(level)).0
    };
    let needs: Vec<Score> = (0..=last).map(|l| need(view, l)).collect();
    let load =
        |l: Level| needs[usize::from(l)].0.saturating_add(if l == 0 { 0 } else { arriving(l) });
    let below = |l: Level| if l == 0 { view.targets.base } else { l + 1 };
    let mut all: Vec<(u64, Level, Score)> = (0..last)
        .filter(|&l| needs[usize::from(l)] >= Score::ONE)
        .map(|l| (Score::ratio(load(l), load(below(l)).max(10)).0, l, needs[usize::from(l)]))
        .collect();
    all.sort_by_key(|&(rank, level, _)| (std::cmp::Reverse(rank), level));
    all.into_iter().map(|(_, level, need)| (level, need)).collect()
}

/// Bytes that compactions will have to rewrite until no level is over its target: RocksDB's
/// "estimated pending compaction bytes". Writers slow down and stop on it.
///
/// L0 and the base level count whole once L0 is due. Further down each level's excess is rewritten
/// together with its share of the next level: `excess x (1 + next / this)`. A level within its
/// target that has extra runs will rewrite those, with the base under them.
pub fn debt(version: &Version, options: &PlanOptions) -> u64 {
    match options.policy {
        PolicyKind::Tiered | PolicyKind::DfTiered => return tiered_debt(version, options),
        PolicyKind::Universal => return universal_debt(version, options),
        PolicyKind::Fifo => return 0,
        _ => {}
    }
    let targets = Targets::of(version, options);
    let l0 = version.bytes(0);
    let due = is_l0_due(version, options);
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
        if excess == 0 {
            debt = debt.saturating_add(settling_bytes(version, level, options));
        }
        incoming = excess;
    }
    debt.saturating_add(settling_bytes(version, options.last_level(), options))
}

/// Bytes that are rewritten when the extra runs of a level are merged into its base; of the base no more than a level
/// has for those above it, as a few keys that came from outside may lie over all of it, and writers need not wait for that.
fn settling_bytes(version: &Version, level: Level, options: &PlanOptions) -> u64 {
    let Some((base, extras)) = version.level(level).runs().split_last() else { return 0 };
    if extras.is_empty() {
        return 0;
    }
    let order = version.order();
    let mut ranges: Vec<_> = extras.iter().flat_map(|r| r.files()).map(|f| &f.range).collect();
    ranges.sort_by(|a, b| order.compare(&a.lo, &b.lo));
    let sum = extras.iter().map(Run::bytes).fold(0, u64::saturating_add);
    let (mut under, mut counted) = (0u64, 0);
    for range in ranges {
        let span = base.overlapping_span(range, order);
        let fresh = span.start.max(counted)..span.end.max(counted);
        counted = fresh.end;
        under = base.files()[fresh].iter().fold(under, |s, f| s.saturating_add(f.bytes));
    }
    sum.saturating_add(under.min(sum.saturating_mul(options.multiplier.into())))
}

/// Whether policies wish for level 0 to go down. Where ranges go down by themselves, what counts is the depth over a key, and
/// what is one run deep waits for twice the bytes. What no policy would take down must be no debt, as writers would wait for
/// it for ever.
fn is_l0_due(version: &Version, options: &PlanOptions) -> bool {
    let (trigger, bytes) = (options.l0_trigger(), version.bytes(0));
    let full = bytes >= options.level_base_bytes;
    if !options.policy.has_buckets() {
        return full || version.level(0).runs().len() as u64 >= u64::from(trigger);
    }
    // Under `bucket`, what is two runs deep goes down only where those have a bucket's part of the bytes.
    let by_bytes = full && options.policy == PolicyKind::Adaptive;
    let least = if by_bytes { 2.min(trigger) } else { trigger };
    version.max_depth(0) >= least
        || bytes >= options.level_base_bytes.saturating_mul(2)
        || is_crowded(version, options)
}

/// Of every level that is due, the bytes of its newest runs, as many as are too many. The others are no debt: each level comes
/// to be due again and again, and a large one may hold more than the bytes that stop writers.
fn tiered_debt(version: &Version, options: &PlanOptions) -> u64 {
    let due = |l: &Level| version.max_depth(*l) >= options.tier_runs(*l);
    let surplus = |l: Level| {
        let runs = version.level(l).runs();
        let newest = (runs.len() + 1).saturating_sub(options.tier_runs(l) as usize);
        runs[..newest].iter().map(Run::bytes).fold(0, u64::saturating_add)
    };
    (0..=options.last_level()).filter(due).map(surplus).fold(0, u64::saturating_add)
}

/// Bytes of L0 that the third rule of `universal` would rewrite now: what writers can be asked to wait for. What lies
/// deeper grows with the tree.
fn universal_debt(version: &Version, options: &PlanOptions) -> u64 {
    let runs: Vec<&Run> = version.runs_newest_first().collect();
    let trigger = options.universal_trigger();
    let newest = (runs.len() + 1).saturating_sub(trigger.max(1)).min(runs.len());
    let l0 = runs[..newest].iter().filter(|r| r.pos.level == 0 && newest > 1);
    l0.map(|r| r.bytes()).sum()
}
