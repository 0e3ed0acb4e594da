//! The iterator that users hold.

use std::ops::ControlFlow;

use lithify_base::Result;
use lithify_env::sync::Arc;
use lithify_tables::cache::in_memory_only;

use super::child::Merged;
use super::user::User;
use crate::super_version::SuperVersion;

/// An iterator over user keys. It shows the database as it was when the iterator was made (or
/// its snapshot), owns what it needs, and may outlive the handle.
pub struct DbIter {
    pub(crate) user: User<Merged>,
    /// Its moves read no table file.
    pub(crate) memory_only: bool,
    /// Keeps memtables and tables alive.
    pub(crate) _pinned: Arc<SuperVersion>,
}

impl std::fmt::Debug for DbIter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.valid() {
            true => write!(f, "DbIter(at \"{}\")", self.key().escape_ascii()),
            false => write!(f, "DbIter(at no entry)"),
        }
    }
}

impl DbIter {
    /// Moves to the first key at or after `key`.
    pub fn seek(&mut self, key: impl AsRef<[u8]>) {
        in_memory_only(self.memory_only, || self.user.seek(key.as_ref()));
    }
    /// Moves to the last key at or before `key`.
    pub fn seek_for_prev(&mut self, key: impl AsRef<[u8]>) {
        in_memory_only(self.memory_only, || self.user.seek_for_prev(key.as_ref()));
    }
    /// Moves to the first key.
    pub fn seek_to_first(&mut self) {
        in_memory_only(self.memory_only, || self.user.seek_to_first());
    }
    /// Moves to the last key.
    pub fn seek_to_last(&mut self) {
        in_memory_only(self.memory_only, || self.user.seek_to_last());
    }
    /// Moves to the next key; no effect if there is no current one.
    pub fn next(&mut self) {
        in_memory_only(self.memory_only, || self.user.next());
    }
    /// Gives the current key and value and those after them to `take`, in order, until it breaks or there are no more.
    /// Stands at the entry that `take` broke at, or is no longer valid: ask [`status`](DbIter::status) then. It does what
    /// [`next`](DbIter::next) does in a loop, in less time where many small entries lie one behind another.
    ///
    /// ```
    /// # use std::ops::ControlFlow;
    /// # fn total(iter: &mut lithify_views::iter::db::DbIter) -> lithify_base::Result<usize> {
    /// let mut bytes = 0;
    /// iter.seek_to_first();
    /// iter.walk(|key, value| {
    ///     bytes += key.len() + value.len();
    ///     ControlFlow::Continue(())
    /// });
    /// iter.status()?;
    /// # Ok(bytes)
    /// # }
    /// ```
    pub fn walk(&mut self, mut take: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>) {
        in_memory_only(self.memory_only, || self.user.walk(&mut take));
    }
    /// Moves to the previous key; no effect if there is no current one.
    pub fn prev(&mut self) {
        in_memory_only(self.memory_only, || self.user.prev());
    }
    /// True if the iterator is at an entry. False at either end, before the first seek, and
    /// after an error: ask [`status`](DbIter::status).
    pub fn valid(&self) -> bool {
        self.user.valid()
    }
    /// The current key; empty if not [`valid`](DbIter::valid).
    pub fn key(&self) -> &[u8] {
        if self.valid() { self.user.key() } else { &[] }
    }
    /// The current value; empty if not [`valid`](DbIter::valid).
    pub fn value(&self) -> &[u8] {
        if self.valid() { self.user.value() } else { &[] }
    }
    /// The current key and value; `None` if not [`valid`](DbIter::valid). It is one look where those are three.
    ///
    /// ```
    /// # fn longest(iter: &mut lithify_views::iter::db::DbIter) -> lithify_base::Result<usize> {
    /// let mut longest = 0;
    /// iter.seek_to_first();
    /// while let Some((key, value)) = iter.entry() {
    ///     longest = longest.max(key.len() + value.len());
    ///     iter.next();
    /// }
    /// iter.status()?;
    /// # Ok(longest)
    /// # }
    /// ```
    #[inline]
    pub fn entry(&self) -> Option<(&[u8], &[u8])> {
        self.user.entry()
    }
    /// The error that ended the iteration, if one did. Check it whenever `valid` turns false.
    ///
    /// # Errors
    /// `Corruption` or `Io` naming file and place; `MergeFailed` at a key whose operands the merge
    /// operator can't combine.
    pub fn status(&self) -> Result<()> {
        self.user.status()
    }
}
