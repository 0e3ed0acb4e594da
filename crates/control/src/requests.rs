//! What callers have asked for and were not told the end of yet.

use std::collections::{BTreeMap, VecDeque};

use lithify_base::{Error, ErrorKind, FileId, JobId};
use lithify_plan::ManualRequest;

/// Manual compactions, in the order of the calls.
#[derive(Clone, Debug, Default)]
pub(crate) struct Manuals {
    pub(crate) wanted: VecDeque<(u64, ManualRequest)>,
    /// Which request each job at work was begun for. That may be over: its caller was told of another job, or wants it no more.
    pub(crate) jobs: BTreeMap<JobId, u64>,
}

impl Manuals {
    pub(crate) fn add(&mut self, id: u64, request: ManualRequest) {
        self.wanted.push_back((id, request));
    }
    pub(crate) fn wanted(&self) -> Option<&ManualRequest> {
        self.wanted.front().map(|(_, r)| r)
    }
    /// A job is begun for the request that is worked on.
    pub(crate) fn begun(&mut self, job: JobId) {
        self.jobs.extend(self.wanted.front().map(|(id, _)| (job, *id)));
    }
}

/// Which request each job answers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outsiders {
    pub(crate) asked: BTreeMap<JobId, u64>,
    /// Files of changes that were given up: until another edit is durable, the next open may find that they are in the tree.
    pub(crate) unsure: Vec<FileId>,
}

impl Outsiders {
    pub(crate) fn has(&self, job: JobId) -> bool {
        self.asked.contains_key(&job)
    }
}

/// The answer to requests while the database is being closed.
pub(crate) fn closing() -> Error {
    Error::new(ErrorKind::ShuttingDown, "the database is being closed")
}
