//! What limits compaction now: the wishes that could not become jobs, each with the reason, and who
//! should hurry because of it. The answers of `explain()` on a database; decisions are in `plan`.

use std::fmt;

use lithify_base::JobId;

use crate::policy::Policy;
use crate::policy::downforce::Guard;
use crate::relation::Rejection;
use crate::spec::{Candidate, InFlight, Kind, Prio, Reason};
use crate::view::View;

/// Why a wish is no job now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Its policy holds it back.
    Guard(Guard),
    /// It does not fit the tree or the jobs in flight.
    Rejected(Rejection),
    /// A user waits for another job over its range.
    Manual,
    /// The disk has no room for its output.
    Disk {
        /// Bytes it would write.
        needed: u64,
    },
}

/// A wish that could not become a job.
#[derive(Clone, Debug, PartialEq)]
pub struct Blocked {
    /// Why the job would exist.
    pub kind: Kind,
    /// How urgent it is.
    pub prio: Prio,
    /// What made the policy want it.
    pub reason: Reason,
    /// Why it has to wait.
    pub why: Refusal,
    /// The jobs in flight that hold what it needs.
    pub by: Vec<JobId>,
}

impl Blocked {
    pub(crate) fn new(view: &View, wish: Candidate, why: Refusal) -> Blocked {
        let mut by: Vec<JobId> = wish.inputs.iter().filter_map(|f| view.holder(f.id)).collect();
        match &why {
            Refusal::Rejected(Rejection::Promised { by: k, .. })
            | Refusal::Rejected(Rejection::InTheWay { by: Some(k), .. })
            | Refusal::Rejected(Rejection::MoveMustWait { after: k }) => by.push(*k),
            _ => {}
        }
        by.sort_unstable();
        by.dedup();
        Blocked { kind: wish.kind, prio: wish.prio, reason: wish.reason, why, by }
    }
}

/// Everything that is wanted and cannot be had, once all jobs of a plan are taken.
pub fn explain(view: &View, policies: &[Box<dyn Policy>]) -> Vec<Blocked> {
    let mut view = view.clone();
    view.limits.slots_free = usize::MAX;
    loop {
        let mut blocked = Vec::new();
        match crate::next_job(&view, policies, &mut |b| blocked.push(b)) {
            Some((spec, flight)) => crate::grow(&mut view, &spec, flight),
            None => return blocked,
        }
    }
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

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Guard(guard) => guard.fmt(f),
            Refusal::Rejected(rejection) => rejection.fmt(f),
            Refusal::Manual => f.write_str("a user waits for a job over its range"),
            Refusal::Disk { needed } => write!(f, "the disk has no room for {needed} bytes"),
        }
    }
}

impl fmt::Display for Blocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}; {}", self.kind, self.reason, self.why)
    }
}
