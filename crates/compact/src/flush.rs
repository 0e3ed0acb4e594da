//! A flush as a step machine: a frozen memtable becomes tables at level 0.
//!
//! The memtable is walked in order through the same drop rules, cuts and encoder as a
//! compaction; entries hidden from every snapshot go at once. Nothing is elided: older data may
//! lie anywhere below.

use lithify_base::zoo::{self, Bug};
use lithify_base::{Error, ErrorKind, Key, Pos, Result, Seq, Tag};
use lithify_env::sync::Arc;
use lithify_env::{Job, Lane, Mono, Step, Urgency};
use lithify_lsm::BucketMap;
use lithify_memtable::{Audit, MemTable};
use lithify_merge::tombstone::RangeTombstone;
use lithify_merge::{Kernel, Products, SLICE_BYTES};
use lithify_plan::adapt::FlushReport;

use crate::context::{JobContext, Times};
use crate::order::OutputOrder;
use crate::recipe;
use crate::sink::Sink;
use crate::survey::{self, Cut};
use crate::{JobControl, JobWork, Outcome, Report};

/// What to flush.
pub struct FlushSpec {
    /// The frozen memtable.
    pub mem: Arc<MemTable>,
    /// Where its files go.
    pub out: Pos,
    /// Live snapshots, ascending.
    pub snapshots: Vec<Seq>,
    /// How it is cut into files.
    pub cut: Cut,
    /// What its owner holds of it.
    pub control: Arc<JobControl>,
}

/// A flush at work.
pub struct FlushJob {
    context: Arc<JobContext>,
    spec: FlushSpec,
    stage: Stage,
    report: Option<Report>,
    work: JobWork,
    flow: Option<(Arc<BucketMap>, FlushReport)>,
    started: Option<Mono>,
}

enum Stage {
    Prepare,
    Walk(Box<Walking>),
    Finish(Box<Sink>),
    Over,
}

struct Walking {
    kernel: Kernel,
    products: Products,
    sink: Sink,
    /// What came out of the memtable so far; none if it is not checked.
    audit: Option<Audit>,
    /// The entry last pushed: the next step goes on behind it.
    last: Option<(Vec<u8>, Tag)>,
    /// Bytes written since the last step.
    moved: usize,
}

impl FlushJob {
    /// A job that tells `report` how it ended.
    pub fn new(context: Arc<JobContext>, spec: FlushSpec, report: Report) -> FlushJob {
        FlushJob {
            context,
            spec,
            stage: Stage::Prepare,
            report: Some(report),
            work: JobWork::default(),
            flow: None,
            started: None,
        }
    }

    fn advance(&mut self) -> Result<Step> {
        match &mut self.stage {
            Stage::Prepare => {
                self.stage = Stage::Walk(Box::new(self.prepare()?));
                Ok(Step::More)
            }
            Stage::Walk(walking) => {
                if let Some(ticket) = walking.sink.must_wait()? {
                    return Ok(Step::Wait(ticket));
                }
                if let Some(wait) =
                    self.context.pace(std::mem::take(&mut walking.moved), Lane::First)
                {
                    return Ok(wait);
                }
                if walking.slice(&self.spec.mem, &self.spec.control)? {
                    return Ok(Step::More);
                }
                let ledger = walking.end(&self.spec.mem)?;
                // The job that moves bytes next waits for it.
                self.context.pace(walking.moved, Lane::First);
                self.work.entries_in = ledger.entries_in;
                self.work.entries_out = ledger.entries_out;
                let Stage::Walk(walking) = std::mem::replace(&mut self.stage, Stage::Over) else {
                    unreachable!("matched above")
                };
                self.stage = Stage::Finish(Box::new(walking.sink));
                Ok(Step::More)
            }
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

    /// Looks over the memtable where it is cut by buckets: the keys at which files start.
    fn survey(&mut self) -> Vec<Key> {
        let Some(survey) = survey::look(&self.spec.mem, &self.spec.cut, &*self.context.order)
        else {
            return Vec::new();
        };
        self.flow = Some((survey.map, survey.report));
        survey.splits
    }

    fn prepare(&mut self) -> Result<Walking> {
        let mem = &self.spec.mem;
        self.work.read = mem.bytes() as u64;
        let raw: Vec<RangeTombstone> = mem
            .range_tombstones()
            .iter()
            .map(|t| RangeTombstone { lo: t.lo.clone(), hi: t.hi.clone(), seq: t.seq, run: 0 })
            .collect();
        let snapshots = std::mem::take(&mut self.spec.snapshots);
        let splits = self.survey();
        let level = self.spec.out.level;
        let recipe = recipe::flush(&self.context, raw, splits, snapshots, level)?;
        let now = self.context.env.rt.wall_seconds();
        let times = Times { now, oldest_ancestor: now };
        let output = OutputOrder {
            pos: self.spec.out,
            place: 0,
            epoch: u64::from(self.spec.out.stratum.0),
            times,
            shape: self.context.output.clone(),
        };
        Ok(Walking {
            kernel: Kernel::new(Arc::new(recipe))?,
            products: Products::default(),
            sink: Sink::new(self.context.clone(), self.spec.control.urgency().clone(), output),
            audit: (!self.context.output.unchecked).then(Audit::default),
            last: None,
            moved: 0,
        })
    }

    fn end(&mut self, result: Result<Vec<lithify_lsm::FileMeta>>) {
        self.stage = Stage::Over;
        if let Some(started) = self.started {
            self.work.nanos = self.context.env.rt.now().since(started).as_nanos() as u64;
        }
        if let Some(report) = self.report.take() {
            report(Outcome { result, work: self.work, flow: self.flow.take() });
        }
    }
}

impl Walking {
    /// Pushes entries until a slice of output is ready; false at the end of the memtable.
    fn slice(&mut self, mem: &MemTable, control: &JobControl) -> Result<bool> {
        let walk = match &self.last {
            None => mem.walk(),
            Some((key, tag)) => mem.walk_after(key, *tag),
        };
        let mut full = None;
        for (key, tag, value) in walk {
            if let Some(audit) = &mut self.audit {
                audit.take(key, tag, value.len());
            }
            self.kernel.push(key, tag, value, 0)?;
            if self.kernel.ready_bytes() >= SLICE_BYTES {
                full = Some((key, tag));
                break;
            }
        }
        let goes_on = full.is_some();
        self.last = full.map(|(key, tag)| (key.to_vec(), tag));
        self.moved += self.kernel.ready_bytes();
        control.advance(self.kernel.ready_bytes() as u64);
        self.kernel.drain(&mut self.products);
        self.sink.take(&mut self.products)?;
        Ok(goes_on)
    }

    /// Ends the output and checks that what went through is what the memtable was given (F21).
    fn end(&mut self, mem: &MemTable) -> Result<lithify_merge::Ledger> {
        let ledger = self.kernel.finish()?;
        self.kernel.drain(&mut self.products);
        self.sink.take(&mut self.products)?;
        if let Some(audit) = self.audit {
            audit.settle(mem).map_err(|what| Error::new(ErrorKind::Internal, what))?;
        }
        Ok(ledger)
    }
}

impl Job for FlushJob {
    fn step(&mut self) -> Step {
        let rt = self.context.env.rt.clone();
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
        self.spec.control.urgency().get()
    }
    fn panicked(&mut self, message: String) {
        if zoo::on(Bug::PanicUntold) {
            return;
        }
        self.end(Err(Error::new(ErrorKind::Internal, format!("a flush panicked: {message}"))));
    }
}
