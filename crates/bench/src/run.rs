//! A run: opens the store, drives the workloads one after the other, and collects the report.
//!
//! Keeps: every workload is measured alike (counters read before and after, quiescence waited for
//! and timed apart).
//! Leaves to others: the operations ([`crate::load`]) and what one thread measures
//! ([`crate::lane`]).

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};

use crate::clock::{cpu_seconds, now};
use crate::interrupt::Interrupt;
use crate::keys::mix;
use crate::lane::{Course, Lane, Standing, Tally};
use crate::load::{drive, write_beside};
use crate::machine;
use crate::model::Model;
use crate::place::Place;
use crate::progress::Progress;
use crate::readings::{self, Reading};
use crate::report::{Latency, RunReport, WorkloadReport};
use crate::settings::{BenchSettings, OutputArgs};
use crate::store::{EngineStats, Store, StoreOpener};
use crate::timeline::{self, Span, Timeline};
use crate::usage::Usage;
use crate::values::Values;
use crate::workload::Workload;
use crate::ycsb::{Records, ranks};

/// How often the progress line is redrawn.
const REDRAW: Duration = Duration::from_millis(200);

/// Runs `settings` on `opener`'s engine. A failed operation or a wrong value gives a report with
/// `valid: false`; an error means that no run took place at all.
pub fn run(
    opener: &dyn StoreOpener,
    settings: BenchSettings,
    output: &OutputArgs,
    interrupt: &Interrupt,
) -> Result<RunReport> {
    let settings = settings.resolve()?;
    output.timeline.as_deref().map_or(Ok(()), timeline::check_name).map_err(Usage::of)?;
    output.check_places()?;
    let mut report = RunReport {
        engine: opener.identity(),
        settings: settings.clone(),
        machine: machine::note(),
        valid: true,
        interrupted: false,
        error: None,
        workloads: Vec::new(),
    };
    let place = Place::prepare(&settings.db)?;
    machine::touch_memory(settings.touch_bytes(automatic_touch(&settings))?)?;
    let mut session = Session {
        opener,
        settings: &settings,
        output,
        interrupt,
        place,
        store: None,
        opened: now(),
        values: Values::new(settings.value_size, settings.value_compressibility, settings.seed),
        model: Model::unknown(),
        // A store of an earlier run is taken to hold all records of YCSB's loading.
        records: Records::new(settings.num(), settings.key_space(), settings.seed),
        version_base: 0,
        done: Vec::new(),
        first_of_store: 0,
        readings: Vec::new(),
        timeline: None,
    };
    let mut outcome = settings.workloads.iter().try_for_each(|&workload| {
        if interrupt.came() {
            return Ok(());
        }
        let played = session.play(workload).with_context(|| workload.name().to_owned())?;
        session.done.push(played);
        Ok(())
    });
    let closed = session.close_store().context("close");
    outcome = outcome.and(closed);
    report.workloads = session.done;
    report.interrupted = interrupt.came();
    if let Err(error) = outcome {
        report.valid = false;
        report.error = Some(format!("{error:#}"));
    }
    if report.valid {
        write_timeline(session.timeline, output, report.interrupted)?;
    }
    Ok(report)
}

/// Writes the timeline where it is wanted, and says so. A run that was interrupted early has none.
fn write_timeline(timeline: Option<Timeline>, output: &OutputArgs, early: bool) -> Result<()> {
    let Some(path) = &output.timeline else { return Ok(()) };
    let Some(timeline) = timeline else {
        return if early { Ok(()) } else { Err(anyhow!("this engine keeps no log of its jobs")) };
    };
    timeline.write(path)?;
    if !output.quiet {
        use std::io::Write;
        writeln!(std::io::stderr(), "timeline in {}", path.to_string_lossy().escape_debug())?;
    }
    Ok(())
}

/// Memory worth touching: what the run may come to use, store and page cache, at most 16 GiB.
fn automatic_touch(settings: &BenchSettings) -> u64 {
    let entry = (settings.key_size + settings.value_size) as u64;
    let set = settings.num().saturating_mul(entry);
    let store = settings.memtable_bytes * settings.memtables as u64 + settings.cache_bytes;
    set.saturating_mul(2).saturating_add(store * 2).clamp(1 << 30, 16 << 30)
}

struct Session<'a> {
    opener: &'a dyn StoreOpener,
    settings: &'a BenchSettings,
    output: &'a OutputArgs,
    interrupt: &'a Interrupt,
    place: Place,
    store: Option<Box<dyn Store>>,
    /// When the store was opened.
    opened: Instant,
    values: Values,
    model: Model,
    records: Records,
    version_base: u32,
    /// Workloads that have ended.
    done: Vec<WorkloadReport>,
    /// How many of them had ended when the present store was opened.
    first_of_store: usize,
    /// What the present store said of itself, if a timeline is wanted.
    readings: Vec<Reading>,
    /// Of the store that was closed last.
    timeline: Option<Timeline>,
}

/// Readings at the start of a workload.
struct Before {
    stats: EngineStats,
    cpu_seconds: f64,
}

impl Session<'_> {
    /// Runs one workload and measures it.
    fn play(&mut self, workload: Workload) -> Result<WorkloadReport> {
        self.open_for(workload)?;
        let store = self.store.as_deref().context("the store is not open")?;
        let wanted = self.output.timeline.is_some();
        let (played, readings) =
            readings::beside(store, self.opened, wanted, || self.play_on(store, workload));
        self.readings.extend(readings);
        let report = played?;
        if workload.writes() {
            let ops = report.ops.max(report.side_ops);
            let next = u64::from(self.version_base) + ops;
            self.version_base = u32::try_from(next)
                .context("more than 2^32 writes in one run: versions of values run out")?;
        }
        Ok(report)
    }

    /// Tells the random numbers of `workload` from those of the others: reads in the order of writes would find every key,
    /// and those that a workload before them has read are cached.
    fn salt(&self, workload: Workload) -> u64 {
        mix(u64::from(self.version_base)) ^ mix((self.done.len() as u64) << 8 | workload as u64)
    }

    /// The same on the open store.
    fn play_on(&self, store: &dyn Store, workload: Workload) -> Result<WorkloadReport> {
        let progress =
            Progress::start(workload.name(), self.expected_ops(workload), self.output.quiet);
        if workload == Workload::Compact {
            store.flush().context("flushing before compaction")?;
        }
        let before = Before { stats: store.stats()?, cpu_seconds: cpu_seconds() };
        let began_seconds = (now() - self.opened).as_secs_f64();
        let mut report = match workload {
            Workload::Compact => timed(workload, || store.compact_all())?,
            Workload::WaitIdle => timed(workload, || store.wait_idle())?,
            Workload::Stats => {
                let text = store.stats_text()?;
                timed(workload, || {
                    use std::io::Write;
                    Ok(writeln!(std::io::stderr(), "{text}")?)
                })?
            }
            _ => self.measure_load(store, workload, &progress)?,
        };
        progress.say("quiescing");
        if report.began_seconds == 0.0 {
            report.began_seconds = began_seconds;
        }
        let load_end = now();
        let at_end = store.stats()?;
        (report.debt_bytes, report.runs) = (at_end.debt_bytes, at_end.runs);
        if !self.interrupt.came() {
            store.wait_idle().context("waiting for quiescence")?;
        }
        report.quiesce_seconds = (now() - load_end).as_secs_f64();
        let stats = store.stats()?.since(&before.stats);
        self.conclude(workload, &mut report, stats, &before);
        Ok(report)
    }

    /// Opens the store: empty for fill workloads, otherwise as it is.
    fn open_for(&mut self, workload: Workload) -> Result<()> {
        let begins = workload.is_fresh() || workload.may_begin() && self.store.is_none();
        let fresh = begins && !self.settings.use_existing_db;
        if self.store.is_some() && !fresh {
            return Ok(());
        }
        self.close_store()?;
        if fresh {
            let settings = self.settings;
            self.place.clear()?;
            self.model = Model::empty(settings.key_space());
            self.records = Records::new(0, settings.key_space(), settings.seed);
        } else if !self.place.store.exists() {
            bail!("there is no store in {:?} yet; begin with a fill workload", self.place.store);
        }
        self.opened = now();
        self.store = Some(self.opener.open(self.settings, &self.place.store, fresh)?);
        Ok(())
    }

    /// Closes the store, if one is open, and reads what it noted about its jobs.
    fn close_store(&mut self) -> Result<()> {
        let Some(store) = self.store.take() else { return Ok(()) };
        let end = (now() - self.opened).as_secs_f64();
        store.close()?;
        let played = self.done.get_mut(self.first_of_store..).unwrap_or_default();
        if let Some(moments) = self.opener.history(&self.place.store)? {
            let policy = self.opener.policy(self.settings);
            let identity = self.opener.identity();
            let title = format!("{} {}, policy {policy}", identity.name, identity.version);
            let slots = self.settings.background_threads;
            let mut timeline = Timeline::new(title, &moments, end, slots, played);
            timeline.load = self.settings.in_words();
            timeline.readings = std::mem::take(&mut self.readings);
            for w in played {
                let load = Span { from: w.began_seconds, to: w.began_seconds + w.seconds };
                w.activity = Some(timeline.activity(load));
            }
            self.timeline = Some(timeline);
        }
        self.first_of_store = self.done.len();
        Ok(())
    }

    fn lanes(&self, workload: Workload) -> usize {
        if workload.is_single() { 1 } else { self.settings.threads }
    }

    fn lane_ops(&self, workload: Workload) -> u64 {
        let settings = self.settings;
        match workload {
            Workload::Verify => u64::MAX,
            Workload::FillUniqueRandom => settings.num(),
            // The records are shared out as the lanes come for them.
            Workload::YcsbLoad => u64::MAX,
            _ if settings.duration.is_some() => u64::MAX,
            Workload::ReadWhileWriting | Workload::ReadRandomWriteRandom => settings.reads(),
            w if w.is_ycsb() => settings.reads(),
            _ if workload.writes() => settings.num(),
            _ => settings.reads(),
        }
    }

    fn expected_ops(&self, workload: Workload) -> u64 {
        match workload {
            Workload::Compact | Workload::WaitIdle | Workload::Stats => 0,
            Workload::Verify => self.model.present().unwrap_or(0),
            Workload::YcsbLoad => self.settings.num(),
            _ => match self.lane_ops(workload) {
                u64::MAX => 0,
                ops => ops.saturating_mul(self.lanes(workload) as u64),
            },
        }
    }

    /// Runs the lanes of `workload` and turns what they measured into a report.
    fn measure_load(
        &self,
        store: &dyn Store,
        workload: Workload,
        progress: &Progress,
    ) -> Result<WorkloadReport> {
        let settings = self.settings;
        let lanes = self.lanes(workload);
        if workload.is_ycsb() && self.records.count() == 0 {
            bail!("the store has no records yet; begin with ycsbload");
        }
        let zipf = ranks(workload, self.records.count(), settings);
        let started = now();
        let course = Course {
            store,
            settings,
            values: &self.values,
            model: &self.model,
            records: &self.records,
            zipf,
            lane_ops: self.lane_ops(workload),
            deadline: longest(settings, workload).map(|longest| started + longest),
            rate: settings.rate,
            lanes,
            version_base: self.version_base,
            salt: self.salt(workload),
            beside_writer: workload == Workload::ReadWhileWriting
                || workload.is_mixed() && lanes > 1,
            started,
            standing: Standing {
                done: AtomicU64::new(0),
                live: AtomicUsize::new(lanes),
                stop: AtomicBool::new(false),
            },
        };
        let Played { tallies, side, ended } =
            run_lanes(&course, workload, lanes, (progress, self.interrupt))?;
        let seconds = (ended - started).as_secs_f64();
        let sum = sum_of(&tallies);
        Ok(WorkloadReport {
            workload: workload.name().to_owned(),
            threads: lanes,
            ops: sum.ops,
            found: sum.found,
            side_ops: side.map_or(0, |t| t.ops),
            bytes: sum.bytes,
            written_bytes: sum.written,
            began_seconds: (started - self.opened).as_secs_f64(),
            seconds,
            latency_us: latency(&sum),
            distribution_us: distribution(&sum),
            series: seconds_of(&sum.tenths),
            latency_series_us: sum.seconds.series(),
            tenths: sum.tenths,
            slow: sum.slow,
            ..WorkloadReport::default()
        })
    }

    /// Fills in everything that follows from the counters.
    fn conclude(
        &self,
        workload: Workload,
        report: &mut WorkloadReport,
        stats: EngineStats,
        before: &Before,
    ) {
        report.cpu_seconds = cpu_seconds() - before.cpu_seconds;
        report.rss_peak_bytes = machine::rss_peak_bytes();
        report.space_bytes = machine::space_bytes(&self.place.store);
        if workload == Workload::Compact {
            report.bytes = stats.compact_read_bytes;
        }
        report.ops_per_second = ratio(report.ops as f64, report.seconds).unwrap_or(0.0);
        let whole = report.seconds + report.quiesce_seconds;
        report.ops_per_second_quiesced = ratio(report.ops as f64, whole).unwrap_or(0.0);
        report.mb_per_second = ratio(report.bytes as f64 / 1e6, report.seconds).unwrap_or(0.0);
        if workload.writes() {
            let entry = (self.settings.key_size + self.settings.value_size) as u64;
            let user = match workload {
                Workload::ReadWhileWriting => report.side_ops * entry,
                _ => report.written_bytes,
            } as f64;
            let tables = stats.flush_write_bytes + stats.compact_write_bytes;
            report.write_amplification = ratio(tables as f64, user);
            report.write_amplification_by_level = stats
                .level_write_bytes
                .iter()
                .map(|&bytes| ratio(bytes as f64, user).unwrap_or(0.0))
                .collect();
        }
        let input_mb = stats.compact_read_bytes as f64 / 1e6;
        report.compaction_mb_per_thread_second = ratio(input_mb, stats.compact_seconds);
        report.compaction_mb_per_cpu_second = ratio(input_mb, stats.compact_cpu_seconds);
        report.engine = stats;
    }
}

/// What the lanes of a workload measured.
struct Played {
    tallies: Vec<Tally>,
    /// Of the extra writer.
    side: Option<Tally>,
    /// When the last lane ended; the writer beside them may end later.
    ended: Instant,
}

/// Runs all lanes to their end, with the progress line.
fn run_lanes(
    course: &Course<'_>,
    workload: Workload,
    lanes: usize,
    (progress, interrupt): (&Progress, &Interrupt),
) -> Result<Played> {
    let side_course = course.side();
    std::thread::scope(|scope| {
        let main = std::thread::current();
        let threads: Vec<_> = (0..lanes)
            .map(|index| {
                let main = main.clone();
                scope.spawn(move || {
                    let _leave = Leave { course, main };
                    let mut lane = Lane::new(course, index);
                    let outcome = drive(workload, &mut lane);
                    if outcome.is_err() {
                        course.standing.stop.store(true, Ordering::Relaxed);
                    }
                    outcome.map(|()| lane.into_tally())
                })
            })
            .collect();
        let side = (workload == Workload::ReadWhileWriting).then(|| {
            let side_course = &side_course;
            scope.spawn(move || {
                let mut lane = Lane::new(side_course, lanes);
                write_beside(&mut lane).map(|()| lane.into_tally())
            })
        });
        while course.standing.live.load(Ordering::Acquire) > 0 {
            std::thread::park_timeout(REDRAW);
            progress.set(course.standing.done.load(Ordering::Relaxed));
            if interrupt.came() {
                course.standing.stop.store(true, Ordering::Relaxed);
            }
        }
        let ended = now();
        side_course.standing.stop.store(true, Ordering::Relaxed);
        let side = side.map(join).transpose()?;
        let tallies = threads.into_iter().map(join).collect::<Result<Vec<_>>>()?;
        Ok(Played { tallies, side, ended })
    })
}

/// Tells the main thread that a lane ended, even if it panicked.
struct Leave<'a> {
    course: &'a Course<'a>,
    main: std::thread::Thread,
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.course.standing.live.fetch_sub(1, Ordering::Release);
        self.main.unpark();
    }
}

fn join(thread: std::thread::ScopedJoinHandle<'_, Result<Tally>>) -> Result<Tally> {
    thread.join().map_err(|_| anyhow!("a client thread panicked"))?
}

/// Times one call that has no client operations.
fn timed(workload: Workload, call: impl FnOnce() -> Result<()>) -> Result<WorkloadReport> {
    let started = now();
    call()?;
    Ok(WorkloadReport {
        workload: workload.name().to_owned(),
        threads: 1,
        seconds: (now() - started).as_secs_f64(),
        ..WorkloadReport::default()
    })
}

/// Operations by second out of those by tenth.
fn seconds_of(tenths: &[u32]) -> Vec<u64> {
    tenths.chunks(10).map(|second| second.iter().map(|&n| u64::from(n)).sum()).collect()
}

fn latency(tally: &Tally) -> Option<Latency> {
    let h = &tally.latency;
    if h.is_empty() {
        return None;
    }
    let at = |quantile| h.value_at_quantile(quantile) as f64 / 1e3;
    Some(Latency {
        mean: h.mean() / 1e3,
        p50: at(0.5),
        p99: at(0.99),
        p999: at(0.999),
        p9999: at(0.9999),
        max: h.max() as f64 / 1e3,
    })
}

/// Latency by quantile, in steps that halve towards the slowest.
fn distribution(tally: &Tally) -> Vec<(f64, f64)> {
    let h = &tally.latency;
    let steps = h.iter_quantiles(1).filter(|step| step.count_since_last_iteration() > 0);
    steps
        .map(|step| (step.quantile_iterated_to() * 100.0, step.value_iterated_to() as f64 / 1e3))
        .collect()
}

fn ratio(a: f64, b: f64) -> Option<f64> {
    (b > 0.0).then(|| a / b)
}

/// How long a workload may take; a verification is never cut short.
fn longest(settings: &BenchSettings, workload: Workload) -> Option<Duration> {
    let seconds = match (settings.duration, settings.limit_seconds) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
    seconds.filter(|_| workload != Workload::Verify).map(Duration::from_secs_f64)
}

fn sum_of(tallies: &[Tally]) -> Tally {
    let mut sum = Tally::new();
    for tally in tallies {
        sum.merge(tally);
    }
    sum
}
