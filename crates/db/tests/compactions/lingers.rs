//! Threads that take their time to let go of a job that is through.
#![allow(clippy::disallowed_methods, reason = "the threads of the tests are slow")]

use std::time::Duration;

use lithify_env::{Class, Job, Mono, OsRt, Rt, RtOptions, Step, Ticket, Urgency, Wake};

/// The threads: those of these classes hold on to a job for so long.
pub(crate) struct Lingers {
    rt: OsRt,
    classes: &'static [Class],
    hold: Duration,
}

impl Lingers {
    pub(crate) fn new(options: RtOptions, classes: &'static [Class], hold: Duration) -> Lingers {
        Lingers { rt: OsRt::new(options), classes, hold }
    }
}

/// A job that is dropped late.
struct Lingering(Box<dyn Job>, Duration);

impl Job for Lingering {
    fn step(&mut self) -> Step {
        self.0.step()
    }
    fn urgency(&self) -> Urgency {
        self.0.urgency()
    }
    fn panicked(&mut self, message: String) {
        self.0.panicked(message);
    }
}

impl Drop for Lingering {
    fn drop(&mut self) {
        // What it holds is dropped behind this.
        std::thread::sleep(self.1);
    }
}

impl Rt for Lingers {
    fn now(&self) -> Mono {
        self.rt.now()
    }
    fn wall_seconds(&self) -> u64 {
        self.rt.wall_seconds()
    }
    fn seed(&self, who: &str) -> u64 {
        self.rt.seed(who)
    }
    fn spawn(&self, class: Class, job: Box<dyn Job>) {
        match self.classes.contains(&class) {
            true => self.rt.spawn(class, Box::new(Lingering(job, self.hold))),
            false => self.rt.spawn(class, job),
        }
    }
    fn park(&self, ticket: &Ticket, deadline: Option<Mono>) -> Wake {
        self.rt.park(ticket, deadline)
    }
    fn thread_cpu(&self) -> Duration {
        self.rt.thread_cpu()
    }
    fn threads(&self, class: Class) -> usize {
        self.rt.threads(class)
    }
}
