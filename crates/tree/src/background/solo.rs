//! A right that one thread has at a time, and that is waited for through the runtime.
//!
//! Keeps: whoever waits is woken by each who gives it back, and tries again; nobody polls.
//! Leaves to others: what the right is to. It is not handed on in order, so it is for what is rare.

use lithify_env::sync::Mutex;
use lithify_env::{Mono, Rt, Ticket, Wake};

/// The right, or who has it.
#[derive(Default)]
pub(crate) struct Solo(Mutex<State>);

#[derive(Default)]
struct State {
    taken: bool,
    /// Complete once it is given back, if anybody waits.
    free: Option<Ticket>,
}

impl Solo {
    /// Takes it, if nobody has it.
    pub(crate) fn try_take(&self) -> bool {
        !std::mem::replace(&mut self.0.lock().taken, true)
    }

    /// Waits for it; false if it is still taken at `deadline`.
    pub(crate) fn take(&self, rt: &dyn Rt, deadline: Option<Mono>) -> bool {
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

    /// Gives it back; whoever has it does so once.
    pub(crate) fn give_back(&self) {
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
        let (solo, inside) = (Solo::default(), AtomicBool::new(false));
        std::thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| {
                    for _ in 0..500 {
                        assert!(solo.take(&rt, None));
                        assert!(!inside.swap(true, SeqCst), "two have it");
                        std::thread::yield_now();
                        inside.store(false, SeqCst);
                        solo.give_back();
                    }
                });
            }
        });
        assert!(solo.try_take() && !solo.try_take());
        let soon = rt.now() + Duration::from_millis(5);
        assert!(!solo.take(&rt, Some(soon)), "nobody gave it back");
        solo.give_back();
        assert!(solo.take(&rt, Some(soon)));
    }
}
