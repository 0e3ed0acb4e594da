//! Range tombstones as fragments: disjoint intervals, each with every tombstone over it.
//!
//! Keeps: fragments are sorted, never overlap, and each lists its tombstones newest first; a
//! fragment starts and ends wherever an input tombstone does (D5).
//! Leaves to others: which tombstones survive a compaction (`gc`) and how files store
//! them.
//!
//! Worked example: `[a, m)@9` and `[d, z)@5` become `[a, d): 9`, `[d, m): 9 5`, `[m, z): 5`.
//!
//! A tombstone starts and ends just before a key. A table's bounds may also end just after a key, its
//! last one, and what lies beyond them does not count ([`Fragments::clamp`]). So a fragment starts and
//! ends at an [`End`], either just before a key or just after it. In byte order the place just after
//! `k` is the place just before `k` with a zero byte behind it, and fragments always take that name.
//! Other orders may have no key there: such a fragment is right for every reader, but no file can
//! store it ([`Fragments::to_tombstones`]).
//!
//! Of deletions that lie in each other, as of a log that is cut at its beginning again and again, all together have
//! as many pairs as the square of their number. So those who read at one moment ask for the newest ones alone
//! ([`Fragments::newest`]), a flush for those that some snapshot tells apart ([`Fragments::for_snapshots`]), and a table,
//! which is read at any moment, may only have so many ([`Fragments::of_table`]).

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;
use std::ops::Bound;

use lithify_base::zoo::{self, Bug};
use lithify_base::{Comparator, End, Error, ErrorKind, Key, KeyRange, Result, Seq};

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

/// An interval over which the set of tombstones is the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Where it starts: just before this key or, if the end is inclusive, just after it.
    pub lo: End,
    /// Where it ends.
    pub hi: End,
    /// Tombstones over it, newest first; never empty.
    pub tombs: Vec<Tomb>,
}

/// A tombstone over an interval, of which bounds may have cut something off.
struct Span {
    lo: End,
    hi: End,
    tomb: Tomb,
}

/// Most pairs of fragments and tombstones that a table's may make: 256 MiB.
const PAIRS_MAX: u64 = if cfg!(test) { 1 << 16 } else { 1 << 24 };

/// The tombstones over a fragment, newest first and of these the newest run's, with how many are alike.
type Active = BTreeMap<(Reverse<Seq>, u16), usize>;

/// Takes one out.
fn leave(active: &mut Active, tomb: Tomb) {
    let key = (Reverse(tomb.seq), tomb.run);
    match active.get_mut(&key) {
        Some(alike) if *alike > 1 => *alike -= 1,
        _ => drop(active.remove(&key)),
    }
}

/// Which of the tombstones over a fragment it keeps.
enum Keep<'a> {
    /// One of each sequence number.
    All,
    /// The same, until there are more than so many pairs of fragments and tombstones.
    AtMost(u64),
    /// The newest of each stripe that these snapshots make.
    Of(&'a [Seq]),
}

impl Keep<'_> {
    fn of(&self, active: &Active) -> Vec<Tomb> {
        let mut tombs: Vec<Tomb> = Vec::new();
        let Keep::Of(snapshots) = self else {
            tombs.extend(active.keys().map(|&(Reverse(seq), run)| Tomb { seq, run }));
            tombs.dedup_by_key(|t| t.seq);
            return tombs;
        };
        let mut from = Bound::Unbounded;
        while let Some((&(Reverse(seq), run), _)) = active.range((from, Bound::Unbounded)).next() {
            tombs.push(Tomb { seq, run });
            let Some(below) = snapshots.partition_point(|&s| s < seq).checked_sub(1) else { break };
            from = Bound::Included((Reverse(snapshots[below]), 0));
        }
        tombs
    }
}

/// Tombstones as written, with their intervals.
fn spans(raw: impl IntoIterator<Item = RangeTombstone>) -> Vec<Span> {
    let span = |t: RangeTombstone| Span {
        lo: End::excl(t.lo),
        hi: End::excl(t.hi),
        tomb: Tomb { seq: t.seq, run: t.run },
    };
    raw.into_iter().map(span).collect()
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
    /// True if it starts at or below `key`.
    fn starts_by(&self, key: &[u8], order: &dyn Comparator) -> bool {
        self.lo.is_before(key, order)
    }
}

impl Fragments {
    /// Splits overlapping tombstones at every one of their ends. Empty and inverted ranges are
    /// dropped; of equal sequence numbers over one interval the newest run's is kept.
    pub fn from_raw(
        raw: impl IntoIterator<Item = RangeTombstone>,
        order: &dyn Comparator,
    ) -> Fragments {
        Fragments::from_spans(spans(raw), &Keep::All, order)
    }
    /// The same of a table, whose block may be anything.
    ///
    /// # Errors
    /// `LimitExceeded` if they lie over each other so much that the fragments would take more than 256 MiB. Those that are
    /// fragments already are never too many.
    pub fn of_table(
        raw: impl IntoIterator<Item = RangeTombstone>,
        order: &dyn Comparator,
    ) -> Result<Fragments> {
        let spans = spans(raw);
        let number = spans.len();
        // What is stored in fragments, as here and in RocksDB, becomes no more.
        let most = PAIRS_MAX.max(number as u64);
        let out = Fragments::from_spans(spans, &Keep::AtMost(most), order);
        if out.tombs() > most {
            let what = format!(
                "{number} range deletions of a table lie over each other in more than {most} places, which is \
                 more than is kept in memory; rewrite it with the program that made it"
            );
            return Err(Error::new(ErrorKind::LimitExceeded, what));
        }
        Ok(out)
    }
    /// Those that a read of now sees: the newest over each key. Neighbours that are alike are one.
    pub fn newest(
        raw: impl IntoIterator<Item = RangeTombstone>,
        order: &dyn Comparator,
    ) -> Fragments {
        Fragments::for_snapshots(raw, &[], order)
    }
    /// Those that a read of now or at one of `snapshots`, which ascend, sees: the newest of each stripe. A merge that
    /// knows these snapshots makes the same of them as of all. Neighbours that are alike are one.
    pub fn for_snapshots(
        raw: impl IntoIterator<Item = RangeTombstone>,
        snapshots: &[Seq],
        order: &dyn Comparator,
    ) -> Fragments {
        Fragments::from_spans(spans(raw), &Keep::Of(snapshots), order)
    }
    /// The fragments of several sources together. Each source comes with the run that its tombstones
    /// are of from now on.
    pub fn union(
        sources: impl IntoIterator<Item = (u16, Fragments)>,
        order: &dyn Comparator,
    ) -> Fragments {
        let mut spans = Vec::new();
        for (run, source) in sources {
            for f in source.list {
                let tombs = f.tombs.iter().map(|t| Tomb { seq: t.seq, run });
                let span = |tomb| Span { lo: f.lo.clone(), hi: f.hi.clone(), tomb };
                spans.extend(tombs.map(span));
            }
        }
        Fragments::from_spans(spans, &Keep::All, order)
    }
    fn from_spans(mut spans: Vec<Span>, keep: &Keep<'_>, order: &dyn Comparator) -> Fragments {
        spans.retain(|t| t.lo.cmp(&t.hi, order).is_lt());
        spans.sort_by(|a, b| a.lo.cmp(&b.lo, order));
        let mut by_end: Vec<&Span> = spans.iter().collect();
        by_end.sort_by(|a, b| a.hi.cmp(&b.hi, order));
        let mut ends: Vec<&End> = spans.iter().flat_map(|t| [&t.lo, &t.hi]).collect();
        ends.sort_by(|a, b| a.cmp(b, order));
        ends.dedup_by(|a, b| a.cmp(b, order).is_eq());

        let (mut list, mut pairs): (Vec<Fragment>, u64) = (Vec::new(), 0);
        let mut active = Active::new();
        let (mut starting, mut ending) = (spans.iter().peekable(), by_end.into_iter().peekable());
        for pair in ends.windows(2) {
            let (lo, hi) = (pair[0], pair[1]);
            while let Some(t) = ending.next_if(|t| t.hi.cmp(lo, order).is_le()) {
                leave(&mut active, t.tomb);
            }
            while let Some(t) = starting.next_if(|t| t.lo.cmp(lo, order).is_le()) {
                *active.entry((Reverse(t.tomb.seq), t.tomb.run)).or_default() += 1;
            }
            if active.is_empty() {
                continue;
            }
            let tombs = keep.of(&active);
            pairs += tombs.len() as u64;
            let alike = |last: &&mut Fragment| {
                matches!(keep, Keep::Of(_)) && last.tombs == tombs && last.hi.cmp(lo, order).is_eq()
            };
            match list.last_mut().filter(alike) {
                Some(last) => last.hi = hi.clone(),
                None => list.push(Fragment { lo: lo.clone(), hi: hi.clone(), tombs }),
            }
            if matches!(keep, Keep::AtMost(most) if pairs > *most) {
                break;
            }
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
        let i = self.list.partition_point(|f| f.hi.is_before(key, order));
        self.list.get(i).filter(|f| f.starts_by(key, order))
    }
    /// The fragment that starts at `lo`, if any.
    pub(crate) fn starting_at(&self, lo: &End, order: &dyn Comparator) -> Option<&Fragment> {
        let i = self.list.partition_point(|f| f.lo.cmp(lo, order).is_lt());
        self.list.get(i).filter(|f| f.lo.cmp(lo, order).is_eq())
    }
    /// The newest tombstone over `key` that a read at `at` sees, as its sequence number: entries
    /// of `key` below it are deleted.
    pub fn covering_seq(&self, key: &[u8], at: Seq, order: &dyn Comparator) -> Option<Seq> {
        Some(self.find(key, order)?.newest_at(at)?.seq)
    }
    /// The parts inside the bounds of the file that holds these tombstones. RocksDB stores a range
    /// deletion whole in each output of a compaction; what lies outside of the bounds that its manifest
    /// gives to a table does not count.
    ///
    /// RocksDB may also cut the versions of one key over two tables. The bounds of the newer table
    /// include the key then, and `last` is the sequence number of the oldest version in it. Of the
    /// tombstones that reach beyond the key those above `last` count for the key; the older ones are for
    /// the versions in the next table, which has them too.
    pub fn clamp(&self, bounds: &KeyRange, last: Seq, order: &dyn Comparator) -> Fragments {
        let (lo, key) = (End::excl(bounds.lo.clone()), &bounds.hi.key);
        if zoo::on(Bug::InclusiveEndLost) && bounds.hi.inclusive {
            return self.within(Some(&lo), None, order);
        }
        let mut inside = self.within(Some(&lo), Some(&End::excl(key.clone())), order);
        let over = self.find(key, order).filter(|_| bounds.contains(key, order));
        let tombs = over.into_iter().flat_map(|f| &f.tombs).filter(|t| t.seq > last);
        let tombs: Vec<Tomb> = tombs.copied().collect();
        if !tombs.is_empty() {
            let hi = match order.is_bytewise() {
                true => End::excl([&key[..], &[0]].concat()),
                false => bounds.hi.clone(),
            };
            match inside.list.last_mut().filter(|f| f.hi.key == *key && f.tombs == tombs) {
                Some(before) => before.hi = hi,
                None => inside.list.push(Fragment { lo: End::excl(key.clone()), hi, tombs }),
            }
        }
        inside
    }
    /// The newest tombstone over `key` that a read at `at` sees, as its sequence number, among those
    /// that [`clamp`](Fragments::clamp) leaves.
    pub fn covering_seq_in(
        &self,
        (bounds, last): (&KeyRange, Seq),
        key: &[u8],
        at: Seq,
        order: &dyn Comparator,
    ) -> Option<Seq> {
        if self.is_empty() || !bounds.contains(key, order) {
            return None;
        }
        let is_last = bounds.hi.inclusive && order.compare(&bounds.hi.key, key).is_eq();
        self.covering_seq(key, at, order).filter(|&seq| !is_last || seq > last)
    }
    /// The parts inside `[lo, hi)`; an absent end is unbounded.
    pub fn between(&self, lo: Option<&Key>, hi: Option<&Key>, order: &dyn Comparator) -> Fragments {
        let end = |key: Option<&Key>| key.map(|key| End::excl(key.clone()));
        self.within(end(lo).as_ref(), end(hi).as_ref(), order)
    }
    fn within(&self, lo: Option<&End>, hi: Option<&End>, order: &dyn Comparator) -> Fragments {
        let mut list = Vec::new();
        let from = lo.map_or(0, |lo| self.list.partition_point(|f| f.hi.cmp(lo, order).is_le()));
        for f in &self.list[from..] {
            if hi.is_some_and(|hi| hi.cmp(&f.lo, order).is_le()) {
                break;
            }
            let lo = lo.filter(|lo| f.lo.cmp(lo, order) == Ordering::Less).unwrap_or(&f.lo);
            let hi = hi.filter(|hi| f.hi.cmp(hi, order) == Ordering::Greater).unwrap_or(&f.hi);
            if lo.cmp(hi, order).is_lt() {
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
    ///
    /// # Errors
    /// Unsupported if a fragment starts or ends just after a key, and so, as the order of keys is not
    /// byte order, at no key that a file could store.
    pub fn to_tombstones(&self) -> Result<Vec<RangeTombstone>> {
        let mut out = Vec::with_capacity(self.list.len());
        for f in &self.list {
            let (lo, hi) = (name(&f.lo)?, name(&f.hi)?);
            out.extend(f.tombs.iter().map(|t| RangeTombstone {
                lo: lo.clone(),
                hi: hi.clone(),
                seq: t.seq,
                run: t.run,
            }));
        }
        Ok(out)
    }
}

/// The key that `end` lies just before.
fn name(end: &End) -> Result<Key> {
    match end.inclusive {
        false => Ok(end.key.clone()),
        true => Err(Error::unsupported(format!(
            "a range deletion ends just after key {}, a place that no table in this order of keys can \
             store",
            end.key.escape_ascii()
        ))),
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
        while self.list.get(self.at).is_some_and(|f| f.hi.is_before(key, order)) {
            self.at += 1;
        }
        self.list.get(self.at).filter(|f| f.starts_by(key, order))
    }
    /// Moves to where `key` belongs, forwards or backwards.
    pub fn seek(&mut self, key: &[u8], order: &dyn Comparator) {
        self.at = self.list.partition_point(|f| f.hi.is_before(key, order));
    }
}

#[cfg(test)]
mod tests;
