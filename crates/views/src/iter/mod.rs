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

use lithify_base::{Result, Tag};

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
    /// The error that made the cursor invalid, if one did.
    fn status(&self) -> Result<()>;
}
