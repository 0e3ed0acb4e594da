//! The lab: the core of a database (`control` with the planner of `plan`) in a modelled world.
//!
//! A life of minutes, with more threads and a faster disk than this machine has, takes seconds,
//! so policies can be tuned and compared. No byte is read or written: files are histograms of
//! their keys ([`space`]), jobs are the steps of the real ones ([`job`]) on a modelled disk
//! ([`device`]) and shared processors ([`cores`]). Everything that decides is the real code.
//!
//! Keeps: the same setup gives the same life; invariants of trees and jobs are checked on the way.
//! Leaves to others: reads, logs and failures, which are not modelled.
//!
//! ```text
//! client -> gate -> memtable -> Core -> flushes, compactions -> disk and cores -> Core -> ...
//! ```
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "the yard writes its results itself")]

#[cfg(test)]
mod calibration;
pub mod card;
pub mod client;
mod command;
pub mod cores;
pub mod device;
mod grid;
pub mod job;
#[cfg(test)]
mod lives;
pub mod memtable;
pub mod merge;
mod offered;
pub mod overlap;
pub mod pool;
#[cfg(test)]
mod regret;
pub mod setup;
pub mod space;
mod sudden;
pub mod tally;
pub mod world;

pub use command::LabCommand;
pub use setup::{CommitOrder, Load, Setup};
pub use world::{Life, Shape, live};
