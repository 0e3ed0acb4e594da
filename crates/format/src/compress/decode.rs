//! Reading compressed blocks.

use lithify_base::{Error, ErrorKind, Result, memory};

use super::dictionary::Dictionary;
use super::wall::walled;
use super::{Codec, zip};
use crate::limits::LZ4_RATIO;
use crate::varint;

/// How the type bytes of one table read, and the dictionary its blocks were compressed with.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    leveldb: bool,
    dictionary: Dictionary,
}

impl Decoder {
    /// For RocksDB tables of format_version >= 2, without a dictionary.
    pub fn rocksdb() -> Decoder {
        Decoder::default()
    }
    /// For LevelDB tables: no size prefixes, and type byte 2 is Zstandard.
    pub fn leveldb() -> Decoder {
        Decoder { leveldb: true, dictionary: Dictionary::default() }
    }
    /// Sets the table's dictionary (the meta block `rocksdb.compression_dict`).
    pub fn with_dictionary(mut self, dictionary: &[u8]) -> Decoder {
        self.dictionary = Dictionary::new(dictionary);
        self
    }
    /// Resident bytes: those of the dictionary in all its forms.
    pub fn memory(&self) -> usize {
        self.dictionary.memory()
    }
    /// Bytes of the dictionary as it is stored; 0 if there is none.
    pub fn dictionary_bytes(&self) -> usize {
        self.dictionary.bytes().len()
    }

    /// Decompresses `payload`, whose trailer has `type_byte`, to at most `max` bytes. For type
    /// byte 0 this is a copy; callers that want none keep the block as read.
    ///
    /// # Errors
    /// Corruption if the bytes do not decode, also if the codec panics over them; `LimitExceeded` if
    /// they announce more than `max`; `Unsupported` for a codec that this build does not read.
    pub fn decode(&self, type_byte: u8, payload: &[u8], max: usize) -> Result<Vec<u8>> {
        let decoded = walled(|| self.decode_inside(type_byte, payload, max));
        decoded.unwrap_or_else(|panic| Err(panicked(type_byte, &panic)))
    }

    fn decode_inside(&self, type_byte: u8, payload: &[u8], max: usize) -> Result<Vec<u8>> {
        if self.leveldb && type_byte == 2 {
            let size = zstd_frame_size(payload)?;
            return zstd_decode(payload, sized(size, max)?, &Dictionary::default());
        }
        let Some(codec) = Codec::from_u8(type_byte) else {
            return Err(Error::unsupported(format!(
                "block compression type {type_byte:#04x} is a custom compressor, unknown here"
            )));
        };
        match codec {
            Codec::None => {
                sized(payload.len() as u64, max).and_then(|_| memory::copied(payload, "a block"))
            }
            Codec::Snappy => snappy_decode(payload, max),
            Codec::Zlib => {
                let (size, body) = size_prefix(payload, max)?;
                let mut out = memory::zeroed(size, "a block")?;
                let n = zip::inflate(body, &mut out, self.dictionary.bytes())?;
                filled(out, n, "Zlib")
            }
            // It has no dictionaries: RocksDB writes one into the table and does without.
            Codec::Bzip2 => {
                let (size, body) = size_prefix(payload, max)?;
                let mut out = memory::zeroed(size, "a block")?;
                let n = zip::bunzip(body, &mut out)?;
                filled(out, n, "BZip2")
            }
            Codec::Lz4 | Codec::Lz4hc => {
                let (size, body) = size_prefix(payload, max)?;
                lz4_decode(body, size, self.dictionary.bytes())
            }
            Codec::Zstd => {
                let (size, body) = size_prefix(payload, max)?;
                zstd_decode(body, size, &self.dictionary)
            }
        }
    }
}

/// Decompresses a block of a RocksDB table without a dictionary; see [`Decoder::decode`].
///
/// # Errors
/// As [`Decoder::decode`].
pub fn decompress(type_byte: u8, payload: &[u8], max: usize) -> Result<Vec<u8>> {
    Decoder::rocksdb().decode(type_byte, payload, max)
}

#[cold]
fn panicked(type_byte: u8, panic: &str) -> Error {
    let codec = Codec::from_u8(type_byte).map_or("custom", Codec::name);
    Error::corruption(format!(
        "the {codec} codec panicked over a block ({panic}): it is damaged, or the codec has a bug; \
         `lithify verify` lists all such blocks, and `lithify salvage` takes out the others"
    ))
}

fn size_prefix(payload: &[u8], max: usize) -> Result<(usize, &[u8])> {
    let (size, body) = varint::get_u32(payload)
        .ok_or_else(|| Error::corruption("compressed block has no size before it"))?;
    Ok((sized(u64::from(size), max)?, body))
}

fn sized(size: u64, max: usize) -> Result<usize> {
    match usize::try_from(size) {
        Ok(size) if size <= max => Ok(size),
        _ => Err(Error::new(
            ErrorKind::LimitExceeded,
            format!("block decompresses to {size} bytes, over the limit of {max}"),
        )),
    }
}

fn snappy_decode(payload: &[u8], max: usize) -> Result<Vec<u8>> {
    let bad = |e: snap::Error| Error::corruption(format!("bad Snappy block: {e}"));
    let size = sized(snap::raw::decompress_len(payload).map_err(bad)? as u64, max)?;
    plausible(size, payload, SNAPPY_RATIO, "Snappy")?;
    let mut out = memory::zeroed(size, "a block")?;
    let n = snap::raw::Decoder::new().decompress(payload, &mut out).map_err(bad)?;
    filled(out, n, "Snappy")
}

/// Bytes that a byte of a Snappy block becomes at most: a copy takes three bytes and stands for 64.
const SNAPPY_RATIO: usize = 22;

/// Refuses a size that `stored` bytes cannot become, before there is memory for it.
fn plausible(size: usize, stored: &[u8], ratio: usize, codec: &str) -> Result<()> {
    if size <= stored.len().saturating_mul(ratio) {
        return Ok(());
    }
    Err(Error::corruption(format!(
        "{codec} block of {} bytes announces {size}, more than it can hold",
        stored.len()
    )))
}

fn lz4_decode(body: &[u8], size: usize, dictionary: &[u8]) -> Result<Vec<u8>> {
    plausible(size, body, LZ4_RATIO, "LZ4")?;
    let mut out = memory::zeroed(size, "a block")?;
    let n = match dictionary {
        [] => lz4_flex::block::decompress_into(body, &mut out),
        dictionary => lz4_flex::block::decompress_into_with_dict(body, &mut out, dictionary),
    };
    let n = n.map_err(|e| Error::corruption(format!("bad LZ4 block: {e}")))?;
    filled(out, n, "LZ4")
}

fn filled(out: Vec<u8>, n: usize, codec: &str) -> Result<Vec<u8>> {
    if n == out.len() {
        return Ok(out);
    }
    Err(Error::corruption(format!(
        "{codec} block decompresses to {n} bytes, but announced {}",
        out.len()
    )))
}

#[cfg(feature = "zstd")]
fn zstd_decode(body: &[u8], size: usize, dictionary: &Dictionary) -> Result<Vec<u8>> {
    use std::cell::RefCell;
    use zstd::zstd_safe::{DCtx, get_error_name};

    // A context is some 100 KiB of tables: one per thread serves all its blocks.
    thread_local! {
        static CONTEXT: RefCell<DCtx<'static>> = RefCell::new(DCtx::create());
    }
    let bad = |code| Error::corruption(format!("bad ZSTD block: {}", get_error_name(code)));
    let mut out = memory::zeroed(size, "a block")?;
    let dictionary = dictionary.prepared()?;
    let n = CONTEXT.with_borrow_mut(|c| match dictionary {
        Some(dictionary) => c.decompress_using_ddict(&mut out[..], body, dictionary),
        None => c.decompress(&mut out[..], body),
    });
    filled(out, n.map_err(bad)?, "ZSTD")
}

#[cfg(feature = "zstd")]
fn zstd_frame_size(payload: &[u8]) -> Result<u64> {
    match zstd::zstd_safe::get_frame_content_size(payload) {
        Ok(Some(size)) => Ok(size),
        _ => Err(Error::corruption("ZSTD block does not say its size")),
    }
}

#[cfg(not(feature = "zstd"))]
fn zstd_decode(_body: &[u8], _size: usize, _dictionary: &Dictionary) -> Result<Vec<u8>> {
    Err(super::encode::zstd_is_off())
}

#[cfg(not(feature = "zstd"))]
fn zstd_frame_size(_payload: &[u8]) -> Result<u64> {
    Err(super::encode::zstd_is_off())
}
