//! Block checksums as RocksDB and LevelDB compute them, and the context modifier that ties a
//! checksum to its place.
//!
//! Keeps: [`raw_sum`] depends only on the payload and its type byte (R5), so an engine can
//! compute it without knowing the file; [`context_modifier`] adds the place afterwards.
//! Leaves to others: the hash of filter keys ([`crate::xxph3`], a different function).
//!
//! Worked example (format_version 6): a block at offset 4096 of a file with base context `c` is
//! stored with `raw_sum(Xxh3, payload, type) + (c ^ 4096)`, mod 2^32. The same bytes copied to
//! another offset or another file fail their check.

use std::hash::Hasher as _;

use crc_fast::{CrcAlgorithm, Digest};
use lithify_base::zoo::{self, Bug};
use twox_hash::{XxHash3_64, XxHash32, XxHash64};

/// How the blocks of a table are checked. The numbers are on disk and frozen (RocksDB's).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ChecksumKind {
    /// Not checked at all; the stored sum is ignored.
    None = 0,
    /// Masked CRC32c over payload and type byte.
    Crc32c = 1,
    /// XXH32 over payload and type byte.
    XxHash32 = 2,
    /// Low half of XXH64 over payload and type byte.
    XxHash64 = 3,
    /// Low half of XXH3-64 over the payload, with the type byte mixed in. What we write.
    Xxh3 = 4,
}

impl ChecksumKind {
    /// The kind of an on-disk number.
    pub fn from_u8(b: u8) -> Option<ChecksumKind> {
        Some(match b {
            0 => ChecksumKind::None,
            1 => ChecksumKind::Crc32c,
            2 => ChecksumKind::XxHash32,
            3 => ChecksumKind::XxHash64,
            4 => ChecksumKind::Xxh3,
            _ => return None,
        })
    }
}

/// RocksDB's multiplier for the byte that is mixed into an XXH3 sum.
const LAST_BYTE_PRIME: u32 = 0x6b90_83d9;
/// LevelDB's offset of a masked CRC.
const MASK_DELTA: u32 = 0xa282_ead8;

/// CRC32c (Castagnoli) of `bytes`.
#[inline]
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(bytes)
}

/// CRC32c of the bytes summed by `crc` followed by `bytes`.
#[inline]
pub fn crc32c_extend(crc: u32, bytes: &[u8]) -> u32 {
    let mut digest = Digest::new_with_init_state(CrcAlgorithm::Crc32Iscsi, u64::from(!crc));
    digest.update(bytes);
    digest.finalize() as u32
}

/// Masks a CRC for storage, so that a CRC over bytes that hold CRCs stays sound.
#[inline]
pub fn mask(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(MASK_DELTA)
}

/// Inverse of [`mask`].
#[inline]
pub fn unmask(masked: u32) -> u32 {
    masked.wrapping_sub(MASK_DELTA).rotate_left(15)
}

/// The checksum of a block's payload and type byte, before any context modifier.
pub fn raw_sum(kind: ChecksumKind, payload: &[u8], type_byte: u8) -> u32 {
    match kind {
        ChecksumKind::None => 0,
        ChecksumKind::Crc32c => mask(crc32c_extend(crc32c(payload), &[type_byte])),
        ChecksumKind::XxHash32 => {
            let mut h = XxHash32::with_seed(0);
            h.write(payload);
            h.write(&[type_byte]);
            h.finish_32()
        }
        ChecksumKind::XxHash64 => {
            let mut h = XxHash64::with_seed(0);
            h.write(payload);
            h.write(&[type_byte]);
            h.finish() as u32
        }
        ChecksumKind::Xxh3 => {
            XxHash3_64::oneshot(payload) as u32 ^ u32::from(type_byte).wrapping_mul(LAST_BYTE_PRIME)
        }
    }
}

/// The checksum of bytes without a separate type byte (the footer): their last byte takes its
/// part. Empty input has the sum 0 under XXH3.
pub fn whole_sum(kind: ChecksumKind, bytes: &[u8]) -> u32 {
    match bytes.split_last() {
        Some((&last, rest)) => raw_sum(kind, rest, last),
        None if kind == ChecksumKind::Xxh3 => 0,
        None => match kind {
            ChecksumKind::Crc32c => mask(crc32c(&[])),
            ChecksumKind::XxHash32 => XxHash32::oneshot(0, &[]),
            ChecksumKind::XxHash64 => XxHash64::oneshot(0, &[]) as u32,
            ChecksumKind::None | ChecksumKind::Xxh3 => 0,
        },
    }
}

/// What format_version >= 6 adds (mod 2^32) to the raw sum of a block that starts at `offset`
/// in a file whose base context is `base`. A base of 0 means "no context": the result is 0.
#[inline]
pub fn context_modifier(base: u32, offset: u64) -> u32 {
    let offset = if zoo::on(Bug::SumsUnplaced) { 0 } else { offset };
    if base == 0 { 0 } else { base ^ (offset as u32).wrapping_add((offset >> 32) as u32) }
}

/// The base context of table `file_number` in database `db_id`: never 0, and the same for every
/// engine that writes the table (R9).
pub fn base_context(db_id: &str, file_number: u64) -> u32 {
    let mut bytes = Vec::with_capacity(db_id.len() + 8);
    bytes.extend_from_slice(db_id.as_bytes());
    bytes.extend_from_slice(&file_number.to_le_bytes());
    (XxHash3_64::oneshot(&bytes) as u32).max(1)
}

#[cfg(test)]
mod tests;
