//! An open table: its index, filter, properties and range tombstones are resident; data blocks
//! come from the cache or the file.
//!
//! The path of a point read: filter (one cache line) -> fences (one array of integers) -> block
//! cache -> restart points and a scan of at most one restart interval. The fences name the only
//! block that can hold the key; a key whose versions span blocks is followed into the next one.
//!
//! Keeps: a block is believed only after its sum matched; a failed read is an error, never an
//! absent key. Immutable once open, so it is shared without locks.
//! Leaves to others: whether a range tombstone hides what was found, merging several tables.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use lithify_base::{Comparator, ComparatorRef, Error, InternalKey, MAX_SEQ, Result, Seq, Tag};
use lithify_env::FileRef;
use lithify_format::block::{BlockCheck, BlockIter};
use lithify_format::compress::Decoder;
use lithify_format::filter::Filter;
use lithify_format::table::blocks_meta::BlockCounts;
use lithify_format::table::handle::BlockHandle;
use lithify_format::table::props::TableProps;
use lithify_merge::tombstone::Fragments;

use super::block::{Block, PinnedSlice};
use super::fence::{BlockAt, Fences};
use super::open::Blocks;
use super::point::{PointScan, Stands};
use crate::cache::CachedFile;

/// Whether blocks that had to be read are put into the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fill {
    /// Yes.
    #[default]
    Cache,
    /// No: a long scan would push out what others use.
    Nothing,
}

pub(crate) enum FilterPart {
    None,
    Full(Filter<Box<[u8]>>),
    /// One filter per range of keys; `fences` say which.
    Parts {
        fences: Fences,
        filters: Vec<Filter<Box<[u8]>>>,
    },
}

/// An open table.
pub struct TableReader {
    pub(crate) blocks: Blocks,
    pub(crate) order: ComparatorRef,
    pub(crate) cache: Option<CachedFile>,
    pub(crate) props: TableProps,
    pub(crate) fences: Fences,
    pub(crate) filter: FilterPart,
    pub(crate) tombstones: Fragments,
    /// The number of all entries, where they have none of their own.
    pub(crate) global_seq: Option<Seq>,
    pub(crate) counts: Option<Vec<BlockCounts>>,
    pub(crate) counts_fault: Option<Error>,
    pub(crate) data_end: u64,
}

/// A value on its way out of a block.
pub struct ValueRef<'a> {
    block: &'a Block,
    range: Range<usize>,
}

impl ValueRef<'_> {
    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        self.block.as_ref().get(self.range.clone()).unwrap_or_default()
    }
    /// The bytes, kept alive with their block.
    pub fn pin(&self) -> PinnedSlice {
        PinnedSlice::new(self.block, self.range.clone())
    }
}

/// What the index says of one data block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockFence<'a> {
    /// A user key at or above every key of the block, and at or below every key of the next.
    pub separator: &'a [u8],
    /// Where the block lies.
    pub at: BlockAt,
    /// Its entry counts, if the table records them.
    pub counts: Option<BlockCounts>,
}

impl TableReader {
    /// False only if no key with this hash and bytes is in the table.
    #[inline]
    pub fn may_contain(&self, key: &[u8], hash: u64) -> bool {
        match &self.filter {
            FilterPart::Full(filter) => filter.may_contain(hash),
            FilterPart::None => true,
            FilterPart::Parts { fences, filters } => {
                // Versions of one key may lie under two filters: the first that reaches the key,
                // and the next if the first ends on it.
                let first = fences.find(key, Tag::seek(MAX_SEQ), &*self.order);
                (first..fences.len())
                    .take_while(|&i| {
                        i == first || self.order.compare(fences.key(i - 1), key).is_eq()
                    })
                    .any(|i| filters[i].may_contain(hash))
            }
        }
    }

    /// The newest entry of `key` with a sequence number of at most `at`. `hash` is the key's
    /// filter hash (`lithify_format::filter::key_hash`).
    ///
    /// # Errors
    /// Corruption or Io if a block that may hold the key cannot be read.
    #[inline]
    pub fn get(&self, key: &[u8], hash: u64, at: Seq) -> Result<Option<(Tag, PinnedSlice)>> {
        let mut found = None;
        self.get_all(key, hash, at, Fill::Cache, |tag, value| {
            found = Some((tag, value.pin()));
            ControlFlow::Break(())
        })?;
        Ok(found)
    }

    /// Every entry of `key` with a sequence number of at most `at`, newest first, until `visit`
    /// breaks off. A merge operand needs what is below it; most reads need one.
    ///
    /// # Errors
    /// As [`get`](TableReader::get); entries before the failed block were visited.
    pub fn get_all(
        &self,
        key: &[u8],
        hash: u64,
        at: Seq,
        fill: Fill,
        mut visit: impl FnMut(Tag, ValueRef<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        if !self.may_contain(key, hash) {
            return Ok(());
        }
        let order = &*self.order;
        let Some(at) = self.stored_at(at) else { return Ok(()) };
        let target = InternalKey { user: key, tag: Tag::seek(at) };
        let mut visit = |tag, value: ValueRef<'_>| visit(self.numbered(tag), value);
        let mut i = self.fences.find(key, target.tag, order);
        while i < self.fences.len() {
            let block = self.block(i, fill)?;
            let ended = visit_block(&block, target, order, &mut visit);
            match ended.map_err(|e| self.blame(i, e))? {
                // The block ended on this key: the next one may begin with older versions of it.
                Ended::Block if self.goes_on(i, key) => i += 1,
                _ => return Ok(()),
            }
        }
        Ok(())
    }

    /// Whether block `i + 1` may begin with versions of `key`, which block `i` ends on: only where
    /// separators are internal keys and this one is of the same key.
    pub(crate) fn goes_on(&self, i: usize, key: &[u8]) -> bool {
        self.fences.tag(i).is_some() && self.order.compare(self.fences.key(i), key).is_eq()
    }

    /// The largest stored number that a read at `at` sees; `None` if it sees no entry.
    #[inline]
    pub(crate) fn stored_at(&self, at: Seq) -> Option<Seq> {
        match self.global_seq {
            Some(seq) if seq > at => None,
            // Every stored number is 0.
            Some(_) => Some(MAX_SEQ),
            None => Some(at),
        }
    }

    /// The tag of an entry whose stored one is `tag`.
    #[inline]
    pub(crate) fn numbered(&self, tag: Tag) -> Tag {
        match self.global_seq {
            None => tag,
            Some(seq) => Tag(seq << 8 | u64::from(tag.kind_byte())),
        }
    }
    /// The sequence number of all entries, if the table was taken in under one; those in its blocks
    /// say nothing then.
    pub fn global_seq(&self) -> Option<Seq> {
        self.global_seq
    }

    /// Data block `i`, from the cache or the file.
    pub(crate) fn block(&self, i: usize, fill: Fill) -> Result<Block> {
        let BlockAt { offset, size } = self.fences.block(i);
        if let Some(block) = self.cached(offset) {
            return Ok(block);
        }
        let handle = BlockHandle::new(offset, u64::from(size));
        let block = self.blocks.read_data(handle, self.order.is_bytewise())?;
        if fill == Fill::Cache {
            self.keep(offset, &block);
        }
        Ok(block)
    }
    #[inline]
    pub(crate) fn cached(&self, offset: u64) -> Option<Block> {
        self.cache.as_ref()?.get(offset)
    }
    pub(crate) fn keep(&self, offset: u64, block: &Block) {
        if let Some(cache) = &self.cache {
            cache.insert(offset, block.clone());
        }
    }
    /// Adds file and block offset to an error about data block `i`.
    #[cold]
    pub(crate) fn blame(&self, i: usize, e: Error) -> Error {
        self.blocks.source.blame(e.at(self.fences.block(i).offset))
    }

    /// The data blocks in key order, for cutting compaction inputs.
    pub fn block_fences(&self) -> impl ExactSizeIterator<Item = BlockFence<'_>> {
        (0..self.fences.len()).map(|i| BlockFence {
            separator: self.fences.key(i),
            at: self.fences.block(i),
            counts: self.counts.as_ref().map(|c| c[i]),
        })
    }
    /// The resident index.
    pub fn fences(&self) -> &Fences {
        &self.fences
    }
    /// Properties; empty for a LevelDB table.
    pub fn properties(&self) -> &TableProps {
        &self.props
    }
    /// Range tombstones, fragmented. Not clamped to the file's bounds.
    pub fn range_tombstones(&self) -> &Fragments {
        &self.tombstones
    }
    /// Where in the file `key` would be: bytes of data before it, to about a block.
    pub fn approximate_offset_of(&self, key: &[u8]) -> u64 {
        let i = self.fences.find(key, Tag::seek(MAX_SEQ), &*self.order);
        if i < self.fences.len() { self.fences.block(i).offset } else { self.data_end }
    }
    /// Bytes of data blocks, trailers included: they lie at the start of the file.
    pub fn data_bytes(&self) -> u64 {
        self.data_end
    }
    /// Length of the file in bytes.
    pub fn file_bytes(&self) -> u64 {
        self.blocks.source.size()
    }
    /// The open file, for readers of whole stretches of blocks.
    pub fn file(&self) -> &FileRef {
        self.blocks.source.file()
    }
    /// Its name in errors.
    pub fn name(&self) -> &str {
        self.blocks.source.name()
    }
    /// How its blocks are checked.
    pub fn check(&self) -> BlockCheck {
        self.blocks.footer.check
    }
    /// How its compressed blocks read.
    pub fn decoder(&self) -> &Arc<Decoder> {
        &self.blocks.decoder
    }
    /// RocksDB's format_version; 0 for a LevelDB table.
    pub fn format_version(&self) -> u32 {
        self.blocks.footer.version
    }
    /// The order of user keys.
    pub fn order(&self) -> &dyn Comparator {
        &*self.order
    }
    /// What is wrong with the recorded entry counts, if they were ignored.
    pub fn counts_fault(&self) -> Option<&Error> {
        self.counts_fault.as_ref()
    }
    /// Lets the block cache forget the table; for one that is being deleted.
    pub fn forget_blocks(&self) {
        if let Some(cache) = &self.cache {
            cache.forget();
        }
    }
    /// Resident bytes: index, filter, counts, tombstones.
    pub fn memory(&self) -> usize {
        let filter = match &self.filter {
            FilterPart::None => 0,
            FilterPart::Full(f) => f.bytes().len(),
            FilterPart::Parts { fences, filters } => {
                fences.memory() + filters.iter().map(|f| f.bytes().len()).sum::<usize>()
            }
        };
        let counts = self.counts.as_ref().map_or(0, |c| c.len() * size_of::<BlockCounts>());
        let tombstones: usize =
            self.tombstones.iter().map(|f| 64 + f.lo.len() + f.hi.len() + 16 * f.tombs.len()).sum();
        size_of::<TableReader>() + self.fences.memory() + filter + counts + tombstones
    }
}

/// Why a search of one block ended.
pub(crate) enum Ended {
    /// At another key, or because the visitor has what it wants.
    Key,
    /// At the end of the block.
    Block,
}

/// Visits the entries of `target`'s user key in one block, from `target` on.
pub(crate) fn visit_block(
    block: &Block,
    target: InternalKey<'_>,
    order: &dyn Comparator,
    visit: &mut impl FnMut(Tag, ValueRef<'_>) -> ControlFlow<()>,
) -> Result<Ended> {
    let scan = block.sketch().and_then(|s| PointScan::new(s, block.as_ref(), target.user));
    let Some(mut scan) = scan else { return visit_plain(block, target, order, visit) };
    let mut stands = scan.seek(target)?;
    if stands == Stands::TooLong {
        return visit_plain(block, target, order, visit);
    }
    while stands == Stands::Entry {
        let entry = scan.key();
        if entry.user != target.user {
            return Ok(Ended::Key);
        }
        if visit(entry.tag, ValueRef { block, range: scan.value() }).is_break() {
            return Ok(Ended::Key);
        }
        stands = scan.next()?;
    }
    // A key too long for the scan, behind one that was not, is another key.
    Ok(if stands == Stands::End { Ended::Block } else { Ended::Key })
}

/// The same through the block's own restart points, in any order of keys.
fn visit_plain(
    block: &Block,
    target: InternalKey<'_>,
    order: &dyn Comparator,
    visit: &mut impl FnMut(Tag, ValueRef<'_>) -> ControlFlow<()>,
) -> Result<Ended> {
    let mut entries = BlockIter::new(block)?;
    let mut more = entries.seek(target, order)?;
    while more {
        let entry = entries.internal_key();
        if order.compare(entry.user, target.user).is_ne() {
            return Ok(Ended::Key);
        }
        if visit(entry.tag, ValueRef { block, range: entries.value_range() }).is_break() {
            return Ok(Ended::Key);
        }
        more = entries.next()?;
    }
    Ok(Ended::Block)
}

impl std::fmt::Debug for TableReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TableReader({}, {} blocks)", self.name(), self.fences.len())
    }
}

#[cfg(test)]
mod tests;
