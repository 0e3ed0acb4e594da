//! Clean cut: from block indexes alone, the largest user key so that a set fits its budget.
//!
//! Keeps: a bound is a *user* key, so the versions of a key never fall into two sets; sets cover
//! all keys once, in order. A block that straddles a bound is sent in both sets, which costs at
//! most one block per run and set; where these alone are a budget, the sets are larger, so that no
//! more than half of what is sent was sent before. Budget and ways may change between sets: bounds
//! decide no output byte.
//! Leaves to others: reading. A *run* here is one sorted sequence of blocks, however many files
//! it spans.
//!
//! Source: the clean-cut front end of STEM, with its rule for straddling blocks corrected.
//!
//! Worked example, budget 3 blocks: run A ends blocks at `c f k`, run B at `e h`. Candidates are
//! those ends; up to `e` the blocks `..c`, `c..f` and `..e` start at or below it, which is the
//! budget. The first set is `(-, e]`, and the block `c..f` is sent again in the second.
//!
//! A set has blocks of every run that may hold keys of it, and of a run that goes on, one more block
//! always may. So the number of runs in a set, its *ways*, falls only where a run is known to begin
//! later: at the first block of a file, whose first key the tree knows. In the example, if B is known to
//! begin at `d`, a set with one way is `(-, c]`.

use std::ops::Range;

use lithify_base::{Comparator, ComparatorRef, Key};

use crate::set::{CleanRange, JobRange};
use crate::view::head;

/// What the indexes of some runs say about their blocks.
pub trait BlockIndex {
    /// Number of runs.
    fn runs(&self) -> usize;
    /// Number of blocks of `run`.
    fn blocks(&self, run: usize) -> usize;
    /// A user key at or above the last one of a block, and not above the first of the next block.
    fn last_key(&self, run: usize, block: usize) -> &[u8];
    /// A user key at or below the first one of a block, and not below the last key of the block
    /// before, where one is known besides that.
    fn first_key(&self, run: usize, block: usize) -> Option<&[u8]>;
    /// Bytes to read for a block, at least 1.
    fn bytes(&self, run: usize, block: usize) -> u64;
}

/// What an index says about one block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockFence {
    /// As [`BlockIndex::first_key`].
    pub first_key: Option<Key>,
    /// As [`BlockIndex::last_key`].
    pub last_key: Key,
    /// Bytes to read for it, at least 1.
    pub bytes: u64,
}

impl BlockIndex for Vec<Vec<BlockFence>> {
    fn runs(&self) -> usize {
        self.len()
    }
    fn blocks(&self, run: usize) -> usize {
        self[run].len()
    }
    fn last_key(&self, run: usize, block: usize) -> &[u8] {
        &self[run][block].last_key
    }
    fn first_key(&self, run: usize, block: usize) -> Option<&[u8]> {
        self[run][block].first_key.as_deref()
    }
    fn bytes(&self, run: usize, block: usize) -> u64 {
        self[run][block].bytes
    }
}

/// The blocks of a run that may hold keys of `range`, in key order. A block that straddles an end of
/// it belongs to two ranges that meet there.
pub fn within(
    index: &impl BlockIndex,
    run: usize,
    range: &JobRange,
    order: &dyn Comparator,
) -> Range<usize> {
    let all = index.blocks(run);
    let below =
        |i| range.lo.as_ref().is_some_and(|lo| order.compare(index.last_key(run, i), lo).is_lt());
    // Keys behind this block lie at or above its last one.
    let goes_on =
        |i| range.hi.as_ref().is_none_or(|hi| !hi.is_before(index.last_key(run, i), order));
    let from = first(0..all, below);
    let end = (first(0..all, goes_on) + 1).min(all);
    from..end.max(from)
}

/// The first of `range` for which `before` is false; its end if there is none.
fn first(range: Range<usize>, before: impl Fn(usize) -> bool) -> usize {
    let Range { start: mut lo, end: mut hi } = range;
    while lo < hi {
        let mid = lo + (hi - lo) / 2;
        if before(mid) { lo = mid + 1 } else { hi = mid }
    }
    lo
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

/// Cuts runs into sets, one at a time. It keeps a few numbers for each run, and nothing for a block.
pub struct CleanCut<I> {
    index: I,
    order: ComparatorRef,
    bytewise: bool,
    /// Per run, the blocks not sent yet; the first may have been sent, and hold more keys.
    left: Vec<Range<usize>>,
    /// Bytes of those.
    bytes_left: u64,
    lo: Option<Key>,
    no: u32,
}

impl<I: BlockIndex> CleanCut<I> {
    /// A cut over what the runs of `index` may hold of `range`.
    pub fn new(index: I, range: &JobRange, order: ComparatorRef) -> CleanCut<I> {
        let left: Vec<Range<usize>> =
            (0..index.runs()).map(|r| within(&index, r, range, &*order)).collect();
        let bytes_left = bytes_of(&index, &left);
        let bytewise = order.is_bytewise();
        CleanCut { index, order, bytewise, left, bytes_left, lo: None, no: 0 }
    }

    /// The indexes that it cuts by.
    pub fn index(&self) -> &I {
        &self.index
    }

    /// Bytes of the blocks that are left.
    pub fn bytes_left(&self) -> u64 {
        self.bytes_left
    }

    /// True if all sets were handed out.
    pub fn is_spent(&self) -> bool {
        self.bytes_left == 0
    }

    /// The next set: up to the largest key for which it has at most `budget` bytes, of blocks of at most
    /// `ways` runs. If there is none it makes the least progress, which is up to the next end of a
    /// block, and exceeds one of the two. `None` after the last set.
    ///
    /// With less than one and a half budgets left, what is left is split evenly. The budget is doubled
    /// first blocks where those that were sent before are a budget by themselves.
    pub fn next_set(&mut self, budget: u64, ways: u16) -> Option<CutSet> {
        if self.is_spent() {
            return None;
        }
        let again = self.bytes_again();
        let budget = if again >= budget { 2 * again } else { budget };
        let runs_left = self.left.iter().filter(|left| !left.is_empty()).count();
        let few = runs_left <= usize::from(ways);
        let target = match self.bytes_left {
            left if left <= budget && few => return Some(self.last_set()),
            left if left > budget && left < budget + budget / 2 => left.div_ceil(2),
            _ => budget,
        };
        let key = self.bound(target.max(1), usize::from(ways));
        // Behind the last end of a block nothing lies.
        let Some(key) = key.filter(|key| !self.is_end(key)) else { return Some(self.last_set()) };
        let blocks: Vec<Range<usize>> =
            (0..self.left.len()).map(|r| self.left[r].start..self.end_for(r, &key)).collect();
        let bytes = bytes_of(&self.index, &blocks);
        let keys = CleanRange { lo: self.lo.clone(), hi: Some(key.clone()) };
        for r in 0..self.left.len() {
            let sent = self.left[r].start..self.above(r, &key);
            self.left[r].start = sent.end;
            self.bytes_left -= sent.map(|i| self.index.bytes(r, i)).sum::<u64>();
        }
        self.lo = Some(key);
        self.no += 1;
        Some(CutSet { no: self.no - 1, keys, blocks, bytes })
    }

    fn last_set(&mut self) -> CutSet {
        let blocks = self.left.clone();
        for left in &mut self.left {
            left.start = left.end;
        }
        let bytes = std::mem::take(&mut self.bytes_left);
        self.no += 1;
        CutSet { no: self.no - 1, keys: CleanRange { lo: self.lo.take(), hi: None }, blocks, bytes }
    }

    /// The largest end of a block up to which a set keeps both limits, or the smallest above `lo` if
    /// none does. `None` if no end lies above `lo`.
    fn bound(&self, target: u64, ways: usize) -> Option<Key> {
        let mut walk = Walk::new(self);
        let (mut best, mut passed): (Option<&[u8]>, Option<&[u8]>) = (None, None);
        loop {
            let next = walk.least();
            let key = next.map(|r| self.index.last_key(r, walk.at[r]));
            if let Some(k) = passed
                && key.is_none_or(|key| self.order.compare(key, k).is_ne())
            {
                walk.let_in(k);
                if walk.bytes > target || walk.ways > ways {
                    return best.or(passed).map(Key::from);
                }
                best = passed;
            }
            let Some(r) = next else { return best.map(Key::from) };
            passed = key;
            walk.pass(r);
        }
    }

    /// How many bytes all ends of blocks that are left begin with, in byte order: those that the first and the last ends of
    /// all runs begin with.
    fn prefix(&self) -> usize {
        let mut ends = self.left.iter().enumerate().filter(|(_, left)| !left.is_empty()).flat_map(
            |(r, left)| [left.start, left.end - 1].map(|block| self.index.last_key(r, block)),
        );
        let Some(first) = ends.next() else { return 0 };
        let common = |key: &[u8]| first.iter().zip(key).take_while(|(a, b)| a == b).count();
        ends.map(common).min().unwrap_or(first.len())
    }

    /// Bytes of the blocks that were sent with the set before and are sent again.
    fn bytes_again(&self) -> u64 {
        let first = |(r, left): (usize, &Range<usize>)| match left.is_empty() {
            true => 0,
            false if self.begins_above(r, left.start, self.lo.as_deref()) => 0,
            false => self.index.bytes(r, left.start),
        };
        self.left.iter().enumerate().map(first).sum()
    }

    /// True if a block is known to begin above `key`; an absent key is below all.
    fn begins_above(&self, r: usize, block: usize, key: Option<&[u8]>) -> bool {
        let first = self.index.first_key(r, block);
        first.is_some_and(|first| key.is_none_or(|key| self.order.compare(first, key).is_gt()))
    }

    /// One past the last block of a run that may hold keys at or below `key`: the block of the first
    /// end above it, unless that one is known to begin above it, too.
    fn end_for(&self, r: usize, key: &[u8]) -> usize {
        let above = self.above(r, key);
        let more = above < self.left[r].end && !self.begins_above(r, above, Some(key));
        above + usize::from(more)
    }

    /// First block of a run that may hold keys above `key`.
    fn above(&self, r: usize, key: &[u8]) -> usize {
        let ends = |i| self.order.compare(self.index.last_key(r, i), key).is_le();
        first(self.left[r].clone(), ends)
    }

    /// True if no block ends above `key`.
    fn is_end(&self, key: &[u8]) -> bool {
        (0..self.left.len()).all(|r| self.above(r, key) == self.left[r].end)
    }
}

fn bytes_of(index: &impl BlockIndex, blocks: &[Range<usize>]) -> u64 {
    let of_run = |(r, blocks): (usize, &Range<usize>)| -> u64 {
        blocks.clone().map(|i| index.bytes(r, i)).sum()
    };
    blocks.iter().enumerate().map(of_run).sum()
}

/// A walk over the ends of blocks of all runs, in key order. To pass an end lets in the block behind
/// it, at once or, if it is known to begin later, when its first key is reached.
struct Walk<'a, I> {
    cut: &'a CleanCut<I>,
    /// By run, the block whose end comes next.
    at: Vec<usize>,
    /// Bytes that all ends begin with, if keys are ordered by their bytes.
    prefix: usize,
    /// By run, the eight bytes behind those of that end.
    heads: Vec<u64>,
    /// By run, true if it has blocks in the set.
    inside: Vec<bool>,
    /// Bytes of all blocks that were let in, and of how many runs they are.
    bytes: u64,
    ways: usize,
    /// Runs whose block at `at` begins later.
    later: Vec<usize>,
    /// The one of them that begins first.
    soonest: Option<usize>,
}

impl<'a, I: BlockIndex> Walk<'a, I> {
    fn new(cut: &'a CleanCut<I>) -> Walk<'a, I> {
        let runs = cut.left.len();
        let at: Vec<usize> = cut.left.iter().map(|left| left.start).collect();
        let mut walk = Walk {
            cut,
            at,
            prefix: if cut.bytewise { cut.prefix() } else { 0 },
            heads: vec![0; runs],
            inside: vec![false; runs],
            bytes: 0,
            ways: 0,
            later: Vec::new(),
            soonest: None,
        };
        (0..runs).for_each(|r| walk.reach(r));
        walk
    }

    /// The run whose end at `at` is the smallest; `None` if all are spent.
    fn least(&self) -> Option<usize> {
        let mut least: Option<usize> = None;
        for (r, &i) in self.at.iter().enumerate() {
            if i >= self.cut.left[r].end {
                continue;
            }
            let Some(l) = least else {
                least = Some(r);
                continue;
            };
            let (a, b) = (self.heads[r], self.heads[l]);
            let less = if self.cut.bytewise && a != b {
                a < b
            } else {
                let end = |r: usize| self.cut.index.last_key(r, self.at[r]);
                self.cut.order.compare(end(r), end(l)).is_lt()
            };
            if less {
                least = Some(r);
            }
        }
        least
    }

    /// Passes the next end of run `r`.
    fn pass(&mut self, r: usize) {
        if let Some(place) = self.later.iter().position(|&later| later == r) {
            // A block whose keys all lie at its end.
            self.later.swap_remove(place);
            self.enter(r);
            self.find_soonest();
        }
        self.at[r] += 1;
        self.reach(r);
    }

    /// Block `at` of a run comes next.
    fn reach(&mut self, r: usize) {
        let at = self.at[r];
        if at >= self.cut.left[r].end {
            return;
        }
        let index = &self.cut.index;
        self.heads[r] = head(index.last_key(r, at), self.prefix);
        // Whether it begins above the end just passed shows when its first key is reached.
        let begun = at == self.cut.left[r].start && !self.cut.begins_above(r, at, self.lo());
        if begun || index.first_key(r, at).is_none() {
            return self.enter(r);
        }
        self.later.push(r);
        self.find_soonest();
    }

    fn lo(&self) -> Option<&'a [u8]> {
        self.cut.lo.as_deref()
    }

    fn enter(&mut self, r: usize) {
        self.bytes += self.cut.index.bytes(r, self.at[r]);
        self.ways += usize::from(!std::mem::replace(&mut self.inside[r], true));
    }

    /// Lets in what begins at or below `key`.
    fn let_in(&mut self, key: &[u8]) {
        while let Some(r) = self.soonest
            && !self.cut.begins_above(r, self.at[r], Some(key))
        {
            self.later.retain(|&later| later != r);
            self.enter(r);
            self.find_soonest();
        }
    }

    fn find_soonest(&mut self) {
        let begins = |r: usize| self.cut.index.first_key(r, self.at[r]).unwrap_or_default();
        let sooner = |&&a: &&usize, &&b: &&usize| self.cut.order.compare(begins(a), begins(b));
        self.soonest = self.later.iter().min_by(sooner).copied();
    }
}

#[cfg(test)]
mod tests;
