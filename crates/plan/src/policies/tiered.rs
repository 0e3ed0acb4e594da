//! Tiering: runs pile up at a level until `tiered_runs` of them cover a key; then these become one
//! run on top of the next level. Only the last level has a base, into which its runs are merged
//! once there are as many, or their bytes are too many next to it.
//!
//! A job takes the keys that its files cover, not the whole level, so with files cut at the same
//! places a level goes down part by part.
//!
//! ```text
//!   L1.7  a-------m             four runs over a..m: job 2 takes them to L2.2, on top of what
//!   ...                         job 1 promised. Their path crosses L1.1 to L1.4, which job 1
//!   L1.4  a=======m             takes strictly below: an after-edge. With `stacks` job 2 starts
//!   ...                         now and commits after job 1 (DownForce); without, it waits.
//!   L1.1  a=======m
//!   L2.0  a-------m
//! ```

use std::ops::ControlFlow::{self, Continue};

use lithify_base::{Level, Pos};
use lithify_lsm::index::{self, Interval};
use lithify_lsm::{FileRef, Run};

use crate::measures::stall::is_crowded;
use crate::nouns::guard::Guard;
use crate::nouns::score::Score;
use crate::nouns::spec::{Candidate, Kind, Prio, Reason};
use crate::nouns::view::View;
use crate::rule::closure::close;
use crate::rule::offers::{Offers, Policy};
use crate::rule::relation::Admitted;
use crate::steps::extras;
use crate::steps::stacking::{above_all, may_stack, stays_readable};

/// Intervals of one level that are worked out in one round.
const INTERVALS_TRIED: usize = 32;

/// The policies `tiered` and `df-tiered`.
#[derive(Clone, Copy, Debug)]
pub struct Tiered {
    /// Newer runs may start down while older ones are on their way.
    pub stacks: bool,
}

impl Policy for Tiered {
    fn propose(&self, view: &View, offers: &mut Offers) -> ControlFlow<()> {
        if view.options.disable_auto {
            return Continue(());
        }
        let last = view.options.last_level();
        // Upper levels first: their runs are the smallest, and they are what writers wait for.
        (0..last).try_for_each(|level| self.level_down(view, level, offers))?;
        settle_last(view, offers)?;
        if self.stacks {
            (0..last).try_for_each(|level| in_place(view, level, offers))?;
        }
        Continue(())
    }
}

impl Tiered {
    /// The oldest idle runs over some key of `level` become a run of the next one.
    fn level_down(&self, view: &View, level: Level, offers: &mut Offers) -> ControlFlow<()> {
        // Even what is not deep must go down once there are too many runs.
        let crowded = level == 0 && is_crowded(view.version, view.options);
        let trigger = if crowded { 1 } else { view.options.tier_runs(level) };
        for interval in due(view, level, trigger) {
            let runs = view.version.level(level).runs();
            let covering: Vec<&FileRef> = interval.covering(runs, view.order()).collect();
            let idle: Vec<&FileRef> =
                covering.iter().filter(|f| view.is_idle(f)).copied().collect();
            let Some(oldest) = idle.len().checked_sub(trigger as usize) else { continue };
            let seeds: Vec<FileRef> = idle[oldest..].iter().map(|f| (*f).clone()).collect();
            let mut inputs = close(view.version, &seeds, above_all(level + 1));
            inputs.retain(|f| view.is_idle(f));
            let reason = Reason::Runs { level, runs: idle.len() as u32, trigger };
            let need = Score::ratio(idle.len() as u64, u64::from(trigger));
            let wish = Candidate::stack(Kind::Tier, inputs, level + 1, reason);
            let urgent = level == 0 && view.version.max_depth(0) >= view.options.l0_slowdown / 2;
            let wish = wish.at_prio(if urgent { Prio::High } else { Prio::Normal });
            offers.offer_if(wish, |wish, admitted| {
                self.may_follow(view, level, need, wish, admitted)
            })?;
        }
        Continue(())
    }

    /// A wish that would follow another job is stacking: only with `stacks`, and under its guards.
    fn may_follow(
        &self,
        view: &View,
        level: Level,
        need: Score,
        wish: &Candidate,
        admitted: &Admitted,
    ) -> Result<(), Option<Guard>> {
        match (admitted.after.is_empty(), self.stacks) {
            (true, _) => Ok(()),
            (false, false) => Err(None),
            (false, true) => {
                may_stack(view, level, need)?;
                Ok(stays_readable(view, &wish.inputs, &admitted.hull, level + 1)?)
            }
        }
    }
}

/// Intervals of `level` with `trigger` idle runs, the deepest first, at most [`INTERVALS_TRIED`].
fn due(view: &View, level: Level, trigger: u32) -> Vec<Interval> {
    if view.version.max_depth(level) < trigger || idle_runs(view, level) < trigger {
        return Vec::new();
    }
    let runs = view.version.level(level).runs();
    let locked = |id| view.holder(id).is_some();
    let mut all = index::intervals(runs, view.order(), locked);
    all.retain(|i| i.idle_depth >= trigger);
    all.sort_by_key(|i| std::cmp::Reverse(i.idle_depth));
    all.truncate(INTERVALS_TRIED);
    all
}

/// Runs of `level` that are not wholly held. Counts, and looks at no file.
fn idle_runs(view: &View, level: Level) -> u32 {
    let held = |run: &Run| -> usize {
        let jobs = view.flights().iter();
        jobs.map(|k| k.inputs.iter().filter(|f| f.pos == run.pos).count()).sum()
    };
    let runs = view.version.level(level).runs().iter();
    runs.filter(|r| held(r) < r.files().len()).count() as u32
}

/// The last level's runs become one, where the trigger is reached; all of them, if their bytes are
/// too many next to the base run.
fn settle_last(view: &View, offers: &mut Offers) -> ControlFlow<()> {
    let level = view.options.last_level();
    let to = Pos::base(level);
    let runs = view.version.level(level).runs();
    let base = view.version.run(to).map_or(0, Run::bytes);
    let extra = view.version.bytes(level) - base;
    let percent = u128::from(view.options.size_amp_percent);
    let amplified = base > 0 && u128::from(extra) * 100 > u128::from(base) * percent;
    let trigger = if amplified { 2 } else { view.options.tier_runs(level) };
    for interval in due(view, level, trigger) {
        let seeds: Vec<FileRef> = interval.covering(runs, view.order()).cloned().collect();
        let inputs = close(view.version, &seeds, to);
        let reason = Reason::Runs { level, runs: interval.depth, trigger };
        offers.offer(Candidate::merge(Kind::IntraLevel, inputs, to, reason))?;
    }
    if amplified { loose_extra(view, to, offers) } else { Continue(()) }
}

/// An extra file of the last level over which and under which nothing lies just becomes part of
/// the base.
fn loose_extra(view: &View, to: Pos, offers: &mut Offers) -> ControlFlow<()> {
    let extras = view.version.level(to.level).runs().iter().filter(|r| r.pos != to).rev();
    let files = extras.flat_map(|r| r.files()).filter(|f| view.is_idle(f));
    for f in files.take(INTERVALS_TRIED) {
        let inputs = close(view.version, std::slice::from_ref(f), to);
        let kind = if inputs.len() == 1 { Kind::Move } else { Kind::IntraLevel };
        let reason = Reason::Extras { level: to.level, depth: view.version.max_depth(to.level) };
        offers.offer(Candidate::merge(kind, inputs, to, reason))?;
    }
    Continue(())
}

/// Idle runs over a locked window become one run where they are, if they cannot go down.
fn in_place(view: &View, level: Level, offers: &mut Offers) -> ControlFlow<()> {
    let trigger = view.options.tier_runs(level).max(2);
    for interval in due(view, level, trigger) {
        let runs = view.version.level(level).runs();
        let Some((inputs, to)) = extras::window(view, runs, &interval, trigger as usize) else {
            continue;
        };
        let kind = if level == 0 { Kind::IntraL0 } else { Kind::IntraDf };
        let reason = Reason::Runs { level, runs: interval.idle_depth, trigger };
        offers.offer(Candidate::merge(kind, inputs, to, reason).at_prio(Prio::Depth))?;
    }
    Continue(())
}
