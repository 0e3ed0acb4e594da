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

use lithify_base::{Comparator, FileId, Key};

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

/// The elementary intervals of a level, in key order, those without files included. The last one
/// reaches to the end of the key space and has depth 0.
pub fn intervals(
    level: &Level,
    order: &dyn Comparator,
    is_locked: impl Fn(FileId) -> bool,
) -> Vec<Interval> {
    let mut out: Vec<Interval> = Vec::new();
    let (mut depth, mut idle) = (0u32, 0u32);
    for e in edges(level.runs(), order) {
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

/// The largest number of `runs` that cover one key.
pub fn max_depth(runs: &[Run], order: &dyn Comparator) -> u32 {
    if runs.len() <= 1 {
        return runs.len() as u32;
    }
    let (mut depth, mut max) = (0u32, 0u32);
    for e in edges(runs, order) {
        depth = if e.begins { depth + 1 } else { depth - 1 };
        max = max.max(depth);
    }
    max
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
    let mut all = Vec::with_capacity(2 * runs.iter().map(|r| r.files().len()).sum::<usize>());
    for file in runs.iter().flat_map(|r| r.files()) {
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
