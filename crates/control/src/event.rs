//! What the shell tells the core, each event with what it means.

use lithify_base::{Error, JobId, KeyRange};
use lithify_lsm::FileMeta;
use lithify_plan::ManualRequest;

use crate::buckets::Flow;
use crate::options::Options;

/// Number of a memtable, in the order of freezing. Never reused while the database is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemId(pub u64);

/// A change from outside that a caller wants.
#[derive(Clone, Debug)]
pub enum Outside {
    /// Take these files into the tree, each where nothing newer stands over its keys. They are
    /// disjoint, their entries are newer than everything in the tree, and no memtable overlaps them.
    Ingest {
        /// Their descriptions, with any position.
        files: Vec<FileMeta>,
    },
    /// Drop the files whose keys all lie in one of these ranges, and under which nothing older of
    /// their keys stays.
    Drop {
        /// The ranges.
        ranges: Vec<KeyRange>,
    },
}

/// Something that happened in the world.
#[derive(Debug)]
pub enum Event {
    /// The active memtable was frozen and replaced.
    Frozen {
        /// Its number.
        mem: MemId,
        /// Its size in memory, bytes.
        bytes: u64,
        /// Bytes of writes that filled it, as writers count them: what rates of writes are in.
        written: u64,
        /// Logs with smaller numbers hold nothing newer than this memtable: once it is flushed,
        /// they are obsolete.
        log_number: u64,
    },
    /// A flush or compaction built its files; they are synced.
    Built {
        /// The job.
        job: JobId,
        /// Its output, possibly empty.
        adds: Vec<FileMeta>,
        /// What a flush that was cut by buckets learnt.
        flow: Option<Box<Flow>>,
    },
    /// A flush or compaction failed. Its files, if any, are orphans.
    Failed {
        /// The job.
        job: JobId,
        /// Why.
        error: Error,
    },
    /// The edits handed out last are durable.
    EditSynced,
    /// The edits handed out last may or may not be durable, and the manifest could not be
    /// replaced either. With `NoSpace` they are handed out again later; the shell then starts
    /// a new manifest before it writes them.
    EditFailed {
        /// Why.
        error: Error,
    },
    /// A caller wants a key range compacted down to one run.
    Manual {
        /// Chosen by the caller, to recognise the answer.
        id: u64,
        /// What is wanted.
        request: ManualRequest,
    },
    /// A caller wants files taken into the tree, or out of it.
    Outside {
        /// Chosen by the caller, to recognise the answer.
        id: u64,
        /// What is wanted.
        request: Outside,
    },
    /// Automatic compaction was switched on or off.
    AutoCompaction {
        /// The new state.
        on: bool,
    },
    /// Flushes and compactions are held back: none is started. Those at work end.
    Paused {
        /// Whether they are.
        on: bool,
    },
    /// The caller of a manual compaction wants it no more.
    CancelManual {
        /// Its number.
        id: u64,
    },
    /// The settings changed; not the policy, and not how many jobs may run.
    Options(Box<Options>),
    /// The disk's free space was looked up.
    DiskFree {
        /// Bytes that tables may still take: what the disk has, or less by a budget.
        bytes: u64,
        /// Bytes that the disk has.
        disk: u64,
    },
    /// The clock on the wall was read: what the age of files is counted to.
    WallTime {
        /// Seconds since 1970.
        seconds: u64,
    },
    /// So many callers wait for the background work to end. Before the first of these events
    /// one is assumed to.
    Awaited {
        /// How many.
        by: usize,
    },
    /// So many bytes were read and written by flushes and compactions since the last of these events.
    Moved {
        /// Bytes.
        bytes: u64,
    },
    /// Time passed.
    Tick,
    /// The database is closing: nothing new is started.
    Closing,
}
