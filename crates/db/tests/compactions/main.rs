//! Compactions and what surrounds them: parts, upkeep, limits, events, explanations, callbacks.

#[path = "../common/mod.rs"]
mod common;

mod at_run_time;
mod engines;
mod event_log;
mod explain;
mod fifo;
mod fpga;
mod last_handles;
mod late_threads;
mod lingers;
mod little_room;
mod parallel_traps;
mod reentry;
mod shared_memtables;
mod size_limits;
mod stopped;
mod subcompactions;
mod upkeep;
