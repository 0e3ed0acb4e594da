//! The manifest: the queue of edits, the job that writes them, and what changes or copies the
//! database through it.

pub(crate) mod checkpoint;
pub(crate) mod commits;
pub(crate) mod families;
pub(crate) mod ingest;
pub(crate) mod queue;
