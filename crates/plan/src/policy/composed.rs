//! One order of rules for the policies that run many jobs at once: DownForce, buckets, and both.
//! Policies only propose, so they compose by being asked one after the other.
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
//! A wish is offered only once it is known to be allowed, so that a blocked seed never hides the
//! next one, nor a blocked level the next level. What is wanted and not allowed is listed as well,
//! for [`crate::explain()`].

use lithify_base::Level;

use crate::policy::bucket::{self, BucketJob};
use crate::policy::downforce::{self, Guard};
use crate::policy::{Policy, hybrid, intra};
use crate::score::{self, Score};
use crate::spec::{Candidate, Prio};
use crate::view::View;

/// The policies `df-leveled`, `bucket` and `bucket-df`.
#[derive(Clone, Copy, Debug)]
pub struct Composed {
    /// L0 goes down by buckets; otherwise by runs.
    pub buckets: bool,
    /// Data is stacked over a locked way.
    pub stacks: bool,
}

impl Policy for Composed {
    fn propose(&self, view: &View, out: &mut Vec<Candidate>) {
        if !view.options.disable_auto {
            Round::new(view, *self, out).run();
        }
    }
}

/// One round of wishes. Over as soon as an allowed one is found.
pub(crate) struct Round<'v, 'a> {
    pub(crate) view: &'v View<'a>,
    pub(crate) shape: Composed,
    /// L0 jobs by bucket, most urgent first; empty without buckets.
    pub(crate) bucket_jobs: Vec<BucketJob>,
    /// Levels below L0 over target that found no usual job.
    blocked: Vec<(Level, Score)>,
    out: &'v mut Vec<Candidate>,
    done: bool,
}

impl<'v, 'a> Round<'v, 'a> {
    fn new(view: &'v View<'a>, shape: Composed, out: &'v mut Vec<Candidate>) -> Round<'v, 'a> {
        let bucket_jobs = if shape.buckets { bucket::jobs(view) } else { Vec::new() };
        Round { view, shape, bucket_jobs, blocked: Vec::new(), out, done: false }
    }

    /// Lists an allowed wish, which ends the round.
    pub(crate) fn offer(&mut self, wish: Candidate) -> bool {
        self.done = crate::allow(self.view, &wish).is_ok();
        if self.done {
            self.out.push(wish);
        }
        self.done
    }
    /// Lists a wish that is not allowed, to explain what is missing.
    pub(crate) fn refuse(&mut self, wish: Candidate, guard: Option<Guard>) {
        self.out.push(match guard {
            Some(guard) => wish.held_back(guard),
            None => wish,
        });
    }
    /// True once an allowed wish is listed.
    pub(crate) fn is_done(&self) -> bool {
        self.done
    }

    fn run(&mut self) {
        let view = self.view;
        let urgent = view.version.max_depth(0) >= view.options.l0_urgent();
        let due = score::need(view, 0) >= Score::ONE;
        let steps: [&dyn Fn(&mut Self); 7] = [
            &|r| {
                if urgent {
                    r.l0(Prio::High)
                }
            },
            &|r| intra::at_budget(r),
            &|r| r.levels_down(),
            &|r| r.levels_stacked(),
            &|r| {
                if !due && r.shape.buckets {
                    bucket::down(r, Prio::Early)
                }
            },
            &|r| r.l0_in_place(),
            &|r| intra::settle(r),
        ];
        for step in steps {
            step(self);
            if self.done {
                return;
            }
        }
    }

    /// How urgently a job of L0 runs once it is chosen: half way to a slow-down others make way.
    fn l0_prio(&self) -> Prio {
        let deep = self.view.version.max_depth(0) >= (self.view.options.l0_slowdown / 2).max(1);
        if deep { Prio::High } else { Prio::Normal }
    }

    fn l0(&mut self, prio: Prio) {
        match self.shape.buckets {
            true => bucket::down_or_stacked(self, prio),
            false if score::need(self.view, 0) >= Score::ONE => downforce::l0(self, prio),
            false => {}
        }
    }

    /// Levels by rank, each its best seed that can be merged down.
    fn levels_down(&mut self) {
        for (level, need) in score::by_rank(self.view) {
            match level {
                0 if self.shape.buckets => bucket::down(self, self.l0_prio()),
                0 => downforce::l0_down(self, self.l0_prio()),
                _ if downforce::down(self, level, need) => {}
                _ => self.blocked.push((level, need)),
            }
            if self.done {
                return;
            }
        }
    }

    /// The same levels again, each its best seed that can be stacked.
    fn levels_stacked(&mut self) {
        if !self.shape.stacks {
            return;
        }
        if score::need(self.view, 0) >= Score::ONE {
            match self.shape.buckets {
                true => bucket::stacked(self, self.l0_prio()),
                false => downforce::l0_stacked(self, self.l0_prio()),
            }
        }
        for (level, need) in std::mem::take(&mut self.blocked) {
            if self.done {
                return;
            }
            downforce::stacked(self, level, need);
        }
    }

    /// L0 merged in place, since its way down is blocked.
    fn l0_in_place(&mut self) {
        if self.shape.buckets {
            bucket::in_place(self);
        } else if score::need(self.view, 0) >= Score::ONE {
            let by = self.view.flights().iter().find(|k| k.from() == 0).map(|k| k.id);
            if let Some(wish) = hybrid::blocked_l0(self.view, crate::policy::leveled::Blocked(by)) {
                self.offer(wish);
            }
        }
    }
}
