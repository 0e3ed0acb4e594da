//! The last bytes of a table: which format it is, how its blocks are checked, where to start.
//!
//! Keeps: what [`Footer::read`] returns lies inside the file; unknown versions are refused by
//! number. Written: format_version 5 and 6; read: 2 to 7, and LevelDB's footer.
//!
//! ```text
//! up to 5: u8 checksum kind, 40 bytes (meta-index handle, index handle, zeros),
//!          u32 version, u64 magic
//! from 6:  u8 checksum kind, extended magic, u32 footer sum, u32 base context,
//!          u32 meta-index size, 24 zeros, u32 version, u64 magic
//! LevelDB: 40 bytes (meta-index handle, index handle, zeros), u64 magic
//! ```

use lithify_base::{Error, Result};

use super::handle::BlockHandle;
use crate::block::{BlockCheck, TRAILER_LEN};
use crate::checksum::{ChecksumKind, context_modifier, whole_sum};
use crate::varint::Reader;

/// Bytes of a RocksDB footer, and the most bytes of any footer.
pub const FOOTER_LEN: usize = 53;
/// Bytes of a LevelDB footer, and the fewest bytes of any footer.
pub const LEVELDB_FOOTER_LEN: usize = 48;
/// The version that stands for LevelDB's format, which does not number its own.
pub const LEVELDB_VERSION: u32 = 0;
/// The version written unless the recipe says otherwise; read by RocksDB 8.6 and later.
pub const DEFAULT_VERSION: u32 = 6;

const MAGIC: u64 = 0x88e2_41b7_85f4_cff7;
const LEVELDB_MAGIC: u64 = 0xdb47_7524_8b80_fb57;
const EXTENDED_MAGIC: [u8; 4] = [0x3e, 0x00, 0x7a, 0x00];
/// Fewest bytes of a block: one restart point and the footer word.
const MIN_BLOCK: u64 = 8;
/// Where the footer's own sum lies in it.
const SUM_AT: usize = 5;

/// A decoded footer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footer {
    /// RocksDB's format_version, or [`LEVELDB_VERSION`].
    pub version: u32,
    /// How every block of the file is checked.
    pub check: BlockCheck,
    /// The meta-index block.
    pub metaindex: BlockHandle,
    /// The index block; from version 6 on `None`: the meta-index names it.
    pub index: Option<BlockHandle>,
}

impl Footer {
    /// Reads the footer from `tail`, the last bytes of a file of `file_size` bytes: at least 53 of
    /// them, or the whole file if it is shorter.
    ///
    /// # Errors
    /// Corruption if this is no table, its sum differs or its handles leave the file;
    /// `Unsupported` for a version this one does not read.
    pub fn read(tail: &[u8], file_size: u64) -> Result<Footer> {
        let footer = Footer::decode(tail, file_size);
        let footer = footer.map_err(|e| e.at(file_size.saturating_sub(FOOTER_LEN as u64)))?;
        let end = file_size - footer.len() as u64;
        // A version damaged from 6 to 4 would read the extended magic as handles of empty blocks.
        if footer.metaindex.size < MIN_BLOCK {
            return Err(Error::corruption("footer names a meta-index too small to be one").at(end));
        }
        for handle in [Some(footer.metaindex), footer.index].into_iter().flatten() {
            if handle.end() > end {
                return Err(Error::corruption("footer names a block outside the file").at(end));
            }
        }
        Ok(footer)
    }

    /// Bytes this footer takes in its file.
    pub fn len(&self) -> usize {
        if self.version == LEVELDB_VERSION { LEVELDB_FOOTER_LEN } else { FOOTER_LEN }
    }

    /// A footer is never empty.
    pub fn is_empty(&self) -> bool {
        false
    }

    fn decode(tail: &[u8], file_size: u64) -> Result<Footer> {
        let short = || Error::corruption("file is too short to be a table");
        let (_, magic) = tail.split_last_chunk::<8>().ok_or_else(short)?;
        match u64::from_le_bytes(*magic) {
            LEVELDB_MAGIC => {
                let (_, footer) =
                    tail.split_last_chunk::<LEVELDB_FOOTER_LEN>().ok_or_else(short)?;
                let mut from = Reader::new(footer);
                let metaindex = BlockHandle::decode(&mut from)?;
                let index = Some(BlockHandle::decode(&mut from)?);
                let check = BlockCheck { kind: ChecksumKind::Crc32c, base: 0 };
                Ok(Footer { version: LEVELDB_VERSION, check, metaindex, index })
            }
            MAGIC => {
                let (_, footer) = tail.split_last_chunk::<FOOTER_LEN>().ok_or_else(short)?;
                decode_rocksdb(footer, file_size)
            }
            other => Err(Error::corruption(format!(
                "not a block-based table: its last 8 bytes are {other:#018x}"
            ))),
        }
    }

    /// The encoded footer, to be written at `offset`.
    ///
    /// # Panics
    /// If the version is not 5 or 6, if 6 lacks a base context or its meta-index does not end
    /// right before the footer, or if 5 has a base context or no index handle.
    pub fn encode(&self, offset: u64) -> [u8; FOOTER_LEN] {
        let mut out = Vec::with_capacity(FOOTER_LEN);
        out.push(self.check.kind as u8);
        match self.version {
            5 => {
                assert_eq!(self.check.base, 0, "version 5 has no base context");
                self.metaindex.encode_into(&mut out);
                self.index.expect("version 5 names the index in its footer").encode_into(&mut out);
            }
            6 => {
                assert_ne!(self.check.base, 0, "version 6 has a base context");
                assert_eq!(self.metaindex.end(), offset, "the meta-index ends at the footer");
                let size = u32::try_from(self.metaindex.size).expect("meta-index below 4 GiB");
                out.extend_from_slice(&EXTENDED_MAGIC);
                out.extend_from_slice(&[0; 4]);
                out.extend_from_slice(&self.check.base.to_le_bytes());
                out.extend_from_slice(&size.to_le_bytes());
            }
            other => panic!("format_version {other} is not written"),
        }
        out.resize(FOOTER_LEN - 12, 0);
        out.extend_from_slice(&self.version.to_le_bytes());
        out.extend_from_slice(&MAGIC.to_le_bytes());
        let mut footer = <[u8; FOOTER_LEN]>::try_from(out).expect("the parts add up");
        if self.version >= 6 {
            let sum = footer_sum(&footer, self.check, offset);
            footer[SUM_AT..SUM_AT + 4].copy_from_slice(&sum.to_le_bytes());
        }
        footer
    }
}

/// Sum of the footer with its own field zeroed, for its place in the file.
fn footer_sum(footer: &[u8; FOOTER_LEN], check: BlockCheck, offset: u64) -> u32 {
    let mut zeroed = *footer;
    zeroed[SUM_AT..SUM_AT + 4].fill(0);
    whole_sum(check.kind, &zeroed).wrapping_add(context_modifier(check.base, offset))
}

fn decode_rocksdb(footer: &[u8; FOOTER_LEN], file_size: u64) -> Result<Footer> {
    let version = u32::from_le_bytes([footer[41], footer[42], footer[43], footer[44]]);
    if !(2..=7).contains(&version) {
        return Err(Error::unsupported(format!(
            "table has format_version {version}; versions 2 to 7 are read"
        )));
    }
    let mut from = Reader::new(footer);
    let kind = from.u8()?;
    let kind = ChecksumKind::from_u8(kind)
        .ok_or_else(|| Error::unsupported(format!("table has unknown checksum kind {kind}")))?;
    if version < 6 {
        let metaindex = BlockHandle::decode(&mut from)?;
        let index = Some(BlockHandle::decode(&mut from)?);
        return Ok(Footer { version, check: BlockCheck { kind, base: 0 }, metaindex, index });
    }
    if from.bytes(4)? != EXTENDED_MAGIC {
        return Err(Error::corruption("footer lacks its extended magic number"));
    }
    let stored = from.u32()?;
    let check = BlockCheck { kind, base: from.u32()? };
    let size = u64::from(from.u32()?);
    from.bytes(16)?;
    if from.u64()? != 0 {
        return Err(Error::unsupported("table uses a footer field of a later format"));
    }
    let offset = file_size - FOOTER_LEN as u64;
    if check.base == 0 {
        return Err(Error::corruption("footer has no base context"));
    }
    // Without checksums, too: else one flipped bit of the kind would switch all checks off.
    if footer_sum(footer, check, offset) != stored {
        return Err(Error::corruption("footer checksum mismatch"));
    }
    let start = offset
        .checked_sub(size + TRAILER_LEN as u64)
        .ok_or_else(|| Error::corruption("meta-index is larger than the file"))?;
    Ok(Footer { version, check, metaindex: BlockHandle::new(start, size), index: None })
}

#[cfg(test)]
mod tests;
