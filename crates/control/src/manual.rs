//! Manual compactions: ranges someone wants settled, in the order they were asked for. The
//! planner works on the first one; it is over when the planner has nothing left to do for it
//! and none of its jobs is in flight.

use std::collections::VecDeque;

use lithify_base::{Error, ErrorKind};
use lithify_plan::{Kind, ManualRequest, is_settled};

use crate::Core;
use crate::command::Command;

#[derive(Clone, Debug, Default)]
pub(crate) struct Manuals {
    wanted: VecDeque<(u64, ManualRequest)>,
}

impl Manuals {
    pub(crate) fn add(&mut self, id: u64, request: ManualRequest) {
        self.wanted.push_back((id, request));
    }
    pub(crate) fn wanted(&self) -> Option<&ManualRequest> {
        self.wanted.front().map(|(_, r)| r)
    }
}

impl Core {
    /// The manual compaction being worked on failed: whoever asked for it decides what is next.
    pub(crate) fn fail_manual(&mut self, error: &Error, out: &mut Vec<Command>) {
        if let Some((id, _)) = self.manuals.wanted.pop_front() {
            out.push(Command::ManualDone { id, result: Err(error.clone()) });
        }
    }

    pub(crate) fn end_manuals(&mut self, out: &mut Vec<Command>) {
        let closing = || Error::new(ErrorKind::ShuttingDown, "the database is being closed");
        if let Some(error) = self.read_only.clone().or_else(|| self.closing.then(closing)) {
            for (id, _) in self.manuals.wanted.drain(..) {
                out.push(Command::ManualDone { id, result: Err(error.clone()) });
            }
            return;
        }
        while let Some((id, request)) = self.manuals.wanted.front() {
            let busy = self.jobs.in_flight().iter().any(|f| f.spec.kind == Kind::Manual);
            if busy || !is_settled(&self.version, &self.options.plan, request) {
                return;
            }
            out.push(Command::ManualDone { id: *id, result: Ok(()) });
            self.manuals.wanted.pop_front();
        }
    }
}
