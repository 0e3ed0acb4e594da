//! What is modelled: the machine, the load, and the core's own options. Defaults and names follow
//! `lithify bench`, and the options are made as an opened database makes them.

use lithify_plan::{BucketOptions, PlanOptions, PolicyKind};

use crate::device::DeviceOptions;
use crate::merge::{EntryBytes, Overlap};

/// Fewest buckets to begin with, as an opened database has it.
const BUCKETS_MIN: u32 = 8;

/// Which keys are written.
#[derive(Clone, Debug, PartialEq)]
pub enum Load {
    /// Uniformly random ones.
    Uniform,
    /// Every key once, in random order.
    Unique,
    /// MixGraph: so many ranges in phases of equal length, a few of them hot.
    Mix(Vec<u32>),
}

impl Load {
    /// How often keys of different files meet.
    pub fn overlap(&self) -> Overlap {
        if *self == Load::Unique { Overlap::None } else { Overlap::Random }
    }
}

/// A world to live in.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The core's options.
    pub plan: PlanOptions,
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
    /// Sizes of entries.
    pub bytes: EntryBytes,
    /// The disk.
    pub device: DeviceOptions,
    /// Processors.
    pub cores: f64,
    /// Processor time of a put, nanoseconds.
    pub client_ns: f64,
    /// Processor time of a compaction per input byte, nanoseconds.
    pub merge_ns: f64,
    /// Processor time of a flush per memtable byte, nanoseconds.
    pub flush_ns: f64,
    /// Operations that a compaction waits for per input, one after the other: to open the table,
    /// to read its tail, to open it for direct reads.
    pub opens: u32,
    /// Cells of the histograms.
    pub cells: u32,
    /// Seed of the keys.
    pub seed: u64,
    /// A drain that takes longer than this is given up, seconds.
    pub drain_limit: f64,
    /// Keep a line about each job, commit and verdict.
    pub trace: bool,
}

impl Setup {
    /// The bench's defaults: 16-byte keys, two compaction threads on two cores, an unlimited disk.
    pub fn new(policy: PolicyKind, threads: u32, value_size: u64) -> Setup {
        let preset = PlanOptions::preset(policy);
        let initial = threads.max(BUCKETS_MIN);
        Setup {
            plan: PlanOptions {
                dynamic_levels: false,
                buckets: BucketOptions { initial, ..preset.buckets.clone() },
                ..preset
            },
            threads,
            flush_threads: 1,
            delayed_write_rate: 16 << 20,
            num: 1_000_000,
            keys: 1_000_000,
            load: Load::Uniform,
            bytes: entry_bytes(16, value_size),
            device: DeviceOptions {
                bandwidth: 0,
                latency: 0,
                channels: 0,
                threads: io_threads(threads),
            },
            cores: 2.0,
            client_ns: 640.0,
            merge_ns: 0.68,
            flush_ns: 1.0,
            opens: 3,
            cells: 4096,
            seed: 1,
            drain_limit: 3_600.0,
            trace: false,
        }
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

/// Threads that transfer, as an opened database has them.
pub fn io_threads(compaction_threads: u32) -> u32 {
    (4 * compaction_threads + 4).clamp(8, 64)
}

/// Sizes of an entry with these key and value sizes.
pub fn entry_bytes(key: u64, value: u64) -> EntryBytes {
    let (key, value) = (key as f64, value as f64);
    // Tag and lengths less what neighbours' keys share; then trailer and index entry of a 4 KiB
    // block, and the filter.
    let stored = key + value + 8.0 + 3.0 - 6.0;
    EntryBytes {
        user: key + value,
        disk: stored * (1.0 + 30.0 / 4096.0) + 1.25,
        logical: key + value + 12.0,
        memory: key + value + 54.0,
    }
}
