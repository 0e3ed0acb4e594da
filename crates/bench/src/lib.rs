//! The bench: db_bench's workloads over any ordered store, with verified values and one report.
//!
//! An engine joins by implementing [`Store`] and [`StoreOpener`] and calling [`engine_main`]; each
//! engine is a process of its own, because allocators and C++ symbols clash and a crash of one
//! must not take the others down. [`compare`] then runs those processes alternately.
//!
//! Keeps: every engine sees the same keys, values, order and clocks for the same settings; every
//! value read is checked, and one wrong value makes the whole run invalid.
//! Leaves to others: what a setting means inside an engine (its opener maps it).
//!
//! ```text
//! settings -> run ----> load (keys, values) ----> Store (lithify | rocksdb | a map in tests)
//!               |          | latency, series, slow seconds
//!               |          v             log of its jobs -> timeline (active jobs; SVG, CSV)
//!               +----> report (RunReport: JSON, table) ----> compare (medians and ratios)
//! ```
#![forbid(unsafe_code)]

mod clock;
mod command;
pub mod compare;
mod engines;
pub mod fold;
mod gpu;
pub mod interrupt;
mod keys;
mod lane;
mod load;
mod machine;
mod matrix;
mod mix;
mod model;
mod place;
mod progress;
mod ranges;
mod readings;
mod report;
mod run;
mod seconds;
mod settings;
mod stdout;
mod store;
#[cfg(test)]
mod tests;
mod timeline;
mod tour;
mod units;
mod usage;
mod values;
mod workload;
mod ycsb;
mod zipf;

pub use command::{BenchSub, bench_main, engine_main};
pub use engines::{
    CardFigures, EngineRow, JobKind, Prediction, Predictions, Ran, engines_json, engines_text,
};
pub use gpu::{GpuFlags, GpuRow};
pub use mix::Mix;
pub use place::check_can_write;
pub use ranges::{RangeIter, Ranges, Walk};
pub use report::{
    EngineIdentity, Latency, MachineNote, RunReport, SlowOps, WorkloadReport, print_report,
};
pub use run::run;
pub use settings::{
    BenchArgs, BenchSettings, CompactionPri, Compression, EXAMPLES, OWN_POLICY, OutputArgs, WalMode,
};
pub use stdout::{StandardOutput, is_closed_pipe};
pub use store::{BatchOp, EngineStats, StallStat, Store, StoreIter, StoreOpener};
pub use timeline::{Activity, Happening, Moment};
pub use units::{parse_bytes, parse_count, parse_size};
pub use usage::Usage;
pub use workload::Workload;
