//! Cursors over the index: iterators of readers, versions of a key, the walk of a flush.
//!
//! Keeps: a cursor yields entries in strict order and skips none that existed when it was last
//! positioned. What is added later may or may not show up.
//! Leaves to others: visibility by sequence number, deletions, merging with other runs.
//!
//! A cursor works on a copy of one leaf's record pointers, taken at one moment, so stepping inside
//! a leaf costs no synchronisation. The copy's right neighbour began, at that moment, right where
//! the copy ends, and nodes shrink on their right side only: stepping forward is to copy that
//! neighbour. Stepping back from a copy's first record is a new descent.

use std::sync::Arc;

use lithify_base::{Seq, Tag};

use crate::arena::Rec;
use crate::index::{At, First, Last, Probe};
use crate::node::{NodeRef, WIDTH};
use crate::table::MemTable;

/// A position in the copy of a leaf. Valid while `at < n`.
struct Cursor<'t> {
    recs: [Option<Rec<'t>>; WIDTH],
    n: usize,
    at: usize,
    next: Option<NodeRef<'t>>,
}

impl<'t> Cursor<'t> {
    fn new() -> Cursor<'t> {
        Cursor { recs: [None; WIDTH], n: 0, at: 0, next: None }
    }
    #[inline(always)]
    fn rec(&self) -> Option<Rec<'t>> {
        if self.at < self.n { self.recs[self.at] } else { None }
    }
    /// Copies the leaf of `probe` and answers the position in it.
    fn descend(&mut self, table: &'t MemTable, probe: &impl Probe) -> usize {
        let recs = &mut self.recs;
        let (n, at, next) = table.index().locate(probe, |leaf, n, at| {
            for (i, slot) in recs[..n].iter_mut().enumerate() {
                *slot = leaf.rec(i);
            }
            (n, at, leaf.next())
        });
        (self.n, self.next) = (n, next);
        at
    }
    /// To the first entry behind the position of `probe`.
    fn seek(&mut self, table: &'t MemTable, probe: &impl Probe) {
        self.at = self.descend(table, probe);
        self.settle(table);
    }
    /// To the last entry before the position of `probe`.
    fn seek_back(&mut self, table: &'t MemTable, probe: &impl Probe) {
        // Position 0 happens in the leftmost leaf only: nothing lies before.
        self.at = self.descend(table, probe).checked_sub(1).unwrap_or(self.n);
    }
    #[inline(always)]
    fn next(&mut self, table: &'t MemTable) {
        self.at += 1;
        self.settle(table);
    }
    /// From the end of a copy to the start of the next.
    #[inline(always)]
    fn settle(&mut self, table: &'t MemTable) {
        while self.at >= self.n
            && let Some(leaf) = self.next
        {
            (self.n, self.next) = table.index().copy_leaf(leaf, &mut self.recs);
            self.at = 0;
        }
    }
    #[inline(always)]
    fn prev(&mut self, table: &'t MemTable) {
        if self.at > 0 {
            self.at -= 1;
        } else if let Some(rec) = self.rec() {
            self.seek_back(table, &table.at(rec.user(), rec.tag()));
        }
    }
}

/// An iterator over all entries of a memtable, in the order of internal keys. It keeps the table
/// alive and stays right while the writer goes on: it skips no entry that existed when it was
/// last sought.
pub struct MemIter {
    /// Borrows from `table`, whose records and nodes do not move and are not freed before it.
    cursor: Cursor<'static>,
    table: Arc<MemTable>,
}

impl MemIter {
    /// An iterator that is not positioned yet.
    pub(crate) fn new(table: Arc<MemTable>) -> MemIter {
        MemIter { cursor: Cursor::new(), table }
    }
    #[inline(always)]
    fn parts(&mut self) -> (&mut Cursor<'static>, &'static MemTable) {
        // SAFETY: the table lives in the `Arc` beside the cursor, and the two are never
        // separated. What borrows for 'static stays in the cursor: the public methods hand out
        // borrows of `self`, and a cursor has no drop that could look at the table.
        let table = unsafe { &*Arc::as_ptr(&self.table) };
        (&mut self.cursor, table)
    }
    fn rec(&self) -> Rec<'_> {
        self.cursor.rec().expect("the iterator is valid")
    }
    /// True if the iterator stands on an entry.
    pub fn valid(&self) -> bool {
        self.cursor.rec().is_some()
    }
    /// To the first entry at or behind the internal key `(user, tag)`.
    pub fn seek(&mut self, user: &[u8], tag: Tag) {
        let (cursor, table) = self.parts();
        cursor.seek(table, &table.at(user, tag));
    }
    /// To the last entry at or before the internal key `(user, tag)`.
    pub fn seek_for_prev(&mut self, user: &[u8], tag: Tag) {
        let (cursor, table) = self.parts();
        cursor.seek_back(table, &At { behind: true, ..table.at(user, tag) });
    }
    /// To the first entry.
    pub fn seek_to_first(&mut self) {
        let (cursor, table) = self.parts();
        cursor.seek(table, &First);
    }
    /// To the last entry.
    pub fn seek_to_last(&mut self) {
        let (cursor, table) = self.parts();
        cursor.seek_back(table, &Last);
    }
    /// To the following entry.
    ///
    /// # Panics
    /// If the iterator is not valid.
    #[inline]
    pub fn next(&mut self) {
        assert!(self.valid(), "next of an iterator that stands nowhere");
        let (cursor, table) = self.parts();
        cursor.next(table);
    }
    /// The same. Whether the entry there has the user key of the one before, byte for byte.
    ///
    /// # Panics
    /// If the iterator is not valid.
    #[inline]
    pub fn next_of_same(&mut self) -> bool {
        let (cursor, table) = self.parts();
        let before = cursor.rec().expect("the iterator is valid");
        cursor.next(table);
        cursor.rec().is_some_and(|rec| rec.user() == before.user())
    }
    /// To the entry before.
    ///
    /// # Panics
    /// If the iterator is not valid.
    #[inline]
    pub fn prev(&mut self) {
        assert!(self.valid(), "prev of an iterator that stands nowhere");
        let (cursor, table) = self.parts();
        cursor.prev(table);
    }
    /// User key of the entry. Panics if the iterator is not valid, as the next two do.
    #[inline]
    pub fn user_key(&self) -> &[u8] {
        self.rec().user()
    }
    /// Sequence number and kind of the entry.
    #[inline]
    pub fn tag(&self) -> Tag {
        self.rec().tag()
    }
    /// Value of the entry.
    #[inline]
    pub fn value(&self) -> &[u8] {
        self.rec().value()
    }
    /// The table.
    pub fn table(&self) -> &Arc<MemTable> {
        &self.table
    }
}

/// The entries of one user key, newest first, from a sequence number on.
///
/// The first costs one descent. Only who asks for a second pays for a cursor.
pub struct Versions<'t, 'k> {
    table: &'t MemTable,
    user: &'k [u8],
    state: Progress<'t>,
}

enum Progress<'t> {
    Start(Tag),
    One(Tag),
    Many(Box<Cursor<'t>>),
    End,
}

impl<'t, 'k> Versions<'t, 'k> {
    pub(crate) fn new(table: &'t MemTable, user: &'k [u8], at: Seq) -> Versions<'t, 'k> {
        Versions { table, user, state: Progress::Start(Tag::seek(at)) }
    }
}

impl<'t> Iterator for Versions<'t, '_> {
    type Item = (Tag, &'t [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let table = self.table;
        let rec = match &mut self.state {
            Progress::Start(tag) => table.find(&table.at(self.user, *tag)),
            Progress::One(tag) => {
                let mut cursor = Box::new(Cursor::new());
                let probe = At { behind: true, ..table.at(self.user, *tag) };
                cursor.seek(table, &probe);
                let rec = cursor.rec();
                self.state = Progress::Many(cursor);
                rec
            }
            Progress::Many(cursor) => {
                cursor.next(table);
                cursor.rec()
            }
            Progress::End => None,
        };
        let Some(rec) = rec.filter(|rec| table.same_key(rec.user(), self.user)) else {
            self.state = Progress::End;
            return None;
        };
        if let Progress::Start(_) = self.state {
            self.state = Progress::One(rec.tag());
        }
        Some((rec.tag(), rec.value()))
    }
}

/// All entries in order, for a flush. The records of the next leaf are on their way into cache
/// while those of this leaf are used, because a walk in key order touches the arena at random.
pub struct Walk<'t> {
    table: &'t MemTable,
    here: Cursor<'t>,
    ahead: Cursor<'t>,
}

impl<'t> Walk<'t> {
    pub(crate) fn new(table: &'t MemTable) -> Walk<'t> {
        let mut walk = Walk { table, here: Cursor::new(), ahead: Cursor::new() };
        walk.ahead.descend(table, &First);
        walk.ahead.recs[..walk.ahead.n].iter().flatten().for_each(|rec| rec.prefetch());
        walk.turn();
        walk
    }

    /// The walk from behind the entry `(user, tag)` on.
    pub(crate) fn after(table: &'t MemTable, user: &[u8], tag: Tag) -> Walk<'t> {
        let mut walk = Walk { table, here: Cursor::new(), ahead: Cursor::new() };
        walk.here.seek(table, &At { behind: true, ..table.at(user, tag) });
        walk.prepare();
        walk
    }

    /// Goes to the leaf that was prepared and prepares the one after it.
    fn turn(&mut self) {
        std::mem::swap(&mut self.here, &mut self.ahead);
        self.here.at = 0;
        self.prepare();
    }

    /// Copies the leaf behind this one and asks for its records.
    fn prepare(&mut self) {
        self.ahead.n = 0;
        self.ahead.next = None;
        if let Some(leaf) = self.here.next {
            (self.ahead.n, self.ahead.next) =
                self.table.index().copy_leaf(leaf, &mut self.ahead.recs);
        }
        if let Some(leaf) = self.ahead.next {
            leaf.prefetch_records();
        }
    }
}

impl<'t> Iterator for Walk<'t> {
    type Item = (&'t [u8], Tag, &'t [u8]);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.here.at >= self.here.n {
            // Entries left over in `ahead` were not asked for: this leaf was the shorter one.
            let at = self.here.n;
            self.ahead.recs[at.min(self.ahead.n)..self.ahead.n]
                .iter()
                .flatten()
                .for_each(|rec| rec.prefetch());
            self.turn();
        }
        let rec = self.here.rec()?;
        if let Some(coming) = self.ahead.recs[self.here.at]
            && self.here.at < self.ahead.n
        {
            coming.prefetch();
        }
        self.here.at += 1;
        Some((rec.user(), rec.tag(), rec.value()))
    }
}
