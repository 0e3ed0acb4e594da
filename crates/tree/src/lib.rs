//! One database at work: its writes, its reads, its background work, its manifest, and how it is
//! opened and closed.
//!
//! A [`Shell`] is one column family of an open database. What it does is all that the layers above
//! are made of: handles and builders (`lithify`), values that expire and transactions
//! (`lithify-layers`), import and salvage (`lithify-rescue`).
//!
//! Leaves to others: decisions (`lithify_control`, `lithify_plan`), merging (`lithify_compact`), files
//! (`lithify_store`).
#![forbid(unsafe_code)]

mod alter;
mod batch;
mod cancel;
mod checkpoint;
mod conflict;
mod events;
mod explain;
mod families;
mod gate;
mod ingest;
mod iter;
mod listener;
mod metrics;
mod multi_get;
mod open;
mod operands;
mod operations;
mod options;
mod pause;
mod property;
mod ranges;
mod read;
mod reentry;
mod settings;
mod settle;
mod shared;
mod shell;
mod snapshot;
mod solo;
mod stats;
mod super_version;
mod turn;
mod write;

pub use batch::{
    Batch, MAX_BATCH_BYTES, MAX_KEY_BYTES, MAX_VALUE_BYTES, check_bounds, check_key, check_order,
    check_value,
};
pub use cancel::CancelToken;
pub use explain::{
    Bound, Explanation, HangingCall, JobReport, JobStage, LevelNeed, PartReport, Wish, Writes,
};
pub use families::ColumnFamilyOptions;
pub use ingest::{IngestOptions, Transfer};
pub use iter::db::DbIter;
pub use listener::{DbEvent, EventKind, EventListener};
pub use lithify_control::Outside;
pub use metrics::{Counts, Latency};
pub use open::{
    Components, DEFAULT_CF, DEFAULT_NAME, Handle, OpenOptions, Opened, follower_fs, identity,
    machine, open, open_reading, proportion, recovered,
};
pub use operands::{Operands, is_same};
pub use options::{CompactOptions, ReadOptions, WriteOptions};
pub use pause::BackgroundPause;
pub use ranges::SizeOptions;
pub use read::Value;
pub use settings::translate::output_options;
pub use settings::{
    Budget, CompactionPri, Compression, Durability, EffectiveSetting, Policy, Settings,
};
pub use shell::{Closer, Shell};
pub use snapshot::Snapshot;
pub use stats::{LevelStats, Stats};
pub use super_version::SuperVersion;
pub use write::{Mems, insert_batch};
