//! What callers have asked for and were not told the end of yet.

use std::collections::{BTreeMap, VecDeque};

use lithify_base::{Error, ErrorKind, JobId};
use lithify_plan::ManualRequest;

/// Manual compactions, in the order of the calls.
#[derive(Clone, Debug, Default)]
pub(crate) struct Manuals {
    pub(crate) wanted: VecDeque<(u64, ManualRequest)>,
}

impl Manuals {
    pub(crate) fn add(&mut self, id: u64, request: ManualRequest) {
        self.wanted.push_back((id, request));
    }
    pub(crate) fn wanted(&self) -> Option<&ManualRequest> {
        self.wanted.front().map(|(_, r)| r)
    }
}

/// Which request each job answers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outsiders {
    pub(crate) asked: BTreeMap<JobId, u64>,
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
