//! A cursor over one table, forward and backward.
//!
//! Sequential access reads ahead: from the second block in a row that had to be read, a chunk of
//! 16 KiB is fetched at once, doubling up to 1 MiB while the walk goes on; a jump starts over. The
//! chunks of all cursors together stay small beside the block cache.
//! Blocks of a chunk are views into it, so a scan copies nothing but the keys of entries.
//!
//! Keeps: after a failed read the cursor is invalid and [`status`](TableIter::status) says why; an
//! error never looks like the end. The table stays open as long as the cursor lives.
//! Leaves to others: which versions are visible, range tombstones, several tables.

use std::ops::ControlFlow;
use std::sync::Arc;

use lithify_base::{InternalKey, MAX_SEQ, Result, Tag};
use lithify_env::SharedBytes;
use lithify_format::block::{BlockEntry, BlockIter, TRAILER_LEN};
use lithify_format::table::handle::BlockHandle;

use super::block::{Block, PinnedSlice};
use super::fence::{BlockAt, Fences};
use super::index::Leaf;
use super::reader::{Fill, TableReader};
use crate::cache::CachedFile;

/// First chunk of a read-ahead.
const AHEAD_MIN: usize = 16 << 10;
/// Largest chunk: enough to keep a disk busy, small enough to waste.
const AHEAD_MAX: usize = 1 << 20;
/// The part that a new chunk takes at most of what chunks may take and others have left: a few scans
/// have large ones, and many iterators stay small together.
const AHEAD_PART: u64 = 4;
/// Bytes that a foreign table may leave between two blocks, to align them.
const PADDING_MAX: u64 = 4 << 10;
/// Far from every block.
const NOWHERE: u64 = 1 << 63;
/// Blocks in a row that must be read from the file before reading ahead starts.
const SEQUENTIAL_AFTER: u32 = 2;

/// An entry that a walk comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passed<'a> {
    /// Its user key.
    pub user: &'a [u8],
    /// Its sequence number and kind.
    pub tag: Tag,
    /// Its value.
    pub value: &'a [u8],
    /// Whether it has the user key of the entry before, byte for byte. False for the first one of a walk.
    pub repeats: bool,
}

/// A cursor over the entries of a table.
pub struct TableIter {
    table: Arc<TableReader>,
    fill: Fill,
    /// The open block, by its part of the index and its number there; none if none is open.
    at: Option<(usize, usize)>,
    /// The part of the index that [`at`](TableIter::at) is in, if it is not resident.
    leaf: Option<Arc<Fences>>,
    entries: Option<BlockIter<Block>>,
    /// Whether the open block came from the cache.
    from_cache: bool,
    /// Where the block that a walk comes to next lies, once it was looked for, and the block if it is cached.
    coming: Option<(u64, Option<Block>)>,
    error: Option<lithify_base::Error>,
    ahead: Ahead,
    ahead_max: usize,
}

/// Bytes of the file that were read beyond what was needed.
struct Ahead {
    bytes: Option<SharedBytes>,
    /// The chunk before: reused once no view of it is alive.
    spare: Option<SharedBytes>,
    /// What the cache knows of the two, bytes.
    counted: u64,
    /// Offset in the file of `bytes`, and how many of them count.
    start: u64,
    len: usize,
    /// Size of the next chunk.
    next: usize,
    /// Where the block that a sequential walk would read next begins, or a little before, and how
    /// many came in a row.
    expected: u64,
    in_a_row: u32,
}

impl Ahead {
    fn new() -> Ahead {
        Ahead {
            bytes: None,
            spare: None,
            counted: 0,
            start: 0,
            len: 0,
            next: AHEAD_MIN,
            expected: NOWHERE,
            in_a_row: 0,
        }
    }
    /// The chunk, and where in it the stored block at `offset` lies, if all of it does.
    fn find(&self, offset: u64, stored: usize) -> Option<(SharedBytes, usize)> {
        let at = usize::try_from(offset.checked_sub(self.start)?).ok()?;
        let bytes = self.bytes.as_ref().filter(|_| at + stored <= self.len)?;
        Some((bytes.clone(), at))
    }
}

impl TableIter {
    /// A cursor that stands nowhere yet.
    pub fn new(table: Arc<TableReader>) -> TableIter {
        TableIter {
            at: None,
            leaf: None,
            table,
            fill: Fill::Cache,
            entries: None,
            from_cache: false,
            coming: None,
            error: None,
            ahead: Ahead::new(),
            ahead_max: AHEAD_MAX,
        }
    }
    /// Whether blocks read one by one enter the cache; those of a read-ahead never do.
    pub fn set_fill_cache(&mut self, fill: bool) {
        self.fill = if fill { Fill::Cache } else { Fill::Nothing };
    }
    /// Before the first move: a walk that comes from the end of `before`, whose table comes before this one. It goes on
    /// reading ahead where that one was, and in the same memory.
    pub fn go_on_from(&mut self, mut before: TableIter) {
        let (Some(_), Some(_)) = (&self.table.cache, &before.table.cache) else { return };
        if before.ahead.in_a_row <= SEQUENTIAL_AFTER {
            return;
        }
        // What it shows may be a view of a chunk.
        before.entries = None;
        let chunks = std::mem::replace(&mut before.ahead, Ahead::new());
        self.ahead = Ahead {
            // None of it counts for this file.
            bytes: chunks.spare,
            spare: chunks.bytes,
            counted: chunks.counted,
            next: chunks.next,
            expected: 0,
            in_a_row: SEQUENTIAL_AFTER,
            ..Ahead::new()
        };
    }
    /// Largest chunk read ahead, in bytes; 0 turns it off.
    pub fn set_readahead(&mut self, most: usize) {
        self.ahead_max = most.min(u32::MAX as usize / 2);
    }
    /// The table.
    pub fn table(&self) -> &Arc<TableReader> {
        &self.table
    }

    /// True if the cursor stands on an entry.
    #[inline]
    pub fn valid(&self) -> bool {
        self.entries.as_ref().is_some_and(BlockIter::valid)
    }
    /// Why the cursor is not valid, if it is not because it ran off an end.
    pub fn status(&self) -> Result<()> {
        self.error.clone().map_or(Ok(()), Err)
    }
    /// User key of the entry; empty if not valid.
    #[inline]
    pub fn user_key(&self) -> &[u8] {
        let key = self.entries.as_ref().map_or(&[][..], BlockIter::key);
        key.split_last_chunk::<8>().map_or(&[], |(user, _)| user)
    }
    /// Tag of the entry; 0 if not valid.
    #[inline]
    pub fn tag(&self) -> Tag {
        let key = self.entries.as_ref().map_or(&[][..], BlockIter::key);
        let tag = Tag(key.last_chunk::<8>().map_or(0, |tag| u64::from_le_bytes(*tag)));
        self.table.numbered(tag)
    }
    /// Value of the entry; empty if not valid.
    #[inline]
    pub fn value(&self) -> &[u8] {
        self.entries.as_ref().map_or(&[], BlockIter::value)
    }
    /// Value of the entry, kept alive with its block. During a read-ahead that is a chunk of up
    /// to 1 MiB: copy what is kept for long.
    pub fn pinned_value(&self) -> Option<PinnedSlice> {
        let entries = self.entries.as_ref().filter(|e| e.valid())?;
        Some(PinnedSlice::new(entries.bytes(), entries.value_range()))
    }

    /// Moves to the first entry at or after `(user, tag)`. Returns whether there is one; so for
    /// all moves.
    pub fn seek(&mut self, user: &[u8], tag: Tag) -> bool {
        if self.table.global_seq.is_some() {
            return self.seek_numbered(user, tag);
        }
        self.seek_stored(InternalKey { user, tag })
    }

    /// The same by the keys that stand in the blocks.
    fn seek_stored(&mut self, target: InternalKey<'_>) -> bool {
        let part = self.table.part_for(target.user, target.tag);
        if self.enter(part) {
            let no = self.fences().find(target.user, target.tag, &*self.table.order);
            if no < self.fences().len() {
                if self.open(part, no) {
                    self.within(|entries, table| entries.seek(target, &*table.order));
                    self.settle_forward();
                }
            } else {
                self.open_from(part + 1);
            }
        }
        self.valid()
    }

    /// The same where one number stands for those in the blocks: from the first entry of the key on.
    #[cold]
    fn seek_numbered(&mut self, user: &[u8], tag: Tag) -> bool {
        self.seek_stored(InternalKey { user, tag: Tag::seek(MAX_SEQ) });
        while self.valid()
            && self.tag() > tag
            && self.table.order.compare(self.user_key(), user).is_eq()
        {
            self.next();
        }
        self.valid()
    }
    /// Moves to the last entry at or before `(user, tag)`.
    pub fn seek_for_prev(&mut self, user: &[u8], tag: Tag) -> bool {
        if !self.seek(user, tag) {
            // All entries are before it, or a read failed.
            return self.error.is_none() && self.seek_to_last();
        }
        if self.tag() != tag || self.table.order.compare(self.user_key(), user).is_ne() {
            self.prev();
        }
        self.valid()
    }
    /// Moves to the first entry.
    pub fn seek_to_first(&mut self) -> bool {
        self.open_from(0);
        self.valid()
    }
    /// Moves to the last entry.
    pub fn seek_to_last(&mut self) -> bool {
        self.open_before(self.table.index.parts());
        self.valid()
    }
    /// Moves to the next entry; stays invalid if it was.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "a cursor also moves back")]
    pub fn next(&mut self) -> bool {
        if !self.valid() {
            return false;
        }
        match self.entries.as_mut().map(BlockIter::next) {
            Some(Ok(true)) => true,
            Some(Err(e)) => self.fail(e),
            _ => {
                self.settle_forward();
                self.valid()
            }
        }
    }
    /// The same for a cursor that stands on an entry. Whether the entry it comes to has the user key of the one before,
    /// byte for byte. It costs less than to compare them.
    #[inline]
    pub fn next_of_same(&mut self) -> bool {
        match self.entries.as_mut().map(BlockIter::next_of_same) {
            Some(Ok(Some(repeats))) => repeats,
            Some(Err(e)) => self.fail(e),
            _ => self.next_block_of_same(),
        }
    }
    /// The same from the last entry of a block.
    #[cold]
    fn next_block_of_same(&mut self) -> bool {
        let last = self.user_key().to_vec();
        self.next();
        self.valid() && self.user_key() == last
    }
    /// Gives the current entry and those after it to `visit`, until it breaks or there are no more: stands at
    /// the entry that `visit` broke at, or is not valid; ask [`status`](TableIter::status) then. A step costs less
    /// than with [`next`](TableIter::next).
    #[inline]
    pub fn walk(
        &mut self,
        visit: &mut impl FnMut(Passed<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        // Whether the first entry of a block has the key of the last one of the block before.
        let mut goes_on = false;
        while self.valid() {
            self.look_ahead();
            let Some(entries) = &mut self.entries else { break };
            let table = &self.table;
            let walked = entries.walk(&mut |entry: BlockEntry<'_>| {
                let (user, tag) = entry.key.split_last_chunk::<8>().unwrap_or((&[], &[0; 8]));
                let tag = table.numbered(Tag(u64::from_le_bytes(*tag)));
                let repeats = entry.repeats | std::mem::take(&mut goes_on);
                visit(Passed { user, tag, value: entry.value, repeats })
            });
            match walked {
                Ok(ControlFlow::Break(())) => return ControlFlow::Break(()),
                Ok(ControlFlow::Continue(())) => {}
                Err(e) => {
                    self.fail(e);
                    break;
                }
            }
            goes_on = self.next_block_of_same();
        }
        ControlFlow::Continue(())
    }
    /// Moves to the previous entry; stays invalid if it was.
    pub fn prev(&mut self) -> bool {
        if !self.valid() {
            return false;
        }
        match self.entries.as_mut().map(BlockIter::prev) {
            Some(Ok(true)) => true,
            Some(Err(e)) => self.fail(e),
            _ => {
                self.settle_backward();
                self.valid()
            }
        }
    }

    /// Goes on to the first entry of the next block that has one.
    fn settle_forward(&mut self) {
        while self.error.is_none()
            && !self.valid()
            && let Some((part, no)) = self.at
        {
            if no + 1 >= self.fences().len() {
                return self.open_from(part + 1);
            }
            if self.open(part, no + 1) {
                self.within(|entries, _| entries.seek_to_first());
            }
        }
    }
    /// Goes back to the last entry of the previous block that has one.
    fn settle_backward(&mut self) {
        while self.error.is_none()
            && !self.valid()
            && let Some((part, no)) = self.at
        {
            if no == 0 {
                return self.open_before(part);
            }
            if self.open(part, no - 1) {
                self.within(|entries, _| entries.seek_to_last());
            }
        }
    }
    /// Moves to the first entry in `part` of the index or behind it.
    fn open_from(&mut self, mut part: usize) {
        while self.enter(part) {
            if !self.fences().is_empty() {
                if self.open(part, 0) {
                    self.within(|entries, _| entries.seek_to_first());
                    self.settle_forward();
                }
                return;
            }
            part += 1;
        }
    }
    /// Moves to the last entry before `part` of the index.
    fn open_before(&mut self, mut part: usize) {
        while self.enter(part.wrapping_sub(1)) {
            part -= 1;
            if let Some(last) = self.fences().len().checked_sub(1) {
                if self.open(part, last) {
                    self.within(|entries, _| entries.seek_to_last());
                    self.settle_backward();
                }
                return;
            }
        }
    }

    /// A move inside the open block.
    fn within(&mut self, step: impl FnOnce(&mut BlockIter<Block>, &TableReader) -> Result<bool>) {
        if let Some(entries) = &mut self.entries
            && let Err(e) = step(entries, &self.table)
        {
            self.fail(e);
        }
    }

    #[cold]
    fn fail(&mut self, e: lithify_base::Error) -> bool {
        let e = match self.at {
            Some((_, no)) => self.table.blame(self.fences().block(no), e),
            None => e,
        };
        self.error = Some(e);
        (self.at, self.entries) = (None, None);
        false
    }

    /// The fences of the part of the index that was entered last.
    fn fences(&self) -> &Fences {
        match &self.leaf {
            Some(fences) => fences,
            None => self.table.index.resident(),
        }
    }

    /// Has the fences of `part` at hand. False, with the cursor invalid, if there is no such part or it
    /// cannot be read.
    fn enter(&mut self, part: usize) -> bool {
        self.error = None;
        if self.at.is_some_and(|(at, _)| at == part) {
            return true;
        }
        // The open block's number means nothing among the fences of another part.
        self.at = None;
        if part >= self.table.index.parts() {
            self.entries = None;
            return false;
        }
        match self.table.leaf(part) {
            Ok(Leaf::Resident(_)) => true,
            Ok(Leaf::Cached(fences)) => {
                self.leaf = Some(fences);
                true
            }
            Err(e) => self.fail(e),
        }
    }

    /// Makes block `no` of `part`, which was entered, the open one, standing on none of its entries.
    /// False, with the cursor invalid, if it cannot be read.
    fn open(&mut self, part: usize, no: usize) -> bool {
        self.error = None;
        if self.at == Some((part, no)) && self.entries.is_some() {
            return true;
        }
        self.at = Some((part, no));
        let opened = self.fetch(no).and_then(|block| match self.entries.take() {
            Some(mut entries) => entries.replace(block).map(|_| entries),
            None => BlockIter::new(block),
        });
        match opened {
            Ok(entries) => {
                self.entries = Some(entries);
                true
            }
            Err(e) => self.fail(e),
        }
    }

    /// Looks once for the block behind the open one where that was found, in the cache, while there is still something
    /// to do: its bytes are on their way from memory meanwhile, for which a walk through cached blocks else waits
    /// longer than it works. One that is not there yet is asked for again when the walk comes to it.
    fn look_ahead(&mut self) {
        let (true, Some((_, no))) = (self.from_cache, self.at) else { return };
        if no + 1 >= self.fences().len() {
            return;
        }
        let offset = self.fences().block(no + 1).offset;
        if self.coming.as_ref().is_none_or(|(at, _)| *at != offset) {
            let block = self.table.cached_ahead(offset);
            block.iter().for_each(Block::prefetch);
            self.coming = Some((offset, block));
        }
    }

    /// Block `no` of the part: from the cache, from what was read ahead, or from the file.
    fn fetch(&mut self, no: usize) -> Result<Block> {
        let BlockAt { offset, size } = self.fences().block(no);
        let handle = BlockHandle::new(offset, u64::from(size));
        let stored = size as usize + TRAILER_LEN;
        let sequential = offset.wrapping_sub(self.ahead.expected) < PADDING_MAX;
        self.ahead.expected = offset + stored as u64;
        if !sequential {
            self.ahead.in_a_row = 0;
            self.ahead.next = AHEAD_MIN;
        }
        let coming = self.coming.take().filter(|(at, _)| *at == offset);
        self.from_cache = true;
        if let Some((_, Some(block))) = coming {
            return Ok(block);
        }
        if let Some((bytes, at)) = self.ahead.find(offset, stored) {
            self.from_cache = false;
            return self.table.blocks.decode(bytes, at, handle);
        }
        if let Some(block) = self.table.cached(offset) {
            return Ok(block);
        }
        self.from_cache = false;
        self.ahead.in_a_row += 1;
        if self.ahead.in_a_row <= SEQUENTIAL_AFTER || self.ahead_max < stored {
            let block = self.table.blocks.read_data(handle, self.table.order.is_bytewise())?;
            if self.fill == Fill::Cache {
                self.table.keep(offset, &block);
            }
            return Ok(block);
        }
        let bytes = self.read_ahead(offset, stored)?;
        self.table.blocks.decode(bytes, 0, handle)
    }

    /// Fills the chunk from `offset`, with at least `stored` bytes.
    fn read_ahead(&mut self, offset: u64, stored: usize) -> Result<SharedBytes> {
        let ahead = &mut self.ahead;
        let left = self.table.data_end.saturating_sub(offset);
        ahead.len = 0;
        let (before, spare) = (ahead.bytes.take(), ahead.spare.take());
        let held = spare.as_ref().map_or(0, |chunk| chunk.len());
        let room = self.table.cache.as_ref().map_or(u64::MAX, CachedFile::ahead_room) / AHEAD_PART;
        let room = usize::try_from(room).unwrap_or(usize::MAX).max(held);
        let want = ahead.next.min(self.ahead_max).min(room.max(AHEAD_MIN)).max(stored);
        let want = usize::try_from(left).unwrap_or(want).min(want).max(stored);
        ahead.next = (ahead.next * 2).min(AHEAD_MAX);
        let unshared = |mut chunk: SharedBytes| chunk.get_mut().is_some().then_some(chunk);
        let reusable = spare.filter(|chunk| chunk.len() >= want).and_then(unshared);
        let mut bytes = match reusable {
            Some(chunk) => chunk,
            None => {
                let fresh = self.table.blocks.source.memory(want)?;
                if let Some(cache) = &self.table.cache {
                    let before = before.as_ref().map_or(0, SharedBytes::memory);
                    let held = (fresh.memory() + before) as u64;
                    cache.count_ahead(ahead.counted, held);
                    ahead.counted = held;
                }
                fresh
            }
        };
        ahead.spare = before;
        let chunk = bytes.get_mut().expect("not shared");
        self.table.blocks.source.read_into(offset, &mut chunk[..want])?;
        ahead.bytes = Some(bytes.clone());
        ahead.start = offset;
        ahead.len = want;
        Ok(bytes)
    }
}

impl Drop for TableIter {
    fn drop(&mut self) {
        if let Some(cache) = &self.table.cache {
            cache.count_ahead(self.ahead.counted, 0);
        }
    }
}

#[cfg(test)]
mod tests;
