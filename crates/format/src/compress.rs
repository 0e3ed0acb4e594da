//! Block compression: which codecs exist, how a stored block names its size, and the rule that
//! keeps a compressed block only when it pays.
//!
//! Keeps: a size is compared with the caller's cap before anything is allocated for it; a
//! decoder either fills exactly the size that was announced or fails. A codec's panic stays inside: a
//! block that can't be compressed because of one is stored as it is, one that can't be
//! decompressed is corrupt.
//! Blocks of one table may share a dictionary, which lies in the table: Zstandard is given one when
//! writing, all codecs that have them when reading.
//! Leaves to others: the trailer's type byte on disk and its checksum ([`crate::block`]).
//!
//! Since format_version 2 RocksDB writes the decompressed size as a varint32 before the codec's
//! own bytes, except for Snappy, whose stream starts with it anyway. LevelDB writes no size.

mod decode;
mod dictionary;
mod encode;
mod wall;
mod zip;

pub use decode::{Decoder, decompress};
pub use dictionary::train;
pub use encode::Compressor;

/// A compression codec. The numbers are RocksDB's type bytes, on disk and frozen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum Codec {
    /// Stored as is.
    #[default]
    None = 0,
    /// Snappy.
    Snappy = 1,
    /// Zlib: raw deflate with a window of 16 KiB.
    Zlib = 2,
    /// Bzip2, in pieces of 100 KB.
    Bzip2 = 3,
    /// LZ4 block format.
    Lz4 = 4,
    /// LZ4 block format from the slower encoder; reads as [`Codec::Lz4`].
    Lz4hc = 5,
    /// Zstandard; needs the cargo feature `zstd`.
    Zstd = 7,
}

impl Codec {
    /// The codec of RocksDB's type byte.
    pub fn from_u8(b: u8) -> Option<Codec> {
        Some(match b {
            0 => Codec::None,
            1 => Codec::Snappy,
            2 => Codec::Zlib,
            3 => Codec::Bzip2,
            4 => Codec::Lz4,
            5 => Codec::Lz4hc,
            7 => Codec::Zstd,
            _ => return None,
        })
    }
    /// The name in the table property `rocksdb.compression`.
    pub fn name(self) -> &'static str {
        match self {
            Codec::None => "NoCompression",
            Codec::Snappy => "Snappy",
            Codec::Zlib => "Zlib",
            Codec::Bzip2 => "BZip2",
            Codec::Lz4 => "LZ4",
            Codec::Lz4hc => "LZ4HC",
            Codec::Zstd => "ZSTD",
        }
    }
}

#[cfg(test)]
mod tests;
