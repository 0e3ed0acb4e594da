//! Several keys of one table at once: the filter and the index are asked for all, and the blocks that
//! have to be read are read together, neighbours with one call.
//!
//! Keeps: finds what [`TableReader::get`] finds for each key (its naive twin in the tests).
//! Leaves to others: whether a range tombstone hides what was found, other tables.

use std::ops::ControlFlow;

use lithify_base::{Error, ErrorKind, InternalKey, Result, Seq, Tag, memory};
use lithify_format::block::TRAILER_LEN;
use lithify_format::table::handle::BlockHandle;

use super::block::{Block, PinnedSlice};
use super::fence::BlockAt;
use super::reader::{Ended, Fill, TableReader, visit_block};

/// Most bytes between two blocks that are read along with them: less than a read of its own costs.
const GAP_MAX: u64 = 16 << 10;
/// Most bytes of one read.
const READ_MAX: u64 = 1 << 20;

/// A key that is looked for.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// The key.
    pub key: &'a [u8],
    /// Its filter hash.
    pub hash: u64,
}

impl TableReader {
    /// The newest entry at or below `at` of each of `keys`, which ascend; `found` is told of those
    /// there are, by their place in `keys`.
    ///
    /// # Errors
    /// As [`get`](TableReader::get); what lies in other blocks was told before.
    pub fn get_many(
        &self,
        keys: &[Wanted<'_>],
        at: Seq,
        mut found: impl FnMut(usize, Tag, PinnedSlice),
    ) -> Result<()> {
        let Some(at) = self.stored_at(at) else { return Ok(()) };
        let order = &*self.order;
        let mut asked: Vec<(BlockAt, bool, usize)> = Vec::new();
        for (i, wanted) in keys.iter().enumerate() {
            if !self.may_contain(wanted.key, wanted.hash)? {
                continue;
            }
            if let Some(place) = self.find(wanted.key, Tag::seek(at))? {
                asked.push((place.at(), place.goes_on(wanted.key, order), i));
            }
        }
        let mut places: Vec<BlockAt> = asked.iter().map(|(at, ..)| *at).collect();
        places.dedup();
        let blocks = self.blocks_at(&places)?;
        let mut now = 0;
        for (place, goes_on, i) in asked {
            while places[now] != place {
                now += 1;
            }
            let Wanted { key, hash } = keys[i];
            let target = InternalKey { user: key, tag: Tag::seek(at) };
            let mut newest = None;
            let ended = visit_block(&blocks[now], target, order, &mut |tag, value| {
                newest = Some((self.numbered(tag), value.pin()));
                ControlFlow::Break(())
            });
            let ended = ended.map_err(|e| self.blame(place, e))?;
            // Where versions of one key span blocks, the next one may begin with those looked for.
            if newest.is_none() && matches!(ended, Ended::Block) && goes_on {
                newest = self.get(key, hash, at)?;
            }
            if let Some((tag, value)) = newest {
                found(i, tag, value);
            }
        }
        Ok(())
    }

    /// Data blocks by their places, which ascend, from the cache or the file.
    fn blocks_at(&self, places: &[BlockAt]) -> Result<Vec<Block>> {
        let cached = |at: &BlockAt| self.cached(at.offset);
        let mut blocks: Vec<Option<Block>> = places.iter().map(cached).collect();
        let mut from = 0;
        while let Some(first) = (from..places.len()).find(|&n| blocks[n].is_none()) {
            let start = places[first].offset;
            let (mut last, mut end) = (first, end_of(places[first]));
            for n in first + 1..places.len() {
                let (at, next_end) = (places[n].offset, end_of(places[n]));
                // Parts of a damaged index may contradict each other.
                if at < end || at > end + GAP_MAX || next_end > start + READ_MAX {
                    break;
                }
                if blocks[n].is_none() {
                    (last, end) = (n, next_end);
                }
            }
            match first == last {
                true => blocks[first] = Some(self.block(places[first], Fill::Cache)?),
                false => self.read_together(&places[first..=last], &mut blocks[first..=last])?,
            }
            from = last + 1;
        }
        let lost = || Error::new(ErrorKind::Internal, "a block was not read");
        blocks.into_iter().map(|block| block.ok_or_else(lost)).collect()
    }

    /// Reads the blocks that are missing with one call, from the first to the last of `places`.
    fn read_together(&self, places: &[BlockAt], blocks: &mut [Option<Block>]) -> Result<()> {
        let (Some(&first), Some(&last)) = (places.first(), places.last()) else {
            return Ok(());
        };
        let start = first.offset;
        let len = (end_of(last) - start) as usize;
        let mut bytes = memory::zeroed(len, "blocks").map_err(|e| self.blame(first, e))?;
        self.blocks.source.read_into(start, &mut bytes)?;
        for (&at, block) in places.iter().zip(blocks).filter(|(_, block)| block.is_none()) {
            let BlockAt { offset, size } = at;
            let at = (offset - start) as usize;
            let stored = bytes.get(at..at + size as usize + TRAILER_LEN).unwrap_or_default();
            let handle = BlockHandle::new(offset, u64::from(size));
            let whole = self.blocks.data_of(stored, handle, self.order.is_bytewise())?;
            self.keep(offset, &whole);
            *block = Some(whole);
        }
        Ok(())
    }
}

/// Where a block ends in the file, its trailer included.
fn end_of(at: BlockAt) -> u64 {
    at.offset + u64::from(at.size) + TRAILER_LEN as u64
}

#[cfg(test)]
mod tests;
