//! The filter of an open table: one block in memory, or parts by ranges of keys, which are in memory
//! or, where there is a cache, read through it.
//!
//! Keeps: never denies a key of the table. A part that cannot be read is an error, never an answer.

use lithify_base::{Comparator, MAX_SEQ, Result, Tag};
use lithify_format::filter::{Filter, FilterShape};
use lithify_format::table::handle::BlockHandle;

use super::fence::{BlockAt, Fences};
use super::reader::TableReader;

/// A table's filter.
pub(crate) enum TableFilter {
    /// It has none, or one that says nothing of whole keys.
    None,
    /// One for all keys.
    Full(Filter<Box<[u8]>>),
    /// One per range of keys: `fences` say which.
    Parts {
        fences: Fences,
        /// The filters, if there is no cache to keep them in.
        held: Option<Vec<Filter<Box<[u8]>>>>,
    },
}

impl TableFilter {
    pub(crate) fn memory(&self) -> usize {
        match self {
            TableFilter::None => 0,
            TableFilter::Full(filter) => filter.bytes().len(),
            TableFilter::Parts { fences, held } => {
                let held = held.iter().flatten();
                fences.memory() + held.map(|f| f.bytes().len()).sum::<usize>()
            }
        }
    }
}

impl TableReader {
    /// False only if no key with this hash and bytes is in the table.
    ///
    /// # Errors
    /// Corruption or Io if a part of the filter cannot be read.
    #[inline]
    pub fn may_contain(&self, key: &[u8], hash: u64) -> Result<bool> {
        match &self.filter {
            TableFilter::Full(filter) => Ok(filter.may_contain(hash)),
            TableFilter::None => Ok(true),
            TableFilter::Parts { fences, held } => {
                self.any_part(fences, held.as_deref(), key, hash, &*self.order)
            }
        }
    }

    /// Versions of one key may lie under two filters: the first that reaches the key, and the next if
    /// the first ends on it.
    fn any_part(
        &self,
        fences: &Fences,
        held: Option<&[Filter<Box<[u8]>>]>,
        key: &[u8],
        hash: u64,
        order: &dyn Comparator,
    ) -> Result<bool> {
        let first = fences.find(key, Tag::seek(MAX_SEQ), order);
        for i in first..fences.len() {
            if i > first && order.compare(fences.key(i - 1), key).is_ne() {
                break;
            }
            let may = match held {
                Some(filters) => filters[i].may_contain(hash),
                None => self.part_may_contain(fences.block(i), hash)?,
            };
            if may {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn part_may_contain(&self, at: BlockAt, hash: u64) -> Result<bool> {
        let BlockAt { offset, size } = at;
        let block = match self.cached(offset) {
            Some(block) => block,
            None => {
                let block = self.blocks.read_meta(BlockHandle::new(offset, u64::from(size)))?;
                self.keep(offset, &block);
                block
            }
        };
        let bytes = block.as_ref();
        Ok(FilterShape::parse(bytes).may_contain(bytes, hash))
    }
}
