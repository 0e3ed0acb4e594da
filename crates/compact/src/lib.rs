//! Where plan meets machine: flushes and compactions as step machines.
//!
//! A job is driven by calling `step` until it is done; each step is one bounded slice of merging
//! and starts IO rather than waiting for it. Reading, merging and writing of one compaction
//! overlap: block sets are read ahead, output buffers are written behind.
//!
//! A wide compaction may be cut into parts that are merged side by side; they end as one.
//!
//! ```text
//!   feed (clean cut, read ahead) -> relay (engine session, certify) -> sink (assemble, write behind)
//! ```
//!
//! Keeps: a job changes nothing but files of its own, which no manifest names yet; if it fails
//! they are orphans and nothing else has happened. Its report comes exactly once.
//! Leaves to others: what to compact (`plan`), when the result counts (`control`).
#![forbid(unsafe_code)]

mod context;
mod cuts;
mod dictionary;
mod external;
mod feed;
mod flush;
mod job;
mod job_control;
mod opening;
mod order;
mod part;
mod parts;
mod recipe;
mod relay;
mod route;
mod set_memory;
mod sink;
mod survey;
#[cfg(test)]
mod testing;

pub use context::{
    FileNumbers, JobContext, LevelFormat, Maker, OutputOptions, TableDirs, set_bytes, write_bytes,
};
pub use external::ExternalTable;
pub use flush::{FlushJob, FlushSpec};
pub use job::{CompactionJob, CompactionSpec};
pub use job_control::{JobControl, PartProgress, PartStage};
pub use parts::PartEvent;
pub use route::{EngineReport, Engines};
pub use survey::Cut;

use lithify_base::Result;
use lithify_env::sync::Arc;
use lithify_lsm::{BucketMap, FileMeta};
use lithify_plan::adapt::FlushReport;

/// What a job did, for statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobWork {
    /// Bytes of input tables or of the memtable.
    pub read: u64,
    /// Bytes of output tables.
    pub written: u64,
    /// Point entries read.
    pub entries_in: u64,
    /// Point entries written.
    pub entries_out: u64,
    /// Values that the user's filter removed or changed.
    pub filtered: u64,
    /// Nanoseconds from first step to last.
    pub nanos: u64,
    /// Processor nanoseconds of the thread that stepped it.
    pub cpu_nanos: u64,
}

/// How a job ended.
#[derive(Debug)]
pub struct Outcome {
    /// The files it made, synced, or why it failed.
    pub result: Result<Vec<FileMeta>>,
    /// What it did.
    pub work: JobWork,
    /// What a flush that was cut by buckets learnt: its map, and what went where.
    pub flow: Option<(Arc<BucketMap>, FlushReport)>,
}

/// Who is told how a job ended.
pub type Report = Box<dyn FnOnce(Outcome) + Send>;

/// Who is told when parts of a compaction begin and end.
pub type OnPart = Box<dyn Fn(PartEvent) + Send + Sync>;
