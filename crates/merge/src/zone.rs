//! Zones: the key space cut wherever a drop rule or a split could change its mind.
//!
//! Keeps: inside one zone, "is older data in use behind run r", "which fragment covers this key"
//! and "is this below the next split key" have one answer each, so a scan compares keys with a
//! single bound per batch instead of with a cursor per list.
//! Leaves to others: applying the answers (`gc`).
//!
//! Worked example: in_use(0) = `[c, f]`, a fragment `[e, k)` and a split at `k` give the zones
//! `..c`, `c..e`, `e..f` (f included), `f..k`, `k..`.

use lithify_base::{Comparator, Key, MAX_SEQ, Seq};

use crate::recipe::{InUse, Recipe};
use crate::tombstone::{Fragment, Fragments, Tomb};

/// Where a zone starts: at `key`, or just after it.
#[derive(Clone, Debug)]
struct Bound {
    key: Key,
    after: bool,
}

/// What changes at a bound. Leaving comes before entering where both happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    LeaveUse(u16),
    LeaveFragment,
    EnterUse(u16),
    EnterFragment(u32),
    Split,
}

/// All zones of a recipe, and where a scan stands in them.
#[derive(Debug)]
pub(crate) struct Zones {
    bounds: Vec<Bound>,
    changes: Vec<(u32, Change)>,
    /// First bound above the current zone, and first change not applied yet.
    at: usize,
    applied: usize,
    /// The current zone, by run: no older data in use.
    free: Vec<bool>,
    fragment: Option<u32>,
    /// Per fragment: smallest kept sequence number.
    kept_min: Vec<Seq>,
}

/// Counts of D5.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TombCounts {
    pub(crate) hidden: u64,
    pub(crate) elided: u64,
}

/// D5: the tombstones that stay, decided per fragment and before any clamping to files.
pub(crate) fn keep_tombstones(recipe: &Recipe) -> (Fragments, TombCounts) {
    let mut counts = TombCounts::default();
    let mut list = Vec::new();
    for f in recipe.tombstones.iter() {
        let mut tombs: Vec<Tomb> = Vec::new();
        for t in &f.tombs {
            let stripe = recipe.stripe(t.seq);
            if tombs.last().is_some_and(|l| recipe.stripe(l.seq) == stripe) {
                counts.hidden += 1;
            } else {
                tombs.push(*t);
            }
        }
        if tombs.last().is_some_and(|t| elidable(recipe, f, *t)) {
            tombs.pop();
            counts.elided += 1;
        }
        if !tombs.is_empty() {
            list.push(Fragment { lo: f.lo.clone(), hi: f.hi.clone(), tombs });
        }
    }
    (Fragments::from_sorted(list), counts)
}

fn elidable(recipe: &Recipe, f: &Fragment, t: Tomb) -> bool {
    recipe.drop_tombstones
        && recipe.stripe(t.seq) == 0
        && recipe
            .in_use
            .get(usize::from(t.run))
            .is_some_and(|u| !u.overlaps(&f.lo, &f.hi, &*recipe.order))
}

impl Zones {
    /// The zones of a recipe whose kept tombstones are `kept`; the scan stands before them all.
    pub(crate) fn new(recipe: &Recipe, kept: &Fragments) -> Zones {
        let mut marks: Vec<(Bound, Change)> = Vec::new();
        let mut mark = |key: &Key, after, change| {
            marks.push((Bound { key: key.clone(), after }, change));
        };
        for (run, used) in (0u16..).zip(&recipe.in_use) {
            if let InUse::Ranges(list) = used {
                for r in list {
                    mark(&r.lo, false, Change::EnterUse(run));
                    mark(&r.hi.key, r.hi.inclusive, Change::LeaveUse(run));
                }
            }
        }
        for (i, f) in (0u32..).zip(recipe.tombstones.iter()) {
            mark(&f.lo.key, f.lo.inclusive, Change::EnterFragment(i));
            mark(&f.hi.key, f.hi.inclusive, Change::LeaveFragment);
        }
        for key in recipe.hard_splits.iter().chain(&recipe.soft_splits) {
            mark(key, false, Change::Split);
        }
        let order = &*recipe.order;
        marks.sort_by(|(a, ca), (b, cb)| {
            order.compare(&a.key, &b.key).then(a.after.cmp(&b.after)).then(ca.cmp(cb))
        });
        let mut bounds: Vec<Bound> = Vec::new();
        let mut changes = Vec::new();
        for (b, change) in marks {
            let same = bounds
                .last()
                .is_some_and(|l| l.after == b.after && order.compare(&l.key, &b.key).is_eq());
            if !same {
                bounds.push(b);
            }
            changes.push((bounds.len() as u32 - 1, change));
        }
        let kept_min = recipe
            .tombstones
            .iter()
            .map(|f| {
                let kept = kept.starting_at(&f.lo, order);
                kept.and_then(|k| k.tombs.last()).map_or(MAX_SEQ, |t| t.seq)
            })
            .collect();
        let free = recipe.in_use.iter().map(|u| *u != InUse::All).collect();
        Zones { bounds, changes, at: 0, applied: 0, free, fragment: None, kept_min }
    }

    /// True if `key`, which is not below the current zone, lies in it.
    #[inline]
    pub(crate) fn holds(&self, key: &[u8], order: &dyn Comparator) -> bool {
        self.bounds.get(self.at).is_none_or(|b| is_below(key, b, order))
    }

    /// Moves on to the zone of `key`. True if a split key was passed.
    pub(crate) fn enter(&mut self, key: &[u8], order: &dyn Comparator) -> bool {
        let mut split = false;
        while self.bounds.get(self.at).is_some_and(|b| !is_below(key, b, order)) {
            split |= self.step();
        }
        split
    }

    /// Moves on by one zone. True if a split key was passed.
    fn step(&mut self) -> bool {
        let mut split = false;
        while let Some(&(bound, change)) = self.changes.get(self.applied) {
            if bound as usize != self.at {
                break;
            }
            self.applied += 1;
            match change {
                Change::EnterUse(run) => self.set_free(run, false),
                Change::LeaveUse(run) => self.set_free(run, true),
                Change::EnterFragment(i) => self.fragment = Some(i),
                Change::LeaveFragment => self.fragment = None,
                Change::Split => split = true,
            }
        }
        self.at += 1;
        split
    }

    /// Walks over all zones, from the first to the last, and tells of each: the key that it starts
    /// at, none for the first, and whether it starts just after that key; and what holds in it.
    pub(crate) fn walk(mut self, mut tell: impl FnMut(Option<(&Key, bool)>, &Zones)) -> Vec<Seq> {
        tell(None, &self);
        while self.at < self.bounds.len() {
            self.step();
            let Bound { key, after } = &self.bounds[self.at - 1];
            tell(Some((key, *after)), &self);
        }
        self.kept_min
    }

    fn set_free(&mut self, run: u16, free: bool) {
        if let Some(f) = self.free.get_mut(usize::from(run)) {
            *f = free;
        }
    }
    /// No non-input data older than `run` may hold a key of this zone.
    #[inline]
    pub(crate) fn is_free(&self, run: u16) -> bool {
        self.free.get(usize::from(run)).copied().unwrap_or(false)
    }
    /// No range tombstone covers a key of this zone.
    #[inline]
    pub(crate) fn is_bare(&self) -> bool {
        self.fragment.is_none()
    }
    /// Position of the fragment over this zone.
    pub(crate) fn fragment_at(&self) -> Option<u32> {
        self.fragment
    }
    /// The fragment over this zone.
    #[inline]
    pub(crate) fn fragment<'r>(&self, recipe: &'r Recipe) -> Option<&'r Fragment> {
        recipe.tombstones.as_slice().get(self.fragment? as usize)
    }
    /// True if a tombstone that stays would hide an entry with sequence number 0 but not with
    /// `seq` (D4).
    #[inline]
    pub(crate) fn keeps_at_most(&self, seq: Seq) -> bool {
        self.fragment
            .and_then(|i| self.kept_min.get(i as usize))
            .is_some_and(|&kept| kept <= seq && kept != MAX_SEQ)
    }
}

#[inline]
fn is_below(key: &[u8], b: &Bound, order: &dyn Comparator) -> bool {
    match order.compare(key, &b.key) {
        std::cmp::Ordering::Less => true,
        std::cmp::Ordering::Equal => b.after,
        std::cmp::Ordering::Greater => false,
    }
}

#[cfg(test)]
mod tests;
