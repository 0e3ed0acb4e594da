//! The only door to atomics and locks in this room, so that a model checker can stand behind it.

pub(crate) use lithify_env::sync::Mutex;
#[cfg(not(shuttle))]
pub(crate) use lithify_env::sync::atomic::{
    AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};
// Shuttle looks at locks; what has none here is loom's, and a memtable is one step.
#[cfg(shuttle)]
pub(crate) use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};

/// Stands in a record for its bytes, so that loom sees who writes and who reads them. Nothing
/// without loom.
#[derive(Default)]
pub(crate) struct Traced {
    #[cfg(loom)]
    bytes: loom::cell::UnsafeCell<()>,
}

impl Traced {
    /// The bytes are being written.
    #[inline(always)]
    pub(crate) fn write(&self) {
        #[cfg(loom)]
        self.bytes.with_mut(|_| ());
    }
    /// The bytes are being read.
    #[inline(always)]
    pub(crate) fn read(&self) {
        #[cfg(loom)]
        self.bytes.with(|_| ());
    }
}

/// Tries of a spinning reader before it offers its core to the writer it waits for.
const SPINS: u32 = 64;

/// Waits a moment for a writer that is inside a window of some hundred nanoseconds.
///
/// The writer may have lost its core in the middle of that window, so a reader that has waited
/// long enough stops burning the core the writer may need.
pub(crate) fn pause(tries: &mut u32) {
    *tries += 1;
    #[cfg(loom)]
    loom::thread::yield_now();
    if *tries < SPINS {
        std::hint::spin_loop();
    } else {
        std::thread::yield_now();
    }
}
