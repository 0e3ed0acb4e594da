//! How writes come into a database: batches and their limits, the turn to write, the gate in front of it,
//! how entries get into memtables, and what these may take of memory.
//!
//! Keeps: one writer has the turn at a time, and each batch that waits is served once; no call waits here
//! but through the runtime.
//! Leaves to others: the log and what a group of writes goes through (`lithify_tree`), when writes are
//! held back (`lithify_control`).
#![forbid(unsafe_code)]

pub mod batch;
pub mod errors;
pub mod gate;
pub mod loan;
pub mod mems;
pub mod own;
pub mod parts;
pub mod shared;
pub mod turn;
