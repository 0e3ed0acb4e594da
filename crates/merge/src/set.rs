//! Block sets: what a compaction reads, one clean user-key range at a time.
//!
//! Keeps: no user key has entries in two sets, because a set is bounded by *user* keys; a block
//! that straddles a bound is sent in both sets and trimmed where it is decoded.
//! Leaves to others: where blocks come from. A slice carries all that is needed to check and
//! decode it, and holds its read buffer alive.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use lithify_base::{Comparator, End, Error, Key, Result, Seq};
use lithify_format::checksum::ChecksumKind;
use lithify_format::compress::Decoder;

/// A shared, read-only stretch of bytes: a range of some buffer that stays alive as long as
/// any part of it is held. Cloning copies no bytes.
#[derive(Clone)]
pub struct Bytes {
    owner: Arc<dyn AsRef<[u8]> + Send + Sync>,
    range: Range<usize>,
}

impl Bytes {
    /// All of `owner`.
    pub fn new(owner: Arc<dyn AsRef<[u8]> + Send + Sync>) -> Bytes {
        let range = 0..(*owner).as_ref().len();
        Bytes { owner, range }
    }
    /// A part, counted from the start of this stretch; an error if it reaches past its end.
    pub fn slice(&self, range: Range<usize>) -> Result<Bytes> {
        if range.start > range.end || range.end > self.len() {
            return Err(Error::corruption(format!(
                "bytes {}..{} of a buffer of {}",
                range.start,
                range.end,
                self.len()
            )));
        }
        let start = self.range.start + range.start;
        Ok(Bytes { owner: self.owner.clone(), range: start..start + range.len() })
    }
    /// Makes this stretch longer by `next` if that lies right behind it in the same buffer; says whether it does.
    pub fn join(&mut self, next: &Bytes) -> bool {
        let is_behind = Arc::ptr_eq(&self.owner, &next.owner) && self.range.end == next.range.start;
        if is_behind {
            self.range.end = next.range.end;
        }
        is_behind
    }
    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.range.len()
    }
    /// True if there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.range.is_empty()
    }
    /// The bytes. One indirect call: fetch once per block, not once per entry.
    pub fn as_slice(&self) -> &[u8] {
        (*self.owner).as_ref().get(self.range.clone()).unwrap_or(&[])
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(v: Vec<u8>) -> Bytes {
        Bytes::new(Arc::new(v))
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bytes({})", self.len())
    }
}

/// One encoded block as it lies in its file, with what its file says about all blocks.
#[derive(Clone, Debug)]
pub struct BlockSlice {
    /// Payload, type byte and stored checksum (4 bytes).
    pub bytes: Bytes,
    /// Where the block starts in its file; named in errors.
    pub offset: u64,
    /// How the file's blocks are checked.
    pub checksum: ChecksumKind,
    /// What the file adds to the raw sum of this block to bind it to its place
    /// (`docs/formats/sst.md`); 0 if it adds nothing.
    pub modifier: u32,
    /// How the file's compressed payloads read; shared by all its blocks.
    pub decoder: Arc<Decoder>,
    /// Entries in the block as its file records them, 0 if unknown. A device sizes its arrays by this
    /// and checks it; the CPU needs no count.
    pub entries: u32,
    /// Bytes of all internal keys in the block (user key and tag, none shortened) as its file records
    /// them, 0 if unknown.
    pub key_bytes: u64,
    /// The sequence number of all entries, where it stands for those in the block.
    pub seq: Option<Seq>,
}

/// The blocks of one run that may hold keys of a set, in key order.
#[derive(Clone, Debug)]
pub struct RunSlice {
    /// Position of the run among the inputs; 0 is the newest.
    pub run: u16,
    /// Its blocks, in key order. A clone shares the list, so that a set can be kept until its output
    /// is safe.
    pub blocks: Arc<[BlockSlice]>,
}

/// A range of user keys `(lo, hi]`; an absent end is unbounded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CleanRange {
    /// Excluded lower end: the upper end of the set before.
    pub lo: Option<Key>,
    /// Included upper end.
    pub hi: Option<Key>,
}

/// The unit of streaming: every input entry whose user key lies in `keys`.
#[derive(Clone, Debug, Default)]
pub struct BlockSet {
    /// Number of the set, ascending from 0 in key order.
    pub no: u32,
    /// Its keys. Entries of straddling blocks outside of it belong to a neighbouring set.
    pub keys: CleanRange,
    /// At most one slice per run, in any order; runs without blocks may be absent.
    pub runs: Vec<RunSlice>,
}

impl BlockSet {
    /// Encoded bytes of all its blocks.
    pub fn bytes(&self) -> u64 {
        self.runs.iter().flat_map(|r| &*r.blocks).map(|b| b.bytes.len() as u64).sum()
    }
}

/// The user keys a whole (sub)compaction is about. Entries outside do not take part in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobRange {
    /// First key, included; absent = unbounded.
    pub lo: Option<Key>,
    /// End; absent = unbounded.
    pub hi: Option<End>,
}

impl JobRange {
    /// True if `key` takes part.
    pub fn contains(&self, key: &[u8], order: &dyn Comparator) -> bool {
        self.lo.as_ref().is_none_or(|lo| order.compare(lo, key).is_le())
            && self.hi.as_ref().is_none_or(|hi| !hi.is_before(key, order))
    }
}
