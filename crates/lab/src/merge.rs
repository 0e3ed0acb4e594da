//! What a job makes of its inputs: the sets it reads, in order, and the files it writes.
//!
//! Keeps: the cuts are those of the merge kernel for the same cut policy: at multiples of the
//! target since the beginning of the job, at every hard key, and at a soft key if the open file
//! has an eighth of the target. Blocks are not modelled, so a cut is off by up to one.

use std::ops::Range;
use std::sync::Arc;

use lithify_plan::CutPolicy;

use crate::space::{Content, Space, number};

/// Input bytes of one set, over all runs.
const SET_BYTES: f64 = (4 << 20) as f64;
/// Input bytes between two looks at the cuts of a large cell.
const SLICE_BYTES: f64 = (1 << 20) as f64;

/// Sizes of entries.
#[derive(Clone, Copy, Debug)]
pub struct EntryBytes {
    /// Of key and value, as a user counts.
    pub user: f64,
    /// In a table file.
    pub disk: f64,
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

/// How often keys of different inputs meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overlap {
    /// As often as chance has it.
    Random,
    /// Never: every key is written once.
    None,
}

impl Overlap {
    /// Different keys among `n` writes to `of` keys.
    pub fn distinct(self, n: f64, of: f64) -> f64 {
        match self {
            Overlap::Random if of > 1.0 => of * (1.0 - (1.0 - 1.0 / of).powf(n)),
            Overlap::Random => n.min(of),
            Overlap::None => n,
        }
    }
}

/// The recipe of a merge of `inputs`, whose output is cut by `cuts`.
pub fn merge(
    inputs: &[Arc<Content>],
    cuts: &CutPolicy,
    overlap: Overlap,
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

    let mut sets =
        Sets { bytes, open: Set::default(), parts: vec![0.0; inputs.len()], done: vec![] };
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
    open: Set,
    /// Entries of each input in the open set.
    parts: Vec<f64>,
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
        overlap: Overlap,
        space: &Space,
    ) -> f64 {
        let width = (keys.end - keys.start) as f64;
        let (mut sum, mut absent) = (0.0, 1.0);
        let mut shares = Vec::with_capacity(active.len());
        for &i in active {
            let (part, count) = inputs[i].part(cell, space);
            let share = count * width / ((part.end - part.start) as f64).max(1.0);
            shares.push((i, share));
            sum += share;
            absent *= 1.0 - (share / width).min(1.0);
        }
        let out = match overlap {
            Overlap::Random => width * (1.0 - absent),
            Overlap::None => sum,
        };
        let slices = (sum * self.bytes.disk / SLICE_BYTES).ceil().max(1.0);
        for _ in 0..slices as u64 {
            for &(i, share) in &shares {
                self.parts[i] += share / slices;
            }
            self.open.entries_in += sum / slices;
            self.open.entries_out += out / slices;
            if self.open.entries_in * self.bytes.disk >= SET_BYTES {
                self.close();
            }
        }
        out
    }

    fn close(&mut self) {
        let parts = self.parts.iter_mut().filter(|p| **p > 0.0);
        let read = |p: &mut f64| (std::mem::take(p) * self.bytes.disk).ceil() as u64;
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
        EntryBytes { user: 1000.0, disk: 1000.0, logical: 1000.0, memory: 1000.0 };

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
        let r = merge(&inputs, &none, Overlap::Random, &BYTES, &SPACE);
        assert_eq!(r.files.len(), 1);
        assert!((all(&r.files) - 60_000.0).abs() < 1.0, "{}", all(&r.files));
        let read: u64 = r.sets.iter().flat_map(|s| &s.reads).sum();
        assert!(read.abs_diff(70_000_000) < 100, "{read}");
        assert!(r.sets.iter().all(|s| s.reads.len() == 2 && s.entries_in < 5300.0));
        let r = merge(&inputs, &none, Overlap::None, &BYTES, &SPACE);
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
        let r = merge(&[file(0..100_000, 500.0)], &cuts, Overlap::Random, &BYTES, &SPACE);
        let ends: Vec<u64> = r.files.iter().map(|f| f.keys.end).collect();
        assert_eq!(ends, [15_000, 40_000, 50_000, 80_000, 100_000], "1000 is too short for soft");
        assert!(r.files.windows(2).all(|w| w[0].keys.end == w[1].keys.start));
        assert!((all(&r.files) - 50_000.0).abs() < 1.0);
    }

    #[test]
    fn gaps_between_inputs_stay() {
        let inputs = [file(0..1_500, 10.0), file(90_500..100_000, 10.0)];
        let none = CutPolicy { target_bytes: u64::MAX, ..CutPolicy::default() };
        let r = merge(&inputs, &none, Overlap::Random, &BYTES, &SPACE);
        assert!((all(&r.files) - 120.0).abs() < 1.0, "{}", all(&r.files));
        assert_eq!(r.files[0].keys, 0..100_000);
    }

    #[test]
    fn few_of_many_writes_meet() {
        assert!((Overlap::Random.distinct(1000.0, 1000.0) - 632.3).abs() < 0.5);
        assert_eq!(Overlap::None.distinct(1000.0, 1000.0), 1000.0);
    }
}
