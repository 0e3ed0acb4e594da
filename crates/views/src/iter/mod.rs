//! Iterators, bottom up: a cursor over one memtable or one run (`stratum`), many cursors merged
//! into one internal order (`merging`), and what the user sees of it (`user`).

pub(crate) mod capped;
pub(crate) mod child;
pub mod db;
pub(crate) mod merging;
pub(crate) mod stratum;
pub(crate) mod tombstones;
pub(crate) mod user;

#[cfg(test)]
mod tests;

use std::ops::ControlFlow;

use lithify_base::{Result, Tag};
use lithify_tables::sst::Passed;

/// A cursor over internal entries in the one total order: user key ascending, tag descending.
///
/// After any move the cursor is at an entry or not valid; a cursor that is not valid because
/// bytes could not be read says so in [`status`](Cursor::status), never by ending early in
/// silence (P4).
pub(crate) trait Cursor {
    /// From the next move on only keys whose prefix, as the database takes it, is `prefix` are of
    /// interest: others may be left out. `None`: whichever the iterator shows at all.
    fn narrow(&mut self, prefix: Option<&[u8]>);
    /// Moves to the first entry at or after (`user`, `tag`).
    fn seek(&mut self, user: &[u8], tag: Tag);
    /// Moves to the last entry at or before (`user`, `tag`).
    fn seek_for_prev(&mut self, user: &[u8], tag: Tag);
    /// Moves to the first entry.
    fn seek_to_first(&mut self);
    /// Moves to the last entry.
    fn seek_to_last(&mut self);
    /// Moves one entry forward. The cursor must be valid.
    fn next(&mut self);
    /// The same. Whether the entry there has the user key of the one before, byte for byte. For orders in which equal
    /// keys have the same bytes.
    fn next_of_same(&mut self) -> bool {
        let before = self.user_key().to_vec();
        self.next();
        self.valid() && self.user_key() == before
    }
    /// Gives the current entry and those after it to `visit`, until it breaks or there are no more: stands at the
    /// entry that `visit` broke at, or is not valid. For byte order, and only on the way forward.
    fn walk(&mut self, visit: &mut impl FnMut(Passed<'_>) -> ControlFlow<()>) -> ControlFlow<()> {
        by_steps(self, visit)
    }
    /// Moves one entry back. The cursor must be valid.
    fn prev(&mut self);
    /// True if the cursor is at an entry.
    fn valid(&self) -> bool;
    /// User key of the entry.
    fn user_key(&self) -> &[u8];
    /// Sequence number and kind of the entry.
    fn tag(&self) -> Tag;
    /// Value of the entry.
    fn value(&self) -> &[u8];
    /// User key and value, in one look.
    #[inline]
    fn entry(&self) -> (&[u8], &[u8]) {
        (self.user_key(), self.value())
    }
    /// The error that made the cursor invalid, if one did.
    fn status(&self) -> Result<()>;
}

/// A walk of a cursor that knows no better way.
fn by_steps<C: Cursor + ?Sized>(
    cursor: &mut C,
    visit: &mut impl FnMut(Passed<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let mut repeats = false;
    while cursor.valid() {
        let (user, tag, value) = (cursor.user_key(), cursor.tag(), cursor.value());
        visit(Passed { user, tag, value, repeats })?;
        repeats = cursor.next_of_same();
    }
    ControlFlow::Continue(())
}
