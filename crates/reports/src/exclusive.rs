//! A right that one thread has at a time, and that is waited for through the runtime.
//!
//! Keeps: a waiter is woken by each who gives it back, and tries again; none polls.
//! Leaves to others: what the right is to. It is not handed on in order, so it is for what is rare.

use lithify_env::sync::Mutex;
use lithify_env::{Mono, Rt, Ticket, Wake};

/// The right, or its holder.
#[derive(Default)]
pub struct Exclusive(Mutex<State>);

#[derive(Default)]
struct State {
    taken: bool,
    /// Complete once it is given back, if anybody waits.
    free: Option<Ticket>,
}

impl Exclusive {
    /// Takes it, if it is free.
    pub fn try_take(&self) -> bool {
        !std::mem::replace(&mut self.0.lock().taken, true)
    }

    /// Waits for it; false if it is still taken at `deadline`.
    pub fn take(&self, rt: &dyn Rt, deadline: Option<Mono>) -> bool {
        loop {
            let free = {
                let mut state = self.0.lock();
                if !std::mem::replace(&mut state.taken, true) {
                    return true;
                }
                state.free.get_or_insert_with(Ticket::new).clone()
            };
            if rt.park(&free, deadline) == Wake::TimedOut {
                return self.try_take();
            }
        }
    }

    /// Waits for it, and holds it until what this returns is dropped.
    pub fn hold(&self, rt: &dyn Rt) -> Holding<'_> {
        self.take(rt, None);
        Holding(self)
    }

    /// Gives it back; its holder does so once.
    pub fn give_back(&self) {
        let free = {
            let mut state = self.0.lock();
            state.taken = false;
            state.free.take()
        };
        if let Some(free) = free {
            free.complete();
        }
    }
}

/// No other thread has the right while it lives.
pub struct Holding<'a>(&'a Exclusive);

impl Drop for Holding<'_> {
    fn drop(&mut self) {
        self.0.give_back();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
    use std::time::Duration;

    use lithify_env::{OsRt, RtOptions};

    use super::*;

    /// Threads that take turns: never two at a time, and all come to their end.
    #[test]
    fn one_has_it_at_a_time() {
        let rt = OsRt::new(RtOptions::default());
        let (right, inside) = (Exclusive::default(), AtomicBool::new(false));
        std::thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| {
                    for _ in 0..500 {
                        assert!(right.take(&rt, None));
                        assert!(!inside.swap(true, SeqCst), "two have it");
                        std::thread::yield_now();
                        inside.store(false, SeqCst);
                        right.give_back();
                    }
                });
            }
        });
        assert!(right.try_take() && !right.try_take());
        let soon = rt.now() + Duration::from_millis(5);
        assert!(!right.take(&rt, Some(soon)), "it was not given back");
        right.give_back();
        assert!(right.take(&rt, Some(soon)));
    }
}
