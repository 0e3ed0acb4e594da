//! Manual compactions: ranges that callers want settled, in the order of the calls. The planner works
//! on the first one; it is over when the planner has nothing left to do for it and none of its jobs is
//! in flight.

use lithify_base::{Error, ErrorKind, JobId};
use lithify_plan::{Kind, is_settled};

use crate::command::Command;
use crate::core::Core;

impl Core {
    /// The manual compaction being worked on failed. Its caller is told, and may ask again.
    pub(crate) fn fail_manual(&mut self, error: &Error, out: &mut Vec<Command>) {
        if let Some((id, _)) = self.manuals.wanted.front() {
            self.fail_request(*id, error, out);
        }
    }

    /// A job of this manual compaction failed, which may not have been the first.
    pub(crate) fn fail_request(&mut self, id: u64, error: &Error, out: &mut Vec<Command>) {
        if let Some(at) = self.manuals.wanted.iter().position(|(wanted, _)| *wanted == id) {
            self.manuals.wanted.remove(at);
            out.push(Command::RequestDone { id, result: Err(error.clone()) });
        }
    }

    /// The caller of a manual compaction wants it no more: what is at work for it is given up. What is built
    /// commits, as there is nothing to gain from throwing it away.
    pub(crate) fn cancel_manual(&mut self, id: u64, now: u64, out: &mut Vec<Command>) {
        let what = "the compaction was called off; what it had finished stays";
        self.fail_request(id, &Error::new(ErrorKind::Cancelled, what), out);
        let its = |job: &JobId| self.manuals.jobs.get(job) == Some(&id);
        let running: Vec<JobId> = self.jobs.running().map(|f| f.id).filter(its).collect();
        for job in running {
            let gone = self.jobs.remove_with_dependents(job).unwrap_or_default();
            self.let_go(gone, None, now, out);
        }
    }

    pub(crate) fn end_manuals(&mut self, out: &mut Vec<Command>) {
        self.manuals.jobs.retain(|job, _| self.jobs.has(*job));
        if let Some(error) = self.ended() {
            for (id, _) in self.manuals.wanted.drain(..) {
                out.push(Command::RequestDone { id, result: Err(error.clone()) });
            }
            return;
        }
        while let Some((id, request)) = self.manuals.wanted.front() {
            let busy = self.jobs.in_flight().iter().any(|f| f.spec.kind == Kind::Manual);
            if busy || !is_settled(&self.version, &self.options.plan, request) {
                return;
            }
            out.push(Command::RequestDone { id: *id, result: Ok(()) });
            self.manuals.wanted.pop_front();
        }
    }
}
