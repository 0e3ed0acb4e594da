//! The one place where lock and atomic types are chosen.
//!
//! Production uses `parking_lot`: small locks without poisoning, which ThreadSanitizer
//! understands. A model checker replaces the whole module at compile time, so every room names
//! its locks as `lithify_env::sync::Mutex` and so on, and never reaches past this module.

pub use parking_lot::{
    Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard, WaitTimeoutResult,
};
pub use std::sync::{Arc, LazyLock, OnceLock, Weak};

/// Atomic integers, flags and pointers, with the orderings of the standard library.
pub mod atomic {
    pub use std::sync::atomic::*;
}
