//! What a GPU is expected to take for a job: a formula over assumed rates. Nothing here is measured on a GPU, and
//! a table with a figure of it says so.
//!
//! Keeps: figures depend on the job and the rates alone.
//! Leaves to others: the host's half of a part (`replay` measures that), and files.
//!
//! A set passes three stages, each of which takes a fixed time and one by bytes: the link up, the kernels, the link
//! down. With `u` units so many sets are under way, so that a set is through every `max(longest stage, sum / u)`,
//! and a job of `n` sets takes `sum + (n - 1)` of these.
//!
//! Worked example: values of 128 bytes make entries of about 149. Up at 45 bytes a nanosecond a set of 32 MiB takes
//! 0.75 ms; down come 8 bytes of hash an entry and 100 a block of 4 KiB besides, 0.80 ms; kernels touch
//! `5 x 149 + 128 + 316` bytes of memory an entry, at 3000 a nanosecond 0.09 ms. The link down bounds it: 42 GB/s of
//! input.
//!
//! With LZ4 both ways less crosses the links, and kernels decode each byte that comes in, encode each that goes out, and decode
//! that again to prove it. Worked example: the same values, stored in 0.6 of their bytes. A byte of entries takes
//! `0.6 / 45` ns up, 0.013, and in kernels `1 / 150 + 0.9 / 30 + 0.9 / 150` besides, 0.043: the encoder bounds it, at
//! about 22 GB/s of entries.

/// What is assumed of a device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Assumed {
    /// Bytes a nanosecond of the link up, and of that down.
    pub up: f64,
    /// The same.
    pub down: f64,
    /// Bytes of its memory that kernels touch in a nanosecond.
    pub memory: f64,
    /// Nanoseconds of each copy and each kernel besides.
    pub call_ns: f64,
    /// Bytes a nanosecond that come out of LZ4, and those that go into it.
    pub lz4_decode: f64,
    /// The same.
    pub lz4_encode: f64,
}

impl Default for Assumed {
    /// PCIe 5 with 16 lanes, both directions at work, an H200's memory at 70%, and an encoder and a decoder with which the kernels
    /// come to the 20 GB/s of entries that the kit predicts.
    fn default() -> Assumed {
        Assumed {
            up: 45.0,
            down: 45.0,
            memory: 3000.0,
            call_ns: 7000.0,
            lz4_decode: 150.0,
            lz4_encode: 30.0,
        }
    }
}

/// Calls of a set: copies up, kernels, copies down.
const CALLS: [f64; 3] = [2.0, 15.0, 3.0];
/// Kernels of a set with LZ4 both ways besides.
const LZ4_CALLS: f64 = 5.0;
/// Bytes of memory that kernels touch for an entry, besides its own.
const RECORDS: f64 = 316.0;
/// Bytes of a filter's hash, and of what is said of a block.
const HASH: f64 = 8.0;
const OF_BLOCK: f64 = 100.0;
const BLOCK: f64 = 4096.0;

/// A job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Work {
    /// Stored bytes of its input.
    pub stored: f64,
    /// Entries of its input.
    pub entries: f64,
    /// Bytes of a value.
    pub value: f64,
    /// Share of the entries that its output has.
    pub kept: f64,
    /// Units of the device.
    pub units: f64,
    /// Stored bytes of a set.
    pub set_bytes: f64,
    /// With LZ4 both ways: stored bytes of a block over those that it stands for.
    pub lz4: Option<f64>,
}

/// What it takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Predicted {
    /// Nanoseconds from beginning to end.
    pub ns: f64,
    /// Shares of that time in which link up, kernels and link down are at work.
    pub busy: [f64; 3],
}

impl Predicted {
    /// The busiest of link up, kernels and link down.
    pub fn bound_by(&self) -> &'static str {
        let names = ["link up", "kernels", "link down"];
        let most = (0..3).max_by(|&a, &b| self.busy[a].total_cmp(&self.busy[b])).unwrap_or(0);
        names[most]
    }
}

/// Predicts a job.
pub fn predict(of: &Work, device: &Assumed) -> Predicted {
    let stored = of.stored / of.entries.max(1.0);
    let share = of.lz4.unwrap_or(1.0);
    let entry = stored / share;
    let sets = (of.stored / of.set_bytes).ceil().max(1.0);
    let entries = of.entries / sets;
    let back = of.kept * (stored + HASH + OF_BLOCK * entry / BLOCK);
    let mut kernels = (5.0 * entry + of.value + RECORDS) / device.memory;
    let mut calls = CALLS;
    if of.lz4.is_some() {
        let decoded = entry + of.kept * entry;
        kernels += decoded / device.lz4_decode + of.kept * entry / device.lz4_encode;
        calls[1] += LZ4_CALLS;
    }
    let bytes = [stored / device.up, kernels, back / device.down];
    let mut stages = [0.0; 3];
    for (stage, (of_entry, calls)) in stages.iter_mut().zip(bytes.iter().zip(calls)) {
        *stage = entries * of_entry + calls * device.call_ns;
    }
    let sum: f64 = stages.iter().sum();
    let period = stages.iter().fold(sum / of.units.max(1.0), |a, b| a.max(*b));
    let ns = sum + (sets - 1.0) * period;
    Predicted { ns, busy: stages.map(|stage| stage * sets / ns) }
}
