//! A lane: one client thread of a workload, with its random numbers, buffers and measurements.
//!
//! Keeps: one clock reading per operation (the end of one is the start of the next, as in
//! db_bench), nothing shared with other lanes on the hot path but a progress counter touched
//! every [`PROGRESS_STEP`] operations.
//! With `--rate` the load is open: operation `i` is due at `start + i / rate` and its latency
//! counts from then, so that a stalled store is charged for everything that waited behind the
//! stall (no coordinated omission). Lanes take turns; a call of several operations is due with the first of them.
//! Leaves to others: what an operation is ([`crate::load`]), and merging lanes ([`crate::run()`]).

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use hdrhistogram::Histogram;

use crate::clock::{now, thread_cpu};
use crate::keys::{encode_key, mix};
use crate::model::{Due, Model};
use crate::report::SlowOps;
use crate::seconds::Seconds;
use crate::settings::BenchSettings;
use crate::store::Store;
use crate::values::{Flaw, Values};
use crate::ycsb::Records;
use crate::zipf::Zipf;

/// An operation longer than this is a stall in the eyes of the client.
const SLOW: Duration = Duration::from_millis(10);
/// Operations between two updates of the shared progress counter.
const PROGRESS_STEP: u64 = 512;
/// Latencies are kept to 1% (two digits: the histogram stays inside the L1 and L2 caches).
const HISTOGRAM_DIGITS: u8 = 2;
/// Greatest latency kept, in nanoseconds: one hour.
const HISTOGRAM_MAX: u64 = 3_600_000_000_000;

/// What all lanes of a workload share.
pub(crate) struct Course<'a> {
    pub(crate) store: &'a dyn Store,
    pub(crate) settings: &'a BenchSettings,
    pub(crate) values: &'a Values,
    pub(crate) model: &'a Model,
    /// YCSB's records, and the ranks of the workload's requests.
    pub(crate) records: &'a Records,
    pub(crate) zipf: Option<Zipf>,
    /// Operations of each lane; `u64::MAX` when time decides.
    pub(crate) lane_ops: u64,
    /// When the workload ends at the latest.
    pub(crate) deadline: Option<Instant>,
    /// Operations per second offered to all lanes together; `None` for as fast as possible.
    pub(crate) rate: Option<f64>,
    /// Versions up to this one are taken by earlier workloads.
    pub(crate) version_base: u32,
    /// Tells its random numbers from those of other workloads of the run.
    pub(crate) salt: u64,
    /// A writer is at work beside the readers.
    pub(crate) beside_writer: bool,
    pub(crate) started: Instant,
    /// Lanes of this course.
    pub(crate) lanes: usize,
    pub(crate) standing: Standing,
}

/// How far the lanes of a course are.
pub(crate) struct Standing {
    /// Operations done so far, for the progress display.
    pub(crate) done: AtomicU64,
    /// Lanes still at work.
    pub(crate) live: AtomicUsize,
    /// Set when lanes should end early.
    pub(crate) stop: AtomicBool,
}

impl<'a> Course<'a> {
    /// The course of an extra writer: no end but `stop`, and a rate and progress of its own.
    pub(crate) fn side(&self) -> Course<'a> {
        Course {
            lane_ops: u64::MAX,
            deadline: None,
            rate: self.settings.write_rate,
            beside_writer: false,
            lanes: 1,
            standing: Standing {
                done: AtomicU64::new(0),
                live: AtomicUsize::new(1),
                stop: AtomicBool::new(false),
            },
            zipf: None,
            ..*self
        }
    }
}

/// One client thread's state.
pub(crate) struct Lane<'a> {
    pub(crate) course: &'a Course<'a>,
    pub(crate) index: usize,
    pub(crate) rng: fastrand::Rng,
    pub(crate) key: Vec<u8>,
    pub(crate) value: Vec<u8>,
    /// End of the latest operation; with a rate, the moment at which the next one is due.
    last: Instant,
    /// Time for each operation, with a rate.
    interval: Option<Duration>,
    tally: Tally,
    reported: u64,
    /// Processor time of this thread when it last slept for it.
    cpu: Duration,
}

/// What a lane measured.
pub(crate) struct Tally {
    pub(crate) ops: u64,
    pub(crate) found: u64,
    pub(crate) bytes: u64,
    /// Of `bytes`, those that writes carried.
    pub(crate) written: u64,
    pub(crate) latency: Histogram<u64>,
    /// The same second by second.
    pub(crate) seconds: Seconds,
    /// Operations that ended in each tenth of a second.
    pub(crate) tenths: Vec<u32>,
    pub(crate) slow: SlowOps,
    /// For each second, whether a slow operation ended in it.
    pub(crate) slow_seconds: Vec<bool>,
}

impl Tally {
    pub(crate) fn new() -> Tally {
        let latency = Histogram::new_with_max(HISTOGRAM_MAX, HISTOGRAM_DIGITS);
        Tally {
            ops: 0,
            found: 0,
            bytes: 0,
            written: 0,
            latency: latency.expect("the histogram's bounds are constant and sound"),
            seconds: Seconds::default(),
            tenths: Vec::new(),
            slow: SlowOps::default(),
            slow_seconds: Vec::new(),
        }
    }

    /// Adds another lane's measurements.
    pub(crate) fn merge(&mut self, other: &Tally) {
        self.ops += other.ops;
        self.found += other.found;
        self.bytes += other.bytes;
        self.written += other.written;
        self.latency.add(&other.latency).expect("all lanes have the same histogram bounds");
        self.seconds.merge(&other.seconds);
        self.tenths.resize(self.tenths.len().max(other.tenths.len()), 0);
        for (sum, x) in self.tenths.iter_mut().zip(&other.tenths) {
            *sum += x;
        }
        self.slow.count += other.slow.count;
        self.slow.seconds += other.slow.seconds;
        self.slow_seconds.resize(self.slow_seconds.len().max(other.slow_seconds.len()), false);
        for (any, x) in self.slow_seconds.iter_mut().zip(&other.slow_seconds) {
            *any |= x;
        }
        self.slow.touched_seconds = self.slow_seconds.iter().filter(|&&x| x).count() as u64;
    }
}

impl<'a> Lane<'a> {
    pub(crate) fn new(course: &'a Course<'a>, index: usize) -> Lane<'a> {
        let salt = mix(index as u64) ^ course.salt;
        // With a rate, of each operation of this lane.
        let interval = course.rate.map(|rate| Duration::from_secs_f64(course.lanes as f64 / rate));
        Lane {
            course,
            index,
            rng: fastrand::Rng::with_seed(mix(course.settings.seed) ^ salt),
            key: vec![0; course.settings.key_size],
            value: Vec::with_capacity(course.values.size()),
            last: interval.map_or_else(now, |each| {
                course.started + each.mul_f64(index as f64 / course.lanes as f64)
            }),
            interval,
            tally: Tally::new(),
            reported: 0,
            cpu: thread_cpu(),
        }
    }

    /// True while there is another operation, whose time has come.
    #[inline]
    pub(crate) fn has_more(&mut self) -> bool {
        let more = self.tally.ops < self.course.lane_ops
            && self.course.deadline.is_none_or(|end| self.last < end)
            && !self.course.standing.stop.load(Ordering::Relaxed);
        if more && self.interval.is_some() {
            self.await_turn();
        }
        more
    }

    /// Waits until the next operation is due (its start counts from then, late or not).
    fn await_turn(&self) {
        /// Below this the thread spins, because waking up takes about as long.
        const SPIN: Duration = Duration::from_micros(100);
        loop {
            let left = self.last.saturating_duration_since(now());
            if left.is_zero() || self.course.standing.stop.load(Ordering::Relaxed) {
                return;
            }
            if left > SPIN {
                std::thread::park_timeout(left - SPIN);
            } else {
                std::hint::spin_loop();
            }
        }
    }

    /// Operations done.
    pub(crate) fn ops(&self) -> u64 {
        self.tally.ops
    }

    /// Operations left, at most `most`.
    pub(crate) fn up_to(&self, most: usize) -> usize {
        most.min(usize::try_from(self.course.lane_ops - self.tally.ops).unwrap_or(most))
    }

    /// Notes that one call finished, which did `ops` operations on `bytes` bytes.
    #[inline]
    pub(crate) fn finish(&mut self, ops: u64, bytes: u64) {
        let took = self.count(ops, bytes);
        self.tally.latency.saturating_record(took.as_nanos() as u64);
        self.tally.seconds.note((self.tally.tenths.len() - 1) / 10, took);
        if took > SLOW {
            self.note_slow(took);
        }
    }

    /// Like [`Lane::finish`] for steps too small to time one by one.
    pub(crate) fn count(&mut self, ops: u64, bytes: u64) -> Duration {
        let end = now();
        let took = end.saturating_duration_since(self.last);
        self.last = self.interval.map_or(end, |each| self.last + each.mul_f64(ops as f64));
        let since = end - self.course.started;
        let tenth = since.as_secs() as usize * 10 + since.subsec_millis() as usize / 100;
        if tenth >= self.tally.tenths.len() {
            self.tally.tenths.resize(tenth + 1, 0);
        }
        self.tally.tenths[tenth] += ops as u32;
        self.tally.ops += ops;
        self.tally.bytes += bytes;
        if self.tally.ops - self.reported >= PROGRESS_STEP {
            self.course.standing.done.fetch_add(self.tally.ops - self.reported, Ordering::Relaxed);
            self.reported = self.tally.ops;
            self.dilate();
        }
        took
    }

    /// Sleeps for the processor time taken since the last call, as the settings ask. The sleep
    /// belongs to no operation.
    fn dilate(&mut self) {
        let Some(factor) = self.course.settings.dilate else { return };
        let spent = thread_cpu();
        let until = now() + spent.saturating_sub(self.cpu).mul_f64(factor - 1.0);
        while now() < until {
            std::thread::park_timeout(until - now());
        }
        self.cpu = spent;
        if self.interval.is_none() {
            self.last = now();
        }
    }

    /// Notes that a write carried `bytes`, which [`Lane::finish`] counts too.
    #[inline]
    pub(crate) fn wrote(&mut self, bytes: u64) {
        self.tally.written += bytes;
    }

    /// Notes `n` entries found.
    #[inline]
    pub(crate) fn found(&mut self, n: u64) {
        self.tally.found += n;
    }

    #[cold]
    fn note_slow(&mut self, took: Duration) {
        self.tally.slow.count += 1;
        self.tally.slow.seconds += took.as_secs_f64();
        // The operation ended in the tenth that `count` has just noted, or before the last one.
        let seconds = self.tally.tenths.len().div_ceil(10);
        self.tally.slow_seconds.resize(seconds, false);
        self.tally.slow_seconds[seconds - 1] = true;
    }

    /// The measurements, at the end.
    pub(crate) fn into_tally(self) -> Tally {
        self.tally
    }

    /// A uniformly random key number.
    #[inline]
    pub(crate) fn any_key(&mut self) -> u64 {
        self.rng.u64(0..self.course.settings.num())
    }

    /// A uniformly random key number among those that this lane may write: those whose
    /// remainder by the number of lanes is its index, so that each key has one writer.
    #[inline]
    pub(crate) fn own_key(&mut self, writers: u64) -> u64 {
        let key = self.any_key();
        self.own_of(key, writers)
    }

    /// The key next to `key` that this lane may write.
    #[inline]
    pub(crate) fn own_of(&self, key: u64, writers: u64) -> u64 {
        if writers <= 1 {
            return key;
        }
        let num = self.course.settings.num();
        let own = key - key % writers + self.index as u64;
        if own < num { own } else { own.saturating_sub(writers).min(num - 1) }
    }

    /// Which of `phases` equal parts of the workload this is: by operations, or by time where
    /// only that ends it.
    pub(crate) fn phase(&self, phases: usize) -> usize {
        let done = match (self.course.lane_ops, self.course.deadline) {
            (u64::MAX, Some(end)) => {
                let started = self.course.started;
                let whole = end.saturating_duration_since(started).as_secs_f64();
                self.last.saturating_duration_since(started).as_secs_f64() / whole
            }
            (ops, _) => self.tally.ops as f64 / ops as f64,
        };
        ((done * phases as f64) as usize).min(phases - 1)
    }

    /// Sets the key buffer to key `number`.
    #[inline]
    pub(crate) fn set_key(&mut self, number: u64) {
        encode_key(number, &mut self.key);
    }

    /// The version of this lane's `i`-th write of this workload.
    #[inline]
    pub(crate) fn version(&self, i: u64) -> u32 {
        self.course.version_base.wrapping_add(i as u32).wrapping_add(1)
    }

    /// What a read of `key` that starts now must see.
    #[inline]
    pub(crate) fn due(&self, key: u64) -> Due {
        self.course.model.due(key, self.course.beside_writer)
    }

    /// Judges the answer for key number `key`: an error if the store is wrong.
    #[inline]
    pub(crate) fn judge(&mut self, key: u64, due: Due, value: Option<&[u8]>) -> Result<()> {
        let Some(value) = value else {
            if due.accepts_absence() {
                return Ok(());
            }
            bail!("key {key} is missing; version {} is due", due.version());
        };
        let fraction = self.course.settings.verify_fraction;
        let deep = fraction >= 1.0 || self.rng.f64() < fraction;
        let version = match self.course.values.check(key, value, deep) {
            Ok(version) => version,
            Err(flaw) => bail!("the value of key {key} is wrong: {flaw}"),
        };
        if !due.accepts(version) {
            let flaw = Flaw::Version { found: version, due: due.version() };
            bail!("the value of key {key} is wrong: {flaw}");
        }
        Ok(())
    }

    /// Checks that no key number in `from..to` is due, because the store has none there.
    pub(crate) fn judge_gap(&self, from: u64, to: u64) -> Result<()> {
        if !self.course.model.knows() || self.course.beside_writer {
            return Ok(());
        }
        for key in from..to.min(self.course.settings.key_space()) {
            let due = self.due(key);
            if !due.accepts_absence() {
                bail!("key {key} is missing; version {} is due", due.version());
            }
        }
        Ok(())
    }
}
