//! A copy of what the core knows of one moment, made under its lock and looked at without it: which
//! jobs are at work, what is wanted and can't be had, and how near writers are to a stall.

use lithify_base::{JobId, Level};
use lithify_lsm::Version;
use lithify_plan::stall::stall_while;
use lithify_plan::{
    Blocked, InFlight, JobSpec, Limits, Load, ManualRequest, MemState, PlanOptions, PolicyKind,
    Prio, Score, Stall, Targets, View, explain, policies, score,
};

use crate::core::Core;
use crate::event::MemId;

/// Jobs looked for that could start with more slots: a longer list tells a reader no more.
const DUE_MAX: usize = 64;

/// One moment of a [`Core`].
#[derive(Clone, Debug)]
pub struct Outlook {
    /// The tree.
    pub version: Version,
    /// Compactions at work or waiting to commit, oldest first.
    pub compactions: Vec<InFlight>,
    /// Flushes, each with its memtable and whether its files are still being written.
    pub flushes: Vec<(JobId, MemId, bool)>,
    /// Compactions that are more urgent than they were made, because others wait for them.
    pub raised: Vec<(JobId, Prio)>,
    /// Memtables.
    pub mem: MemState,
    /// The planner's settings.
    pub options: PlanOptions,
    /// Compactions that may run at once, at most.
    pub slots: usize,
    /// Compactions that may run at once while it is as calm as it is now.
    pub slots_wanted: usize,
    /// Compactions being built.
    pub running: usize,
    /// The time, in seconds since 1970; 0 while it was not read.
    pub wall: u64,
    /// What a user waits for.
    pub manual: Option<ManualRequest>,
    /// The load as planners see it.
    pub load: Load,
    limits: Limits,
}

impl Core {
    /// This moment, `now` in nanoseconds as for [`on`](Core::on).
    pub fn outlook(&self, now: u64) -> Outlook {
        let limits = self.limits(now);
        let running = self.jobs.running().count();
        Outlook {
            version: self.version.clone(),
            compactions: self.jobs.in_flight().to_vec(),
            flushes: self.jobs.all_flushes().collect(),
            raised: self.raised().collect(),
            mem: self.memory.state(),
            options: self.options.plan.clone(),
            slots: self.options.compaction_slots,
            slots_wanted: limits.slots_free + running,
            running,
            wall: self.resources.wall,
            manual: self.manuals.wanted().cloned(),
            limits,
            load: self.load(now),
        }
    }
}

impl Outlook {
    fn view(&self) -> View<'_> {
        View::new(&self.version, &self.compactions, &self.mem, &self.options, self.limits)
            .with_manual(self.manual.as_ref())
            .under(self.load)
            .at(self.wall)
    }

    /// The verdict on writes and the figures it rests on.
    pub fn stall(&self) -> Stall {
        stall_while(&self.version, &self.compactions, &self.mem, &self.options)
    }
    /// What is wanted and can't be had, the most wanted first.
    pub fn blocked(&self) -> Vec<Blocked> {
        explain(&self.view(), &policies(self.options.policy))
    }
    /// Jobs that could start now if there were slots for them, at most 64.
    pub fn due(&self) -> Vec<JobSpec> {
        let mut view = self.view();
        view.limits.slots_free = DUE_MAX;
        lithify_plan::plan(&view, &policies(self.options.policy))
    }
    /// Levels in use with their need for compaction (1 and more: it is due) and their target size,
    /// where they have one.
    pub fn levels(&self) -> Vec<(Level, Score, Option<u64>)> {
        let view = self.view();
        let targets = Targets::of(&self.version, &self.options);
        let used = (0..=self.options.last_level()).filter(|&l| !self.version.level(l).is_empty());
        let of = |level: Level| {
            let target = targets.bytes(level);
            let known = (level > 0 && target < u64::MAX && !self.options.policy.is_tiered())
                .then_some(target);
            (level, self.need(&view, level), known)
        };
        used.map(of).collect()
    }

    fn need(&self, view: &View, level: Level) -> Score {
        let policy = self.options.policy;
        if policy.is_tiered() {
            let runs = u64::from(self.version.max_depth(level));
            return Score::ratio(runs, u64::from(self.options.tier_runs(level)));
        }
        if policy == PolicyKind::Universal {
            let runs = (0..=self.options.last_level()).map(|l| self.version.level(l).runs().len());
            let due = self.options.universal_trigger().max(1) as u64;
            return if level == 0 {
                Score::ratio(runs.sum::<usize>() as u64, due)
            } else {
                Score(0)
            };
        }
        if level == 0 && !policy.has_buckets() {
            // What the planner ranks by is larger: it lifts levels that are due above others.
            let runs = view.idle_runs(0).count() as u64;
            return Score::ratio(runs, u64::from(self.options.l0_trigger()));
        }
        score::need(view, level)
    }
}
