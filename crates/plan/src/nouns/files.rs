//! What several files are together: their range, their order as inputs, their bytes.

use lithify_base::{Comparator, KeyRange};
use lithify_lsm::FileRef;

/// The smallest range that holds all files; `None` if there are none.
pub fn hull(files: &[FileRef], order: &dyn Comparator) -> Option<KeyRange> {
    let (first, rest) = files.split_first()?;
    let (mut lo, mut hi) = (&first.range.lo, &first.range.hi);
    for f in rest {
        if order.compare(&f.range.lo, lo).is_lt() {
            lo = &f.range.lo;
        }
        if f.range.hi.cmp(hi, order).is_gt() {
            hi = &f.range.hi;
        }
    }
    Some(KeyRange { lo: lo.clone(), hi: hi.clone() })
}

/// Sorts inputs newest position first, each position in key order.
pub fn sort_inputs(files: &mut [FileRef], order: &dyn Comparator) {
    files.sort_by(|a, b| a.pos.cmp(&b.pos).then_with(|| order.compare(&a.range.lo, &b.range.lo)));
}

/// Bytes of some files.
pub fn bytes(files: &[FileRef]) -> u64 {
    files.iter().fold(0, |s, f| s.saturating_add(f.bytes))
}
