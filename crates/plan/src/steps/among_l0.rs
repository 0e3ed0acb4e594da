//! Runs of L0 merged among themselves, where they are: because their way down is blocked, or because
//! the base level is so large that going down would mostly rewrite it.

use lithify_base::{JobId, Pos};
use lithify_lsm::Run;

use crate::nouns::spec::{Candidate, Kind, Prio, Reason};
use crate::nouns::view::View;

/// Fewest runs worth merging inside L0 (RocksDB's `kMinFilesForIntraL0Compaction`).
pub(crate) const INTRA_MIN: usize = 4;

/// The newest idle runs of L0, as long as each one more makes the work per removed run smaller
/// (RocksDB's `FindIntraL0Compaction`).
pub(crate) fn blocked(view: &View, by: Option<JobId>) -> Option<Candidate> {
    let runs = view.version.level(0).runs();
    if runs.len() < view.options.l0_trigger() as usize + 2 {
        return None;
    }
    let (window, _) = cheapest_runs(view);
    if window < INTRA_MIN {
        return None;
    }
    let reason = Reason::L0Blocked { runs: runs.len() as u32, by };
    Some(merge(&runs[..window], reason))
}

/// How many of the newest idle runs of L0 to merge, and the bytes rewritten per removed run. Ends before a run at
/// work.
pub(crate) fn cheapest_runs(view: &View) -> (usize, u64) {
    let runs = view.version.level(0).runs().iter();
    let idle = runs.take_while(|r| view.all_idle(r.files()));
    cheapest(idle.map(Run::bytes), view.options.max_job_bytes())
}

/// How many of the first of these `sizes` to merge: as many as make the bytes rewritten per removed run fewer with each,
/// and no more than `most` bytes; and how many bytes these are.
pub(crate) fn cheapest(sizes: impl IntoIterator<Item = u64>, most: u64) -> (usize, u64) {
    let (mut bytes, mut window, mut per_removed) = (0u64, 0, u64::MAX);
    for size in sizes {
        bytes = bytes.saturating_add(size);
        // The first one alone removes none.
        let cost = bytes.checked_div(window).unwrap_or(u64::MAX);
        if cost > per_removed || window > 0 && bytes > most {
            break;
        }
        (window, per_removed) = (window + 1, cost);
    }
    (window as usize, per_removed)
}

/// L0 among itself when the base level is more than 20 times larger: merging down would mostly
/// rewrite the base level (RocksDB's `PickSizeBasedIntraL0Compaction`).
pub(crate) fn small(view: &View) -> Option<Candidate> {
    let times = u64::from(view.options.multiplier.max(10)) * 2;
    if view.version.bytes(view.targets.base) <= view.version.bytes(0).saturating_mul(times) {
        return None;
    }
    let runs = view.version.level(0).runs();
    let window = runs.iter().take_while(|r| view.all_idle(r.files())).count();
    if window < view.options.l0_trigger().max(2) as usize {
        return None;
    }
    Some(merge(&runs[..window], Reason::L0Small))
}

/// Neighbouring runs of L0 become one, at the age of the oldest.
pub(crate) fn merge(runs: &[Run], reason: Reason) -> Candidate {
    let oldest = runs.last().map_or(Pos::base(0), |r| r.pos);
    let files = runs.iter().flat_map(|r| r.files().iter().cloned()).collect();
    Candidate::merge(Kind::IntraL0, files, oldest, reason).at_prio(Prio::High)
}
