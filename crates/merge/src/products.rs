//! What an engine hands back: encoded blocks with their metadata, file cuts and set ends, in key
//! order, in a few large reusable buffers.
//!
//! Keeps: blocks of one `Products` lie in the arena in item order, each as
//! `payload ++ type byte ++ raw sum`: back to back if the kernel wrote them, perhaps with gaps if a
//! machine lent its own memory ([`Lent`]). Nothing here is trusted by the host.
//! Leaves to others: the checksum's context modifier, which the assembler adds in place through
//! [`Products::block_mut`].

use std::fmt;
use std::ops::Range;

use lithify_base::memory::LargeBytes;
use lithify_base::{InternalKey, Kind, Seq};

use crate::copy::copy;
use crate::encode::Carry;
use crate::tombstone::RangeTombstone;

/// Bytes after a payload: type byte and checksum.
pub const TRAILER: usize = 5;

/// Bytes after which the caller of a kernel takes what is ready: a quarter of a millisecond of work. Products of so
/// many bytes are still in the processor's cache when they are copied to where they are written from, and a job
/// has touched memory for them soon.
pub const SLICE_BYTES: usize = 256 << 10;

/// Room of an arena that is no longer tiny: a slice's output, so that it need not move while it grows. What of it is
/// never written takes no memory.
const ROOM: usize = SLICE_BYTES + SLICE_BYTES / 4;

/// What memory is aligned to that files with direct IO are written from.
pub const PAGE: usize = 4096;

/// One finished data block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockMeta {
    /// Where it lies in the arena, its trailer included.
    pub at: Range<usize>,
    /// Where its first internal key lies among the keys.
    pub first: Range<usize>,
    /// Where its last internal key lies among the keys.
    pub last: Range<usize>,
    /// Where its filter hashes lie among the hashes.
    pub hashes: Range<usize>,
    /// Entries in it.
    pub entries: u32,
    /// Sum of the lengths of its internal keys.
    pub raw_key_bytes: u64,
    /// Sum of the lengths of its values.
    pub raw_value_bytes: u64,
    /// Content weight of its entries ([`lithify_format::weight`]).
    pub weight: u64,
    /// Smallest sequence number in it.
    pub min_seq: Seq,
    /// Largest sequence number in it.
    pub max_seq: Seq,
    /// Values in it.
    pub values: u32,
    /// Deletes in it.
    pub deletes: u32,
    /// Single deletes in it.
    pub single_deletes: u32,
    /// Merge operands in it.
    pub merges: u32,
    /// Whether its first entry is a further version of the last user key of the block before.
    pub continues_key: bool,
}

impl BlockMeta {
    /// Bytes of the payload, as a handle states them.
    pub fn payload_len(&self) -> usize {
        self.at.len().saturating_sub(TRAILER)
    }
    /// Bytes with the trailer.
    pub fn stored_len(&self) -> usize {
        self.at.len()
    }
    /// Logical bytes ([`crate::cut::logical`]) of its entries together. Saturates, as an engine may
    /// claim any figures.
    pub fn logical_bytes(&self) -> u64 {
        let bytes = self.raw_key_bytes.saturating_add(self.raw_value_bytes);
        bytes.saturating_add(4 * u64::from(self.entries))
    }
    /// Counts one entry.
    #[inline]
    pub(crate) fn count(&mut self, kind: Kind, seq: Seq, key_len: usize, value_len: usize) {
        self.entries += 1;
        self.raw_key_bytes += key_len as u64 + 8;
        self.raw_value_bytes += value_len as u64;
        self.min_seq = self.min_seq.min(seq);
        self.max_seq = self.max_seq.max(seq);
        match kind {
            Kind::Value => self.values += 1,
            Kind::Delete => self.deletes += 1,
            Kind::SingleDelete => self.single_deletes += 1,
            Kind::Merge | Kind::RangeDelete => self.merges += 1,
        }
    }
}

/// The end of a file: every block since the cut before belongs to it. A file may have no blocks
/// if it has tombstones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileCut {
    /// Its range tombstones, clamped to the file, sorted by start and then newest first.
    pub tombstones: Vec<RangeTombstone>,
}

/// The end of a set: everything up to its upper key is in the products so far or in the carry.
#[derive(Clone, Debug, PartialEq)]
pub struct SetDone {
    /// Number of the set.
    pub no: u32,
    /// State from which any engine may go on with the next set.
    pub carry: Box<Carry>,
}

/// One step of the output, in key order.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// A data block.
    Block(BlockMeta),
    /// The open file ends here.
    FileCut(FileCut),
    /// A set ends here.
    SetDone(SetDone),
}

/// Memory that its owner lends to the host, such as a buffer that a device copied blocks into. The
/// host writes checksums into it and gives it back by dropping it.
///
/// Both functions must return the same stretch of bytes each time.
pub trait Lent: Send + Sync {
    /// All of it.
    fn bytes(&self) -> &[u8];
    /// All of it, to be changed in place.
    fn bytes_mut(&mut self) -> &mut [u8];
}

impl Lent for Vec<u8> {
    fn bytes(&self) -> &[u8] {
        self
    }
    fn bytes_mut(&mut self) -> &mut [u8] {
        self
    }
}

impl Lent for LargeBytes {
    fn bytes(&self) -> &[u8] {
        self
    }
    fn bytes_mut(&mut self) -> &mut [u8] {
        self
    }
}

/// A batch of output. Hand the same one back to be refilled: its buffers are reused.
///
/// A clone has all blocks in memory of its own.
#[derive(Default)]
pub struct Products {
    /// Blocks up to `used`; the rest is room, zeroed or stale.
    pub(crate) arena: LargeBytes,
    /// Stands for the arena while it is here. The kernel's writer never has one.
    pub(crate) lent: Option<Box<dyn Lent>>,
    /// Raw sums of all blocks, in item order, that the host found itself; empty if it did not look.
    pub(crate) sums: Vec<u32>,
    pub(crate) used: usize,
    pub(crate) keys: Vec<u8>,
    pub(crate) hashes: Vec<u64>,
    pub(crate) items: Vec<Item>,
}

impl Products {
    /// Forgets everything but keeps the buffers. Memory that was lent is given back.
    pub fn clear(&mut self) {
        self.lent = None;
        self.used = 0;
        self.sums.clear();
        self.keys.clear();
        self.hashes.clear();
        self.items.clear();
    }
    /// True if there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
    /// Blocks, file cuts and set ends, in key order.
    pub fn items(&self) -> &[Item] {
        &self.items
    }
    /// Replaces the steps, keeping all bytes: how a hostile engine loses or doubles a block.
    pub fn set_items(&mut self, items: Vec<Item>) {
        self.sums.clear();
        self.items = items;
    }
    /// The memory that all blocks lie in.
    pub fn arena(&self) -> &[u8] {
        match &self.lent {
            None => &self.arena[..self.used],
            Some(lent) => lent.bytes().get(..self.used).unwrap_or_default(),
        }
    }
    /// Has blocks lie in the first `used` bytes of `lent`, instead of in an arena of its own.
    pub(crate) fn lend(&mut self, lent: Box<dyn Lent>, used: usize) {
        self.lent = Some(lent);
        self.used = used;
    }
    /// Has blocks lie in memory that is lent, as those of a machine do.
    #[cfg(feature = "testing")]
    pub fn lend_own(&mut self) {
        if self.lent.is_none() && self.used > 0 {
            self.lent = Some(Box::new(std::mem::take(&mut self.arena)));
        }
    }
    /// Whether blocks lie in memory that was lent, and can be [taken](Products::take_lent).
    pub fn is_lent(&self) -> bool {
        self.lent.is_some()
    }
    /// Takes the memory that all blocks lie in, if it was lent; what is known of them stays, with the places.
    pub fn take_lent(&mut self) -> Option<Box<dyn Lent>> {
        let lent = self.lent.take();
        if lent.is_some() {
            self.used = 0;
        }
        lent
    }
    /// Where a block lies in [`arena`](Products::arena).
    pub fn place(&self, block: &BlockMeta) -> Range<usize> {
        block.at.clone()
    }
    /// A block with its trailer; empty if `block` is not of these products.
    pub fn block(&self, block: &BlockMeta) -> &[u8] {
        self.arena().get(block.at.clone()).unwrap_or_default()
    }
    /// A block with its trailer, to rewrite its checksum.
    pub fn block_mut(&mut self, block: &BlockMeta) -> &mut [u8] {
        self.parts_mut().0.get_mut(block.at.clone()).unwrap_or_default()
    }
    /// The raw checksum in a block's trailer.
    pub fn raw_sum(&self, block: &BlockMeta) -> u32 {
        self.block(block).last_chunk::<4>().map_or(0, |c| u32::from_le_bytes(*c))
    }
    /// First internal key of a block.
    pub fn first_key(&self, block: &BlockMeta) -> InternalKey<'_> {
        self.key(&block.first)
    }
    /// Last internal key of a block.
    pub fn last_key(&self, block: &BlockMeta) -> InternalKey<'_> {
        self.key(&block.last)
    }
    /// Filter hashes of a block's distinct user keys, in key order, each prefix before its first key.
    /// Equal neighbours are hashed once, across blocks of a file too. Empty unless the recipe asks
    /// for them.
    pub fn hashes(&self, block: &BlockMeta) -> &[u64] {
        self.hashes.get(block.hashes.clone()).unwrap_or_default()
    }
    /// The arena, to rewrite checksums in place while walking [`items`](Products::items).
    pub fn parts_mut(&mut self) -> (&mut [u8], &[Item]) {
        let arena = match &mut self.lent {
            None => &mut self.arena[..self.used],
            Some(lent) => lent.bytes_mut().get_mut(..self.used).unwrap_or_default(),
        };
        (arena, &self.items)
    }
    /// Makes room for `n` more bytes at once.
    pub(crate) fn reserve(&mut self, n: usize) {
        self.arena.lengthen(self.used + n);
    }
    /// Appends bytes to the arena.
    #[inline]
    pub(crate) fn append(&mut self, bytes: &[u8]) {
        let at = self.claim(bytes.len());
        copy(&mut self.arena[at..], bytes);
    }
    /// Takes `n` bytes at the end of the arena and says where they start.
    #[inline]
    pub(crate) fn claim(&mut self, n: usize) -> usize {
        let at = self.used;
        self.used = at + n;
        if self.used > self.arena.len() {
            self.grow();
        }
        at
    }
    #[cold]
    fn grow(&mut self) {
        self.arena.lengthen((self.used + self.used / 4).max(ROOM));
    }
    fn key(&self, at: &Range<usize>) -> InternalKey<'_> {
        let bytes = self.keys.get(at.clone()).unwrap_or_default();
        InternalKey::decode(bytes).unwrap_or(InternalKey { user: &[], tag: lithify_base::Tag(0) })
    }
}

impl Clone for Products {
    fn clone(&self) -> Products {
        Products {
            arena: self.arena().into(),
            lent: None,
            sums: self.sums.clone(),
            used: self.arena().len(),
            keys: self.keys.clone(),
            hashes: self.hashes.clone(),
            items: self.items.clone(),
        }
    }
}

impl fmt::Debug for Products {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Products")
            .field("bytes", &self.used)
            .field("lent", &self.lent.is_some())
            .field("items", &self.items)
            .finish_non_exhaustive()
    }
}
