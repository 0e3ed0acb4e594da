//! Range tombstones as fragments: disjoint intervals, each with every tombstone over it.
//!
//! Keeps: fragments are sorted, never overlap, and each lists its tombstones newest first; a
//! fragment starts and ends wherever an input tombstone does (D5).
//! Leaves to others: which tombstones survive a compaction (`gc`) and how files store
//! them.
//!
//! Worked example: `[a, m)@9` and `[d, z)@5` become `[a, d): 9`, `[d, m): 9 5`, `[m, z): 5`.

use lithify_base::{Comparator, Key, KeyRange, Seq};

/// A range tombstone as written: the keys `[lo, hi)` have no value older than `seq`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeTombstone {
    /// First key deleted.
    pub lo: Key,
    /// First key not deleted.
    pub hi: Key,
    /// Sequence number; entries with a smaller one are hidden.
    pub seq: Seq,
    /// Position of the input run it came from (0 is the newest). Of no meaning to readers.
    pub run: u16,
}

/// One tombstone over a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tomb {
    /// Sequence number.
    pub seq: Seq,
    /// Position of the input run it came from.
    pub run: u16,
}

/// An interval `[lo, hi)` over which the set of tombstones is the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// First key, included.
    pub lo: Key,
    /// End, excluded.
    pub hi: Key,
    /// Tombstones over it, newest first; never empty.
    pub tombs: Vec<Tomb>,
}

/// Sorted, disjoint fragments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fragments {
    list: Vec<Fragment>,
}

impl Fragment {
    /// The newest tombstone with a sequence number of at most `at`.
    pub fn newest_at(&self, at: Seq) -> Option<Tomb> {
        let i = self.tombs.partition_point(|t| t.seq > at);
        self.tombs.get(i).copied()
    }
}

impl Fragments {
    /// Splits overlapping tombstones at every one of their ends. Empty and inverted ranges are
    /// dropped; of equal sequence numbers over one interval the newest run's is kept.
    pub fn from_raw(
        raw: impl IntoIterator<Item = RangeTombstone>,
        order: &dyn Comparator,
    ) -> Fragments {
        let mut raw: Vec<_> =
            raw.into_iter().filter(|t| order.compare(&t.lo, &t.hi).is_lt()).collect();
        raw.sort_by(|a, b| order.compare(&a.lo, &b.lo));
        let mut ends: Vec<Key> = raw.iter().flat_map(|t| [t.lo.clone(), t.hi.clone()]).collect();
        ends.sort_by(|a, b| order.compare(a, b));
        ends.dedup_by(|a, b| order.compare(a, b).is_eq());

        let mut list = Vec::new();
        let mut active: Vec<&RangeTombstone> = Vec::new();
        let mut waiting = raw.iter().peekable();
        for pair in ends.windows(2) {
            let (lo, hi) = (&pair[0], &pair[1]);
            active.retain(|t| order.compare(&t.hi, lo).is_gt());
            while let Some(t) = waiting.next_if(|t| order.compare(&t.lo, lo).is_le()) {
                active.push(t);
            }
            if active.is_empty() {
                continue;
            }
            let mut tombs: Vec<Tomb> =
                active.iter().map(|t| Tomb { seq: t.seq, run: t.run }).collect();
            tombs.sort_by_key(|t| (std::cmp::Reverse(t.seq), t.run));
            tombs.dedup_by_key(|t| t.seq);
            list.push(Fragment { lo: lo.clone(), hi: hi.clone(), tombs });
        }
        Fragments { list }
    }
    /// Takes fragments that already are sorted, disjoint and newest first.
    pub(crate) fn from_sorted(list: Vec<Fragment>) -> Fragments {
        Fragments { list }
    }
    /// The fragments, in key order.
    pub fn iter(&self) -> std::slice::Iter<'_, Fragment> {
        self.list.iter()
    }
    /// The fragments, in key order.
    pub fn as_slice(&self) -> &[Fragment] {
        &self.list
    }
    /// Number of fragments.
    pub fn len(&self) -> usize {
        self.list.len()
    }
    /// True if nothing is deleted.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
    /// Number of (fragment, tombstone) pairs: what the ledger counts.
    pub fn tombs(&self) -> u64 {
        self.list.iter().map(|f| f.tombs.len() as u64).sum()
    }
    /// The fragment over `key`, if any.
    pub fn find(&self, key: &[u8], order: &dyn Comparator) -> Option<&Fragment> {
        let i = self.list.partition_point(|f| order.compare(&f.hi, key).is_le());
        self.list.get(i).filter(|f| order.compare(&f.lo, key).is_le())
    }
    /// The newest tombstone over `key` that a read at `at` sees, as its sequence number: entries
    /// of `key` below it are deleted.
    pub fn covering_seq(&self, key: &[u8], at: Seq, order: &dyn Comparator) -> Option<Seq> {
        Some(self.find(key, order)?.newest_at(at)?.seq)
    }
    /// The parts inside the bounds of the file that holds these tombstones. An end that is
    /// included becomes the next possible key, which only byte order can name; in other orders
    /// fragments keep their upper end then.
    pub fn clamp(&self, bounds: &KeyRange, order: &dyn Comparator) -> Fragments {
        let end = match (bounds.hi.inclusive, order.is_bytewise()) {
            (false, _) => Some(bounds.hi.key.clone()),
            (true, true) => Some([&bounds.hi.key[..], &[0]].concat().into()),
            (true, false) => None,
        };
        self.between(Some(&bounds.lo), end.as_ref(), order)
    }
    /// The parts inside `[lo, hi)`; an absent end is unbounded.
    pub fn between(&self, lo: Option<&Key>, hi: Option<&Key>, order: &dyn Comparator) -> Fragments {
        let mut list = Vec::new();
        let from =
            lo.map_or(0, |lo| self.list.partition_point(|f| order.compare(&f.hi, lo).is_le()));
        for f in &self.list[from..] {
            if hi.is_some_and(|hi| order.compare(hi, &f.lo).is_le()) {
                break;
            }
            let lo = lo.filter(|lo| order.compare(&f.lo, lo).is_lt()).unwrap_or(&f.lo);
            let hi = hi.filter(|hi| order.compare(&f.hi, hi).is_gt()).unwrap_or(&f.hi);
            if order.compare(lo, hi).is_lt() {
                list.push(Fragment { lo: lo.clone(), hi: hi.clone(), tombs: f.tombs.clone() });
            }
        }
        Fragments { list }
    }
    /// A cursor for a scan in key order.
    pub fn cursor(&self) -> FragmentCursor<'_> {
        FragmentCursor { list: &self.list, at: 0 }
    }
    /// Every (interval, tombstone) pair, sorted by start and then newest first: the order of a
    /// file's range-deletion block.
    pub fn to_tombstones(&self) -> Vec<RangeTombstone> {
        self.list
            .iter()
            .flat_map(|f| {
                f.tombs.iter().map(|t| RangeTombstone {
                    lo: f.lo.clone(),
                    hi: f.hi.clone(),
                    seq: t.seq,
                    run: t.run,
                })
            })
            .collect()
    }
}

/// Finds the fragment over each key of an ascending scan, in amortised constant time.
#[derive(Clone, Debug)]
pub struct FragmentCursor<'a> {
    list: &'a [Fragment],
    at: usize,
}

impl<'a> FragmentCursor<'a> {
    /// The fragment over `key`. Keys must not descend between calls.
    pub fn at(&mut self, key: &[u8], order: &dyn Comparator) -> Option<&'a Fragment> {
        while self.list.get(self.at).is_some_and(|f| order.compare(&f.hi, key).is_le()) {
            self.at += 1;
        }
        self.list.get(self.at).filter(|f| order.compare(&f.lo, key).is_le())
    }
    /// Moves to where `key` belongs, forwards or backwards.
    pub fn seek(&mut self, key: &[u8], order: &dyn Comparator) {
        self.at = self.list.partition_point(|f| order.compare(&f.hi, key).is_le());
    }
}

#[cfg(test)]
mod tests;
