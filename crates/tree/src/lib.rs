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
mod background;
mod close;
mod family;
mod manifest;
mod names;
mod open;
mod operations;
mod options;
mod read;
mod reentry;
mod report;
mod settings;
mod shared;
mod shell;
mod write;

pub use background::cancel::CancelToken;
pub use background::pause::BackgroundPause;
pub use close::closing::Closer;
pub use lithify_control::Outside;
pub use manifest::ingest::{IngestOptions, Transfer};
pub use names::{DEFAULT_CF, DEFAULT_NAME};
pub use open::family_options::ColumnFamilyOptions;
pub use open::{
    Components, Handle, OpenOptions, Opened, follower_fs, identity, machine, open, open_reading,
    proportion, recovered,
};
pub use options::{CompactOptions, ReadOptions, WriteOptions};
pub use read::Value;
pub use read::iter::db::DbIter;
pub use read::operands::{Operands, is_same};
pub use read::ranges::SizeOptions;
pub use read::snapshot::Snapshot;
pub use read::super_version::SuperVersion;
pub use report::explain::{
    Bound, Explanation, HangingCall, JobReport, JobStage, LevelNeed, PartReport, Wish, Writes,
};
pub use report::listener::{DbEvent, EventKind, EventListener};
pub use report::metrics::{Counts, Latency};
pub use report::stats::{LevelStats, Stats};
pub use settings::translate::output_options;
pub use settings::{
    Budget, CompactionPri, Compression, Durability, EffectiveSetting, Policy, Settings,
};
pub use shell::Shell;
pub use write::batch::{
    Batch, MAX_BATCH_BYTES, MAX_KEY_BYTES, MAX_VALUE_BYTES, check_bounds, check_key, check_order,
    check_value,
};
pub use write::mems::{Adds, Mems, insert_batch};
