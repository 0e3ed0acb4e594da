//! The job table. Locks are not stored: a file is locked exactly while a job in this table has
//! it as an input (V12).

use std::collections::BTreeMap;
use std::sync::Arc;

use lithify_base::zoo::{self, Bug};
use lithify_base::{CfId, FileId, JobId};
use lithify_lsm::{Edit, FileMeta, FileRef, Version};
use lithify_plan::{InFlight, JobSpec, JobState, Kind};

use crate::event::MemId;

#[derive(Clone, Debug)]
enum Work {
    Flush(MemId),
    Compaction { inputs: Vec<FileRef> },
}

#[derive(Clone, Debug)]
enum State {
    Running,
    Built(Edit),
    Committing,
}

#[derive(Clone, Debug)]
struct Job {
    work: Work,
    state: State,
    /// Its edit was handed out, once at least: a crash may find it in effect.
    handed_out: bool,
}

impl Job {
    fn new(work: Work, state: State) -> Job {
        Job { work, state, handed_out: false }
    }
    /// Files that it made and that no edit will ever name.
    fn litter(&self) -> Vec<FileId> {
        match &self.state {
            State::Built(edit) if !self.handed_out => made(edit),
            _ => Vec::new(),
        }
    }
}

/// The files that `edit` adds and that were not in the tree before.
fn made(edit: &Edit) -> Vec<FileId> {
    let moves = |f: &FileMeta| edit.deletes.iter().any(|(_, id)| *id == f.id);
    edit.adds.iter().filter(|f| !moves(f)).map(|f| f.id).collect()
}

/// All jobs between acceptance and end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Jobs {
    table: BTreeMap<JobId, Job>,
    /// The compactions among them as the planner sees them.
    in_flight: Vec<InFlight>,
}

/// A job that left the table.
pub(crate) struct Gone {
    pub(crate) job: JobId,
    /// Its memtable, if it was a flush.
    pub(crate) mem: Option<MemId>,
    /// Files that it made and that no edit will ever name.
    pub(crate) litter: Vec<FileId>,
}

impl Jobs {
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }
    pub(crate) fn in_flight(&self) -> &[InFlight] {
        &self.in_flight
    }
    pub(crate) fn flushes(&self) -> usize {
        self.count(|j| matches!((&j.work, &j.state), (Work::Flush(_), State::Running)))
    }
    /// Compactions that hold a slot: those still being built.
    pub(crate) fn running(&self) -> impl Iterator<Item = &InFlight> {
        running(&self.in_flight)
    }
    /// Flushes with their memtables, and whether a worker is busy with them.
    pub(crate) fn all_flushes(&self) -> impl Iterator<Item = (JobId, MemId, bool)> + '_ {
        self.table.iter().filter_map(|(id, job)| match job.work {
            Work::Flush(mem) => Some((*id, mem, matches!(job.state, State::Running))),
            Work::Compaction { .. } => None,
        })
    }
    /// True if a worker is busy with any job.
    pub(crate) fn any_running(&self) -> bool {
        self.table.values().any(|j| matches!(j.state, State::Running))
    }
    fn count(&self, is: impl Fn(&Job) -> bool) -> usize {
        self.table.values().filter(|j| is(j)).count()
    }

    pub(crate) fn add_flush(&mut self, id: JobId, mem: MemId) {
        self.table.insert(id, Job::new(Work::Flush(mem), State::Running));
    }
    pub(crate) fn add_compaction(&mut self, id: JobId, spec: Arc<JobSpec>, inputs: Vec<FileRef>) {
        self.in_flight.push(InFlight { id, spec, state: JobState::Running });
        self.table.insert(id, Job::new(Work::Compaction { inputs }, State::Running));
    }
    pub(crate) fn add_built(
        &mut self,
        id: JobId,
        spec: Arc<JobSpec>,
        inputs: Vec<FileRef>,
        edit: Edit,
    ) {
        self.add_promise(id, spec);
        self.add_ready(id, inputs, edit);
    }
    /// What a change from outside promises or locks; one that places several files promises several
    /// positions.
    pub(crate) fn add_promise(&mut self, id: JobId, spec: Arc<JobSpec>) {
        self.in_flight.push(InFlight { id, spec, state: JobState::WaitDeps });
    }
    /// A change from outside that only has to commit.
    pub(crate) fn add_ready(&mut self, id: JobId, inputs: Vec<FileRef>, edit: Edit) {
        self.table.insert(id, Job::new(Work::Compaction { inputs }, State::Built(edit)));
    }
    /// Whether a job is in the table.
    pub(crate) fn has(&self, id: JobId) -> bool {
        self.table.contains_key(&id)
    }
    pub(crate) fn flushed_mem(&self, id: JobId) -> Option<MemId> {
        match self.table.get(&id)?.work {
            Work::Flush(mem) => Some(mem),
            Work::Compaction { .. } => None,
        }
    }
    /// The job's files exist. A job that was aborted meanwhile is unknown here, and stays so: what it
    /// made is of no use.
    pub(crate) fn built(&mut self, id: JobId, mut edit: Edit) -> Vec<FileId> {
        let Some(job) = self.table.get_mut(&id) else { return made(&edit) };
        if let Work::Compaction { inputs } = &job.work {
            edit.deletes = inputs.iter().map(|f| (f.pos, f.id)).collect();
        }
        job.state = State::Built(edit);
        self.mark(id, JobState::WaitDeps);
        Vec::new()
    }
    fn mark(&mut self, id: JobId, state: JobState) {
        self.in_flight.iter_mut().filter(|f| f.id == id).for_each(|f| f.state = state);
    }

    /// Built compactions whose after-edges have left the table or go before them in the batch
    /// that is being put together, oldest first.
    pub(crate) fn committable(&self) -> impl Iterator<Item = JobId> + '_ {
        let before =
            |id: &JobId| self.table.get(id).is_none_or(|j| matches!(j.state, State::Committing));
        self.in_flight.iter().filter_map(move |f| {
            let ready = self.is_built(f.id)
                && (f.spec.after.iter().all(before) || zoo::on(Bug::CommitInFinishOrder));
            ready.then_some(f.id)
        })
    }
    /// Flushes in the batch that is being put together or written.
    pub(crate) fn committing_flushes(&self) -> usize {
        self.count(|j| matches!((&j.work, &j.state), (Work::Flush(_), State::Committing)))
    }
    /// The edit of a built job.
    pub(crate) fn edit(&self, id: JobId) -> &Edit {
        match self.table.get(&id) {
            Some(Job { state: State::Built(edit), .. }) => edit,
            other => unreachable!("only a built job has an edit, not {other:?}"),
        }
    }
    pub(crate) fn is_built(&self, id: JobId) -> bool {
        matches!(self.table.get(&id), Some(Job { state: State::Built(_), .. }))
    }
    /// What a compaction is; the first of what files from outside were promised.
    pub(crate) fn spec(&self, id: JobId) -> Option<&Arc<JobSpec>> {
        self.specs(id).next()
    }
    /// The same, of each file from outside.
    pub(crate) fn specs(&self, id: JobId) -> impl Iterator<Item = &Arc<JobSpec>> {
        self.in_flight.iter().filter(move |f| f.id == id).map(|f| &f.spec)
    }
    /// Hands out the edit of a built job, which is then committing.
    pub(crate) fn commit(&mut self, id: JobId) -> Edit {
        self.mark(id, JobState::Committing);
        let job = self.table.get_mut(&id).expect("the job is in the table");
        job.handed_out = true;
        match std::mem::replace(&mut job.state, State::Committing) {
            State::Built(edit) => edit,
            other => unreachable!("only a built job commits, not {other:?}"),
        }
    }
    /// The edit of a committing job could not be written yet: the job is as before.
    pub(crate) fn uncommit(&mut self, id: JobId, edit: Edit) {
        self.mark(id, JobState::WaitDeps);
        let job = self.table.get_mut(&id).expect("the job is in the table");
        job.state = State::Built(edit);
    }
    /// Removes every job that is built, because no edit will be written any more.
    pub(crate) fn give_up_finished(&mut self) {
        self.table.retain(|_, job| matches!(job.state, State::Running));
        self.in_flight.retain(|f| self.table.contains_key(&f.id));
    }
    /// The tree as if the inputs of jobs at work had left it (a bug of the zoo).
    pub(crate) fn without_inputs(&self, version: &Version) -> Version {
        let mut edit = Edit::new(CfId(0));
        for job in self.table.values() {
            if let Work::Compaction { inputs } = &job.work {
                edit.deletes.extend(inputs.iter().map(|f| (f.pos, f.id)));
            }
        }
        version.apply(&edit).unwrap_or_else(|_| version.clone())
    }
    /// Removes a job that ended and is not wanted any more.
    pub(crate) fn forget(&mut self, id: JobId) {
        self.table.remove(&id);
        self.in_flight.retain(|f| f.id != id);
    }
    /// Removes a job that committed; its inputs, if it was a compaction.
    pub(crate) fn retire(&mut self, id: JobId) -> (Option<MemId>, Vec<FileRef>) {
        self.in_flight.retain(|f| f.id != id);
        match self.table.remove(&id).expect("the job is in the table").work {
            Work::Flush(mem) => (Some(mem), Vec::new()),
            Work::Compaction { inputs } => (None, inputs),
        }
    }
    /// Removes a job and every job ordered after it, transitively: their outputs would land
    /// below data that stays. `None` if the job is not in the table.
    pub(crate) fn remove_with_dependents(&mut self, id: JobId) -> Option<Vec<Gone>> {
        self.table.get(&id)?;
        let mut gone = vec![id];
        let mut at = 0;
        while let Some(&dead) = gone.get(at) {
            at += 1;
            for f in &self.in_flight {
                let follows = f.spec.after.contains(&dead) && !zoo::on(Bug::FollowersStay);
                if follows && !gone.contains(&f.id) {
                    gone.push(f.id);
                }
            }
        }
        self.in_flight.retain(|f| !gone.contains(&f.id));
        Some(
            gone.into_iter()
                .filter_map(|id| {
                    let job = self.table.remove(&id)?;
                    let mem = match job.work {
                        Work::Flush(mem) => Some(mem),
                        Work::Compaction { .. } => None,
                    };
                    Some(Gone { job: id, mem, litter: job.litter() })
                })
                .collect(),
        )
    }
}

/// Those of `flights` that are still being built.
pub(crate) fn running(flights: &[InFlight]) -> impl Iterator<Item = &InFlight> {
    flights.iter().filter(|f| f.state == JobState::Running)
}

/// The files a spec names, newest position first.
pub(crate) fn inputs(version: &Version, spec: &JobSpec) -> Vec<FileRef> {
    let mut files: Vec<FileRef> = spec
        .inputs
        .iter()
        .map(|id| version.file(*id).expect("an accepted job's inputs are in the tree").clone())
        .collect();
    if zoo::on(Bug::InputMissed) && files.len() > 1 {
        files.pop();
    }
    files.sort_by(|a, b| {
        a.pos.cmp(&b.pos).then_with(|| version.order().compare(&a.range.lo, &b.range.lo))
    });
    files
}

/// The edit of a trivial move: the same files at another position; of a drop: no files.
pub(crate) fn instant_edit(job: JobId, spec: &JobSpec, inputs: &[FileRef]) -> Edit {
    let mut edit = Edit::new(CfId(0));
    edit.job = Some(job);
    if spec.kind == Kind::Move {
        edit.adds = inputs.iter().map(|f| f.moved(spec.out)).collect();
    }
    edit.deletes = inputs.iter().map(|f| (f.pos, f.id)).collect();
    edit
}
