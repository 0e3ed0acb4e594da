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
use lithify_env::SharedBytes;
use lithify_format::block::TRAILER_LEN;

/// Where one data block lies in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockAt {
    /// Byte offset of its first byte.
    pub offset: u64,
    /// Payload bytes, without the trailer.
    pub size: u32,
}

/// The resident index of a table. It lies in one piece of memory, from where cached blocks have theirs: five lists a table
/// would each leave a hole in the allocator's memory when the table is closed.
///
/// ```text
///   heads   tags   offsets   ends   sizes   keys
///   8 n     8 n    8 n       4 n    4 n     the rest; heads only in byte order, tags only of internal keys
/// ```
#[derive(Debug, Default)]
pub struct Fences {
    /// How many there are.
    len: usize,
    /// Length of the prefix that all keys share; only used when heads exist.
    prefix: usize,
    /// Whether there are heads: eight bytes after the prefix, zero-padded, as integers.
    heads: bool,
    /// Whether the separators are internal keys, which have tags.
    tags: bool,
    /// `None` without fences. Integers are in the machine's order. End `i` is where key `i` ends among the keys.
    bytes: Option<SharedBytes>,
}

impl Fences {
    /// Number of blocks.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }
    /// True for a table without data blocks.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// Where block `i` lies. `i` must be below [`len`](Fences::len).
    pub fn block(&self, i: usize) -> BlockAt {
        BlockAt { offset: u64::from_ne_bytes(self.offsets()[i]), size: self.size(i) }
    }
    /// Separator `i` as a user key.
    pub fn key(&self, i: usize) -> &[u8] {
        let lo = if i == 0 { 0 } else { self.key_end(i - 1) };
        &self.bytes()[self.keys_at()..][lo..self.key_end(i)]
    }
    /// Tag of separator `i` if the separators are internal keys.
    pub fn tag(&self, i: usize) -> Option<Tag> {
        self.tags().get(i).map(|&tag| Tag(u64::from_ne_bytes(tag)))
    }
    /// Where the last block ends in the file, its trailer included; 0 without blocks.
    pub(crate) fn end(&self) -> u64 {
        let last = self.len.checked_sub(1).map(|last| self.block(last));
        last.map_or(0, |last| last.offset + u64::from(last.size) + TRAILER_LEN as u64)
    }
    /// Resident bytes.
    pub fn memory(&self) -> usize {
        self.bytes.as_ref().map_or(0, SharedBytes::memory)
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        self.bytes.as_deref().unwrap_or_default()
    }
    #[inline]
    fn heads(&self) -> &[[u8; 8]] {
        self.words(0, self.heads)
    }
    #[inline]
    fn tags(&self) -> &[[u8; 8]] {
        self.words(8 * self.len * usize::from(self.heads), self.tags)
    }
    #[inline]
    fn offsets(&self) -> &[[u8; 8]] {
        self.words(self.ends_at() - 8 * self.len, true)
    }
    /// A list of eight bytes for each fence from `at` on, if it is `there`.
    #[inline]
    fn words(&self, at: usize, there: bool) -> &[[u8; 8]] {
        let len = if there { self.len } else { 0 };
        self.bytes()[at..at + 8 * len].as_chunks().0
    }
    #[inline]
    fn ends_at(&self) -> usize {
        8 * self.len * (1 + usize::from(self.heads) + usize::from(self.tags))
    }
    #[inline]
    fn keys_at(&self) -> usize {
        self.ends_at() + 8 * self.len
    }
    #[inline]
    fn key_end(&self, i: usize) -> usize {
        let ends: &[[u8; 4]] = self.bytes()[self.ends_at()..][..4 * self.len].as_chunks().0;
        u32::from_ne_bytes(ends[i]) as usize
    }
    #[inline]
    fn size(&self, i: usize) -> u32 {
        let sizes: &[[u8; 4]] =
            self.bytes()[self.ends_at() + 4 * self.len..][..4 * self.len].as_chunks().0;
        u32::from_ne_bytes(sizes[i])
    }

    /// The first block that may hold an entry at or after `(user, tag)`; [`len`](Fences::len) if
    /// every entry of the table is before it.
    #[inline]
    pub fn find(&self, user: &[u8], tag: Tag, order: &dyn Comparator) -> usize {
        let i = match self.heads {
            true => self.find_by_head(user, order),
            false => self.lower_bound(0, self.len(), user, order),
        };
        if self.tags { self.skip_newer(i, user, tag, order) } else { i }
    }

    fn find_by_head(&self, user: &[u8], order: &dyn Comparator) -> usize {
        let prefix = &self.bytes()[self.keys_at()..][..self.prefix];
        let rest = match user.get(..self.prefix) {
            Some(p) if p == prefix => &user[self.prefix..],
            // Outside the prefix: before all fences or after all of them.
            _ => return if user < prefix { 0 } else { self.len() },
        };
        let (head, heads) = (head_of(rest), self.heads());
        let lo = lower_bound_u64(heads, head);
        let ties = heads[lo..].iter().take_while(|&&h| h == head.to_ne_bytes()).count();
        if ties == 0 {
            return lo;
        }
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
        while self.tag(i).is_some_and(|newer| newer.0 > tag.0)
            && order.compare(self.key(i), user) == Ordering::Equal
        {
            i += 1;
        }
        i
    }
}

/// First index of `heads` whose value is at least `head`. Branch-free halving: the loop count
/// depends on the length alone, so the processor never mispredicts it.
fn lower_bound_u64(heads: &[[u8; 8]], head: u64) -> usize {
    let is_below = |i: usize| u64::from_ne_bytes(heads[i]) < head;
    let mut base = 0;
    let mut len = heads.len();
    while len > 1 {
        let half = len / 2;
        base = if is_below(base + half - 1) { base + half } else { base };
        len -= half;
    }
    base + usize::from(len == 1 && is_below(base))
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
    ends: Vec<u32>,
    keys: Vec<u8>,
    tags: Vec<u64>,
    offsets: Vec<u64>,
    sizes: Vec<u32>,
}

impl<'a> FencesBuilder<'a> {
    /// An empty index of a table whose data blocks, trailers included, end at or before `limit`.
    pub(crate) fn new(order: &'a dyn Comparator, limit: u64) -> FencesBuilder<'a> {
        let (ends, keys, tags) = (Vec::new(), Vec::new(), Vec::new());
        FencesBuilder { order, limit, ends, keys, tags, offsets: Vec::new(), sizes: Vec::new() }
    }

    fn key(&self, i: usize) -> &[u8] {
        let lo = if i == 0 { 0 } else { self.ends[i - 1] as usize };
        &self.keys[lo..self.ends[i] as usize]
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
        let end = offset.checked_add(size).and_then(|e| e.checked_add(trailer));
        let size32 = u32::try_from(size).ok();
        let (Some(end), Some(size)) = (end, size32) else {
            return Err(Error::corruption("index names a block of impossible size"));
        };
        if end > self.limit {
            return Err(Error::corruption("index names a block beyond the data of the file"));
        }
        if let Some(last) = self.ends.len().checked_sub(1) {
            if offset < self.offsets[last] + u64::from(self.sizes[last]) + trailer {
                return Err(Error::corruption("index names overlapping blocks"));
            }
            let newer = self.tags.get(last).zip(tag).is_some_and(|(last, tag)| *last > tag.0);
            let ascends = match self.order.compare(self.key(last), user) {
                Ordering::Less => true,
                Ordering::Equal => newer,
                Ordering::Greater => false,
            };
            if !ascends {
                return Err(Error::corruption("index keys do not ascend"));
            }
        }
        self.keys.extend_from_slice(user);
        let Ok(key_end) = u32::try_from(self.keys.len()) else {
            return Err(Error::corruption("index keys exceed 4 GiB"));
        };
        self.ends.push(key_end);
        self.tags.extend(tag.map(|tag| tag.0));
        self.offsets.push(offset);
        self.sizes.push(size);
        if !self.tags.is_empty() && self.tags.len() != self.ends.len() {
            return Err(Error::corruption("index mixes user keys and internal keys"));
        }
        Ok(())
    }

    /// The searchable index, in memory that `room` gives.
    ///
    /// # Errors
    /// Corruption if it is too large to be one; those of `room`.
    pub(crate) fn finish(self, room: impl FnOnce(usize) -> Result<SharedBytes>) -> Result<Fences> {
        let Some(last) = self.ends.len().checked_sub(1) else { return Ok(Fences::default()) };
        // Where keys ascend bytewise, all share what the first and the last share.
        let (first, last) = (self.key(0), self.key(last));
        let prefix = first.iter().zip(last).take_while(|(a, b)| a == b).count();
        let heads = self.order.is_bytewise();
        let (len, tags) = (self.ends.len(), !self.tags.is_empty());
        let fences = Fences { len, prefix, heads, tags, bytes: None };
        let all = fences.keys_at() + self.keys.len();
        if u32::try_from(all).is_err() {
            return Err(Error::corruption("index takes 4 GiB or more"));
        }
        let mut bytes = room(all)?;
        let (words, rest) = bytes.get_mut().expect("not shared yet").split_at_mut(fences.ends_at());
        let heads = (0..if heads { len } else { 0 }).map(|i| head_of(&self.key(i)[prefix..]));
        let all = heads.chain(self.tags.iter().copied()).chain(self.offsets.iter().copied());
        for (to, word) in words.as_chunks_mut().0.iter_mut().zip(all) {
            *to = word.to_ne_bytes();
        }
        let (halves, keys) = rest.split_at_mut(8 * len);
        for (to, half) in
            halves.as_chunks_mut().0.iter_mut().zip(self.ends.iter().chain(&self.sizes))
        {
            *to = half.to_ne_bytes();
        }
        keys.copy_from_slice(&self.keys);
        Ok(Fences { bytes: Some(bytes), ..fences })
    }
}

#[cfg(test)]
mod tests;
