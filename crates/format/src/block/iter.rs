//! Iterators over data and meta blocks, and over index blocks.
//!
//! Both own their bytes through any `AsRef<[u8]>` (a slice, an `Arc`, a cache entry) and one key
//! buffer. A seek allocates nothing once the buffer has grown to the longest key.

use std::cmp::Ordering;
use std::ops::{ControlFlow, Range};

use lithify_base::{Comparator, InternalKey, Result};

use super::cursor::{Cursor, ValueForm};
use super::layout::Layout;
use super::walk::BlockEntry;
use crate::table::handle::BlockHandle;

/// Iterator over a block whose values are byte strings.
///
/// Every move returns whether it stands on an entry. After an error, or past either end, it
/// stands on none: [`key`](BlockIter::key) and [`value`](BlockIter::value) are empty.
#[derive(Clone, Debug)]
pub struct BlockIter<B> {
    bytes: B,
    cursor: Cursor,
}

impl<B: AsRef<[u8]>> BlockIter<B> {
    /// Over a data or range-deletion block, whose keys are internal keys.
    ///
    /// # Errors
    /// Corruption if the block's tail does not fit it.
    pub fn new(bytes: B) -> Result<BlockIter<B>> {
        let layout = Layout::parse(bytes.as_ref())?;
        Ok(BlockIter { bytes, cursor: Cursor::new(layout, ValueForm::Bytes, 8) })
    }
    /// Over a meta block, whose keys are names.
    ///
    /// # Errors
    /// Corruption if the block's tail does not fit it.
    pub fn named(bytes: B) -> Result<BlockIter<B>> {
        let layout = Layout::parse(bytes.as_ref())?;
        Ok(BlockIter { bytes, cursor: Cursor::new(layout, ValueForm::Bytes, 0) })
    }
    /// Moves to another block, standing on no entry; keeps the key buffer. Returns the old block.
    ///
    /// # Errors
    /// Corruption if the block's tail does not fit it; the iterator is then unchanged.
    pub fn replace(&mut self, bytes: B) -> Result<B> {
        self.cursor.reset(Layout::parse(bytes.as_ref())?);
        Ok(std::mem::replace(&mut self.bytes, bytes))
    }
    /// The block.
    pub fn bytes(&self) -> &B {
        &self.bytes
    }
    /// Its parsed tail.
    pub fn layout(&self) -> &Layout {
        self.cursor.layout()
    }
    /// True if the iterator stands on an entry.
    #[inline]
    pub fn valid(&self) -> bool {
        self.cursor.valid()
    }
    /// The encoded key; empty if not valid.
    #[inline]
    pub fn key(&self) -> &[u8] {
        self.cursor.key()
    }
    /// The key, split.
    ///
    /// # Panics
    /// If not valid, or on a block of names.
    #[inline]
    pub fn internal_key(&self) -> InternalKey<'_> {
        InternalKey::decode(self.cursor.key()).expect("the iterator stands on an internal key")
    }
    /// The value; empty if not valid.
    #[inline]
    pub fn value(&self) -> &[u8] {
        self.bytes.as_ref().get(self.cursor.value()).unwrap_or_default()
    }
    /// Where the value lies in the block, for callers that keep the block instead of a copy.
    pub fn value_range(&self) -> Range<usize> {
        self.cursor.value()
    }
    /// Moves to the first entry.
    ///
    /// # Errors
    /// Corruption if an entry on the way does not decode; so for all moves.
    pub fn seek_to_first(&mut self) -> Result<bool> {
        self.cursor.seek_to_first(self.bytes.as_ref())
    }
    /// Moves to the last entry.
    ///
    /// # Errors
    /// As [`seek_to_first`](BlockIter::seek_to_first).
    pub fn seek_to_last(&mut self) -> Result<bool> {
        self.cursor.seek_to_last(self.bytes.as_ref())
    }
    /// Moves to the first entry at or after `target`.
    ///
    /// # Errors
    /// As [`seek_to_first`](BlockIter::seek_to_first).
    #[inline]
    pub fn seek(&mut self, target: InternalKey<'_>, order: &dyn Comparator) -> Result<bool> {
        seek_internal(&mut self.cursor, self.bytes.as_ref(), target, order)
    }
    /// Moves to the first name at or after `name`, in byte order.
    ///
    /// # Errors
    /// As [`seek_to_first`](BlockIter::seek_to_first).
    pub fn seek_name(&mut self, name: &[u8]) -> Result<bool> {
        self.cursor.seek(self.bytes.as_ref(), |key| key.cmp(name))
    }
    /// Moves to the next entry. Past the end it stays there.
    ///
    /// # Errors
    /// As [`seek_to_first`](BlockIter::seek_to_first).
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "a fallible move, not an Iterator")]
    pub fn next(&mut self) -> Result<bool> {
        self.cursor.next(self.bytes.as_ref())
    }
    /// Moves to the next entry, and says whether it has the user key of the one before, byte for byte. `None` from the
    /// last one, where it stays. A step costs less than with [`next`](BlockIter::next).
    ///
    /// # Errors
    /// As [`seek_to_first`](BlockIter::seek_to_first).
    ///
    /// # Panics
    /// On a block of names.
    #[inline]
    pub fn next_of_same(&mut self) -> Result<Option<bool>> {
        assert!(self.cursor.has_tags(), "user keys are part of internal keys");
        self.cursor.next_of_same(self.bytes.as_ref())
    }
    /// Gives the current entry and those after it to `visit`, until it breaks or the block ends. Stands at the entry
    /// that `visit` broke at, or else at the last one, and gives none if it is not valid. A step costs less
    /// than with [`next`](BlockIter::next).
    ///
    /// # Errors
    /// As [`seek_to_first`](BlockIter::seek_to_first); entries before the bad one were given.
    ///
    /// # Panics
    /// On a block of names.
    #[inline]
    pub fn walk(
        &mut self,
        visit: &mut impl FnMut(BlockEntry<'_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        assert!(self.cursor.has_tags(), "a walk is over internal keys");
        match self.valid() {
            true => self.cursor.walk(self.bytes.as_ref(), visit),
            false => Ok(ControlFlow::Continue(())),
        }
    }
    /// Moves to the previous entry; from past the end, to the last one. The first two in a row cost a scan from the
    /// restart point before, and those after them to that point little.
    ///
    /// # Errors
    /// As [`seek_to_first`](BlockIter::seek_to_first).
    pub fn prev(&mut self) -> Result<bool> {
        self.cursor.prev(self.bytes.as_ref())
    }
    /// Checks what searches and walks backward rely on, and walks forward do not: each restart point is
    /// an entry behind the one before, with its whole key. The cursor stands nowhere afterwards.
    ///
    /// # Errors
    /// Corruption if one is not.
    pub fn check_restarts(&mut self) -> Result<()> {
        self.cursor.check_restarts(self.bytes.as_ref())
    }
}

/// How the keys of an index are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexKeys {
    /// User keys: no user key spans two blocks.
    User,
    /// Internal keys.
    Internal,
}

/// How an index block is encoded; from the table's properties and format version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexForm {
    /// Separators: user or internal keys.
    pub keys: IndexKeys,
    /// Handles without length, as changes in size where keys share bytes (format_version >= 4).
    pub delta_handles: bool,
    /// Each handle is followed by the first internal key of its block.
    pub first_keys: bool,
}

impl IndexForm {
    /// What we write, but for the kind of keys.
    pub const fn delta(keys: IndexKeys) -> IndexForm {
        IndexForm { keys, delta_handles: true, first_keys: false }
    }
    /// LevelDB's, and RocksDB's before format_version 3.
    pub const fn plain() -> IndexForm {
        IndexForm { keys: IndexKeys::Internal, delta_handles: false, first_keys: false }
    }
}

/// Iterator over an index block: separators and the handles of the blocks they bound.
#[derive(Clone, Debug)]
pub struct IndexIter<B> {
    bytes: B,
    cursor: Cursor,
    form: IndexForm,
}

impl<B: AsRef<[u8]>> IndexIter<B> {
    /// Over an index block of the given form.
    ///
    /// # Errors
    /// Corruption if the block's tail does not fit it.
    pub fn new(bytes: B, form: IndexForm) -> Result<IndexIter<B>> {
        let layout = Layout::parse(bytes.as_ref())?;
        let first_key = form.first_keys;
        let values = match form.delta_handles {
            true => ValueForm::DeltaHandle { first_key },
            false => ValueForm::WholeHandle { first_key },
        };
        let min_key = if form.keys == IndexKeys::User { 0 } else { 8 };
        Ok(IndexIter { bytes, cursor: Cursor::new(layout, values, min_key), form })
    }
    /// Moves to another block of the same form, standing on no entry. Returns the old block.
    ///
    /// # Errors
    /// Corruption if the block's tail does not fit it; the iterator is then unchanged.
    pub fn replace(&mut self, bytes: B) -> Result<B> {
        self.cursor.reset(Layout::parse(bytes.as_ref())?);
        Ok(std::mem::replace(&mut self.bytes, bytes))
    }
    /// The block.
    pub fn bytes(&self) -> &B {
        &self.bytes
    }
    /// The form it is read in.
    pub fn form(&self) -> IndexForm {
        self.form
    }
    /// True if the iterator stands on an entry.
    #[inline]
    pub fn valid(&self) -> bool {
        self.cursor.valid()
    }
    /// The separator as stored: a user or an internal key, by the form. At or above every key of
    /// its block, below every key of the next.
    #[inline]
    pub fn separator(&self) -> &[u8] {
        self.cursor.key()
    }
    /// The user-key part of the separator.
    pub fn separator_user_key(&self) -> &[u8] {
        let key = self.cursor.key();
        match self.form.keys {
            IndexKeys::User => key,
            IndexKeys::Internal => InternalKey::decode(key).map_or(&[], |k| k.user),
        }
    }
    /// The handle of the block.
    #[inline]
    pub fn handle(&self) -> BlockHandle {
        self.cursor.handle()
    }
    /// The first internal key of the block, where the form has it.
    pub fn first_key(&self) -> Option<&[u8]> {
        let key = self.bytes.as_ref().get(self.cursor.first_key());
        key.filter(|_| self.form.first_keys && self.valid())
    }
    /// Moves to the block that holds `target`, if any does: the first separator at or above it.
    ///
    /// # Errors
    /// Corruption if an entry on the way does not decode; so for all moves.
    #[inline]
    pub fn seek(&mut self, target: InternalKey<'_>, order: &dyn Comparator) -> Result<bool> {
        let block = self.bytes.as_ref();
        match self.form.keys {
            IndexKeys::Internal => seek_internal(&mut self.cursor, block, target, order),
            IndexKeys::User if order.is_bytewise() => {
                self.cursor.seek_bytewise(block, target.user, None)
            }
            IndexKeys::User => self.cursor.seek(block, |key| order.compare(key, target.user)),
        }
    }
    /// Moves to the first block.
    ///
    /// # Errors
    /// As [`seek`](IndexIter::seek).
    pub fn seek_to_first(&mut self) -> Result<bool> {
        self.cursor.seek_to_first(self.bytes.as_ref())
    }
    /// Moves to the last block.
    ///
    /// # Errors
    /// As [`seek`](IndexIter::seek).
    pub fn seek_to_last(&mut self) -> Result<bool> {
        self.cursor.seek_to_last(self.bytes.as_ref())
    }
    /// Moves to the next block.
    ///
    /// # Errors
    /// As [`seek`](IndexIter::seek).
    #[expect(clippy::should_implement_trait, reason = "a fallible move, not an Iterator")]
    pub fn next(&mut self) -> Result<bool> {
        self.cursor.next(self.bytes.as_ref())
    }
    /// Moves to the previous block; from past the end, to the last one.
    ///
    /// # Errors
    /// As [`seek`](IndexIter::seek).
    pub fn prev(&mut self) -> Result<bool> {
        self.cursor.prev(self.bytes.as_ref())
    }
}

#[inline]
fn seek_internal(
    cursor: &mut Cursor,
    block: &[u8],
    target: InternalKey<'_>,
    order: &dyn Comparator,
) -> Result<bool> {
    if order.is_bytewise() {
        return cursor.seek_bytewise(block, target.user, Some(target.tag));
    }
    cursor.seek(block, |key| compare_by(key, target, order))
}

/// Total order of an encoded internal key against `target`. The cursor admits no key shorter
/// than a tag, so the fallback is never taken.
fn compare_by(key: &[u8], target: InternalKey<'_>, order: &dyn Comparator) -> Ordering {
    InternalKey::decode(key).map_or(Ordering::Less, |key| key.cmp(target, order))
}
