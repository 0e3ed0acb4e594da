//! What is modelled: the machine, the load, and the core's own options. Defaults and names follow
//! `lithify bench`, and the options are made as an opened database makes them.

use std::sync::Arc;

use lithify_plan::{BucketOptions, PlanOptions, PolicyKind};

use crate::card::CardOptions;
use crate::device::DeviceOptions;
use crate::merge::EntryBytes;
use crate::overlap::{Curve, Overlap};

/// Which keys are written.
#[derive(Clone, Debug, PartialEq)]
pub enum Load {
    /// Uniformly random ones.
    Uniform,
    /// Every key once, in random order.
    Unique,
    /// Every key once, in their order.
    Sequential,
    /// Scattered keys, of which the `i`-th most wanted comes with a weight of `1 / i^theta`.
    Zipf(f64),
    /// MixGraph: so many ranges in phases of equal length, a few of them hot.
    Mix {
        /// Ranges of each phase.
        ranges: Vec<u32>,
        /// Every so many writes the heat moves on to the next range.
        rotate: Option<u64>,
    },
}

impl Load {
    /// How often keys of different files meet, of `keys` in all.
    pub fn overlap(&self, keys: u64) -> Overlap {
        match self {
            Load::Unique | Load::Sequential => Overlap::None,
            Load::Uniform | Load::Mix { .. } => Overlap::Random,
            Load::Zipf(theta) => Overlap::Skewed(Arc::new(Curve::zipf(keys, *theta))),
        }
    }
    /// True if every key is written once.
    pub fn is_unique(&self) -> bool {
        matches!(self, Load::Unique | Load::Sequential)
    }
}

/// What changes in the middle of a life.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change {
    /// The disk moves so many bytes per second from now on.
    Bandwidth(u64),
    /// There are so many processors.
    Cores(f64),
    /// Only the first so many keys are written from now on.
    Keys(u64),
}

impl Change {
    /// The setup of a life that has it from the start.
    pub fn from_start(self, setup: &Setup) -> Setup {
        Setup { change: Some((0, self)), ..setup.clone() }
    }
}

/// In which order built compactions commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum CommitOrder {
    /// As the core has it: after the jobs whose data they would overtake, and no others.
    #[default]
    Dependency,
    /// After all jobs from the same level that were issued before: DownForce's order as its paper has it,
    /// which is stronger than correctness needs. A job that waits so keeps its slot. Moves, which build
    /// nothing, do not wait.
    Issue,
}

/// A world to live in.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The core's options.
    pub plan: PlanOptions,
    /// In which order built compactions commit.
    pub commit_order: CommitOrder,
    /// Compactions at once.
    pub threads: u32,
    /// Flush threads.
    pub flush_threads: u32,
    /// Slowest delayed rate, bytes per second.
    pub delayed_write_rate: u64,
    /// Writes.
    pub num: u64,
    /// Different keys; at least as many as writes if each is written once.
    pub keys: u64,
    /// Which keys.
    pub load: Load,
    /// After so many writes the world changes.
    pub change: Option<(u64, Change)>,
    /// The client writes for so many nanoseconds, then rests for so many, again and again.
    pub bursts: Option<(u64, u64)>,
    /// The client offers so many writes per second; without any it writes as fast as it may.
    pub offered: Option<f64>,
    /// Sizes of entries.
    pub bytes: EntryBytes,
    /// The disk.
    pub device: DeviceOptions,
    /// Threads that transfer, at least 1; `None` for as many as an opened database has.
    pub io_threads: Option<u32>,
    /// Processors.
    pub cores: f64,
    /// Processor time of a put, nanoseconds.
    pub client_ns: f64,
    /// Processor time of a compaction per input byte, nanoseconds.
    pub merge_ns: f64,
    /// What merges compactions instead of the processors.
    pub card: Option<CardOptions>,
    /// Processor time of a flush per memtable byte, nanoseconds.
    pub flush_ns: f64,
    /// Processor time of a flush for each file that it is cut into, nanoseconds.
    pub cut_ns: f64,
    /// Processor time of a job for each transfer that it asks for, nanoseconds: a thread is woken.
    pub ask_ns: f64,
    /// Processor time of the thread that transfers, and for each byte, nanoseconds: the system call,
    /// the copy and the change of threads.
    pub io_ns: (f64, f64),
    /// The same on top where the device is waited for: the thread goes to sleep and wakes.
    pub sleep_ns: f64,
    /// Cells of the histograms.
    pub cells: u32,
    /// Seed of the keys.
    pub seed: u64,
    /// A drain that takes longer than this is given up, seconds.
    pub drain_limit: f64,
    /// Check the invariants of trees and jobs on the way.
    pub check: bool,
    /// Keep a line about each job, commit and verdict.
    pub trace: bool,
}

impl Setup {
    /// Memtables of so many bytes, and the first map that a database has with them.
    pub fn set_memtable(&mut self, bytes: u64) {
        self.plan.memtable_bytes = bytes;
        self.plan.buckets.initial = self.plan.policy.first_buckets(self.threads, bytes);
    }

    /// Threads that transfer.
    pub fn transfer_threads(&self) -> u32 {
        let usual = || self.plan.policy.transfer_threads(self.threads, self.plan.file_bytes);
        self.io_threads.unwrap_or_else(usual)
    }

    /// The bench's defaults: 16-byte keys, two compaction threads on two cores, an unlimited disk.
    pub fn new(policy: PolicyKind, threads: u32, value_size: u64) -> Setup {
        let preset = PlanOptions::preset(policy);
        let initial = policy.first_buckets(threads, preset.memtable_bytes);
        Setup {
            plan: PlanOptions {
                dynamic_levels: false,
                // As an opened database has.
                max_memtables: 4,
                buckets: BucketOptions { initial, ..preset.buckets.clone() },
                ..preset
            },
            commit_order: CommitOrder::default(),
            threads,
            flush_threads: 1,
            delayed_write_rate: 1 << 20,
            num: 1_000_000,
            keys: 1_000_000,
            load: Load::Uniform,
            change: None,
            bursts: None,
            offered: None,
            bytes: entry_bytes(16, value_size),
            device: DeviceOptions { bandwidth: 0, latency: 0, channels: 0 },
            io_threads: None,
            cores: 2.0,
            client_ns: client_ns(value_size),
            merge_ns: 0.65,
            card: None,
            flush_ns: 0.65,
            cut_ns: 75_000.0,
            ask_ns: 15_000.0,
            io_ns: (15_000.0, 0.45),
            sleep_ns: 30_000.0,
            cells: 4096,
            seed: 1,
            drain_limit: 3_600.0,
            check: true,
            trace: false,
        }
    }

    /// Clients, flushes and compactions compute so many times slower, each on a core of its own as long
    /// as there are so many times more of them than cores; transfers do not. It is the bench's
    /// `--dilate`.
    pub fn dilate(&mut self, factor: f64) {
        if factor > 1.0 {
            self.client_ns += COLD_NS;
        }
        let of_jobs = [&mut self.merge_ns, &mut self.flush_ns, &mut self.cut_ns, &mut self.ask_ns];
        if let Some(card) = &mut self.card {
            card.host_ns *= factor;
        }
        for cost in of_jobs.into_iter().chain([&mut self.client_ns]) {
            *cost *= factor;
        }
        self.cores *= factor;
    }

    /// The core's options.
    pub(crate) fn control(&self) -> lithify_control::Options {
        lithify_control::Options {
            plan: self.plan.clone(),
            compaction_slots: self.threads as usize,
            flush_slots: self.flush_threads as usize + 1,
            delayed_write_rate: self.delayed_write_rate,
        }
    }
}

/// What a put costs more on a client that sleeps now and then, nanoseconds: its caches are cold.
const COLD_NS: f64 = 400.0;

/// Processor time of a put as the bench does it: its key and value are made, written and timed.
pub fn client_ns(value: u64) -> f64 {
    600.0 + 0.19 * value as f64
}

/// The size of a job's writes to files of so many bytes, as `compact` has it.
pub fn write_bytes(file_bytes: u64) -> f64 {
    (file_bytes / 32).next_power_of_two().clamp(64 << 10, 2 << 20) as f64
}

/// Bytes that fill a block.
const BLOCK: f64 = 4096.0;

/// Sizes of an entry with these key and value sizes.
pub fn entry_bytes(key: u64, value: u64) -> EntryBytes {
    let (key, value) = (key as f64, value as f64);
    // Tag and lengths less what neighbours' keys share; then trailer and index entry of a 4 KiB
    // block, and the filter.
    let stored = key + value + 8.0 + 3.0 - 6.0;
    // A block ends behind the entry that fills it.
    let block = (BLOCK / stored).ceil() * stored;
    let tail = stored * 30.0 / block + 1.25;
    EntryBytes {
        user: key + value,
        disk: stored + tail,
        block,
        tail,
        logical: key + value + 12.0,
        memory: key + value + 54.0,
    }
}
