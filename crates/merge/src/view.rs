//! Views: a restart-point block taken apart once, into columns the merge can run over.
//!
//! Keeps: any bytes are safe; what does not parse is Corruption. Keys of the trimmed part carry
//! the common prefix of their set, so their heads compare as integers wherever bytes differ within
//! eight bytes behind it.
//! Leaves to others: whether keys ascend; the merge checks its output, entry by entry.
//!
//! Worked example: keys `user17` and `user3` in a set with common prefix `user` have the heads
//! `31 37 00..` and `33 00..`: the order of the heads is the order of the keys.

use std::borrow::Cow;

use lithify_base::{Comparator, Error, ErrorKind, Result, Seq, Tag};
use lithify_format::block::{BlockIter, Layout};
use lithify_format::checksum::{ChecksumKind, raw_sum};
use lithify_format::limits::{MAX_BLOCK, plain_max};
use lithify_format::varint;
use lithify_format::weight::{content, weigh};
use lithify_format::xxph3::xxph3_64;

use crate::copy::{copy, copy_within};
use crate::products::TRAILER;
use crate::set::{BlockSlice, Bytes, CleanRange, JobRange};

/// Where one entry lies in its view.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    key: u32,
    key_len: u32,
    value: u32,
    value_len: u32,
    tag: u64,
    hash: u64,
}

/// One decoded block. Buffers are reused from block to block.
#[derive(Clone, Debug, Default)]
pub struct View {
    heads: Vec<u64>,
    slots: Vec<Slot>,
    /// Internal keys, whole, back to back, up to `used`; the rest is room.
    keys: Vec<u8>,
    used: usize,
    /// Some key lacks the prefix of the set.
    stray: bool,
    source: Source,
}

/// The bytes values point into.
#[derive(Clone, Debug, Default)]
enum Source {
    /// No block.
    #[default]
    Empty,
    /// The block as it was read.
    Stored(Bytes),
    /// The block decompressed.
    Plain(Vec<u8>),
}

/// An entry of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViewEntry<'a> {
    /// User key.
    pub key: &'a [u8],
    /// Sequence number and kind.
    pub tag: Tag,
    /// Value.
    pub value: &'a [u8],
    /// XXPH3 of the user key.
    pub hash: u64,
    /// Of key and value ([`lithify_format::weight::content`]).
    pub content: u64,
    /// The weight of the entry: of `content` and `tag`.
    pub weight: u64,
}

impl View {
    /// Verifies and decodes a block. `prefix` is what all keys of the set start with.
    ///
    /// # Errors
    /// Corruption with the block's offset; Unsupported for a codec this build lacks.
    pub fn load(&mut self, block: &BlockSlice, prefix: &[u8]) -> Result<()> {
        self.try_load(block, prefix).map_err(|e| {
            self.clear();
            e.at(block.offset)
        })
    }

    fn try_load(&mut self, block: &BlockSlice, prefix: &[u8]) -> Result<()> {
        match block.plain()? {
            Cow::Borrowed(payload) => {
                self.decode(payload, prefix)?;
                self.source = Source::Stored(block.bytes.clone());
            }
            Cow::Owned(payload) => {
                self.decode(&payload, prefix)?;
                self.source = Source::Plain(payload);
            }
        }
        if let Some(seq) = block.seq {
            self.renumber(seq);
        }
        Ok(())
    }

    /// Decodes a plain payload whose checksum someone else has checked. Values must then be
    /// looked up in `payload` by the caller.
    ///
    /// # Errors
    /// Corruption if it does not parse, LimitExceeded above 4 GiB.
    pub fn decode(&mut self, payload: &[u8], prefix: &[u8]) -> Result<()> {
        self.clear();
        if payload.len() > u32::MAX as usize {
            return Err(Error::new(ErrorKind::LimitExceeded, "a block exceeds 4 GiB"));
        }
        let layout = Layout::parse(payload)?;
        if layout.has_separated_values() {
            self.scatter(payload, prefix)?;
        } else {
            self.expand(payload.get(..layout.keys_end()).unwrap_or_default(), prefix)?;
        }
        self.digest(prefix.len());
        Ok(())
    }

    /// Gives all entries one sequence number.
    fn renumber(&mut self, seq: Seq) {
        for slot in &mut self.slots {
            slot.tag = seq << 8 | slot.tag & 0xff;
        }
    }

    /// Forgets the block.
    pub fn clear(&mut self) {
        self.heads.clear();
        self.slots.clear();
        self.used = 0;
        self.stray = false;
        self.source = Source::Empty;
    }

    /// Takes entries apart that follow each other with key and value together.
    fn expand(&mut self, entries: &[u8], prefix: &[u8]) -> Result<()> {
        let mut rest = entries;
        let (mut last, mut last_len) = (0, 0);
        while !rest.is_empty() {
            let (shared, unshared, value_len, tail) = lengths(rest)?;
            let (shared, unshared) = (shared as usize, unshared as usize);
            let value_len = value_len as usize;
            let len = shared + unshared;
            let (Some(delta), Some(after)) =
                (tail.get(..unshared), tail.get(unshared + value_len..))
            else {
                return Err(bad_entry());
            };
            if shared > last_len || len < 8 {
                return Err(bad_entry());
            }
            let start = self.room(len)?;
            copy_within(&mut self.keys, last, shared, start);
            copy(&mut self.keys[start + shared..], delta);
            let value = entries.len() - tail.len() + unshared;
            // A shared prefix that long was checked with the key it is shared with.
            if shared < prefix.len() {
                self.stray |= !self.keys[start..start + len - 8].starts_with(prefix);
            }
            self.push(start, len, value, value_len);
            (last, last_len) = (start, len);
            rest = after;
        }
        Ok(())
    }

    /// Takes a block apart whose values lie in a section of their own.
    fn scatter(&mut self, payload: &[u8], prefix: &[u8]) -> Result<()> {
        let mut it = BlockIter::new(payload)?;
        let mut more = it.seek_to_first()?;
        while more {
            let (key, value) = (it.key(), it.value_range());
            if key.len() < 8 {
                return Err(bad_entry());
            }
            let start = self.room(key.len())?;
            copy(&mut self.keys[start..], key);
            self.stray |= !key[..key.len() - 8].starts_with(prefix);
            self.push(start, key.len(), value.start, value.len());
            more = it.next()?;
        }
        Ok(())
    }

    /// Makes room for a key of `len` bytes and says where.
    #[inline]
    fn room(&mut self, len: usize) -> Result<usize> {
        let start = self.used;
        self.used = start + len;
        if self.used > self.keys.len() {
            self.grow()?;
        }
        Ok(start)
    }

    /// A few bytes of a block can stand for many bytes of keys, so the sum has a cap.
    #[cold]
    fn grow(&mut self) -> Result<()> {
        if self.used > MAX_BLOCK {
            return Err(bad_entry());
        }
        self.keys.resize((2 * self.used).max(8 << 10), 0);
        Ok(())
    }

    #[inline(always)]
    fn push(&mut self, key: usize, key_len: usize, value: usize, value_len: usize) {
        let mut slot = Slot { key: key as u32, key_len: key_len as u32, ..Slot::default() };
        (slot.value, slot.value_len) = (value as u32, value_len as u32);
        self.slots.push(slot);
    }

    /// Second pass: heads, tags and hashes. Apart from the first, because reading a key right
    /// after writing it piecewise stalls the processor for longer than the read takes.
    fn digest(&mut self, prefix: usize) {
        let keys = &self.keys[..];
        self.heads.extend(self.slots.iter_mut().map(|s| {
            let internal = &keys[s.key as usize..][..s.key_len as usize];
            let (user, tag) = internal.split_last_chunk::<8>().unwrap_or((&[], &[0; 8]));
            s.key_len -= 8;
            s.tag = u64::from_le_bytes(*tag);
            s.hash = xxph3_64(user);
            head(user, prefix)
        }));
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.slots.len()
    }
    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }
    /// Heads of all entries: the eight bytes of the user key after the common prefix.
    pub fn heads(&self) -> &[u64] {
        &self.heads
    }
    /// User key of entry `i`; empty past the end.
    #[inline]
    pub fn key(&self, i: usize) -> &[u8] {
        let Some(s) = self.slots.get(i) else { return &[] };
        &self.keys[s.key as usize..][..s.key_len as usize]
    }
    /// Tag of entry `i`.
    #[inline]
    pub fn tag(&self, i: usize) -> Tag {
        Tag(self.slots.get(i).map_or(0, |s| s.tag))
    }
    /// The bytes values point into. One indirect call: fetch once per batch of entries.
    pub fn values(&self) -> &[u8] {
        match &self.source {
            Source::Empty => &[],
            Source::Stored(bytes) => bytes.as_slice(),
            Source::Plain(bytes) => bytes,
        }
    }
    /// Entry `i`, with its value taken from `values`, which is [`View::values`], and weighed there:
    /// what is weighed is what is written.
    #[inline(always)]
    pub fn entry<'a>(&'a self, i: usize, values: &'a [u8]) -> ViewEntry<'a> {
        let s = &self.slots[i];
        let value = &values[s.value as usize..][..s.value_len as usize];
        let (tag, hash, content) = (Tag(s.tag), s.hash, content(s.hash, value));
        ViewEntry {
            key: &self.keys[s.key as usize..][..s.key_len as usize],
            tag,
            value,
            hash,
            content,
            weight: weigh(content, tag),
        }
    }

    /// The entries inside both ranges, as a range of indexes. Heads inside are made sure to be
    /// true: every key there carries `prefix`.
    ///
    /// # Errors
    /// Corruption if a key inside the ranges lacks the prefix, so cannot lie between the bounds.
    pub fn trim(
        &self,
        keys: &CleanRange,
        job: &JobRange,
        prefix: &[u8],
        order: &dyn Comparator,
    ) -> Result<std::ops::Range<usize>> {
        let below = |k: &[u8]| {
            keys.lo.as_ref().is_some_and(|lo| order.compare(k, lo).is_le())
                || job.lo.as_ref().is_some_and(|lo| order.compare(k, lo).is_lt())
        };
        let inside = |k: &[u8]| {
            keys.hi.as_ref().is_none_or(|hi| order.compare(k, hi).is_le())
                && job.hi.as_ref().is_none_or(|hi| !hi.is_before(k, order))
        };
        let n = self.len();
        let mut range = 0..n;
        if n > 0 && below(self.key(0)) {
            range.start = partition(n, |i| below(self.key(i)));
        }
        if n > 0 && !inside(self.key(n - 1)) {
            range.end = partition(n, |i| inside(self.key(i))).max(range.start);
        }
        if self.stray && !range.clone().all(|i| self.key(i).starts_with(prefix)) {
            return Err(Error::corruption("a key lies outside of its block's bounds"));
        }
        Ok(range)
    }
}

/// First index of `0..n` for which `before` is false.
fn partition(n: usize, before: impl Fn(usize) -> bool) -> usize {
    let (mut lo, mut hi) = (0, n);
    while lo < hi {
        let mid = lo + (hi - lo) / 2;
        if before(mid) { lo = mid + 1 } else { hi = mid }
    }
    lo
}

impl BlockSlice {
    /// The payload, verified and not compressed.
    ///
    /// # Errors
    /// Corruption if the sum differs or the payload does not decompress; Unsupported for a codec this build
    /// lacks.
    pub fn plain(&self) -> Result<Cow<'_, [u8]>> {
        let (stored, type_byte) = verify(self, self.bytes.as_slice())?;
        if type_byte == 0 {
            return Ok(Cow::Borrowed(stored));
        }
        let plain = self.decoder.decode(type_byte, stored, plain_max(stored.len()))?;
        Ok(Cow::Owned(plain))
    }
}

/// Splits payload and type byte off a stored block and checks its sum.
fn verify<'a>(block: &BlockSlice, bytes: &'a [u8]) -> Result<(&'a [u8], u8)> {
    let Some((payload, trailer)) = bytes.split_last_chunk::<TRAILER>() else {
        return Err(Error::corruption("block is shorter than its trailer"));
    };
    let [type_byte, a, b, c, d] = *trailer;
    if block.checksum != ChecksumKind::None {
        let stored = u32::from_le_bytes([a, b, c, d]);
        let computed = raw_sum(block.checksum, payload, type_byte).wrapping_add(block.modifier);
        if stored != computed {
            return Err(Error::corruption(format!(
                "checksum mismatch in a block of {} bytes: stored {stored:#010x}, computed \
                 {computed:#010x}",
                payload.len()
            )));
        }
    }
    Ok((payload, type_byte))
}

/// Eight bytes of the user key after the prefix, as a big-endian integer, padded with zeros.
#[inline]
pub(crate) fn head(user: &[u8], prefix: usize) -> u64 {
    let rest = user.get(prefix..).unwrap_or_default();
    match rest.first_chunk::<8>() {
        Some(c) => u64::from_be_bytes(*c),
        None => {
            let mut c = [0; 8];
            c[..rest.len()].copy_from_slice(rest);
            u64::from_be_bytes(c)
        }
    }
}

/// Splits the three lengths off an entry.
#[inline]
pub(crate) fn lengths(bytes: &[u8]) -> Result<(u32, u32, u32, &[u8])> {
    if let Some((&[a, b, c], rest)) = bytes.split_first_chunk::<3>()
        && (a | b | c) < 0x80
    {
        return Ok((u32::from(a), u32::from(b), u32::from(c), rest));
    }
    let next = |bytes| varint::get_u32(bytes).ok_or_else(bad_entry);
    let (shared, rest) = next(bytes)?;
    let (unshared, rest) = next(rest)?;
    let (value, rest) = next(rest)?;
    Ok((shared, unshared, value, rest))
}

#[cold]
fn bad_entry() -> Error {
    Error::corruption("a block entry does not parse")
}

#[cfg(test)]
mod tests;
