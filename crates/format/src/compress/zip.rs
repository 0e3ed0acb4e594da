//! Zlib and bzip2, as RocksDB calls them: deflate without a header and with a window of 16 KiB, and
//! bzip2 in its smallest pieces.
//!
//! Keeps: a stream that does not end inside the room given is an error, or none at all when it was to
//! be made. Leaves to others: the size before a block.

use bzip2::{Action, Compress as Bzip, Decompress as Bunzip};
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use lithify_base::{Error, Result};

/// RocksDB reads no larger window.
const WINDOW_BITS: u8 = 14;
/// What it takes of bzip2: pieces of 100 KB, and its effort on repetitive ones.
const PIECES: u32 = 1;
const WORK_FACTOR: u32 = 30;

/// Deflates blocks, each by itself. One whose [`compress`](Deflate::compress) gave `None` is not used
/// again: the library's reset leaves output behind that had no room, and then writes past its
/// buffer.
pub(super) struct Deflate(Compress);

impl Deflate {
    pub(super) fn new(level: i32) -> Deflate {
        let level = u32::try_from(level).ok().filter(|level| (1..=9).contains(level)).unwrap_or(6);
        Deflate(Compress::new_with_window_bits(Compression::new(level), false, WINDOW_BITS))
    }

    /// Bytes of `out` that the compressed form of `payload` takes; `None` if it does not fit.
    pub(super) fn compress(&mut self, payload: &[u8], out: &mut [u8]) -> Option<usize> {
        self.0.reset();
        match self.0.compress(payload, out, FlushCompress::Finish) {
            Ok(Status::StreamEnd) => usize::try_from(self.0.total_out()).ok(),
            _ => None,
        }
    }
}

/// Bytes of `out` that `body` inflates to.
pub(super) fn inflate(body: &[u8], out: &mut [u8], dictionary: &[u8]) -> Result<usize> {
    let bad = |what: &str| Error::corruption(format!("bad Zlib block: {what}"));
    let mut stream = Decompress::new(false);
    if !dictionary.is_empty() {
        stream.set_dictionary(dictionary).map_err(|e| bad(&e.to_string()))?;
    }
    match stream.decompress(body, out, FlushDecompress::Finish) {
        Ok(Status::StreamEnd) => Ok(stream.total_out() as usize),
        Ok(_) => Err(bad("it ends early, or is longer than announced")),
        Err(e) => Err(bad(&e.to_string())),
    }
}

/// As [`Deflate::compress`], by bzip2.
pub(super) fn bzip(payload: &[u8], out: &mut [u8]) -> Option<usize> {
    let mut stream = Bzip::new(bzip2::Compression::new(PIECES), WORK_FACTOR);
    match stream.compress(payload, out, Action::Finish) {
        Ok(bzip2::Status::StreamEnd) => usize::try_from(stream.total_out()).ok(),
        _ => None,
    }
}

/// As [`inflate`], by bzip2.
pub(super) fn bunzip(body: &[u8], out: &mut [u8]) -> Result<usize> {
    let bad = |what: &str| Error::corruption(format!("bad BZip2 block: {what}"));
    let mut stream = Bunzip::new(false);
    match stream.decompress(body, out) {
        Ok(bzip2::Status::StreamEnd) => Ok(stream.total_out() as usize),
        Ok(_) => Err(bad("it ends early, or is longer than announced")),
        Err(e) => Err(bad(&e.to_string())),
    }
}
