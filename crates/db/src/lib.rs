//! Lithify: an embedded, durable, ordered key-value store whose compaction scales.
//!
//! ```
//! # fn main() -> lithify::Result<()> {
//! # let dir = std::env::temp_dir().join(format!("lithify-doc-{}", std::process::id()));
//! let db = lithify::Db::open(&dir, lithify::Settings::default())?;
//! db.put(b"apple", b"red")?;
//! db.put(b"banana", b"yellow")?;
//! assert_eq!(db.get(b"apple")?.as_deref(), Some(&b"red"[..]));
//!
//! let mut fruit = db.iter()?;
//! fruit.seek(b"b");
//! assert_eq!((fruit.key(), fruit.value()), (&b"banana"[..], &b"yellow"[..]));
//! fruit.status()?; // an error while reading ends an iteration; it is never silent
//! drop(fruit);
//! db.close()?;
//! # std::fs::remove_dir_all(&dir).ok();
//! # Ok(())
//! # }
//! ```
//!
//! A [`Db`] is a handle: clone it, send it to other threads. Writes are acknowledged at the
//! [`Durability`] they ask for; readers never wait for writers. Errors are typed
//! ([`ErrorKind`]), and every message says what the user can do.
#![forbid(unsafe_code)]

mod alter;
mod backup;
mod batch;
mod builder;
mod cancel;
mod checkpoint;
mod db;
pub mod env;
mod events;
mod explain;
mod families;
mod follower;
mod gate;
pub mod import;
mod ingest;
mod iter;
mod listener;
pub mod merge;
mod metrics;
mod multi_get;
mod open;
mod operands;
mod options;
mod pause;
pub mod prefix;
mod property;
mod ranges;
mod read;
mod reentry;
pub mod salvage;
mod settings;
mod settle;
mod shared;
mod shell;
mod snapshot;
mod solo;
mod stats;
mod super_version;
mod table_builder;
mod ttl;
mod turn;
mod txn;
pub mod verify;
mod write;

pub use backup::{BackupProgress, BackupSummary, Backups};
pub use batch::{MAX_BATCH_BYTES, MAX_KEY_BYTES, MAX_VALUE_BYTES, WriteBatch};
pub use builder::Builder;
pub use cancel::CancelToken;
pub use db::{Db, DbIter};
pub use explain::{
    Bound, Explanation, HangingCall, JobReport, JobStage, LevelNeed, PartReport, Wish, Writes,
};
pub use families::{ColumnFamily, ColumnFamilyOptions};
pub use follower::Follower;
pub use ingest::{IngestOptions, Transfer};
pub use listener::{DbEvent, EventKind, EventListener};
pub use lithify_base::{
    Bytewise, CompactionFilter, CompactionFilterRef, Comparator, ComparatorRef, Decision, Error,
    ErrorKind, FilterContext, Key, MergeOperator, MergeOperatorRef, PrefixExtractor,
    PrefixExtractorRef, Result, ReverseBytewise, Seq,
};
pub use lithify_compact::{EngineReport, PartStage};
pub use lithify_engine as engine;
pub use metrics::{Counts, Latency};
pub use options::{CompactOptions, ReadOptions, WriteOptions};
pub use pause::BackgroundPause;
pub use ranges::SizeOptions;
pub use read::Value;
pub use settings::{
    Budget, CompactionPri, Compression, Durability, EffectiveSetting, Policy, Settings,
};
pub use snapshot::Snapshot;
pub use stats::{LevelStats, Stats};
pub use table_builder::{BuiltTable, TableBuilder};
pub use ttl::{TtlDb, TtlIter};
pub use txn::{Concurrency, Transaction, TransactionOptions};
