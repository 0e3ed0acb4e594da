//! A runtime of one thread and a clock of its own: jobs take turns, and time passes when all of them wait.

use std::time::Duration;

use lithify_env::sync::Mutex;
use lithify_env::sync::atomic::{AtomicU64, Ordering::SeqCst};
use lithify_env::{Class, Job, Mono, Rt, Step, Ticket, Wake};

/// Steps after which a test has hung.
const MOST: u64 = 5_000_000;

/// The runtime.
#[derive(Default)]
pub(crate) struct Stepped {
    now: AtomicU64,
    steps: AtomicU64,
    jobs: Mutex<Vec<Waiting>>,
}

struct Waiting {
    job: Box<dyn Job>,
    ticket: Option<Ticket>,
    until: Option<Mono>,
}

impl Stepped {
    /// Steps so far.
    pub(crate) fn steps(&self) -> u64 {
        self.steps.load(SeqCst)
    }

    /// Lets time pass.
    pub(crate) fn pass(&self, time: Duration) {
        self.now.fetch_add(time.as_nanos() as u64, SeqCst);
    }

    /// Runs `job`, and all that it spawns, to the end.
    pub(crate) fn run(&self, job: Box<dyn Job>) {
        self.spawn(Class::Compact, job);
        while self.turn() {}
    }

    /// One step of the first job that is ready; false if there is no job left.
    fn turn(&self) -> bool {
        let now = self.now();
        let mut jobs = self.jobs.lock();
        let ready = |w: &Waiting| {
            w.ticket.as_ref().is_none_or(Ticket::is_done) || w.until.is_some_and(|at| at <= now)
        };
        let Some(at) = jobs.iter().position(ready) else {
            let Some(next) = jobs.iter().filter_map(|w| w.until).min() else {
                assert!(jobs.is_empty(), "all jobs wait for what does not come");
                return false;
            };
            self.now.store(next.0, SeqCst);
            return true;
        };
        let mut waiting = jobs.remove(at);
        drop(jobs);
        assert!(self.steps.fetch_add(1, SeqCst) < MOST, "a job spins");
        let (ticket, until) = match waiting.job.step() {
            Step::Done => return true,
            Step::More => (None, None),
            Step::Wait(ticket) => (Some(ticket), None),
            Step::WaitUntil(ticket, at) => (Some(ticket), Some(at)),
        };
        self.jobs.lock().push(Waiting { ticket, until, ..waiting });
        true
    }
}

impl Rt for Stepped {
    fn now(&self) -> Mono {
        Mono(self.now.load(SeqCst))
    }
    fn wall_seconds(&self) -> u64 {
        1_700_000_000
    }
    fn seed(&self, _who: &str) -> u64 {
        1
    }
    fn spawn(&self, _class: Class, job: Box<dyn Job>) {
        self.jobs.lock().push(Waiting { job, ticket: None, until: None });
    }
    fn park(&self, ticket: &Ticket, _deadline: Option<Mono>) -> Wake {
        while !ticket.is_done() {
            assert!(self.turn(), "a ticket is never completed");
        }
        Wake::Done
    }
    fn thread_cpu(&self) -> Duration {
        Duration::ZERO
    }
    fn threads(&self, _class: Class) -> usize {
        1
    }
}
