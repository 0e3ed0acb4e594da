//! An open table: its index, filter, properties and range tombstones are resident; data blocks
//! come from the cache or the file. Of an index or filter in parts the top is resident, and the parts
//! come as data blocks do.
//!
//! The path of a point read: filter (one cache line) -> fences (one array of integers) -> block
//! cache -> restart points and a scan of one restart interval, or of a tenth of a block that has more than ten. The fences name the only
//! block that can hold the key; a key whose versions span blocks is followed into the next one.
//!
//! Keeps: a block is believed only after its sum matched; a failed read is an error, never an
//! absent key. Immutable once open, so it is shared without locks.
//! Leaves to others: whether a range tombstone hides what was found, merging several tables.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use lithify_base::{
    Comparator, ComparatorRef, Error, InternalKey, MAX_SEQ, Prefixes, Result, Seq, Tag,
};
use lithify_env::FileRef;
use lithify_files::dir::Allowance;
use lithify_format::block::{BlockCheck, BlockIter};
use lithify_format::compress::Decoder;
use lithify_format::table::handle::BlockHandle;
use lithify_format::table::props::TableProps;
use lithify_lsm::FileMeta;
use lithify_merge::tombstone::Fragments;

use super::block::{Block, PinnedSlice};
use super::fence::BlockAt;
use super::filter::TableFilter;
use super::index::Index;
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

/// An open table.
pub struct TableReader {
    pub(crate) blocks: Blocks,
    pub(crate) order: ComparatorRef,
    pub(crate) cache: Option<CachedFile>,
    pub(crate) props: TableProps,
    pub(crate) index: Index,
    /// Where the entry counts of its blocks are, if it records them.
    pub(crate) counts: Option<BlockHandle>,
    pub(crate) filter: TableFilter,
    /// Whether the filter holds whole keys.
    pub(crate) whole_keys: bool,
    /// The prefixes that it holds.
    pub(crate) prefixes: Prefixes,
    pub(crate) tombstones: Fragments,
    /// The number of all entries, where they have none of their own.
    pub(crate) global_seq: Option<Seq>,
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

impl TableReader {
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
        if !self.may_contain(key, hash)? {
            return Ok(());
        }
        let order = &*self.order;
        let Some(at) = self.stored_at(at) else { return Ok(()) };
        let target = InternalKey { user: key, tag: Tag::seek(at) };
        let mut visit = |tag, value: ValueRef<'_>| visit(self.numbered(tag), value);
        let mut place = self.find(key, target.tag)?;
        while let Some(here) = place {
            let at = here.at();
            let block = self.block(at, fill)?;
            let ended = visit_block(&block, target, order, &mut visit);
            match ended.map_err(|e| self.blame(at, e))? {
                // The block ended on this key: the next one may begin with older versions of it.
                Ended::Block if here.goes_on(key, order) => place = self.after(here)?,
                _ => return Ok(()),
            }
        }
        Ok(())
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
            Some(seq) => tag.with_seq(seq),
        }
    }
    /// The sequence number of all entries, if the table was taken in under one; those in its blocks
    /// say nothing then.
    pub fn global_seq(&self) -> Option<Seq> {
        self.global_seq
    }

    /// Content weight of its point entries ([`lithify_format::weight`]). `None` if it is not known: the
    /// table has no such property, or one number stands for those that its entries were weighed with.
    pub fn weight(&self) -> Option<u64> {
        self.properties().weight().filter(|_| self.global_seq.is_none())
    }

    /// The data block at a place, from the cache or the file.
    pub(crate) fn block(&self, at: BlockAt, fill: Fill) -> Result<Block> {
        let BlockAt { offset, size } = at;
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
    /// The same, ahead of when it is needed.
    #[inline]
    pub(crate) fn cached_ahead(&self, offset: u64) -> Option<Block> {
        self.cache.as_ref()?.get_ahead(offset)
    }
    pub(crate) fn keep(&self, offset: u64, block: &Block) {
        if let Some(cache) = &self.cache {
            cache.insert(offset, block.clone());
        }
    }
    /// Adds file and block offset to an error about a data block.
    #[cold]
    pub(crate) fn blame(&self, at: BlockAt, e: Error) -> Error {
        self.blocks.source.blame(e.at(at.offset))
    }

    /// Properties; empty for a LevelDB table.
    pub fn properties(&self) -> &TableProps {
        &self.props
    }
    /// The range tombstones that count for `file`. Every decision goes by these: a table of RocksDB
    /// may hold tombstones that reach beyond the bounds of the file.
    pub fn tombstones_of(&self, file: &FileMeta) -> Fragments {
        self.tombstones.clamp(&file.range, file.hi_tag.seq(), &*self.order)
    }
    /// The newest range tombstone of `file` over `key` that a read at `at` sees, as its sequence number.
    pub fn covering_seq(&self, file: &FileMeta, key: &[u8], at: Seq) -> Option<Seq> {
        let bounds = (&file.range, file.hi_tag.seq());
        self.tombstones.covering_seq_in(bounds, key, at, &*self.order)
    }
    /// The range tombstones as they are stored, fragmented, beyond the bounds of the file too: for
    /// counting and showing them, and for tables that no manifest gives bounds to.
    pub fn stored_tombstones(&self) -> &Fragments {
        &self.tombstones
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
    /// Whether a data block of `len` bytes at `offset` can be read, however much of it is holes.
    ///
    /// # Errors
    /// Corruption if so many bytes are not on disk there, though the file claims to be so long; Io.
    pub fn check_read(&self, offset: u64, len: usize) -> Result<()> {
        self.blocks.source.check_read(Allowance::DATA, offset, len)
    }
    /// Its name in errors.
    pub fn name(&self) -> &str {
        self.blocks.source.name()
    }
    /// Its blocks, by their handles.
    pub fn blocks(&self) -> &Blocks {
        &self.blocks
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
    /// Lets the block cache forget the table; for one that is being deleted.
    pub fn forget_blocks(&self) {
        if let Some(cache) = &self.cache {
            cache.forget();
        }
    }
    /// Resident bytes: index, filter, tombstones; without what of them is in the cache.
    pub fn memory(&self) -> usize {
        let tombstones: usize = self
            .tombstones
            .iter()
            .map(|f| 64 + f.lo.key.len() + f.hi.key.len() + 16 * f.tombs.len())
            .sum();
        size_of::<TableReader>()
            + self.index.memory()
            + self.filter.memory()
            + self.blocks.decoder.memory()
            + tombstones
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
        write!(f, "TableReader({}, {} bytes of data)", self.name(), self.data_end)
    }
}

#[cfg(test)]
mod tests;
