//! An uncompressed block in memory, and a value inside it that keeps it alive.
//!
//! A block is a stretch of a shared buffer: of a buffer of its own when it comes from a point
//! read (and may be cached), of a read-ahead buffer during a scan (and is never cached as such,
//! since it would keep the whole buffer alive).

use lithify_env::{SharedBytes, Slabs};
use std::ops::Deref;

use super::point::{self, SKETCH};

/// Lines of the processor's caches at each end of a block that are fetched ahead; measured. What lies between is fetched
/// as a walk goes on.
const END_LINES: usize = 4;

/// Bytes of an uncompressed, checked block. Cloning copies no bytes.
#[derive(Clone)]
pub struct Block {
    bytes: SharedBytes,
    start: u32,
    end: u32,
    /// Whether a sketch lies in front of the block.
    sketched: bool,
}

impl Block {
    /// The bytes `start..end` of `bytes`.
    ///
    /// # Panics
    /// If they are not inside `bytes`, or it is 4 GiB or larger.
    pub(crate) fn new(bytes: SharedBytes, start: usize, end: usize) -> Block {
        assert!(start <= end && end <= bytes.len(), "a block lies inside its buffer");
        let narrow = |n| u32::try_from(n).expect("buffers are below 4 GiB");
        Block { start: narrow(start), end: narrow(end), bytes, sketched: false }
    }
    /// A block in a buffer of its own that starts [`SKETCH`] bytes into it, with its sketch in
    /// front if `bytewise`. The buffer must not be shared yet.
    pub(crate) fn with_sketch(mut bytes: SharedBytes, len: usize, bytewise: bool) -> Block {
        if let Some((front, block)) =
            bytes.get_mut().and_then(|b| b.split_first_chunk_mut::<SKETCH>())
            && bytewise
        {
            point::sketch(block.get(..len).unwrap_or_default(), front);
        }
        Block { sketched: bytewise, ..Block::new(bytes, SKETCH, SKETCH + len) }
    }
    /// Lets the processor fetch its ends, which one looks at first who walks through it.
    #[inline]
    pub(crate) fn prefetch(&self) {
        self.bytes.prefetch(self.start as usize..self.end as usize, END_LINES);
    }
    /// The sketch in front of it.
    #[inline]
    pub(crate) fn sketch(&self) -> Option<&[u8; SKETCH]> {
        if self.sketched { self.bytes.first_chunk() } else { None }
    }
    /// Bytes of memory it keeps alive.
    pub fn memory(&self) -> usize {
        self.bytes.memory()
    }
    /// Whether its memory is among these.
    pub(crate) fn lies_in(&self, slabs: &Slabs) -> bool {
        self.bytes.lies_in(slabs)
    }
}

impl AsRef<[u8]> for Block {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        &self.bytes[self.start as usize..self.end as usize]
    }
}

/// A value, or other bytes, inside a block that stays alive as long as this does.
#[derive(Clone)]
pub struct PinnedSlice {
    bytes: SharedBytes,
    start: u32,
    end: u32,
}

impl PinnedSlice {
    /// The bytes `range` of `block`; empty if they are not inside.
    pub(crate) fn new(block: &Block, range: std::ops::Range<usize>) -> PinnedSlice {
        let len = block.end - block.start;
        let narrow = |n: usize| u32::try_from(n).unwrap_or(u32::MAX).min(len);
        let (from, to) = (narrow(range.start), narrow(range.end));
        let bytes = block.bytes.clone();
        PinnedSlice { bytes, start: block.start + from, end: block.start + to.max(from) }
    }
    /// Bytes of memory it keeps alive.
    pub fn memory(&self) -> usize {
        self.bytes.memory()
    }
    /// Cuts it to its first `len` bytes, if it is longer.
    pub fn truncate(&mut self, len: usize) {
        let most = self.end - self.start;
        self.end = self.start + u32::try_from(len).unwrap_or(u32::MAX).min(most);
    }
}

impl Deref for PinnedSlice {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes[self.start as usize..self.end as usize]
    }
}

impl AsRef<[u8]> for PinnedSlice {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl std::fmt::Debug for PinnedSlice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "\"{}\"", self.escape_ascii())
    }
}
