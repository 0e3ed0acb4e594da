//! Where a compaction is cut into parts that are merged side by side: at user keys, so that each
//! part has about the same number of input bytes.
//!
//! The indexes of the inputs are open by then. A few anchors of each file say how many of its bytes
//! lie up to which key, and that is all that is looked at: the answer depends on the inputs and on how
//! many parts are wanted, never on who is free to work on them.
//!
//! Worked example, two parts: file A has anchors `f` and `m` with 10 bytes up to each, file B `k` with
//! 10. In key order 10 bytes lie up to `f`, 20 up to `k`, 30 up to `m`; half is 15, and the parts meet
//! at `f` or `k`, which are equally near: at `f`, the first.

use lithify_base::{Comparator, End, Key};
use lithify_merge::JobRange;

use crate::recipe::InputRun;

/// Anchors of one file: with so many, parts of a job over few files still come out even.
const ANCHORS: usize = 128;

/// A key of an input, and the bytes between the file's anchor before and this one.
#[derive(Clone, Debug)]
struct Anchor {
    key: Key,
    bytes: u64,
}

/// A part to be: its user keys, and about how many input bytes lie there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) range: JobRange,
    pub(crate) bytes: u64,
}

/// The whole as at most `most` parts, in key order; at least one, which then has no ends.
pub(crate) fn cut(runs: &[InputRun], most: u32, order: &dyn Comparator) -> Vec<Part> {
    match most {
        0 | 1 => vec![Part { range: JobRange::default(), bytes: 0 }],
        _ => cut_at(anchors(runs), most, order),
    }
}

fn anchors(runs: &[InputRun]) -> Vec<Anchor> {
    let mut all = Vec::new();
    for (meta, input) in runs.iter().flat_map(|run| &run.files) {
        // Where an old file begins a new one may, too.
        all.push(Anchor { key: meta.range.lo.clone(), bytes: 0 });
        let blocks = input.block_fences();
        let step = blocks.len().div_ceil(ANCHORS).max(1);
        let (mut bytes, last) = (0, blocks.len());
        for (i, block) in (1..).zip(blocks) {
            bytes += u64::from(block.at.size);
            if i % step == 0 || i == last {
                let bytes = std::mem::take(&mut bytes);
                all.push(Anchor { key: block.separator.into(), bytes });
            }
        }
    }
    all
}

fn cut_at(mut anchors: Vec<Anchor>, most: u32, order: &dyn Comparator) -> Vec<Part> {
    anchors.sort_by(|a, b| order.compare(&a.key, &b.key));
    let total: u64 = anchors.iter().map(|a| a.bytes).sum();
    let share = |no: u32| (u128::from(total) * u128::from(no) / u128::from(most)) as u64;
    let mut parts = Vec::new();
    let (mut lo, mut from) = (None, 0);
    let (mut sum, mut no) = (0, 1);
    let mut anchors = anchors.iter().peekable();
    while let Some(anchor) = anchors.next() {
        sum += anchor.bytes;
        // Of anchors at one key only the last knows all bytes up to it.
        let next = anchors.peek();
        if next.is_some_and(|n| order.compare(&n.key, &anchor.key).is_eq()) {
            continue;
        }
        let behind = next.map_or(total, |n| sum + n.bytes);
        let nearest = |no| share(no).saturating_sub(sum) <= behind.saturating_sub(share(no));
        if no < most && sum > from && sum < total && nearest(no) {
            let hi = End { key: anchor.key.clone(), inclusive: false };
            let range = JobRange { lo: lo.replace(anchor.key.clone()), hi: Some(hi) };
            parts.push(Part { range, bytes: sum - from });
            from = sum;
            // Where one anchor is as heavy as several shares, there are fewer parts.
            while no < most && nearest(no) {
                no += 1;
            }
        }
    }
    parts.push(Part { range: JobRange { lo, hi: None }, bytes: total - from });
    parts
}

#[cfg(test)]
mod tests {
    use lithify_base::bytewise;

    use super::*;

    fn of(anchors: &[(&str, u64)], most: u32) -> Vec<(String, u64)> {
        let anchors =
            anchors.iter().map(|&(key, bytes)| Anchor { key: key.as_bytes().into(), bytes });
        let order = bytewise();
        let parts = cut_at(anchors.collect(), most, &*order);
        assert_eq!(parts[0].range.lo, None);
        assert_eq!(parts.last().unwrap().range.hi, None);
        for pair in parts.windows(2) {
            let hi = pair[0].range.hi.clone().unwrap();
            assert_eq!(Some(hi.key), pair[1].range.lo, "parts meet");
            assert!(!hi.inclusive);
        }
        let name = |p: &Part| {
            p.range.lo.as_ref().map_or(String::new(), |k| String::from_utf8_lossy(k).into_owned())
        };
        parts.iter().map(|p| (name(p), p.bytes)).collect()
    }

    fn named(parts: &[(&str, u64)]) -> Vec<(String, u64)> {
        parts.iter().map(|&(key, bytes)| (key.to_owned(), bytes)).collect()
    }

    #[test]
    fn parts_are_even() {
        let example = [("a", 0), ("f", 10), ("m", 10), ("b", 0), ("k", 10)];
        assert_eq!(of(&example, 2), named(&[("", 10), ("f", 20)]));
        assert_eq!(of(&example, 3), named(&[("", 10), ("f", 10), ("k", 10)]));
        let letters: Vec<String> = ('a'..='p').map(String::from).collect();
        let even: Vec<(&str, u64)> = letters.iter().map(|k| (&k[..], 7)).collect();
        assert_eq!(of(&even, 4), named(&[("", 28), ("d", 28), ("h", 28), ("l", 28)]));
    }

    #[test]
    fn what_cannot_be_cut_stays_whole() {
        assert_eq!(of(&[], 4), named(&[("", 0)]));
        assert_eq!(of(&[("k", 100)], 4), named(&[("", 100)]));
        assert_eq!(of(&[("k", 50), ("k", 50)], 4), named(&[("", 100)]), "one key");
        assert_eq!(of(&[("a", 0), ("k", 0)], 2), named(&[("", 0)]), "only tombstones");
    }

    #[test]
    fn a_heavy_anchor_takes_several_shares() {
        let heavy = [("b", 5), ("c", 90), ("d", 5)];
        assert_eq!(of(&heavy, 4), named(&[("", 5), ("b", 90), ("c", 5)]));
        assert_eq!(of(&[("b", 1), ("c", 1), ("d", 98)], 2), named(&[("", 2), ("c", 98)]));
    }
}
