//! Calls from within: user code (a comparator, merge operator, compaction filter or prefix extractor) that
//! calls the database which is calling it.
//!
//! Reads take no lock that user code is called under, so they work anywhere. What writes, waits for
//! background work or ends the database would wait for its own caller: while a write inserts, the thread
//! has the write turn; while a job merges, the job can't end; while the core decides, its lock is held. So
//! a thread keeps a list of the databases it is at work for, and such calls are refused there at once.
//!
//! ```text
//!   put ── has the turn of A ── comparator of A ── put into A     refused: it is on the list
//!   compaction of A ── filter of A ── put into B                  B is not on the list: it works
//!                                       └─ comparator of B ── put into A or B     both are
//! ```
//!
//! Keeps: a mark is set around operations, never around a single comparison, so neither reads nor
//! comparisons pay for it. A write pays some five instructions, of three thousand.
//! Leaves to others: user code that has another thread call and waits for it; nothing here can see that.

use crate::alive::Alive;
use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lithify_base::Error;
use lithify_env::sync::Arc;
use lithify_env::{Class, Job, Mono, Rt, RtRef, Step, Ticket, Urgency, Wake};

/// Most marks of a thread. Each needs user code that calls another database inside that of the one
/// before; what goes deeper is not marked.
const DEPTH: usize = 16;

/// What a thread may be at work for: a database, its listeners, or the core of one family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark(u64);

impl Mark {
    /// One that is unlike all others.
    pub fn fresh() -> Mark {
        // Not one of a model's: those are of one run, and this outlives all.
        static NEXT: AtomicU64 = AtomicU64::new(1);
        // The lowest bit tells listeners.
        Mark(NEXT.fetch_add(2, Ordering::Relaxed))
    }
    /// That of the listeners of this database.
    pub fn listeners(self) -> Mark {
        Mark(self.0 + 1)
    }
    /// Whether this thread is at work for it. Threads of a model share a list, so there it never is.
    #[inline]
    pub fn is_on(self) -> bool {
        !cfg!(any(shuttle, loom)) && MARKS.with(|marks| marks.has(self.0))
    }
    /// This thread is at work for it until what this returns is dropped.
    #[inline]
    pub fn set(self) -> At {
        MARKS.with(|marks| marks.push(self.0));
        At(PhantomData)
    }
    /// The same, unless it [is](Mark::is_on) already.
    #[inline]
    pub fn set_unless_on(self) -> Option<At> {
        MARKS.with(|marks| {
            let is_on = !cfg!(any(shuttle, loom)) && marks.has(self.0);
            (!is_on).then(|| {
                marks.push(self.0);
                At(PhantomData)
            })
        })
    }
}

/// While it lives, the thread is at work for something. It stays on its thread, and those of a thread end
/// in the order opposite to that in which they began.
pub struct At(PhantomData<*const ()>);

impl Drop for At {
    #[inline]
    fn drop(&mut self) {
        MARKS.with(|marks| marks.depth.set(marks.depth.get() - 1));
    }
}

thread_local! {
    static MARKS: Marks = const { Marks { depth: Cell::new(0), of: [const { Cell::new(0) }; DEPTH] } };
}

struct Marks {
    depth: Cell<usize>,
    of: [Cell<u64>; DEPTH],
}

impl Marks {
    #[inline]
    fn push(&self, mark: u64) {
        let depth = self.depth.get();
        if let Some(place) = self.of.get(depth) {
            place.set(mark);
        }
        self.depth.set(depth + 1);
    }
    #[inline]
    fn has(&self, mark: u64) -> bool {
        self.depth.get() > 0 && self.of.iter().take(self.depth.get()).any(|of| of.get() == mark)
    }
}

/// What a call from within is told.
#[cold]
pub fn refusal() -> Error {
    Error::invalid(
        "called from within a comparator, merge operator, compaction filter or prefix extractor of this \
         very database, which waits for it: only reads work there; call it once that has returned, or \
         have another thread do it, and don't wait for that thread; nothing was changed",
    )
}

/// What a listener is told that closes its own database.
#[cold]
pub fn refusal_of_listener() -> Error {
    Error::invalid(
        "a listener can't close its own database, which waits for listeners to return; close it on \
         another thread",
    )
}

/// A runtime whose jobs are at work for a database.
struct Marking {
    inner: RtRef,
    mark: Mark,
    alive: Alive,
}

/// `rt` for the jobs of a database that call user code, which are counted by `alive`.
pub fn marking(rt: RtRef, mark: Mark, alive: Alive) -> RtRef {
    Arc::new(Marking { inner: rt, mark, alive })
}

impl Rt for Marking {
    fn now(&self) -> Mono {
        self.inner.now()
    }
    fn wall_seconds(&self) -> u64 {
        self.inner.wall_seconds()
    }
    fn seed(&self, who: &str) -> u64 {
        self.inner.seed(who)
    }
    fn spawn(&self, class: Class, job: Box<dyn Job>) {
        match class {
            // A table that is opened for a compaction compares the keys of its index.
            Class::Flush | Class::Compact | Class::Io => {
                let job = Box::new(Marked { job, mark: self.mark });
                self.inner.spawn(class, self.alive.counted(job));
            }
            Class::Upkeep => self.inner.spawn(class, self.alive.counted(job)),
        }
    }
    fn spawn_apart(&self, job: Box<dyn Job>) {
        self.inner.spawn_apart(job);
    }
    fn park(&self, ticket: &Ticket, deadline: Option<Mono>) -> Wake {
        self.inner.park(ticket, deadline)
    }
    fn breathe(&self) {
        self.inner.breathe();
    }
    fn spin(&self, ready: &dyn Fn() -> bool) -> bool {
        self.inner.spin(ready)
    }
    fn thread_cpu(&self) -> Duration {
        self.inner.thread_cpu()
    }
    fn threads(&self, class: Class) -> usize {
        self.inner.threads(class)
    }
    fn is_at_home(&self) -> bool {
        self.inner.is_at_home()
    }
}

/// A job that is at work for a database.
struct Marked {
    job: Box<dyn Job>,
    mark: Mark,
}

impl Job for Marked {
    fn step(&mut self) -> Step {
        let _at = self.mark.set();
        self.job.step()
    }
    fn urgency(&self) -> Urgency {
        self.job.urgency()
    }
    fn panicked(&mut self, message: String) {
        self.job.panicked(message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_of_their_thread_and_end_in_turn() {
        let (a, b) = (Mark::fresh(), Mark::fresh());
        let at_a = a.set();
        assert!(a.is_on() && !b.is_on() && !a.listeners().is_on());
        {
            let _at_b = b.set();
            assert!(a.is_on() && b.is_on());
            std::thread::scope(|s| s.spawn(|| assert!(!a.is_on() && !b.is_on())).join().unwrap());
        }
        assert!(a.is_on() && !b.is_on());
        assert!(a.set_unless_on().is_none() && a.is_on());
        drop(at_a);
        drop(a.set_unless_on().expect("it is on no more"));
        assert!(!a.is_on());
        let deep: Vec<At> = (0..2 * DEPTH).map(|_| a.set()).collect();
        assert!(a.is_on() && !b.is_on());
        // A vector drops its first element first: only their number counts.
        drop(deep);
        assert!(!a.is_on() && !b.is_on());
    }
}
