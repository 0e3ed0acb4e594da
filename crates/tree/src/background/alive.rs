//! Jobs that are counted until they have let go of all that they held: a job has told its outcome a moment
//! before its thread drops it, and what it still holds then (inputs, a tree) looks as if a reader held it.

use lithify_env::sync::Arc;
use lithify_env::sync::atomic::Ordering;
use lithify_env::{Job, Step, Urgency};

use crate::shared::Shared;

/// A job and its place in the count, which is given up last.
struct Counted<J> {
    job: J,
    _alive: Alive,
}

struct Alive(Arc<Shared>);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.background.alive.fetch_sub(1, Ordering::SeqCst);
    }
}

impl<J: Job> Job for Counted<J> {
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

impl Shared {
    /// A job that holds tables, to be queued.
    pub(crate) fn counted(self: &Arc<Shared>, job: impl Job + 'static) -> Box<dyn Job> {
        self.background.alive.fetch_add(1, Ordering::SeqCst);
        Box::new(Counted { job, _alive: Alive(self.clone()) })
    }
    /// True while such a job holds something.
    pub(crate) fn has_jobs_alive(&self) -> bool {
        self.background.alive.load(Ordering::SeqCst) > 0
    }
}
