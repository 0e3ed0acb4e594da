//! Insertion by several threads at once.
//!
//! A writer descends as a reader does. Where it arrives it opens the leaf's window, if that is still
//! at the version it read: so one insertion that meets no other costs one exchange more than that of
//! an only writer, and two that meet in a leaf follow each other (Leis, Scheibner, Kemper and Neumann,
//! "The ART of practical synchronization", 2016, on version words as locks).
//!
//! One insertion in some thirty finds its leaf full. Splits are made under one lock, and then as an
//! only writer makes them:
//!
//! - Inner nodes change in splits only, so the holder of the lock is their one writer.
//! - A full leaf changes in splits only, because who finds it full asks for the lock. So the holder
//!   needs no exchange to open its window either.
//! - What the holder compared before it took the lock holds if the nodes that it changes are still at
//!   the versions it saw.
//! - The arena gives nodes to the holder only; records lie in pieces that were cut off before.
//!
//! Keeps: no comparator is called inside a window or under the lock. One that panics leaves the tree
//! as it was.
//! Leaves to others: that all writers of a table are of this kind while one is.

use crate::arena::Rec;
use crate::node::{NodeRef, WIDTH};
use crate::sync::{Mutex, pause};

use super::{At, Growth, HEIGHT_MAX, Landing, Path, Probe};

/// How a try ended.
enum Tried {
    Done,
    /// Another writer was there.
    Met,
    /// The leaf must be split.
    Full,
}

impl<'t> Growth<'t> {
    /// Inserts `rec` while others insert, too. `splits` is the lock that all of them bring.
    #[inline]
    pub(crate) fn insert_shared(&self, rec: Rec<'t>, splits: &Mutex<()>) {
        let probe = At { order: self.order, user: rec.user(), tag: rec.tag(), behind: true };
        if self.append_shared(&probe, rec) {
            return;
        }
        let mut tries = 0;
        loop {
            match self.try_insert(&probe, rec) {
                Tried::Done => return,
                Tried::Met => pause(&mut tries),
                Tried::Full if self.try_split(&probe, rec, splits) => return,
                Tried::Full => pause(&mut tries),
            }
        }
    }

    /// Appends `rec` to the rightmost leaf if it belongs there, there is room, and no other writer is
    /// there.
    #[inline(always)]
    fn append_shared(&self, probe: &At<'_>, rec: Rec<'t>) -> bool {
        // SAFETY: as in `Index::root`.
        let tail: NodeRef<'t> = unsafe { self.index.tail.load() };
        let version = tail.enter();
        let n = tail.len();
        // With an upper fence it is not the rightmost any more.
        if n == 0 || n == WIDTH || tail.hi().is_some() {
            return false;
        }
        let head = self.order.head(probe.user, tail.skip());
        let last = tail.head(n - 1);
        let behind =
            head > last || (head == last && tail.rec(n - 1).is_some_and(|last| probe.passes(last)));
        let opened = behind && tail.try_open(version);
        if opened {
            tail.insert(n, head, rec, None);
            tail.close();
        }
        opened
    }

    #[inline(always)]
    fn try_insert(&self, probe: &At<'_>, rec: Rec<'t>) -> Tried {
        let Some(Landing { leaf, version, n, at }) = self.index.approach(probe) else {
            return Tried::Met;
        };
        if n == WIDTH {
            return if leaf.validate(version) { Tried::Full } else { Tried::Met };
        }
        let head = self.order.head(probe.user, leaf.skip());
        if !leaf.try_open(version) {
            return Tried::Met;
        }
        leaf.insert(at, head, rec, None);
        leaf.close();
        Tried::Done
    }

    /// Splits the full leaf where `rec` belongs. False if another writer changed something on the way to
    /// it meanwhile, or it is not full any more.
    #[cold]
    fn try_split(&self, probe: &At<'_>, rec: Rec<'t>, splits: &Mutex<()>) -> bool {
        // All comparing is done before the lock is taken; the versions tell whether it still holds.
        let Some((path, versions)) = self.approach_recording(probe) else { return false };
        let _lock = splits.lock();
        let is_full = |i: usize| path.step(i).0.len() == WIDTH;
        let is_same = |i: usize| path.step(i).0.validate(versions[i]);
        let leaf = path.len - 1;
        // In this order: it was full at that version, so no writer opened it since.
        if !is_full(leaf) || !is_same(leaf) {
            return false;
        }
        // The nodes that are split with it, and the one that takes their separator.
        let full = (0..leaf).rev().take_while(|i| is_full(*i)).count();
        let first = (leaf - full).saturating_sub(1);
        let root_splits = full == leaf;
        if !(first..leaf).all(is_same) || (root_splits && !path.step(0).0.is(self.index.root())) {
            return false;
        }
        self.insert_with_split(&path, rec);
        true
    }

    /// The way to the leaf of `probe`, with the version at which each node was seen.
    fn approach_recording(&self, probe: &At<'_>) -> Option<(Path<'t>, [u64; HEIGHT_MAX])> {
        let mut path = Path { steps: [None; HEIGHT_MAX], len: 0 };
        let mut versions = [0; HEIGHT_MAX];
        let mut node = self.index.root();
        let mut version = node.enter();
        if !node.is(self.index.root()) {
            return None;
        }
        loop {
            let at = probe.position(node, node.len());
            path.steps[path.len] = Some((node, at));
            versions[path.len] = version;
            path.len += 1;
            if node.is_leaf() {
                return Some((path, versions));
            }
            let child = node.child(at)?;
            let next = child.enter();
            if !node.validate(version) {
                return None;
            }
            (node, version) = (child, next);
        }
    }
}
