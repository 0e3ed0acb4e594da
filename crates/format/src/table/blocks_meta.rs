//! `lithify.blocks`: how many entries and key bytes each data block holds, so that a parallel
//! decoder knows every output position without a counting pass (R3).
//!
//! A table without it (a foreign file) is read all the same: the counts are then recomputed.

use lithify_base::{Error, Result};

use crate::limits::MAX_RESERVE;
use crate::varint::{self, Reader};

const VERSION: u64 = 1;

/// Counts of one data block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct BlockCounts {
    /// Entries.
    pub entries: u64,
    /// Sum of the lengths of its internal keys, in bytes.
    pub raw_key_bytes: u64,
}

/// Encodes the counts of all data blocks, of which there are `count`, in file order.
pub fn encode(count: usize, blocks: impl Iterator<Item = BlockCounts>) -> Vec<u8> {
    let mut out = Vec::with_capacity(2 + 4 * count);
    varint::put_u64(&mut out, VERSION);
    varint::put_u64(&mut out, count as u64);
    for block in blocks {
        varint::put_u64(&mut out, block.entries);
        varint::put_u64(&mut out, block.raw_key_bytes);
    }
    out
}

/// Decodes the counts and checks them against the table's properties: `data_blocks` blocks with
/// `points` entries in all.
///
/// # Errors
/// Corruption if the bytes do not decode or disagree with the properties; the caller then
/// ignores the block, recomputes and reports.
pub fn decode(block: &[u8], data_blocks: u64, points: u64) -> Result<Vec<BlockCounts>> {
    let mut from = Reader::new(block);
    let version = from.var64()?;
    if version != VERSION {
        return Err(Error::unsupported(format!("lithify.blocks has version {version}")));
    }
    let count = from.var64()?;
    if count != data_blocks {
        return Err(disagree("blocks", count, data_blocks));
    }
    let mut counts = Vec::with_capacity((count as usize).min(MAX_RESERVE / 16));
    let mut entries = 0u64;
    for _ in 0..count {
        let block = BlockCounts { entries: from.var64()?, raw_key_bytes: from.var64()? };
        entries = entries.saturating_add(block.entries);
        counts.push(block);
    }
    if entries != points {
        return Err(disagree("entries", entries, points));
    }
    if !from.is_empty() {
        return Err(Error::corruption("lithify.blocks goes on behind its last count"));
    }
    Ok(counts)
}

#[cold]
fn disagree(what: &str, here: u64, properties: u64) -> Error {
    Error::corruption(format!("lithify.blocks counts {here} {what}, the properties {properties}"))
}
