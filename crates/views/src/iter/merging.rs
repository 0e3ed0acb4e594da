//! Many cursors as one, in the one total order: a binary heap whose top is the next entry.
//!
//! A step moves the top cursor and sifts it down, so a stretch of entries from one cursor costs
//! two comparisons an entry. Keys are compared by their first sixteen bytes as an integer where
//! the order is bytewise; the rest decides ties. Entries are unique (no two share a user key
//! and a tag) except for sequence numbers zeroed by compaction, which only ever sit in the
//! oldest run of their key: equal entries come out newest cursor first.

use std::cmp::Ordering;
use std::ops::ControlFlow;

use lithify_base::{ComparatorRef, Error, Result, Tag};
use lithify_tables::sst::Passed;

use super::Cursor;

/// The merge of `cursors`, given newest first.
pub(crate) struct Merging<C> {
    order: ComparatorRef,
    bytewise: bool,
    cursors: Vec<C>,
    /// Head of each cursor's current key (valid cursors only).
    heads: Vec<u128>,
    /// Indices of the valid cursors, a heap by the current direction.
    heap: Vec<u32>,
    forward: bool,
    /// The first error of a cursor: a merge that lost one is not to be trusted at all (P4).
    broken: Option<Error>,
}

/// The first sixteen bytes of a key as an integer that compares as they do.
#[inline]
pub(crate) fn head(key: &[u8]) -> u128 {
    match key.first_chunk::<16>() {
        Some(b) => u128::from_be_bytes(*b),
        None => {
            let mut b = [0; 16];
            b[..key.len()].copy_from_slice(key);
            u128::from_be_bytes(b)
        }
    }
}

/// The entry that a walk of one cursor ends before, in byte order.
struct Limit<'a> {
    /// `None` if there is none.
    user: Option<&'a [u8]>,
    head: u128,
    tag: Tag,
    /// An entry that equals it comes before it.
    is_after_equal: bool,
}

impl<'a> Limit<'a> {
    fn none() -> Limit<'a> {
        Limit { user: None, head: u128::MAX, tag: Tag(0), is_after_equal: false }
    }
    fn at(user: &'a [u8], head: u128, tag: Tag, is_after_equal: bool) -> Limit<'a> {
        Limit { user: Some(user), head, tag, is_after_equal }
    }
    #[inline]
    fn compare(&self, user: &[u8]) -> Ordering {
        let Some(limit) = self.user else { return Ordering::Less };
        head(user).cmp(&self.head).then_with(|| user.cmp(limit))
    }
    /// Whether an entry of its key with `tag` comes before it.
    fn is_before(&self, tag: Tag) -> bool {
        tag > self.tag || tag == self.tag && self.is_after_equal
    }
}

impl<C: Cursor> Merging<C> {
    pub(crate) fn new(order: ComparatorRef, cursors: Vec<C>) -> Merging<C> {
        let n = cursors.len();
        Merging {
            bytewise: order.is_bytewise(),
            order,
            heads: vec![0; n],
            heap: Vec::with_capacity(n),
            cursors,
            forward: true,
            broken: None,
        }
    }

    /// True if cursor `a` comes before cursor `b` in the current direction.
    #[inline]
    fn before(&self, a: u32, b: u32) -> bool {
        let (one, other) = (self.heads[a as usize], self.heads[b as usize]);
        if self.bytewise && one != other {
            return (one < other) == self.forward;
        }
        self.is_before_by_all(a as usize, b as usize)
    }
    /// The same where heads say nothing.
    fn is_before_by_all(&self, i: usize, j: usize) -> bool {
        let by_key = self.order.compare(self.cursors[i].user_key(), self.cursors[j].user_key());
        let by_entry = by_key
            .then_with(|| self.cursors[j].tag().cmp(&self.cursors[i].tag()))
            .then_with(|| i.cmp(&j));
        (by_entry == Ordering::Less) == self.forward
    }

    /// True if both cursors stand at the same user key, byte for byte.
    #[inline]
    fn is_same(&self, i: usize, j: usize) -> bool {
        self.heads[i] == self.heads[j] && self.cursors[i].user_key() == self.cursors[j].user_key()
    }

    fn sift_down(&mut self, mut at: usize) {
        loop {
            let left = 2 * at + 1;
            if left >= self.heap.len() {
                return;
            }
            let right = left + 1;
            let least = if right < self.heap.len() && self.before(self.heap[right], self.heap[left])
            {
                right
            } else {
                left
            };
            if !self.before(self.heap[least], self.heap[at]) {
                return;
            }
            self.heap.swap(least, at);
            at = least;
        }
    }

    fn rebuild(&mut self, forward: bool) {
        self.forward = forward;
        self.broken = None;
        self.heap.clear();
        for (i, cursor) in self.cursors.iter().enumerate() {
            if cursor.valid() {
                self.heads[i] = head(cursor.user_key());
                self.heap.push(i as u32);
            } else if let Err(e) = cursor.status() {
                self.broken = Some(e);
            }
        }
        for at in (0..self.heap.len() / 2).rev() {
            self.sift_down(at);
        }
    }

    /// After the top cursor moved: puts it, or what is left, back in order.
    fn settle_top(&mut self) {
        let top = self.heap[0] as usize;
        if self.cursors[top].valid() {
            self.heads[top] = head(self.cursors[top].user_key());
        } else {
            self.broken = self.cursors[top].status().err();
            self.heap.swap_remove(0);
        }
        self.sift_down(0);
    }

    /// Where in the heap the cursor is whose entry comes after the top's, if there is one.
    #[inline]
    fn second(&self) -> Option<usize> {
        let &left = self.heap.get(1)?;
        match self.heap.get(2) {
            Some(&right) if self.before(right, left) => Some(2),
            _ => Some(1),
        }
    }

    fn top(&self) -> &C {
        &self.cursors[self.heap[0] as usize]
    }

    /// Turns round: every other cursor is on the far side of the current entry for the old
    /// direction, so each is placed anew, and the current one steps.
    fn turn(&mut self, forward: bool) {
        let top = self.heap[0] as usize;
        let (key, tag) = (self.cursors[top].user_key().to_vec(), self.cursors[top].tag());
        for (i, c) in self.cursors.iter_mut().enumerate() {
            if i == top {
                continue;
            }
            // An equal entry in another cursor counts as after us if its index is larger.
            if forward {
                c.seek(&key, tag);
                if i < top && c.valid() && c.tag() == tag && c.user_key() == key {
                    c.next();
                }
            } else {
                c.seek_for_prev(&key, tag);
                if i > top && c.valid() && c.tag() == tag && c.user_key() == key {
                    c.prev();
                }
            }
        }
        let c = &mut self.cursors[top];
        if forward {
            c.next()
        } else {
            c.prev()
        }
        self.rebuild(forward);
    }
}

impl<C: Cursor> Cursor for Merging<C> {
    fn narrow(&mut self, prefix: Option<&[u8]>) {
        self.cursors.iter_mut().for_each(|c| c.narrow(prefix));
    }
    fn seek(&mut self, user: &[u8], tag: Tag) {
        self.cursors.iter_mut().for_each(|c| c.seek(user, tag));
        self.rebuild(true);
    }
    fn seek_for_prev(&mut self, user: &[u8], tag: Tag) {
        self.cursors.iter_mut().for_each(|c| c.seek_for_prev(user, tag));
        self.rebuild(false);
    }
    fn seek_to_first(&mut self) {
        self.cursors.iter_mut().for_each(Cursor::seek_to_first);
        self.rebuild(true);
    }
    fn seek_to_last(&mut self) {
        self.cursors.iter_mut().for_each(Cursor::seek_to_last);
        self.rebuild(false);
    }
    fn next(&mut self) {
        if !self.forward {
            return self.turn(true);
        }
        let top = self.heap[0] as usize;
        self.cursors[top].next();
        self.settle_top();
    }
    #[inline]
    fn next_of_same(&mut self) -> bool {
        if !self.forward {
            let before = self.user_key().to_vec();
            self.turn(true);
            return self.valid() && self.user_key() == before;
        }
        let top = self.heap[0] as usize;
        let second = self.second();
        let meets = second.is_some_and(|at| self.is_same(top, self.heap[at] as usize));
        let repeats = self.cursors[top].next_of_same();
        if !self.cursors[top].valid() {
            self.settle_top();
            return meets && self.valid();
        }
        self.heads[top] = head(self.cursors[top].user_key());
        match second {
            // The one that came second has its turn.
            Some(at) if self.before(self.heap[at], self.heap[0]) => {
                self.heap.swap(at, 0);
                self.sift_down(at);
                meets
            }
            _ => repeats,
        }
    }
    fn walk(&mut self, visit: &mut impl FnMut(Passed<'_>) -> ControlFlow<()>) -> ControlFlow<()> {
        debug_assert!(self.forward && self.bytewise, "who walks asks for that first");
        // Whether the next entry, of whichever cursor, has the key of the one that was given last.
        let mut goes_on = false;
        while self.valid() {
            let top = self.heap[0] as usize;
            let (cursor, limit) = match self.second() {
                None => (&mut self.cursors[top], Limit::none()),
                Some(second) => {
                    let second = self.heap[second] as usize;
                    let both = self.cursors.get_disjoint_mut([top, second]);
                    let [cursor, other] = both.expect("two places of the heap");
                    let head = self.heads[second];
                    (cursor, Limit::at(other.user_key(), head, other.tag(), second > top))
                }
            };
            // Whether the last entry given has the limit's key, and whether the limit was met.
            let (mut meets, mut met) = (false, false);
            let flow = cursor.walk(&mut |entry: Passed<'_>| {
                let by_key = limit.compare(entry.user);
                if by_key.is_gt() || by_key.is_eq() && !limit.is_before(entry.tag) {
                    met = true;
                    return ControlFlow::Break(());
                }
                let repeats = entry.repeats | std::mem::take(&mut goes_on);
                visit(Passed { repeats, ..entry })?;
                meets = by_key.is_eq();
                ControlFlow::Continue(())
            });
            self.settle_top();
            if flow.is_break() && !met {
                return flow;
            }
            goes_on = meets;
        }
        ControlFlow::Continue(())
    }
    fn prev(&mut self) {
        if self.forward {
            return self.turn(false);
        }
        let top = self.heap[0] as usize;
        self.cursors[top].prev();
        self.settle_top();
    }
    fn valid(&self) -> bool {
        !self.heap.is_empty() && self.broken.is_none()
    }
    fn user_key(&self) -> &[u8] {
        self.top().user_key()
    }
    fn tag(&self) -> Tag {
        self.top().tag()
    }
    fn value(&self) -> &[u8] {
        self.top().value()
    }
    #[inline]
    fn entry(&self) -> (&[u8], &[u8]) {
        self.top().entry()
    }
    fn status(&self) -> Result<()> {
        self.broken.clone().map_or(Ok(()), Err)
    }
}
