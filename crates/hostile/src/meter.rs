//! How much memory is held, for guards that compare it with what they allow.
//!
//! Keeps: counting takes no memory and no lock, so an allocator may call it. Without an allocator that
//! does, everything stays 0; `fuzz` and the tests of whole directories have one.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

static HELD: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

/// So many bytes were taken from the system.
pub fn grew(bytes: usize) {
    let held = HELD.fetch_add(bytes, Relaxed) + bytes;
    MOST.fetch_max(held, Relaxed);
}

/// So many bytes were given back.
pub fn shrank(bytes: usize) {
    HELD.fetch_sub(bytes, Relaxed);
}

/// Begins to look for the most that is held at once; what is held now.
pub fn mark() -> usize {
    let held = HELD.load(Relaxed);
    MOST.store(held, Relaxed);
    held
}

/// The most that was held at once since the last [`mark`].
pub fn most() -> usize {
    MOST.load(Relaxed)
}
