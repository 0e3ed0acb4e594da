//! A one-shot completion that threads park on and jobs wait for.
//!
//! Keeps: a ticket goes from pending to complete once and stays so; a thread that observes completion
//! also observes everything written before [`Ticket::complete`].
//!
//! The state is one atomic; the lock and the condition variable are touched only when a thread
//! waits. `state` moves PENDING -> WATCHED (a waiter registered under the lock) -> COMPLETE, or
//! straight from PENDING to COMPLETE, in which case completing costs one atomic swap.

use std::fmt;
use std::task::Waker;
use std::time::Instant;

use crate::rt::Wake;
use crate::sync::atomic::{AtomicU8, Ordering};
use crate::sync::{Arc, Condvar, Mutex};

const PENDING: u8 = 0;
const WATCHED: u8 = 1;
const COMPLETE: u8 = 2;

/// How often a waiter looks again before it sleeps: about a microsecond, less than the futex
/// round trip it may save.
const SPINS: u32 = if cfg!(any(shuttle, loom)) { 0 } else { 64 };

/// A one-shot completion; clones are the same ticket.
#[derive(Clone)]
pub struct Ticket(Arc<Shared>);

struct Shared {
    state: AtomicU8,
    watchers: Mutex<Vec<Waker>>,
    completed: Condvar,
}

impl Ticket {
    /// A pending ticket.
    pub fn new() -> Self {
        Self::in_state(PENDING)
    }

    /// A ticket that is complete from the start.
    pub fn completed() -> Self {
        Self::in_state(COMPLETE)
    }

    fn in_state(state: u8) -> Self {
        Self(Arc::new(Shared {
            state: AtomicU8::new(state),
            watchers: Mutex::new(Vec::new()),
            completed: Condvar::new(),
        }))
    }

    /// Completes the ticket and wakes everyone who waits; a second call has no effect.
    pub fn complete(&self) {
        if self.0.state.swap(COMPLETE, Ordering::AcqRel) != WATCHED {
            return;
        }
        // Taking the lock orders this after a waiter's last look at the state, so that no waiter
        // falls asleep after the notification.
        let watchers = std::mem::take(&mut *self.0.watchers.lock());
        self.0.completed.notify_all();
        watchers.into_iter().for_each(Waker::wake);
    }

    /// Whether the ticket is complete.
    pub fn is_done(&self) -> bool {
        self.0.state.load(Ordering::Acquire) == COMPLETE
    }

    /// Whether both are the same ticket.
    pub fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Asks for one call of `waker` on completion. Returns false, and keeps nothing, if the
    /// ticket is complete already. A waker that would wake the same task is kept only once.
    pub fn watch(&self, waker: &Waker) -> bool {
        let mut watchers = self.0.watchers.lock();
        if !self.mark_watched() {
            return false;
        }
        if !watchers.iter().any(|known| known.will_wake(waker)) {
            watchers.push(waker.clone());
        }
        true
    }

    /// Blocks the calling thread; what the real runtime's `park` does.
    pub(crate) fn block(&self, deadline: Option<Instant>) -> Wake {
        for _ in 0..SPINS {
            if self.is_done() {
                return Wake::Done;
            }
            std::hint::spin_loop();
        }
        let mut watchers = self.0.watchers.lock();
        while self.mark_watched() {
            match deadline {
                None => self.0.completed.wait(&mut watchers),
                Some(at) => {
                    if self.0.completed.wait_until(&mut watchers, at).timed_out() {
                        return if self.is_done() { Wake::Done } else { Wake::TimedOut };
                    }
                }
            }
        }
        Wake::Done
    }

    /// With the lock held: makes `complete` take the lock. False if the ticket is complete.
    fn mark_watched(&self) -> bool {
        let seen =
            self.0.state.compare_exchange(PENDING, WATCHED, Ordering::AcqRel, Ordering::Acquire);
        seen != Err(COMPLETE)
    }
}

#[cfg(all(test, loom))]
mod models;

impl Default for Ticket {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_done() { "Ticket(complete)" } else { "Ticket(pending)" })
    }
}
