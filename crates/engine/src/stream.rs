//! A compaction's input, made up block by block when it is asked for, so that a job of any size takes the memory
//! of the sets under way and 8 bytes a block.
//!
//! Keeps: a stream is a function of its shape and seed. Sets are cut by the merge's own clean cut, and blocks
//! that straddle a bound are in both sets, as in a store.
//!
//! Entry `j` of run `r` has the number `j * S + (something below S)`, so each run is sorted, and two runs now and
//! then have the same number: with `S = 5 (runs - 1)` one entry in ten is older than another of its key. One in
//! twenty is a delete. A key is its number, then bytes that follow from it.

use std::sync::Arc;

use lithify_base::{InternalKey, Kind, Result, Tag, bytewise};
use lithify_format::block::{BlockBuilder, BlockCheck};
use lithify_format::checksum::ChecksumKind;
use lithify_format::compress::{Codec, Compressor, Decoder};
use lithify_merge::cleancut::{BlockIndex, CleanCut};
use lithify_merge::recipe::InUse;
use lithify_merge::{BlockSet, BlockSlice, Bytes, JobRange, Recipe, RunSlice};

/// Bytes of the key that are its number.
pub const NUMBER: usize = 8;
/// Bytes that values are cut out of.
const POOL: usize = 1 << 20;
/// Logical bytes of a block.
const BLOCK: usize = 4096;

/// What a stream looks like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StreamShape {
    /// Runs.
    pub runs: u16,
    /// Bytes of a key, at least [`NUMBER`].
    pub key: usize,
    /// Bytes of a value, at most 64 KiB.
    pub value: usize,
    /// Bytes of all entries together, about: keys, values and 8 for each tag.
    pub bytes: u64,
    /// The same seed gives the same stream.
    pub seed: u64,
}

/// A seeded mix of bits: the finisher of SplitMix64.
fn mix(n: u64) -> u64 {
    let mut z = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// The blocks of all runs.
struct Blocks {
    shape: StreamShape,
    /// Entries of a run, and of a block.
    entries: u64,
    in_block: u64,
    /// Bytes of all entries.
    bytes: u64,
    /// For each run and block, the number behind its last one: a key between it and the next block.
    ends: Vec<Vec<[u8; NUMBER]>>,
    pool: Vec<u8>,
}

impl Blocks {
    fn new(shape: StreamShape) -> Blocks {
        let logical = shape.key + 8 + shape.value + 4;
        let all = shape.bytes / (shape.key + 8 + shape.value * 19 / 20) as u64;
        let mut blocks = Blocks {
            shape,
            entries: (all / u64::from(shape.runs)).max(1),
            in_block: BLOCK.div_ceil(logical) as u64,
            bytes: 0,
            ends: Vec::new(),
            pool: (0..POOL as u64 / 8)
                .flat_map(|i| mix(shape.seed ^ i << 20).to_le_bytes())
                .collect(),
        };
        for run in 0..shape.runs {
            let count = blocks.entries.div_ceil(blocks.in_block);
            let last = |block: u64| ((block + 1) * blocks.in_block).min(blocks.entries) - 1;
            let end = |block| (blocks.number(run, last(block)) + 1).to_be_bytes();
            let ends = (0..count).map(end).collect();
            blocks.ends.push(ends);
            let values = (0..blocks.entries).filter(|&j| !blocks.is_delete(run, j)).count();
            blocks.bytes += blocks.entries * (shape.key as u64 + 8);
            blocks.bytes += values as u64 * shape.value as u64;
        }
        blocks
    }

    /// Something that follows from an entry.
    fn bits(&self, run: u16, entry: u64) -> u64 {
        mix(mix(self.shape.seed ^ u64::from(run) << 48) ^ entry)
    }

    fn number(&self, run: u16, entry: u64) -> u64 {
        let spread = (5 * (u64::from(self.shape.runs) - 1)).max(1);
        entry * spread + self.bits(run, entry) % spread
    }

    fn is_delete(&self, run: u16, entry: u64) -> bool {
        (self.bits(run, entry) >> 20).is_multiple_of(20)
    }

    /// A block as it would lie in its file.
    fn block(
        &self,
        run: u16,
        block: u64,
        builder: &mut BlockBuilder,
        compressor: Option<&mut Compressor>,
    ) -> Result<BlockSlice> {
        let StreamShape { key: key_len, value, runs, seed, .. } = self.shape;
        builder.clear();
        let mut key = Vec::with_capacity(key_len + 8);
        let end = ((block + 1) * self.in_block).min(self.entries);
        for entry in block * self.in_block..end {
            let number = self.number(run, entry);
            key.clear();
            key.extend_from_slice(&number.to_be_bytes());
            let mut bits = mix(number ^ seed << 32);
            while key.len() < key_len {
                key.extend_from_slice(&bits.to_le_bytes());
                bits = mix(bits);
            }
            key.truncate(key_len);
            // A newer run has larger numbers.
            let seq = (u64::from(runs - run) << 36) + entry + 1;
            let (kind, value) = match self.is_delete(run, entry) {
                true => (Kind::Delete, &[][..]),
                false => {
                    let at = (self.bits(run, entry) >> 32) as usize % (POOL - value);
                    (Kind::Value, &self.pool[at..at + value])
                }
            };
            builder.add_entry(InternalKey { user: &key, tag: Tag::new(seq, kind) }, value);
        }
        let (entries, key_bytes) = (builder.entries() as u32, builder.raw_key_bytes());
        let mut bytes = Vec::new();
        let check = BlockCheck { kind: ChecksumKind::Xxh3, base: 0 };
        match compressor {
            None => check.append(&mut bytes, builder.finish(), 0, 0),
            Some(compressor) => {
                let mut stored = Vec::new();
                let type_byte = compressor.append(builder.finish(), &mut stored);
                check.append(&mut bytes, &stored, type_byte, 0);
            }
        }
        Ok(BlockSlice {
            bytes: Bytes::from(bytes),
            offset: 0,
            checksum: check.kind,
            modifier: 0,
            decoder: Arc::new(Decoder::rocksdb()),
            entries,
            key_bytes,
            seq: None,
        })
    }
}

impl BlockIndex for Blocks {
    fn runs(&self) -> usize {
        self.ends.len()
    }
    fn blocks(&self, run: usize) -> usize {
        self.ends[run].len()
    }
    fn last_key(&self, run: usize, block: usize) -> &[u8] {
        &self.ends[run][block]
    }
    fn first_key(&self, _run: usize, _block: usize) -> Option<&[u8]> {
        None
    }
    fn bytes(&self, _run: usize, _block: usize) -> u64 {
        let shape = &self.shape;
        self.in_block * (shape.key + 8 + shape.value + 4) as u64
    }
}

/// Nothing older is in use.
fn recipe_of(shape: StreamShape) -> Recipe {
    let in_use = vec![InUse::none(); usize::from(shape.runs)];
    Recipe { in_use, ..Recipe::new(shape.runs) }
}

/// The sets of one part.
pub struct Stream {
    /// What is to become of them: nothing older is in use.
    pub recipe: Arc<Recipe>,
    cut: CleanCut<Blocks>,
    builder: BlockBuilder,
    compressor: Option<Compressor>,
    all: u64,
}

impl Stream {
    /// A stream at its beginning.
    pub fn new(shape: StreamShape) -> Stream {
        Stream::over(Blocks::new(shape), recipe_of(shape))
    }

    /// The same with values of which each 16 bytes come twice, in blocks that are compressed with LZ4, as its output is
    /// to be. Sets have as many bytes as are asked for before they are compressed.
    ///
    /// # Errors
    /// Unsupported if there is no such codec.
    pub fn lz4(shape: StreamShape) -> Result<Stream> {
        let recipe = Recipe { codec: Codec::Lz4, ..recipe_of(shape) };
        let mut blocks = Blocks::new(shape);
        blocks.pool.chunks_exact_mut(32).for_each(|twice| twice.copy_within(..16, 16));
        let compressor = Some(Compressor::new(Codec::Lz4, 0)?);
        Ok(Stream { compressor, ..Stream::over(blocks, recipe) })
    }

    fn over(blocks: Blocks, recipe: Recipe) -> Stream {
        let cut = CleanCut::new(blocks, &JobRange::default(), bytewise());
        let all = cut.bytes_left();
        let (recipe, builder) = (Arc::new(recipe), BlockBuilder::new(16));
        Stream { recipe, cut, builder, compressor: None, all }
    }

    /// Bytes of all entries: keys, values, 8 for each tag.
    pub fn bytes(&self) -> u64 {
        self.cut.index().bytes
    }

    /// How many of its stored bytes were cut into sets, about, and how many there are.
    pub fn progress(&self) -> (u64, u64) {
        (self.all - self.cut.bytes_left(), self.all)
    }

    /// Stored bytes that no set has yet.
    pub fn bytes_left(&self) -> u64 {
        self.cut.bytes_left()
    }

    /// The next set of about so many bytes, of so many runs at most; none after the last.
    ///
    /// # Errors
    /// None but for bugs: of the block that was made.
    pub fn next_set(&mut self, bytes: u64, ways: u16) -> Result<Option<BlockSet>> {
        let Some(cut) = self.cut.next_set(bytes, ways) else { return Ok(None) };
        let mut runs = Vec::new();
        for (run, blocks) in (0u16..).zip(&cut.blocks) {
            let made: Result<Vec<BlockSlice>> = blocks
                .clone()
                .map(|block| {
                    let compressor = self.compressor.as_mut();
                    self.cut.index().block(run, block as u64, &mut self.builder, compressor)
                })
                .collect();
            runs.push(RunSlice { run, blocks: made?.into() });
        }
        Ok(Some(BlockSet { no: cut.no, keys: cut.keys, runs }))
    }
}
