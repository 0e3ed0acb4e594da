//! The one place where lock and atomic types are chosen.
//!
//! Locks are those of `locks`: without poisoning, and understood by ThreadSanitizer. Under
//! `--cfg shuttle` and `--cfg loom` a model checker stands behind the same names, so every room names its
//! locks as `lithify_env::sync::Mutex` and so on, and never reaches past this module.
//! `cargo xtask shuttle` and `cargo xtask loom` build it so.

pub(crate) mod locks;

pub use locks::{
    Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard, WaitTimeoutResult,
};
pub use std::sync::{Arc, LazyLock, OnceLock, Weak};

/// Atomic integers, flags and pointers, with the orderings of the standard library.
pub mod atomic {
    #[cfg(loom)]
    pub use loom::sync::atomic::*;
    #[cfg(shuttle)]
    pub use shuttle::sync::atomic::*;
    #[cfg(not(any(shuttle, loom)))]
    pub use std::sync::atomic::*;
}

/// Threads, for the real runtime.
pub(crate) mod thread {
    #[cfg(loom)]
    pub(crate) use loom::thread::yield_now;
    #[cfg(shuttle)]
    pub(crate) use shuttle::thread::{Builder, JoinHandle, current, yield_now};
    #[cfg(not(any(shuttle, loom)))]
    pub(crate) use std::thread::yield_now;
    #[cfg(not(shuttle))]
    pub(crate) use std::thread::{Builder, JoinHandle, current};
}
