//! The recipe: everything that decides the bytes a compaction or flush writes.
//!
//! Keeps: two engines with the same recipe and the same input entries write the same blocks
//! (R9); nothing outside of it (clock, buffer sizes, set bounds, thread counts) has a say.
//! Leaves to others: table identity and all blocks that are not data blocks (R8).

use std::sync::Arc;

use lithify_base::{
    CompactionFilterRef, Comparator, ComparatorRef, End, Error, FilterContext, Key, KeyRange,
    MergeOperatorRef, Prefixes, Result, Seq, bytewise,
};
use lithify_format::checksum::ChecksumKind;
use lithify_format::compress::Codec;

use crate::set::JobRange;
use crate::tombstone::Fragments;

/// Which keys older non-input files may hold, seen from one input run. A delete outside of it
/// hides nothing and a value outside of it may lose its sequence number (D3, D4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InUse {
    /// Every key: always safe, and what ingestion behind the oldest data needs.
    All,
    /// Sorted, disjoint ranges.
    Ranges(Vec<KeyRange>),
}

impl InUse {
    /// No older data at all.
    pub fn none() -> InUse {
        InUse::Ranges(Vec::new())
    }
    /// True if older non-input data may hold `key`.
    pub fn contains(&self, key: &[u8], order: &dyn Comparator) -> bool {
        match self {
            InUse::All => true,
            InUse::Ranges(list) => {
                let i = list.partition_point(|r| r.hi.is_before(key, order));
                list.get(i).is_some_and(|r| r.contains(key, order))
            }
        }
    }
    /// True if older non-input data may hold a key between `lo` and `hi`.
    pub fn overlaps(&self, lo: &End, hi: &End, order: &dyn Comparator) -> bool {
        match self {
            InUse::All => true,
            InUse::Ranges(list) => {
                let i = list.partition_point(|r| r.hi.cmp(lo, order).is_le());
                list.get(i).is_some_and(|r| !hi.is_before(&r.lo, order))
            }
        }
    }
}

/// A user's compaction filter, and what it is told (D8).
#[derive(Clone)]
pub struct UserFilter {
    /// The filter.
    pub filter: CompactionFilterRef,
    /// What it is told besides key and value.
    pub context: FilterContext,
}

/// Everything that decides output bytes. Build one with [`Recipe::new`] and set what differs.
#[derive(Clone)]
pub struct Recipe {
    /// Order of user keys.
    pub order: ComparatorRef,
    /// The user keys this (sub)compaction is about.
    pub range: JobRange,
    /// Number of input runs; run 0 is the newest. At least 1.
    pub runs: u16,
    /// Sequence numbers of live snapshots, strictly ascending.
    pub snapshots: Vec<Seq>,
    /// For each run, the keys of all older non-input files.
    pub in_use: Vec<InUse>,
    /// All range tombstones of the inputs, fragmented.
    pub tombstones: Fragments,
    /// Keys at which a file must start, strictly ascending.
    pub hard_splits: Vec<Key>,
    /// Keys at which a file starts if the open one has an eighth of its size, strictly ascending.
    pub soft_splits: Vec<Key>,
    /// Logical bytes of a block, a power of two (R1).
    pub block_bytes: u32,
    /// Logical bytes of a file; at least one block.
    pub file_bytes: u64,
    /// Entries per restart point, at least 1 (R2).
    pub restart_interval: u16,
    /// Compression of data blocks. A block that saves too little is stored as it is.
    pub codec: Codec,
    /// The codec's level; 0 is its default.
    pub codec_level: i32,
    /// What blocks are compressed with besides, if the codec has dictionaries.
    pub dictionary: Option<Arc<[u8]>>,
    /// Checksum of data blocks.
    pub checksum: ChecksumKind,
    /// Whether hashes of keys are wanted for a filter.
    pub filter: bool,
    /// Whose hashes are wanted for a filter besides, or instead: prefixes of keys.
    pub prefixes: Prefixes,
    /// Whether deletes and range tombstones that hide nothing are dropped (D3, D5). Off where
    /// the level is unknown: always safe.
    pub drop_tombstones: bool,
    /// Whether values that nothing can hide get sequence number 0 (D4), if deletes are dropped as well:
    /// none could follow such a value. Off is always safe.
    pub zero_seqs: bool,
    /// What combines merge operands (D6). Without one they stay as they are: always safe.
    pub operator: Option<MergeOperatorRef>,
    /// The user's filter (D8), if there is one.
    pub user_filter: Option<UserFilter>,
    /// What the inputs hold, if it is known. It has no influence on output bytes.
    pub density: Option<Density>,
}

/// What a stored byte of the inputs comes to at most, by the figures of their tables: for engines that size sets by the
/// memory they take.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Density {
    /// Entries; finite, and so are the others.
    pub entries: f64,
    /// Bytes of user keys.
    pub key_bytes: f64,
    /// Bytes of blocks that are not compressed.
    pub plain_bytes: f64,
    /// The share of it that lies in compressed blocks, 0 to 1.
    pub compressed: f64,
}

impl Density {
    /// Most bytes of lengths and tag that stand beside key and value in a block, in all but odd cases.
    const BESIDE: f64 = 14.0;

    /// Of blocks with so many stored bytes: their entries, bytes of user keys, and of values. All may be compressed. None if
    /// nothing is known.
    pub fn of(stored: u64, entries: u64, key_bytes: u64, value_bytes: u64) -> Option<Density> {
        if stored == 0 || entries == 0 {
            return None;
        }
        let stored = stored as f64;
        let all = key_bytes as f64 + value_bytes as f64 + Density::BESIDE * entries as f64;
        Some(Density {
            entries: entries as f64 / stored,
            key_bytes: key_bytes as f64 / stored,
            plain_bytes: (all / stored).max(1.0),
            compressed: 1.0,
        })
    }

    /// The same where no block is compressed.
    pub fn uncompressed(self) -> Density {
        Density { compressed: 0.0, ..self }
    }

    /// The larger figures of both.
    pub fn max(self, other: Density) -> Density {
        Density {
            entries: self.entries.max(other.entries),
            key_bytes: self.key_bytes.max(other.key_bytes),
            plain_bytes: self.plain_bytes.max(other.plain_bytes),
            compressed: self.compressed.max(other.compressed),
        }
    }
}

impl Recipe {
    /// A recipe for `runs` input runs in byte order: no snapshots, everything in use, 4 KiB
    /// blocks, 64 MiB files, restarts every 16 entries, XXH3, filter hashes, both switches on.
    pub fn new(runs: u16) -> Recipe {
        Recipe {
            order: bytewise(),
            range: JobRange::default(),
            runs,
            snapshots: Vec::new(),
            in_use: vec![InUse::All; usize::from(runs)],
            tombstones: Fragments::default(),
            hard_splits: Vec::new(),
            soft_splits: Vec::new(),
            block_bytes: 4 << 10,
            file_bytes: 64 << 20,
            restart_interval: 16,
            codec: Codec::None,
            codec_level: 0,
            dictionary: None,
            checksum: ChecksumKind::Xxh3,
            filter: true,
            prefixes: Prefixes::default(),
            drop_tombstones: true,
            zero_seqs: true,
            operator: None,
            user_filter: None,
            density: None,
        }
    }
    /// The recipe of the part of this one that is about `range`. The outputs of all parts, one after
    /// the other, hold the entries that a single output would hold; only files and blocks begin
    /// elsewhere. A range tombstone that reaches over an end of the part is clipped there, and the
    /// rest of it belongs to the neighbour; so each part's ledger balances by itself, and a piece that
    /// hides nothing may be dropped (D5) where the whole tombstone could not.
    ///
    /// # Panics
    /// If the end of `range` is included: no key could name where the next part begins.
    pub fn part(&self, range: JobRange) -> Recipe {
        let hi = range.hi.as_ref().map(|hi| {
            assert!(!hi.inclusive, "a part ends before the first key of the next one");
            &hi.key
        });
        let tombstones = self.tombstones.between(range.lo.as_ref(), hi, &*self.order);
        Recipe { tombstones, range, ..self.clone() }
    }
    /// Declares that every key may lie behind `run`, as ingestion behind the oldest data needs.
    pub fn in_use_all(&mut self, run: u16) {
        if let Some(r) = self.in_use.get_mut(usize::from(run)) {
            *r = InUse::All;
        }
    }
    /// The stripe of a sequence number: how many snapshots lie below it. 0 is the oldest.
    #[inline]
    pub fn stripe(&self, seq: Seq) -> usize {
        match self.snapshots.first() {
            Some(&s) if s < seq => self.snapshots.partition_point(|&s| s < seq),
            _ => 0,
        }
    }
    /// Refuses a recipe that no engine can follow.
    ///
    /// # Errors
    /// InvalidArgument, naming the field.
    pub fn check(&self) -> Result<()> {
        let order = &*self.order;
        let ascending = |keys: &[Key]| keys.windows(2).all(|w| order.compare(&w[0], &w[1]).is_lt());
        let disjoint = |r: &InUse| match r {
            InUse::All => true,
            InUse::Ranges(list) => list.windows(2).all(|w| w[0].is_before(&w[1], order)),
        };
        let fault = if self.runs == 0 {
            "a recipe needs at least one run"
        } else if self.in_use.len() != usize::from(self.runs) {
            "a recipe needs one in_use list per run"
        } else if !self.in_use.iter().all(disjoint) {
            "in_use ranges must be sorted and disjoint"
        } else if !self.snapshots.windows(2).all(|w| w[0] < w[1]) {
            "snapshots must ascend"
        } else if !ascending(&self.hard_splits) || !ascending(&self.soft_splits) {
            "split keys must ascend"
        } else if !self.block_bytes.is_power_of_two() {
            "block_bytes must be a power of two"
        } else if self.file_bytes < u64::from(self.block_bytes) {
            "file_bytes must be at least block_bytes"
        } else if self.restart_interval == 0 {
            "restart_interval must be at least 1"
        } else {
            return Ok(());
        };
        Err(Error::invalid(fault))
    }
}

impl std::fmt::Debug for Recipe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recipe")
            .field("order", &self.order.name())
            .field("range", &self.range)
            .field("runs", &self.runs)
            .field("snapshots", &self.snapshots)
            .field("in_use", &self.in_use)
            .field("tombstones", &self.tombstones.as_slice())
            .field("hard_splits", &self.hard_splits)
            .field("soft_splits", &self.soft_splits)
            .field("block_bytes", &self.block_bytes)
            .field("file_bytes", &self.file_bytes)
            .field("restart_interval", &self.restart_interval)
            .field("prefixes", &self.prefixes)
            .field("codec", &self.codec)
            .field("drop_tombstones", &self.drop_tombstones)
            .field("zero_seqs", &self.zero_seqs)
            .field("operator", &self.operator.as_ref().map(|op| op.name().to_owned()))
            .field("user_filter", &self.user_filter.as_ref().map(|f| f.filter.name().to_owned()))
            .finish_non_exhaustive()
    }
}
