//! What the holder of the turn may keep beyond the turn: lent to itself, until it gives it back.
//!
//! The write handle of a memtable is needed for the second half of a write only. With others about the
//! holder lends it to itself and passes the turn on: the next one is at the log while this one inserts.
//! It has to wait for the handle before its own second half, so both halves are in one order.
//!
//! ```text
//!   writer 1   turn: log ── insert, publish ─ back
//!   writer 2              turn: log ── waits ──── insert, publish ─ back
//!   writer 3                                 turn: log ── waits ─── ...
//! ```
//!
//! Keeps: what is lent is with one thread, and comes back even if that one panics; then it is *torn*, and
//! stays so. At most one waits for it, the holder of the turn.
//! Leaves to others: what is done with it, and what is not allowed as long as it is away.

use lithify_base::Result;
use lithify_env::sync::atomic::{AtomicBool, Ordering};
use lithify_env::sync::{Arc, Mutex};
use lithify_env::{RtRef, Ticket};
use lithify_memtable::MemWriter;

use crate::mems::refused;

/// What is reserved for the next group as well before the handle is lent: entries, and bytes of keys and
/// values.
const AHEAD_ENTRIES: usize = 16;
const AHEAD_BYTES: usize = 4 << 10;

/// The owner of a `W` that may be away.
pub struct Lender<W> {
    here: Option<W>,
    torn: bool,
    shelf: Arc<Shelf<W>>,
    rt: RtRef,
}

/// Where it is put when it comes back.
struct Shelf<W> {
    /// Something is there, for one that spins.
    back: AtomicBool,
    state: Mutex<State<W>>,
}

struct State<W> {
    returned: Option<W>,
    /// It was dropped, and not given back.
    torn: bool,
    /// Of the one that waits for it asleep.
    waiter: Option<Ticket>,
}

impl<W> Lender<W> {
    /// One that has it.
    pub fn new(what: W, rt: RtRef) -> Lender<W> {
        let state = Mutex::new(State { returned: None, torn: false, waiter: None });
        let shelf = Arc::new(Shelf { back: AtomicBool::new(false), state });
        Lender { here: Some(what), torn: false, shelf, rt }
    }
    /// It is lent, or was and is not yet called for.
    #[inline]
    pub fn is_away(&self) -> bool {
        self.here.is_none()
    }
    /// Waits until it is back; false if it ever came back torn.
    #[inline]
    pub fn recall(&mut self) -> bool {
        if self.here.is_none() {
            self.fetch();
        }
        !self.torn
    }
    /// What is owned. Waits until it is back.
    #[inline]
    pub fn get(&mut self) -> &mut W {
        self.recall();
        self.here.as_mut().expect("called back above")
    }
    /// Puts `what` in its place.
    pub fn replace(&mut self, what: W) -> W {
        std::mem::replace(self.get(), what)
    }
    /// Lends it. Waits until it is back.
    #[inline]
    pub fn lend(&mut self) -> Loan<W> {
        self.recall();
        Loan { what: self.here.take(), shelf: self.shelf.clone() }
    }

    #[inline(never)]
    fn fetch(&mut self) {
        let Lender { here, torn, shelf, rt } = self;
        if !rt.spin(&|| shelf.back.load(Ordering::Acquire)) {
            let asleep = {
                let mut state = shelf.state.lock();
                let ticket = state.returned.is_none().then(Ticket::new);
                state.waiter.clone_from(&ticket);
                ticket
            };
            if let Some(ticket) = asleep {
                rt.park(&ticket, None);
            }
        }
        let mut state = shelf.state.lock();
        *here = state.returned.take();
        *torn |= state.torn;
        shelf.back.store(false, Ordering::Relaxed);
    }
}

impl Lender<MemWriter> {
    /// Sees to it that a group finds memory. While the handle is away a small one does: its memory was
    /// reserved before.
    ///
    /// # Errors
    /// `LimitExceeded` if there is none.
    #[inline]
    pub fn reserve(&mut self, entries: usize, bytes: usize) -> Result<()> {
        if self.is_away() && entries <= AHEAD_ENTRIES && bytes <= AHEAD_BYTES {
            return Ok(());
        }
        self.get().try_reserve(entries, bytes).map_err(refused)
    }
    /// Lends it to a group, which reserved its own memory; `None` if there is none for the next one.
    #[inline]
    pub fn lend_after(&mut self, entries: usize, bytes: usize) -> Option<Loan<MemWriter>> {
        let both = (entries.saturating_add(AHEAD_ENTRIES), bytes.saturating_add(AHEAD_BYTES));
        self.get().try_reserve(both.0, both.1).is_ok().then(|| self.lend())
    }
}

/// What is lent. Dropped and not given back, it comes back torn.
pub struct Loan<W> {
    what: Option<W>,
    shelf: Arc<Shelf<W>>,
}

impl<W> Loan<W> {
    /// What is lent.
    #[inline]
    pub fn get(&mut self) -> &mut W {
        self.what.as_mut().expect("there until it is given back")
    }
    /// Gives it back, whole.
    #[inline]
    pub fn give_back(mut self) {
        self.end(false);
    }

    #[inline]
    fn end(&mut self, torn: bool) {
        let Some(what) = self.what.take() else { return };
        let mut state = self.shelf.state.lock();
        state.returned = Some(what);
        state.torn |= torn;
        self.shelf.back.store(true, Ordering::Release);
        let waiter = state.waiter.take();
        drop(state);
        if let Some(waiter) = waiter {
            waiter.complete();
        }
    }
}

impl<W> Drop for Loan<W> {
    fn drop(&mut self) {
        self.end(true);
    }
}

#[cfg(all(test, shuttle))]
mod schedules;
