//! Ranges of user keys. The end may be included (the last key of a file) or not (the end of a
//! range deletion), and both occur as file bounds, so the flag travels with the key.

use std::cmp::Ordering;

use crate::comparator::Comparator;
use crate::key::Key;

/// Upper end of a range.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct End {
    /// The key at the end.
    pub key: Key,
    /// Whether `key` itself belongs to the range.
    pub inclusive: bool,
}

/// A non-empty range of user keys `[lo, hi]` or `[lo, hi)`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KeyRange {
    /// First key, included.
    pub lo: Key,
    /// End.
    pub hi: End,
}

impl End {
    /// An end that includes `key`.
    pub fn incl(key: impl Into<Key>) -> End {
        End { key: key.into(), inclusive: true }
    }
    /// An end just before `key`.
    pub fn excl(key: impl Into<Key>) -> End {
        End { key: key.into(), inclusive: false }
    }
    /// Which end reaches further.
    pub fn cmp(&self, other: &End, order: &dyn Comparator) -> Ordering {
        order.compare(&self.key, &other.key).then(self.inclusive.cmp(&other.inclusive))
    }
    /// True if `key` lies beyond this end.
    pub fn is_before(&self, key: &[u8], order: &dyn Comparator) -> bool {
        match order.compare(&self.key, key) {
            Ordering::Less => true,
            Ordering::Equal => !self.inclusive,
            Ordering::Greater => false,
        }
    }
}

impl KeyRange {
    /// The range `[lo, hi]`.
    pub fn incl(lo: impl Into<Key>, hi: impl Into<Key>) -> KeyRange {
        KeyRange { lo: lo.into(), hi: End::incl(hi) }
    }
    /// The range `[lo, hi)`.
    pub fn excl(lo: impl Into<Key>, hi: impl Into<Key>) -> KeyRange {
        KeyRange { lo: lo.into(), hi: End::excl(hi) }
    }
    /// True if `key` lies inside.
    pub fn contains(&self, key: &[u8], order: &dyn Comparator) -> bool {
        order.compare(&self.lo, key).is_le() && !self.hi.is_before(key, order)
    }
    /// True if the two ranges share a key (as far as bounds can tell).
    pub fn overlaps(&self, other: &KeyRange, order: &dyn Comparator) -> bool {
        !self.hi.is_before(&other.lo, order) && !other.hi.is_before(&self.lo, order)
    }
    /// True if `other` lies wholly inside.
    pub fn covers(&self, other: &KeyRange, order: &dyn Comparator) -> bool {
        order.compare(&self.lo, &other.lo).is_le() && self.hi.cmp(&other.hi, order).is_ge()
    }
    /// True if every key of this range is smaller than every key of `other`.
    pub fn is_before(&self, other: &KeyRange, order: &dyn Comparator) -> bool {
        self.hi.is_before(&other.lo, order)
    }
    /// The smallest range that holds both.
    pub fn hull(&self, other: &KeyRange, order: &dyn Comparator) -> KeyRange {
        let lo = if order.compare(&other.lo, &self.lo).is_lt() { &other.lo } else { &self.lo };
        let hi = if other.hi.cmp(&self.hi, order).is_gt() { &other.hi } else { &self.hi };
        KeyRange { lo: lo.clone(), hi: hi.clone() }
    }
    /// The part that lies in both, if any.
    pub fn clamp(&self, other: &KeyRange, order: &dyn Comparator) -> Option<KeyRange> {
        if !self.overlaps(other, order) {
            return None;
        }
        let lo = if order.compare(&other.lo, &self.lo).is_gt() { &other.lo } else { &self.lo };
        let hi = if other.hi.cmp(&self.hi, order).is_lt() { &other.hi } else { &self.hi };
        Some(KeyRange { lo: lo.clone(), hi: hi.clone() })
    }
}
