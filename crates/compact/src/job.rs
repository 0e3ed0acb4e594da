//! A compaction as a step machine: its inputs are opened, it is cut into parts where the plan allows
//! for several, and the parts are merged.
//!
//! ```text
//!   Prepare -> Open <-> (wait for tables)
//!           -> Parts: this job and, where there are several, co-workers beside it -> Over
//! ```

use lithify_base::{Error, ErrorKind, JobId, Result, Seq};
use lithify_env::sync::Arc;
use lithify_env::{Class, Job, Mono, Step, Urgency};
use lithify_lsm::{FileRef, Version};
use lithify_plan::JobSpec;

use crate::context::JobContext;
use crate::opening::{Inputs, Opening};
use crate::parts::{Began, CoWorker, Parts, Whole, Worker};
use crate::recipe::{self, InputRun};
use crate::route::Engines;
use crate::{JobControl, JobWork, OnPart, Outcome, Report, cuts, dictionary};

/// What to compact.
pub struct CompactionSpec {
    /// Number of the job.
    pub job: JobId,
    /// The accepted plan.
    pub plan: Arc<JobSpec>,
    /// The inputs, newest position first, each position in key order.
    pub inputs: Vec<FileRef>,
    /// The tree at issue.
    pub version: Version,
    /// Live snapshots, ascending.
    pub snapshots: Vec<Seq>,
    /// What its owner holds of it.
    pub control: Arc<JobControl>,
    /// Who is told of its parts, if it has several. It is dropped when the job holds none of its inputs any more.
    pub on_part: OnPart,
}

/// A compaction at work.
pub struct CompactionJob {
    context: Arc<JobContext>,
    engines: Arc<Engines>,
    spec: Arc<CompactionSpec>,
    stage: Stage,
    /// Until the parts have it.
    report: Option<Report>,
    cpu_nanos: u64,
    started: Option<Mono>,
}

enum Stage {
    Prepare,
    Open(Opening),
    Parts(Worker),
    Over,
}

impl CompactionJob {
    /// A job that tells `report` how it ended.
    pub fn new(
        context: Arc<JobContext>,
        engines: Arc<Engines>,
        spec: CompactionSpec,
        report: Report,
    ) -> CompactionJob {
        CompactionJob {
            context,
            engines,
            spec: Arc::new(spec),
            stage: Stage::Prepare,
            report: Some(report),
            cpu_nanos: 0,
            started: None,
        }
    }

    /// A step before there are parts.
    fn advance(&mut self) -> Result<Step> {
        if self.spec.control.is_stopped() {
            return Err(called_off());
        }
        match &mut self.stage {
            Stage::Prepare => {
                let urgency = self.spec.control.urgency().clone();
                let sampled = dictionary::sampled(&self.context.output, self.spec.plan.out.level);
                let opening =
                    Opening::new(self.context.clone(), urgency, &self.spec.inputs, sampled);
                self.stage = Stage::Open(opening);
                Ok(Step::More)
            }
            Stage::Open(opening) => {
                if let Some(ticket) = opening.advance()? {
                    return Ok(Step::Wait(ticket));
                }
                let Stage::Open(opening) = std::mem::replace(&mut self.stage, Stage::Over) else {
                    unreachable!("matched above")
                };
                self.cut(opening.into_inputs())?;
                Ok(Step::More)
            }
            Stage::Parts(_) | Stage::Over => unreachable!("not before there are parts"),
        }
    }

    /// Cuts the job into parts, and asks for help where there are several.
    fn cut(&mut self, inputs: Inputs) -> Result<()> {
        let (context, spec) = (&self.context, &self.spec);
        let runs: Vec<InputRun> = recipe::input_runs(inputs.tables);
        let snapshots = spec.snapshots.clone();
        let mut recipe = recipe::compaction(context, &spec.version, &runs, &spec.plan, snapshots)?;
        recipe.dictionary = dictionary::of(&inputs.samples, &context.output)?;
        let list = cuts::cut(&runs, spec.plan.cuts.parts, &*context.order);
        let began = Began {
            at: self.started.unwrap_or_default(),
            cpu_nanos: self.cpu_nanos,
            report: self.report.take(),
        };
        let whole = Whole { runs, recipe: Arc::new(recipe) };
        let parts =
            Parts::new(context.clone(), self.engines.clone(), spec.clone(), whole, list, began);
        self.stage = Stage::Parts(Worker::main(parts.clone()));
        let rt = &context.env.rt;
        for _ in 1..parts.len().min(rt.threads(Class::Compact)) {
            rt.spawn(Class::Compact, Box::new(CoWorker::new(&parts)));
        }
        Ok(())
    }

    fn fail(&mut self, error: Error) {
        self.stage = Stage::Over;
        let Some(report) = self.report.take() else { return };
        let nanos =
            self.started.map_or(0, |at| self.context.env.rt.now().since(at).as_nanos() as u64);
        let work = JobWork { nanos, cpu_nanos: self.cpu_nanos, ..JobWork::default() };
        report(Outcome { result: Err(error), work, flow: None });
    }
}

/// What a job that was stopped says.
pub(crate) fn called_off() -> Error {
    Error::new(ErrorKind::ShuttingDown, "the compaction was called off")
}

impl Job for CompactionJob {
    fn step(&mut self) -> Step {
        if let Stage::Parts(worker) = &mut self.stage {
            return worker.step();
        }
        let rt = self.context.env.rt.clone();
        self.started.get_or_insert_with(|| rt.now());
        let before = rt.thread_cpu();
        let result = self.advance();
        self.cpu_nanos += rt.thread_cpu().saturating_sub(before).as_nanos() as u64;
        result.unwrap_or_else(|error| {
            self.fail(error);
            Step::Done
        })
    }
    fn urgency(&self) -> Urgency {
        self.spec.control.urgency().get()
    }
    fn panicked(&mut self, message: String) {
        let text = format!("compaction job {} panicked: {message}", self.spec.job);
        let error = Error::new(ErrorKind::Internal, text);
        match &mut self.stage {
            Stage::Parts(worker) => worker.fail(error),
            _ => self.fail(error),
        }
    }
}
