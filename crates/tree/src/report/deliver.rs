//! Delivers events to listeners: by a job of its own while the database is open, and what is left by
//! the close.

use std::time::Duration;

use lithify_env::sync::Arc;
use lithify_env::{Class, Job, Step};

use crate::shared::Shared;

/// How long a close waits for a listener that does not return.
const PATIENCE: Duration = Duration::from_secs(10);

impl Shared {
    /// Has what is queued delivered, unless a thread does already.
    pub(crate) fn deliver_events(self: &Arc<Shared>) {
        let listeners = self.events.listeners();
        if listeners.have_heard_all() || !listeners.busy.try_take() {
            return;
        }
        self.resources.env.rt.spawn(Class::Io, Box::new(Deliver { shared: self.clone() }));
    }

    /// Delivers the rest on this thread; unless a listener does not return.
    pub(crate) fn deliver_rest(&self) {
        let listeners = self.events.listeners();
        if listeners.is_empty() {
            return;
        }
        let late = self.resources.env.rt.now() + PATIENCE;
        if !listeners.busy.take(&*self.resources.env.rt, Some(late)) {
            return;
        }
        while listeners.deliver_one(self.mark().listeners()) {}
        listeners.busy.give_back();
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
