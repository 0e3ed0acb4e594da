//! From built to installed: one edit at a time, in an order that keeps invariant R.

use lithify_base::{Error, ErrorKind, JobId};
use lithify_lsm::Edit;

use crate::Core;
use crate::command::Command;

/// How an edit that was handed out ended.
pub(crate) enum Settled {
    /// In the manifest for good.
    Durable,
    /// The disk is full: it is not durable yet, and is handed out again later.
    Postponed(Error),
    /// Nobody knows until the next open.
    Unknown(Error),
}

/// The edit being written.
#[derive(Clone, Debug)]
pub(crate) struct Writing {
    job: JobId,
    edit: Edit,
}

impl Core {
    /// Hands out the next edit, if none is being written and a job is ready: the oldest flush
    /// first (it frees memory), else the oldest compaction.
    pub(crate) fn commit_next(&mut self, now: u64, out: &mut Vec<Command>) {
        while self.writing.is_none() && !self.sealed && (self.closing || now >= self.commit_at) {
            let flush = self.memory.oldest_job().filter(|j| self.jobs.is_built(*j));
            let Some(job) = flush.or_else(|| self.jobs.committable().next()) else {
                if self.closing && !self.jobs.any_running() {
                    // What is left waits for a job that will not be started any more.
                    self.jobs.give_up_finished();
                }
                return;
            };
            if let Some(spec) = self.jobs.spec(job)
                && let Err(v) = lithify_plan::validate_commit(&self.version, spec)
            {
                // A planner bug. Nothing bad is installed: the job is dropped and counted.
                debug_assert!(false, "job {job} does not validate: {v}");
                let error = Error::new(ErrorKind::Internal, format!("job {job}: {v}"));
                self.failed(job, error, now, out);
                continue;
            }
            let mut edit = self.jobs.commit(job);
            let spec = self.jobs.spec(job).map(|s| &**s);
            let mut what = match spec {
                Some(spec) => spec.describe(&self.version),
                None => "flush".to_owned(),
            };
            edit.bucket_hint =
                self.buckets.after(&self.version, job, spec, &edit, &self.options.plan);
            if let (Some(old), Some(new)) = (self.version.buckets(), &edit.bucket_hint)
                && old.epoch != new.epoch
            {
                let how = if new.len() > old.len() { "split" } else { "merged" };
                what += &format!("; a bucket was {how}, {} now", new.len());
            }
            out.push(Command::Commit { edit: Box::new(edit.clone()), what });
            self.writing = Some(Writing { job, edit });
        }
    }

    /// The edit handed out last is settled.
    pub(crate) fn settle(&mut self, how: Settled, now: u64, out: &mut Vec<Command>) {
        let Some(Writing { job, edit }) = self.writing.take() else {
            return;
        };
        match how {
            Settled::Durable => {}
            Settled::Postponed(error) => return self.postpone(job, edit, error, now, out),
            Settled::Unknown(error) => return self.seal(error, out),
        }
        match self.version.apply(&edit) {
            Ok(next) => self.version = next,
            Err(v) => {
                let text = format!("edit of job {job} does not apply: {v}");
                return self.seal(Error::new(ErrorKind::Internal, text), out);
            }
        }
        self.failures = 0;
        self.untroubled(out);
        self.buckets.forget(job);
        let (mem, inputs) = self.jobs.retire(job);
        if let Some(mem) = mem {
            let bytes = edit.adds.iter().map(|f| f.bytes).sum();
            self.throttle.flushed(bytes, now);
            self.memory.flushed(mem);
        } else {
            self.advanced(out);
        }
        self.check();
        self.installs += 1;
        out.push(Command::Install {
            no: self.installs,
            version: Box::new(self.version.clone()),
            flushed: mem,
            obsolete: inputs,
        });
    }

    /// No edit is handed out any more. Inputs and outputs all stay on disk: either may be what
    /// the next open finds.
    fn seal(&mut self, error: Error, out: &mut Vec<Command>) {
        self.sealed = true;
        self.jobs.give_up_finished();
        self.stop_writes(error, out);
    }

    /// Nothing but space is missing: the job keeps its files and is tried again after a pause. A
    /// database that is closing does not wait for space: the logs still hold what a flush has.
    fn postpone(&mut self, job: JobId, edit: Edit, error: Error, now: u64, out: &mut Vec<Command>) {
        self.failures += 1;
        self.commit_at = now + self.backoff();
        self.jobs.uncommit(job, edit);
        if self.closing {
            self.sealed = true;
            self.jobs.give_up_finished();
        }
        self.troubled(error, out);
    }
}
