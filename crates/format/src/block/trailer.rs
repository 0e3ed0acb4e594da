//! The five bytes after every block: compression type and checksum.

use lithify_base::{Error, Result};

use crate::checksum::{ChecksumKind, context_modifier, raw_sum};

/// Bytes of a trailer: u8 compression type, u32 checksum.
pub const TRAILER_LEN: usize = 5;

/// How the blocks of one table are checked: the kind of sum, and the file's base context (0
/// before format_version 6). From the footer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockCheck {
    /// Kind of checksum.
    pub kind: ChecksumKind,
    /// Base context of the file; 0 = sums do not depend on the place.
    pub base: u32,
}

impl BlockCheck {
    /// The sum stored for a block that starts at `offset`.
    pub fn stored_sum(self, payload: &[u8], type_byte: u8, offset: u64) -> u32 {
        raw_sum(self.kind, payload, type_byte).wrapping_add(context_modifier(self.base, offset))
    }

    /// Appends payload and trailer to `out`, whose end lies at `offset` of the file.
    pub fn append(self, out: &mut Vec<u8>, payload: &[u8], type_byte: u8, offset: u64) {
        out.extend_from_slice(payload);
        out.extend_from_slice(&self.trailer(payload, type_byte, offset));
    }

    /// The trailer of a block that starts at `offset` of the file.
    pub fn trailer(self, payload: &[u8], type_byte: u8, offset: u64) -> [u8; TRAILER_LEN] {
        let [a, b, c, d] = self.stored_sum(payload, type_byte, offset).to_le_bytes();
        [type_byte, a, b, c, d]
    }

    /// Splits a block read with its trailer into payload and type byte, and checks the sum.
    /// `offset` is the block's start in the file.
    ///
    /// # Errors
    /// Corruption if the bytes are shorter than a trailer or the sum differs.
    pub fn verify(self, block: &[u8], offset: u64) -> Result<(&[u8], u8)> {
        let (payload, type_byte, stored) = split(block).map_err(|e| e.at(offset))?;
        if self.kind != ChecksumKind::None {
            let computed = self.stored_sum(payload, type_byte, offset);
            if computed != stored {
                return Err(mismatch(payload.len(), stored, computed).at(offset));
            }
        }
        Ok((payload, type_byte))
    }
}

/// Splits a block into payload, type byte and stored sum, without checking.
///
/// # Errors
/// Corruption if the bytes are shorter than a trailer.
pub fn split(block: &[u8]) -> Result<(&[u8], u8, u32)> {
    let (payload, trailer) = block
        .split_last_chunk::<TRAILER_LEN>()
        .ok_or_else(|| Error::corruption("block is shorter than its trailer"))?;
    let [type_byte, sum @ ..] = *trailer;
    Ok((payload, type_byte, u32::from_le_bytes(sum)))
}

#[cold]
fn mismatch(size: usize, stored: u32, computed: u32) -> Error {
    Error::corruption(format!(
        "checksum mismatch in a block of {size} bytes: \
         stored {stored:#010x}, computed {computed:#010x}"
    ))
}
