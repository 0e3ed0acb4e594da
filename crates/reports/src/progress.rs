//! Progress of background work: who waits for it is told of each step, and a close waits for what is
//! under way.

use lithify_env::Ticket;
use lithify_env::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use lithify_env::sync::{Arc, Mutex};

/// What has been done in the background, and what is being done.
#[derive(Default)]
pub struct Progress {
    /// Completed and replaced whenever something was installed, failed or ended.
    ticket: Mutex<Ticket>,
    /// Answers of cores that are being carried out: some of it no other thread can see yet.
    under_way: AtomicUsize,
    /// Bytes that flushes and compactions moved since the cores were told.
    pub moved: Arc<AtomicU64>,
    /// The database is closed, or about to be.
    pub closed: AtomicBool,
}

impl Progress {
    /// Wakes all that wait.
    pub fn made(&self) {
        std::mem::take(&mut *self.ticket.lock()).complete();
    }
    /// Completed with the next step.
    pub fn next(&self) -> Ticket {
        self.ticket.lock().clone()
    }
    /// Whether anything is under way.
    pub fn is_under_way(&self) -> bool {
        self.under_way.load(Ordering::SeqCst) > 0
    }
}

/// While it lives, a close waits: for commands handed out and not carried out, and for edits being
/// written.
pub struct UnderWay(Arc<Progress>);

impl UnderWay {
    /// Something is under way from now on.
    pub fn new(progress: &Arc<Progress>) -> UnderWay {
        progress.under_way.fetch_add(1, Ordering::SeqCst);
        UnderWay(progress.clone())
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let last = self.0.under_way.fetch_sub(1, Ordering::SeqCst) == 1;
        if last && self.0.closed.load(Ordering::SeqCst) {
            self.0.made();
        }
    }
}
