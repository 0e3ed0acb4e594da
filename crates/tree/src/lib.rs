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
mod open;
mod operations;
mod options;
mod read;
mod readable_logs;
mod report;
mod settings;
mod shared;
mod shell;
mod write;

pub use background::keep::KeptFiles;
pub use background::pause::BackgroundPause;
pub use close::closing::Closer;
pub use close::dropping::KeptReads;
pub use lithify_control::Outside;
pub use lithify_opening::{
    ColumnFamilyOptions, Components, Handle, Making, OpenOptions, follower_fs, machine,
};
pub use lithify_reports::cancel::CancelToken;
pub use lithify_reports::explain::{
    Bound, Explanation, HangingCall, JobReport, JobStage, LevelNeed, PartReport, Wish, Writes,
};
pub use lithify_reports::listener::{DbEvent, EventKind, EventListener};
pub use lithify_reports::metrics::{Counts, Latency};
pub use lithify_reports::stats::{LevelStats, Stats};
pub use lithify_settings::proportion;
pub use lithify_tables::cache::{SharedCache, in_memory_only, thread_hits as thread_cache_hits};
pub use lithify_views::look::ranges::{SizeOptions, check_order};
pub use lithify_views::names::{DEFAULT_CF, DEFAULT_NAME};
pub use lithify_views::operands::{Operands, is_same};
pub use lithify_views::options::{KeyBounds, ReadOptions};
pub use lithify_views::snapshot::Snapshot;
pub use lithify_views::super_version::SuperVersion;
pub use lithify_views::value::Value;
pub use lithify_views::{entries::Entries, iter::db::DbIter};
pub use lithify_writes::batch::{
    Batch, MAX_BATCH_BYTES, MAX_KEY_BYTES, MAX_VALUE_BYTES, check_bounds, check_key, check_value,
};
pub use lithify_writes::mems::{Adds, Mems, insert_batch};
pub use lithify_writes::shared::SharedMemtables;
pub use manifest::checkpoint::CheckpointOptions;
pub use manifest::ingest::{IngestOptions, Transfer};
pub use open::{Opened, identity, open, open_reading, recovered};
pub use options::{CompactOptions, WriteOptions};
pub use readable_logs::ReadableLogs;
pub use report::files::LiveFile;
pub use settings::translate::output_options;
pub use settings::{
    Budget, CompactionPri, Compression, Durability, EffectiveSetting, Policy, Settings, TableDir,
};
pub use shell::Shell;
