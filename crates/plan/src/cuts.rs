//! Where the output of a job may and must be cut, so that no output file overlaps too much of what
//! lies below it: a file that overlaps everything can never be compacted cheaply again.

use lithify_base::{KeyRange, Pos};
use lithify_lsm::Version;

use crate::options::PlanOptions;
use crate::spec::CutPolicy;

/// The cut policy of a job that writes `hull` to `out`.
///
/// Output of L0 is one file per job, as a run of L0 is one flush. Elsewhere the files of the first
/// non-empty level below give the soft keys, and a hard key each time they add up to the bytes
/// that one compaction may take.
pub fn cut_policy(
    version: &Version,
    options: &PlanOptions,
    out: Pos,
    hull: &KeyRange,
) -> CutPolicy {
    if out.level == 0 {
        return CutPolicy {
            target_bytes: u64::MAX,
            soft_min_bytes: u64::MAX,
            ..CutPolicy::default()
        };
    }
    let target = options.file_bytes.max(1);
    let mut cuts =
        CutPolicy { target_bytes: target, soft_min_bytes: target / 2, ..CutPolicy::default() };
    let below = (out.level + 1..=options.last_level()).find(|&l| !version.level(l).is_empty());
    let Some(below) = below else { return cuts };
    // Extra runs above the base are few and short-lived; the base run decides.
    let Some(run) = version.level(below).runs().last() else { return cuts };
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
    cuts
}
