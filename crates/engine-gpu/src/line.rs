//! The line between sessions and the pump: sets on their way to the device, and what comes back of them.
//!
//! Keeps: a session has as many units as its fair share, and one at any time it needs one; its sets get units in
//! order. The lock is held for moments only, never over a call of the device.
//! Leaves to others: the units (`pump`), and whose set is which (`session`).

use std::collections::{BTreeMap, VecDeque};

use lithify_base::{Error, ErrorKind};
use lithify_env::Ticket;
use lithify_merge::{Carry, Lent};

use crate::returned::Announced;
use crate::unit::{Job, News, Trouble};

/// A set, by number; numbers ascend along the sets of a session.
pub(crate) type SetNo = u64;

/// What a session and the pump tell each other of a set.
#[derive(Default)]
pub(crate) struct Post {
    carry: Option<Box<Carry>>,
    announced: Option<Box<Announced>>,
    blocks: Option<Box<dyn Lent>>,
    trouble: Option<Trouble>,
}

/// A session in line.
#[derive(Default)]
struct Seat {
    waiting: VecDeque<(SetNo, Job)>,
    /// Units that work for it, and when it last got one.
    units: usize,
    served: u64,
    /// Complete when there is news for it.
    ticket: Ticket,
}

/// The line.
#[derive(Default)]
pub(crate) struct Line {
    next: u64,
    seats: BTreeMap<u64, Seat>,
    posts: BTreeMap<SetNo, (u64, Post)>,
    /// Complete when there is news for the pump.
    wake: Ticket,
    /// The engine is gone.
    closed: bool,
    /// The device is lost, and what stops each set for that. The pump may be gone with it.
    lost: Option<Trouble>,
}

impl Line {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// How many sessions there are.
    pub(crate) fn sessions(&self) -> usize {
        self.seats.len()
    }

    /// How many of so many units work for no session.
    pub(crate) fn free_of(&self, units: usize) -> usize {
        units.saturating_sub(self.seats.values().map(|seat| seat.units).sum())
    }

    /// A new session.
    pub(crate) fn enter(&mut self) -> u64 {
        let no = self.number();
        self.seats.insert(no, Seat::default());
        no
    }

    /// A session ends, and its sets are given up.
    pub(crate) fn leave(&mut self, session: u64) {
        self.seats.remove(&session);
        self.posts.retain(|_, (of, _)| *of != session);
        self.wake.complete();
    }

    /// There is something for the pump to do that is no set.
    pub(crate) fn call(&mut self) {
        self.wake.complete();
    }

    /// No session comes any more.
    pub(crate) fn close(&mut self) {
        self.closed = true;
        self.wake.complete();
    }

    /// No session is here, nor comes.
    pub(crate) fn is_over(&self) -> bool {
        self.closed && self.seats.is_empty()
    }

    /// A set joins the line. `carry` is there if all sets before it have joined the output.
    pub(crate) fn send(&mut self, session: u64, job: Job, carry: Option<Box<Carry>>) -> SetNo {
        let set = self.number();
        let trouble = self.lost.clone();
        self.posts.insert(set, (session, Post { carry, trouble, ..Post::default() }));
        if let Some(seat) = self.seats.get_mut(&session) {
            seat.waiting.push_back((set, job));
        }
        self.wake.complete();
        set
    }

    /// All sets before this one have joined the output.
    pub(crate) fn set_carry(&mut self, set: SetNo, carry: Box<Carry>) {
        if let Some((_, post)) = self.posts.get_mut(&set) {
            post.carry = Some(carry);
            self.wake.complete();
        }
    }

    /// What was announced of a set.
    ///
    /// # Errors
    /// What stopped it.
    pub(crate) fn take_announced(&mut self, set: SetNo) -> Result<Option<Box<Announced>>, Trouble> {
        let Some((_, post)) = self.posts.get_mut(&set) else { return Ok(None) };
        match post.announced.take() {
            Some(announced) => Ok(Some(announced)),
            None => post.trouble.clone().map_or(Ok(None), Err),
        }
    }

    /// The finished blocks of a set, after which it is out of the line.
    ///
    /// # Errors
    /// What stopped it.
    pub(crate) fn take_blocks(&mut self, set: SetNo) -> Result<Option<Box<dyn Lent>>, Trouble> {
        let Some((_, post)) = self.posts.get_mut(&set) else { return Ok(None) };
        let Some(blocks) = post.blocks.take() else {
            return post.trouble.clone().map_or(Ok(None), Err);
        };
        self.posts.remove(&set);
        Ok(Some(blocks))
    }

    /// What completes when there is news for a session, from now on.
    pub(crate) fn ticket_of(&mut self, session: u64) -> Ticket {
        let Some(seat) = self.seats.get_mut(&session) else { return Ticket::completed() };
        if seat.ticket.is_done() {
            seat.ticket = Ticket::new();
        }
        seat.ticket.clone()
    }

    /// What completes when there is news for the pump, from now on.
    pub(crate) fn wake(&mut self) -> Ticket {
        if self.wake.is_done() {
            self.wake = Ticket::new();
        }
        self.wake.clone()
    }

    /// Whether a set's session is still there.
    pub(crate) fn is_wanted(&self, set: SetNo) -> bool {
        self.posts.contains_key(&set)
    }

    /// The carry of a set, once it is known.
    pub(crate) fn take_carry(&mut self, set: SetNo) -> Option<Box<Carry>> {
        self.posts.get_mut(&set)?.1.carry.take()
    }

    /// Whether a set waits for a unit.
    pub(crate) fn has_waiting(&self) -> bool {
        self.seats.values().any(|seat| !seat.waiting.is_empty())
    }

    /// The next set for one of `free` idle units out of `units`, if there is one that `fits`.
    pub(crate) fn take_job(
        &mut self,
        free: usize,
        units: usize,
        fits: impl Fn(&Job) -> bool,
    ) -> Option<(SetNo, Job)> {
        let without = self.seats.values().filter(|seat| seat.units == 0).count();
        let share = units / self.seats.len().max(1) + 1;
        let may = |seat: &Seat| {
            let first = seat.waiting.front().is_some_and(|(_, job)| fits(job));
            first && (seat.units == 0 || (free > without && seat.units < share))
        };
        let wanting = self.seats.values_mut().filter(|seat| may(seat));
        let seat = wanting.min_by_key(|seat| (seat.units, seat.served))?;
        self.next += 1;
        (seat.units, seat.served) = (seat.units + 1, self.next);
        seat.waiting.pop_front()
    }

    /// News of a set.
    pub(crate) fn tell(&mut self, set: SetNo, news: News) {
        let Some((session, post)) = self.posts.get_mut(&set) else { return };
        let seat = self.seats.get_mut(session);
        match news {
            News::Moved => return,
            News::Announced(announced) => post.announced = Some(announced),
            News::Blocks(blocks) => post.blocks = Some(blocks),
        }
        if let Some(seat) = seat {
            seat.ticket.complete();
        }
    }

    /// A set is stopped.
    pub(crate) fn stop(&mut self, set: SetNo, trouble: Trouble) {
        let Some((session, post)) = self.posts.get_mut(&set) else { return };
        post.trouble.get_or_insert(trouble);
        if let Some(seat) = self.seats.get_mut(session) {
            seat.ticket.complete();
        }
    }

    /// The device is lost: all sets are stopped, those that come later as well.
    pub(crate) fn stop_all(&mut self, why: &Error) {
        let sets: Vec<SetNo> = self.posts.keys().copied().collect();
        let what = "the GPU gets no more work";
        let error = Error::new(ErrorKind::Internal, what).caused_by(why.clone());
        let trouble = Trouble::Device(error);
        sets.into_iter().for_each(|set| self.stop(set, trouble.clone()));
        self.lost = Some(trouble);
    }

    /// A unit has no more to do for a session.
    pub(crate) fn give_back(&mut self, session: u64) {
        if let Some(seat) = self.seats.get_mut(&session) {
            seat.units -= 1;
        }
    }

    /// Whose set it is.
    pub(crate) fn session_of(&self, set: SetNo) -> Option<u64> {
        self.posts.get(&set).map(|(session, _)| *session)
    }
}
