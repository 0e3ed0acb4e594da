//! Changes of the tree that no merge makes: files that are taken in from outside, and files that are
//! dropped with all they hold. They are jobs like any other, built from the beginning: their
//! promises and locks stand in the job table until they commit, so nothing is planned that would pass
//! them.
//!
//! ```text
//!   Outside::Ingest  placed on top of what it overlaps -> Built -> Committing -> RequestDone
//!   Outside::Drop    locks what may go                       -> Built -> Committing -> RequestDone
//! ```
//!
//! Keeps: each caller is told exactly once. A change whose edit could not be written is given up and
//! never handed out again; whether it took effect shows at the next open.
//! Leaves to others: where a placement may be and what may go (`lithify_plan::relation`), bringing
//! the files into the directory, their number (the shell).

use std::sync::Arc;

use lithify_base::{CfId, Error, ErrorKind, FileId, JobId, KeyRange, Pos};
use lithify_lsm::{Edit, FileMeta};
use lithify_plan::{
    Cost, CutPolicy, JobSpec, Kind, Placement, Prio, Reason, droppable, hull, place,
};

use crate::command::Command;
use crate::core::{Core, discard};
use crate::event::Outside;
use crate::jobs::instant_edit;
use crate::requests::closing;

impl Core {
    /// Makes `request` a job that only has to commit.
    pub(crate) fn take_outside(
        &mut self,
        id: u64,
        request: Outside,
        now: u64,
        out: &mut Vec<Command>,
    ) {
        if let Some(error) = self.refusal() {
            if let Outside::Ingest { files } = request {
                discard(files.iter().map(|f| f.id).collect(), out);
            }
            out.push(Command::RequestDone { id, result: Err(error) });
            return;
        }
        let job = match request {
            Outside::Ingest { files } => self.ingest(files, now),
            Outside::Drop { ranges } => self.drop_files(&ranges, now),
        };
        match job {
            Some(job) => drop(self.outsiders.asked.insert(job, id)),
            None => out.push(Command::RequestDone { id, result: Ok(()) }),
        }
    }

    fn refusal(&self) -> Option<Error> {
        let stopped = || Error::new(ErrorKind::ReadOnly, "an earlier error stopped writes");
        match self.health.read_only() {
            Some(cause) => Some(stopped().caused_by(cause.clone())),
            None => self.life.is_ending().then(closing),
        }
    }

    fn ingest(&mut self, mut files: Vec<FileMeta>, now: u64) -> Option<JobId> {
        // Those that go to level 0 come from one moment, as the files of one flush do.
        let stratum = self.memory.reserve_stratum();
        let mem = self.memory.state();
        let view = self.view(&mem, now);
        for file in &mut files {
            file.pos = match place(&view, &file.range) {
                Placement::At(pos) => pos,
                Placement::NewestOfL0 => Pos::new(0, stratum),
            };
            file.epoch = u64::from(stratum);
        }
        drop(view);
        let job = self.job_id();
        for file in &files {
            let spec = spec(Kind::Ingest, Vec::new(), file.pos, file.range.clone());
            self.jobs.add_promise(job, spec);
        }
        let edit = Edit { job: Some(job), adds: files, ..Edit::new(CfId(0)) };
        self.jobs.add_ready(job, Vec::new(), edit);
        Some(job)
    }

    fn drop_files(&mut self, ranges: &[KeyRange], now: u64) -> Option<JobId> {
        let mem = self.memory.state();
        let inputs = droppable(&self.view(&mem, now), ranges);
        let hull = hull(&inputs, self.version.order())?;
        let job = self.job_id();
        let out = Pos::base(self.options.plan.last_level());
        let ids = inputs.iter().map(|f| f.id).collect();
        let spec = spec(Kind::Drop, ids, out, hull);
        let edit = instant_edit(job, &spec, &inputs);
        self.jobs.add_built(job, spec, inputs, edit);
        Some(job)
    }

    /// A change from outside is in the tree that was just handed out.
    pub(crate) fn outside_done(&mut self, job: JobId, out: &mut Vec<Command>) {
        if let Some(id) = self.outsiders.asked.remove(&job) {
            out.push(Command::RequestDone { id, result: Ok(()) });
        }
    }

    /// The edit of a change from outside could not be written, and is not tried again. Nor can those commit that were
    /// to follow it: what they would pass stays where it is.
    pub(crate) fn outside_unsure(
        &mut self,
        job: JobId,
        edit: &Edit,
        error: &Error,
        now: u64,
        out: &mut Vec<Command>,
    ) {
        let gone = self.jobs.remove_with_dependents(job).unwrap_or_default();
        self.let_go(gone, Some(job), now, out);
        self.outsiders.unsure.extend(edit.adds.iter().map(|f| f.id));
        if let Some(id) = self.outsiders.asked.remove(&job) {
            let what = "the manifest could not be written; whether the change took effect shows at \
                        the next open, unless something is committed before";
            let error = Error::new(ErrorKind::OutcomeUnknown, what).caused_by(error.clone());
            out.push(Command::RequestDone { id, result: Err(error) });
        }
    }

    /// Callers that wait for a change whose job is gone are told.
    pub(crate) fn end_outsiders(&mut self, out: &mut Vec<Command>) {
        let asked = &self.outsiders.asked;
        let gone: Vec<JobId> = asked.keys().copied().filter(|job| !self.jobs.has(*job)).collect();
        for job in gone {
            let Some(id) = self.outsiders.asked.remove(&job) else { continue };
            let lost = || Error::new(ErrorKind::OutcomeUnknown, "the change was given up");
            let error =
                self.health.read_only().cloned().map_or_else(lost, |cause| lost().caused_by(cause));
            out.push(Command::RequestDone { id, result: Err(error) });
        }
    }
}

fn spec(kind: Kind, inputs: Vec<FileId>, out: Pos, hull: KeyRange) -> Arc<JobSpec> {
    Arc::new(JobSpec {
        kind,
        inputs,
        out,
        hull,
        cuts: CutPolicy::default(),
        after: Vec::new(),
        prio: Prio::Normal,
        est: Cost::default(),
        reason: Reason::Said("asked for".to_owned()),
    })
}
