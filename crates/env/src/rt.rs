//! The runtime seam: time, seeds, background jobs and waiting.
//!
//! A background activity is a [`Job`]: a state machine whose `step` does a bounded piece of work
//! and says what it needs next. The real runtime ([`crate::OsRt`]) steps jobs on worker threads;
//! a simulation steps them one at a time from inside [`Rt::park`], choosing the order from its
//! seed. Code written against this trait runs unchanged in both.
//!
//! Keeps: a job is stepped by one thread at a time; after [`Step::Wait`] it is not stepped again
//! before its ticket is complete. A panic ends the job, never the thread that stepped it.

use std::time::Duration;

use crate::clock::Mono;
use crate::sync::Arc;
use crate::sync::atomic::{AtomicU8, Ordering};
use crate::ticket::Ticket;

/// A shared runtime.
pub type RtRef = Arc<dyn Rt>;

/// What a job is for; each class has worker threads of its own, so that a long compaction never
/// keeps a flush waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Writing memtables to tables.
    Flush,
    /// Merging tables.
    Compact,
    /// Single file transfers, see [`crate::io`].
    Io,
    /// Everything that may wait: deleting files, statistics, checks.
    Upkeep,
}

impl Class {
    /// Every class, in the order of [`Class::index`].
    pub const ALL: [Self; 4] = [Self::Flush, Self::Compact, Self::Io, Self::Upkeep];

    /// Position in [`Class::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Short lower-case name, for thread names and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Flush => "flush",
            Self::Compact => "compact",
            Self::Io => "io",
            Self::Upkeep => "upkeep",
        }
    }
}

/// How urgent a job is next to others of its class that are ready to run. Larger is sooner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Urgency(pub u8);

impl Urgency {
    /// Writers wait for it: flushes, logs, edits of the manifest. Besides going first, such jobs
    /// keep a part of their class's threads free of all others while any of them is at work.
    pub const FIRST: Urgency = Urgency(u8::MAX);
}

/// An urgency that may change while jobs that have it wait. Clones are the same urgency.
#[derive(Clone, Debug, Default)]
pub struct SharedUrgency(Arc<AtomicU8>);

impl SharedUrgency {
    /// Begins as `urgency`.
    pub fn new(urgency: Urgency) -> Self {
        Self(Arc::new(AtomicU8::new(urgency.0)))
    }

    /// What it is now.
    pub fn get(&self) -> Urgency {
        Urgency(self.0.load(Ordering::Relaxed))
    }

    /// Changes it, for jobs that are queued already, too.
    pub fn set(&self, urgency: Urgency) {
        self.0.store(urgency.0, Ordering::Relaxed);
    }
}

/// What a job wants after a step.
#[derive(Debug)]
pub enum Step {
    /// There is more to do at once.
    More,
    /// Nothing to do before the ticket completes.
    Wait(Ticket),
    /// Nothing to do before the ticket completes or the instant has come, whichever is first.
    WaitUntil(Ticket, Mono),
    /// The job is over; it is dropped.
    Done,
}

/// Why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// The ticket is complete.
    Done,
    /// The deadline passed first.
    TimedOut,
}

/// A background activity as a step machine.
pub trait Job: Send {
    /// Does a bounded piece of work: at most one IO call or one slice of merging.
    ///
    /// No lock is held on return, and the step does not block on other jobs, unless it was queued by
    /// [`Rt::spawn_apart`]: it returns [`Step::Wait`] instead.
    fn step(&mut self) -> Step;

    /// How urgent the job is now. Asked often and with the runtime's queue locked: a constant, or a
    /// look at a [`SharedUrgency`].
    fn urgency(&self) -> Urgency {
        Urgency::default()
    }

    /// Told once when a step panicked (with the panic's message), or when the runtime could not
    /// start a thread to run it. The job is dropped afterwards without another step.
    ///
    /// The owner uses this to go read-only and to wake those that wait for the job.
    fn panicked(&mut self, message: String) {
        let _ = message;
    }
}

/// What a panic said, from the payload that `catch_unwind` returns.
pub fn panic_message(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "a panic without a message".to_owned())
}

/// Time, seeds, background jobs and waiting.
pub trait Rt: Send + Sync + 'static {
    /// The current instant; never goes backwards.
    fn now(&self) -> Mono;

    /// Seconds since the Unix epoch, for humans, file properties and the age of files: it may jump, so
    /// nothing else is scheduled by it. Zero if the clock stands before the epoch.
    fn wall_seconds(&self) -> u64;

    /// A seed for the part of the program called `who`; equal names get equal seeds from one
    /// runtime.
    fn seed(&self, who: &str) -> u64;

    /// Queues a job. Of the jobs of one class that are ready the most urgent runs first, of equals
    /// the one that was ready first; one that was passed over often gets its turn all the same.
    ///
    /// A job still unfinished when the runtime is dropped is dropped after its current step.
    fn spawn(&self, class: Class, job: Box<dyn Job>);

    /// Queues a job whose steps may wait for jobs of every class, on a thread that no class counts: for
    /// what is rare. A runtime that steps other jobs inside [`Rt::park`] needs no thread for it.
    fn spawn_apart(&self, job: Box<dyn Job>) {
        self.spawn(Class::Upkeep, job);
    }

    /// Waits until `ticket` is complete or `deadline` has passed; a complete ticket wins.
    fn park(&self, ticket: &Ticket, deadline: Option<Mono>) -> Wake;

    /// Says that threads which were woken might run now: a simulated runtime, of whose threads one moves at
    /// a time, lets others go on here, and the real one does nothing. No lock is held.
    fn breathe(&self) {}

    /// Looks again and again, for some microseconds, whether `ready` is true of something that a thread
    /// at work is about to do; says whether it came to be. It saves the sleep and the wake-up that
    /// waiting would cost. A runtime whose threads take turns looks once.
    fn spin(&self, ready: &dyn Fn() -> bool) -> bool {
        ready()
    }

    /// Processor time the calling thread has used.
    fn thread_cpu(&self) -> Duration;

    /// How many jobs of `class` can run at the same time, at least 1.
    fn threads(&self, class: Class) -> usize;

    /// Whether this is the process that the runtime was made in. False in a forked child, which has
    /// none of its threads: whatever is spawned or waited for there never comes.
    fn is_at_home(&self) -> bool {
        true
    }
}
