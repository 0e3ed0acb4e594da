//! RocksDB's default: flushes pile up as runs in L0 until there are `l0_trigger` of them, then all
//! that overlap go to the base level in one job; below that, one run per level.
//!
//! While L0 cannot go down, because its last job still runs or the base level is locked from
//! below, its newest runs are merged among themselves, so that readers and the stall verdict see
//! fewer of them. That rewrites data without moving it down, so it needs two runs more than the
//! trigger and at least four to merge.
//!
//! ```text
//!   L0.9  a---z      job 1 takes L0.1 to L0.4 to L1. Five runs came in meanwhile: trigger + 2
//!   ...              are in L0 and four newest are idle, so L0.6 to L0.9 become one run at L0.6.
//!   L0.5  a---z      They stay newer than L0.5, which a later job takes down.
//!   L0.4  a===z
//! ```

use lithify_base::Pos;
use lithify_lsm::Run;

use crate::policy::Policy;
use crate::policy::leveled::{Blocked, L0Rules, by_rank};
use crate::spec::{Candidate, Kind, Prio, Reason};
use crate::view::View;

/// Fewest runs worth merging inside L0 (RocksDB's `kMinFilesForIntraL0Compaction`).
pub(crate) const INTRA_MIN: usize = 4;

/// The policy `hybrid`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hybrid;

impl Policy for Hybrid {
    fn propose(&self, view: &View, out: &mut Vec<Candidate>) {
        by_rank(view, &L0Rules { instead: small_l0, when_blocked: blocked_l0 }, out);
    }
}

/// The newest idle runs of L0, as long as each one more makes the work per removed run smaller
/// (RocksDB's `FindIntraL0Compaction`).
pub(crate) fn blocked_l0(view: &View, blocked: Blocked) -> Option<Candidate> {
    let runs = view.version.level(0).runs();
    if runs.len() < view.options.l0_trigger() as usize + 2 {
        return None;
    }
    let (window, _) = cheapest(view);
    if window < INTRA_MIN {
        return None;
    }
    let reason = Reason::L0Blocked { runs: runs.len() as u32, by: blocked.0 };
    Some(intra_l0(&runs[..window], reason))
}

/// How many of the newest runs of L0 to merge so that the bytes rewritten per removed run are the
/// fewest, and how many these are. Ends before a run at work.
pub(crate) fn cheapest(view: &View) -> (usize, u64) {
    let runs = view.version.level(0).runs();
    let idle = runs.iter().take_while(|r| view.all_idle(r.files())).count();
    let (mut bytes, mut per_removed) = (runs.first().map_or(0, Run::bytes), u64::MAX);
    let mut window = 1;
    while window < idle {
        bytes = bytes.saturating_add(runs[window].bytes());
        let cost = bytes / window as u64;
        if cost > per_removed || bytes > view.options.max_job_bytes() {
            break;
        }
        per_removed = cost;
        window += 1;
    }
    (window, per_removed)
}

/// L0 among itself when the base level is more than 20 times larger: merging down would mostly
/// rewrite the base level (RocksDB's `PickSizeBasedIntraL0Compaction`).
fn small_l0(view: &View) -> Option<Candidate> {
    let times = u64::from(view.options.multiplier.max(10)) * 2;
    if view.version.bytes(view.targets.base) <= view.version.bytes(0).saturating_mul(times) {
        return None;
    }
    let runs = view.version.level(0).runs();
    let window = runs.iter().take_while(|r| view.all_idle(r.files())).count();
    if window < view.options.l0_trigger().max(2) as usize {
        return None;
    }
    Some(intra_l0(&runs[..window], Reason::L0Small))
}

/// Neighbouring runs of L0 become one, at the age of the oldest.
pub(crate) fn intra_l0(runs: &[Run], reason: Reason) -> Candidate {
    let oldest = runs.last().map_or(Pos::base(0), |r| r.pos);
    let files = runs.iter().flat_map(|r| r.files().iter().cloned()).collect();
    Candidate::merge(Kind::IntraL0, files, oldest, reason).at_prio(Prio::High)
}
