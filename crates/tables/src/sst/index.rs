//! The index of an open table: all of it resident, or its top level alone, with the parts below read
//! through the block cache.
//!
//! A table says which it is: an index of two levels stays in parts if there is a cache to keep them
//! in. A part in the cache is a searchable list of fences, as a resident index is, so both are
//! searched alike; finding a block takes one more look into the cache where there are parts.
//!
//! ```text
//!   one level     fences --------------------------------> data block
//!   two levels    fences of the top -> part (cache, file) -> data block
//! ```
//!
//! Keeps: a part is believed only if its separators lie between those of the top level around it, or a
//! search would be led astray. Leaves to others: what a block holds.

use std::ops::Deref;
use std::sync::Arc;

use lithify_base::{Comparator, Error, ErrorKind, InternalKey, MAX_SEQ, Result, Tag};
use lithify_format::block::{IndexForm, IndexIter, IndexKeys, TRAILER_LEN};
use lithify_format::limits::{Unshared, meta_plain_max};
use lithify_format::table::blocks_meta::{self, BlockCounts};
use lithify_format::table::handle::BlockHandle;
use lithify_format::table::index::BlockSource;
use lithify_format::table::props::TableProps;

use super::block::Block;
use super::fence::{BlockAt, Fences, FencesBuilder};
use super::open::Blocks;
use super::reader::{Fill, TableReader};

/// What of an index is in memory as long as the table is open.
pub(crate) enum Index {
    /// All of it.
    Whole(Fences),
    /// The top level.
    Parts { top: Fences, form: IndexForm },
}

/// Entry counts of all blocks, if the table records them; if they are damaged, none and why.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) list: Option<Vec<BlockCounts>>,
    pub(crate) fault: Option<Error>,
}

/// The fences of one part of an index, or of all of it.
pub(crate) enum Leaf<'a> {
    Resident(&'a Fences),
    Cached(Arc<Fences>),
}

impl Deref for Leaf<'_> {
    type Target = Fences;
    #[inline]
    fn deref(&self) -> &Fences {
        match self {
            Leaf::Resident(fences) => fences,
            Leaf::Cached(fences) => fences,
        }
    }
}

/// A data block, by its place in the index.
pub(crate) struct Place<'a> {
    part: usize,
    leaf: Leaf<'a>,
    no: usize,
}

impl Place<'_> {
    /// Where the block lies.
    #[inline]
    pub(crate) fn at(&self) -> BlockAt {
        self.leaf.block(self.no)
    }
    /// Whether the next block may begin with versions of `key`, which this one ends on: only where
    /// separators are internal keys and this one is of the same key.
    pub(crate) fn goes_on(&self, key: &[u8], order: &dyn Comparator) -> bool {
        self.leaf.tag(self.no).is_some() && order.compare(self.leaf.key(self.no), key).is_eq()
    }
}

impl Index {
    /// Parts that there are: one if it is resident.
    pub(crate) fn parts(&self) -> usize {
        match self {
            Index::Whole(_) => 1,
            Index::Parts { top, .. } => top.len(),
        }
    }
    /// What is resident: all fences, or those of the top level.
    pub(crate) fn resident(&self) -> &Fences {
        match self {
            Index::Whole(fences) => fences,
            Index::Parts { top, .. } => top,
        }
    }
    pub(crate) fn memory(&self) -> usize {
        self.resident().memory()
    }
}

impl TableReader {
    /// Whether the table's [`FullIndex`] is all in memory: it records no entry counts, and its index is whole.
    pub fn is_full_index_resident(&self) -> bool {
        matches!(self.index, Index::Whole(_)) && self.counts.is_none()
    }

    /// The part that leads to the first entry at or after `(user, tag)`, if any does.
    #[inline]
    pub(crate) fn part_for(&self, user: &[u8], tag: Tag) -> usize {
        match &self.index {
            Index::Whole(_) => 0,
            Index::Parts { top, .. } => top.find(user, tag, &*self.order),
        }
    }

    /// Part `part` of the index, which must be below [`Index::parts`].
    #[inline]
    pub(crate) fn leaf(&self, part: usize) -> Result<Leaf<'_>> {
        match &self.index {
            Index::Whole(fences) => Ok(Leaf::Resident(fences)),
            Index::Parts { top, form } => self.cached_part(top, *form, part).map(Leaf::Cached),
        }
    }

    fn cached_part(&self, top: &Fences, form: IndexForm, part: usize) -> Result<Arc<Fences>> {
        let offset = top.block(part).offset;
        if let Some(fences) = self.cache.as_ref().and_then(|cache| cache.get_fences(offset)) {
            return Ok(fences);
        }
        let read = read_part(&Direct(&self.blocks), &self.blocks, top, part, form, &*self.order);
        let fences = Arc::new(read.map_err(|e| self.blocks.source.blame(e.at(offset)))?);
        if let Some(cache) = &self.cache {
            cache.insert_fences(offset, fences.clone());
        }
        Ok(fences)
    }

    /// The first block that may hold an entry at or after `(user, tag)`, if any may.
    #[inline]
    pub(crate) fn find(&self, user: &[u8], tag: Tag) -> Result<Option<Place<'_>>> {
        let part = self.part_for(user, tag);
        if part >= self.index.parts() {
            return Ok(None);
        }
        let leaf = self.leaf(part)?;
        let no = leaf.find(user, tag, &*self.order);
        self.settled(Place { part, leaf, no })
    }

    /// The block after `place`.
    pub(crate) fn after<'a>(&'a self, place: Place<'a>) -> Result<Option<Place<'a>>> {
        self.settled(Place { no: place.no + 1, ..place })
    }

    /// `place`, or the first one of the parts behind it that have any.
    #[inline]
    fn settled<'a>(&'a self, mut place: Place<'a>) -> Result<Option<Place<'a>>> {
        while place.no >= place.leaf.len() {
            let part = place.part + 1;
            if part >= self.index.parts() {
                return Ok(None);
            }
            place = Place { part, leaf: self.leaf(part)?, no: 0 };
        }
        Ok(Some(place))
    }

    /// Where in the file `key` would be: bytes of data before it, to about a block; coarser if a part
    /// of the index cannot be read.
    pub fn approximate_offset_of(&self, key: &[u8]) -> u64 {
        let tag = Tag::seek(MAX_SEQ);
        match self.find(key, tag) {
            Ok(Some(place)) => place.at().offset,
            Ok(None) => self.data_end,
            Err(_) => {
                let (part, parts) = (self.part_for(key, tag) as u64, self.index.parts() as u64);
                (u128::from(self.data_end) * u128::from(part) / u128::from(parts.max(1))) as u64
            }
        }
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

/// A table with all of its index in memory and the entry counts of its blocks, for those that walk over all
/// blocks: compactions, checks. Readers need no counts, so an open table does not keep them.
pub struct FullIndex {
    table: Arc<TableReader>,
    /// Those that are not resident in the table.
    read: Option<Fences>,
    counts: Counts,
}

impl FullIndex {
    /// Of `table`; reads what is not resident.
    ///
    /// # Errors
    /// Corruption or Io if a part of the index cannot be read.
    pub fn of(table: Arc<TableReader>) -> Result<FullIndex> {
        let blocks = &table.blocks;
        let read = match &table.index {
            Index::Whole(_) => None,
            Index::Parts { top, form } => {
                let fences = flat(&Direct(blocks), blocks, top, *form, &*table.order)
                    .and_then(|fences| enough(&fences, &table.props).map(|()| fences))
                    .map_err(|e| blocks.source.blame(e))?;
                Some(fences)
            }
        };
        let fences = read.as_ref().unwrap_or_else(|| table.index.resident());
        let counts = counts_of(blocks, table.counts, &table.props, fences);
        Ok(FullIndex { read, counts, table })
    }

    /// Data blocks as they are before compression, evenly chosen, of about `bytes` together and at most
    /// one block more.
    ///
    /// # Errors
    /// Corruption or Io if one cannot be read.
    pub fn samples(&self, bytes: u64) -> Result<Vec<Vec<u8>>> {
        let fences = self.fences();
        let props = self.table.properties();
        // What properties claim of a foreign table may be anything, or missing.
        let raw = props.raw_key_size.saturating_add(props.raw_value_size);
        let all = raw.max(self.table.data_bytes()).max(1);
        let count = (fences.len() as u64).saturating_mul(bytes).div_ceil(all);
        let count = count.min(fences.len() as u64);
        let (mut samples, mut taken) = (Vec::new(), 0);
        for i in 0..count {
            if taken >= bytes {
                break;
            }
            let nth = (i * fences.len() as u64 / count) as usize;
            let block = self.table.block(self.block(nth), Fill::Nothing)?;
            taken += block.as_ref().len() as u64;
            samples.push(block.as_ref().to_vec());
        }
        Ok(samples)
    }

    /// The table.
    pub fn table(&self) -> &Arc<TableReader> {
        &self.table
    }
    /// Where block `i` lies; `i` must be below their number.
    pub fn block(&self, i: usize) -> BlockAt {
        self.fences().block(i)
    }
    /// The data blocks in key order, for cutting compaction inputs.
    pub fn block_fences(&self) -> impl ExactSizeIterator<Item = BlockFence<'_>> {
        (0..self.fences().len()).map(|i| self.fence(i))
    }
    /// What the index says of block `i`, which must be below their number.
    pub fn fence(&self, i: usize) -> BlockFence<'_> {
        let (fences, counts) = (self.fences(), self.counts.list.as_ref());
        BlockFence { separator: fences.key(i), at: fences.block(i), counts: counts.map(|c| c[i]) }
    }
    /// A user key at or above the last one of block `i`, as in [`FullIndex::fence`].
    pub fn separator(&self, i: usize) -> &[u8] {
        self.fences().key(i)
    }
    /// Whether the table records how many entries each block has, as ours do.
    pub fn has_counts(&self) -> bool {
        self.counts.list.is_some()
    }
    pub(crate) fn fences(&self) -> &Fences {
        self.read.as_ref().unwrap_or_else(|| self.table.index.resident())
    }
    pub(crate) fn counts(&self) -> &Counts {
        &self.counts
    }
}

/// Blocks of a table from its file, past the cache, checked whatever readers check.
pub(crate) struct Direct<'a>(pub(crate) &'a Blocks);

impl BlockSource for Direct<'_> {
    type Bytes = Block;
    fn block(&self, handle: BlockHandle) -> Result<Block> {
        self.0.read_meta(handle)
    }
}

/// The fences that an index block holds: one level, or one part.
pub(crate) fn fences_in(
    block: Block,
    form: IndexForm,
    blocks: &Blocks,
    order: &dyn Comparator,
) -> Result<Fences> {
    let mut fences = FencesBuilder::new(order, blocks.limit());
    let mut unshared = Unshared::of(block.as_ref().len());
    let mut entries = IndexIter::new(block, form)?;
    let mut more = entries.seek_to_first()?;
    while more {
        unshared.take(entries.separator(), &[])?;
        let (user, tag) = split(entries.separator(), form)?;
        let handle = entries.handle();
        fences.push(user, tag, (handle.offset, handle.size), TRAILER_LEN as u64)?;
        more = entries.next()?;
    }
    fences.finish(|len| blocks.source.memory(len))
}

/// User key and tag of a separator as it is stored.
fn split(separator: &[u8], form: IndexForm) -> Result<(&[u8], Option<Tag>)> {
    match form.keys {
        IndexKeys::User => Ok((separator, None)),
        IndexKeys::Internal => {
            let key = InternalKey::decode(separator)
                .ok_or_else(|| Error::corruption("index key is shorter than a tag"))?;
            Ok((key.user, Some(key.tag)))
        }
    }
}

/// Part `part` below `top`.
fn read_part(
    source: &impl BlockSource<Bytes = Block>,
    blocks: &Blocks,
    top: &Fences,
    part: usize,
    form: IndexForm,
    order: &dyn Comparator,
) -> Result<Fences> {
    let BlockAt { offset, size } = top.block(part);
    let block = source.block(BlockHandle::new(offset, u64::from(size)))?;
    let fences = fences_in(block, form, blocks, order)?;
    let above = |a: (&Fences, usize), b: (&Fences, usize)| {
        // Among versions of one key the newer is before the older.
        let by_key = order.compare(a.0.key(a.1), b.0.key(b.1));
        by_key.then_with(|| b.0.tag(b.1).cmp(&a.0.tag(a.1))).is_gt()
    };
    let after = part == 0 || fences.is_empty() || above((&fences, 0), (top, part - 1));
    let before =
        fences.len().checked_sub(1).is_none_or(|last| !above((&fences, last), (top, part)));
    match after && before {
        true => Ok(fences),
        false => Err(Error::corruption("a part of the index does not fit the level above it")),
    }
}

/// All parts below `top` as one.
pub(crate) fn flat(
    source: &impl BlockSource<Bytes = Block>,
    blocks: &Blocks,
    top: &Fences,
    form: IndexForm,
    order: &dyn Comparator,
) -> Result<Fences> {
    let mut all = FencesBuilder::new(order, blocks.limit());
    let (mut stored, mut held) = (0usize, 0usize);
    for part in 0..top.len() {
        let BlockAt { offset: at, size } = top.block(part);
        let fences = read_part(source, blocks, top, part, form, order).map_err(|e| e.at(at))?;
        stored = stored.saturating_add(size as usize);
        held = held.saturating_add(fences.memory());
        if held > meta_plain_max(stored) {
            let what =
                "the parts of the index grow out of all proportion to the file when they are read";
            return Err(Error::new(ErrorKind::LimitExceeded, what).at(at));
        }
        for i in 0..fences.len() {
            let BlockAt { offset, size } = fences.block(i);
            let block = (offset, u64::from(size));
            all.push(fences.key(i), fences.tag(i), block, TRAILER_LEN as u64)
                .map_err(|e| e.at(at))?;
        }
    }
    all.finish(|len| blocks.source.memory(len))
}

/// Where the last data block ends, for an index in parts.
pub(crate) fn end_of_data(
    source: &impl BlockSource<Bytes = Block>,
    blocks: &Blocks,
    top: &Fences,
    form: IndexForm,
    order: &dyn Comparator,
) -> Result<u64> {
    let Some(last) = top.len().checked_sub(1) else { return Ok(0) };
    read_part(source, blocks, top, last, form, order).map(|fences| fences.end())
}

/// # Errors
/// Corruption if the index names fewer blocks than the properties. It may name more: RocksDB does not
/// count those that it held back to train a dictionary.
pub(crate) fn enough(fences: &Fences, props: &TableProps) -> Result<()> {
    let (named, stated) = (fences.len(), props.num_data_blocks);
    match stated > named as u64 {
        false => Ok(()),
        true => Err(Error::corruption(format!(
            "the index names {named} data blocks, the properties {stated}"
        ))),
    }
}

/// Entry counts of the blocks of `fences`, from the meta block at `handle`.
fn counts_of(
    blocks: &Blocks,
    handle: Option<BlockHandle>,
    props: &TableProps,
    fences: &Fences,
) -> Counts {
    let Some(handle) = handle else { return Counts::default() };
    let counts = blocks.read_meta(handle).and_then(|block| {
        blocks_meta::decode(block.as_ref(), fences.len() as u64, props.points())
            .map_err(|e| blocks.source.blame(e.at(handle.offset)))
    });
    match counts {
        Ok(counts) => Counts { list: Some(counts), fault: None },
        Err(e) => Counts { list: None, fault: Some(e) },
    }
}

#[cfg(test)]
mod tests;
