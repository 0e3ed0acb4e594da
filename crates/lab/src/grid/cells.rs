//! The cells of the grid: machines, loads and sizes, and the setup that each stands for.

use lithify_plan::PolicyKind;

use crate::setup::{Load, Setup, entry_bytes};

/// Compaction threads.
pub(super) const THREADS: [u32; 6] = [1, 2, 4, 8, 16, 32];
/// Disks from slow to fast: name, bytes per second (0 for no limit), microseconds an operation.
pub(super) const DEVICES: [(&str, u64, u64); 5] = [
    ("100MiB/s 5ms", 100 << 20, 5_000),
    ("300MiB/s 3ms", 300 << 20, 3_000),
    ("1GiB/s 1ms", 1 << 30, 1_000),
    ("4GiB/s 0.1ms", 4 << 30, 100),
    ("no limit", 0, 0),
];
/// What a byte costs the processor on top: name, nanoseconds of a merge and of a flush per byte before
/// compression, and bytes that are left of one. As measured with the bench, values of 1 KiB and
/// `--value-compressibility 0.5`.
/// The last is for long lives alone: nothing is compressed until it leaves level 0, and merging costs the processor
/// more than eight times as much as flushing.
pub(super) const PROCESSORS: [(&str, f64, f64, f64); 4] = [
    ("plain", 0.0, 0.0, 1.0),
    ("lz4", 0.55, 1.1, 0.57),
    ("zstd", 2.4, 3.6, 0.545),
    ("deep", 5.0, 0.0, 1.0),
];
/// How many of these, from the first on, are in the other grids.
const COMMON: usize = 3;
/// Bytes of values, and those of cells that are held out.
const VALUES: [[u64; 4]; 2] = [[32, 256, 1024, 16 << 10], [64, 128, 600, 4 << 10]];
/// Which keys are written, and how steadily.
pub(super) const LOADS: [&str; 6] =
    ["uniform", "sequential", "unique", "zipf", "mixgraph", "bursts"];
/// Bytes of a memtable, from little to much, and those of cells that are held out.
const MEMTABLES: [[(&str, u64); 3]; 2] = [
    [("4MiB", 4 << 20), ("16MiB", 16 << 20), ("64MiB", 64 << 20)],
    [("6MiB", 6 << 20), ("24MiB", 24 << 20), ("40MiB", 40 << 20)],
];
/// The seed of the keys of cells that are held out.
const HELD_OUT_SEED: u64 = 7919;

/// Operations at once on every disk that has a limit.
const CHANNELS: u32 = 16;
/// Seconds of a burst, and between two.
const BURST: u64 = 10_000_000_000;
/// Cells of the histograms of a life.
const HISTOGRAM: u32 = 1024;

/// A cell: an index into each axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Cell {
    /// One of those that are not looked at while a planner is changed: other sizes, other keys.
    pub(super) held_out: bool,
    pub(super) processor: usize,
    pub(super) value: usize,
    pub(super) memtable: usize,
    pub(super) device: usize,
    pub(super) load: usize,
    pub(super) threads: usize,
}

/// The middle of the axes: plain, 1 KiB, uniform keys, 16 MiB.
const MIDDLE: Cell =
    Cell { held_out: false, processor: 0, value: 2, memtable: 1, device: 1, load: 0, threads: 0 };

/// All cells.
pub(super) fn full() -> Vec<Cell> {
    let mut all = Vec::new();
    for processor in 0..COMMON {
        for value in 0..VALUES[0].len() {
            for memtable in 0..MEMTABLES[0].len() {
                for device in 0..DEVICES.len() {
                    for load in 0..LOADS.len() {
                        for threads in 0..THREADS.len() {
                            let at = Cell { processor, value, memtable, ..MIDDLE };
                            all.push(Cell { device, load, threads, ..at });
                        }
                    }
                }
            }
        }
    }
    all
}

/// A sample: threads by device in the middle of the other axes; then each other axis varied on a
/// slow, a fast and an unlimited device with few and many threads.
pub(super) fn coarse() -> Vec<Cell> {
    let mut some = std::collections::BTreeSet::new();
    for device in 0..DEVICES.len() {
        some.extend((0..THREADS.len()).map(|threads| Cell { device, threads, ..MIDDLE }));
        let few = [0, 1, 2, 4].map(|threads| Cell { device, threads, memtable: 0, ..MIDDLE });
        some.extend(few);
        for threads in [1, 2, 4] {
            let at = Cell { device, threads, ..MIDDLE };
            some.insert(Cell { memtable: 2, ..at });
            some.extend(beside(at));
        }
    }
    some.into_iter().collect()
}

/// Cells with another processor, value or load than `at`.
fn beside(at: Cell) -> impl Iterator<Item = Cell> {
    let processors = [1, 2].map(|processor| Cell { processor, ..at });
    let values = [0, 1, 3].map(|value| Cell { value, ..at });
    // On a faster disk a life under load 5 is over within the first burst.
    let loads = if at.device < 3 { 1..6 } else { 1..5 };
    processors.into_iter().chain(values).chain(loads.map(move |load| Cell { load, ..at }))
}

/// Few cells for long lives: few and many threads on all disks, with what tells policies apart the most.
pub(super) fn long() -> Vec<Cell> {
    let mut some = std::collections::BTreeSet::new();
    for device in 0..DEVICES.len() {
        for threads in [2, 4] {
            let at = Cell { device, threads, ..MIDDLE };
            some.extend([at, Cell { value: 1, memtable: 0, ..at }]);
            some.extend([2, 3].map(|processor| Cell { processor, ..at }));
        }
    }
    some.into_iter().collect()
}

/// Cells whose sizes, keys and lengths are in neither of the others, on all disks.
pub(super) fn held_out() -> Vec<Cell> {
    let middle = Cell { held_out: true, ..MIDDLE };
    let mut some = std::collections::BTreeSet::new();
    for device in 0..DEVICES.len() {
        for memtable in 0..MEMTABLES[1].len() {
            some.extend([1, 3].map(|threads| Cell { device, memtable, threads, ..middle }));
        }
        let at = Cell { device, threads: 2, ..middle };
        some.extend(beside(at));
    }
    some.into_iter().collect()
}

impl Cell {
    /// Bytes of a value.
    pub(super) fn value(&self) -> u64 {
        VALUES[usize::from(self.held_out)][self.value]
    }

    /// A memtable's name and its bytes.
    pub(super) fn memtable(&self) -> (&'static str, u64) {
        MEMTABLES[usize::from(self.held_out)][self.memtable]
    }

    /// Compaction threads.
    pub(super) fn threads(&self) -> u32 {
        THREADS[self.threads]
    }

    /// What it is called in tables.
    pub(super) fn name(&self) -> String {
        let (disk, memtable) = (DEVICES[self.device].0, self.memtable().0);
        let (processor, value) = (PROCESSORS[self.processor].0, self.value());
        let (load, threads) = (LOADS[self.load], self.threads());
        format!("{threads} threads, {disk}, {load}, {value} B, {processor}, {memtable}")
    }

    /// A life in this cell, with L1 at `shape` times four memtables.
    pub(super) fn setup(&self, policy: PolicyKind, shape: u64, flushes: u64, cores: f64) -> Setup {
        let value = self.value();
        let mut s = Setup::new(policy, self.threads(), value);
        let (_, merge, flush, left) = PROCESSORS[self.processor];
        s.bytes = entry_bytes(16, value);
        s.bytes.disk *= left;
        s.bytes.block *= left;
        // Merging is counted per byte on disk, flushing per byte in memory.
        s.merge_ns = (s.merge_ns + merge) / left;
        s.flush_ns += flush;
        let memtable = self.memtable().1;
        s.set_memtable(memtable);
        s.plan.file_bytes = memtable;
        s.plan.level_base_bytes = 4 * memtable * shape;
        (s.device.bandwidth, s.device.latency) =
            (DEVICES[self.device].1, 1000 * DEVICES[self.device].2);
        s.device.channels = if s.device.bandwidth > 0 { CHANNELS } else { 0 };
        s.cores = cores;
        s.num = (flushes as f64 * memtable as f64 / s.bytes.memory) as u64;
        s.keys = s.num;
        s.cells = HISTOGRAM;
        if self.held_out {
            s.seed = HELD_OUT_SEED;
        }
        s.check = false;
        (s.load, s.bursts) = match LOADS[self.load] {
            "sequential" => (Load::Sequential, None),
            "unique" => (Load::Unique, None),
            "zipf" => (Load::Zipf(0.99), None),
            "mixgraph" => {
                let rotate = Some((s.num / 20).max(1));
                (Load::Mix { ranges: vec![10, 20, 30, 40, 50], rotate }, None)
            }
            "bursts" => (Load::Uniform, Some((BURST, BURST))),
            _ => (Load::Uniform, None),
        };
        s
    }
}

/// A cell with so many steps more of something.
type More = fn(Cell, usize) -> Cell;

/// What more of must not make a cell slower.
pub(super) const MORE: [(&str, More); 3] = [
    ("threads", |cell, steps| Cell { threads: cell.threads + steps, ..cell }),
    ("disk", |cell, steps| Cell { device: cell.device + steps, ..cell }),
    ("memory", |cell, steps| Cell { memtable: cell.memtable + steps, ..cell }),
];
