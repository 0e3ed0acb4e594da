//! The filter of an open table: one block in memory, or parts by ranges of keys, which are read
//! through the cache or, where there is none, one at a time.
//!
//! Keeps: never denies a key of the table. A part that cannot be read is an error, never an answer.

use lithify_base::{Comparator, Key, MAX_SEQ, Prefixes, Result, Tag};
use lithify_env::SharedBytes;
use lithify_env::sync::Mutex;
use lithify_format::filter::{Filter, FilterShape, key_hash};
use lithify_format::table::handle::BlockHandle;

use super::block::Block;
use super::fence::{BlockAt, Fences};
use super::reader::TableReader;

/// The keys that a scan is about: those that begin with `start`.
#[derive(Clone, Debug)]
pub struct Scope {
    /// What all of them begin with.
    pub start: Key,
    /// How the database takes prefixes.
    pub by: Prefixes,
    /// Only those whose prefix `by` that takes is `start`, no more.
    pub exact: bool,
}

/// A table's filter.
pub(crate) enum TableFilter {
    /// It has none, or one that says nothing of whole keys.
    None,
    /// One for all keys.
    Full(Filter<SharedBytes>),
    /// One per range of keys: `fences` say which.
    Parts {
        fences: Fences,
        /// The part that was read last, if there is no cache to keep it in: without a cache, readers walk
        /// over the keys in order.
        held: Option<Mutex<Option<(usize, Block)>>>,
    },
}

impl TableFilter {
    pub(crate) fn memory(&self) -> usize {
        match self {
            TableFilter::None => 0,
            TableFilter::Full(filter) => filter.bytes().memory(),
            TableFilter::Parts { fences, held } => {
                let held = held.as_ref().map(|held| held.lock());
                let held = held.as_ref().and_then(|held| held.as_ref());
                fences.memory() + held.map_or(0, |(_, block)| block.memory())
            }
        }
    }
}

impl TableReader {
    /// False only if no key with this hash and bytes is in the table. A filter of prefixes alone is
    /// asked for the key's.
    ///
    /// # Errors
    /// Corruption or Io if a part of the filter cannot be read.
    #[inline]
    pub fn may_contain(&self, key: &[u8], hash: u64) -> Result<bool> {
        let hash = match self.whole_keys {
            true => hash,
            false => match self.prefixes.of(key) {
                Some(prefix) => key_hash(prefix),
                None => return Ok(true),
            },
        };
        match &self.filter {
            TableFilter::Full(filter) => Ok(filter.may_contain(hash)),
            TableFilter::None => Ok(true),
            TableFilter::Parts { fences, held } => {
                self.any_part(fences, held.as_ref(), key, hash, &*self.order)
            }
        }
    }

    /// Versions of one key may lie under two filters: the first that reaches the key, and the next if
    /// the first ends on it.
    fn any_part(
        &self,
        fences: &Fences,
        held: Option<&Mutex<Option<(usize, Block)>>>,
        key: &[u8],
        hash: u64,
        order: &dyn Comparator,
    ) -> Result<bool> {
        let first = fences.find(key, Tag::seek(MAX_SEQ), order);
        for i in first..fences.len() {
            if i > first && order.compare(fences.key(i - 1), key).is_ne() {
                break;
            }
            if self.part_may_contain(fences, held, i, hash)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// False only if the table has no key of `scope`.
    ///
    /// # Errors
    /// As [`may_contain`](TableReader::may_contain).
    pub fn may_have(&self, scope: &Scope) -> Result<bool> {
        let prefix = match self.prefixes.get() {
            None => return Ok(true),
            // Not its prefix: one that ends before the last `/` of a key has another one itself.
            Some(_) if scope.exact && scope.by == self.prefixes => Some(&scope.start[..]),
            Some(by) => by.prefix_of_all(&scope.start),
        };
        let Some(hash) = prefix.map(key_hash) else { return Ok(true) };
        match &self.filter {
            TableFilter::None => Ok(true),
            TableFilter::Full(filter) => Ok(filter.may_contain(hash)),
            // In another order keys that begin alike may lie before what they begin with.
            TableFilter::Parts { .. } if !self.order.is_bytewise() => Ok(true),
            TableFilter::Parts { fences, held } => {
                let first = fences.find(&scope.start, Tag::seek(MAX_SEQ), &*self.order);
                for i in first..fences.len() {
                    // What begins alike ends in the part before, unless that ends on such a key.
                    if i > first && !fences.key(i - 1).starts_with(&scope.start) {
                        break;
                    }
                    if self.part_may_contain(fences, held.as_ref(), i, hash)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
        }
    }

    fn part_may_contain(
        &self,
        fences: &Fences,
        held: Option<&Mutex<Option<(usize, Block)>>>,
        part: usize,
        hash: u64,
    ) -> Result<bool> {
        let BlockAt { offset, size } = fences.block(part);
        let mut held = held.map(|held| held.lock());
        let last = held.as_ref().and_then(|held| held.as_ref());
        let last = last.filter(|(no, _)| *no == part).map(|(_, block)| block.clone());
        let block = match last.or_else(|| self.cached(offset)) {
            Some(block) => block,
            None => {
                let block = self.blocks.read_meta(BlockHandle::new(offset, u64::from(size)))?;
                self.keep(offset, &block);
                if let Some(held) = &mut held {
                    **held = Some((part, block.clone()));
                }
                block
            }
        };
        let bytes = block.as_ref();
        Ok(FilterShape::parse(bytes).may_contain(bytes, hash))
    }
}

#[cfg(test)]
mod tests;
