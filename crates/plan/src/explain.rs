//! What limits compaction now: the wishes that could not become jobs, each with the reason, and the
//! jobs in flight that should run sooner because of it. A database's `explain()` answers with these.

use lithify_base::{JobId, Pos};
use lithify_lsm::FileRef;

use crate::measures::score;
use crate::nouns::files::hull;
use crate::nouns::options::PolicyKind;
use crate::nouns::score::Score;
use crate::nouns::spec::{InFlight, Kind, Prio};
use crate::nouns::view::View;
use crate::planner::{grow, next_job};
use crate::rule::offers::{Blocked, Policy, Refusal};
use crate::rule::relation::Rejection;
use crate::steps::l0;

/// Most jobs that are taken before what is left is called blocked: a large tree far behind has
/// thousands, and each takes a look at all levels.
const TAKEN_MAX: usize = 64;

/// Everything that is wanted and cannot be had, once all jobs of a plan are taken (of 64 at most).
pub fn explain(view: &View, policies: &[Box<dyn Policy>]) -> Vec<Blocked> {
    let l0 = l0_held_up(view);
    let mut view = view.clone();
    view.limits.slots_free = TAKEN_MAX;
    loop {
        let mut blocked: Vec<Blocked> = l0.iter().cloned().collect();
        match next_job(&view, policies, &mut |b| blocked.push(b)) {
            Some((spec, flight)) if view.limits.slots_free > 0 => {
                grow(&mut view, &spec, flight);
            }
            _ => return blocked,
        }
    }
}

/// The wishes ahead of the best one that could become a job, were there a slot for it: what a
/// planner wants more than what it can have. One look, where [`explain()`] takes many.
pub fn passed_over(view: &View, policies: &[Box<dyn Policy>]) -> Vec<Blocked> {
    let mut blocked: Vec<Blocked> = l0_held_up(view).into_iter().collect();
    next_job(view, policies, &mut |b| blocked.push(b));
    blocked
}

/// L0 on its way down, where one job at a time takes it: those policies know of themselves what is
/// in its way, and look for something else to do instead of wishing for it.
fn l0_held_up(view: &View) -> Option<Blocked> {
    let options = view.options;
    let one_at_a_time = matches!(options.policy, PolicyKind::Leveled | PolicyKind::Hybrid);
    if options.disable_auto || !one_at_a_time || score::l0_score(view) < Score::ONE {
        return None;
    }
    let base = view.targets.base;
    let order = view.order();
    let files: Vec<_> = view.version.level(0).files().cloned().collect();
    let range = hull(&files, order)?;
    let reached =
        |f: &FileRef| f.pos.level == 0 || f.pos.level == base && f.range.overlaps(&range, order);
    let mut in_the_way = view.flights().iter().filter_map(|k| {
        let input = k.inputs.iter().find(|f| reached(f));
        let promised = k.out == Pos::base(base) && k.hull.overlaps(&range, order);
        let rejection = match input {
            Some(f) => Rejection::Locked { file: f.id, by: k.id },
            None if promised => Rejection::Promised { by: k.id, pos: k.out },
            None => return None,
        };
        Some((k.id, rejection))
    });
    let (first, why) = in_the_way.next()?;
    Some(Blocked {
        kind: Kind::Down,
        prio: Prio::High,
        reason: l0::reason(view),
        why: Refusal::Rejected(why),
        by: std::iter::once(first).chain(in_the_way.map(|(id, _)| id)).collect(),
    })
}

/// The jobs in flight that should be more urgent than they are, with how urgent: a job inherits
/// the priority of what it blocks, and so do the jobs that it follows. Never pause the holder of a
/// lock that a more urgent job waits for.
pub fn inherited(inflight: &[InFlight], blocked: &[Blocked]) -> Vec<(JobId, Prio)> {
    let mut raised: Vec<(JobId, Prio)> = inflight.iter().map(|j| (j.id, j.spec.prio)).collect();
    let raise = |all: &mut Vec<(JobId, Prio)>, id: JobId, prio: Prio| {
        if let Some(j) = all.iter_mut().find(|j| j.0 == id) {
            j.1 = j.1.max(prio);
        }
    };
    for b in blocked {
        b.by.iter().for_each(|&id| raise(&mut raised, id, b.prio));
    }
    // After-edges point to smaller numbers, so one pass from the newest job reaches all.
    let mut jobs: Vec<&InFlight> = inflight.iter().collect();
    jobs.sort_by_key(|j| std::cmp::Reverse(j.id));
    for j in jobs {
        let prio = raised.iter().find(|r| r.0 == j.id).map_or(j.spec.prio, |r| r.1);
        j.spec.after.iter().for_each(|&id| raise(&mut raised, id, prio));
    }
    let more = |r: &(JobId, Prio)| inflight.iter().any(|j| j.id == r.0 && j.spec.prio < r.1);
    raised.retain(more);
    raised
}
