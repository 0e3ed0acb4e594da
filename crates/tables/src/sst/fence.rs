//! Fences: the index of one table, resident and flat, so that a search touches one array of
//! integers.
//!
//! Fence `i` is a separator: at or above every key of block `i`, below every key of block
//! `i + 1`. A search for a key wants the first fence at or above it: if the key is in the table,
//! it is in that block.
//!
//! The separators of a table usually share a prefix, so the array keeps, for each, the eight
//! bytes *after* that prefix as a big-endian integer (its **head**). Comparing heads decides
//! nearly always; equal heads fall back to the key bytes.
//!
//! ```text
//!   keys     user0000|00000913    user0000|00002207    user0000|00003991
//!   prefix   user0000                                         (stored once, as part of key 0)
//!   heads    "00000913"           "00002207"           "00003991"   as u64
//!   search   user0000|00002000 -> head "00002000" -> fence 1
//! ```
//!
//! Keeps: fences strictly ascend and blocks do not overlap; an index that breaks this is refused
//! at open, because a binary search over it would return wrong answers.
//! Leaves to others: reading the index block (`reader`), the blocks themselves.

use std::cmp::Ordering;

use lithify_base::{Comparator, Error, Result, Tag};
use lithify_format::block::TRAILER_LEN;

/// Where one data block lies in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockAt {
    /// Byte offset of its first byte.
    pub offset: u64,
    /// Payload bytes, without the trailer.
    pub size: u32,
}

/// The resident index of a table.
#[derive(Debug, Default)]
pub struct Fences {
    /// Length of the prefix that all keys share; only used when heads exist.
    prefix: usize,
    /// Eight bytes after the prefix, big-endian, zero-padded. Empty unless the order is bytewise.
    heads: Vec<u64>,
    /// Key `i` is `keys[ends[i - 1]..ends[i]]`.
    ends: Vec<u32>,
    keys: Vec<u8>,
    /// Tags of internal-key separators; empty if the separators are user keys.
    tags: Vec<u64>,
    offsets: Vec<u64>,
    sizes: Vec<u32>,
}

impl Fences {
    /// Number of blocks.
    pub fn len(&self) -> usize {
        self.offsets.len()
    }
    /// True for a table without data blocks.
    pub fn is_empty(&self) -> bool {
        self.offsets.is_empty()
    }
    /// Where block `i` lies. `i` must be below [`len`](Fences::len).
    pub fn block(&self, i: usize) -> BlockAt {
        BlockAt { offset: self.offsets[i], size: self.sizes[i] }
    }
    /// Separator `i` as a user key.
    pub fn key(&self, i: usize) -> &[u8] {
        let lo = if i == 0 { 0 } else { self.ends[i - 1] as usize };
        &self.keys[lo..self.ends[i] as usize]
    }
    /// Tag of separator `i` if the separators are internal keys.
    pub fn tag(&self, i: usize) -> Option<Tag> {
        self.tags.get(i).map(|&t| Tag(t))
    }
    /// Where the last block ends in the file, its trailer included; 0 without blocks.
    pub(crate) fn end(&self) -> u64 {
        let last = self.offsets.last().zip(self.sizes.last());
        last.map_or(0, |(offset, size)| offset + u64::from(*size) + TRAILER_LEN as u64)
    }
    /// Resident bytes.
    pub fn memory(&self) -> usize {
        self.heads.capacity() * 8
            + self.ends.capacity() * 4
            + self.keys.capacity()
            + self.tags.capacity() * 8
            + self.offsets.capacity() * 8
            + self.sizes.capacity() * 4
    }

    /// The first block that may hold an entry at or after `(user, tag)`; [`len`](Fences::len) if
    /// every entry of the table is before it.
    #[inline]
    pub fn find(&self, user: &[u8], tag: Tag, order: &dyn Comparator) -> usize {
        let i = if self.heads.is_empty() {
            self.lower_bound(0, self.len(), user, order)
        } else {
            self.find_by_head(user, order)
        };
        if self.tags.is_empty() { i } else { self.skip_newer(i, user, tag, order) }
    }

    fn find_by_head(&self, user: &[u8], order: &dyn Comparator) -> usize {
        let prefix = &self.keys[..self.prefix];
        let rest = match user.get(..self.prefix) {
            Some(p) if p == prefix => &user[self.prefix..],
            // Outside the prefix: before all fences or after all of them.
            _ => return if user < prefix { 0 } else { self.len() },
        };
        let head = head_of(rest);
        let lo = lower_bound_u64(&self.heads, head);
        if self.heads.get(lo) != Some(&head) {
            return lo;
        }
        let ties = self.heads[lo..].iter().take_while(|&&h| h == head).count();
        self.lower_bound(lo, lo + ties, user, order)
    }

    /// First fence in `lo..hi` whose user key is not below `user`.
    fn lower_bound(&self, lo: usize, hi: usize, user: &[u8], order: &dyn Comparator) -> usize {
        let (mut lo, mut hi) = (lo, hi);
        while lo < hi {
            let mid = lo + (hi - lo) / 2;
            if order.compare(self.key(mid), user).is_lt() { lo = mid + 1 } else { hi = mid }
        }
        lo
    }

    /// Internal-key separators: skips fences of the same user key whose tag is newer than `tag`.
    fn skip_newer(&self, mut i: usize, user: &[u8], tag: Tag, order: &dyn Comparator) -> usize {
        while i < self.len()
            && self.tags[i] > tag.0
            && order.compare(self.key(i), user) == Ordering::Equal
        {
            i += 1;
        }
        i
    }
}

/// First index of `heads` whose value is at least `head`. Branch-free halving: the loop count
/// depends on the length alone, so the processor never mispredicts it.
fn lower_bound_u64(heads: &[u64], head: u64) -> usize {
    let mut base = 0;
    let mut len = heads.len();
    while len > 1 {
        let half = len / 2;
        base = if heads[base + half - 1] < head { base + half } else { base };
        len -= half;
    }
    base + usize::from(len == 1 && heads[base] < head)
}

/// First eight bytes as a big-endian integer, zero-padded.
#[inline]
pub(crate) fn head_of(bytes: &[u8]) -> u64 {
    match bytes.first_chunk::<8>() {
        Some(b) => u64::from_be_bytes(*b),
        None => {
            let mut b = [0u8; 8];
            b[..bytes.len()].copy_from_slice(bytes);
            u64::from_be_bytes(b)
        }
    }
}

/// Collects the entries of an index in order.
pub(crate) struct FencesBuilder<'a> {
    order: &'a dyn Comparator,
    /// Data blocks must end at or before this offset.
    limit: u64,
    out: Fences,
}

impl<'a> FencesBuilder<'a> {
    /// An empty index of a table whose data blocks, trailers included, end at or before `limit`.
    pub(crate) fn new(order: &'a dyn Comparator, limit: u64) -> FencesBuilder<'a> {
        FencesBuilder { order, limit, out: Fences::default() }
    }

    /// Appends one index entry: a separator (`tag` if it is an internal key) and the block below
    /// it, whose trailer takes `trailer` bytes.
    ///
    /// # Errors
    /// Corruption if keys do not ascend, blocks overlap, or a block leaves the file.
    pub(crate) fn push(
        &mut self,
        user: &[u8],
        tag: Option<Tag>,
        (offset, size): (u64, u64),
        trailer: u64,
    ) -> Result<()> {
        let f = &mut self.out;
        let end = offset.checked_add(size).and_then(|e| e.checked_add(trailer));
        let size32 = u32::try_from(size).ok();
        let (Some(end), Some(size)) = (end, size32) else {
            return Err(Error::corruption("index names a block of impossible size"));
        };
        if end > self.limit {
            return Err(Error::corruption("index names a block beyond the data of the file"));
        }
        if let Some(last) = f.len().checked_sub(1) {
            let at = f.block(last);
            if offset < at.offset + u64::from(at.size) + trailer {
                return Err(Error::corruption("index names overlapping blocks"));
            }
            let ascends = match (self.order.compare(f.key(last), user), f.tag(last), tag) {
                (Ordering::Less, ..) => true,
                (Ordering::Equal, Some(a), Some(b)) => a > b,
                _ => false,
            };
            if !ascends {
                return Err(Error::corruption("index keys do not ascend"));
            }
        }
        f.keys.extend_from_slice(user);
        let Ok(key_end) = u32::try_from(f.keys.len()) else {
            return Err(Error::corruption("index keys exceed 4 GiB"));
        };
        f.ends.push(key_end);
        if let Some(t) = tag {
            f.tags.push(t.0);
        }
        f.offsets.push(offset);
        f.sizes.push(size);
        if !f.tags.is_empty() && f.tags.len() != f.len() {
            return Err(Error::corruption("index mixes user keys and internal keys"));
        }
        Ok(())
    }

    /// The searchable index.
    pub(crate) fn finish(self) -> Fences {
        let mut f = self.out;
        if self.order.is_bytewise() && !f.is_empty() {
            // Keys ascend bytewise, so what the first and the last share, all share.
            let (first, last) = (f.key(0), f.key(f.len() - 1));
            f.prefix = first.iter().zip(last).take_while(|(a, b)| a == b).count();
            f.heads = (0..f.len()).map(|i| head_of(&f.key(i)[f.prefix..])).collect();
        }
        f.keys.shrink_to_fit();
        f.ends.shrink_to_fit();
        f.tags.shrink_to_fit();
        f.offsets.shrink_to_fit();
        f.sizes.shrink_to_fit();
        f
    }
}

#[cfg(test)]
mod tests;
