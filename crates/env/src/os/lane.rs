//! One class of jobs and the threads that step them.
//!
//! ```text
//!            push                 step -> More: step again on the same thread
//!   (new) ---------> ready ----> stepping ----> Done: dropped
//!                      ^             | Wait, WaitUntil
//!                      +--- parked <-+
//!            ticket complete, or the deadline passed
//! ```
//!
//! Keeps: one lock per lane, never held while a job runs or is dropped; a job is in exactly one
//! of the states above; a wake-up that comes late (its ticket is no longer the awaited one) moves
//! nothing. There is no timer thread: an idle worker sleeps until the earliest deadline.
//!
//! Of the ready jobs the most urgent runs first, of equals the one that was ready first. A job that
//! goes on (`More`) gives way to a ready one that is more urgent. Two rules bound what urgency may do
//! and what it must:
//!
//! - the oldest ready job runs once [`PASSED_OVER`] others were picked before it;
//! - while a job of [`Urgency::FIRST`] is being stepped, others get at most a quarter of the threads:
//!   a transfer that is under way can't be overtaken, so a device's queue must not be full of them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Wake as TaskWake, Waker};

use super::rt::OsClock;
use crate::clock::Mono;
use crate::rt::{Class, Job, Step, Urgency, panic_message};
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::sync::thread::{self, JoinHandle};
use crate::sync::{Arc, Condvar, Mutex, Weak};
use crate::ticket::Ticket;

/// Picks after which the oldest ready job runs whatever its urgency.
const PASSED_OVER: u64 = 64;
/// While a job of [`Urgency::FIRST`] is being stepped, one in so many threads steps others.
const OTHERS: usize = 4;

/// A queue of jobs and its threads.
pub(super) struct Lane {
    class: Class,
    threads: usize,
    /// The nice value of its threads, where it is not left as it is.
    nice: Option<i32>,
    clock: OsClock,
    closing: AtomicBool,
    /// Length of `ready`, for jobs that go on and want to know whether anyone waits.
    waiting: AtomicUsize,
    state: Mutex<State>,
    work: Condvar,
}

#[derive(Default)]
struct State {
    ready: VecDeque<Task>,
    parked: BTreeMap<u64, Parked>,
    deadlines: BTreeSet<(Mono, u64)>,
    next_task: u64,
    /// Jobs picked so far.
    picks: u64,
    /// Jobs being stepped, first ones and others.
    first: usize,
    others: usize,
    /// Threads that sleep on `work`.
    idle: usize,
    /// Threads that run or are about to.
    started: usize,
    handles: Vec<JoinHandle<()>>,
}

/// A job with its number in the lane.
struct Task {
    id: u64,
    job: Box<dyn Job>,
    /// Made at the first wait, then reused, so that a ticket keeps one copy per job.
    waker: Option<Waker>,
    /// Value of `picks` when it was last made ready.
    ready_since: u64,
    /// Counted among `first` while it is stepped.
    is_first: bool,
}

/// A job that waits.
struct Parked {
    task: Task,
    ticket: Ticket,
    deadline: Option<Mono>,
}

/// Moves one job back to the ready queue when its ticket completes.
struct Alarm {
    lane: Weak<Lane>,
    id: u64,
}

impl TaskWake for Alarm {
    fn wake(self: Arc<Self>) {
        if let Some(lane) = self.lane.upgrade() {
            lane.ring(self.id);
        }
    }
}

impl Lane {
    pub(super) fn new(
        class: Class,
        threads: usize,
        nice: Option<i32>,
        clock: OsClock,
    ) -> Arc<Self> {
        Arc::new(Self {
            class,
            threads,
            nice,
            clock,
            closing: AtomicBool::new(false),
            waiting: AtomicUsize::new(0),
            state: Mutex::default(),
            work: Condvar::new(),
        })
    }

    pub(super) fn threads(&self) -> usize {
        self.threads
    }

    /// Queues a new job.
    pub(super) fn push(self: &Arc<Self>, job: Box<dyn Job>) {
        let mut state = self.state.lock();
        let id = state.next_task;
        state.next_task += 1;
        state.make_ready(Task { id, job, waker: None, ready_since: 0, is_first: false });
        let start = self.announce(&mut state);
        drop(state);
        if start {
            self.start_thread();
        }
    }

    /// The ticket of a parked job is complete.
    fn ring(self: &Arc<Self>, id: u64) {
        let mut state = self.state.lock();
        if !state.parked.get(&id).is_some_and(|parked| parked.ticket.is_done()) {
            return;
        }
        state.unpark(id);
        let start = self.announce(&mut state);
        drop(state);
        if start {
            self.start_thread();
        }
    }

    /// After a push to `ready`: wakes a thread, or says that one should be started (and counts
    /// it as started already), if there is a job that may run. A thread that is woken for nothing
    /// costs more than many jobs do.
    fn announce(&self, state: &mut State) -> bool {
        self.waiting.store(state.ready.len(), Ordering::Relaxed);
        if !state.can_pick(self.threads) {
            return false;
        }
        if state.idle > 0 {
            self.work.notify_one();
        }
        let start = state.ready.len() > state.idle
            && state.started < self.threads
            && !self.closing.load(Ordering::Acquire);
        state.started += usize::from(start);
        start
    }

    /// Whether a thread should be started because jobs wait for an instant and every thread that is
    /// there has work, maybe for long; counts it as started already.
    fn lacks_watch(&self, state: &mut State) -> bool {
        let start = !state.deadlines.is_empty()
            && state.idle == 0
            && state.started < self.threads
            && !self.closing.load(Ordering::Acquire);
        state.started += usize::from(start);
        start
    }

    fn start_thread(self: &Arc<Self>) {
        let lane = Arc::clone(self);
        let builder = thread::Builder::new().name(format!("lithify-{}", self.class.name()));
        let result = builder.spawn(move || lane.work());
        let mut state = self.state.lock();
        match result {
            Ok(handle) => {
                state.handles.push(handle);
                self.tell_closer();
            }
            Err(error) => {
                state.started -= 1;
                self.tell_closer();
                if state.started > 0 {
                    return;
                }
                // No thread will ever run these: their owners must know.
                let stranded = std::mem::take(&mut state.ready);
                drop(state);
                let message = format!("no {} thread could be started: {error}", self.class.name());
                stranded.into_iter().for_each(|task| bury(task, message.clone()));
            }
        }
    }

    /// The life of a worker thread.
    fn work(self: Arc<Self>) {
        if let Some(nice) = self.nice {
            // Refused on some systems; the thread then competes as an equal.
            let thread = Some(rustix::thread::gettid());
            let _ = rustix::process::setpriority_process(thread, nice);
        }
        let mut before = None;
        while let Some(task) = self.next(before) {
            before = Some(task.is_first);
            self.run(task);
        }
    }

    /// The next job to step, waiting for one; `None` when the lane closes. `before` says whether
    /// the job that the caller has stepped before was a first one.
    fn next(self: &Arc<Self>, before: Option<bool>) -> Option<Task> {
        let mut state = self.state.lock();
        match before {
            None => {}
            Some(true) => state.first -= 1,
            Some(false) => state.others -= 1,
        }
        loop {
            if self.closing.load(Ordering::Acquire) {
                return None;
            }
            state.unpark_due(self.clock);
            if let Some(task) = state.pick(self.threads) {
                self.waiting.store(state.ready.len(), Ordering::Relaxed);
                // One alarm or deadline may have readied more jobs than it woke threads, and the
                // end of a first job may have made room for more than one other.
                let start = match state.ready.is_empty() {
                    false => self.announce(&mut state),
                    true => self.lacks_watch(&mut state),
                };
                drop(state);
                if start {
                    self.start_thread();
                }
                return Some(task);
            }
            state.idle += 1;
            let earliest = state.deadlines.first().and_then(|&(at, _)| self.clock.instant(at));
            match earliest {
                Some(at) => drop(self.work.wait_until(&mut state, at)),
                None => self.work.wait(&mut state),
            }
            state.idle -= 1;
        }
    }

    /// Steps a job until it waits, ends, panics or the lane closes.
    fn run(self: &Arc<Self>, mut task: Task) {
        loop {
            match catch_unwind(AssertUnwindSafe(|| task.job.step())) {
                Ok(Step::More) if self.closing.load(Ordering::Relaxed) => return discard(task),
                Ok(Step::More) if self.waiting.load(Ordering::Relaxed) > 0 => {
                    match self.give_way(task) {
                        Some(kept) => task = kept,
                        None => return,
                    }
                }
                Ok(Step::More) => {}
                Ok(Step::Wait(ticket)) => return self.park(task, ticket, None),
                Ok(Step::WaitUntil(ticket, at)) => return self.park(task, ticket, Some(at)),
                Ok(Step::Done) => return discard(task),
                Err(payload) => return bury(task, panic_message(&*payload)),
            }
        }
    }

    /// Makes a job that could go on ready again if a more urgent one waits; else gives it back.
    fn give_way(&self, task: Task) -> Option<Task> {
        let mut state = self.state.lock();
        let own = task.job.urgency();
        if !state.ready.iter().any(|t| t.job.urgency() > own) {
            return Some(task);
        }
        // The thread looks for the next job at once, so no other need be woken.
        state.make_ready(task);
        None
    }

    fn park(self: &Arc<Self>, mut task: Task, ticket: Ticket, deadline: Option<Mono>) {
        let id = task.id;
        let alarm = || Waker::from(Arc::new(Alarm { lane: Arc::downgrade(self), id }));
        let waker = task.waker.get_or_insert_with(alarm).clone();
        let mut state = self.state.lock();
        if let Some(at) = deadline {
            state.deadlines.insert((at, id));
            // An idle thread may sleep past the new deadline while this one finds other work.
            if state.deadlines.first() == Some(&(at, id)) {
                self.work.notify_one();
            }
        }
        state.parked.insert(id, Parked { task, ticket: ticket.clone(), deadline });
        drop(state);
        // Only now, so that an alarm finds the job parked.
        if !ticket.watch(&waker) {
            self.ring(id);
        }
    }

    /// Lets no further step begin.
    pub(super) fn close(&self) {
        // Under the lock, so that no thread is between its look at the flag and its sleep.
        let _state = self.state.lock();
        self.closing.store(true, Ordering::Release);
        self.work.notify_all();
    }

    /// A caller that waits in `join` for the handles of all threads looks again.
    fn tell_closer(&self) {
        if self.closing.load(Ordering::Acquire) {
            self.work.notify_all();
        }
    }

    /// After `close`: waits for the threads and drops what is left.
    pub(super) fn join(&self) {
        let (mut joined, mut state) = (0, self.state.lock());
        // Who starts a thread hands in its handle later, when it may be stepping a job already.
        while joined < state.started {
            let handles = std::mem::take(&mut state.handles);
            if handles.is_empty() {
                self.work.wait(&mut state);
                continue;
            }
            drop(state);
            joined += handles.len();
            for handle in handles {
                // The last owner of the runtime may be a job: its thread cannot wait for itself.
                if handle.thread().id() != thread::current().id() {
                    // Workers catch every panic, so there is nothing to learn from the result.
                    let _ = handle.join();
                }
            }
            state = self.state.lock();
        }
        let ready = std::mem::take(&mut state.ready);
        let parked = std::mem::take(&mut state.parked);
        drop(state);
        ready.into_iter().chain(parked.into_values().map(|parked| parked.task)).for_each(discard);
    }
}

impl State {
    /// Puts a job at the end of the ready queue.
    fn make_ready(&mut self, mut task: Task) {
        task.ready_since = self.picks;
        self.ready.push_back(task);
    }

    /// Whether jobs that are no first ones have all the threads they may have.
    fn is_capped(&self, threads: usize) -> bool {
        self.first > 0 && self.others >= (threads / OTHERS).max(1)
    }

    /// Whether [`pick`](State::pick) would find a job.
    fn can_pick(&self, threads: usize) -> bool {
        match self.is_capped(threads) {
            true => self.ready.iter().any(|t| t.job.urgency() == Urgency::FIRST),
            false => !self.ready.is_empty(),
        }
    }

    /// Takes the ready job whose turn it is, if there is one and it may run beside the others.
    fn pick(&mut self, threads: usize) -> Option<Task> {
        let capped = self.is_capped(threads);
        let oldest = self.ready.front()?;
        let at = match !capped && self.picks - oldest.ready_since >= PASSED_OVER {
            true => 0,
            false => {
                let jobs = self.ready.iter().map(|t| t.job.urgency()).enumerate();
                jobs.max_by_key(|&(at, urgency)| (urgency, Reverse(at)))?.0
            }
        };
        let is_first = self.ready[at].job.urgency() == Urgency::FIRST;
        if capped && !is_first {
            return None;
        }
        let mut task = self.ready.remove(at)?;
        task.is_first = is_first;
        match is_first {
            true => self.first += 1,
            false => self.others += 1,
        }
        self.picks += 1;
        Some(task)
    }

    /// Moves a parked job to the ready queue.
    fn unpark(&mut self, id: u64) {
        let Some(parked) = self.parked.remove(&id) else { return };
        if let Some(at) = parked.deadline {
            self.deadlines.remove(&(at, id));
        }
        self.make_ready(parked.task);
    }

    /// Moves every job whose deadline has passed to the ready queue.
    fn unpark_due(&mut self, clock: OsClock) {
        if self.deadlines.is_empty() {
            return;
        }
        let now = clock.now();
        while let Some(&(at, id)) = self.deadlines.first()
            && at <= now
        {
            self.unpark(id);
        }
    }
}

/// Drops a job; a panic in its destructor stays here.
fn discard(task: Task) {
    let _ = catch_unwind(AssertUnwindSafe(|| drop(task)));
}

/// Tells a job that it failed, then drops it.
fn bury(mut task: Task, message: String) {
    let _ = catch_unwind(AssertUnwindSafe(|| task.job.panicked(message)));
    discard(task);
}
