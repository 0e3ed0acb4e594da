//! The naive twin of the memtable: a `BTreeMap` with the same answers, for tests and as the
//! yardstick of the bench. One thread, owned answers, no thought for speed.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use lithify_base::{ComparatorRef, Kind, Seq, Tag};

use crate::RangeTombstone;

/// An internal key that carries its order.
#[derive(Clone)]
struct Slot {
    user: Vec<u8>,
    tag: Tag,
    order: ComparatorRef,
}

impl Ord for Slot {
    fn cmp(&self, other: &Slot) -> Ordering {
        self.order.compare(&self.user, &other.user).then(other.tag.cmp(&self.tag))
    }
}
impl PartialOrd for Slot {
    fn partial_cmp(&self, other: &Slot) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl PartialEq for Slot {
    fn eq(&self, other: &Slot) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for Slot {}

/// An entry as the twin answers it: user key, tag, value.
pub type Entry = (Vec<u8>, Tag, Vec<u8>);

/// The twin of [`MemTable`](crate::MemTable).
pub struct Naive {
    order: ComparatorRef,
    entries: BTreeMap<Slot, Vec<u8>>,
    rangedels: Vec<RangeTombstone>,
}

impl Naive {
    /// An empty twin.
    pub fn new(order: ComparatorRef) -> Naive {
        Naive { order, entries: BTreeMap::new(), rangedels: Vec::new() }
    }
    fn slot(&self, user: &[u8], tag: Tag) -> Slot {
        Slot { user: user.to_vec(), tag, order: Arc::clone(&self.order) }
    }
    fn owned((slot, value): (&Slot, &Vec<u8>)) -> Entry {
        (slot.user.clone(), slot.tag, value.clone())
    }
    /// Adds an entry.
    pub fn add(&mut self, seq: Seq, kind: Kind, key: &[u8], value: &[u8]) {
        self.entries.insert(self.slot(key, Tag::new(seq, kind)), value.to_vec());
    }
    /// Adds a range tombstone unless the range is empty.
    pub fn add_range_delete(&mut self, seq: Seq, lo: &[u8], hi: &[u8]) {
        if self.order.compare(lo, hi).is_lt() {
            self.rangedels.push(RangeTombstone { lo: lo.into(), hi: hi.into(), seq });
        }
    }
    /// Entries of `key` up to `at`, newest first.
    pub fn versions(&self, key: &[u8], at: Seq) -> impl Iterator<Item = (Tag, &[u8])> {
        let order = self.order.clone();
        let key = key.to_vec();
        self.entries
            .range(self.slot(&key, Tag::seek(at))..)
            .take_while(move |(slot, _)| order.compare(&slot.user, &key).is_eq())
            .map(|(slot, value)| (slot.tag, value.as_slice()))
    }
    /// First entry at or behind `(user, tag)`.
    pub fn seek(&self, user: &[u8], tag: Tag) -> Option<Entry> {
        self.entries.range(self.slot(user, tag)..).next().map(Self::owned)
    }
    /// Last entry at or before `(user, tag)`.
    pub fn seek_for_prev(&self, user: &[u8], tag: Tag) -> Option<Entry> {
        self.entries.range(..=self.slot(user, tag)).next_back().map(Self::owned)
    }
    /// All entries in order.
    pub fn all(&self) -> impl DoubleEndedIterator<Item = (&[u8], Tag, &[u8])> {
        self.entries.iter().map(|(slot, value)| (slot.user.as_slice(), slot.tag, value.as_slice()))
    }
    /// The newest range tombstone over `key` up to `at`.
    pub fn covering(&self, key: &[u8], at: Seq) -> Option<Seq> {
        let inside = |t: &&RangeTombstone| {
            self.order.compare(&t.lo, key).is_le() && self.order.compare(key, &t.hi).is_lt()
        };
        self.rangedels.iter().filter(inside).map(|t| t.seq).filter(|&seq| seq <= at).max()
    }
}
