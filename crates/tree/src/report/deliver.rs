//! Delivers events to listeners: by a job of its own while the database is open, and what is left by
//! the close.

use std::time::Duration;

use lithify_env::sync::Arc;
use lithify_env::{Class, Job, Step};

use crate::shared::Shared;

/// How long a close waits for a listener that does not return, and for jobs that have ended.
const PATIENCE: Duration = Duration::from_secs(10);

impl Shared {
    /// Has what is queued delivered, unless a thread does already.
    pub(crate) fn deliver_events(self: &Arc<Shared>) {
        let listeners = self.events.listeners();
        if listeners.have_heard_all() || !listeners.busy.try_take() {
            return;
        }
        let job = self.resources.alive.counted(Box::new(Deliver { shared: self.clone() }));
        self.resources.env.rt.spawn(Class::Io, job);
    }

    /// Delivers the rest on this thread; false if a listener does not return.
    pub(crate) fn deliver_rest(&self) -> bool {
        let listeners = self.events.listeners();
        if listeners.is_empty() {
            return true;
        }
        let late = self.resources.env.rt.now() + PATIENCE;
        if !listeners.busy.take(&*self.resources.env.rt, Some(late)) {
            return false;
        }
        while listeners.deliver_one(self.mark().listeners()) {}
        listeners.busy.give_back();
        true
    }

    /// Waits until jobs that have ended have let go of what they held, so that functions of the user's go with the
    /// handles; as long as that may take.
    pub(crate) fn wait_for_jobs(&self) {
        let rt = &*self.resources.env.rt;
        let late = rt.now() + PATIENCE;
        self.resources.alive.wait(rt, late);
        self.background.upkeep.wait(rt, late);
    }
}

/// Delivers what is queued.
struct Deliver {
    shared: Arc<Shared>,
}

impl Job for Deliver {
    fn step(&mut self) -> Step {
        let listeners = self.shared.events.listeners();
        if listeners.deliver_one(self.shared.mark().listeners()) {
            return Step::More;
        }
        listeners.busy.give_back();
        Step::Done
    }
    fn panicked(&mut self, _: String) {
        self.shared.events.listeners().busy.give_back();
    }
}
