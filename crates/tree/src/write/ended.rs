//! A log that has ended: closed by a job, if that is asked for, or as it is, once all it held is in tables.
//!
//! Keeps: a log is synced once at most, and after the one before it.
//! Leaves to others: when that is asked for, and what to do if it fails (`logs`).

use lithify_base::{Error, ErrorKind, Result};
use lithify_env::sync::atomic::{AtomicBool, Ordering};
use lithify_env::sync::{Arc, Mutex};
use lithify_env::{Class, Job, RtRef, Step, Ticket, Urgency};
use lithify_files::wal::WalWriter;

/// A log that has ended, until it is closed.
pub(crate) struct Ended {
    /// Until a job closes it, or all it held is in tables.
    wal: Mutex<Option<WalWriter>>,
    /// Done once the log before is closed; `None` if that was so when this one ended.
    before: Option<Ticket>,
    /// There is a job that closes it.
    begun: AtomicBool,
    done: Ticket,
    result: Mutex<Result<()>>,
}

impl Ended {
    /// `wal`, whose log is closed after the one that completes `before`.
    pub(super) fn new(wal: WalWriter, before: Option<Ticket>) -> Arc<Ended> {
        Arc::new(Ended {
            wal: Mutex::new(Some(wal)),
            before,
            begun: AtomicBool::new(false),
            done: Ticket::new(),
            result: Mutex::new(Ok(())),
        })
    }
    /// Has it synced, sealed and closed in the background. Those before it have to be begun, too: the job waits for them.
    pub(crate) fn begin(self: &Arc<Ended>, rt: &RtRef) {
        if !self.begun.swap(true, Ordering::AcqRel) {
            rt.spawn(Class::Io, Box::new(CloseWal(self.clone())));
        }
    }
    /// Closes it as it is, unless the job has come to it: all that it and those before it held is in tables.
    pub(crate) fn abandon(&self) {
        let wal = self.wal.lock().take();
        if let Some(wal) = wal {
            wal.abandon();
            self.done.complete();
        }
    }
    /// Completes once it is durable, or could not be made so, or all it held is in tables. Before the last of these never, if it
    /// is not [begun](Ended::begin).
    pub(crate) fn done(&self) -> &Ticket {
        &self.done
    }
    /// How that went, once it is done.
    pub(crate) fn result(&self) -> Result<()> {
        self.result.lock().clone()
    }
    /// True if it needs no second look.
    pub(super) fn is_over(&self) -> bool {
        self.done.is_done() && self.result.lock().is_ok()
    }
    fn end(&self, result: Result<()>) {
        *self.result.lock() = result;
        self.done.complete();
    }
}

struct CloseWal(Arc<Ended>);

impl Job for CloseWal {
    fn step(&mut self) -> Step {
        let ended = &self.0;
        if let Some(before) = ended.before.as_ref().filter(|t| !t.is_done()) {
            return Step::Wait(before.clone());
        }
        // Its own statement: the lock is not held while the disk works.
        let wal = ended.wal.lock().take();
        if let Some(wal) = wal {
            ended.end(wal.close().map(drop));
        }
        Step::Done
    }
    /// Synced writes wait for it.
    fn urgency(&self) -> Urgency {
        Urgency::FIRST
    }
    fn panicked(&mut self, message: String) {
        self.0.end(Err(Error::new(ErrorKind::Internal, message)));
    }
}
