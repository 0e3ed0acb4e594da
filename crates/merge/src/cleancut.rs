//! Clean cut: from block indexes alone, the largest user key so that a set fits its budget.
//!
//! Keeps: a bound is a *user* key, so the versions of a key never fall into two sets; sets cover
//! all keys once, in order. A block that straddles a bound is sent in both sets, which costs at
//! most one block per run and set.
//! Leaves to others: reading. A *run* here is one sorted sequence of blocks, however many files
//! it spans.
//!
//! Source: the clean-cut front end of STEM, with its rule for straddling blocks corrected.
//!
//! Worked example, budget 3 blocks: run A ends blocks at `c f k`, run B at `e h`. Candidates are
//! those ends; up to `e` the blocks `..c`, `c..f` and `..e` start at or below it, which is the
//! budget. The first set is `(-, e]`, and the block `c..f` is sent again in the second.

use std::ops::Range;

use lithify_base::{Comparator, Key};

use crate::set::CleanRange;

/// What an index says about one block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockFence {
    /// A user key at or above the block's last one, and not above the first of the next block.
    pub last_key: Key,
    /// Bytes to read for it.
    pub bytes: u64,
}

/// One set: its keys, and for each run the blocks to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CutSet {
    /// Number, from 0.
    pub no: u32,
    /// Its user keys.
    pub keys: CleanRange,
    /// Block indexes, by run; empty where a run has none.
    pub blocks: Vec<Range<usize>>,
    /// Bytes of all those blocks.
    pub bytes: u64,
}

/// Cuts runs into sets, one at a time; the budget may change between sets.
pub struct CleanCut<'a> {
    runs: Vec<&'a [BlockFence]>,
    /// Per run: bytes of all blocks before index i.
    sums: Vec<Vec<u64>>,
    /// Per run: first block that may hold keys above `lo`.
    from: Vec<usize>,
    lo: Option<Key>,
    no: u32,
    order: &'a dyn Comparator,
}

impl<'a> CleanCut<'a> {
    /// A cut over the fences of each run, in key order.
    pub fn new(runs: Vec<&'a [BlockFence]>, order: &'a dyn Comparator) -> CleanCut<'a> {
        let sums = runs
            .iter()
            .map(|r| {
                let mut sum = 0;
                let ends = r.iter().map(|b| {
                    sum += b.bytes;
                    sum
                });
                std::iter::once(0).chain(ends).collect()
            })
            .collect();
        let from = vec![0; runs.len()];
        CleanCut { runs, sums, from, lo: None, no: 0, order }
    }

    /// The next set, of at most `budget` bytes where keys allow it; `None` after the last. With
    /// less than one and a half budgets left, what is left is split evenly. A set may exceed the
    /// budget when the blocks around a single user key do.
    pub fn next_set(&mut self, budget: u64) -> Option<CutSet> {
        let ends: Vec<usize> = self.runs.iter().map(|r| r.len()).collect();
        let left = self.bytes_to(&ends);
        if left == 0 {
            return None;
        }
        let target = if left <= budget {
            return Some(self.last_set(ends, left));
        } else if left < budget + budget / 2 {
            left.div_ceil(2)
        } else {
            budget
        };
        let Some(key) = self.bound(target.max(1)) else {
            return Some(self.last_set(ends, left));
        };
        let blocks: Vec<Range<usize>> =
            (0..self.runs.len()).map(|r| self.from[r]..self.end_for(r, &key)).collect();
        let stops: Vec<usize> = blocks.iter().map(|b| b.end).collect();
        if stops == ends && self.rest_is_empty(&key) {
            return Some(self.last_set(ends, left));
        }
        let bytes = self.bytes_to(&stops);
        let keys = CleanRange { lo: self.lo.clone(), hi: Some(key.clone()) };
        for r in 0..self.runs.len() {
            self.from[r] = self.above(r, &key);
        }
        self.lo = Some(key);
        self.no += 1;
        Some(CutSet { no: self.no - 1, keys, blocks, bytes })
    }

    fn last_set(&mut self, ends: Vec<usize>, bytes: u64) -> CutSet {
        let blocks = self.from.iter().zip(&ends).map(|(&a, &b)| a..b).collect();
        self.from = ends;
        self.no += 1;
        CutSet { no: self.no - 1, keys: CleanRange { lo: self.lo.take(), hi: None }, blocks, bytes }
    }

    /// The largest fence key whose set has at most `target` bytes, or the smallest fence above
    /// `lo` if none has. `None` if no fence lies above `lo`.
    fn bound(&self, target: u64) -> Option<Key> {
        let mut best: Option<&Key> = None;
        let mut least: Option<&Key> = None;
        for (r, run) in self.runs.iter().enumerate() {
            let fences = &run[self.above_lo(r)..];
            let Some(first) = fences.first() else { continue };
            if least.is_none_or(|l| self.order.compare(&first.last_key, l).is_lt()) {
                least = Some(&first.last_key);
            }
            let fit = fences.partition_point(|f| self.bytes_at(&f.last_key) <= target);
            if let Some(f) = fit.checked_sub(1).and_then(|i| fences.get(i))
                && best.is_none_or(|b| self.order.compare(&f.last_key, b).is_gt())
            {
                best = Some(&f.last_key);
            }
        }
        best.or(least).cloned()
    }

    /// Bytes of the set that ends at `key`.
    fn bytes_at(&self, key: &Key) -> u64 {
        (0..self.runs.len())
            .map(|r| self.sums[r][self.end_for(r, key)] - self.sums[r][self.from[r]])
            .sum()
    }
    fn bytes_to(&self, ends: &[usize]) -> u64 {
        ends.iter().enumerate().map(|(r, &e)| self.sums[r][e] - self.sums[r][self.from[r]]).sum()
    }
    /// One past the last block of a run that may hold keys at or below `key`: the block of the
    /// first fence at or above it, and every further one while fences equal it.
    fn end_for(&self, r: usize, key: &Key) -> usize {
        let run = self.runs[r];
        let above = run.partition_point(|f| self.order.compare(&f.last_key, key).is_le());
        (above + 1).min(run.len()).max(self.from[r])
    }
    /// First block of a run that may hold keys above `key`.
    fn above(&self, r: usize, key: &Key) -> usize {
        self.runs[r].partition_point(|f| self.order.compare(&f.last_key, key).is_le())
    }
    /// First fence of a run above the current lower bound.
    fn above_lo(&self, r: usize) -> usize {
        self.lo.as_ref().map_or(0, |lo| self.above(r, lo)).max(self.from[r])
    }
    fn rest_is_empty(&self, key: &Key) -> bool {
        (0..self.runs.len()).all(|r| self.above(r, key) == self.runs[r].len())
    }
}

#[cfg(test)]
mod tests;
