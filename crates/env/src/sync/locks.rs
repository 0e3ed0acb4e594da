//! Locks without poisoning, over the standard library or a model checker (shuttle, loom).
//!
//! Keeps: a lock is nothing but its own memory. A forked child can use all locks that no thread of its
//! parent held, and what waits for a lock of the parent stays there. That is why these are not
//! `parking_lot`'s: it keeps all waiting threads of a process in one table, where a child finds
//! those of its parent, whose stacks its own threads overwrite.
//!
//! Under a model checker every operation is a place where it may switch threads, and time is a number
//! that waits move: a wait with a deadline lets the others run for a little, then takes the deadline for
//! passed. So a deadline may pass at any moment, as on a machine that is slow enough, and a schedule
//! needs no time at all.
#![allow(clippy::disallowed_types, reason = "this is what stands for them everywhere else")]

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::PoisonError;
use std::time::Instant;

#[cfg(loom)]
use loom::sync as model;
#[cfg(shuttle)]
use shuttle::sync as model;
#[cfg(not(any(shuttle, loom)))]
use std::sync as model;

/// What a panic left is used on: a thread that panics inside a lock leaves it whole, or halts the rest by
/// other means.
fn sound<T>(result: Result<T, PoisonError<T>>) -> T {
    result.unwrap_or_else(PoisonError::into_inner)
}

/// Mutual exclusion.
pub struct Mutex<T>(model::Mutex<T>);

/// The right to what a [`Mutex`] holds, until it is dropped.
pub struct MutexGuard<'a, T> {
    #[cfg(any(shuttle, loom))]
    mutex: &'a Mutex<T>,
    /// `None` while it waits.
    held: Option<model::MutexGuard<'a, T>>,
}

impl<T> Mutex<T> {
    /// A free lock over `value`.
    pub fn new(value: T) -> Self {
        Self(model::Mutex::new(value))
    }

    /// Waits until the lock is free, and takes it.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard {
            #[cfg(any(shuttle, loom))]
            mutex: self,
            held: Some(sound(self.0.lock())),
        }
    }

    /// What it held.
    pub fn into_inner(self) -> T {
        sound(self.0.into_inner())
    }

    /// What it holds; no other thread can have it.
    pub fn get_mut(&mut self) -> &mut T {
        sound(self.0.get_mut())
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mutex")
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        self.held.as_ref().expect("held but for a wait")
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.held.as_mut().expect("held but for a wait")
    }
}

/// Whether a wait ended because its deadline passed.
#[derive(Debug)]
pub struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    /// True if the waiter was not woken in time.
    pub fn timed_out(&self) -> bool {
        self.0
    }
}

/// Where threads that hold a [`Mutex`] wait for others to change what it holds. Waits may end for no
/// reason: look again.
pub struct Condvar(model::Condvar);

impl Condvar {
    /// No thread waits.
    pub fn new() -> Self {
        Self(model::Condvar::new())
    }

    /// Wakes one of those who wait.
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Wakes all who wait.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }

    /// Lets the lock go, waits to be woken, and takes it again.
    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        let held = guard.held.take().expect("held but for a wait");
        guard.held = Some(sound(self.0.wait(held)));
    }

    /// [`wait`](Self::wait), until `condition` is false.
    pub fn wait_while<T>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        mut condition: impl FnMut(&mut T) -> bool,
    ) {
        while condition(guard) {
            self.wait(guard);
        }
    }

    /// [`wait`](Self::wait), at most until `at`.
    #[cfg(not(any(shuttle, loom)))]
    pub fn wait_until<T>(&self, guard: &mut MutexGuard<'_, T>, at: Instant) -> WaitTimeoutResult {
        let left = at.saturating_duration_since(crate::os::rt::present());
        let held = guard.held.take().expect("held but for a wait");
        let (held, result) = sound(self.0.wait_timeout(held, left));
        guard.held = Some(held);
        WaitTimeoutResult(result.timed_out())
    }

    /// Never learns of a notification: a waiter looks for itself afterwards.
    #[cfg(any(shuttle, loom))]
    pub fn wait_until<T>(&self, guard: &mut MutexGuard<'_, T>, at: Instant) -> WaitTimeoutResult {
        guard.held = None;
        time::pass_to(at);
        guard.held = Some(sound(guard.mutex.0.lock()));
        WaitTimeoutResult(true)
    }
}

impl Default for Condvar {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Condvar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Condvar")
    }
}

/// Any number of readers, or one writer.
pub struct RwLock<T>(model::RwLock<T>);

/// The right to read what a [`RwLock`] holds.
pub type RwLockReadGuard<'a, T> = model::RwLockReadGuard<'a, T>;
/// The right to change what a [`RwLock`] holds.
pub type RwLockWriteGuard<'a, T> = model::RwLockWriteGuard<'a, T>;

impl<T> RwLock<T> {
    /// A free lock over `value`.
    pub fn new(value: T) -> Self {
        Self(model::RwLock::new(value))
    }

    /// Waits until no thread writes, and reads.
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        sound(self.0.read())
    }

    /// Waits until it is alone, and writes.
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        sound(self.0.write())
    }

    /// What it holds; no other thread can have it.
    pub fn get_mut(&mut self) -> &mut T {
        sound(self.0.get_mut())
    }
}

impl<T: Default> Default for RwLock<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RwLock")
    }
}

/// The time of a model.
#[cfg(any(shuttle, loom))]
pub(crate) mod time {
    use std::cell::Cell;
    use std::time::{Duration, Instant};

    #[cfg(loom)]
    use loom::thread;
    #[cfg(shuttle)]
    use shuttle::thread;

    /// Turns of the others before a deadline is taken for passed.
    const TURNS: u32 = 8;
    /// What a look at the clock takes.
    const TICK: Duration = Duration::from_micros(1);

    thread_local! {
        /// The present. All threads of a model run on one thread of the machine.
        static PRESENT: Cell<Option<Instant>> = const { Cell::new(None) };
    }

    /// Time begins anew at `origin`.
    pub(crate) fn begin_at(origin: Instant) {
        PRESENT.set(Some(origin));
    }

    /// The present, a little later with each look.
    pub(crate) fn present() -> Instant {
        let now = PRESENT.get().expect("a runtime began time") + TICK;
        PRESENT.set(Some(now));
        now
    }

    /// The others have their turns, and it is `at` or later.
    pub(super) fn pass_to(at: Instant) {
        for _ in 0..TURNS {
            thread::yield_now();
        }
        PRESENT.set(PRESENT.get().max(Some(at)));
    }
}
