//! Clean cut: from block indexes alone, the largest user key so that a set fits its budget.
//!
//! Keeps: a bound is a *user* key, so the versions of a key never fall into two sets; sets cover
//! all keys once, in order. A block that straddles a bound is sent in both sets, which costs at
//! most one block per run and set; where these alone are a budget, the sets are larger, so that no
//! more than half of what is sent was sent before.
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

use crate::set::{CleanRange, JobRange};
use crate::view::head;

/// What an index says about one block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockFence {
    /// A user key at or above the block's last one, and not above the first of the next block.
    pub last_key: Key,
    /// Bytes to read for it.
    pub bytes: u64,
}

/// The blocks of a run that may hold keys of `range`, in key order. A block that straddles an end of
/// it belongs to two ranges that meet there.
pub fn within(run: &[BlockFence], range: &JobRange, order: &dyn Comparator) -> Range<usize> {
    let below =
        |f: &BlockFence| range.lo.as_ref().is_some_and(|lo| order.compare(&f.last_key, lo).is_lt());
    // Keys behind this block lie at or above its last one.
    let goes_on =
        |f: &BlockFence| range.hi.as_ref().is_none_or(|hi| !hi.is_before(&f.last_key, order));
    let from = run.partition_point(below);
    let end = (run.partition_point(goes_on) + 1).min(run.len());
    from..end.max(from)
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
    /// Per run and fence: the first eight bytes of the key.
    heads: Vec<Vec<u64>>,
    bytewise: bool,
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
        let heads = runs.iter().map(|r| r.iter().map(|f| head(&f.last_key, 0)).collect()).collect();
        let bytewise = order.is_bytewise();
        CleanCut { runs, sums, from, heads, bytewise, lo: None, no: 0, order }
    }

    /// The next set, of at most `budget` bytes where keys allow it; `None` after the last. With
    /// less than one and a half budgets left, what is left is split evenly. A set may exceed the
    /// budget when the first block of each run does, or the blocks around a single user key.
    pub fn next_set(&mut self, budget: u64) -> Option<CutSet> {
        let ends: Vec<usize> = self.runs.iter().map(|r| r.len()).collect();
        let left = self.bytes_to(&ends);
        if left == 0 {
            return None;
        }
        let firsts = self.from.iter().zip(&self.runs).map(|(&i, run)| (i + 1).min(run.len()));
        let first_blocks = self.bytes_to(&firsts.collect::<Vec<_>>());
        let budget = if first_blocks >= budget { 2 * first_blocks } else { budget };
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
    ///
    /// Fences are passed in key order over all runs; passing one lets in the block behind it.
    fn bound(&self, target: u64) -> Option<Key> {
        let mut at: Vec<usize> = (0..self.runs.len()).map(|r| self.above_lo(r)).collect();
        let first: Vec<usize> =
            at.iter().zip(&self.runs).map(|(&a, run)| (a + 1).min(run.len())).collect();
        let mut bytes = self.bytes_to(&first);
        let (mut best, mut passed): (Option<&Key>, Option<&Key>) = (None, None);
        loop {
            let next = self.least(&at);
            let key = next.map(|r| &self.runs[r][at[r]].last_key);
            if let Some(k) = passed
                && key.is_none_or(|key| self.order.compare(key, k).is_ne())
            {
                if bytes > target {
                    return best.or(passed).cloned();
                }
                best = passed;
            }
            let Some(r) = next else { return best.cloned() };
            passed = key;
            at[r] += 1;
            bytes += self.runs[r].get(at[r]).map_or(0, |block| block.bytes);
        }
    }

    /// The run whose fence at `at` is the smallest; `None` if all are spent.
    fn least(&self, at: &[usize]) -> Option<usize> {
        let mut least: Option<usize> = None;
        for (r, &i) in at.iter().enumerate() {
            if i >= self.runs[r].len() {
                continue;
            }
            let Some(l) = least else {
                least = Some(r);
                continue;
            };
            let (a, b) = (self.heads[r][i], self.heads[l][at[l]]);
            let less = if self.bytewise && a != b {
                a < b
            } else {
                let (a, b) = (&self.runs[r][i].last_key, &self.runs[l][at[l]].last_key);
                self.order.compare(a, b).is_lt()
            };
            if less {
                least = Some(r);
            }
        }
        least
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
