//! What planners ask about whole levels: how deep runs overlap over each key, and how much of the
//! next level lies under each file. Derived from runs alone, so it can always be rebuilt.
//!
//! **Elementary intervals.** The bounds of all files of a level cut the key space into intervals
//! over which the set of covering files does not change:
//!
//! ```text
//!   L0.8  a-------m          a..d  depth 1
//!   L0.7      d=======t      d..m  depth 2, idle depth 1 (the file of L0.7 is locked)
//!                            m..t  depth 1, idle depth 0
//! ```

use lithify_base::{Comparator, FileId, Key, KeyRange};

use crate::file::FileRef;
use crate::level::Level;
use crate::run::Run;

/// A stretch of keys covered by the same files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Where it begins.
    pub lo: Key,
    /// False if `lo` itself belongs to the interval before.
    pub from_lo: bool,
    /// Runs that cover it.
    pub depth: u32,
    /// Runs that cover it with a file no job holds.
    pub idle_depth: u32,
}

impl Interval {
    /// The files of `runs` that cover the interval, in the order of the runs, at most one of each.
    pub fn covering<'a>(
        &'a self,
        runs: &'a [Run],
        order: &'a dyn Comparator,
    ) -> impl DoubleEndedIterator<Item = &'a FileRef> {
        let reaches_in =
            |f: &&FileRef| self.from_lo || order.compare(&f.range.hi.key, &self.lo).is_gt();
        runs.iter().filter_map(move |r| r.find(&self.lo, order).filter(reaches_in))
    }
}

/// The elementary intervals of some runs, in key order, those without files included. The last one
/// reaches to the end of the key space and has depth 0.
pub fn intervals(
    runs: &[Run],
    order: &dyn Comparator,
    is_locked: impl Fn(FileId) -> bool,
) -> Vec<Interval> {
    let mut out: Vec<Interval> = Vec::new();
    let (mut depth, mut idle) = (0u32, 0u32);
    for e in edges(runs, order) {
        let idle_step = u32::from(!is_locked(e.file.id));
        if e.begins {
            (depth, idle) = (depth + 1, idle + idle_step);
        } else {
            (depth, idle) = (depth - 1, idle - idle_step);
        }
        let from_lo = !e.after_key;
        match out.last_mut() {
            Some(last) if last.from_lo == from_lo && order.compare(&last.lo, e.key).is_eq() => {
                (last.depth, last.idle_depth) = (depth, idle);
            }
            _ => out.push(Interval { lo: e.key.clone(), from_lo, depth, idle_depth: idle }),
        }
    }
    out
}

/// A file of the runs of `intervals` is locked.
pub fn lock(intervals: &mut [Interval], file: &FileRef, order: &dyn Comparator) {
    let KeyRange { lo, hi } = &file.range;
    let before = |i: &Interval, at: &Key, after_key: bool| {
        order.compare(&i.lo, at).then((!i.from_lo).cmp(&after_key)).is_lt()
    };
    let from = intervals.partition_point(|i| before(i, lo, false));
    let end = intervals.partition_point(|i| before(i, &hi.key, hi.inclusive));
    intervals[from..end].iter_mut().for_each(|i| i.idle_depth -= 1);
}

/// The largest number of `runs` that cover one key. Where only the longest run has files the depth
/// is 1, so of that run only what meets the others is looked at.
pub fn max_depth(runs: &[Run], order: &dyn Comparator) -> u32 {
    let Some(longest) = (0..runs.len()).max_by_key(|&i| runs[i].files().len()) else { return 0 };
    let rest = || runs.iter().enumerate().filter(|&(i, _)| i != longest).map(|(_, r)| r);
    let others: usize = rest().map(|r| r.files().len()).sum();
    if others * 4 >= runs[longest].files().len() {
        return deepest(edges(runs, order));
    }
    let long = &runs[longest];
    let mut met: Vec<usize> = rest()
        .flat_map(|r| r.files())
        .flat_map(|f| long.overlapping_span(&f.range, order))
        .collect();
    met.sort_unstable();
    met.dedup();
    let met = met.into_iter().map(|i| &long.files()[i]);
    deepest(edges_of(rest().flat_map(|r| r.files()).chain(met), order)).max(1)
}

fn deepest(edges: Vec<Edge>) -> u32 {
    let (mut depth, mut max) = (0u32, 0u32);
    for e in edges {
        depth = if e.begins { depth + 1 } else { depth - 1 };
        max = max.max(depth);
    }
    max
}

/// The largest number of `runs` that cover one key of `range`, or a file of them that reaches into
/// it.
pub fn max_depth_within(runs: &[Run], range: &KeyRange, order: &dyn Comparator) -> u32 {
    let files = runs.iter().flat_map(|r| r.overlapping(range, order));
    deepest(edges_of(files, order))
}

/// A place where the set of covering files changes.
struct Edge<'a> {
    key: &'a Key,
    /// The change happens after `key` (an inclusive end), not before it.
    after_key: bool,
    begins: bool,
    file: &'a FileRef,
}

/// All edges in key order. At one place ends come first, so that a range that ends where another
/// begins does not count twice.
fn edges<'a>(runs: &'a [Run], order: &dyn Comparator) -> Vec<Edge<'a>> {
    edges_of(runs.iter().flat_map(|r| r.files()), order)
}

fn edges_of<'a>(files: impl Iterator<Item = &'a FileRef>, order: &dyn Comparator) -> Vec<Edge<'a>> {
    let mut all = Vec::with_capacity(2 * files.size_hint().0);
    for file in files {
        let (lo, hi) = (&file.range.lo, &file.range.hi);
        all.push(Edge { key: lo, after_key: false, begins: true, file });
        all.push(Edge { key: &hi.key, after_key: hi.inclusive, begins: false, file });
    }
    // Each run is sorted already; the stable sort finds and merges those stretches.
    all.sort_by(|a, b| {
        order
            .compare(a.key, b.key)
            .then(a.after_key.cmp(&b.after_key))
            .then(a.begins.cmp(&b.begins))
    });
    all
}

/// Per run and file of `level`, the bytes of `next` that overlap the file. One sweep of each pair
/// of runs, as both are sorted.
pub fn overlap_bytes(level: &Level, next: &Level, order: &dyn Comparator) -> Box<[Box<[u64]>]> {
    let mut all = Vec::with_capacity(level.runs().len());
    for run in level.runs() {
        let mut sums = vec![0u64; run.files().len()].into_boxed_slice();
        for below in next.runs() {
            sweep(run.files(), below.files(), &mut sums, order);
        }
        all.push(sums);
    }
    all.into()
}

/// Adds to each file's sum the bytes of the files below that overlap it. A file below that spans
/// several counts for each, as it would be rewritten with each.
fn sweep(files: &[FileRef], below: &[FileRef], sums: &mut [u64], order: &dyn Comparator) {
    let mut from = 0;
    for (f, sum) in files.iter().zip(sums) {
        while below.get(from).is_some_and(|b| b.range.is_before(&f.range, order)) {
            from += 1;
        }
        let inside = below[from..].iter().take_while(|b| !f.range.is_before(&b.range, order));
        *sum += inside.map(|b| b.bytes).sum::<u64>();
    }
}
