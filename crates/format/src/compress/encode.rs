//! Writing compressed blocks.

use lithify_base::{Error, Result};
use lz4_flex::block::{CompressTable, compress_into_with_table, get_maximum_output_size};

use super::Codec;
use super::wall::walled;
use super::zip::{Deflate, bzip};
use crate::limits::plain_max;
use crate::varint;

/// Compresses blocks with one codec; owns the codec's tables and reuses them.
pub struct Compressor {
    codec: Codec,
    level: i32,
    dictionary: Box<[u8]>,
    /// Absent after anything but a complete end, until the next block: what is left inside then, the
    /// libraries' own resets do not all clear away.
    engine: Option<Engine>,
}

enum Engine {
    None,
    Snappy(Box<snap::raw::Encoder>),
    Lz4(Box<CompressTable>),
    Zlib(Box<Deflate>),
    Bzip2,
    #[cfg(feature = "zstd")]
    Zstd(Box<zstd::bulk::Compressor<'static>>),
}

impl Compressor {
    /// A compressor for `codec` at `level`, which only ZSTD (RocksDB's default is 3) and Zlib (1 to 9;
    /// others are 6, RocksDB's default) heed.
    ///
    /// # Errors
    /// `Unsupported` for a codec that this build does not write, `InvalidArgument` for one that can't
    /// be set up.
    pub fn new(codec: Codec, level: i32) -> Result<Compressor> {
        Compressor::with_dictionary(codec, level, &[])
    }

    /// The same with a dictionary, which only ZSTD heeds; readers must be given it, too.
    ///
    /// # Errors
    /// As [`new`](Compressor::new).
    pub fn with_dictionary(codec: Codec, level: i32, dictionary: &[u8]) -> Result<Compressor> {
        let engine = Some(Engine::new(codec, level, dictionary)?);
        Ok(Compressor { codec, level, dictionary: dictionary.into(), engine })
    }

    /// The codec.
    pub fn codec(&self) -> Codec {
        self.codec
    }

    /// Appends the compressed form of `payload` to `out` and returns the type byte to store, if
    /// that saves at least an eighth; else appends `payload` itself and returns type 0.
    pub fn append(&mut self, payload: &[u8], out: &mut Vec<u8>) -> u8 {
        let start = out.len();
        if self.compress(payload, out) {
            return self.codec as u8;
        }
        out.truncate(start);
        out.extend_from_slice(payload);
        Codec::None as u8
    }

    /// Appends the compressed form of `payload` to `out`; false, and unspecified bytes appended,
    /// if it saves less than 12.5 %, or more than readers let a block grow ([`plain_max`]), there is no
    /// codec, or it fails or panics: every reader takes a block as it is.
    pub fn compress(&mut self, payload: &[u8], out: &mut Vec<u8>) -> bool {
        let start = out.len();
        let engine = match self.engine.take() {
            Some(engine) => Ok(engine),
            None => Engine::new(self.codec, self.level, &self.dictionary),
        };
        let Ok(mut engine) = engine else { return false };
        if walled(|| engine.compress(payload, out)) != Ok(true) {
            return false;
        }
        self.engine = Some(engine);
        let stored = out.len() - start;
        // More than that readers refuse, before they make room for it.
        pays(payload.len(), stored) && payload.len() <= plain_max(stored)
    }
}

impl Engine {
    fn new(codec: Codec, level: i32, dictionary: &[u8]) -> Result<Engine> {
        let made = || match codec {
            Codec::None => Ok(Engine::None),
            Codec::Snappy => Ok(Engine::Snappy(Box::new(snap::raw::Encoder::new()))),
            Codec::Lz4 => Ok(Engine::Lz4(Box::new(CompressTable::small()))),
            Codec::Zstd => zstd_engine(level, dictionary),
            Codec::Zlib => Ok(Engine::Zlib(Box::new(Deflate::new(level)))),
            Codec::Bzip2 => Ok(Engine::Bzip2),
            Codec::Lz4hc => Err(Error::unsupported(format!(
                "blocks are not written with {}; choose another codec, or none",
                codec.name()
            ))),
        };
        walled(made).unwrap_or_else(|panic| {
            let what = format!("{} at level {level} panicked ({panic})", codec.name());
            Err(Error::invalid(format!("{what}; choose another codec or level, or none")))
        })
    }

    /// Appends the compressed form of `payload` to `out`; false, and unspecified bytes appended, if
    /// the codec did not come to its end.
    fn compress(&mut self, payload: &[u8], out: &mut Vec<u8>) -> bool {
        // Blocks are below 4 GiB in every format; larger ones are stored as they are.
        let Ok(size) = u32::try_from(payload.len()) else { return false };
        match self {
            Engine::None => false,
            Engine::Snappy(encoder) => {
                let max = snap::raw::max_compress_len(payload.len());
                into_tail(out, max, |tail| encoder.compress(payload, tail).ok())
            }
            Engine::Lz4(table) => {
                varint::put_u32(out, size);
                let max = get_maximum_output_size(payload.len());
                // The small table (16-bit positions) is exchanged by the codec for a large one
                // when a block needs it, with other bytes: choose by this block alone (R9).
                if payload.len() < usize::from(u16::MAX)
                    && matches!(**table, CompressTable::Large(_))
                {
                    **table = CompressTable::small();
                }
                into_tail(out, max, |tail| compress_into_with_table(payload, tail, table).ok())
            }
            // What does not get smaller is not wanted, so there is no more room than that.
            Engine::Zlib(deflate) => {
                varint::put_u32(out, size);
                into_tail(out, payload.len(), |tail| deflate.compress(payload, tail))
            }
            Engine::Bzip2 => {
                varint::put_u32(out, size);
                into_tail(out, payload.len(), |tail| bzip(payload, tail))
            }
            #[cfg(feature = "zstd")]
            Engine::Zstd(encoder) => {
                varint::put_u32(out, size);
                let max = zstd::zstd_safe::compress_bound(payload.len());
                into_tail(out, max, |tail| encoder.compress_to_buffer(payload, tail).ok())
            }
        }
    }
}

impl std::fmt::Debug for Compressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Compressor").field("codec", &self.codec).finish_non_exhaustive()
    }
}

/// True if storing `compressed` bytes for `payload` bytes saves at least one eighth.
fn pays(payload: usize, compressed: usize) -> bool {
    compressed <= payload - payload.div_ceil(8)
}

/// Lets `encode` write into `max` fresh bytes at the end of `out` and keeps what it used.
fn into_tail(
    out: &mut Vec<u8>,
    max: usize,
    encode: impl FnOnce(&mut [u8]) -> Option<usize>,
) -> bool {
    let start = out.len();
    out.resize(start + max, 0);
    let used = out.get_mut(start..).and_then(encode);
    out.truncate(start + used.unwrap_or(0));
    used.is_some()
}

#[cfg(feature = "zstd")]
fn zstd_engine(level: i32, dictionary: &[u8]) -> Result<Engine> {
    let encoder = match dictionary {
        [] => zstd::bulk::Compressor::new(level),
        dictionary => zstd::bulk::Compressor::with_dictionary(level, dictionary),
    };
    match encoder {
        Ok(encoder) => Ok(Engine::Zstd(Box::new(encoder))),
        Err(e) => Err(Error::invalid(format!("ZSTD level {level}: {e}"))),
    }
}

#[cfg(not(feature = "zstd"))]
fn zstd_engine(_level: i32, _dictionary: &[u8]) -> Result<Engine> {
    Err(zstd_is_off())
}

#[cfg(not(feature = "zstd"))]
#[cold]
pub(super) fn zstd_is_off() -> Error {
    Error::unsupported("ZSTD blocks need a build with the cargo feature `zstd`")
}
