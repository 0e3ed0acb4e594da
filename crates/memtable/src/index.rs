//! The ordered index: a B+tree over records, descended by readers without locks.
//!
//! Keeps: leaves in one chain hold all records in the order of internal keys; every record sits
//! between the fences of its leaf; all of `node`'s protocol.
//! Leaves to others: where records come from, what they mean.
//!
//! Every search is a [`Probe`]: a predicate that holds for a first part of all records, and the
//! *position* is where it stops holding. The descent enters the child whose lower separator
//! satisfies the predicate while the upper one does not, so in the leaf the position has a
//! predecessor in the same leaf (unless it is the leftmost) and its successor is either in the
//! same leaf or is exactly the upper fence. Seeking, seeking backwards and inserting are one
//! descent. Example: leaves `[a c] [e g]` with separator `e`; seeking `d` ends in the first leaf
//! at position 2; its predecessor is `c` there, its successor is the fence `e`.
//!
//! There is one writer ([`Growth::insert`]), or for a while several ([`shared`]).

use std::cmp::Ordering;

use lithify_base::{Comparator, Tag};

use crate::arena::{Arena, Rec};
use crate::node::{NodeRef, NodeSlot, WIDTH};
use crate::sync::pause;

mod shared;

/// Levels a tree can have. A level grows by one node for 16 or more in the level below (half a
/// node must fill up before it splits, and an ascending split is followed by at most one half
/// split for free), so this is out of reach of any memory.
const HEIGHT_MAX: usize = 24;

/// Common key bytes beyond the present `skip` that make new heads worth their price.
const SKIP_STEP: usize = 6;

/// The order of user keys: plain bytes, or a comparator.
#[derive(Clone, Copy)]
pub(crate) enum Order<'a> {
    Bytewise,
    By(&'a dyn Comparator),
}

impl Order<'_> {
    #[inline(always)]
    pub(crate) fn compare(self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            Order::Bytewise => a.cmp(b),
            Order::By(order) => order.compare(a, b),
        }
    }
    /// The head of `key` after `skip` bytes. Monotone: `a <= b` implies `head(a) <= head(b)` for
    /// keys that share `skip` bytes. Constant for orders that are not bytewise.
    #[inline(always)]
    pub(crate) fn head(self, key: &[u8], skip: usize) -> u64 {
        match self {
            Order::Bytewise => head_at(key, skip),
            Order::By(_) => 0,
        }
    }
}

/// Eight bytes of `key` from `skip` on as a big-endian integer, short keys padded with zeros.
#[inline(always)]
fn head_at(key: &[u8], skip: usize) -> u64 {
    let tail = key.get(skip..).unwrap_or(&[]);
    if let Some(eight) = tail.first_chunk::<8>() {
        return u64::from_be_bytes(*eight);
    }
    let mut padded = [0; 8];
    padded[..tail.len()].copy_from_slice(tail);
    u64::from_be_bytes(padded)
}

/// Where a search ends in a node.
pub(crate) trait Probe {
    /// Number of the first `n` records for which the probe's predicate holds.
    fn position(&self, node: NodeRef<'_>, n: usize) -> usize;
}

/// Before everything.
pub(crate) struct First;
impl Probe for First {
    fn position(&self, _: NodeRef<'_>, _: usize) -> usize {
        0
    }
}

/// Behind everything.
pub(crate) struct Last;
impl Probe for Last {
    fn position(&self, _: NodeRef<'_>, n: usize) -> usize {
        n
    }
}

/// Before or behind the internal key `(user, tag)`.
pub(crate) struct At<'a> {
    pub(crate) order: Order<'a>,
    pub(crate) user: &'a [u8],
    pub(crate) tag: Tag,
    /// The position lies behind an entry equal to the key.
    pub(crate) behind: bool,
}

impl At<'_> {
    /// The predicate: does `rec` lie before the position?
    #[inline(always)]
    pub(crate) fn passes(&self, rec: Rec<'_>) -> bool {
        match self.order.compare(rec.user(), self.user) {
            Ordering::Less => true,
            Ordering::Greater => false,
            Ordering::Equal => {
                let tag = rec.tag();
                tag > self.tag || (self.behind && tag == self.tag)
            }
        }
    }

    /// Settles a run of equal heads by the keys themselves.
    fn settle(&self, node: NodeRef<'_>, mut from: usize, mut to: usize) -> usize {
        while from < to {
            let mid = usize::midpoint(from, to);
            // A missing record is a torn read: any answer will do.
            if node.rec(mid).is_some_and(|rec| self.passes(rec)) {
                from = mid + 1;
            } else {
                to = mid;
            }
        }
        from
    }
}

impl Probe for At<'_> {
    #[inline(always)]
    fn position(&self, node: NodeRef<'_>, n: usize) -> usize {
        let head = self.order.head(self.user, node.skip());
        let from = node.first_not_below(head, 0, n);
        if from == n || node.head(from) != head {
            return from;
        }
        let to = node.first_above(head, from, n);
        self.settle(node, from, to)
    }
}

/// Where a descent ended: a leaf of `n` records at `version`, and the position in it.
struct Landing<'t> {
    leaf: NodeRef<'t>,
    version: u64,
    n: usize,
    at: usize,
}

/// The tree.
pub(crate) struct Index {
    root: NodeSlot,
    /// The rightmost leaf, or one that was until a moment ago; read by writers only.
    tail: NodeSlot,
}

impl Index {
    /// Bytes that an empty tree takes of its arena, in whole lines.
    pub(crate) const EMPTY_BYTES: usize = NodeRef::LEAF_BYTES;

    /// An empty tree: one leaf.
    ///
    /// # Safety
    /// The caller is the one writer of `arena`, and the arena lives as long as the index.
    pub(crate) unsafe fn new(arena: &Arena) -> Index {
        // SAFETY: by the contract.
        let leaf = unsafe { NodeRef::new(arena, 0) };
        Index { root: NodeSlot::new(leaf), tail: NodeSlot::new(leaf) }
    }

    #[inline(always)]
    fn root(&self) -> NodeRef<'_> {
        // SAFETY: nodes live in the arena that lives as long as the index.
        unsafe { self.root.load() }
    }

    /// Finds the leaf and the position of `probe` and lets `read` take what it wants from the
    /// leaf: `read(leaf, records, position)`. Runs `read` again until nothing interfered.
    #[inline(always)]
    pub(crate) fn locate<'t, P: Probe, R>(
        &'t self,
        probe: &P,
        mut read: impl FnMut(NodeRef<'t>, usize, usize) -> R,
    ) -> R {
        let mut tries = 0;
        loop {
            if let Some(found) = self.try_locate(probe, &mut read) {
                return found;
            }
            pause(&mut tries);
        }
    }

    #[inline(always)]
    fn try_locate<'t, P: Probe, R>(
        &'t self,
        probe: &P,
        read: &mut impl FnMut(NodeRef<'t>, usize, usize) -> R,
    ) -> Option<R> {
        let Landing { leaf, version, n, at } = self.approach(probe)?;
        let found = read(leaf, n, at);
        leaf.validate(version).then_some(found)
    }

    /// Descends to the leaf of `probe`. What it answers is to be validated; `None` if something
    /// interfered on the way.
    #[inline(always)]
    fn approach<'t, P: Probe>(&'t self, probe: &P) -> Option<Landing<'t>> {
        let mut node = self.root();
        let mut version = node.enter();
        if !node.is(self.root()) {
            return None;
        }
        loop {
            let n = node.len();
            let at = probe.position(node, n);
            if node.is_leaf() {
                return Some(Landing { leaf: node, version, n, at });
            }
            let child = node.child(at)?;
            child.prefetch();
            let next = child.enter();
            if !node.validate(version) {
                return None;
            }
            (node, version) = (child, next);
        }
    }

    /// The leaf of `probe`, unless it is the rightmost one, which is at hand. The leaf itself is not read; and
    /// what is met on the way is not validated: it is a hint.
    #[inline(always)]
    pub(crate) fn leaf_ahead(&self, probe: &At<'_>) -> Option<NodeRef<'_>> {
        // SAFETY: as in `root`.
        let tail = unsafe { self.tail.load() };
        let n = tail.len();
        if n > 0 && probe.order.head(probe.user, tail.skip()) > tail.head(n - 1) {
            return None;
        }
        let mut node = self.root();
        while !node.is_leaf() {
            let child = node.child(probe.position(node, node.len()))?;
            if node.level() == 1 {
                return Some(child);
            }
            node = child;
        }
        None
    }

    /// Copies the records and the right neighbour of `leaf` as of one moment.
    pub(crate) fn copy_leaf<'t>(
        &'t self,
        leaf: NodeRef<'t>,
        into: &mut [Option<Rec<'t>>; WIDTH],
    ) -> (usize, Option<NodeRef<'t>>) {
        let mut tries = 0;
        loop {
            let version = leaf.enter();
            let n = leaf.len();
            for (i, slot) in into[..n].iter_mut().enumerate() {
                *slot = leaf.rec(i);
            }
            let next = leaf.next();
            if leaf.validate(version) {
                return (n, next);
            }
            pause(&mut tries);
        }
    }
}

/// The writers' side of the tree.
pub(crate) struct Growth<'t> {
    index: &'t Index,
    arena: &'t Arena,
    order: Order<'t>,
}

/// The way from the root to a leaf: nodes and the position taken in each.
struct Path<'t> {
    steps: [Option<(NodeRef<'t>, usize)>; HEIGHT_MAX],
    len: usize,
}

/// What goes into a node: a record and, above the leaves, the child behind it.
struct Arrival<'t> {
    at: usize,
    rec: Rec<'t>,
    right: Option<NodeRef<'t>>,
}

impl<'t> Path<'t> {
    fn step(&self, i: usize) -> (NodeRef<'t>, usize) {
        self.steps[i].expect("inside the path")
    }
}

impl<'t> Growth<'t> {
    /// The right to grow `index`.
    ///
    /// # Safety
    /// The caller is the one writer of `arena`, in which all nodes and records of `index` lie; or
    /// all writers insert with one and the same lock for splits.
    pub(crate) unsafe fn new(index: &'t Index, arena: &'t Arena, order: Order<'t>) -> Growth<'t> {
        Growth { index, arena, order }
    }

    /// Inserts `rec`.
    #[inline]
    pub(crate) fn insert(&self, rec: Rec<'t>) {
        let user = rec.user();
        let probe = At { order: self.order, user, tag: rec.tag(), behind: true };
        if self.append(&probe, rec) {
            return;
        }
        let path = self.descend(&probe);
        let (leaf, at) = path.step(path.len - 1);
        if leaf.len() < WIDTH {
            let head = self.order.head(user, leaf.skip());
            leaf.open();
            leaf.insert(at, head, rec, None);
            leaf.close();
        } else {
            self.insert_with_split(&path, rec);
        }
    }

    /// Appends `rec` to the rightmost leaf if it belongs there and there is room.
    #[inline(always)]
    fn append(&self, probe: &At<'_>, rec: Rec<'t>) -> bool {
        // SAFETY: as in `Index::root`.
        let tail: NodeRef<'t> = unsafe { self.index.tail.load() };
        let n = tail.len();
        if n == 0 || n == WIDTH {
            return false;
        }
        // A rightmost leaf has no upper fence, so its skip is 0, and any key may be compared.
        let head = self.order.head(probe.user, tail.skip());
        let last = tail.head(n - 1);
        let behind =
            head > last || (head == last && tail.rec(n - 1).is_some_and(|last| probe.passes(last)));
        if behind {
            tail.open();
            tail.insert(n, head, rec, None);
            tail.close();
        }
        behind
    }

    fn descend(&self, probe: &At<'_>) -> Path<'t> {
        let mut path = Path { steps: [None; HEIGHT_MAX], len: 0 };
        let mut node = self.index.root();
        loop {
            let n = node.len();
            if node.is_leaf() {
                node.prefetch_end(n);
            }
            let at = probe.position(node, n);
            path.steps[path.len] = Some((node, at));
            path.len += 1;
            if node.is_leaf() {
                return path;
            }
            node = node.child(at).expect("the writer sees every child");
            node.prefetch();
        }
    }

    /// Splits the full nodes at the end of `path`, bottom up, under windows on all that change.
    #[cold]
    fn insert_with_split(&self, path: &Path<'t>, rec: Rec<'t>) {
        let full = |i: &usize| path.step(*i).0.len() == WIDTH;
        let kept = path.len - (0..path.len).rev().take_while(full).count();
        // All memory comes before the first window: a panic for want of memory must not leave a
        // window open, in which readers would wait for ever.
        let mut fresh = [None; HEIGHT_MAX];
        for (i, slot) in fresh.iter_mut().enumerate().take(path.len).skip(kept) {
            *slot = Some(self.node(path.step(i).0.level()));
        }
        let root = (kept == 0).then(|| self.node(path.step(0).0.level() + 1));

        let changing = kept.saturating_sub(1)..path.len;
        changing.clone().for_each(|i| path.step(i).0.open());
        let (mut rec, mut right) = (rec, None);
        for i in (kept..path.len).rev() {
            let (node, at) = path.step(i);
            let fresh = fresh[i].expect("one for each full node");
            rec = self.split(node, fresh, Arrival { at, rec, right });
            right = Some(fresh);
        }
        if let Some(root) = root {
            root.set_first_child(path.step(0).0);
            root.insert(0, self.order.head(rec.user(), root.skip()), rec, right);
            self.index.root.store(root);
        } else {
            let (node, at) = path.step(kept - 1);
            node.insert(at, self.order.head(rec.user(), node.skip()), rec, right);
        }
        changing.for_each(|i| path.step(i).0.close());
        // Last: others may append to it from here on.
        if let Some(leaf) = fresh[path.len - 1].filter(|leaf| leaf.hi().is_none()) {
            self.index.tail.store(leaf);
        }
    }

    fn node(&self, level: u32) -> NodeRef<'t> {
        // SAFETY: by the contract of `new`.
        unsafe { NodeRef::new(self.arena, level) }
    }

    /// Splits the full `node`, its upper part going to `fresh`, and puts what arrived into one of
    /// the two. Answers the separator between them.
    fn split(&self, node: NodeRef<'t>, fresh: NodeRef<'t>, new: Arrival<'t>) -> Rec<'t> {
        let Arrival { at, rec, right } = new;
        let n = node.len();
        let head = self.order.head(rec.user(), node.skip());
        let ascends = node.ascends_at(at);
        let fence = if ascends && at == n {
            // An ascending sequence will not come back: leave a full node behind.
            node.move_tail(n, fresh);
            match right {
                None => fresh.insert(0, head, rec, None),
                Some(right) => fresh.set_first_child(right),
            }
            rec
        } else {
            // A sequence that ascends towards other records gets a node of its own.
            let cut = if ascends { at.max(n / 2) } else { n / 2 };
            let fence = node.rec(cut).expect("the writer sees every record");
            node.move_tail(cut, fresh);
            match right {
                _ if at <= cut => node.insert(at, head, rec, right),
                None => fresh.insert(at - cut, head, rec, None),
                Some(_) => fresh.insert(at - cut - 1, head, rec, right),
            }
            fence
        };
        node.link(fresh, fence);
        self.sharpen(node);
        self.sharpen(fresh);
        fence
    }

    /// Skips the prefix that the fences of `node` share, where its heads tell too little.
    fn sharpen(&self, node: NodeRef<'t>) {
        let n = node.len();
        if matches!(self.order, Order::By(_)) || n == 0 {
            return;
        }
        let low_bits = 64 - 8 * SKIP_STEP;
        if (node.head(0) ^ node.head(n - 1)) >> low_bits != 0 {
            return;
        }
        let (Some(lo), Some(hi)) = (node.lo(), node.hi()) else { return };
        let shared = lo.user().iter().zip(hi.user()).take_while(|(a, b)| a == b).count();
        if shared >= node.skip() + SKIP_STEP {
            node.set_skip(shared, head_at);
        }
    }
}

#[cfg(test)]
mod tests;
