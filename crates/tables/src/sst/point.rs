//! Point searches in one block with as few cache misses as possible.
//!
//! A search through a block's tail touches the footer, two or three restart offsets, and the key
//! at each of them: all far apart, so each is a wait for memory. A block that enters the cache
//! therefore gets a **sketch** in front of its bytes, next to the reference count that a reader
//! touches anyway: where its entries end, and for up to ten restart points their offset and the
//! first eight bytes of their key after the prefix that all share.
//!
//! ```text
//!   buffer   | sketch: count, prefix, end, (offset, head)* | block: entries, restarts, footer |
//!   search   last head below the target's -> scan entries from its offset
//! ```
//!
//! Keeps: finds what [`BlockIter`](lithify_format::block::BlockIter) finds (its naive twin in the
//! tests). A head that is not below the target's is never skipped to, so ties cost time, never
//! an answer. Blocks of another form, or keys too long for the stack, have no sketch or fall back.
//! Leaves to others: checking the block; orders other than bytewise.

use std::cmp::Ordering;
use std::ops::Range;

use lithify_base::{Error, InternalKey, Result, Tag};
use lithify_format::varint;

use super::fence::head_of;

/// Bytes in front of a block: with the 16 of the shared buffer's counts, two cache lines.
pub(crate) const SKETCH: usize = 112;
/// Restart points in a sketch.
const POINTS: usize = 10;
/// Bytes of one: u64 head, u16 offset.
const POINT: usize = 10;
/// Count, a spare byte, u16 prefix length, u32 end of entries.
const FIXED: usize = 8;
/// Longest internal key that is searched for on the stack.
const KEY_MAX: usize = 256;
/// Flags of a block's footer word that a sketch cannot deal with, and its restart count.
const COUNT_BITS: u32 = (1 << 28) - 1;
const UNIFORM: u32 = 1 << 29;

const _: () = assert!(FIXED + POINTS * POINT <= SKETCH);

/// Writes the sketch of `block` (uncompressed, its keys in byte order). All zeros, which means
/// none, if the block is not of the plain form or too large.
pub(crate) fn sketch(block: &[u8], out: &mut [u8; SKETCH]) {
    out.fill(0);
    if fill(block, out).is_none() {
        out.fill(0);
    }
}

fn fill(block: &[u8], out: &mut [u8; SKETCH]) -> Option<()> {
    let (rest, word) = block.split_last_chunk::<4>()?;
    let word = u32::from_le_bytes(*word);
    let restarts = (word & COUNT_BITS) as usize;
    if word & !(COUNT_BITS | UNIFORM) != 0 || restarts == 0 {
        return None;
    }
    let end = rest.len().checked_sub(restarts.checked_mul(4)?)?;
    let user_key = |i: usize| -> Option<(u16, &[u8])> {
        let at = u32::from_le_bytes(*rest.get(end + 4 * i..)?.first_chunk::<4>()?);
        let (key, _) = whole_key(block.get(at as usize..end)?)?;
        Some((u16::try_from(at).ok()?, key.split_last_chunk::<8>()?.0))
    };
    let (_, first) = user_key(0)?;
    let (_, last) = user_key(restarts - 1)?;
    let prefix = first.iter().zip(last).take_while(|(a, b)| a == b).count();
    let points = restarts.min(POINTS);
    for p in 0..points {
        let (at, key) = user_key(p * restarts / points)?;
        let slot = out.get_mut(FIXED + p * POINT..)?.first_chunk_mut::<POINT>()?;
        slot[..8].copy_from_slice(&head_of(key.get(prefix..)?).to_le_bytes());
        slot[8..].copy_from_slice(&at.to_le_bytes());
    }
    out[2..4].copy_from_slice(&u16::try_from(prefix).ok()?.to_le_bytes());
    out[4..8].copy_from_slice(&u32::try_from(end).ok()?.to_le_bytes());
    out[0] = points as u8;
    Some(())
}

/// The key of an entry that shares nothing, and what follows it.
fn whole_key(entry: &[u8]) -> Option<(&[u8], &[u8])> {
    let (shared, rest) = varint::get_u32(entry)?;
    let (unshared, rest) = varint::get_u32(rest)?;
    let (_, rest) = varint::get_u32(rest)?;
    if shared == 0 { rest.split_at_checked(unshared as usize) } else { None }
}

/// A forward scan over the entries of a block, without allocation.
pub(crate) struct PointScan<'a> {
    entries: &'a [u8],
    next: usize,
    key: [u8; KEY_MAX],
    key_len: usize,
    value: Range<usize>,
}

/// Where a scan stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stands {
    /// On an entry.
    Entry,
    /// Behind the last one.
    End,
    /// Before a key too long for it: search the block in the plain way.
    TooLong,
}

impl<'a> PointScan<'a> {
    /// A scan of `block` from the last sketched restart point below `user`. `None` without a
    /// sketch.
    pub(crate) fn new(
        sketch: &[u8; SKETCH],
        block: &'a [u8],
        user: &[u8],
    ) -> Option<PointScan<'a>> {
        let points = usize::from(sketch[0]);
        if points == 0 {
            return None;
        }
        let prefix = usize::from(u16::from_le_bytes([sketch[2], sketch[3]]));
        let end = u32::from_le_bytes([sketch[4], sketch[5], sketch[6], sketch[7]]) as usize;
        let entries = block.get(..end)?;
        let shared = whole_key(entries)?.0.get(..prefix)?;
        let below = match user.get(..prefix) {
            Some(p) if p == shared => {
                let head = head_of(&user[prefix..]);
                (0..points).take_while(|&p| point(sketch, p).0 < head).count()
            }
            _ if user < shared => 0,
            _ => points,
        };
        let next = usize::from(point(sketch, below.saturating_sub(1)).1);
        Some(PointScan { entries, next, key: [0; KEY_MAX], key_len: 0, value: 0..0 })
    }

    /// Moves to the first entry at or after `target`, in byte order.
    #[inline]
    pub(crate) fn seek(&mut self, target: InternalKey<'_>) -> Result<Stands> {
        loop {
            let stands = self.next()?;
            if stands != Stands::Entry {
                return Ok(stands);
            }
            let key = self.key();
            match key.user.cmp(target.user) {
                Ordering::Less => {}
                Ordering::Equal if key.tag > target.tag => {}
                _ => return Ok(Stands::Entry),
            }
        }
    }

    /// Moves to the next entry.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Stands> {
        let rest = &self.entries[self.next..];
        if rest.is_empty() {
            return Ok(Stands::End);
        }
        let Some((shared, unshared, value, len)) = head(rest) else { return Err(self.bad()) };
        let end = shared + unshared;
        if end > KEY_MAX {
            return Ok(Stands::TooLong);
        }
        let body = &rest[len..];
        if shared > self.key_len || end < 8 || unshared + value > body.len() {
            return Err(self.bad());
        }
        self.key[shared..end].copy_from_slice(&body[..unshared]);
        self.key_len = end;
        let at = self.next + len + unshared;
        self.value = at..at + value;
        self.next = at + value;
        Ok(Stands::Entry)
    }

    /// The entry's key.
    #[inline]
    pub(crate) fn key(&self) -> InternalKey<'_> {
        let (user, tag) =
            self.key[..self.key_len].split_last_chunk::<8>().unwrap_or((&[], &[0; 8]));
        InternalKey { user, tag: Tag(u64::from_le_bytes(*tag)) }
    }
    /// Where its value lies in the block.
    pub(crate) fn value(&self) -> Range<usize> {
        self.value.clone()
    }

    #[cold]
    fn bad(&self) -> Error {
        Error::corruption(format!("bad entry in a block, at its byte {}", self.next))
    }
}

/// Head and offset of a sketched restart point.
#[inline]
fn point(sketch: &[u8; SKETCH], p: usize) -> (u64, u16) {
    let slot = sketch[FIXED + p * POINT..].first_chunk::<POINT>().unwrap_or(&[0; POINT]);
    let [a, b, c, d, e, f, g, h, lo, hi] = *slot;
    (u64::from_le_bytes([a, b, c, d, e, f, g, h]), u16::from_le_bytes([lo, hi]))
}

/// The three lengths before a key tail, and their own length.
#[inline]
fn head(entry: &[u8]) -> Option<(usize, usize, usize, usize)> {
    if let [shared, unshared, value, ..] = *entry
        && (shared | unshared | value) < 0x80
    {
        return Some((usize::from(shared), usize::from(unshared), usize::from(value), 3));
    }
    let (shared, rest) = varint::get_u32(entry)?;
    let (unshared, rest) = varint::get_u32(rest)?;
    let (value, rest) = varint::get_u32(rest)?;
    Some((shared as usize, unshared as usize, value as usize, entry.len() - rest.len()))
}

#[cfg(test)]
mod tests;
