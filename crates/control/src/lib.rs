//! The core of a column family: what was planned, what is at work, and what comes next. One [`Core`],
//! one `on(event, now)`, no IO, no clock, no threads, no locks.
//!
//! The shell tells the core what happened and carries out the commands that the core answers with, so
//! the whole life of the tree (flushes in freeze order, compactions from plan to commit, stalls,
//! failures) can be replayed from a list of events. What a core may do at all is its `life`.
//!
//! Keeps: flushes commit in freeze order; edits are handed out in batches, a batch only after the
//! one before it is settled; an edit follows those of its job's after-edges, and was validated
//! against the tree it will find (`lithify_plan::validate_commit`); a job's inputs are locked from
//! its acceptance to its end and never longer (V12), because locks are derived from the job table
//! and stored nowhere else.
//!
//! A job is accepted by `plan` -> Running -> Built (its files are synced) -> [waits for older jobs,
//! holding no thread] -> Committing -> gone. It can be aborted until it commits.
#![forbid(unsafe_code)]

mod buckets;
mod command;
mod core;
mod event;
mod health;
mod jobs;
mod life;
mod load;
mod memory;
mod options;
mod pacer;
mod relief;
mod requests;
mod resources;
mod retry;
mod throttle;

pub use crate::core::Core;
pub use crate::core::outlook::Outlook;
pub use buckets::{Cutting, Flow};
pub use command::{Command, NewEdit};
pub use event::{Event, MemId, Outside};
pub use options::Options;
pub use pacer::Pacer;
pub use resources::Taken;
pub use throttle::{Pressure, Room};
