//! BucketLSM: each bucket of L0 goes to the base level by itself, many at a time.
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

use lithify_base::{Key, KeyRange, Pos};
use lithify_lsm::FileRef;
use lithify_lsm::index::Interval;

use crate::closure::close;
use crate::policy::composed::Round;
use crate::policy::downforce::{above_all, bytes, may_stack, try_stack};
use crate::policy::hybrid::INTRA_MIN;
use crate::policy::intra;
use crate::policy::leveled::{is_move, l0_move, l0_reason};
use crate::relation::hull;
use crate::score::{self, Score};
use crate::spec::{Candidate, Kind, Prio, Reason};
use crate::stall;
use crate::view::View;

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
    pub(crate) hull: KeyRange,
    /// Bytes of its L0 files.
    pub(crate) l0_bytes: u64,
    /// Bytes of its other files.
    pub(crate) below_bytes: u64,
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

/// L0 as a whole has too many files or bytes, however they are spread.
fn must_drain(view: &View) -> bool {
    stall::is_crowded(view.version)
        || view.idle_compensated(0) >= view.options.level_base_bytes.saturating_mul(2)
}

/// Enough runs, or the bucket's share of the base level's target in bytes.
fn is_due(view: &View, interval: &Interval, idle: &[FileRef]) -> bool {
    let buckets = view.version.buckets().map_or(1, |m| m.len()) as u64;
    interval.idle_depth >= view.options.l0_trigger()
        || must_drain(view)
        || (view.options.buckets.by_bytes
            && interval.idle_depth >= 2
            && bytes(idle) >= view.options.level_base_bytes / buckets)
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
    Reason::Bucket { runs: job.interval.idle_depth, trigger: view.options.l0_trigger() }
}

/// Buckets go down, the first that can; else one is stacked.
pub(crate) fn down_or_stacked(round: &mut Round, prio: Prio) {
    down(round, prio);
    if !round.is_done() && round.shape.stacks {
        stacked(round, prio);
    }
}

/// Buckets go down, the first that can.
pub(crate) fn down(round: &mut Round, prio: Prio) {
    let view = round.view;
    let base = Pos::base(view.targets.base);
    let score = score::l0_score(view);
    if score >= Score::ONE
        && let Some(files) = l0_move(view, base)
    {
        let wish = Candidate::merge(Kind::Move, files, base, l0_reason(view, score));
        if round.offer(wish.at_prio(prio)) {
            return;
        }
    }
    let jobs = std::mem::take(&mut round.bucket_jobs);
    for job in &jobs {
        let kind = if is_move(view, &job.inputs, base) { Kind::Move } else { Kind::L0Bucket };
        let inputs = job.inputs.clone();
        let wish = Candidate::merge(kind, inputs, base, reason(view, job)).at_prio(prio);
        if round.offer(wish.clone()) {
            break;
        }
        round.refuse(wish, None);
    }
    round.bucket_jobs = jobs;
}

/// A bucket whose way down is blocked, stacked on top of the base level.
pub(crate) fn stacked(round: &mut Round, prio: Prio) {
    let view = round.view;
    let to = view.targets.base;
    let global = may_stack(view, 0, score::need(view, 0));
    let jobs = std::mem::take(&mut round.bucket_jobs);
    for job in &jobs {
        let mut inputs = close(view.version, &job.idle, above_all(to));
        inputs.retain(|f| view.is_idle(f));
        let wish = Candidate::stack(Kind::Df, inputs, to, reason(view, job)).at_prio(prio);
        if let Err(guard) = &global {
            round.refuse(wish, Some(guard.clone()));
            break;
        }
        if try_stack(round, wish, to) {
            break;
        }
    }
    round.bucket_jobs = jobs;
}

/// Buckets that are deep and cannot go down, merged in place.
pub(crate) fn in_place(round: &mut Round) {
    let view = round.view;
    // Merging in place holds the bucket back and brings it no nearer to the base level, so it pays
    // only where depth is what writers will soon wait for.
    let deep = (view.options.l0_trigger() + 2).max(view.options.l0_slowdown / 4 * 3);
    let jobs = std::mem::take(&mut round.bucket_jobs);
    for job in jobs.iter().filter(|j| j.interval.depth >= deep) {
        let runs = view.version.level(0).runs();
        let Some((inputs, out)) = intra::window(view, runs, &job.interval, INTRA_MIN) else {
            continue;
        };
        let by = job.inputs.iter().find_map(|f| view.holder(f.id));
        let reason = Reason::L0Blocked { runs: job.interval.depth, by };
        if round.offer(Candidate::merge(Kind::IntraL0, inputs, out, reason).at_prio(Prio::High)) {
            break;
        }
    }
    round.bucket_jobs = jobs;
}

/// Where a flush of `range` should be cut: at the bounds of the pinned map inside it. Not at all if
/// it meets no other data: a sequential load writes one file, which then only moves.
pub fn flush_cuts(view: &View, range: &KeyRange) -> Vec<Key> {
    let order = view.order();
    let meets = |l: u8| view.version.overlapping(l, range).next().is_some();
    let Some(map) = view.version.buckets() else { return Vec::new() };
    if !meets(0) && !meets(view.targets.base) {
        return Vec::new();
    }
    let buckets = map.buckets_of(range, order);
    map.bounds[*buckets.start()..*buckets.end()].to_vec()
}
