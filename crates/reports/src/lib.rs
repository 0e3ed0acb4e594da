//! What a database says about itself, to its users and among its own parts: events and those who listen to
//! them, counters, statistics and explanations; how far background work is, that a call is made from
//! within, and that a request is called off.
//!
//! Keeps: a note never waits for the disk nor for a listener; a count costs one atomic addition.
//! Leaves to others: gathering all this from an open database (`lithify_tree`).
#![forbid(unsafe_code)]

pub mod alive;
pub mod cancel;
pub mod events;
pub mod exclusive;
pub mod explain;
pub mod field;
pub mod listener;
pub mod metrics;
pub mod progress;
pub mod prometheus;
pub mod reentry;
pub mod stats;
