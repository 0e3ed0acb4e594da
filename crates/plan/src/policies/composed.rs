//! One order of rules for the policies that run many jobs at once: DownForce, buckets, and both. The
//! policies `df-leveled` ([`downforce`](crate::policies::downforce)), `bucket` and `bucket-df`
//! ([`bucket`](crate::policies::bucket)) are this with other steps left out.
//!
//! 1. L0, if writers are about to be stopped;
//! 2. extra runs where their depth, or that of the whole tree, is at its budget;
//! 3. levels by rank: what can go down the usual way, then what can only be stacked;
//! 4. buckets of L0 that are due by their bytes alone;
//! 5. L0 among itself, where it is deep;
//! 6. extra runs into their base.
//!
//! Until writers are about to be stopped L0 is a level among levels: if it always went first, the
//! levels below would starve, grow, and make every job of L0 rewrite more and more of the base level.
//!
//! Many seeds of a level are tried before the level is given up, and of those that are refused only
//! the best one that is locked is told to [`crate::explain()`].

use std::ops::ControlFlow::{self, Continue};

use lithify_base::Level;

use crate::measures::score;
use crate::nouns::score::Score;
use crate::nouns::spec::Prio;
use crate::nouns::view::View;
use crate::rule::offers::Offers;
use crate::steps::buckets::{self, BucketJob};
use crate::steps::descent::{Descent, Told};
use crate::steps::{among_l0, extras, l0, stacking};

/// Which steps a policy has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// L0 goes down by buckets; otherwise by connected parts.
    pub(super) buckets: bool,
    /// Data is stacked over a locked way.
    pub(super) stacks: bool,
}

/// Offers what the steps find, in the order of the rules.
pub(super) fn propose(shape: Shape, view: &View, offers: &mut Offers) -> ControlFlow<()> {
    if view.options.disable_auto {
        return Continue(());
    }
    let jobs = if shape.buckets { buckets::jobs(view) } else { Vec::new() };
    Round { view, shape, jobs, l0_need: score::need(view, 0) }.run(offers)
}

/// One round of wishes.
struct Round<'v> {
    view: &'v View<'v>,
    shape: Shape,
    /// L0 jobs by bucket, most urgent first; empty without buckets.
    jobs: Vec<BucketJob>,
    l0_need: Score,
}

impl Round<'_> {
    fn run(&self, offers: &mut Offers) -> ControlFlow<()> {
        let view = self.view;
        if view.version.max_depth(0) >= view.options.l0_urgent() {
            self.l0(offers)?;
        }
        extras::at_budget(view, offers)?;
        let blocked = self.levels_down(offers)?;
        if self.shape.stacks {
            self.levels_stacked(&blocked, offers)?;
        }
        if self.shape.buckets && !self.l0_is_due() {
            buckets::down(view, &self.jobs, Prio::Early, offers)?;
        }
        self.l0_in_place(offers)?;
        extras::settle(view, offers)
    }

    fn l0_is_due(&self) -> bool {
        self.l0_need >= Score::ONE
    }

    /// How urgently a job of L0 runs once it is chosen: half way to a slow-down others make way.
    fn l0_prio(&self) -> Prio {
        let deep = self.view.version.max_depth(0) >= (self.view.options.l0_slowdown / 2).max(1);
        if deep { Prio::High } else { Prio::Normal }
    }

    /// L0 before all else: down, else stacked.
    fn l0(&self, offers: &mut Offers) -> ControlFlow<()> {
        if self.shape.buckets || self.l0_is_due() {
            self.l0_down(Prio::High, offers)?;
            if self.shape.stacks {
                self.l0_stacked(Prio::High, offers)?;
            }
        }
        Continue(())
    }

    fn l0_down(&self, prio: Prio, offers: &mut Offers) -> ControlFlow<()> {
        match self.shape.buckets {
            true => buckets::down(self.view, &self.jobs, prio, offers),
            false => l0::parts_down(self.view, prio, offers),
        }
    }

    fn l0_stacked(&self, prio: Prio, offers: &mut Offers) -> ControlFlow<()> {
        match self.shape.buckets {
            true => buckets::stacked(self.view, &self.jobs, prio, offers),
            false => stacking::l0(self.view, prio, offers),
        }
    }

    /// Levels by rank, each its best seed that can be merged down. Says which levels below L0 found
    /// none.
    fn levels_down(&self, offers: &mut Offers) -> ControlFlow<(), Vec<(Level, Score)>> {
        let view = self.view;
        let mut blocked = Vec::new();
        for (level, need) in score::by_rank(view) {
            if level == 0 {
                self.l0_down(self.l0_prio(), offers)?;
                continue;
            }
            let over_base = self.shape.buckets && level == view.targets.base;
            let stays = |f: &_| over_base && buckets::comes_upon(view, &self.jobs, f);
            let told = Told::BestLocked;
            Descent { level, need, stays: &stays, told }.run(view, offers)?;
            blocked.push((level, need));
        }
        Continue(blocked)
    }

    /// The same levels again, each its best seed that can be stacked.
    fn levels_stacked(&self, blocked: &[(Level, Score)], offers: &mut Offers) -> ControlFlow<()> {
        if self.l0_is_due() {
            self.l0_stacked(self.l0_prio(), offers)?;
        }
        blocked
            .iter()
            .try_for_each(|&(level, need)| stacking::level(self.view, level, need, offers))
    }

    /// L0 merged in place, since its way down is blocked.
    fn l0_in_place(&self, offers: &mut Offers) -> ControlFlow<()> {
        if self.shape.buckets {
            return buckets::in_place(self.view, &self.jobs, offers);
        }
        let by = self.view.flights().iter().find(|k| k.from() == 0).map(|k| k.id);
        let blocked = || among_l0::blocked(self.view, by);
        match self.l0_is_due().then(blocked).flatten() {
            Some(wish) => offers.attempt(wish),
            None => Continue(()),
        }
    }
}
