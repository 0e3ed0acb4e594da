//! The parts of one compaction and who works on them.
//!
//! A *worker* takes a part that nobody has begun, merges it, and takes the next, until none is left. The
//! compaction itself is a worker; where there are several parts it asks for co-workers, which take their
//! turn for a thread like any job, as urgently as the compaction. None of them is waited for: with
//! one thread the compaction merges all parts by itself, one after the other, and a co-worker that comes
//! late finds nothing to do. The last to put a part down reports for all.
//!
//! Keeps: one report, when nobody is at work any more; with all files of all parts in key order, or
//! with the first error, and then no file is left of any part, finished or not. What the parts have
//! read together is what the inputs hold.
//! Leaves to others: where the parts meet (`cuts`), the merge of one (`part`).
//!
//! ```text
//!   parts   0: built   1: at work   2: at work   3: not begun
//!   1 ends well: its worker takes 3.   1 fails: 2 ends at its next step, 3 is never begun; when 2 has
//!   ended the files of 0 are removed, and the failure is reported.
//! ```

use lithify_base::{Error, ErrorKind, FileId, JobId, Result};
use lithify_engine::Engine;
use lithify_env::sync::atomic::{AtomicU64, Ordering};
use lithify_env::sync::{Arc, Mutex, Weak};
use lithify_env::{Job, Mono, SharedUrgency, Step, Urgency};
use lithify_merge::ledger::Rule;
use lithify_merge::{Ledger, Recipe};

use crate::cuts::Part;
use crate::feed::Feed;
use crate::job::{CompactionSpec, called_off};
use crate::part::{Advance, PartJob};
use crate::recipe::{self, InputRun};
use crate::reins::PartStage;
use crate::sink::Sink;
use crate::workshop::{Times, Workshop};
use crate::{JobWork, Outcome, Report};

/// What becomes of a part. Nobody is told of a compaction that is merged as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartEvent {
    /// A worker begins with it.
    Began {
        /// Its number, from 1, in key order.
        part: u32,
        /// Number of parts.
        of: u32,
        /// About how many bytes of the inputs it reads.
        bytes: u64,
    },
    /// It is built, or failed.
    Ended {
        /// Its number.
        part: u32,
    },
}

/// Writes whose bytes a part has of its inputs in memory: three sets of two writes each that are read
/// or wait, and three that are merged or are about to be.
const INPUT_WRITES: u64 = 12;

/// What the parts are parts of.
pub(crate) struct Whole {
    pub(crate) runs: Vec<InputRun>,
    pub(crate) recipe: Arc<Recipe>,
}

/// What was done before there were parts.
pub(crate) struct Began {
    pub(crate) at: Mono,
    pub(crate) cpu_nanos: u64,
    pub(crate) report: Option<Report>,
}

/// The parts of one compaction.
pub(crate) struct Parts {
    shop: Arc<Workshop>,
    engine: Arc<dyn Engine>,
    spec: Arc<CompactionSpec>,
    whole: Whole,
    list: Vec<Part>,
    times: Times,
    epoch: u64,
    began: Mono,
    cpu_nanos: AtomicU64,
    state: Mutex<State>,
}

struct State {
    /// The first part that nobody has begun.
    next: usize,
    /// Parts begun and not ended.
    at_work: usize,
    /// By part, what is built. The files go with their sink until all of them count.
    built: Vec<Option<Box<Sink>>>,
    entries_in: u64,
    entries_out: u64,
    filtered: u64,
    failed: Option<Error>,
    report: Option<Report>,
}

impl Parts {
    pub(crate) fn new(
        shop: Arc<Workshop>,
        engine: Arc<dyn Engine>,
        spec: Arc<CompactionSpec>,
        whole: Whole,
        list: Vec<Part>,
        began: Began,
    ) -> Arc<Parts> {
        let now = shop.env.rt.wall_seconds();
        let born = spec.inputs.iter().map(|f| f.oldest_ancestor).filter(|&t| t > 0).min();
        if list.len() > 1 {
            spec.reins.cut(list.iter().map(|part| part.bytes));
        }
        let state = State {
            next: 0,
            at_work: 0,
            built: list.iter().map(|_| None).collect(),
            entries_in: 0,
            entries_out: 0,
            filtered: 0,
            failed: None,
            report: began.report,
        };
        Arc::new(Parts {
            times: Times { now, oldest_ancestor: born.unwrap_or(now) },
            epoch: spec.inputs.iter().map(|f| f.epoch).min().unwrap_or(0),
            shop,
            engine,
            spec,
            whole,
            list,
            began: began.at,
            cpu_nanos: AtomicU64::new(began.cpu_nanos),
            state: Mutex::new(state),
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// Takes a part that nobody has begun.
    fn claim(&self) -> Option<usize> {
        let mut state = self.state.lock();
        if state.failed.is_some() || state.next == self.list.len() {
            return None;
        }
        state.at_work += 1;
        state.next += 1;
        Some(state.next - 1)
    }

    fn tell(&self, no: usize, stage: PartStage) {
        if self.list.len() == 1 {
            return;
        }
        self.spec.reins.set_stage(no, stage);
        let part = no as u32 + 1;
        (self.spec.on_part)(match stage {
            PartStage::Working => {
                let (of, bytes) = (self.list.len() as u32, self.list[no].bytes);
                PartEvent::Began { part, of, bytes }
            }
            PartStage::Waits | PartStage::Built => PartEvent::Ended { part },
        });
    }

    /// Makes a part ready to be merged.
    fn prepare(&self, no: usize) -> Result<PartJob> {
        let (shop, whole) = (&self.shop, &self.whole);
        let range = &self.list[no].range;
        let recipe = match self.list.len() {
            1 => whole.recipe.clone(),
            _ => Arc::new(whole.recipe.part(range.clone())),
        };
        let urgency = self.spec.reins.urgency();
        let memory = INPUT_WRITES * shop.output.write_bytes as u64;
        let feed = Feed::new(shop.clone(), urgency.clone(), &whole.runs, range, memory)?;
        let (out, times) = (self.spec.plan.out, self.times);
        let sink = Sink::new(shop.clone(), urgency.clone(), out, self.epoch, times)
            .with_dictionary(recipe.dictionary.clone());
        let reins = self.spec.reins.part(no);
        PartJob::new(self.engine.clone(), recipe, feed, sink, shop.output.unchecked, reins)
    }

    fn built(&self, no: usize, sink: Box<Sink>, ledger: &Ledger) {
        self.tell(no, PartStage::Built);
        self.put_down(|state| {
            state.built[no] = Some(sink);
            state.entries_in += ledger.entries_in;
            state.entries_out += ledger.entries_out;
            state.filtered += ledger.dropped[Rule::Filtered as usize];
        });
    }

    fn failed(&self, no: usize, error: Error) {
        self.tell(no, PartStage::Waits);
        self.put_down(|state| {
            state.failed.get_or_insert(error);
        });
    }

    /// A worker is through with a part. The last one reports.
    fn put_down(&self, how: impl FnOnce(&mut State)) {
        let (report, failed, built, entries) = {
            let mut state = self.state.lock();
            how(&mut state);
            state.at_work -= 1;
            let over = state.failed.is_some() || state.next == self.list.len();
            if state.at_work > 0 || !over {
                return;
            }
            let built = std::mem::take(&mut state.built);
            let entries = (state.entries_in, state.entries_out, state.filtered);
            (state.report.take(), state.failed.clone(), built, entries)
        };
        let mut work = JobWork {
            read: self.spec.inputs.iter().map(|f| f.bytes).sum(),
            nanos: self.shop.env.rt.now().since(self.began).as_nanos() as u64,
            cpu_nanos: self.cpu_nanos.load(Ordering::Relaxed),
            ..JobWork::default()
        };
        let result = match failed.map_or_else(|| self.check(entries.0), Err) {
            Ok(()) => {
                let sinks: Vec<Box<Sink>> = built.into_iter().flatten().collect();
                work.written = sinks.iter().map(|sink| sink.written()).sum();
                (work.entries_in, work.entries_out, work.filtered) = entries;
                Ok(sinks.into_iter().flat_map(|sink| sink.into_files()).collect())
            }
            Err(error) => {
                drop(built);
                Err(error)
            }
        };
        if let Some(report) = report {
            report(Outcome { result, work, flow: None });
        }
    }

    /// Each part's ledger balances by itself; that no entry lies between two parts, or in both, shows
    /// in what they have read together.
    fn check(&self, entries_in: u64) -> Result<()> {
        let inputs = self.whole.runs.iter().flat_map(|run| &run.files).map(|(_, input)| input);
        // Tables of other makers may not say how many entries they have.
        let sure = self.list.len() > 1 || recipe::counted(&self.whole.runs);
        let entries = inputs.map(|i| match i.table().properties().points() {
            0 if i.block_fences().len() > 0 => None,
            points => Some(points),
        });
        match entries.sum::<Option<u64>>() {
            Some(held) if held != entries_in && sure => {
                let files: Vec<FileId> = self.spec.inputs.iter().map(|f| f.id).collect();
                let what = format!(
                    "compaction job {} read {entries_in} entries in {} parts, and its inputs \
                     {files:?} hold {held}",
                    self.spec.job,
                    self.list.len()
                );
                Err(Error::new(ErrorKind::Internal, what))
            }
            _ => Ok(()),
        }
    }
}

/// Works on the parts of one compaction.
pub(crate) struct Worker {
    parts: Arc<Parts>,
    /// The part in hand; without a job while it is being made ready.
    at: Option<(usize, Option<PartJob>)>,
}

impl Worker {
    /// A worker with a part in hand, if one is left.
    pub(crate) fn new(parts: Arc<Parts>) -> Worker {
        let mut worker = Worker { parts, at: None };
        worker.take();
        worker
    }

    /// Takes the next part. Between two steps a worker has one or is done: once the last part is
    /// reported the database may be closed, and nobody makes one more step.
    fn take(&mut self) -> Step {
        let Some(no) = self.parts.claim() else { return Step::Done };
        self.at = Some((no, None));
        self.parts.tell(no, PartStage::Working);
        Step::More
    }

    /// Works on the part in hand, and takes the next when it is built. Done when none is left.
    pub(crate) fn step(&mut self) -> Step {
        let rt = self.parts.shop.env.rt.clone();
        let before = rt.thread_cpu();
        let step = self.advance().unwrap_or_else(|error| {
            self.fail(error);
            Step::Done
        });
        let spent = rt.thread_cpu().saturating_sub(before);
        self.parts.cpu_nanos.fetch_add(spent.as_nanos() as u64, Ordering::Relaxed);
        step
    }

    fn advance(&mut self) -> Result<Step> {
        let Some((no, job)) = &mut self.at else { return Ok(Step::Done) };
        // One part that failed is the end of all.
        if self.parts.spec.reins.is_stopped() || self.parts.state.lock().failed.is_some() {
            return Err(called_off());
        }
        let Some(part) = job else {
            *job = Some(self.parts.prepare(*no)?);
            return Ok(Step::More);
        };
        match part.advance()? {
            Advance::Step(step) => Ok(step),
            Advance::Built(sink, ledger) => {
                let no = *no;
                self.at = None;
                self.parts.built(no, sink, &ledger);
                Ok(self.take())
            }
        }
    }

    /// Number of the compaction.
    fn job(&self) -> JobId {
        self.parts.spec.job
    }

    /// The part in hand failed, and with it the compaction.
    pub(crate) fn fail(&mut self, error: Error) {
        if let Some((no, part)) = self.at.take() {
            // Its files go before anybody hears of it.
            drop(part);
            self.parts.failed(no, error);
        }
    }
}

/// A worker beside the compaction, on a thread of its own if there is one to be had.
pub(crate) struct CoWorker {
    /// Whoever comes when the compaction is over holds nothing of it.
    parts: Weak<Parts>,
    worker: Option<Worker>,
    urgency: SharedUrgency,
}

impl CoWorker {
    pub(crate) fn new(parts: &Arc<Parts>) -> CoWorker {
        let urgency = parts.spec.reins.urgency().clone();
        CoWorker { parts: Arc::downgrade(parts), worker: None, urgency }
    }
}

impl Job for CoWorker {
    fn step(&mut self) -> Step {
        if self.worker.is_none() {
            self.worker = self.parts.upgrade().map(Worker::new);
        }
        match &mut self.worker {
            Some(worker) => worker.step(),
            None => Step::Done,
        }
    }
    fn urgency(&self) -> Urgency {
        self.urgency.get()
    }
    fn panicked(&mut self, message: String) {
        if let Some(worker) = &mut self.worker {
            let text = format!("a part of compaction job {} panicked: {message}", worker.job());
            worker.fail(Error::new(ErrorKind::Internal, text));
        }
    }
}
