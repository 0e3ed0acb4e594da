//! RocksDB under the bench: the same workloads, flags and report as `lithify bench`.
//!
//! Leaves to others: everything but RocksDB's own interface (crate `lithify-bench`).
#![forbid(unsafe_code)]

mod events;
mod options;
mod peer;

fn main() -> std::process::ExitCode {
    lithify_bench::engine_main(&peer::RocksPeer)
}
