//! What the core wants done, each command with what it promises.

use std::sync::Arc;

use lithify_base::{Error, FileId, JobId, Pos};
use lithify_lsm::{Edit, FileRef, Version};
use lithify_plan::{JobSpec, Prio};

use crate::buckets::Cutting;
use crate::event::MemId;
use crate::throttle::Pressure;

/// Something the shell must do. Commands of one event are carried out in order.
pub enum Command {
    /// Write this memtable to tables at `out`, then report `Built` or `Failed`.
    StartFlush {
        /// The job.
        job: JobId,
        /// The memtable.
        mem: MemId,
        /// Where its files go.
        out: Pos,
        /// How it is cut into files.
        cutting: Cutting,
    },
    /// Merge these files, then report `Built` or `Failed`. The inputs are locked until the job
    /// ends; `version` is the tree as planned, for the question which data lies below.
    StartCompaction {
        /// The job.
        job: JobId,
        /// What to do.
        spec: Arc<JobSpec>,
        /// The inputs, newest position first.
        inputs: Vec<FileRef>,
        /// The tree at issue.
        version: Box<Version>,
    },
    /// Stop working on this job; its report, if one still comes, is ignored.
    Abort {
        /// The job.
        job: JobId,
    },
    /// Delete these files: their job was given up, and no edit that names them was ever handed out.
    Discard {
        /// The files.
        files: Vec<FileId>,
    },
    /// Make this compaction as urgent as said: others wait for what it holds, or do so no longer.
    Hurry {
        /// The job.
        job: JobId,
        /// How urgent it is now.
        prio: Prio,
    },
    /// Append these edits to the manifest in this order and sync it once, then report `EditSynced`
    /// or `EditFailed`. No more are handed out before that.
    Commit {
        /// The edits, at least one.
        edits: Vec<NewEdit>,
    },
    /// Make this tree the one that readers see, drop the flushed memtable, and delete the
    /// obsolete files once nothing pins them.
    Install {
        /// How many trees were installed with this one. The shell carries commands out without
        /// the core's lock, so a tree may arrive after its successor: it is out of date then.
        no: u64,
        /// The tree.
        version: Box<Version>,
        /// The memtable whose data the tree now holds, as it holds that of all before it.
        flushed: Option<MemId>,
        /// Files no longer in the tree, and the old places of files that moved: a pin on an
        /// old place pins the file.
        obsolete: Vec<FileRef>,
    },
    /// The verdict on writes changed: they stop, slow down or go ahead from now on.
    Stall(Pressure),
    /// Flushes fail, for this reason (`None`: they work again). Nothing is lost and they are tried
    /// again, but a write that would have to wait for one should fail with this error instead.
    FlushesFail(Option<Error>),
    /// Compactions failed several times in a row or can't start, for this reason (`None`: they work
    /// again). They are tried again, but a write that would have to wait for one should fail with this
    /// error instead.
    CompactionsFail(Option<Error>),
    /// A manual compaction, or a change from outside, is over.
    RequestDone {
        /// Its number.
        id: u64,
        /// Its result.
        result: Result<(), Error>,
    },
    /// Writes must fail with this error from now on; reads go on.
    ReadOnly {
        /// The cause.
        error: Error,
    },
}

/// A change of the tree, not yet in the manifest.
#[derive(Clone, Debug)]
pub struct NewEdit {
    /// The edit.
    pub edit: Edit,
    /// For the event log: what is being committed.
    pub what: String,
}
