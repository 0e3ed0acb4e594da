//! One node of the tree, and the protocol by which writers and many readers share it.
//!
//! A node holds up to [`WIDTH`] records in order, each with its *head*: the 8 bytes of its user
//! key that follow the first `skip` bytes, as a big-endian integer. In a leaf the records are the
//! entries; in an inner node they are separators, and child `i` holds what lies between
//! separator `i - 1` (included) and separator `i` (excluded).
//!
//! **Fences.** `lo` and `hi` are the separators around the node (null at the edges of the tree).
//! Every key sought in a node lies between its fences, so it shares the prefix that both fences
//! share: `skip` may be any length up to that, and heads compare like the keys they come from,
//! except that equal heads must be settled by the full keys. Ranges of nodes only shrink, so a
//! `skip` stays right for ever. Example: fences `user4711` and `user4793` allow `skip = 6`; key
//! `user4720` has the head `20` and six zero bytes.
//!
//! **Versions.** Every node carries a version, odd while the writer is inside a *window* on it.
//! - The writer opens a window (version + 1, then a release fence), changes fields, closes it
//!   (version + 1 with release). To split it opens the windows of all nodes that change, parents
//!   before children, before it changes the first, and closes them after it changed the last.
//! - A reader takes an even version (acquire), reads fields, then validates: an acquire fence and
//!   a second look at the version. The same number twice proves that no window overlapped the
//!   reads, so what it read is one state of the node; otherwise it throws everything away.
//! - From parent to child a reader takes the child's version first and validates the parent
//!   second. If the child was split before its version was taken, then the parent's window had
//!   been opened before, and validation of the parent sees it. So a version taken this way
//!   belongs to a child whose fences enclose the sought key. The root pointer plays the parent
//!   of the root: it is stored before the old root's window closes.
//! - Beside other writers, a window on a leaf is opened by an exchange of the version that the writer
//!   took on its way down: it has validated what it read, and is the leaf's one writer until it
//!   closes. What the writer before it wrote happened before, because that version was taken with
//!   acquire from its close.
//!
//! **Why this is sound in Rust.** All fields that change after publication are atomics, so racing
//! reads are no data races. Torn combinations (a head of one entry with the record of another)
//! are harmless before validation because every slot holds null or a pointer to a complete record
//! or node: pointers are stored with release and loaded with acquire, so what they point to
//! happened before, and records and nodes live as long as the table. Slot numbers are bounds
//! checked. Nothing that a reader saw leaves the search before it validates.

use std::marker::PhantomData;
use std::ptr::NonNull;

use crate::arena::{Arena, Rec, prefetch};
use crate::sync::{AtomicPtr, AtomicU32, AtomicU64, Ordering, fence, pause};

/// Records per node.
pub(crate) const WIDTH: usize = if cfg!(loom) { 4 } else { 64 };
const _: () = assert!(WIDTH.is_power_of_two() && WIDTH >= 4);

/// `last` of a node whose last insertion is not remembered.
const NOWHERE: u32 = u32::MAX;

/// The part that leaves and inner nodes share. A leaf is no more than this.
#[cfg_attr(loom, derive(Default))]
#[repr(C, align(64))]
pub(crate) struct Node {
    version: AtomicU64,
    len: AtomicU32,
    skip: AtomicU32,
    /// Where the last insertion went; read by writers only.
    last: AtomicU32,
    /// 0 for leaves; never changes.
    level: u32,
    lo: AtomicPtr<u8>,
    hi: AtomicPtr<u8>,
    /// The node to the right on the same level; kept for leaves only.
    next: AtomicPtr<Node>,
    heads: [AtomicU64; WIDTH],
    recs: [AtomicPtr<u8>; WIDTH],
}

#[cfg_attr(loom, derive(Default))]
#[repr(C)]
struct Inner {
    node: Node,
    children: [AtomicPtr<Node>; WIDTH + 1],
}

/// A node of a table that lives for `'t`.
#[derive(Clone, Copy)]
pub(crate) struct NodeRef<'t> {
    at: NonNull<Node>,
    table: PhantomData<&'t Node>,
}

// SAFETY: a node is shared through atomics only.
unsafe impl Send for NodeRef<'_> {}
// SAFETY: as above.
unsafe impl Sync for NodeRef<'_> {}

impl std::ops::Deref for NodeRef<'_> {
    type Target = Node;
    #[inline(always)]
    fn deref(&self) -> &Node {
        // SAFETY: a `NodeRef` is only made of initialised nodes that live for `'t`.
        unsafe { self.at.as_ref() }
    }
}

/// A pointer to a node that other threads follow.
pub(crate) struct NodeSlot(AtomicPtr<Node>);

impl NodeSlot {
    /// A slot that holds `node`.
    pub(crate) fn new(node: NodeRef<'_>) -> NodeSlot {
        NodeSlot(AtomicPtr::new(node.at.as_ptr()))
    }
    /// The node in the slot.
    ///
    /// # Safety
    /// The node stored last lives for `'t`.
    #[inline(always)]
    pub(crate) unsafe fn load<'t>(&self) -> NodeRef<'t> {
        // SAFETY: filled at creation and by `store`, never null; acquire pairs with its release.
        let at = unsafe { NonNull::new_unchecked(self.0.load(Ordering::Acquire)) };
        NodeRef { at, table: PhantomData }
    }
    /// Publishes `node`.
    pub(crate) fn store(&self, node: NodeRef<'_>) {
        self.0.store(node.at.as_ptr(), Ordering::Release);
    }
}

impl<'t> NodeRef<'t> {
    /// Bytes of a leaf in its arena, in whole lines.
    pub(crate) const LEAF_BYTES: usize = size_of::<Node>().next_multiple_of(64);

    /// A fresh node without records, private until a pointer to it is stored in another node.
    ///
    /// # Safety
    /// As [`Arena::allocate`].
    pub(crate) unsafe fn new(arena: &'t Arena, level: u32) -> NodeRef<'t> {
        let bytes = if level == 0 { size_of::<Node>() } else { size_of::<Inner>() };
        // SAFETY: by the contract of this function.
        let at = unsafe { arena.allocate(bytes, align_of::<Node>()) };
        // SAFETY: `bytes` bytes, aligned, exclusive. All zero is a valid node: its fields are
        // integers and pointers that may be null.
        #[cfg(not(loom))]
        unsafe {
            at.write_bytes(0, bytes)
        };
        // SAFETY: as above; loom's atomics are made one by one.
        #[cfg(loom)]
        unsafe {
            match level {
                0 => at.cast::<Node>().write(Node::default()),
                _ => at.cast::<Inner>().write(Inner::default()),
            }
        };
        let at = at.cast::<Node>();
        // SAFETY: initialised and still exclusive.
        unsafe { (*at.as_ptr()).level = level };
        let node = NodeRef { at, table: PhantomData };
        node.last.store(NOWHERE, Ordering::Relaxed);
        node
    }

    /// True for the same node.
    #[inline(always)]
    pub(crate) fn is(self, other: NodeRef<'_>) -> bool {
        self.at == other.at
    }

    #[inline(always)]
    fn children(&self) -> &'t [AtomicPtr<Node>] {
        if self.level == 0 {
            return &[];
        }
        // SAFETY: nodes of a level above 0 were allocated as `Inner`, whose first field is the
        // node, and `at` has the provenance of the whole allocation.
        unsafe { &(*self.at.cast::<Inner>().as_ptr()).children }
    }

    #[inline(always)]
    fn node_at(at: *mut Node) -> Option<NodeRef<'t>> {
        NonNull::new(at).map(|at| NodeRef { at, table: PhantomData })
    }

    #[inline(always)]
    fn rec_at(at: *mut u8) -> Option<Rec<'t>> {
        // SAFETY: record slots hold null or what `Rec::as_ptr` gave, stored with release and
        // loaded with acquire; the records are in the arena that holds this node.
        NonNull::new(at).map(|at| unsafe { Rec::from_ptr(at) })
    }

    /// Record `i`; none only in a torn read.
    #[inline(always)]
    pub(crate) fn rec(self, i: usize) -> Option<Rec<'t>> {
        Self::rec_at(self.field().recs.get(i)?.load(Ordering::Acquire))
    }
    /// Child `i` of an inner node; none only in a torn read.
    #[inline(always)]
    pub(crate) fn child(self, i: usize) -> Option<NodeRef<'t>> {
        Self::node_at(self.children().get(i)?.load(Ordering::Acquire))
    }
    /// Lower fence.
    pub(crate) fn lo(self) -> Option<Rec<'t>> {
        Self::rec_at(self.lo.load(Ordering::Acquire))
    }
    /// Upper fence: the first record of the leaf to the right.
    #[inline(always)]
    pub(crate) fn hi(self) -> Option<Rec<'t>> {
        Self::rec_at(self.hi.load(Ordering::Acquire))
    }
    /// The leaf to the right.
    #[inline(always)]
    pub(crate) fn next(self) -> Option<NodeRef<'t>> {
        Self::node_at(self.next.load(Ordering::Acquire))
    }
    /// Asks for the lines that a search touches first.
    #[inline(always)]
    pub(crate) fn prefetch(self) {
        let base = self.at.as_ptr().cast::<u8>().cast_const();
        for line in [0, 2, 4, 6] {
            prefetch(base.wrapping_add(line * 64));
        }
    }
    /// Asks for the lines of the last records, which an insertion moves first.
    #[inline(always)]
    pub(crate) fn prefetch_end(self, n: usize) {
        let last = self.at.as_ptr().cast::<u8>().cast_const();
        let last = last.wrapping_add(std::mem::offset_of!(Node, recs) + n * 8);
        prefetch(last);
        prefetch(last.wrapping_sub(64));
        prefetch(last.wrapping_sub(128));
    }
    /// Asks for all lines of a leaf.
    #[inline(always)]
    pub(crate) fn prefetch_whole(self) {
        let base = self.at.as_ptr().cast::<u8>().cast_const();
        for line in 0..Self::LEAF_BYTES / 64 {
            prefetch(base.wrapping_add(line * 64));
        }
    }
    /// Asks for the lines that a walk touches.
    pub(crate) fn prefetch_records(self) {
        let base = self.at.as_ptr().cast::<u8>().cast_const();
        prefetch(base);
        for line in 0..WIDTH / 8 {
            prefetch(base.wrapping_add(std::mem::offset_of!(Node, recs) + line * 64));
        }
    }
    #[inline(always)]
    fn field(&self) -> &Node {
        self
    }
}

/// What readers do.
impl Node {
    /// Distance from the leaves.
    pub(crate) fn level(&self) -> u32 {
        self.level
    }
    /// True on the lowest level.
    #[inline(always)]
    pub(crate) fn is_leaf(&self) -> bool {
        self.level == 0
    }
    /// Number of records, at most [`WIDTH`].
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        (self.len.load(Ordering::Acquire) as usize).min(WIDTH)
    }
    /// Leading key bytes that heads leave out.
    #[inline(always)]
    pub(crate) fn skip(&self) -> usize {
        self.skip.load(Ordering::Relaxed) as usize
    }
    /// Head of record `i`, taken modulo the width.
    #[inline(always)]
    pub(crate) fn head(&self, i: usize) -> u64 {
        self.heads[i & (WIDTH - 1)].load(Ordering::Relaxed)
    }
    /// An even version, once the writer has left the node.
    #[inline(always)]
    pub(crate) fn enter(&self) -> u64 {
        let mut tries = 0;
        loop {
            let version = self.version.load(Ordering::Acquire);
            if version & 1 == 0 {
                return version;
            }
            pause(&mut tries);
        }
    }
    /// True if no window was open since `enter` answered `version`.
    #[inline(always)]
    pub(crate) fn validate(&self, version: u64) -> bool {
        fence(Ordering::Acquire);
        self.version.load(Ordering::Relaxed) == version
    }
    /// Number of heads below `head` among records `from..to` plus `from`: where `head` would be
    /// inserted before its equals.
    #[inline(always)]
    pub(crate) fn first_not_below(&self, head: u64, from: usize, to: usize) -> usize {
        self.partition(from, to, |h| h < head)
    }
    /// As [`first_not_below`](Node::first_not_below), after the equals.
    #[inline(always)]
    pub(crate) fn first_above(&self, head: u64, from: usize, to: usize) -> usize {
        self.partition(from, to, |h| h <= head)
    }
    /// Binary search without branches on the outcome of comparisons.
    #[inline(always)]
    fn partition(&self, from: usize, to: usize, left: impl Fn(u64) -> bool) -> usize {
        let mut base = from;
        let mut size = to - from;
        while size > 1 {
            let half = size / 2;
            base += usize::from(left(self.head(base + half - 1))) * half;
            size -= half;
        }
        if size == 1 { base + usize::from(left(self.head(base))) } else { base }
    }
}

/// What the writer does. All of it happens on private nodes or inside windows.
impl<'t> NodeRef<'t> {
    /// Opens a window.
    #[inline(always)]
    pub(crate) fn open(&self) {
        let version = self.version.load(Ordering::Relaxed);
        debug_assert!(version & 1 == 0);
        self.version.store(version + 1, Ordering::Relaxed);
        fence(Ordering::Release);
    }
    /// Closes the window.
    #[inline(always)]
    pub(crate) fn close(&self) {
        let version = self.version.load(Ordering::Relaxed);
        debug_assert!(version & 1 == 1);
        self.version.store(version + 1, Ordering::Release);
    }

    /// Opens a window beside other writers, if the version is still `version`.
    #[inline(always)]
    pub(crate) fn try_open(&self, version: u64) -> bool {
        debug_assert!(version & 1 == 0);
        // As in `validate`: what was read so far is of this version if no writer has begun another yet.
        fence(Ordering::Acquire);
        let opened = self.version.compare_exchange(
            version,
            version + 1,
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
        fence(Ordering::Release);
        opened.is_ok()
    }

    /// Puts a record at slot `at`. With `right`, the new child behind it, in an inner node.
    #[inline]
    pub(crate) fn insert(self, at: usize, head: u64, rec: Rec<'_>, right: Option<NodeRef<'_>>) {
        let n = self.len();
        assert!(n < WIDTH && at <= n && right.is_some() != self.is_leaf());
        for i in (at..n).rev() {
            self.heads[i + 1].store(self.heads[i].load(Ordering::Relaxed), Ordering::Relaxed);
        }
        self.heads[at].store(head, Ordering::Relaxed);
        for i in (at..n).rev() {
            self.recs[i + 1].store(self.recs[i].load(Ordering::Relaxed), Ordering::Release);
        }
        self.recs[at].store(rec.as_ptr(), Ordering::Release);
        if let Some(right) = right {
            let children = self.children();
            for i in (at + 1..=n).rev() {
                children[i + 1].store(children[i].load(Ordering::Relaxed), Ordering::Release);
            }
            children[at + 1].store(right.at.as_ptr(), Ordering::Release);
        }
        self.last.store(at as u32, Ordering::Relaxed);
        self.len.store((n + 1) as u32, Ordering::Release);
    }

    /// The first child of a fresh inner node.
    pub(crate) fn set_first_child(self, child: NodeRef<'_>) {
        self.children()[0].store(child.at.as_ptr(), Ordering::Release);
    }

    /// True if inserting at `at` goes on with an ascending sequence.
    pub(crate) fn ascends_at(self, at: usize) -> bool {
        self.last.load(Ordering::Relaxed) as usize + 1 == at
            || (at == self.len() && self.hi().is_none())
    }

    /// Moves the records from `cut` on to the fresh node `right` of the same level. In an inner
    /// node record `cut` itself is left out (it becomes the separator above) and the children
    /// behind it move along.
    pub(crate) fn move_tail(self, cut: usize, right: NodeRef<'_>) {
        let n = self.len();
        let from = if self.is_leaf() { cut } else { cut + 1 };
        for (to, i) in (from..n).enumerate() {
            right.heads[to].store(self.heads[i].load(Ordering::Relaxed), Ordering::Relaxed);
            right.recs[to].store(self.recs[i].load(Ordering::Relaxed), Ordering::Release);
        }
        if !self.is_leaf() {
            for (to, i) in (from..=n).enumerate() {
                let child = self.children()[i].load(Ordering::Relaxed);
                right.children()[to].store(child, Ordering::Release);
            }
        }
        right.skip.store(self.skip.load(Ordering::Relaxed), Ordering::Relaxed);
        right.len.store(n.saturating_sub(from) as u32, Ordering::Release);
        self.len.store(cut as u32, Ordering::Release);
        self.last.store(NOWHERE, Ordering::Relaxed);
    }

    /// Links `right` in behind this node, `fence` being the border between them.
    pub(crate) fn link(self, right: NodeRef<'_>, fence: Rec<'_>) {
        right.lo.store(fence.as_ptr(), Ordering::Release);
        right.hi.store(self.hi.load(Ordering::Relaxed), Ordering::Release);
        self.hi.store(fence.as_ptr(), Ordering::Release);
        if self.is_leaf() {
            right.next.store(self.next.load(Ordering::Relaxed), Ordering::Release);
            self.next.store(right.at.as_ptr(), Ordering::Release);
        }
    }

    /// Takes a longer prefix off all heads.
    pub(crate) fn set_skip(self, skip: usize, head: impl Fn(&[u8], usize) -> u64) {
        self.skip.store(skip as u32, Ordering::Relaxed);
        for i in 0..self.len() {
            let rec = self.rec(i).expect("the writer sees every record");
            self.heads[i].store(head(rec.user(), skip), Ordering::Relaxed);
        }
    }
}
