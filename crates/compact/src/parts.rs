//! The parts of one compaction and who works on them.
//!
//! A *worker* takes a part that is free, merges it as its order says, and takes the next, until none is left.
//! The compaction itself is the main worker; where there are several parts it asks for co-workers, which take
//! their turn for a thread like any job, as urgently as the compaction. It waits for none of them to
//! begin: with one thread it merges all parts by itself, one after the other, and a co-worker that
//! comes late finds nothing to do.
//!
//! A part may be *given back*: its worker leaves it, nothing stays of its files, and another worker
//! does it again. So a co-worker that panics, or gets no thread, costs time and not the compaction. To
//! do it again is as sound as to plan a failed compaction anew, which is what happened otherwise: all that a
//! part has changed are files of its own. If the main worker panics the compaction fails.
//!
//! Keeps: one report, when no part is at work any more; with all files of all parts in key order, or
//! with the first error, and then no file is left of any part, finished or not. What the parts have
//! read together is what the inputs hold.
//! Leaves to others: where the parts meet (`cuts`), who has which (`state`), the merge of one (`part`).
//!
//! ```text
//!   parts   0: built   1: at work   2: at work   3: free
//!   1 ends well: its worker takes 3.   1 is given back: the next worker that is through with its part
//!   takes it.   1 fails: 2 ends at its next step, 3 is never begun; when 2 has ended the files of 0 are
//!   removed, and the failure is reported.
//! ```

mod event;
mod state;

use lithify_base::zoo::{self, Bug};
use lithify_base::{Error, ErrorKind, FileId, Result};
use lithify_env::sync::atomic::{AtomicU64, Ordering};
use lithify_env::sync::{Arc, Mutex, Weak};
use lithify_env::{Job, Mono, SharedUrgency, Step, Ticket, Urgency};
use lithify_format::weight::WEIGHT;
use lithify_merge::ledger::Rule;
use lithify_merge::{Ledger, Recipe};

use crate::context::{JobContext, Times};
use crate::cuts::Part;
use crate::job::{CompactionSpec, called_off};
use crate::job_control::PartStage;
use crate::order::{OpenTables, OutputOrder, PartOrder, RunOrder};
use crate::part::{Advance, PartJob};
use crate::parts::state::{Claim, End, Hand, State, Then};
use crate::recipe::{self, InputRun};
use crate::relay::{Copier, Relay, Suspect, Told};
use crate::route::{Engines, Place, Why};
use crate::sink::Sink;
use crate::{JobWork, Outcome, Report};

pub use event::PartEvent;

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
    context: Arc<JobContext>,
    engines: Arc<Engines>,
    whole: Whole,
    open: OpenTables,
    list: Vec<Part>,
    output: OutputOrder,
    began: Mono,
    cpu_nanos: AtomicU64,
    work: Mutex<Work>,
    /// Dropped last: who gave it learns so that no input is held any more.
    spec: Arc<CompactionSpec>,
}

/// Who works on what.
struct Work {
    state: State<Made>,
    /// Completed when the main worker, which waits, is to claim again.
    wake: Ticket,
    report: Option<Report>,
}

/// A part that is built. Its files go with the sink until all of them count.
struct Made {
    sink: Box<Sink>,
    entries_in: u64,
    entries_out: u64,
    filtered: u64,
    /// Content weight of what it has read.
    weight_in: u64,
    /// An engine other than the CPU that took part in it.
    by: Option<Place>,
}

impl Parts {
    pub(crate) fn new(
        context: Arc<JobContext>,
        engines: Arc<Engines>,
        spec: Arc<CompactionSpec>,
        whole: Whole,
        list: Vec<Part>,
        began: Began,
    ) -> Arc<Parts> {
        let now = context.env.rt.wall_seconds();
        let born = spec.inputs.iter().map(|f| f.oldest_ancestor).filter(|&t| t > 0).min();
        if list.len() > 1 {
            spec.control.cut(list.iter().map(|part| part.bytes));
        }
        let output = OutputOrder {
            pos: spec.plan.out,
            place: context.table_dirs.of_level(spec.plan.out.level),
            epoch: spec.inputs.iter().map(|f| f.epoch).min().unwrap_or(0),
            times: Times { now, oldest_ancestor: born.unwrap_or(now) },
            shape: context.output.clone(),
        };
        let state = State::new(list.len());
        Arc::new(Parts {
            output,
            context,
            engines,
            spec,
            open: OpenTables::of(&whole.runs),
            whole,
            list,
            began: began.at,
            cpu_nanos: AtomicU64::new(began.cpu_nanos),
            work: Mutex::new(Work { state, wake: Ticket::new(), report: began.report }),
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// A free part for a worker.
    fn claim(&self, hand: Hand) -> Claimed {
        let claim = {
            let mut work = self.work.lock();
            let claim = work.state.claim(hand);
            if matches!(claim, Claim::Wait) {
                work.wake = Ticket::new();
                return Claimed::Wait(work.wake.clone());
            }
            claim
        };
        match claim {
            Claim::Part(no) => Claimed::Part(no),
            Claim::Over(end) => match self.believed(end) {
                Some(end) => {
                    self.report(end);
                    Claimed::Nothing
                }
                None => self.claim(hand),
            },
            Claim::Nothing | Claim::Wait => Claimed::Nothing,
        }
    }

    /// The end, unless other engines than the CPU took part and what was read is not what the inputs hold, or
    /// one of them was disproved meanwhile. Then all parts are done again, without the engines that this
    /// speaks against: in the first case it can't be told which of them read something else.
    fn believed(&self, end: End<Made>) -> Option<End<Made>> {
        let End::Built(made) = end else { return Some(end) };
        let by = || made.iter().filter_map(|made| made.by.as_ref());
        let (error, all) = match self.check(&made) {
            Err(error) if by().next().is_some() => (error, true),
            Err(_) => return Some(End::Built(made)),
            Ok(()) => match by().find_map(Place::doubt) {
                Some(doubt) => (doubt, false),
                None => return Some(End::Built(made)),
            },
        };
        let now = self.context.env.rt.now();
        for (no, made) in made.into_iter().enumerate() {
            self.spec.control.rewind(no);
            self.spec.control.set_stage(no, PartStage::Waits);
            let Some(mut place) = made.by.filter(|by| all || by.doubt().is_some()) else {
                continue;
            };
            place.lost(Why::Disproved, &error, now);
            let (part, engine) = (no as u32 + 1, place.caps().name);
            let why = format!("{}: {error}", Why::Disproved);
            (self.spec.on_part)(PartEvent::Replaced { part, engine, why });
        }
        self.work.lock().state = State::new(self.list.len());
        None
    }

    /// A worker is through with a part, one way or another.
    fn put_down(&self, how: impl FnOnce(&mut State<Made>) -> Then<Made>) {
        let (then, wake) = {
            let mut work = self.work.lock();
            (how(&mut work.state), work.wake.clone())
        };
        match then {
            Then::Nothing => {}
            Then::Wake => wake.complete(),
            Then::Over(end) => self.report(end),
        }
    }

    fn tell(&self, no: usize, stage: PartStage) {
        if self.list.len() == 1 {
            return;
        }
        self.spec.control.set_stage(no, stage);
        let part = no as u32 + 1;
        (self.spec.on_part)(match stage {
            PartStage::Working => {
                let (of, bytes) = (self.list.len() as u32, self.list[no].bytes);
                PartEvent::Began { part, of, bytes }
            }
            PartStage::Waits | PartStage::Built => PartEvent::Ended { part },
        });
    }

    /// The engine that a part goes to; `None` is the CPU. A compaction filter may answer by other things
    /// than its arguments, though it should not, and then nothing that another engine made of it could be
    /// proven: the CPU alone asks it, once.
    fn route(&self, no: usize) -> Option<Place> {
        if self.whole.recipe.user_filter.is_some() {
            return None;
        }
        let bytes = match &self.list[..] {
            // Of one part they are not known from the cut.
            [_] => self.spec.inputs.iter().map(|f| f.bytes).sum(),
            list => list[no].bytes,
        };
        let place = self.engines.route(&self.whole.recipe, bytes, self.context.env.rt.now())?;
        let (part, engine) = (no as u32 + 1, place.caps().name);
        (self.spec.on_part)(PartEvent::Routed { part, engine, why: place.why().to_owned() });
        Some(place)
    }

    /// The order of a part.
    fn order(&self, no: usize) -> PartOrder {
        let (context, whole, part) = (&self.context, &self.whole, &self.list[no]);
        let recipe = match self.list.len() {
            1 => whole.recipe.clone(),
            _ => Arc::new(whole.recipe.part(part.range.clone())),
        };
        let run = |run| RunOrder::of(run, &part.range, &*context.order);
        PartOrder {
            runs: whole.runs.iter().map(run).collect(),
            counted: recipe::counted(&whole.runs),
            recipe,
            output: self.output.clone(),
            memory: INPUT_WRITES * context.output.write_bytes as u64,
            urgency: self.spec.control.urgency().clone(),
        }
    }

    /// Makes a part ready to be merged, by the engine of `place` or by the CPU.
    fn prepare(&self, no: usize, place: Option<Place>) -> Result<PartJob> {
        let order = self.order(no);
        let (feed, sink) = order.begin(&self.context, &self.open)?;
        let spec = self.spec.clone();
        let part = no as u32 + 1;
        let tell = Box::new(move |told, engine, why| {
            (spec.on_part)(match told {
                Told::Replaced => PartEvent::Replaced { part, engine, why },
                Told::SmallSets => PartEvent::SmallSets { part, engine, why },
            });
        });
        let copier = Copier {
            part: self.context.output.write_bytes,
            rt: self.context.env.rt.clone(),
            urgency: order.urgency,
            buffers: self.context.buffers.clone(),
        };
        let trusted = self.context.output.unchecked;
        let engines = self.engines.clone();
        let relay = Relay::new(engines, place, order.recipe, copier, trusted, tell)?;
        Ok(PartJob::new(relay, feed, sink, self.spec.control.part(no)))
    }

    fn built(&self, no: usize, sink: Box<Sink>, ledger: &Ledger, by: Option<Place>) {
        let made = Made {
            sink,
            entries_in: ledger.entries_in,
            entries_out: ledger.entries_out,
            weight_in: ledger.sum_in,
            filtered: ledger.dropped[Rule::Filtered as usize],
            by,
        };
        self.put_down(|state| state.finish(no, made));
    }

    /// The CPU did a part that it had failed over when it went on from the carry of an engine.
    fn convict(&self, no: usize, suspect: Suspect) {
        let (engine, why) = suspect.convict(self.context.env.rt.now());
        (self.spec.on_part)(PartEvent::Replaced { part: no as u32 + 1, engine, why });
    }

    /// Another worker is to do a part again, of which nothing is left.
    fn give_back(&self, no: usize, why: String) {
        self.spec.control.rewind(no);
        self.spec.control.set_stage(no, PartStage::Waits);
        // What is told comes last: a listener that panics leaves nothing claimed.
        self.put_down(|state| state.give_back(no));
        (self.spec.on_part)(PartEvent::GivenBack { part: no as u32 + 1, why });
    }

    /// A worker failed, with the part that it had.
    fn failed(&self, hand: Hand, no: Option<usize>, error: Error) {
        if let Some(no) = no {
            self.tell(no, PartStage::Waits);
        }
        self.put_down(|state| state.fail(hand, no, error));
    }

    /// Tells how the compaction ended.
    fn report(&self, end: End<Made>) {
        let read = match &end {
            End::Built(_) => self.spec.inputs.iter().map(|f| f.bytes).sum(),
            // It may have come nowhere, and be tried again and again.
            End::Failed(..) => self.spec.control.progress().0,
        };
        let mut work = JobWork {
            read,
            nanos: self.context.env.rt.now().since(self.began).as_nanos() as u64,
            cpu_nanos: self.cpu_nanos.load(Ordering::Relaxed),
            ..JobWork::default()
        };
        let (made, failed) = match end {
            End::Built(made) => {
                let checked = self.check(&made);
                (made, checked.err())
            }
            End::Failed(error, made) => (made, Some(error)),
        };
        let result = match failed {
            None => {
                work.written = made.iter().map(|made| made.sink.written()).sum();
                work.entries_in = made.iter().map(|made| made.entries_in).sum();
                work.entries_out = made.iter().map(|made| made.entries_out).sum();
                work.filtered = made.iter().map(|made| made.filtered).sum();
                Ok(made.into_iter().flat_map(|made| made.sink.into_files()).collect())
            }
            Some(error) => {
                // The files go before the error is told.
                drop(made);
                Err(error)
            }
        };
        let report = self.work.lock().report.take();
        if let Some(report) = report {
            report(Outcome { result, work, flow: None });
        }
    }

    /// Each part's ledger balances by itself; that no entry lies between two parts, or in both, shows
    /// in what they have read together. That they have read what the inputs hold, and not what an engine
    /// made up, shows in the content weight, which is known of inputs that this store wrote.
    fn check(&self, made: &[Made]) -> Result<()> {
        let entries_in: u64 = made.iter().map(|made| made.entries_in).sum();
        let weight_in = made.iter().fold(0u64, |sum, made| sum.wrapping_add(made.weight_in));
        let inputs = || self.whole.runs.iter().flat_map(|run| &run.files).map(|(_, input)| input);
        // Tables of other makers may not say how many entries they have.
        let sure = self.list.len() > 1 || recipe::counted(&self.whole.runs);
        let entries = inputs().map(|i| match i.table().properties().points() {
            0 if i.block_fences().len() > 0 => None,
            points => Some(points),
        });
        if let Some(held) = entries.sum::<Option<u64>>()
            && held != entries_in
            && sure
        {
            let files: Vec<FileId> = self.spec.inputs.iter().map(|f| f.id).collect();
            let what = format!(
                "compaction job {} read {entries_in} entries in {} parts, and its inputs \
                     {files:?} hold {held}",
                self.spec.job,
                self.list.len()
            );
            return Err(Error::new(ErrorKind::Internal, what));
        }
        let weights = inputs().map(|i| i.table().weight());
        let held = weights.reduce(|sum, one| Some(sum?.wrapping_add(one?))).flatten();
        if held.is_some_and(|held| held != weight_in) && !zoo::on(Bug::InputsUnweighed) {
            let files: Vec<FileId> = self.spec.inputs.iter().map(|f| f.id).collect();
            let what = format!(
                "what compaction job {} read weighs {weight_in:#x}, and its inputs {files:?} weigh {:#x} by \
                 their property {WEIGHT}; nothing was changed. Run `lithify verify`: restore a table that \
                 it finds wrong from a backup; if it finds none, report this, and reopen to try again",
                self.spec.job,
                held.unwrap_or(0)
            );
            return Err(Error::new(ErrorKind::Internal, what));
        }
        Ok(())
    }
}

/// What a worker has to do.
enum Claimed {
    Part(usize),
    /// Nothing before the ticket is complete.
    Wait(Ticket),
    Nothing,
}

/// Works on the parts of one compaction.
pub(crate) struct Worker {
    parts: Arc<Parts>,
    hand: Hand,
    at: At,
    /// Of the part in hand, which the CPU does anew.
    suspect: Option<Suspect>,
}

/// What a worker is about.
enum At {
    /// To claim a part.
    Free,
    /// To make a part ready.
    Claimed(usize),
    /// To merge it.
    Merge(usize, Box<PartJob>),
    /// There is nothing for it any more.
    Over,
}

impl Worker {
    /// The main worker, with a part in hand.
    pub(crate) fn main(parts: Arc<Parts>) -> Worker {
        Worker::new(parts, Hand::Main)
    }

    fn new(parts: Arc<Parts>, hand: Hand) -> Worker {
        let mut worker = Worker { parts, hand, at: At::Free, suspect: None };
        worker.take();
        worker
    }

    /// Takes the next part. Between two steps a worker has one, waits for one, or is done: once the last
    /// part is reported the database may be closed, and no step is made after that.
    fn take(&mut self) -> Step {
        match self.parts.claim(self.hand) {
            Claimed::Part(no) => {
                self.at = At::Claimed(no);
                self.parts.tell(no, PartStage::Working);
                Step::More
            }
            Claimed::Wait(ticket) => Step::Wait(ticket),
            Claimed::Nothing => {
                self.at = At::Over;
                Step::Done
            }
        }
    }

    /// Works on the part in hand, and takes the next when it is built. Done when none is left.
    pub(crate) fn step(&mut self) -> Step {
        let rt = self.parts.context.env.rt.clone();
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
        let no = match self.at {
            At::Free => return Ok(self.take()),
            At::Over => return Ok(Step::Done),
            At::Claimed(no) | At::Merge(no, _) => no,
        };
        // One part that failed is the end of all.
        if self.parts.spec.control.is_stopped() || self.parts.work.lock().state.is_failing() {
            return Err(called_off());
        }
        let At::Merge(_, part) = &mut self.at else {
            let job = self.parts.prepare(no, self.parts.route(no))?;
            self.at = At::Merge(no, Box::new(job));
            return Ok(Step::More);
        };
        match part.advance()? {
            Advance::Step(step) => Ok(step),
            Advance::Anew(suspect) => {
                self.suspect = suspect;
                // Its files go before others are made.
                self.at = At::Claimed(no);
                self.at = At::Merge(no, Box::new(self.parts.prepare(no, None)?));
                Ok(Step::More)
            }
            Advance::Built(sink, ledger, by) => {
                if let Some(suspect) = self.suspect.take() {
                    self.parts.convict(no, suspect);
                }
                self.parts.tell(no, PartStage::Built);
                self.at = At::Free;
                self.parts.built(no, sink, &ledger, by);
                Ok(self.take())
            }
        }
    }

    /// Leaves the part in hand. Its files go before any other worker hears of it.
    fn leave(&mut self) -> Option<usize> {
        self.suspect = None;
        match std::mem::replace(&mut self.at, At::Over) {
            At::Claimed(no) | At::Merge(no, _) => Some(no),
            At::Free | At::Over => None,
        }
    }

    /// The worker failed, and with it the compaction.
    pub(crate) fn fail(&mut self, error: Error) {
        let no = self.leave();
        if no.is_some() || self.hand == Hand::Main {
            self.parts.failed(self.hand, no, error);
        }
    }

    /// Another worker is to do the part in hand.
    fn give_back(&mut self, why: String) {
        if let Some(no) = self.leave() {
            self.parts.give_back(no, why);
        }
    }
}

/// A worker beside the compaction, on a thread of its own if there is one to be had.
pub(crate) struct CoWorker {
    /// One that comes when the compaction is over holds nothing of it.
    parts: Weak<Parts>,
    worker: Option<Worker>,
    urgency: SharedUrgency,
}

impl CoWorker {
    pub(crate) fn new(parts: &Arc<Parts>) -> CoWorker {
        let urgency = parts.spec.control.urgency().clone();
        CoWorker { parts: Arc::downgrade(parts), worker: None, urgency }
    }
}

impl Job for CoWorker {
    fn step(&mut self) -> Step {
        if self.worker.is_none() {
            let worker = |parts| Worker::new(parts, Hand::CoWorker);
            self.worker = self.parts.upgrade().map(worker);
        }
        match &mut self.worker {
            Some(worker) => worker.step(),
            None => Step::Done,
        }
    }
    fn urgency(&self) -> Urgency {
        self.urgency.get()
    }
    /// It panicked, or got no thread: another worker does the part again.
    fn panicked(&mut self, message: String) {
        if let Some(worker) = &mut self.worker {
            worker.give_back(message);
        }
    }
}

#[cfg(test)]
mod tests;
