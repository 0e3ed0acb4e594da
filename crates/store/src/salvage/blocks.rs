//! Finding data blocks without an index: by their sums.
//!
//! Data blocks lie one after the other from the start of a table (R4). Where one begins is known,
//! so its end is where the five bytes of a trailer fit what lies before them. Few lengths have to
//! be tried in earnest: the type byte must be a known one, and an uncompressed block must end in
//! a possible list of restart points.
//!
//! Keeps: a block counts only if its sum matches at its place and all of it reads as point entries
//! in ascending order, which no other part of a table does.
//! Leaves to others: blocks behind the first one that can't be found.

use lithify_base::{Comparator, InternalKey, Kind};
use lithify_format::block::{BlockCheck, BlockIter, TRAILER_LEN};
use lithify_format::compress::Decoder;
use lithify_format::limits::plain_max;
use lithify_tables::sst::BlockAt;

/// Longest block looked for, in bytes: the largest block size there is, and a large value.
const LONGEST: usize = 2 << 20;
/// Bytes that are summed up in the search for the ends of a table's blocks, which takes some seconds, and so many more for
/// each byte of it. Of random bytes one in 50 could be a type byte: for a block of 64 KiB that is 650 for each byte, and
/// 43 GiB for the longest.
const SUMMED_MAX: u64 = 24 << 30;
const SUMMED_FOR_BYTE: u64 = 1024;

/// The data blocks at the start of `bytes`, a whole table.
pub(super) fn find(
    bytes: &[u8],
    check: BlockCheck,
    decoder: &Decoder,
    order: &dyn Comparator,
) -> Vec<BlockAt> {
    let mut found = Vec::new();
    let mut last = Vec::new();
    let mut at = 0;
    let mut left = SUMMED_MAX.saturating_add(SUMMED_FOR_BYTE.saturating_mul(bytes.len() as u64));
    while let Some((size, plain)) = block(bytes, at, check, decoder, &mut left) {
        if !ascends(&plain, &mut last, order) {
            break;
        }
        found.push(BlockAt { offset: at as u64, size: size as u32 });
        at += size + TRAILER_LEN;
    }
    found
}

/// Length and content of the block that begins at `at`; `None` if there is none, or `left` bytes were summed up.
fn block(
    bytes: &[u8],
    at: usize,
    check: BlockCheck,
    decoder: &Decoder,
    left: &mut u64,
) -> Option<(usize, Vec<u8>)> {
    let rest = bytes.get(at..)?;
    let longest = rest.len().checked_sub(TRAILER_LEN)?.min(LONGEST);
    (8..=longest).find_map(|size| {
        let stored = rest.get(..size + TRAILER_LEN)?;
        let (payload, trailer) = stored.split_at(size);
        let possible = match trailer.first()? {
            0 => has_restarts(payload),
            1 | 2 | 4 | 5 | 7 => true,
            _ => false,
        };
        if !possible || *left == 0 {
            return None;
        }
        *left = left.saturating_sub(size as u64);
        let (payload, type_byte) = check.verify(stored, at as u64).ok()?;
        Some((size, decoder.decode(type_byte, payload, plain_max(payload.len())).ok()?))
    })
}

/// Whether `block` could end in its restart points: their number, and the first of them is 0.
fn has_restarts(block: &[u8]) -> bool {
    let word = |at: usize| block.get(at..)?.first_chunk::<4>().map(|b| u32::from_le_bytes(*b));
    let Some(count) = block.len().checked_sub(4).and_then(word) else { return false };
    let list = 4 * (u64::from(count & 0x0fff_ffff) + 1);
    let first = (block.len() as u64).checked_sub(list).and_then(|at| word(at as usize));
    count > 0 && first == Some(0)
}

/// Whether all of `block` reads as point entries above `last`, which becomes its last key.
fn ascends(block: &[u8], last: &mut Vec<u8>, order: &dyn Comparator) -> bool {
    let Ok(mut entries) = BlockIter::new(block) else { return false };
    let mut more = entries.seek_to_first();
    let mut any = false;
    while let Ok(true) = more {
        let key = entries.internal_key();
        let point = key.tag.kind().is_some_and(|kind| kind != Kind::RangeDelete);
        let above = InternalKey::decode(last).is_none_or(|last| last.cmp(key, order).is_lt());
        if !point || !above {
            return false;
        }
        last.clear();
        key.encode_into(last);
        any = true;
        more = entries.next();
    }
    any && more.is_ok()
}
