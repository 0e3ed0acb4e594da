//! A position in an engine that has ranges as Rust's maps have: one iterator forward, one backward.
//!
//! Keeps: a step goes on with the range that is open; a step the other way opens one from the key here.
//! Leaves to others: what a range reads, and when.

use std::ops::Bound;

use anyhow::Result;

use crate::store::StoreIter;

/// Entries in key order, or against it.
pub type Walk<K, V> = Box<dyn Iterator<Item = Result<(K, V)>>>;

/// An unchanging state of a store, walked by ranges.
pub trait Ranges {
    /// Bytes of a key.
    type Key: AsRef<[u8]>;
    /// Bytes of a value.
    type Value: AsRef<[u8]>;
    /// The entries from `from` on.
    fn forward(&self, from: Bound<&[u8]>) -> Walk<Self::Key, Self::Value>;
    /// The entries down from `to`.
    fn backward(&self, to: Bound<&[u8]>) -> Walk<Self::Key, Self::Value>;
}

/// A range that is open, and which way it goes.
type Open<R> = (Way, Walk<<R as Ranges>::Key, <R as Ranges>::Value>);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Forward,
    Backward,
}

/// A [`StoreIter`] over ranges.
pub struct RangeIter<R: Ranges> {
    ranges: R,
    walk: Option<Open<R>>,
    here: Option<(R::Key, R::Value)>,
    error: Option<anyhow::Error>,
}

impl<R: Ranges> RangeIter<R> {
    /// Positioned nowhere.
    pub fn new(ranges: R) -> RangeIter<R> {
        RangeIter { ranges, walk: None, here: None, error: None }
    }

    fn start(&mut self, way: Way, bound: Bound<&[u8]>) {
        let walk = match way {
            Way::Forward => self.ranges.forward(bound),
            Way::Backward => self.ranges.backward(bound),
        };
        self.walk = Some((way, walk));
        self.step();
    }

    fn step(&mut self) {
        let next = self.walk.as_mut().and_then(|(_, walk)| walk.next()).transpose();
        match next {
            Ok(entry) => self.here = entry,
            Err(error) => (self.here, self.error) = (None, Some(error)),
        }
    }

    fn go(&mut self, way: Way) {
        if self.walk.as_ref().is_some_and(|(open, _)| *open == way) {
            return self.step();
        }
        let Some((key, _)) = self.here.take() else { return };
        self.start(way, Bound::Excluded(key.as_ref()));
    }
}

impl<R: Ranges> StoreIter for RangeIter<R> {
    fn seek_to_first(&mut self) {
        self.start(Way::Forward, Bound::Unbounded);
    }
    fn seek_to_last(&mut self) {
        self.start(Way::Backward, Bound::Unbounded);
    }
    fn seek(&mut self, key: &[u8]) {
        self.start(Way::Forward, Bound::Included(key));
    }
    fn next(&mut self) {
        self.go(Way::Forward);
    }
    fn prev(&mut self) {
        self.go(Way::Backward);
    }
    fn valid(&self) -> bool {
        self.here.is_some()
    }
    fn key(&self) -> &[u8] {
        self.here.as_ref().map_or(&[], |(key, _)| key.as_ref())
    }
    fn value(&self) -> &[u8] {
        self.here.as_ref().map_or(&[], |(_, value)| value.as_ref())
    }
    fn status(&self) -> Result<()> {
        self.error.as_ref().map_or(Ok(()), |error| Err(anyhow::anyhow!("{error:#}")))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    struct Map(BTreeMap<Vec<u8>, Vec<u8>>);

    impl Ranges for Map {
        type Key = Vec<u8>;
        type Value = Vec<u8>;
        fn forward(&self, from: Bound<&[u8]>) -> Walk<Vec<u8>, Vec<u8>> {
            let range = self.0.range::<[u8], _>((from, Bound::Unbounded));
            let all: Vec<_> = range.map(|(k, v)| Ok((k.clone(), v.clone()))).collect();
            Box::new(all.into_iter())
        }
        fn backward(&self, to: Bound<&[u8]>) -> Walk<Vec<u8>, Vec<u8>> {
            let range = self.0.range::<[u8], _>((Bound::Unbounded, to)).rev();
            let all: Vec<_> = range.map(|(k, v)| Ok((k.clone(), v.clone()))).collect();
            Box::new(all.into_iter())
        }
    }

    #[test]
    fn a_walk_turns_around_where_it_is() {
        let entries = [b"a", b"c", b"e"].map(|key| (key.to_vec(), vec![key[0]; 3]));
        let mut iter = RangeIter::new(Map(entries.into_iter().collect()));
        assert!(!iter.valid());
        iter.seek(b"b");
        assert_eq!((iter.key(), iter.value()), (&b"c"[..], &b"ccc"[..]));
        iter.prev();
        assert_eq!(iter.key(), b"a");
        iter.next();
        iter.next();
        assert_eq!(iter.key(), b"e");
        iter.next();
        assert!(!iter.valid());
        iter.seek_to_last();
        iter.prev();
        iter.next();
        assert_eq!(iter.key(), b"e");
        iter.seek_to_first();
        assert_eq!(iter.key(), b"a");
        iter.prev();
        assert!(!iter.valid());
        iter.status().unwrap();
    }
}
