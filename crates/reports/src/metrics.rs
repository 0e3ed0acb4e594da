//! Counters and histograms of one database. Counters are kept in a few padded shards so that
//! threads do not fight over a line; histograms are log-linear, with at most 1/16 error.

use std::cell::Cell;
use std::time::Duration;

// The standard library's own: nothing is decided by a count, so no model checker need switch there.
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use crossbeam_utils::CachePadded;
use lithify_env::{Mono, Rt};

const SHARDS: usize = 8;

macro_rules! counters {
    ($($(#[$doc:meta])* $variant:ident => $field:ident,)*) => {
        /// What is counted.
        #[derive(Clone, Copy)]
        pub enum Counter { $($(#[$doc])* $variant),* }
        const COUNTERS: usize = [$(stringify!($variant)),*].len();

        /// Counters since the database was opened.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Counts { $($(#[$doc])* pub $field: u64,)* }

        impl Counts {
            fn from_totals(totals: &[u64; COUNTERS]) -> Counts {
                Counts { $($field: totals[Counter::$variant as usize]),* }
            }
            /// Name and value of each counter, in a fixed order.
            pub fn list(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($field), self.$field)),*]
            }
        }
    };
}

counters! {
    /// Entries written by users.
    Writes => writes,
    /// Key and value bytes written by users.
    WriteBytes => write_bytes,
    /// Commit groups: one log write each.
    Groups => commit_groups,
    /// Batches of such groups that their own writers inserted into the memtable, beside others.
    OwnInserts => own_inserts,
    /// Bytes appended to write-ahead logs.
    WalBytes => wal_bytes,
    /// Log syncs.
    WalSyncs => wal_syncs,
    /// Point reads.
    Gets => gets,
    /// Point reads that found a value.
    GetHits => get_hits,
    /// Point reads answered by a memtable.
    MemtableHits => memtable_hits,
    /// Iterators opened.
    Iterators => iterators,
    /// Flushes finished.
    Flushes => flushes,
    /// Bytes written by flushes.
    FlushBytes => flush_bytes,
    /// Compactions finished, trivial moves not counted.
    Compactions => compactions,
    /// Trivial moves: files that changed level without being rewritten.
    Moves => trivial_moves,
    /// Bytes read by compactions.
    CompactionRead => compaction_read_bytes,
    /// Bytes written by compactions.
    CompactionWrite => compaction_write_bytes,
    /// Entries read by compactions.
    CompactionEntries => compaction_entries,
    /// Entries dropped by compactions.
    CompactionDrops => compaction_drops,
    /// Nanoseconds compactions took, each from its first step to its last.
    CompactionNanos => compaction_nanos,
    /// Processor nanoseconds of compaction workers.
    CompactionCpuNanos => compaction_cpu_nanos,
    /// Nanoseconds flush workers were busy.
    FlushNanos => flush_nanos,
    /// Jobs that failed and were or will be tried again.
    JobFailures => job_failures,
}

/// The counters and histograms of one database.
pub struct Metrics {
    /// Those of threads, and at last that of the thread that has the write turn.
    shards: [CachePadded<[AtomicU64; COUNTERS]>; SHARDS + 1],
    /// Latency of writes, nanoseconds (one in `SAMPLE_EVERY` is timed).
    pub write: Histogram,
    /// Latency of point reads, nanoseconds (one in `SAMPLE_EVERY` is timed).
    pub get: Histogram,
    /// Duration of flushes, nanoseconds.
    pub flush: Histogram,
    /// Duration of compactions, nanoseconds.
    pub compaction: Histogram,
    /// Length of write stalls, nanoseconds.
    pub stall: Histogram,
}

/// What a thread has here, in one place: to find it is a call, in a shared library.
struct Mine {
    /// Its shard, and 1 more; 0 as long as it has none.
    shard: Cell<usize>,
    /// Its calls that may be timed.
    calls: Cell<u32>,
}

thread_local! {
    static MINE: Mine = const { Mine { shard: Cell::new(0), calls: Cell::new(0) } };
}

impl Mine {
    #[inline]
    fn shard(&self) -> usize {
        match self.shard.get() {
            0 => self.first_shard(),
            shard => shard - 1,
        }
    }
    #[cold]
    fn first_shard(&self) -> usize {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let shard = NEXT.fetch_add(1, Relaxed) % SHARDS;
        self.shard.set(shard + 1);
        shard
    }
    /// Whether the call that begins is one that is timed: one in `SAMPLE_EVERY` is.
    #[inline]
    fn is_timed(&self) -> bool {
        let call = self.calls.get();
        self.calls.set(call.wrapping_add(1));
        call.is_multiple_of(SAMPLE_EVERY)
    }
}

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics::new()
    }
}

impl Metrics {
    /// All at 0.
    pub fn new() -> Metrics {
        Metrics {
            shards: std::array::from_fn(|_| {
                CachePadded::new(std::array::from_fn(|_| AtomicU64::new(0)))
            }),
            write: Histogram::new(),
            get: Histogram::new(),
            flush: Histogram::new(),
            compaction: Histogram::new(),
            stall: Histogram::new(),
        }
    }
    /// Adds `n` to a counter.
    #[inline]
    pub fn add(&self, counter: Counter, n: u64) {
        self.add_all([(counter, n)]);
    }
    /// Adds to several counters.
    #[inline]
    pub fn add_all(&self, all: impl IntoIterator<Item = (Counter, u64)>) {
        self.add_in(MINE.with(Mine::shard), all);
    }
    /// The same for the thread that has the write turn, and so a shard to itself.
    #[inline]
    pub fn add_in_turn(&self, all: impl IntoIterator<Item = (Counter, u64)>) {
        self.add_in(SHARDS, all);
    }
    #[inline]
    fn add_in(&self, shard: usize, all: impl IntoIterator<Item = (Counter, u64)>) {
        let shard = &self.shards[shard];
        for (counter, n) in all {
            if n > 0 {
                shard[counter as usize].fetch_add(n, Relaxed);
            }
        }
    }
    /// A read that begins: it may be timed until it is dropped, and counts in its thread's shard.
    #[inline]
    pub fn read<'a>(&'a self, rt: &'a dyn Rt) -> Read<'a> {
        let (shard, is_timed) = MINE.with(|mine| (mine.shard(), mine.is_timed()));
        let sample = is_timed.then(|| self.get.begin(rt));
        Read { metrics: self, shard, _sample: sample }
    }
    /// All counters now.
    pub fn counts(&self) -> Counts {
        let mut totals = [0; COUNTERS];
        for shard in &self.shards {
            for (total, n) in totals.iter_mut().zip(shard.iter()) {
                *total += n.load(Relaxed);
            }
        }
        Counts::from_totals(&totals)
    }
}

/// Calls of a thread for each one that is timed: reading a clock costs as much as a cached read.
/// A prime, so that a regular pattern of calls is not met at the same place each time.
const SAMPLE_EVERY: u32 = 61;

/// A read under way.
pub struct Read<'a> {
    metrics: &'a Metrics,
    shard: usize,
    _sample: Option<Sample<'a>>,
}

impl Read<'_> {
    /// Adds to counters.
    #[inline]
    pub fn count(&self, all: impl IntoIterator<Item = (Counter, u64)>) {
        self.metrics.add_in(self.shard, all);
    }
}

/// A call being timed.
pub struct Sample<'a> {
    of: &'a Histogram,
    rt: &'a dyn Rt,
    began: Mono,
}

impl Drop for Sample<'_> {
    fn drop(&mut self) {
        self.of.record(self.rt.now().since(self.began).as_nanos() as u64);
    }
}

/// Sub-buckets of each power of two.
const STEPS: usize = 16;
const BUCKETS: usize = (64 - 3) * STEPS;

/// A log-linear histogram of nanoseconds.
pub struct Histogram {
    buckets: Box<[AtomicU64]>,
    sum: AtomicU64,
    max: AtomicU64,
}

/// A histogram's figures. All times are at most 1/16 above the true value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    /// Number of samples.
    pub count: u64,
    /// All samples together.
    pub sum: Duration,
    /// Mean.
    pub mean: Duration,
    /// Half of the samples were at most this.
    pub p50: Duration,
    /// 95 of 100 samples were at most this.
    pub p95: Duration,
    /// 99 of 100 samples were at most this.
    pub p99: Duration,
    /// 999 of 1000 samples were at most this.
    pub p999: Duration,
    /// The largest sample.
    pub max: Duration,
    /// The smallest sample, or a little above it.
    pub min: Duration,
    /// The standard deviation, about.
    pub deviation: Duration,
}

fn bucket(nanos: u64) -> usize {
    if nanos < STEPS as u64 {
        return nanos as usize;
    }
    let log = 63 - nanos.leading_zeros() as usize;
    let step = (nanos >> (log - 4)) as usize & (STEPS - 1);
    (log - 3) * STEPS + step
}

/// The largest value that falls into bucket `b`.
fn top_of(b: usize) -> u64 {
    if b < STEPS {
        return b as u64;
    }
    let (log, step) = (b / STEPS + 3, (b % STEPS) as u64);
    let low = (1u64 << log) + (step << (log - 4));
    low + ((1u64 << (log - 4)) - 1)
}

impl Histogram {
    fn new() -> Histogram {
        Histogram {
            buckets: (0..BUCKETS).map(|_| AtomicU64::new(0)).collect(),
            sum: AtomicU64::new(0),
            max: AtomicU64::new(0),
        }
    }
    /// Counts one duration, in nanoseconds.
    pub fn record(&self, nanos: u64) {
        self.buckets[bucket(nanos)].fetch_add(1, Relaxed);
        self.sum.fetch_add(nanos, Relaxed);
        self.max.fetch_max(nanos, Relaxed);
    }
    /// Times the caller until the sample is dropped, if it is this thread's turn: one call in
    /// `SAMPLE_EVERY`.
    #[inline]
    pub fn sample<'a>(&'a self, rt: &'a dyn Rt) -> Option<Sample<'a>> {
        MINE.with(Mine::is_timed).then(|| self.begin(rt))
    }
    #[cold]
    fn begin<'a>(&'a self, rt: &'a dyn Rt) -> Sample<'a> {
        Sample { of: self, rt, began: rt.now() }
    }
    /// How far samples lie from the mean: each counts as what its bucket ends with.
    fn deviation(&self, counts: &[u64], count: u64) -> Duration {
        let mean = self.sum.load(Relaxed) as f64 / count as f64;
        let square = |(b, n): (usize, &u64)| *n as f64 * (top_of(b) as f64 - mean).powi(2);
        let sum: f64 = counts.iter().enumerate().map(square).sum();
        Duration::from_nanos((sum / count as f64).sqrt() as u64)
    }
    /// Its quantiles now.
    pub fn latency(&self) -> Latency {
        let counts: Vec<u64> = self.buckets.iter().map(|b| b.load(Relaxed)).collect();
        let count: u64 = counts.iter().sum();
        if count == 0 {
            return Latency::default();
        }
        let (sum, max) = (self.sum.load(Relaxed), self.max.load(Relaxed));
        let quantile = |per_mille: u64| {
            let rank = (count * per_mille).div_ceil(1000).max(1);
            let mut seen = 0;
            for (b, n) in counts.iter().enumerate() {
                seen += n;
                if seen >= rank {
                    return Duration::from_nanos(top_of(b).min(max));
                }
            }
            Duration::from_nanos(max)
        };
        Latency {
            count,
            sum: Duration::from_nanos(sum),
            mean: Duration::from_nanos(sum / count),
            p50: quantile(500),
            p95: quantile(950),
            p99: quantile(990),
            p999: quantile(999),
            max: Duration::from_nanos(max),
            min: quantile(0),
            deviation: self.deviation(&counts, count),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_hold_their_values_within_a_sixteenth() {
        let mut last = 0;
        for n in (0..2000).chain((11..63).flat_map(|l| [1 << l, (1 << l) + 1, (2 << l) - 1])) {
            let b = bucket(n);
            assert!(b >= last || n < 2000, "{n}");
            assert!(top_of(b) >= n && top_of(b) - n <= n / STEPS as u64, "{n} {}", top_of(b));
            last = b;
        }
        assert!(bucket(u64::MAX) < BUCKETS);
    }

    #[test]
    fn quantiles_of_a_ramp() {
        let h = Histogram::new();
        (1..=1000).for_each(|n| h.record(n * 1000));
        let l = h.latency();
        assert_eq!((l.count, l.max), (1000, Duration::from_micros(1000)));
        let near = |d: Duration, us: u64| {
            let n = d.as_nanos() as u64;
            n >= us * 1000 && n <= us * 1000 + us * 1000 / 16
        };
        assert!(near(l.p50, 500) && near(l.p99, 990) && near(l.p999, 999), "{l:?}");
    }

    #[test]
    fn counters_add_up_over_threads() {
        let (m, rt) = (Metrics::new(), lithify_env::Env::in_memory(Default::default()).rt);
        std::thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| (0..1000).for_each(|_| m.add(Counter::Gets, 1)));
                s.spawn(|| (0..1000).for_each(|_| m.add_in_turn([(Counter::Gets, 1)])));
                s.spawn(|| (0..610).for_each(|_| m.read(&*rt).count([(Counter::Gets, 1)])));
            }
        });
        assert_eq!(m.counts().gets, 4 * 2610);
        assert_eq!(m.get.latency().count, 4 * 10);
    }
}
