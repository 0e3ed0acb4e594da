//! Jobs of the tree at work: what a flush or a compaction is given when it starts, and what is
//! counted, noted and told to the core when it ends.
//!
//! Keeps: `at_work` has exactly the jobs that a worker may still be busy with.
//! Leaves to others: which jobs (`control`), how they work (`lithify_compact`), what their edits do
//! (`commits`).

use lithify_base::{Error, ErrorKind, JobId, KeyRange, Pos};
use lithify_compact::{
    CompactionJob, CompactionSpec, Cut, FlushJob, FlushSpec, JobControl, OnPart, Outcome, PartEvent,
};
use lithify_control::{Cutting, Event, Flow, MemId};
use lithify_env::Class;
use lithify_env::sync::Arc;
use lithify_lsm::{FileMeta, FileRef, Version};
use lithify_memtable::MemTable;
use lithify_plan::JobSpec;

use crate::family::Judged;
use crate::settings::translate::core_options;
use crate::shell::Shell;
use lithify_reports::{explain::AtWork, metrics::Counter, progress::UnderWay};

/// Most inputs of a compaction that its line in the event log names.
const INPUTS_NOTED: usize = 1000;

impl Shell {
    pub(crate) fn start_flush(&self, job: JobId, mem: MemId, out: Pos, cutting: Cutting) {
        let sv = self.super_version();
        if self.is_dropped() {
            return;
        }
        let found = sv.mems.iter().find(|m| m.id == mem);
        let table = found.expect("a frozen memtable is published until it is flushed");
        let bytes = table.table.bytes() as u64;
        let to = u64::from(out.level);
        let fields = [("job", job.0.into()), ("to", to.into()), ("bytes", bytes.into())];
        self.note("flush_start", &fields);
        let control = JobControl::flush(bytes).counted_in(&self.shared.background.progress.moved);
        let control = Arc::new(control);
        let spec = FlushSpec {
            control: control.clone(),
            mem: table.table.clone(),
            out,
            snapshots: self.shared.snapshots.list(),
            cut: self.cut(cutting, &sv.tree.version, &table.table),
        };
        self.set_to_work(job, control, table.table.range());
        let me = self.clone();
        let report = Box::new(move |outcome| me.flush_ended(job, outcome));
        let work = FlushJob::new(self.family.context.clone(), spec, report);
        self.family.context.env.rt.spawn(Class::Flush, Box::new(work));
    }

    /// How a flush is cut. Keys that only go on where the tree ends (a sequential load) are not:
    /// their file will move down as it is.
    fn cut(&self, cutting: Cutting, version: &Version, mem: &MemTable) -> Cut {
        let beyond = |range: KeyRange| {
            version.file_count() > 0
                && version.files().all(|f| f.range.is_before(&range, self.order()))
        };
        match cutting {
            Cutting::Whole => Cut::Whole,
            // An empty one only says that the logs before it count no more.
            _ if mem.range().is_none_or(beyond) => Cut::Whole,
            Cutting::By(map) => Cut::By(map),
            Cutting::First => Cut::First {
                version: Box::new(version.clone()),
                options: Box::new(core_options(&self.family.settings.load()).plan),
            },
        }
    }

    fn flush_ended(&self, job: JobId, outcome: Outcome) {
        self.family.work.at_work.lock().remove(&job);
        let flow = outcome.flow.map(|(map, report)| Box::new(Flow { map, report }));
        match outcome.result {
            Ok(adds) => {
                let work = outcome.work;
                self.shared.metrics.add(Counter::Flushes, 1);
                self.shared.metrics.add(Counter::FlushBytes, work.written);
                self.shared.metrics.add(Counter::FlushNanos, work.nanos);
                self.shared.metrics.flush.record(work.nanos);
                let mut levels = self.family.work.levels.lock();
                levels.written[0] += work.written;
                levels.jobs[0] += 1;
                drop(levels);
                self.note_created(job, &adds);
                self.note(
                    "flush_end",
                    &[
                        ("job", job.0.into()),
                        ("files", (adds.len() as u64).into()),
                        ("bytes", work.written.into()),
                        ("micros", (work.nanos / 1000).into()),
                    ],
                );
                self.ended(Event::Built { job, adds, flow });
            }
            Err(error) => self.job_failed(job, error),
        }
    }

    pub(crate) fn start_compaction(
        &self,
        job: JobId,
        spec: Arc<JobSpec>,
        inputs: Vec<FileRef>,
        version: Version,
    ) {
        let from = inputs.iter().map(|f| f.pos.level).min().unwrap_or(spec.out.level);
        let files = inputs.iter().take(INPUTS_NOTED).map(|f| f.id.0.to_string());
        let files = files.collect::<Vec<_>>().join(" ");
        self.note(
            "compaction_start",
            &[
                ("job", job.0.into()),
                ("kind", format!("{:?}", spec.kind).into()),
                ("from", u64::from(from).into()),
                ("to", u64::from(spec.out.level).into()),
                ("what", spec.describe(&version).into()),
                ("why", spec.reason.to_string().into()),
                ("bytes", spec.est.read.into()),
                ("inputs", files.into()),
            ],
        );
        let control = JobControl::compaction(spec.prio, spec.est.read);
        let moved = &self.shared.background.progress.moved;
        let control = Arc::new(control.counted_in(moved));
        self.set_to_work(job, control.clone(), None);
        let to = usize::from(spec.out.level);
        let snapshots = self.shared.snapshots.list();
        let known = snapshots.last().copied();
        let judged = inputs.first().map(|file| Judged { input: file.id, known });
        let work = CompactionSpec {
            job,
            plan: spec,
            inputs,
            version,
            snapshots,
            control,
            on_part: self.part_notes(job),
        };
        let me = self.clone();
        let report = Box::new(move |outcome: Outcome| {
            // Before its output can be shown.
            me.family.views.judged.lock().extend(judged.filter(|_| outcome.work.filtered > 0));
            me.compaction_ended(job, to, outcome);
        });
        let work = CompactionJob::new(
            self.family.context.clone(),
            self.shared.resources.engines.clone(),
            work,
            report,
        );
        self.family.context.env.rt.spawn(Class::Compact, Box::new(work));
    }

    /// Notes when the parts of a compaction begin and end, and who merges them if not the CPU. The job drops this
    /// last, and a close waits for it: inputs still pinned at the last upkeep would stay until the next open.
    fn part_notes(&self, job: JobId) -> OnPart {
        let me = self.weak();
        let under_way = UnderWay::new(&self.shared.background.progress);
        Box::new(move |event| {
            let _ = &under_way;
            let Some(me) = me.upgrade() else { return };
            match event {
                PartEvent::Began { part, of, bytes } => {
                    let (part, of) = (u64::from(part).into(), u64::from(of).into());
                    let bytes = ("bytes", bytes.into());
                    me.note(
                        "part_start",
                        &[("job", job.0.into()), ("part", part), ("of", of), bytes],
                    );
                }
                PartEvent::Ended { part } => {
                    let part = u64::from(part).into();
                    me.note("part_end", &[("job", job.0.into()), ("part", part)]);
                }
                PartEvent::GivenBack { part, why } => {
                    let part = u64::from(part).into();
                    let cause = ("cause", why.into());
                    me.note("part_back", &[("job", job.0.into()), ("part", part), cause]);
                }
                PartEvent::Routed { part, engine, why } => {
                    me.note_engine("engine_chosen", job, part, engine, why);
                }
                PartEvent::Replaced { part, engine, why } => {
                    me.note_engine("engine_replaced", job, part, engine, why);
                }
                PartEvent::SmallSets { part, engine, why } => {
                    me.note_engine("engine_small_sets", job, part, engine, why);
                }
            }
        })
    }

    fn note_engine(&self, what: &str, job: JobId, part: u32, engine: &'static str, why: String) {
        let (part, engine) = (u64::from(part).into(), engine.into());
        let why = ("why", why.into());
        self.note(what, &[("job", job.0.into()), ("part", part), ("engine", engine), why]);
    }

    pub(crate) fn compaction_ended(&self, job: JobId, to: usize, outcome: Outcome) {
        self.family.work.at_work.lock().remove(&job);
        let work = outcome.work;
        self.shared.metrics.add(Counter::CompactionNanos, work.nanos);
        self.shared.metrics.add(Counter::CompactionCpuNanos, work.cpu_nanos);
        self.shared.metrics.add(Counter::CompactionRead, work.read);
        self.shared.metrics.add(Counter::CompactionWrite, work.written);
        self.shared.metrics.add(Counter::CompactionEntries, work.entries_in);
        self.shared.metrics.add(Counter::CompactionDrops, work.entries_in - work.entries_out);
        match outcome.result {
            Ok(adds) => {
                self.shared.metrics.add(Counter::Compactions, 1);
                self.shared.metrics.compaction.record(work.nanos);
                let mut levels = self.family.work.levels.lock();
                levels.written[to] += work.written;
                levels.read[to] += work.read;
                levels.jobs[to] += 1;
                drop(levels);
                self.note_created(job, &adds);
                self.note(
                    "compaction_end",
                    &[
                        ("job", job.0.into()),
                        ("files", (adds.len() as u64).into()),
                        ("read", work.read.into()),
                        ("written", work.written.into()),
                        ("entries", work.entries_in.into()),
                        ("dropped", (work.entries_in - work.entries_out).into()),
                        ("micros", (work.nanos / 1000).into()),
                        ("cpu_micros", (work.cpu_nanos / 1000).into()),
                    ],
                );
                self.ended(Event::Built { job, adds, flow: None });
            }
            Err(error) => self.job_failed(job, error),
        }
    }

    /// For listeners alone: the log has the sums.
    fn note_created(&self, job: JobId, adds: &[FileMeta]) {
        for file in adds {
            let level = u64::from(file.pos.level);
            let fields = [
                ("file", file.id.0.into()),
                ("level", level.into()),
                ("bytes", file.bytes.into()),
                ("job", job.0.into()),
            ];
            self.shared.events.listeners().push(
                self.shared.resources.env.rt.now(),
                "table_created",
                &fields,
            );
        }
    }

    pub(crate) fn set_to_work(
        &self,
        job: JobId,
        control: Arc<JobControl>,
        flushes: Option<KeyRange>,
    ) {
        let work = Arc::new(AtWork { control, since: self.shared.resources.env.rt.now(), flushes });
        self.family.work.at_work.lock().insert(job, work);
    }

    fn job_failed(&self, job: JobId, error: Error) {
        let what = if error.kind() == ErrorKind::ShuttingDown {
            "job_stopped"
        } else {
            self.shared.metrics.add(Counter::JobFailures, 1);
            "job_failed"
        };
        self.note(what, &[("job", job.0.into()), ("cause", error.to_string().into())]);
        self.ended(Event::Failed { job, error });
    }

    /// A job is over. Those who wait for progress must hear of it, even if the core has given the job
    /// up long ago and takes no notice: a close waits for all that is at work.
    fn ended(&self, event: Event) {
        if let Event::Built { adds, .. } = &event
            && self.is_dropped()
        {
            self.family.work.litter.lock().extend(adds.iter().map(|file| file.id));
        }
        self.drive(event);
        self.shared.progressed();
    }
}
