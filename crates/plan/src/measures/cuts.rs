//! Where the output of a job may and must be cut, so that no output file overlaps too much of what
//! lies below it: a file that overlaps everything can never be compacted cheaply again.

use lithify_base::{KeyRange, Pos};
use lithify_lsm::{Run, Version};

use crate::nouns::levels::Targets;
use crate::nouns::options::{PlanOptions, PolicyKind};
use crate::nouns::spec::{Cost, CutPolicy, Kind};

/// The cut policy of a job that writes `hull` to `out`.
///
/// Output of L0 is one file per job, as a run of L0 is one flush; under `adaptive` it is cut where flushes are, or
/// each merge in place would bind together ranges that go down by themselves. Elsewhere the files of the first
/// non-empty level below give the soft keys, and a hard key each time they add up to the bytes
/// that one compaction may take.
///
/// Two other soft keys matter more where they apply. Output to the level that L0 goes to is cut at
/// bucket bounds, or two buckets would wait for each other at every file that spans their bound; a
/// short piece is no harm there. Output stacked on top of a base is cut where files of that base
/// begin, as it will be merged into them.
pub fn cut_policy(
    version: &Version,
    options: &PlanOptions,
    out: Pos,
    hull: &KeyRange,
) -> CutPolicy {
    let bounds = version.buckets().map(|map| {
        let buckets = map.buckets_of(hull, version.order());
        &map.bounds[*buckets.start()..*buckets.end()]
    });
    if out.level == 0 {
        let whole =
            CutPolicy { target_bytes: u64::MAX, soft_min_bytes: u64::MAX, ..CutPolicy::default() };
        return match (bounds, options.policy) {
            (Some(bounds), PolicyKind::Adaptive) => CutPolicy { hard: bounds.to_vec(), ..whole },
            _ => whole,
        };
    }
    let target = options.file_bytes.max(1);
    let mut cuts =
        CutPolicy { target_bytes: target, soft_min_bytes: target / 2, ..CutPolicy::default() };
    let below = (out.level + 1..=options.last_level()).find(|&l| !version.level(l).is_empty());
    // Extra runs above the base are few and short-lived; the base run decides.
    if let Some(run) = below.and_then(|l| version.level(l).runs().last()) {
        at_grandparents(run, version, options, hull, &mut cuts);
    }
    let base = version.run(Pos::base(out.level)).filter(|_| out.stratum.0 > 0);
    if let Some(bounds) = bounds.filter(|_| takes_l0(version, options, out)) {
        cuts.soft = bounds.to_vec();
        cuts.soft_min_bytes = target / 8;
    } else if let Some(base) = base.filter(|b| !b.overlapping(hull, version.order()).is_empty()) {
        let begins = base.overlapping(hull, version.order()).iter().map(|f| &f.range.lo);
        let inside = begins.filter(|k| version.order().compare(k, &hull.lo).is_gt());
        cuts.soft = inside.cloned().collect();
    }
    cuts
}

/// Into how many parts a job is cut that may be merged side by side: as many as the settings allow, and
/// no more than it writes files, as each part begins one. What is merged within L0 stays whole, since a
/// run of L0 is one file. Where the parts meet is seen when the inputs' indexes are open.
pub fn parts(options: &PlanOptions, kind: Kind, out: Pos, est: Cost) -> u32 {
    if out.level == 0 || kind.is_instant() {
        return 1;
    }
    let files = est.write.div_ceil(options.file_bytes.max(1));
    let most = options.max_subcompactions.max(1);
    u32::try_from(files).unwrap_or(u32::MAX).clamp(1, most)
}

/// True if buckets of L0 go to the level of `out`.
fn takes_l0(version: &Version, options: &PlanOptions, out: Pos) -> bool {
    options.policy.has_buckets() && out.level == Targets::of(version, options).base
}

fn at_grandparents(
    run: &Run,
    version: &Version,
    options: &PlanOptions,
    hull: &KeyRange,
    cuts: &mut CutPolicy,
) {
    let mut since_cut = 0u64;
    for f in run.overlapping(hull, version.order()) {
        let inside = version.order().compare(&f.range.lo, &hull.lo).is_gt();
        if inside && since_cut.saturating_add(f.bytes) > options.max_job_bytes() {
            cuts.hard.push(f.range.lo.clone());
            since_cut = 0;
        } else if inside {
            cuts.soft.push(f.range.lo.clone());
        }
        since_cut = since_cut.saturating_add(f.bytes);
    }
}
