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

/// The chapter for Rust, whose functions are compiled as they stand there.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/rust.md")]
mod chapter {}

mod backup;
mod batch;
mod builder;
mod db;
mod destroy;
pub mod env;
mod families;
mod follower;
pub mod merge;
pub mod prefix;
mod store;
mod table_builder;
mod tables;
#[cfg(feature = "tracing")]
mod traced;
mod transaction;
mod ttl;
mod updates;

pub use backup::{BackupProgress, BackupSummary, Backups};
pub use batch::{BatchEntry, WriteBatch};
pub use builder::Builder;
pub use db::Db;
pub use families::ColumnFamily;
pub use follower::Follower;
pub use lithify_base::{
    Bytewise, CompactionFilter, CompactionFilterRef, Comparator, ComparatorRef, Decision, Error,
    ErrorKind, FilterContext, FilterJob, Key, MergeOperator, MergeOperatorRef, PrefixExtractor,
    PrefixExtractorRef, Result, ReverseBytewise, Seq,
};
pub use lithify_compact::{EngineReport, PartStage};
/// # Judging an engine of your own
/// The cargo feature `testing` adds two modules that no database needs. `engine::conformance` runs an engine over
/// generated compactions and compares every byte of its output with a naive merge: an engine that passes is fit
/// for [`Builder::engine`]. `engine::mock` has an engine that fails as it is told. Depend on them for tests alone:
///
/// ```toml
/// [dev-dependencies]
/// lithify = { path = "../lithify/crates/db", features = ["testing"] }
/// ```
///
/// ```
/// # #[cfg(feature = "testing")]
/// # fn main() -> lithify::Result<()> {
/// use lithify::engine::CpuEngine; // in place of yours
/// use lithify::engine::conformance::{Profile, Size, suite};
/// use lithify::env::{OsRt, RtOptions};
///
/// let rt = OsRt::new(RtOptions::default());
/// let profile = Profile::reference(Size { entries: 50, value: 200 }); // yours: Profile::everything
/// let report = suite(&CpuEngine, &rt, 0..20, profile)?;
/// assert_eq!((report.equal, report.refused), (20, 0));
/// # Ok(())
/// # }
/// # #[cfg(not(feature = "testing"))]
/// # fn main() {}
/// ```
#[doc(inline)]
pub use lithify_engine as engine;
pub use lithify_layers::{Concurrency, TransactionOptions, TtlEntries, TtlIter};
#[doc(hidden)] // for RocksDB's perf context
pub use lithify_tree::thread_cache_hits;
pub use lithify_tree::{
    BackgroundPause, Bound, Budget, CancelToken, CheckpointOptions, ColumnFamilyOptions,
    CompactOptions, CompactionPri, Compression, Counts, DbEvent, DbIter, Durability,
    EffectiveSetting, Entries, EventKind, EventListener, Explanation, HangingCall, IngestOptions,
    JobReport, JobStage, KeptFiles, KeptReads, KeyBounds, Latency, LevelNeed, LevelStats, LiveFile,
    MAX_BATCH_BYTES, MAX_KEY_BYTES, MAX_VALUE_BYTES, PartReport, Policy, ReadOptions, Settings,
    SharedCache, SharedMemtables, SizeOptions, Snapshot, Stats, TableDir, Transfer, Value, Wish,
    WriteOptions, Writes,
};
pub use table_builder::{BuiltTable, TableBuilder};
pub use transaction::Transaction;
pub use ttl::TtlDb;
pub use updates::Updates;

/// Taking over directories that RocksDB or LevelDB wrote: see [`Builder::import`] and
/// [`Builder::import_in_place`].
pub mod import {
    #[doc(inline)]
    pub use lithify_rescue::import::{
        ImportOptions, ImportProgress, ImportReport, ImportStage, Maker,
    };
}

/// Taking out what is readable of a damaged directory: see [`Builder::salvage`].
pub mod salvage {
    #[doc(inline)]
    pub use lithify_rescue::salvage::{Lost, SalvageReport, SalvagedFamily};
}

/// Checking a database without opening it.
pub mod verify {
    #[doc(inline)]
    pub use lithify_rescue::verify::{Finding, Grade, Progress, Report, verify};
}
