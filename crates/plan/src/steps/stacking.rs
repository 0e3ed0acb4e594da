//! DownForce's step: when a level is over target and every usual job is blocked by a lock, its data
//! moves down anyway, as a new stratum stacked on top of the blocked run.
//!
//! Keeps: data never moves up (A0); the guards G1 to G6 ([`Guard`]), without which stacking only
//! defers work: a failed guard leaves the level waiting, and the wait reaches writers through L0.
//! Leaves to others: conflicts and after-edges (`rule`), commit order (`control`), merging extra runs
//! again (`extras`).
//!
//! ```text
//!   L1.0  a=====m n-----z     job 1 merges L1.0[a..m] with L2.0[a..p]; L1 is over target again.
//!   L2.0  a========p q--z     L1.0[n..z] needs L2.0[a..p], which is locked: L1.0[n..z] -> L2.1
//! ```

use std::ops::ControlFlow::{self, Continue};

use lithify_base::{KeyRange, Level, MAX_LEVELS, Pos};
use lithify_lsm::FileRef;

use crate::measures::score;
use crate::measures::seed::SEEDS_TRIED;
use crate::nouns::files::hull;
use crate::nouns::guard::Guard;
use crate::nouns::options::DfWhen;
use crate::nouns::score::Score;
use crate::nouns::spec::{Candidate, JobState, Kind, Prio, Reason};
use crate::nouns::view::View;
use crate::rule::closure::close;
use crate::rule::offers::Offers;
use crate::steps::l0;

/// The guards that do not depend on which files are stacked: G1, G3 by bytes, G5, G6. The slot of
/// G2 is the planner's, and its usual job is looked for before.
pub(crate) fn may_stack(view: &View, level: Level, need: Score) -> Result<(), Guard> {
    let options = view.options;
    // A way that is blocked for one bucket is free for others and soon for this one, so a slot that
    // stacks there takes work from others later: worth it only to save writers from being stopped.
    let pressed = match options.policy.has_buckets() {
        true => view.version.max_depth(0) >= options.l0_urgent(),
        false => view.is_pressed(),
    };
    if need < Score::ONE || (options.df_when == DfWhen::Pressure && !pressed) {
        return Err(Guard::Calm { need });
    }
    let to = below(view, level);
    if !options.policy.is_tiered() {
        let max = options.max_extra_bytes(view.targets.bytes(to));
        let bytes = view.extra_bytes(to);
        if bytes > max {
            return Err(Guard::ExtraBytes { level: to, bytes, max });
        }
    }
    let written = view.flights().iter().filter(|k| k.kind != Kind::Move);
    let promised = written.map(|k| k.bytes()).fold(0, u64::saturating_add);
    let free = view.limits.disk_free;
    if u128::from(promised) * 6 > u128::from(free) * 5 {
        return Err(Guard::Disk { promised, free });
    }
    let waiting = || view.flights().iter().filter(|k| k.state == JobState::WaitDeps);
    let (jobs, bytes) = (waiting().count() as u32, waiting().map(|k| k.bytes()).sum::<u64>());
    if jobs > options.max_waiting_jobs
        || bytes > options.level_base_bytes.max(options.max_job_bytes())
    {
        return Err(Guard::Waiting { jobs, bytes });
    }
    Ok(())
}

/// The guards that do: depth in the next level (G3) and in all levels (G4). A job that takes more
/// runs away than the one it adds never makes reads worse.
pub(crate) fn stays_readable(
    view: &View,
    inputs: &[FileRef],
    range: &KeyRange,
    to: Level,
) -> Result<(), Guard> {
    let options = view.options;
    if !options.policy.is_tiered() {
        let (depth, max) =
            (view.depth_over(to, range) + 1, options.max_depth(to, view.targets.base));
        if depth > max {
            return Err(Guard::Depth { level: to, depth, max });
        }
    }
    let mut runs: Vec<Pos> = inputs.iter().map(|f| f.pos).collect();
    runs.sort_unstable();
    runs.dedup();
    let before: u32 = (0..MAX_LEVELS as u8).map(|l| view.depth_over(l, range)).sum();
    let (depth, max) = (before + 1, options.max_read_amp);
    match runs.len() > 1 || depth <= max {
        true => Ok(()),
        false => Err(Guard::ReadAmp { depth, max }),
    }
}

/// The level that `level` gives its data to.
pub(crate) fn below(view: &View, level: Level) -> Level {
    if level == 0 && !view.options.policy.is_tiered() { view.targets.base } else { level + 1 }
}

/// Above every stratum of `level`: a closure to there stays in the levels before.
pub(crate) fn above_all(level: Level) -> Pos {
    Pos::new(level, u32::MAX)
}

/// Offers the best seed of a level that can be stacked on top of the next one.
pub(crate) fn level(
    view: &View,
    level: Level,
    need: Score,
    offers: &mut Offers,
) -> ControlFlow<()> {
    let global = may_stack(view, level, need);
    for seed in view.seeds(level).take(SEEDS_TRIED) {
        let wish = wish(view, std::slice::from_ref(seed), level + 1, stacked(level, need));
        if let Err(guard) = &global {
            offers.hold_back(wish, guard.clone());
            return Continue(());
        }
        offer(view, wish, level + 1, offers)?;
    }
    Continue(())
}

/// Offers a connected part of L0 that can be stacked on top of the base level, without what is on its
/// way already.
pub(crate) fn l0(view: &View, prio: Prio, offers: &mut Offers) -> ControlFlow<()> {
    let to = view.targets.base;
    let need = score::need(view, 0);
    let global = may_stack(view, 0, need);
    for part in l0::parts(view) {
        let wish = wish(view, &part, to, stacked(0, need)).at_prio(prio);
        if let Err(guard) = &global {
            offers.hold_back(wish, guard.clone());
            return Continue(());
        }
        offer(view, wish, to, offers)?;
    }
    Continue(())
}

fn stacked(level: Level, need: Score) -> Reason {
    Reason::Stacked { level, need }
}

/// Idle files of `files` and of what they must take along, on top of `to`.
pub(crate) fn wish(view: &View, files: &[FileRef], to: Level, reason: Reason) -> Candidate {
    let mut inputs = close(view.version, files, above_all(to));
    inputs.retain(|f| view.is_idle(f));
    Candidate::stack(Kind::Df, inputs, to, reason)
}

/// Offers a stacking wish if reads can bear it.
pub(crate) fn offer(
    view: &View,
    wish: Candidate,
    to: Level,
    offers: &mut Offers,
) -> ControlFlow<()> {
    let Some(range) = hull(&wish.inputs, view.order()) else { return Continue(()) };
    match stays_readable(view, &wish.inputs, &range, to) {
        Ok(()) => offers.attempt(wish),
        Err(guard) => {
            offers.hold_back(wish, guard);
            Continue(())
        }
    }
}
