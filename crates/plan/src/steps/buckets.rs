//! Jobs by bucket (BucketLSM): each bucket of L0 goes to the base level by itself, many at a time.
//!
//! Where flushes are cut follows the bucket map; what is picked follows the files: the key
//! intervals over which the same L0 files lie. So a lost, new or outdated map costs speed only.
//!
//! ```text
//!   L0.9  a---f g---m n---z      trigger 4: the bucket a..f has four idle runs and goes down as
//!   L0.8  a---f       n---z      one job with L1.0[a..f], which locks nothing of g..z; meanwhile
//!   L0.7  a---f g---m            L1.0[n..z] may go to L2
//!   L0.6  a---f       n---z
//!   L1.0  a---f g---m n---z
//! ```
//!
//! Order: the deepest interval first, then the fewest bytes. A job takes the oldest runs first and
//! need not take all: what stays is newer.

use std::ops::ControlFlow::{self, Continue};

use lithify_base::{KeyRange, Pos};
use lithify_lsm::FileRef;
use lithify_lsm::index::Interval;

use crate::measures::score::{self, must_drain};
use crate::nouns::files::{bytes, hull};
use crate::nouns::score::Score;
use crate::nouns::spec::{Candidate, Kind, Prio, Reason};
use crate::nouns::view::View;
use crate::rule::closure::close;
use crate::rule::offers::Offers;
use crate::steps::among_l0::INTRA_MIN;
use crate::steps::descent::is_move;
use crate::steps::{extras, l0, stacking};

/// Most jobs that are worked out in one round.
const JOBS_MAX: usize = 32;

/// What taking one interval of L0 down would mean.
#[derive(Clone, Debug)]
pub(crate) struct BucketJob {
    /// Where the interval begins.
    interval: Interval,
    /// Idle L0 files over it, newest first.
    idle: Vec<FileRef>,
    /// All inputs, the base level's included.
    inputs: Vec<FileRef>,
    /// Their range.
    hull: KeyRange,
    /// Bytes of its L0 files.
    l0_bytes: u64,
    /// Bytes of its other files.
    below_bytes: u64,
}

/// The jobs that are due, most urgent first.
pub(crate) fn jobs(view: &View) -> Vec<BucketJob> {
    let mut due: Vec<&Interval> = view.l0_intervals().iter().filter(|i| i.idle_depth > 0).collect();
    let least = least_depth(view);
    due.retain(|i| i.idle_depth >= least);
    due.sort_by_key(|i| std::cmp::Reverse(i.idle_depth));
    let mut oldest: Vec<_> = Vec::new();
    let mut jobs: Vec<BucketJob> = Vec::new();
    for interval in due {
        if jobs.len() == JOBS_MAX {
            break;
        }
        let runs = view.version.level(0).runs();
        let idle: Vec<FileRef> =
            interval.covering(runs, view.order()).filter(|f| view.is_idle(f)).cloned().collect();
        // Two intervals over the same oldest file cannot both go down: the deeper one may.
        let Some(last) = idle.last() else { continue };
        if oldest.contains(&last.id) || !is_due(view, interval, &idle) {
            continue;
        }
        oldest.push(last.id);
        jobs.extend(work_out(view, interval.clone(), idle));
    }
    let total = |j: &BucketJob| j.l0_bytes.saturating_add(j.below_bytes);
    // Stable: ties are in key order already.
    jobs.sort_by_key(|j| (std::cmp::Reverse(j.interval.idle_depth), total(j)));
    jobs
}

/// The depth below which no interval is looked at.
fn least_depth(view: &View) -> u32 {
    match (must_drain(view), view.options.buckets.by_bytes) {
        (true, _) => 1,
        (false, true) => 2.min(view.options.l0_trigger()),
        (false, false) => view.options.l0_trigger(),
    }
}

/// Enough runs, or the bucket's share of the base level's target in bytes.
fn is_due(view: &View, interval: &Interval, idle: &[FileRef]) -> bool {
    interval.idle_depth >= view.options.l0_trigger()
        || must_drain(view)
        || (view.options.buckets.by_bytes
            && interval.idle_depth >= 2
            && bytes(idle) >= share_bytes(view))
}

/// A bucket's share of the base level's target.
fn share_bytes(view: &View) -> u64 {
    view.options.level_base_bytes / view.version.buckets().map_or(1, |m| m.len()) as u64
}

/// All idle runs over the interval if that is not too much, else the oldest ones that fit, but at
/// least as many as the trigger.
fn work_out(view: &View, interval: Interval, idle: Vec<FileRef>) -> Option<BucketJob> {
    let base = Pos::base(view.targets.base);
    let mut inputs = close(view.version, &idle, base);
    let least = (view.options.l0_trigger() as usize).min(idle.len());
    let mut runs = idle.len();
    while runs > least && bytes(&inputs) > view.options.max_job_bytes() {
        runs = least.max(runs / 2);
        inputs = close(view.version, &idle[idle.len() - runs..], base);
    }
    let l0_bytes = inputs.iter().filter(|f| f.pos.level == 0).map(|f| f.bytes).sum();
    let below_bytes = bytes(&inputs) - l0_bytes;
    let hull = hull(&inputs, view.order())?;
    Some(BucketJob { interval, idle, inputs, hull, l0_bytes, below_bytes })
}

fn reason(view: &View, job: &BucketJob) -> Reason {
    let (runs, bytes, limit) = (job.interval.idle_depth, bytes(&job.idle), share_bytes(view));
    let share = view.options.buckets.by_bytes && runs >= 2 && bytes >= limit;
    match runs >= view.options.l0_trigger() || must_drain(view) || !share {
        true => l0::stretch_reason(view, runs),
        false => Reason::BucketBytes { bytes, limit },
    }
}

/// Offers buckets that go down, the most urgent first.
pub(crate) fn down(
    view: &View,
    jobs: &[BucketJob],
    prio: Prio,
    offers: &mut Offers,
) -> ControlFlow<()> {
    let base = Pos::base(view.targets.base);
    if score::l0_score(view) >= Score::ONE {
        l0::offer_move(view, l0::reason(view), prio, offers)?;
    }
    for job in jobs {
        let kind = if is_move(view, &job.inputs, base) { Kind::Move } else { Kind::L0Bucket };
        let inputs = job.inputs.clone();
        offers.offer(Candidate::merge(kind, inputs, base, reason(view, job)).at_prio(prio))?;
    }
    Continue(())
}

/// Offers a bucket whose way down is blocked, stacked on top of the base level.
pub(crate) fn stacked(
    view: &View,
    jobs: &[BucketJob],
    prio: Prio,
    offers: &mut Offers,
) -> ControlFlow<()> {
    let to = view.targets.base;
    let global = stacking::may_stack(view, 0, score::need(view, 0));
    for job in jobs {
        let wish = stacking::wish(view, &job.idle, to, reason(view, job)).at_prio(prio);
        if let Err(guard) = &global {
            offers.hold_back(wish, guard.clone());
            return Continue(());
        }
        stacking::offer(view, wish, to, offers)?;
    }
    Continue(())
}

/// Offers buckets that are deep and cannot go down, merged in place.
pub(crate) fn in_place(view: &View, jobs: &[BucketJob], offers: &mut Offers) -> ControlFlow<()> {
    // Merging in place holds the bucket back and brings it no nearer to the base level, so it pays
    // only where depth is what writers will soon wait for.
    let deep = view.options.l0_trigger().saturating_add(2).max(view.options.l0_slowdown / 4 * 3);
    for job in jobs.iter().filter(|j| j.interval.depth >= deep) {
        let runs = view.version.level(0).runs();
        let Some((inputs, out)) = extras::window(view, runs, &job.interval, INTRA_MIN) else {
            continue;
        };
        let by = job.inputs.iter().find_map(|f| view.holder(f.id));
        let reason = Reason::L0Blocked { runs: job.interval.depth, by };
        let wish = Candidate::merge(Kind::IntraL0, inputs, out, reason);
        offers.attempt(wish.at_prio(Prio::High))?;
    }
    Continue(())
}

/// True if a file of the base level lies under L0 data that is about to come down on it, and is not
/// what makes that expensive: merging it down now would only lock it.
pub(crate) fn comes_upon(view: &View, jobs: &[BucketJob], file: &FileRef) -> bool {
    let cheap = |j: &&BucketJob| j.below_bytes <= 2 * j.l0_bytes;
    jobs.iter().filter(cheap).any(|j| j.hull.overlaps(&file.range, view.order()))
}
