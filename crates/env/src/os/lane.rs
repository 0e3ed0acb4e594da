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

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Wake as TaskWake, Waker};
use std::thread::{self, JoinHandle};

use super::rt::OsClock;
use crate::clock::Mono;
use crate::rt::{Class, Job, Step, panic_message};
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Arc, Condvar, Mutex, Weak};
use crate::ticket::Ticket;

/// A queue of jobs and its threads.
pub(super) struct Lane {
    class: Class,
    threads: usize,
    nice: u8,
    clock: OsClock,
    closing: AtomicBool,
    state: Mutex<State>,
    work: Condvar,
}

#[derive(Default)]
struct State {
    ready: VecDeque<Task>,
    parked: BTreeMap<u64, Parked>,
    deadlines: BTreeSet<(Mono, u64)>,
    next_task: u64,
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
    pub(super) fn new(class: Class, threads: usize, nice: u8, clock: OsClock) -> Arc<Self> {
        Arc::new(Self {
            class,
            threads,
            nice,
            clock,
            closing: AtomicBool::new(false),
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
        state.ready.push_back(Task { id, job, waker: None });
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
    /// it as started already).
    fn announce(&self, state: &mut State) -> bool {
        self.work.notify_one();
        let start = state.ready.len() > state.idle
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
            Ok(handle) => state.handles.push(handle),
            Err(error) => {
                state.started -= 1;
                if state.started > 0 {
                    return;
                }
                // Nobody will ever come for these: their owners must know.
                let stranded = std::mem::take(&mut state.ready);
                drop(state);
                let message = format!("no {} thread could be started: {error}", self.class.name());
                stranded.into_iter().for_each(|task| bury(task, message.clone()));
            }
        }
    }

    /// The life of a worker thread.
    fn work(self: Arc<Self>) {
        if self.nice > 0 {
            // Refused on some systems; the thread then competes at normal priority.
            let _ = rustix::process::setpriority_process(
                Some(rustix::thread::gettid()),
                i32::from(self.nice),
            );
        }
        while let Some(task) = self.next() {
            self.run(task);
        }
    }

    /// The next ready job, waiting for one; `None` when the lane closes.
    fn next(self: &Arc<Self>) -> Option<Task> {
        let mut state = self.state.lock();
        loop {
            if self.closing.load(Ordering::Acquire) {
                return None;
            }
            state.unpark_due(self.clock);
            if let Some(task) = state.ready.pop_front() {
                // One alarm or deadline may have readied more jobs than it woke threads.
                let start = !state.ready.is_empty() && self.announce(&mut state);
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
                Ok(Step::More) => {}
                Ok(Step::Wait(ticket)) => return self.park(task, ticket, None),
                Ok(Step::WaitUntil(ticket, at)) => return self.park(task, ticket, Some(at)),
                Ok(Step::Done) => return discard(task),
                Err(payload) => return bury(task, panic_message(&*payload)),
            }
        }
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

    /// After `close`: waits for the threads and drops what is left.
    pub(super) fn join(&self) {
        let handles = std::mem::take(&mut self.state.lock().handles);
        for handle in handles {
            // The last owner of the runtime may be a job: its thread cannot wait for itself.
            if handle.thread().id() != thread::current().id() {
                // Workers catch every panic, so there is nothing to learn from the result.
                let _ = handle.join();
            }
        }
        let mut state = self.state.lock();
        let ready = std::mem::take(&mut state.ready);
        let parked = std::mem::take(&mut state.parked);
        drop(state);
        ready.into_iter().chain(parked.into_values().map(|parked| parked.task)).for_each(discard);
    }
}

impl State {
    /// Moves a parked job to the ready queue.
    fn unpark(&mut self, id: u64) {
        let Some(parked) = self.parked.remove(&id) else { return };
        if let Some(at) = parked.deadline {
            self.deadlines.remove(&(at, id));
        }
        self.ready.push_back(parked.task);
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
