//! Storage that fails, bytes that are damaged, and what becomes of a database then.

#[path = "../common/mod.rs"]
mod common;

mod bit_flips;
mod closing;
mod cut_short;
mod damage;
mod ended_logs;
mod failing_storage;
mod logs_ahead;
mod mapped;
mod mapped_log;
mod salvage;
mod salvage_families;
mod verify;
