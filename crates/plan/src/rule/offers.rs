//! How a policy asks for jobs, and the one place that answers. A [`Policy`] offers its wishes in its
//! order of preference; [`Offers`] asks the rule of admission about each of them, once, and says at
//! once whether the wish becomes a job. The first that does ends the round.
//!
//! Keeps: one round takes one wish at most; a wish is checked against the view of the round; what was
//! refused is told in the order of the offers, each with its reason. Leaves to others: what to wish
//! for (policies), what the accepted job looks like (the planner).
//!
//! ```text
//!   offer(L1.0[a..f] -> L2.0)    refused, A1: job 3 holds L2.0[a..d]     told
//!   attempt(L1.0[g..m] -> L2.0)  refused, A2: one of many alternatives   not told
//!   offer(L1.0[n..z] -> L2.0)    admitted: Break, and the policy returns
//! ```

use std::fmt;
use std::ops::ControlFlow::{self, Break, Continue};

use lithify_base::zoo::{self, Bug};
use lithify_base::{JobId, KeyRange};

use crate::nouns::guard::Guard;
use crate::nouns::request::is_settled;
use crate::nouns::spec::{Candidate, Kind, Prio, Reason, cost};
use crate::nouns::view::View;
use crate::rule::relation::{Admitted, Rejection, admit};

/// A rule set.
pub trait Policy: Send + Sync {
    /// Offers wishes, the dearest first, until one is taken: then the policy returns the `Break` it
    /// was answered with, and is asked again with the grown view. It checks no conflicts; it may
    /// leave out what is plainly locked, for speed.
    fn propose(&self, view: &View, offers: &mut Offers) -> ControlFlow<()>;
}

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
    fn new(view: &View, wish: Candidate, why: Refusal) -> Blocked {
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

/// One round of wishes over one view.
pub struct Offers<'v> {
    view: &'v View<'v>,
    refused: &'v mut dyn FnMut(Blocked),
    taken: Option<(Candidate, Admitted)>,
}

impl<'v> Offers<'v> {
    /// A round over `view`, which tells `refused` what could not become a job.
    pub(crate) fn new(view: &'v View<'v>, refused: &'v mut dyn FnMut(Blocked)) -> Offers<'v> {
        Offers { view, refused, taken: None }
    }

    /// The wish that becomes a job, if one does.
    pub(crate) fn into_taken(self) -> Option<(Candidate, Admitted)> {
        self.taken
    }

    /// Offers a wish: `Break` if it becomes a job. Otherwise it is told why it does not.
    pub fn offer(&mut self, wish: Candidate) -> ControlFlow<()> {
        self.offer_if(wish, |_, _| Ok(()))
    }

    /// Offers several, one after the other.
    pub fn offer_all(&mut self, wishes: impl IntoIterator<Item = Candidate>) -> ControlFlow<()> {
        wishes.into_iter().try_for_each(|wish| self.offer(wish))
    }

    /// Offers a wish that its policy wants only if `bears` agrees to how the rule would admit it. With
    /// `Err(None)` the wish is dropped without a word, with a guard the guard is told.
    pub fn offer_if(
        &mut self,
        wish: Candidate,
        bears: impl FnOnce(&Candidate, &Admitted) -> Result<(), Option<Guard>>,
    ) -> ControlFlow<()> {
        let wish = wish.where_it_belongs(self.view.options);
        match self.ask(&wish, bears) {
            Ok(admitted) => self.take(wish, admitted),
            Err(why) => {
                if let Some(why) = why {
                    (self.refused)(Blocked::new(self.view, wish, why));
                }
                Continue(())
            }
        }
    }

    /// Offers one of several alternatives: as [`offer`](Offers::offer), but if it is refused nothing
    /// is told.
    pub fn attempt(&mut self, wish: Candidate) -> ControlFlow<()> {
        let wish = wish.where_it_belongs(self.view.options);
        match self.ask(&wish, |_, _| Ok(())) {
            Ok(admitted) => self.take(wish, admitted),
            Err(_) => Continue(()),
        }
    }

    /// Tells of a wish that its policy holds back. The rule is not asked.
    pub fn hold_back(&mut self, wish: Candidate, guard: Guard) {
        (self.refused)(Blocked::new(self.view, wish, Refusal::Guard(guard)));
    }

    fn take(&mut self, wish: Candidate, admitted: Admitted) -> ControlFlow<()> {
        self.taken = Some((wish, admitted));
        Break(())
    }

    /// Whether a wish may become a job now: the rule, its policy's own conditions, what a user waits
    /// for, and the disk.
    fn ask(
        &self,
        wish: &Candidate,
        bears: impl FnOnce(&Candidate, &Admitted) -> Result<(), Option<Guard>>,
    ) -> Result<Admitted, Option<Refusal>> {
        assert!(self.taken.is_none(), "a round is over once a wish was taken");
        let view = self.view;
        let admitted = admit(view, wish).map_err(Refusal::Rejected)?;
        bears(wish, &admitted).map_err(|guard| guard.map(Refusal::Guard))?;
        let asked = matches!(wish.reason, Reason::Manual { .. });
        if !asked && holds_back(view, &admitted.hull) {
            return Err(Some(Refusal::Manual));
        }
        let write = cost(wish.kind, &wish.inputs).write;
        match write <= view.limits.disk_free || zoo::on(Bug::ReserveEaten) {
            true => Ok(admitted),
            false => Err(Some(Refusal::Disk { needed: write })),
        }
    }
}

/// True if an automatic job over `range` must not start: a request wants files there, none of its
/// jobs is in flight, and others are. With nothing in flight over its range the request has just
/// had its chance; if it could not use it (a full disk), others may.
fn holds_back(view: &View, range: &KeyRange) -> bool {
    let Some(request) = view.manual else { return false };
    let meets =
        |r: &KeyRange| request.range.as_ref().is_none_or(|mine| mine.overlaps(r, view.order()));
    let started = view.flights().iter().any(|k| k.kind == Kind::Manual);
    let waits = view.flights().iter().any(|k| meets(&k.hull));
    meets(range) && !started && waits && !is_settled(view.version, view.options, request)
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
