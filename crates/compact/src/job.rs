//! A compaction as a step machine.
//!
//! ```text
//!   Prepare -> Open <-> (wait for tables)
//!           -> Merge <-> (wait for a read or a write) -> Finish <-> (wait for syncs) -> Over
//! ```
//!
//! A step of `Merge` offers the sets that have arrived, polls the engine for one slice of work,
//! certifies what came out and hands it to the sink. It waits only if the engine starves for
//! input or the sink has too many writes under way.

use lithify_base::{Error, ErrorKind, JobId, Result, Seq};
use lithify_engine::{Engine, Offer, Progress, Session};
use lithify_env::sync::Arc;
use lithify_env::{Job, Mono, Step, Urgency};
use lithify_lsm::{FileRef, Version};
use lithify_merge::certify::{Certifier, Mode};
use lithify_merge::{BlockSet, Ledger, Products, Recipe};
use lithify_plan::JobSpec;
use lithify_store::sst::TableReader;

use crate::feed::Feed;
use crate::opening::Opening;
use crate::recipe::{self, InputRun};
use crate::sink::Sink;
use crate::workshop::{Times, Workshop};
use crate::{JobWork, Outcome, Reins, Report};

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
    pub reins: Arc<Reins>,
}

/// A compaction at work.
pub struct CompactionJob {
    shop: Arc<Workshop>,
    engine: Arc<dyn Engine>,
    spec: CompactionSpec,
    stage: Stage,
    report: Option<Report>,
    work: JobWork,
    started: Option<Mono>,
}

enum Stage {
    Prepare,
    Open(Opening),
    Merge(Box<Merging>),
    Finish(Box<Sink>),
    Over,
}

/// Everything the merge needs while it goes on.
struct Merging {
    recipe: Arc<Recipe>,
    feed: Feed,
    session: Box<dyn Session>,
    /// A set the session had no room for.
    held: Option<BlockSet>,
    sealed: bool,
    products: Products,
    /// None if the output is taken on trust, to measure what this costs.
    certifier: Option<Certifier>,
    sink: Sink,
}

impl CompactionJob {
    /// A job that tells `report` how it ended.
    pub fn new(
        shop: Arc<Workshop>,
        engine: Arc<dyn Engine>,
        spec: CompactionSpec,
        report: Report,
    ) -> CompactionJob {
        CompactionJob {
            shop,
            engine,
            spec,
            stage: Stage::Prepare,
            report: Some(report),
            work: JobWork::default(),
            started: None,
        }
    }

    fn advance(&mut self) -> Result<Step> {
        if self.spec.reins.is_stopped() {
            return Err(Error::new(ErrorKind::ShuttingDown, "the compaction was called off"));
        }
        match &mut self.stage {
            Stage::Prepare => {
                let urgency = self.spec.reins.urgency();
                let inputs = &self.spec.inputs;
                self.stage = Stage::Open(Opening::new(self.shop.clone(), urgency.clone(), inputs));
                Ok(Step::More)
            }
            Stage::Open(opening) => {
                if let Some(ticket) = opening.advance()? {
                    return Ok(Step::Wait(ticket));
                }
                let Stage::Open(opening) = std::mem::replace(&mut self.stage, Stage::Over) else {
                    unreachable!("matched above")
                };
                self.stage = Stage::Merge(Box::new(self.prepare(opening.into_tables())?));
                Ok(Step::More)
            }
            Stage::Merge(merging) => match merging.advance(&self.spec.reins)? {
                Advance::Step(step) => Ok(step),
                Advance::Merged(ledger) => {
                    self.work.entries_in = ledger.entries_in;
                    self.work.entries_out = ledger.entries_out;
                    let Stage::Merge(merging) = std::mem::replace(&mut self.stage, Stage::Over)
                    else {
                        unreachable!("matched above")
                    };
                    self.stage = Stage::Finish(Box::new(merging.finish(&ledger)?));
                    Ok(Step::More)
                }
            },
            Stage::Finish(sink) => match sink.finish()? {
                Some(ticket) => Ok(Step::Wait(ticket)),
                None => {
                    let Stage::Finish(sink) = std::mem::replace(&mut self.stage, Stage::Over)
                    else {
                        unreachable!("matched above")
                    };
                    self.work.written = sink.written();
                    self.end(Ok(sink.into_files()));
                    Ok(Step::Done)
                }
            },
            Stage::Over => Ok(Step::Done),
        }
    }

    fn prepare(&mut self, inputs: Vec<(FileRef, Arc<TableReader>)>) -> Result<Merging> {
        let shop = &self.shop;
        self.work.read = self.spec.inputs.iter().map(|f| f.bytes).sum();
        let runs: Vec<InputRun> = recipe::input_runs(inputs);
        let snapshots = std::mem::take(&mut self.spec.snapshots);
        let recipe = Arc::new(recipe::compaction(
            shop,
            &self.spec.version,
            &runs,
            &self.spec.plan,
            snapshots,
        )?);
        let caps = self.engine.caps();
        let urgency = self.spec.reins.urgency();
        // Many runs share a set: none should be read in crumbs.
        let (write, of_runs) = (shop.output.write_bytes as u64, runs.len() as u64);
        let set_bytes = caps.set_bytes.min((2 * write).max(of_runs * write / 4));
        let feed = Feed::new(shop.clone(), urgency.clone(), &runs, set_bytes)?;
        let session = self.engine.open(recipe.clone()).map_err(|refusal| {
            Error::unsupported(format!("engine {} refused: {refusal}", caps.name))
        })?;
        let now = shop.env.rt.wall_seconds();
        let born = self.spec.inputs.iter().map(|f| f.oldest_ancestor).filter(|&t| t > 0).min();
        let epoch = self.spec.inputs.iter().map(|f| f.epoch).min().unwrap_or(0);
        let times = Times { now, oldest_ancestor: born.unwrap_or(now) };
        let mode = if caps.certify_fully { Mode::Full } else { Mode::Meta };
        Ok(Merging {
            sink: Sink::new(shop.clone(), urgency.clone(), self.spec.plan.out, epoch, times),
            recipe,
            feed,
            session,
            held: None,
            sealed: false,
            products: Products::default(),
            certifier: (!shop.output.unchecked).then(|| Certifier::new(mode)),
        })
    }

    fn end(&mut self, result: Result<Vec<lithify_lsm::FileMeta>>) {
        self.stage = Stage::Over;
        if let Some(started) = self.started {
            self.work.nanos = self.shop.env.rt.now().since(started).as_nanos() as u64;
        }
        if let Some(report) = self.report.take() {
            report(Outcome { result, work: self.work, flow: None });
        }
    }
}

enum Advance {
    Step(Step),
    Merged(Box<Ledger>),
}

impl Merging {
    fn advance(&mut self, reins: &Reins) -> Result<Advance> {
        if let Some(ticket) = self.sink.must_wait()? {
            return Ok(Advance::Step(Step::Wait(ticket)));
        }
        let waiting_for = self.offer(reins)?;
        let progress = self.session.poll(&mut self.products);
        if let Some(certifier) = &mut self.certifier {
            certifier.read(&self.recipe, &self.products)?;
        }
        self.sink.take(&mut self.products)?;
        match progress {
            Progress::More => Ok(Advance::Step(Step::More)),
            Progress::Starved => Ok(Advance::Step(match waiting_for {
                Some(ticket) => Step::Wait(ticket),
                None => Step::More,
            })),
            Progress::Pending => Ok(Advance::Step(Step::More)),
            Progress::Done(ledger) => Ok(Advance::Merged(ledger)),
            Progress::Failed(fault) => Err(fault.error().clone()),
        }
    }

    /// Hands arrived sets to the session while it has room; the read to wait for, if that is
    /// what is missing.
    fn offer(&mut self, reins: &Reins) -> Result<Option<lithify_env::Ticket>> {
        while !self.sealed {
            self.feed.read_ahead()?;
            let set = match self.held.take() {
                Some(set) => set,
                None if self.feed.is_spent() => {
                    self.session.seal();
                    self.sealed = true;
                    break;
                }
                None => match self.feed.next_set()? {
                    Ok(set) => {
                        reins.advance(set.bytes());
                        set
                    }
                    Err(ticket) => return Ok(Some(ticket)),
                },
            };
            if let Offer::Full(set) = self.session.offer(set) {
                self.held = Some(set);
                break;
            }
        }
        Ok(None)
    }

    fn finish(self, ledger: &Ledger) -> Result<Sink> {
        if let Some(certifier) = self.certifier {
            certifier.finish(ledger)?;
        }
        Ok(self.sink)
    }
}

impl Job for CompactionJob {
    fn step(&mut self) -> Step {
        let rt = self.shop.env.rt.clone();
        self.started.get_or_insert_with(|| rt.now());
        let before = rt.thread_cpu();
        let result = self.advance();
        let spent = rt.thread_cpu().saturating_sub(before);
        self.work.cpu_nanos += spent.as_nanos() as u64;
        result.unwrap_or_else(|error| {
            self.end(Err(error));
            Step::Done
        })
    }
    fn urgency(&self) -> Urgency {
        self.spec.reins.urgency().get()
    }
    fn panicked(&mut self, message: String) {
        let text = format!("compaction job {} panicked: {message}", self.spec.job);
        self.end(Err(Error::new(ErrorKind::Internal, text)));
    }
}
