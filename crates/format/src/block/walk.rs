//! Many entries of a block in a row, each for a few instructions: what a scan does most.
//!
//! Keeps: gives what steps of the cursor give (its naive twin in the tests), and says of each entry whether it has
//! the user key of the one before, which it knows from the few bytes that the two do not share.
//! Leaves to others: which entries are visible; the next block.

use std::ops::ControlFlow;

use lithify_base::Result;

use super::cursor::{Cursor, Usual};

/// An entry that a walk over a block comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockEntry<'a> {
    /// The encoded internal key.
    pub key: &'a [u8],
    /// Its value.
    pub value: &'a [u8],
    /// Whether it has the user key of the entry before, byte for byte. False for the first one of a walk.
    pub repeats: bool,
}

/// Makes `key` the one that shares `shared` bytes with it and ends in `tail`. Whether its user key is the same;
/// `None`, and it stays as it is, for one that shares more than there is, or is too short for a tag.
#[inline(always)]
fn step(key: &mut Vec<u8>, shared: usize, tail: &[u8]) -> Option<bool> {
    let (before, end) = (key.len(), shared + tail.len());
    if shared > before || end < 8 {
        return None;
    }
    let mut repeats = false;
    if end == before {
        // The last eight bytes are the tags. What the two share need not be looked at, and keys in a row that are not
        // the same seldom end alike.
        let own = key.get(shared..end - 8).unwrap_or_default();
        let new = tail.get(..own.len()).unwrap_or_default();
        repeats = own.last() == new.last() && own == new;
    } else {
        key.resize(end, 0);
    }
    copy(key.get_mut(shared..)?, tail);
    Some(repeats)
}

/// `from` to `to`, which is as long: without a call where it is short.
#[inline(always)]
fn copy(to: &mut [u8], from: &[u8]) {
    let short = from.len() <= 16;
    if let (true, Some(first), Some(last)) =
        (short, from.first_chunk::<8>(), from.last_chunk::<8>())
        && to.len() == from.len()
    {
        if let Some(to) = to.first_chunk_mut::<8>() {
            *to = *first;
        }
        if let Some(to) = to.last_chunk_mut::<8>() {
            *to = *last;
        }
        return;
    }
    to.copy_from_slice(from);
}

impl Cursor {
    /// Gives the entry at hand and those after it to `visit`, until it breaks or the block ends: stands at the one
    /// that it broke at, or at the last one. Keys are internal keys.
    #[inline]
    pub(super) fn walk(
        &mut self,
        block: &[u8],
        visit: &mut impl FnMut(BlockEntry<'_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        let mut repeats = false;
        loop {
            // One call in one loop, so that all that layers above do with an entry may become a part of it.
            let value = block.get(self.value.clone()).unwrap_or_default();
            if visit(BlockEntry { key: &self.key, value, repeats }).is_break() {
                return Ok(ControlFlow::Break(()));
            }
            if self.next >= self.layout.keys_end {
                return Ok(ControlFlow::Continue(()));
            }
            repeats = match self.step_quickly(block) {
                Some(repeats) => repeats,
                None => self.step_plainly(block)?,
            };
        }
    }

    /// To the next entry. Whether it has the user key of this one; `None`, and the cursor has not moved, if there is none.
    ///
    /// # Errors
    /// Corruption if it does not decode.
    #[inline]
    pub(super) fn next_of_same(&mut self, block: &[u8]) -> Result<Option<bool>> {
        if let Some(repeats) = self.step_quickly(block) {
            return Ok(Some(repeats));
        }
        match self.next < self.layout.keys_end {
            true => self.step_plainly(block).map(Some),
            false => Ok(None),
        }
    }

    /// To the next entry, if it is one of the usual ones. Whether it has the user key of this one. `None`, and the
    /// cursor has not moved, if it is not, or is damaged.
    #[inline(always)]
    fn step_quickly(&mut self, block: &[u8]) -> Option<bool> {
        let Usual { shared, tail, value } = self.usual(block)?;
        let repeats = step(&mut self.key, shared, tail)?;
        self.enter(value);
        Some(repeats)
    }

    /// The same to any entry behind this one.
    ///
    /// # Errors
    /// Corruption if it does not decode.
    #[cold]
    fn step_plainly(&mut self, block: &[u8]) -> Result<bool> {
        let before = self.key.clone();
        self.next(block)?;
        let user = |key: &[u8]| key.len().saturating_sub(8);
        Ok(self.key.get(..user(&self.key)) == before.get(..user(&before)))
    }
}
