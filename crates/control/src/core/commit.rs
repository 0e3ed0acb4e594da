//! From built to installed: one batch of edits at a time, in an order that keeps invariant R.

use std::collections::BTreeSet;

use lithify_base::{Error, ErrorKind, FileId, JobId};
use lithify_lsm::{Edit, Version};

use crate::command::{Command, NewEdit};
use crate::core::{Core, discard};
use crate::life::{Settled, Writing};
use crate::retry::PATIENCE;

/// Bytes of the files that `edit` adds and that were not there before.
fn made_bytes(edit: &Edit) -> u64 {
    let gone: BTreeSet<FileId> = edit.deletes.iter().map(|(_, id)| *id).collect();
    let made = edit.adds.iter().filter(|f| !gone.contains(&f.id));
    made.map(|f| f.bytes).fold(0, u64::saturating_add)
}

impl Core {
    /// Hands out the edits of all jobs that are ready, if none are being written: they share one
    /// append and one sync, which on a slow disk take longer than small jobs do. Flushes go first,
    /// oldest first (they free memory), then compactions. Each edit is validated against the tree
    /// with those before it; a crash may keep any first part of the batch.
    pub(crate) fn commit_next(&mut self, now: u64, out: &mut Vec<Command>) {
        if !self.life.may_commit(now) {
            return;
        }
        let mut batch = Writing { edits: Vec::new(), next: self.version.clone() };
        let mut whats = Vec::new();
        while let Some(job) = self.next_committable() {
            match self.take_edit(job, &batch.next) {
                Ok((edit, what, next)) => {
                    whats.push(what);
                    batch.edits.push((job, edit));
                    batch.next = next;
                }
                Err(error) => {
                    // A planner bug. Nothing bad is installed: the job is dropped and counted.
                    debug_assert!(false, "{error}");
                    self.failed(job, error, now, out);
                }
            }
        }
        if batch.edits.is_empty() {
            if self.life.is_closing() && !self.jobs.any_running() {
                // What is left waits for a job that will not be started any more.
                self.jobs.give_up_finished();
            }
            return;
        }
        let edits = batch.edits.iter().map(|(_, edit)| edit.clone()).zip(whats);
        let edits = edits.map(|(edit, what)| NewEdit { edit, what }).collect();
        out.push(Command::Commit { edits });
        self.life.hand_out(batch);
    }

    /// The job whose edit comes next: that of the oldest memtable, else a compaction.
    fn next_committable(&self) -> Option<JobId> {
        let taken = self.jobs.committing_flushes();
        let flush = self.memory.job_of(taken).filter(|j| self.jobs.is_built(*j));
        flush.or_else(|| self.jobs.committable().next())
    }

    /// The edit of a built job, what it is, and the tree with it.
    fn take_edit(&mut self, job: JobId, tree: &Version) -> Result<(Edit, String, Version), Error> {
        let broken = |v: &dyn std::fmt::Display| {
            Error::new(ErrorKind::Internal, format!("the edit of job {job} does not fit: {v}"))
        };
        let spec = self.jobs.spec(job).cloned();
        // What comes from outside has a promise for each file.
        for spec in self.jobs.specs(job) {
            lithify_plan::validate_commit(tree, spec).map_err(|v| broken(&v))?;
        }
        let plain = tree.apply(self.jobs.edit(job)).map_err(|v| broken(&v))?;
        let mut edit = self.jobs.commit(job);
        let done = spec.as_deref();
        edit.bucket_hint = self.buckets.after(tree, &plain, job, done, &self.options.plan);
        // The map is made from the tree that it then belongs to.
        let next = match &edit.bucket_hint {
            Some(map) => plain.with_buckets(map.clone()).map_err(|v| broken(&v))?,
            None => plain,
        };
        let mut what = done.map_or_else(|| "flush".to_owned(), |spec| spec.describe(tree));
        if let (Some(old), Some(new)) = (tree.buckets(), &edit.bucket_hint)
            && old.epoch != new.epoch
        {
            let how = if new.len() > old.len() { "split" } else { "merged" };
            what += &format!("; a bucket was {how}, {} now", new.len());
        }
        Ok((edit, what, next))
    }

    /// The edits handed out last are settled.
    pub(crate) fn settle(&mut self, how: Settled, now: u64, out: &mut Vec<Command>) {
        let Some(Writing { edits, next }) = self.life.settled(now) else {
            return;
        };
        match how {
            Settled::Durable => {}
            Settled::Postponed(error) => return self.postpone(edits, error, now, out),
            Settled::Unknown(error) => return self.seal(error, out),
        }
        self.version = next;
        self.retry.edits.succeeded();
        self.health.edits_work(out);
        discard(std::mem::take(&mut self.outsiders.unsure), out);
        let (mut flushed, mut obsolete) = (None, Vec::new());
        let jobs: Vec<JobId> = edits.iter().map(|(job, _)| *job).collect();
        for (job, edit) in edits {
            self.buckets.forget(job);
            self.resources.wrote(made_bytes(&edit));
            let (mem, inputs) = self.jobs.retire(job);
            if let Some(mem) = mem {
                let (memory, writes) = self.memory.flushed(mem, now);
                self.throttle.flushed(memory, writes, now);
                self.health.flushes_work(out);
                flushed = Some(mem);
            } else if !self.outsiders.has(job) {
                self.advanced(out);
            }
            obsolete.extend(inputs);
        }
        self.check();
        self.installs += 1;
        let version = Box::new(self.version.clone());
        out.push(Command::Install { no: self.installs, version, flushed, obsolete });
        jobs.into_iter().for_each(|job| self.outside_done(job, out));
    }

    /// No edit is handed out any more. Inputs and outputs all stay on disk: either may be what
    /// the next open finds.
    fn seal(&mut self, error: Error, out: &mut Vec<Command>) {
        self.life.seal();
        self.jobs.give_up_finished();
        self.health.stop_writes(error, out);
    }

    /// Nothing but space is missing: the jobs keep their files and are tried again after a pause. A
    /// database that is closing does not wait for space: the logs still hold what a flush has.
    fn postpone(
        &mut self,
        edits: Vec<(JobId, Edit)>,
        error: Error,
        now: u64,
        out: &mut Vec<Command>,
    ) {
        self.retry.edits.failed();
        self.life.wait_until(self.retry.edits.next(now));
        let is_compaction = |job| self.jobs.spec(job).is_some() && !self.outsiders.has(job);
        if edits.iter().any(|(job, _)| is_compaction(*job)) {
            self.health.compaction_failed(&error, out);
        }
        // The commit is tried again all the same; but no caller waits for ever until another program
        // frees space.
        if self.retry.edits.failures() >= PATIENCE {
            self.fail_manual(&error, out);
        }
        let (outside, own): (Vec<_>, Vec<_>) =
            edits.into_iter().partition(|(job, _)| self.outsiders.has(*job));
        own.into_iter().for_each(|(job, edit)| self.jobs.uncommit(job, edit));
        for (job, edit) in outside {
            self.outside_unsure(job, &edit, &error, now, out);
        }
        if self.life.is_closing() {
            self.life.seal();
            self.jobs.give_up_finished();
        }
        self.health.edit_failed(error, out);
    }
}
