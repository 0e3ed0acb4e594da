//! Which files must come along: everything older that an input would otherwise overtake.
//!
//! From the newest seed down to the output, a run contributes the files that overlap what has been
//! gathered above it. At the output position the whole hull counts, since output files may span
//! the gaps between inputs; there the hull may grow, so it is a fixpoint.
//!
//! ```text
//!   L1.1        g---k                 seed L1.1[g..k] to L2.0:
//!   L1.0   c------h   m--p            L1.0[c..h] lies under it
//!   L2.0  a----d e--f i-l n-o         hull c..k: L2.0[a..d] [e..f] [i..l]; now a..l, nothing new
//! ```
//!
//! Locks are not looked at: a closure is what must move together, idle or not.

use lithify_base::{Comparator, KeyRange, Pos};
use lithify_lsm::{FileRef, Run, Version};

use crate::nouns::files::hull;

/// The seeds with all they must take along to `out`, newest position first, each in key order.
pub fn close(version: &Version, seeds: &[FileRef], out: Pos) -> Vec<FileRef> {
    let order = version.order();
    let Some(newest) = seeds.iter().map(|f| f.pos).min() else { return Vec::new() };
    let mut inputs: Vec<FileRef> = Vec::new();
    let mut cover: Vec<KeyRange> = Vec::new();
    for level in newest.level..=out.level {
        for run in version.level(level).runs() {
            if run.pos.is_newer_than(newest) || run.pos.is_older_than(out) {
                continue;
            }
            let own = seeds.iter().filter(|f| f.pos == run.pos);
            let mut picked: Vec<usize> = own.filter_map(|f| run.index_of(f.id)).collect();
            picked.extend(cover.iter().flat_map(|r| run.overlapping_span(r, order)));
            if run.pos == out {
                picked = fill_hull(run, picked, &inputs, order);
            }
            picked.sort_unstable();
            picked.dedup();
            let picked: Vec<FileRef> = picked.into_iter().map(|i| run.files()[i].clone()).collect();
            if !picked.is_empty() {
                widen(&mut cover, &picked, order);
                inputs.extend(picked);
            }
        }
    }
    inputs
}

/// Every file of the output run inside the hull of all inputs, to a fixpoint.
fn fill_hull(
    run: &Run,
    picked: Vec<usize>,
    inputs: &[FileRef],
    order: &dyn Comparator,
) -> Vec<usize> {
    let here: Vec<FileRef> = picked.iter().map(|&i| run.files()[i].clone()).collect();
    let parts = [hull(inputs, order), hull(&here, order)];
    let Some(mut all) = parts.into_iter().flatten().reduce(|a, b| a.hull(&b, order)) else {
        return picked;
    };
    // The run is disjoint and sorted, so one widening by its outermost files is the fixpoint.
    let span = run.overlapping_span(&all, order);
    if let Some(files) = hull(&run.files()[span.clone()], order) {
        all = all.hull(&files, order);
    }
    debug_assert_eq!(run.overlapping_span(&all, order), span);
    span.collect()
}

/// Adds the ranges of `files` to a sorted list of disjoint ranges.
fn widen(cover: &mut Vec<KeyRange>, files: &[FileRef], order: &dyn Comparator) {
    let mut all = std::mem::take(cover);
    all.extend(files.iter().map(|f| f.range.clone()));
    all.sort_by(|a, b| order.compare(&a.lo, &b.lo));
    for r in all {
        match cover.last_mut() {
            Some(last) if last.overlaps(&r, order) => *last = last.hull(&r, order),
            _ => cover.push(r),
        }
    }
}
