//! The only door to atomics and locks in this room, so that a model checker can stand behind it.

pub(crate) use lithify_env::sync::Mutex;
pub(crate) use lithify_env::sync::atomic::{
    AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};

/// Tries of a spinning reader before it offers its core to the writer it waits for.
const SPINS: u32 = 64;

/// Waits a moment for a writer that is inside a window of some hundred nanoseconds.
///
/// The writer may have lost its core in the middle of that window, so a reader that has waited
/// long enough stops burning the core the writer may need.
pub(crate) fn pause(tries: &mut u32) {
    *tries += 1;
    if *tries < SPINS {
        std::hint::spin_loop();
    } else {
        std::thread::yield_now();
    }
}
