//! Options of a single read, and ranges of keys as people write them.

use std::ops::{Bound, Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

use lithify_base::{Comparator, Error, Key, Result};

use crate::snapshot::Snapshot;

/// Options of one read or iterator.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// Read the database as of this snapshot; `None` reads what is there now.
    pub snapshot: Option<Snapshot>,
    /// An iterator shows no key below this one.
    pub lower_bound: Option<Key>,
    /// An iterator shows no key from this one on.
    pub upper_bound: Option<Key>,
    /// An iterator shows only keys that begin with these bytes. None is made where the order of keys is not byte order
    /// (`InvalidArgument`), as it need not have them side by side then.
    pub prefix: Option<Key>,
    /// An iterator that was moved to a key shows only keys of the same prefix, by the
    /// prefix extractor, and ends at another; moved to the first or
    /// last key, those of its prefix. It may leave out tables whose filters have no such prefix. A move to
    /// a key without a prefix, or without an extractor, is like any other.
    pub prefix_same_as_start: bool,
    /// An iterator leaves the blocks it fetches out of the cache: right for one-off scans. Reads of
    /// single keys always cache what they fetch.
    pub skip_cache_fill: bool,
    /// Only memtables, cached blocks and what is known of open tables is looked at. Where that does not
    /// decide, the read fails with `Stalled`, as does an iterator's move; what it would have read is unknown.
    pub cache_only: bool,
}

impl ReadOptions {
    /// At a snapshot.
    pub fn at(snapshot: &Snapshot) -> ReadOptions {
        ReadOptions { snapshot: Some(snapshot.clone()), ..ReadOptions::default() }
    }
    /// Only keys that begin with [`prefix`](ReadOptions::prefix).
    #[must_use]
    pub fn with_prefix(mut self, prefix: impl AsRef<[u8]>) -> ReadOptions {
        self.prefix = Some(prefix.as_ref().into());
        self
    }
    /// Only keys from `lower` on.
    #[must_use]
    pub fn with_lower_bound(mut self, lower: impl AsRef<[u8]>) -> ReadOptions {
        self.lower_bound = Some(lower.as_ref().into());
        self
    }
    /// Only keys below `upper`.
    #[must_use]
    pub fn with_upper_bound(mut self, upper: impl AsRef<[u8]>) -> ReadOptions {
        self.upper_bound = Some(upper.as_ref().into());
        self
    }
    /// Only keys from `lower` on and below `upper`.
    #[must_use]
    pub fn with_bounds(
        mut self,
        lower: Option<impl AsRef<[u8]>>,
        upper: Option<impl AsRef<[u8]>>,
    ) -> ReadOptions {
        self.lower_bound = lower.map(|k| k.as_ref().into());
        self.upper_bound = upper.map(|k| k.as_ref().into());
        self
    }
}

impl ReadOptions {
    /// What an iterator shows in this order: the first key, and the first one beyond.
    ///
    /// # Errors
    /// `InvalidArgument` for a prefix if this is not byte order.
    pub(crate) fn bounds(&self, order: &dyn Comparator) -> Result<(Option<Key>, Option<Key>)> {
        let (lower, upper) = (self.lower_bound.clone(), self.upper_bound.clone());
        let Some(prefix) = self.prefix.as_ref().filter(|prefix| !prefix.is_empty()) else {
            return Ok((lower, upper));
        };
        if !order.is_bytewise() {
            return Err(Error::invalid(format!(
                "keys that begin alike need not be one range in the order `{}`: walk it by bounds, or with a prefix \
                 extractor and `prefix_same_as_start`",
                order.name()
            )));
        }
        let end = end_of_prefix(prefix);
        let later = |a: Key, b: Key| if order.compare(&a, &b).is_ge() { a } else { b };
        let lower = lower.into_iter().fold(prefix.clone(), &later);
        let upper = match (upper, end) {
            (Some(a), Some(b)) => Some(if order.compare(&a, &b).is_le() { a } else { b }),
            (a, b) => a.or(b),
        };
        Ok((Some(lower), upper))
    }
}

/// What follows every key that begins with `prefix`, in byte order: the prefix with its last byte below 0xff raised, and
/// cut there. `None` where no key does.
fn end_of_prefix(prefix: &[u8]) -> Option<Key> {
    prefix.iter().rposition(|&b| b != 0xff).map(|i| {
        let mut end = prefix[..=i].to_vec();
        end[i] += 1;
        end.into()
    })
}

/// A range of keys: any of Rust's ranges over whatever has bytes, such as `"a".."b"`, `key..=last`, `[7]..` and
/// `..`, or a pair of [`Bound`]s. One whose end is not above its start has no keys.
pub trait KeyBounds {
    /// Where it begins.
    fn first(&self) -> Bound<&[u8]>;
    /// Where it ends.
    fn last(&self) -> Bound<&[u8]>;
}

/// An implementation for a form of ranges: what its two ends are.
macro_rules! bounds {
    ($form:ident, $self:ident => $first:expr, $last:expr) => {
        impl<K: AsRef<[u8]>> KeyBounds for $form<K> {
            fn first(&$self) -> Bound<&[u8]> {
                $first
            }
            fn last(&$self) -> Bound<&[u8]> {
                $last
            }
        }
    };
}

bounds!(Range, self => Bound::Included(self.start.as_ref()), Bound::Excluded(self.end.as_ref()));
bounds!(RangeInclusive, self => Bound::Included(self.start().as_ref()), Bound::Included(self.end().as_ref()));
bounds!(RangeFrom, self => Bound::Included(self.start.as_ref()), Bound::Unbounded);
bounds!(RangeTo, self => Bound::Unbounded, Bound::Excluded(self.end.as_ref()));
bounds!(RangeToInclusive, self => Bound::Unbounded, Bound::Included(self.end.as_ref()));

impl KeyBounds for RangeFull {
    fn first(&self) -> Bound<&[u8]> {
        Bound::Unbounded
    }
    fn last(&self) -> Bound<&[u8]> {
        Bound::Unbounded
    }
}

impl<A: AsRef<[u8]>, B: AsRef<[u8]>> KeyBounds for (Bound<A>, Bound<B>) {
    fn first(&self) -> Bound<&[u8]> {
        self.0.as_ref().map(AsRef::as_ref)
    }
    fn last(&self) -> Bound<&[u8]> {
        self.1.as_ref().map(AsRef::as_ref)
    }
}

/// What every key from `lower` on and below `upper` begins with, in byte order.
pub fn common_start<'a>(lower: &'a [u8], upper: &[u8]) -> &'a [u8] {
    let mut same = lower.iter().zip(upper).take_while(|(a, b)| a == b).count();
    // Below `ac` and not below `ab` is what begins with `ab`; not below `ab\xff`, with that.
    let next = lower.get(same).and_then(|b| b.checked_add(1));
    if upper.len() == same + 1 && next.is_some() && next == upper.last().copied() {
        same += 1;
        same += lower[same..].iter().take_while(|&&b| b == 0xff).count();
    }
    &lower[..same]
}

#[cfg(test)]
mod tests {
    use super::*;
    use lithify_base::{Bytewise, ReverseBytewise};

    #[test]
    fn what_bounds_have_in_common_begins_every_key_between() {
        for (lower, upper, common) in [
            (&b"abc"[..], &b"abd"[..], &b"abc"[..]),
            (b"abc", b"abe", b"ab"),
            (b"abc", b"abd\0", b"ab"),
            (b"ab\xff\xff1", b"ac", b"ab\xff\xff"),
            (b"ab\xff", b"ab\xff\xff", b"ab\xff"),
            (b"a", b"b", b"a"),
            (b"", b"b", b""),
            (b"abc", b"abc", b"abc"),
            (b"b", b"a", b""),
        ] {
            assert_eq!(common_start(lower, upper), common, "{lower:?} {upper:?}");
            // Every key of up to five such bytes between the bounds.
            let bytes = [0, b'a', b'b', b'c', 0xff];
            for n in 0..5usize.pow(5) {
                let key: Vec<u8> = (0..5).map(|i| bytes[n / 5usize.pow(i) % 5]).collect();
                for key in (0..=5).map(|len| &key[..len]) {
                    let between = lower <= key && key < upper;
                    assert!(!between || key.starts_with(common), "{lower:?} {upper:?} {key:?}");
                }
            }
        }
    }

    #[test]
    fn a_prefix_ends_where_its_successor_starts() {
        let options = |p: &[u8]| ReadOptions::default().with_prefix(p);
        let bounds = |options: ReadOptions| {
            let (lower, upper) = options.bounds(&Bytewise).unwrap();
            (lower.map(|k| k.to_vec()), upper.map(|k| k.to_vec()))
        };
        let some = |lower: &[u8], upper: &[u8]| (Some(lower.to_vec()), Some(upper.to_vec()));
        assert_eq!(bounds(options(b"ab")), some(b"ab", b"ac"));
        assert_eq!(bounds(options(b"a\xff\xff")), some(b"a\xff\xff", b"b"));
        assert_eq!(bounds(options(b"\xff")), (Some(b"\xff".to_vec()), None));
        assert_eq!(bounds(options(b"")), (None, None));
        // Bounds narrow it, and do not widen it.
        let with =
            |lower: &[u8], upper: &[u8]| options(b"ab").with_bounds(Some(lower), Some(upper));
        assert_eq!(bounds(with(b"a", b"b")), some(b"ab", b"ac"));
        assert_eq!(bounds(with(b"ab3", b"ab7")), some(b"ab3", b"ab7"));
        assert_eq!(bounds(with(b"ab3", b"b")), some(b"ab3", b"ac"));
    }

    /// Short keys first: `ab`, `b` and then `abc`.
    struct ByLength;

    impl Comparator for ByLength {
        fn name(&self) -> &str {
            "by length"
        }
        fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
            a.len().cmp(&b.len()).then(a.cmp(b))
        }
    }

    #[test]
    fn a_prefix_is_refused_but_in_byte_order() {
        for order in [&ReverseBytewise as &dyn Comparator, &ByLength] {
            for prefix in [&b"ab"[..], b"\xff"] {
                let refused = ReadOptions::default().with_prefix(prefix).bounds(order).unwrap_err();
                assert!(refused.to_string().contains(order.name()), "{refused}");
            }
        }
        let all = ReadOptions::default().with_prefix(b"").bounds(&ReverseBytewise);
        assert_eq!(all.unwrap(), (None, None));
    }
}
