//! What a job makes of its inputs: the sets it reads, in order, and the files it writes.
//!
//! Keeps: the cuts are those of the merge kernel for the same cut policy: at multiples of the
//! target since the beginning of the job, at every hard key, and at a soft key if the open file
//! has an eighth of the target. Blocks are not modelled, so a cut is off by up to one.

use std::ops::Range;
use std::sync::Arc;

use lithify_plan::CutPolicy;

use crate::overlap::Overlap;
use crate::space::{Content, Space, number};

/// The most that an engine takes as one set, over all runs.
const SET_MAX: f64 = (4 << 20) as f64;
/// Looks at the end of a set, per set.
const LOOKS: f64 = 8.0;

/// Sizes of entries.
#[derive(Clone, Copy, Debug)]
pub struct EntryBytes {
    /// Of key and value, as a user counts.
    pub user: f64,
    /// In a table file.
    pub disk: f64,
    /// Of a whole block in a table file.
    pub block: f64,
    /// Of a table's tail, which is read when the table is opened, per entry.
    pub tail: f64,
    /// As the merge kernel counts for its cuts.
    pub logical: f64,
    /// In a memtable.
    pub memory: f64,
}

/// What a job does, found when it starts.
#[derive(Clone, Debug, Default)]
pub struct Recipe {
    /// What is read and merged at a time.
    pub sets: Vec<Set>,
    /// What is written, in key order.
    pub files: Vec<Content>,
}

/// Neighbouring keys of all inputs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Set {
    /// Bytes of each read.
    pub reads: Vec<u64>,
    /// Entries in.
    pub entries_in: f64,
    /// Entries out.
    pub entries_out: f64,
}

/// The bytes of a set of a job with so many runs and writes of `write` bytes, as `compact` has it:
/// a sixth of twelve writes, but no crumbs of a run, and no more than an engine wants.
pub fn set_bytes(runs: usize, write: f64) -> f64 {
    (2.0 * write).max(runs as f64 * write / 4.0).min(SET_MAX)
}

/// The recipe of a merge of `inputs`, whose output is cut by `cuts`. `set` is what is read at a time.
pub fn merge(
    inputs: &[Arc<Content>],
    cuts: &CutPolicy,
    set: f64,
    overlap: &Overlap,
    bytes: &EntryBytes,
    space: &Space,
) -> Recipe {
    let mut borders: Vec<u64> = Vec::with_capacity(2 * inputs.len());
    for i in inputs {
        borders.extend([i.keys.start, i.keys.end]);
    }
    borders.sort_unstable();
    borders.dedup();
    let mut order: Vec<usize> = (0..inputs.len()).collect();
    order.sort_by_key(|&i| (inputs[i].keys.start, i));

    let mut sets = Sets {
        bytes,
        budget: set,
        open: Set::default(),
        parts: vec![0.0; inputs.len()],
        shares: vec![],
        done: vec![],
    };
    let mut cutter = Cutter::new(cuts, bytes.logical, space);
    let mut waiting = order.into_iter().peekable();
    let mut active: Vec<usize> = Vec::new();
    for pair in borders.windows(2) {
        while let Some(i) = waiting.next_if(|&i| inputs[i].keys.start <= pair[0]) {
            active.push(i);
        }
        active.retain(|&i| inputs[i].keys.end > pair[0]);
        if active.is_empty() {
            continue;
        }
        let mut from = pair[0];
        while from < pair[1] {
            let cell = space.cell_of(from);
            let to = space.start(cell + 1).min(pair[1]);
            let out = sets.take(inputs, &active, cell, from..to, overlap, space);
            cutter.push(from..to, out);
            from = to;
        }
    }
    Recipe { sets: sets.finish(), files: cutter.finish() }
}

/// Gathers sets.
struct Sets<'a> {
    bytes: &'a EntryBytes,
    /// Bytes of a set.
    budget: f64,
    open: Set,
    /// Entries of each input in the open set.
    parts: Vec<f64>,
    /// Entries of each active input between the keys that are taken in; kept for its memory.
    shares: Vec<f64>,
    done: Vec<Set>,
}

impl Sets<'_> {
    /// Takes `keys` of one cell in; the entries that come out.
    fn take(
        &mut self,
        inputs: &[Arc<Content>],
        active: &[usize],
        cell: u32,
        keys: Range<u64>,
        overlap: &Overlap,
        space: &Space,
    ) -> f64 {
        let width = (keys.end - keys.start) as f64;
        self.shares.clear();
        for &i in active {
            let (part, count) = inputs[i].part(cell, space);
            self.shares.push(count * width / ((part.end - part.start) as f64).max(1.0));
        }
        let sum: f64 = self.shares.iter().sum();
        let out = overlap.union(&self.shares, width);
        // Of each run the block that straddles the end of a set is read once more, with the next
        // one. Where these are a set by themselves, sets are larger.
        let again = active.len() as f64 * self.bytes.block;
        let budget = if again >= self.budget { again } else { self.budget - again };
        let slices = (sum * self.bytes.disk * LOOKS / budget).ceil().max(1.0);
        for _ in 0..slices as u64 {
            for (&i, share) in active.iter().zip(&self.shares) {
                self.parts[i] += share / slices;
            }
            self.open.entries_in += sum / slices;
            self.open.entries_out += out / slices;
            if self.open.entries_in * self.bytes.disk >= budget {
                self.close();
            }
        }
        out
    }

    fn close(&mut self) {
        let parts = self.parts.iter_mut().filter(|p| **p > 0.0);
        let again = self.bytes.block;
        let read = |p: &mut f64| (std::mem::take(p) * self.bytes.disk + again).ceil() as u64;
        self.open.reads = parts.map(read).collect();
        self.done.push(std::mem::take(&mut self.open));
    }

    fn finish(mut self) -> Vec<Set> {
        if self.open.entries_in > 0.0 {
            self.close();
        }
        self.done
    }
}

/// Cuts an output into files.
pub(crate) struct Cutter<'a> {
    space: &'a Space,
    logical: f64,
    target: f64,
    /// Split keys in order; true for hard ones.
    splits: Vec<(u64, bool)>,
    at: usize,
    /// Logical bytes so far, and where the open file began.
    sum: f64,
    began: f64,
    open: Content,
    files: Vec<Content>,
}

impl<'a> Cutter<'a> {
    pub(crate) fn new(cuts: &CutPolicy, logical: f64, space: &'a Space) -> Cutter<'a> {
        let hard = cuts.hard.iter().map(|k| (number(k), true));
        let mut splits: Vec<_> = cuts.soft.iter().map(|k| (number(k), false)).chain(hard).collect();
        splits.sort_unstable();
        let target =
            if cuts.target_bytes == u64::MAX { f64::MAX } else { cuts.target_bytes as f64 };
        Cutter {
            space,
            logical,
            target,
            splits,
            at: 0,
            sum: 0.0,
            began: 0.0,
            open: Content::default(),
            files: Vec::new(),
        }
    }

    /// `count` entries evenly over `keys`, behind all keys before.
    pub(crate) fn push(&mut self, mut keys: Range<u64>, mut count: f64) {
        while keys.start < keys.end {
            let split = self.splits.get(self.at).copied();
            if let Some((at, hard)) = split.filter(|s| s.0 <= keys.start) {
                self.at += 1;
                let soft = self.sum - self.began >= self.target / 8.0;
                if (hard || soft) && at <= keys.start {
                    self.cut();
                }
                continue;
            }
            let width = (keys.end - keys.start) as f64;
            let mut end = split.map_or(keys.end, |s| s.0.min(keys.end));
            // The next multiple of the target, if it lies inside.
            let left = ((self.sum / self.target).floor() + 1.0) * self.target - self.sum;
            let room = left / self.logical;
            let density = count / width;
            let mut full = false;
            if density > 0.0 && room / density <= (end - keys.start) as f64 {
                end = keys.start + ((room / density).ceil() as u64).max(1);
                full = true;
            }
            let part = if end == keys.end { count } else { density * (end - keys.start) as f64 };
            self.open.push(keys.start..end, part, self.space);
            // A full file ends on the multiple, whatever rounding says.
            self.sum = if full { self.sum + left } else { self.sum + part * self.logical };
            (keys.start, count) = (end, count - part);
            if full {
                self.cut();
            }
        }
    }

    fn cut(&mut self) {
        self.began = self.sum;
        let file = std::mem::take(&mut self.open);
        if file.entries() >= 0.5 {
            self.files.push(file);
        }
    }

    pub(crate) fn finish(mut self) -> Vec<Content> {
        self.cut();
        self.files
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::key;

    const SPACE: Space = Space { keys: 100_000, cells: 100 };
    const BYTES: EntryBytes =
        EntryBytes { user: 1e3, disk: 1e3, block: 4e3, tail: 8.0, logical: 1e3, memory: 1e3 };

    /// `count` entries in each cell of `keys`.
    fn file(keys: Range<u64>, count: f64) -> Arc<Content> {
        let mut c = Content::default();
        let mut from = keys.start;
        while from < keys.end {
            let to = SPACE.start(SPACE.cell_of(from) + 1).min(keys.end);
            c.push(from..to, count, &SPACE);
            from = to;
        }
        Arc::new(c)
    }

    fn all(files: &[Content]) -> f64 {
        files.iter().map(Content::entries).sum()
    }

    #[test]
    fn a_merge_drops_what_meets() {
        let (a, b) = (file(0..100_000, 200.0), file(0..100_000, 500.0));
        let none = CutPolicy { target_bytes: u64::MAX, ..CutPolicy::default() };
        let inputs = [a, b];
        let r = merge(&inputs, &none, SET_MAX, &Overlap::Random, &BYTES, &SPACE);
        assert_eq!(r.files.len(), 1);
        assert!((all(&r.files) - 60_000.0).abs() < 1.0, "{}", all(&r.files));
        let read: u64 = r.sets.iter().flat_map(|s| &s.reads).sum();
        // A block of each input is read again with each set.
        let again = 4_000 * 2 * r.sets.len() as u64;
        assert!(read.abs_diff(70_000_000 + again) < 100, "{read}");
        assert!(r.sets.iter().all(|s| s.reads.len() == 2 && s.entries_in < 4900.0));
        let r = merge(&inputs, &none, SET_MAX, &Overlap::None, &BYTES, &SPACE);
        assert!((all(&r.files) - 70_000.0).abs() < 1.0);
    }

    #[test]
    fn files_end_at_multiples_and_splits() {
        let cuts = CutPolicy {
            target_bytes: 20_000_000,
            soft: vec![key(1_000), key(15_000)],
            hard: vec![key(50_000)],
            ..CutPolicy::default()
        };
        // A key out of two: 10 keys hold 5000 bytes, so 40000 keys fill a file.
        let r = merge(&[file(0..100_000, 500.0)], &cuts, SET_MAX, &Overlap::Random, &BYTES, &SPACE);
        let ends: Vec<u64> = r.files.iter().map(|f| f.keys.end).collect();
        assert_eq!(ends, [15_000, 40_000, 50_000, 80_000, 100_000], "1000 is too short for soft");
        assert!(r.files.windows(2).all(|w| w[0].keys.end == w[1].keys.start));
        assert!((all(&r.files) - 50_000.0).abs() < 1.0);
    }

    #[test]
    fn gaps_between_inputs_stay() {
        let inputs = [file(0..1_500, 10.0), file(90_500..100_000, 10.0)];
        let none = CutPolicy { target_bytes: u64::MAX, ..CutPolicy::default() };
        let r = merge(&inputs, &none, SET_MAX, &Overlap::Random, &BYTES, &SPACE);
        assert!((all(&r.files) - 120.0).abs() < 1.0, "{}", all(&r.files));
        assert_eq!(r.files[0].keys, 0..100_000);
    }

    #[test]
    fn sets_are_as_large_as_writes_and_runs_ask_for() {
        let kib = 1024.0;
        assert_eq!(set_bytes(2, 128.0 * kib), 256.0 * kib);
        assert_eq!(set_bytes(20, 128.0 * kib), 640.0 * kib, "a quarter of a write for each run");
        assert_eq!(set_bytes(3, 2048.0 * kib), 4096.0 * kib);
        let inputs = [file(0..100_000, 200.0), file(0..100_000, 500.0)];
        let none = CutPolicy { target_bytes: u64::MAX, ..CutPolicy::default() };
        let r = merge(&inputs, &none, 256.0 * kib, &Overlap::Random, &BYTES, &SPACE);
        let most = r.sets.iter().map(|s| s.reads.iter().sum::<u64>()).max().unwrap();
        assert!((240_000..300_000).contains(&most), "{most}");
    }
}
