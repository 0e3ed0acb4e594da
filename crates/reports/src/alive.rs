//! Jobs that are counted until they have let go of all that they held: a job has told its outcome a moment
//! before its thread drops it, and what it still holds then (inputs, a tree, functions of the user's) looks as if a
//! reader held it, or goes after the close.

use lithify_env::sync::atomic::{AtomicUsize, Ordering};
use lithify_env::sync::{Arc, Mutex};
use lithify_env::{Job, Mono, Rt, Step, Ticket, Urgency, Wake};

/// A count of jobs; clones are the same count.
#[derive(Clone, Default)]
pub struct Alive(Arc<Count>);

#[derive(Default)]
struct Count {
    jobs: AtomicUsize,
    /// Completed and replaced when there are none left.
    none: Mutex<Ticket>,
}

impl Alive {
    /// A job that is counted until it is dropped.
    pub fn counted(&self, job: Box<dyn Job>) -> Box<dyn Job> {
        self.0.jobs.fetch_add(1, Ordering::SeqCst);
        Box::new(Counted { job, _place: Place(self.0.clone()) })
    }
    /// Whether there are any.
    pub fn any(&self) -> bool {
        self.0.jobs.load(Ordering::SeqCst) > 0
    }
    /// Waits until there are none, or it is `late`.
    pub fn wait(&self, rt: &dyn Rt, late: Mono) {
        loop {
            let none = self.0.none.lock().clone();
            if !self.any() || rt.park(&none, Some(late)) == Wake::TimedOut {
                return;
            }
        }
    }
}

/// A job and its place in the count, which is given up last.
struct Counted {
    job: Box<dyn Job>,
    _place: Place,
}

struct Place(Arc<Count>);

impl Drop for Place {
    fn drop(&mut self) {
        if self.0.jobs.fetch_sub(1, Ordering::SeqCst) == 1 {
            std::mem::take(&mut *self.0.none.lock()).complete();
        }
    }
}

impl Job for Counted {
    fn step(&mut self) -> Step {
        self.job.step()
    }
    fn urgency(&self) -> Urgency {
        self.job.urgency()
    }
    fn panicked(&mut self, message: String) {
        self.job.panicked(message);
    }
}
