//! Whose turn it is to get a slot.
//!
//! Keeps: a session that asks for its first slot gets one before any session gets a further one, and of those that
//! ask for their first one the session that has asked for longest is the first. A session that does not ask
//! any more, because the CPU has its part or its next set is still being read, keeps no slot from others.
//! Leaves to others: which slots are free (`sched`).
//!
//! Worked example: one slot is free, A has one, B has none and was refused before. A asks and is refused, B asks
//! and gets it. If B does not ask again while others ask [`FRESH`] times for each session, A gets the slot.

use std::collections::BTreeMap;

/// A session asks once a poll. One that was refused and has not asked again while all sessions together asked so
/// many times each does something else.
const FRESH: u64 = 16;

/// Sessions, and how many slots each one has.
#[derive(Debug, Default)]
pub(super) struct Turns {
    sessions: BTreeMap<u64, Seat>,
    /// How often sessions have asked.
    asked: u64,
}

#[derive(Debug, Default)]
struct Seat {
    slots: usize,
    waits: Option<Wait>,
    /// When the output of the last set that it gave back was there, in computed card time: no set that it stages
    /// afterwards can be on its way before.
    freed_at: f64,
}

/// A session that was refused: when it asked first and last, counted in questions.
#[derive(Clone, Copy, Debug)]
struct Wait {
    since: u64,
    last: u64,
}

impl Turns {
    /// A session begins.
    pub(super) fn enter(&mut self, session: u64) {
        self.sessions.insert(session, Seat::default());
    }
    /// A session ends, or needs no slot any more.
    pub(super) fn leave(&mut self, session: u64) {
        self.sessions.remove(&session);
    }
    /// A session has one slot less.
    pub(super) fn gave_back(&mut self, session: u64) {
        if let Some(seat) = self.sessions.get_mut(&session) {
            seat.slots = seat.slots.saturating_sub(1);
        }
    }

    /// A session asks for one of `free` slots; whether it gets it.
    pub(super) fn ask(&mut self, session: u64, free: usize) -> bool {
        self.asked += 1;
        let (now, seat) = (self.asked, self.sessions.entry(session).or_default());
        let wait = Wait { since: seat.waits.map_or(now, |wait| wait.since), last: now };
        let is_first = seat.slots == 0;
        let before = |other: &Wait| !is_first || other.since < wait.since;
        let ahead = self.waiting(session).filter(before).count();
        let Some(seat) = self.sessions.get_mut(&session) else { return false };
        if ahead >= free {
            seat.waits = is_first.then_some(wait);
            return false;
        }
        seat.waits = None;
        seat.slots += 1;
        true
    }

    /// The output of a set that a session gives back was there at `at`.
    pub(super) fn freed(&mut self, session: u64, at: f64) {
        if let Some(seat) = self.sessions.get_mut(&session) {
            seat.freed_at = seat.freed_at.max(at);
        }
    }
    /// When that of the last one was.
    pub(super) fn freed_at(&self, session: u64) -> f64 {
        self.sessions.get(&session).map_or(0.0, |seat| seat.freed_at)
    }

    /// Sessions that have a slot.
    pub(super) fn holders(&self) -> usize {
        self.sessions.values().filter(|seat| seat.slots > 0).count()
    }

    /// Whether a session but this one waits for its first slot.
    pub(super) fn others_wait(&self, session: u64) -> bool {
        self.waiting(session).next().is_some()
    }

    /// Sessions but this one that wait for their first slot, and still ask for it.
    fn waiting(&self, session: u64) -> impl Iterator<Item = Wait> {
        let (now, fresh) = (self.asked, FRESH * self.sessions.len() as u64);
        let others = self.sessions.iter().filter(move |&(&other, _)| other != session);
        let waits = others.filter_map(|(_, seat)| seat.waits.filter(|_| seat.slots == 0));
        waits.filter(move |wait| now - wait.last <= fresh)
    }
}
