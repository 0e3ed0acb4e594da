//! Where a block lies in its file.

use lithify_base::Result;

use crate::block::TRAILER_LEN;
use crate::varint::{self, Reader};

/// Position of a block: its payload's start and length. The trailer after it is not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct BlockHandle {
    /// Offset of the payload in the file, in bytes.
    pub offset: u64,
    /// Length of the payload as stored (perhaps compressed), in bytes.
    pub size: u64,
}

impl BlockHandle {
    /// Longest encoding, in bytes.
    pub const MAX_LEN: usize = 2 * varint::MAX_LEN_64;

    /// A block of `size` payload bytes at `offset`.
    pub fn new(offset: u64, size: u64) -> BlockHandle {
        BlockHandle { offset, size }
    }
    /// Offset just past the block's trailer, where an adjacent block starts (R4). Saturates on
    /// hostile values.
    pub fn end(self) -> u64 {
        self.offset.saturating_add(self.size).saturating_add(TRAILER_LEN as u64)
    }
    /// Appends two varints.
    pub fn encode_into(self, out: &mut Vec<u8>) {
        varint::put_u64(out, self.offset);
        varint::put_u64(out, self.size);
    }
    /// Reads two varints.
    ///
    /// # Errors
    /// Corruption if they are cut short.
    pub fn decode(from: &mut Reader<'_>) -> Result<BlockHandle> {
        Ok(BlockHandle { offset: from.var64()?, size: from.var64()? })
    }
    /// Reads a handle that takes up all of `bytes`, as in a meta-index.
    ///
    /// # Errors
    /// Corruption if the varints are cut short.
    pub fn from_bytes(bytes: &[u8]) -> Result<BlockHandle> {
        BlockHandle::decode(&mut Reader::new(bytes))
    }
}
