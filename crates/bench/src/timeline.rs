//! Who worked when: an engine's log of jobs and stalls as series over time, and what they say.
//!
//! Keeps: means and shares are exact (areas under the jobs' own begins and ends); the series give
//! the mean number of active jobs in each tenth of a second, which sampling would only guess.
//! Leaves to others: reading an engine's log ([`crate::StoreOpener::history`]), drawing
//! ([`chart`]).
//!
//! Worked example, two jobs from 0.00 to 0.15 s and from 0.05 to 0.20 s:
//!
//! ```text
//! series   [0.0, 0.1): (0.10 + 0.05) / 0.1 = 1.5    [0.1, 0.2): (0.05 + 0.10) / 0.1 = 1.5
//! activity from 0 to 0.2 s, 2 slots: mean 1.5, peak 2, more than half of the slots for 50%
//! ```

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::readings::Reading;
use crate::report::WorkloadReport;

mod chart;
mod panels;
#[cfg(test)]
mod tests;

/// Length of one step of the series, in seconds.
const STEP: f64 = 0.1;

/// Something an engine noted while it was open.
#[derive(Clone, Debug, PartialEq)]
pub struct Moment {
    /// Seconds since the store was opened.
    pub seconds: f64,
    /// What happened.
    pub what: Happening,
}

/// What an engine notes about its jobs and its writers.
#[derive(Clone, Debug, PartialEq)]
pub enum Happening {
    /// A memtable begins to be written to a table.
    FlushBegan {
        /// The job's number, unique among all jobs.
        job: u64,
    },
    /// A compaction begins.
    CompactionBegan {
        /// The job's number, unique among all jobs.
        job: u64,
        /// Highest level that it reads.
        from: u8,
        /// Level that it writes.
        to: u8,
    },
    /// A worker begins with a part of a compaction that is merged in several.
    PartBegan {
        /// The compaction's number.
        job: u64,
    },
    /// A part ended, well or not.
    PartEnded {
        /// The compaction's number.
        job: u64,
    },
    /// A flush or compaction ended, well or not.
    JobEnded {
        /// The job's number.
        job: u64,
    },
    /// Writers are held back from now on, for this cause instead of any other.
    StallBegan {
        /// The cause in the engine's words.
        cause: String,
        /// Whether they wait altogether, or are slowed down.
        stop: bool,
    },
    /// Writers are free again.
    StallEnded,
}

/// What a job does: a compaction between two levels, or a flush. In this order, so that the
/// compactions of a stack begin at zero and can be read against the number of slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Work {
    Compaction { from: u8, to: u8 },
    Flush,
}

impl Work {
    fn name(self) -> String {
        match self {
            Work::Flush => "flush".into(),
            Work::Compaction { from, to } => format!("L{from}->L{to}"),
        }
    }
}

/// A stretch of time in seconds since the store was opened.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Span {
    pub(crate) from: f64,
    pub(crate) to: f64,
}

impl Span {
    /// Seconds that both share.
    fn shared(self, other: Span) -> f64 {
        (self.to.min(other.to) - self.from.max(other.from)).max(0.0)
    }
}

/// Active jobs of one kind.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct JobSeries {
    /// `flush`, or `L0->L1`.
    name: String,
    /// Mean number of active jobs in each step.
    active: Vec<f64>,
    #[serde(skip)]
    work: Work,
}

/// Writers held back.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Stall {
    cause: String,
    stop: bool,
    span: Span,
}

/// A workload in the timeline.
#[derive(Clone, Debug, Serialize)]
struct Played {
    name: String,
    load: Span,
    /// When no job was left.
    settled: f64,
    #[serde(skip)]
    writes: bool,
}

/// Everything that one open store did.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Timeline {
    /// For titles: engine and policy.
    title: String,
    /// The parameters of the load, in words.
    pub(crate) load: String,
    step_seconds: f64,
    /// Compactions that may run at once.
    slots: usize,
    workloads: Vec<Played>,
    jobs: Vec<JobSeries>,
    stalls: Vec<Stall>,
    /// Operations that ended, per second, in each step.
    ops_per_second: Vec<f64>,
    /// Of seconds with operations, when each began, and their median, 99th percentile and slowest in microseconds.
    latency_us: Vec<(f64, [f64; 3])>,
    /// What the engine said of itself.
    pub(crate) readings: Vec<Reading>,
    #[serde(skip)]
    spans: Vec<(Work, Span)>,
}

/// How busy an engine was while a workload ran.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Activity {
    /// Compactions that may run at once.
    pub slots: usize,
    /// Compactions active, on average over time.
    pub mean_compactions: f64,
    /// Most compactions active at once.
    pub peak_compactions: usize,
    /// Flushes active, on average over time.
    pub mean_flushes: f64,
    /// Share of the time in which more than half of the slots were active.
    pub over_half: f64,
    /// Mean by kind of job: `flush`, `L0->L1` and so on.
    pub by_level: BTreeMap<String, f64>,
}

impl Timeline {
    /// The timeline of `moments`, in order of time, up to `end` seconds. Jobs without an end last
    /// until then.
    pub(crate) fn new(
        title: String,
        moments: &[Moment],
        end: f64,
        slots: usize,
        workloads: &[WorkloadReport],
    ) -> Timeline {
        let (spans, stalls) = spans(moments, end);
        let steps = (end / STEP).ceil().max(1.0) as usize;
        let mut by_work: BTreeMap<Work, Vec<f64>> = BTreeMap::new();
        for &(work, span) in &spans {
            let active = by_work.entry(work).or_insert_with(|| vec![0.0; steps]);
            spread_over(active, span);
        }
        let mut ops_per_second = vec![0.0; steps];
        for w in workloads {
            let first = (w.began_seconds / STEP) as usize;
            for (i, &ops) in w.tenths.iter().enumerate() {
                if let Some(step) = ops_per_second.get_mut(first + i) {
                    *step += f64::from(ops) / STEP;
                }
            }
        }
        let latency_us = workloads.iter().flat_map(|w| {
            let seconds = w.latency_series_us.iter().enumerate();
            seconds.map(|(i, &us)| (w.began_seconds + i as f64, us))
        });
        Timeline {
            title,
            load: String::new(),
            latency_us: latency_us.filter(|(_, us)| us[2] > 0.0).collect(),
            readings: Vec::new(),
            step_seconds: STEP,
            slots,
            workloads: workloads.iter().map(played).collect(),
            jobs: by_work
                .into_iter()
                .map(|(work, active)| JobSeries { name: work.name(), active, work })
                .collect(),
            stalls,
            ops_per_second,
            spans,
        }
    }

    /// How busy the engine was in `window`.
    pub(crate) fn activity(&self, window: Span) -> Activity {
        let length = (window.to - window.from).max(f64::MIN_POSITIVE);
        let mut activity = Activity { slots: self.slots, ..Activity::default() };
        let mut edges = Vec::new();
        for &(work, span) in &self.spans {
            let share = span.shared(window) / length;
            if share == 0.0 {
                continue;
            }
            *activity.by_level.entry(work.name()).or_default() += share;
            match work {
                Work::Flush => activity.mean_flushes += share,
                Work::Compaction { .. } => {
                    activity.mean_compactions += share;
                    edges.push((span.from.max(window.from), 1));
                    edges.push((span.to.min(window.to), -1));
                }
            }
        }
        // Ends before begins at the same moment: one slot handed on is one slot.
        edges.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let (mut active, mut last) = (0i64, window.from);
        for (at, change) in edges {
            if 2 * active > self.slots as i64 {
                activity.over_half += (at - last) / length;
            }
            active += change;
            last = at;
            activity.peak_compactions = activity.peak_compactions.max(active.max(0) as usize);
        }
        activity
    }

    /// When workloads wrote to the store, or when any ran if none did: what means are over.
    fn loads(&self) -> Vec<Span> {
        let any = self.workloads.iter().any(|w| w.writes);
        self.workloads.iter().filter(|w| w.writes || !any).map(|w| w.load).collect()
    }

    /// Writes the timeline in the form that the ending of `path` names.
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let text = match Form::of(path)? {
            Form::Svg => chart::draw(self),
            Form::Csv => self.to_csv(),
            Form::Json => serde_json::to_string(self)? + "\n",
        };
        #[expect(clippy::disallowed_methods, reason = "a report is no file of the store")]
        std::fs::write(path, text).with_context(|| format!("writing {path:?}"))
    }

    /// A row for each step.
    fn to_csv(&self) -> String {
        let mut heading = vec!["seconds".to_owned()];
        heading.extend(self.jobs.iter().map(|j| j.name.clone()));
        heading.extend(["compactions", "delayed", "stopped", "ops_per_second"].map(str::to_owned));
        heading.extend(["l0_runs", "debt_bytes", "p50_us", "p99_us", "max_us"].map(str::to_owned));
        let mut text = heading.join(",") + "\n";
        for (i, ops) in self.ops_per_second.iter().enumerate() {
            let from = i as f64 * STEP;
            let step = Span { from, to: from + STEP };
            let held = |stop: bool| -> f64 {
                let stalls = self.stalls.iter().filter(|s| s.stop == stop);
                stalls.map(|s| s.span.shared(step)).sum::<f64>() / STEP
            };
            let compactions = self.jobs.iter().filter(|j| j.work != Work::Flush);
            let sum: f64 = compactions.map(|j| j.active[i]).sum();
            let mut row = vec![format!("{from:.1}")];
            row.extend(self.jobs.iter().map(|j| format!("{:.3}", j.active[i])));
            row.extend([sum, held(false), held(true)].map(|x| format!("{x:.3}")));
            row.push(format!("{ops:.0}"));
            let reading = self.readings.iter().rfind(|r| r.seconds < step.to);
            let said = |figure: Option<u64>| figure.map_or_else(String::new, |n| n.to_string());
            row.push(said(reading.and_then(|r| r.l0_runs)));
            row.push(said(reading.and_then(|r| r.debt_bytes)));
            let latency = self.latency_us.iter().rfind(|(began, _)| *began < step.to);
            let latency = latency.filter(|(began, _)| step.from < began + 1.0);
            row.extend(
                [0, 1, 2]
                    .map(|i| latency.map_or_else(String::new, |(_, us)| format!("{:.1}", us[i]))),
            );
            text += &(row.join(",") + "\n");
        }
        text
    }
}

/// The forms of a timeline file.
enum Form {
    Svg,
    Csv,
    Json,
}

impl Form {
    fn of(path: &Path) -> Result<Form> {
        match path.extension().and_then(|e| e.to_str()) {
            Some("svg") => Ok(Form::Svg),
            Some("csv") => Ok(Form::Csv),
            Some("json") => Ok(Form::Json),
            _ => {
                bail!("--timeline {path:?}: name a file that ends in .svg, .csv or .json")
            }
        }
    }
}

/// Refuses names of an unknown form, before the run and not after it.
pub(crate) fn check_name(path: &Path) -> Result<()> {
    Form::of(path).map(drop)
}

fn played(w: &WorkloadReport) -> Played {
    let load = Span { from: w.began_seconds, to: w.began_seconds + w.seconds };
    let settled = load.to + w.quiesce_seconds;
    let writes = w.written_bytes + w.side_ops > 0;
    Played { name: w.workload.clone(), load, settled, writes }
}

/// A job that has not ended.
struct Running {
    work: Work,
    from: f64,
    /// Parts that are at work.
    parts: usize,
    /// When the parts beyond the first began, those that are at work.
    besides: Vec<f64>,
}

impl Running {
    fn new(work: Work, from: f64) -> Running {
        Running { work, from, parts: 0, besides: Vec::new() }
    }

    /// Its end, and that of all workers it still has.
    fn end(self, to: f64) -> impl Iterator<Item = (Work, Span)> {
        let work = self.work;
        std::iter::once(self.from).chain(self.besides).map(move |from| (work, Span { from, to }))
    }
}

/// Jobs and stalls with both of their ends. A compaction is one worker, and one more for each part
/// that is at work besides another; which of them counts as which makes no difference.
fn spans(moments: &[Moment], end: f64) -> (Vec<(Work, Span)>, Vec<Stall>) {
    let mut running: BTreeMap<u64, Running> = BTreeMap::new();
    let (mut jobs, mut stalls) = (Vec::new(), Vec::new());
    let mut stalled: Option<(String, bool, f64)> = None;
    let mut end_stall = |stalled: &mut Option<(String, bool, f64)>, to: f64| {
        if let Some((cause, stop, from)) = stalled.take() {
            stalls.push(Stall { cause, stop, span: Span { from, to } });
        }
    };
    for Moment { seconds: at, what } in moments {
        match what {
            Happening::FlushBegan { job } => {
                running.insert(*job, Running::new(Work::Flush, *at));
            }
            Happening::CompactionBegan { job, from, to } => {
                let work = Work::Compaction { from: *from, to: *to };
                running.insert(*job, Running::new(work, *at));
            }
            Happening::JobEnded { job } => {
                jobs.extend(running.remove(job).into_iter().flat_map(|r| r.end(*at)));
            }
            Happening::PartBegan { job } => {
                if let Some(r) = running.get_mut(job) {
                    r.parts += 1;
                    if r.parts > 1 {
                        r.besides.push(*at);
                    }
                }
            }
            Happening::PartEnded { job } => {
                if let Some(r) = running.get_mut(job) {
                    r.parts = r.parts.saturating_sub(1);
                    let from = r.besides.pop();
                    jobs.extend(from.map(|from| (r.work, Span { from, to: *at })));
                }
            }
            Happening::StallBegan { cause, stop } => {
                end_stall(&mut stalled, *at);
                stalled = Some((cause.clone(), *stop, *at));
            }
            Happening::StallEnded => end_stall(&mut stalled, *at),
        }
    }
    end_stall(&mut stalled, end);
    jobs.extend(running.into_values().flat_map(|r| r.end(end)));
    (jobs, stalls)
}

/// Adds `span` to the steps it lies in, each by the share of the step that it covers.
fn spread_over(active: &mut [f64], span: Span) {
    let first = (span.from.max(0.0) / STEP) as usize;
    for (i, sum) in active.iter_mut().enumerate().skip(first) {
        let from = i as f64 * STEP;
        if from >= span.to {
            break;
        }
        *sum += span.shared(Span { from, to: from + STEP }) / STEP;
    }
}
