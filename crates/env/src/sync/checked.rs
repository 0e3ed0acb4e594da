//! The locks of a model checker, shuttle or loom, with `parking_lot`'s signatures.
//!
//! Keeps: every operation is a place where the checker may switch threads.
//!
//! Time is a number that waits move: a wait with a deadline lets the others run for a little, then
//! takes the deadline for passed. So a deadline may pass at any moment, as on a machine that is slow
//! enough, and a schedule needs no time at all.
#![allow(missing_docs, reason = "the documentation is `parking_lot`'s")]

use std::cell::Cell;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::PoisonError;
use std::time::{Duration, Instant};

#[cfg(loom)]
use loom::{sync as model, thread};
#[cfg(shuttle)]
use shuttle::{sync as model, thread};

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

/// A poisoned lock is left to whoever panicked: the checker ends the run.
fn sound<T>(result: Result<T, PoisonError<T>>) -> T {
    result.unwrap_or_else(PoisonError::into_inner)
}

pub struct Mutex<T>(model::Mutex<T>);

pub struct MutexGuard<'a, T> {
    mutex: &'a Mutex<T>,
    /// `None` while it waits.
    held: Option<model::MutexGuard<'a, T>>,
}

impl<T> Mutex<T> {
    pub fn new(value: T) -> Self {
        Self(model::Mutex::new(value))
    }
    pub fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard { mutex: self, held: Some(sound(self.0.lock())) }
    }
    pub fn into_inner(self) -> T {
        sound(self.0.into_inner())
    }
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

pub struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    pub fn timed_out(&self) -> bool {
        self.0
    }
}

pub struct Condvar(model::Condvar);

impl Condvar {
    #[expect(clippy::new_without_default, reason = "nobody asks for it")]
    pub fn new() -> Self {
        Self(model::Condvar::new())
    }
    pub fn notify_one(&self) {
        self.0.notify_one();
    }
    pub fn notify_all(&self) {
        self.0.notify_all();
    }
    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        let held = guard.held.take().expect("held but for a wait");
        guard.held = Some(sound(self.0.wait(held)));
    }
    /// Never learns of a notification: whoever waits looks for itself afterwards.
    pub fn wait_until<T>(&self, guard: &mut MutexGuard<'_, T>, at: Instant) -> WaitTimeoutResult {
        guard.held = None;
        for _ in 0..TURNS {
            thread::yield_now();
        }
        PRESENT.set(PRESENT.get().max(Some(at)));
        guard.held = Some(sound(guard.mutex.0.lock()));
        WaitTimeoutResult(true)
    }
}

pub struct RwLock<T>(model::RwLock<T>);

pub type RwLockReadGuard<'a, T> = model::RwLockReadGuard<'a, T>;
pub type RwLockWriteGuard<'a, T> = model::RwLockWriteGuard<'a, T>;

impl<T> RwLock<T> {
    pub fn new(value: T) -> Self {
        Self(model::RwLock::new(value))
    }
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        sound(self.0.read())
    }
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        sound(self.0.write())
    }
    pub fn get_mut(&mut self) -> &mut T {
        sound(self.0.get_mut())
    }
}

impl<T: Default> Default for RwLock<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}
