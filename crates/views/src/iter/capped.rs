//! The part of a cursor that was written up to a sequence number, for an iterator that shows newer
//! entries of another source beside it: a transaction's own, over the database as it was.
//!
//! Keeps: the order of the cursor underneath; newer entries are stepped over.

use lithify_base::{Result, Seq, Tag};

use super::Cursor;

/// `cursor` without entries newer than `cap`.
pub(crate) struct Capped<C> {
    cursor: C,
    cap: Seq,
}

impl<C: Cursor> Capped<C> {
    pub(crate) fn new(cursor: C, cap: Seq) -> Capped<C> {
        Capped { cursor, cap }
    }
    fn is_hidden(&self) -> bool {
        self.cursor.valid() && self.cursor.tag().seq() > self.cap
    }
    fn forward(&mut self) {
        while self.is_hidden() {
            self.cursor.next();
        }
    }
    fn back(&mut self) {
        while self.is_hidden() {
            self.cursor.prev();
        }
    }
}

impl<C: Cursor> Cursor for Capped<C> {
    fn narrow(&mut self, prefix: Option<&[u8]>) {
        self.cursor.narrow(prefix);
    }
    fn seek(&mut self, user: &[u8], tag: Tag) {
        // Larger tags come first, so this passes over hidden entries of `user` itself.
        self.cursor.seek(user, tag.min(Tag::seek(self.cap)));
        self.forward();
    }
    fn seek_for_prev(&mut self, user: &[u8], tag: Tag) {
        self.cursor.seek_for_prev(user, tag);
        self.back();
    }
    fn seek_to_first(&mut self) {
        self.cursor.seek_to_first();
        self.forward();
    }
    fn seek_to_last(&mut self) {
        self.cursor.seek_to_last();
        self.back();
    }
    fn next(&mut self) {
        self.cursor.next();
        self.forward();
    }
    fn next_of_same(&mut self) -> bool {
        let mut same = self.cursor.next_of_same();
        while self.is_hidden() {
            same &= self.cursor.next_of_same();
        }
        same
    }
    fn prev(&mut self) {
        self.cursor.prev();
        self.back();
    }
    fn valid(&self) -> bool {
        self.cursor.valid()
    }
    fn user_key(&self) -> &[u8] {
        self.cursor.user_key()
    }
    fn tag(&self) -> Tag {
        self.cursor.tag()
    }
    fn value(&self) -> &[u8] {
        self.cursor.value()
    }
    fn status(&self) -> Result<()> {
        self.cursor.status()
    }
}
