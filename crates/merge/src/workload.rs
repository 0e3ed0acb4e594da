//! Generated compactions: seeded cases that reach every rule, for tests, benchmarks and the
//! conformance suite of engines.
//!
//! Keeps: a case is a pure function of its seed. Runs obey the recency invariant: of one user
//! key, every entry of a newer run has a larger sequence number than any of an older run.

use std::borrow::Cow;
use std::panic;
use std::sync::Arc;

use lithify_base::{
    CompactionFilter, Comparator, ComparatorRef, Decision, End, Error, FilterContext, InternalKey,
    Key, KeyRange, Kind, MergeOperator, MergeOperatorRef, Result, ReverseBytewise, Seq, Tag,
    bytewise,
};
use lithify_format::block::BlockBuilder;
use lithify_format::checksum::{ChecksumKind, raw_sum};
use lithify_format::compress::{Codec, Compressor, Decoder};
use lithify_format::xxph3::xxph3_64;

use crate::cleancut::{BlockFence, CleanCut, CutSet};
use crate::naive::Entry;
use crate::recipe::{InUse, Recipe, UserFilter};
use crate::set::{BlockSet, BlockSlice, Bytes, JobRange, RunSlice};
use crate::tombstone::{Fragments, RangeTombstone};

/// A seeded source of choices (SplitMix64).
#[derive(Clone, Debug)]
pub struct Choices(u64);

impl Choices {
    /// A source that always makes the same choices for the same seed.
    pub fn new(seed: u64) -> Choices {
        Choices(seed)
    }
    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
    /// A number below `n`, which is at least 1.
    pub fn below(&mut self, n: usize) -> usize {
        (self.bits() % n.max(1) as u64) as usize
    }
    /// True once in `n`.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
    /// One of a list.
    pub fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }
    /// That many random bytes.
    pub fn bytes(&mut self, n: usize) -> Vec<u8> {
        (0..n.div_ceil(8)).flat_map(|_| self.bits().to_le_bytes()).take(n).collect()
    }
}

/// One input block and its fence.
#[derive(Clone, Debug)]
pub struct InputBlock {
    /// The block.
    pub slice: BlockSlice,
    /// What its index would say.
    pub fence: BlockFence,
}

/// A compaction: a recipe and the entries and blocks of its runs, newest run first.
#[derive(Clone, Debug)]
pub struct Case {
    /// The recipe.
    pub recipe: Arc<Recipe>,
    /// Entries of every run, in order.
    pub runs: Vec<Vec<Entry>>,
    /// Blocks of every run.
    pub blocks: Vec<Vec<InputBlock>>,
}

/// Bounds of what [`Case::generate`] makes.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Most entries per run.
    pub entries: usize,
    /// Most bytes of a value.
    pub value: usize,
}

/// What is in a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Features {
    /// Everything there is.
    All,
    /// What machines with fixed circuits or small cores take: values and deletes, keys of at most 240 bytes in
    /// byte order, no compression of the output, neither operands nor a filter of the user's.
    Device,
    /// The same without range tombstones, and with keys that go on where another one ends with the bytes of
    /// an entry's tag: the prefix that two internal keys share then reaches into the tag of the first. Random
    /// keys do not find an encoder that stops at the user key.
    TagKeys,
    /// That of a device, with values that repeat themselves, in blocks of which most are compressed with LZ4, and so is
    /// most of the output.
    Lz4,
}

/// Longest key of a case for a device, bytes.
const DEVICE_KEY: usize = 240;

impl Case {
    /// A case with everything in it: 1 to 16 runs, keys of 0 to 300 bytes, all kinds, snapshots,
    /// range tombstones, splits, odd block and file sizes, codecs and checksums.
    ///
    /// # Errors
    /// None with the codecs of a default build.
    pub fn generate(seed: u64, size: Size) -> Result<Case> {
        Case::with(seed, size, Features::All)
    }

    /// The same with these features only; equal arguments give equal cases.
    ///
    /// # Errors
    /// As [`Case::generate`].
    pub fn with(seed: u64, size: Size, features: Features) -> Result<Case> {
        let c = &mut Choices::new(seed);
        let device = features != Features::All;
        let tag_keys = features == Features::TagKeys;
        let lz4 = features == Features::Lz4;
        let backward = c.one_in(8) && !device;
        let order: ComparatorRef = if backward { Arc::new(ReverseBytewise) } else { bytewise() };
        let mut keys = key_pool(c, size.entries, &*order);
        if device {
            keys.retain(|k| k.len() <= DEVICE_KEY);
            if keys.is_empty() {
                keys.push(c.bytes(16).into());
            }
        }
        let runs = 1 + c.below(c.clone().pick(&[2, 4, 16]));
        let span = 2 * size.entries as u64 + 10;
        let mut recipe = recipe(c, order, &keys, runs as u16, span);
        let (mut entries, mut tombstones) = (Vec::new(), Vec::new());
        let density = c.below(12);
        for run in 0..runs {
            let base = (runs - run - 1) as u64 * span;
            let mut of_run = run_entries(c, &keys, run as u16, base, size);
            if device {
                of_run.retain(|e| matches!(e.tag.kind(), Some(Kind::Value | Kind::Delete)));
            }
            if lz4 {
                repeat(c, &mut of_run);
            }
            entries.push(of_run);
            if density < 3 && !tag_keys {
                for _ in 0..c.below(2 + density) {
                    let (a, b) = two(c, &keys);
                    let seq = base + 1 + c.bits() % span;
                    tombstones.push(RangeTombstone { lo: a, hi: b, seq, run: run as u16 });
                }
            }
        }
        recipe.tombstones = Fragments::from_raw(tombstones, &*recipe.order);
        if tag_keys {
            spell_tags(c, &mut recipe, &mut entries);
        }
        for run in &mut entries {
            crate::naive::sort(&recipe, run);
        }
        let blocks = entries.iter().map(|e| encode_run(c, e, lz4)).collect::<Result<_>>()?;
        recipe.operator = (!c.one_in(3)).then(|| Arc::new(Moody) as MergeOperatorRef);
        recipe.user_filter = c.one_in(3).then(|| UserFilter {
            filter: Arc::new(Picky),
            context: FilterContext { level: 3, bottommost: false, now: c.bits() % 5 },
        });
        if device {
            (recipe.codec, recipe.operator, recipe.user_filter) = (Codec::None, None, None);
        }
        if lz4 && !c.one_in(4) {
            recipe.codec = Codec::Lz4;
        }
        Ok(Case { recipe: Arc::new(recipe), runs: entries, blocks })
    }

    /// The plain case of a benchmark: distinct random keys of `key` bytes spread over `runs` runs,
    /// values of `value` bytes, uncompressed 4 KiB blocks, nothing in use.
    ///
    /// # Errors
    /// None.
    pub fn uniform(seed: u64, runs: u16, entries: usize, key: usize, value: usize) -> Result<Case> {
        let c = &mut Choices::new(seed);
        let mut recipe = Recipe::new(runs);
        recipe.in_use = vec![InUse::none(); usize::from(runs)];
        recipe.zero_seqs = false;
        let mut all = vec![Vec::new(); usize::from(runs)];
        for seq in 0..entries as u64 {
            let run = c.below(usize::from(runs));
            let tag = Tag::new(seq + 1, Kind::Value);
            let entry = Entry { key: c.bytes(key), tag, value: c.bytes(value), run: run as u16 };
            all[run].push(entry);
        }
        for run in &mut all {
            crate::naive::sort(&recipe, run);
        }
        let plain = BlockStyle { bytes: 4096, ..BlockStyle::default() };
        let blocks = all.iter().map(|e| plain.encode(e)).collect::<Result<_>>()?;
        Ok(Case { recipe: Arc::new(recipe), runs: all, blocks })
    }

    /// All entries of all runs.
    pub fn entries(&self) -> Vec<Entry> {
        self.runs.concat()
    }

    /// The sets of a clean cut with one budget.
    pub fn sets(&self, budget: u64) -> Vec<BlockSet> {
        self.sets_by(|| budget)
    }

    /// The sets of a clean cut whose budget is asked for anew each time.
    pub fn sets_by(&self, mut budget: impl FnMut() -> u64) -> Vec<BlockSet> {
        self.sets_within(|| (budget(), u16::MAX))
    }

    /// The sets of a clean cut whose budget and ways are asked for anew each time.
    pub fn sets_within(&self, mut limits: impl FnMut() -> (u64, u16)) -> Vec<BlockSet> {
        let fences: Vec<Vec<BlockFence>> =
            self.blocks.iter().map(|r| r.iter().map(|b| b.fence.clone()).collect()).collect();
        let mut cut = CleanCut::new(fences, &JobRange::default(), self.recipe.order.clone());
        let mut sets = Vec::new();
        let mut next = || {
            let (budget, ways) = limits();
            cut.next_set(budget, ways)
        };
        while let Some(set) = next() {
            sets.push(self.block_set(&set));
        }
        sets
    }

    fn block_set(&self, set: &CutSet) -> BlockSet {
        let runs = (0u16..)
            .zip(self.blocks.iter().zip(&set.blocks))
            .map(|(run, (blocks, range))| RunSlice {
                run,
                blocks: blocks[range.clone()].iter().map(|b| b.slice.clone()).collect(),
            })
            .collect();
        BlockSet { no: set.no, keys: set.keys.clone(), runs }
    }
}

/// Joins operands with their lengths, so that every grouping of any other would show; but refuses some
/// keys, panics over others, and combines some neighbours only.
struct Moody;

impl Moody {
    fn mood(bytes: &[u8]) -> u64 {
        xxph3_64(bytes) % 8
    }
}

impl MergeOperator for Moody {
    fn name(&self) -> &str {
        "moody"
    }
    fn full_merge(
        &self,
        key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Result<Vec<u8>> {
        match Moody::mood(key) {
            0 => Err(Error::invalid("a key of the wrong kind")),
            1 => panic::resume_unwind(Box::new("a panic that is not printed")),
            _ => Ok([&[u8::from(existing.is_some())], existing.unwrap_or(b""), &operands.concat()]
                .concat()),
        }
    }
    fn partial_merge(&self, _key: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        (Moody::mood(older) > 2).then(|| [older, newer].concat())
    }
}

/// Removes a third of the values, and changes as many.
struct Picky;

impl CompactionFilter for Picky {
    fn name(&self) -> &str {
        "picky"
    }
    fn filter<'a>(&self, context: &FilterContext, key: &[u8], value: &'a [u8]) -> Decision<'a> {
        match (xxph3_64(key) ^ xxph3_64(value)).wrapping_add(context.now) % 6 {
            0 | 1 => Decision::Remove,
            2 => Decision::Change(Cow::Borrowed(&value[..value.len() / 2])),
            3 => Decision::Change(Cow::Owned(key.to_vec())),
            _ => Decision::Keep,
        }
    }
}

/// Distinct keys that share prefixes, in order.
fn key_pool(c: &mut Choices, entries: usize, order: &dyn Comparator) -> Vec<Key> {
    let stem_len = c.clone().pick(&[0, 0, 1, 8, 40]);
    let stem = c.bytes(stem_len);
    let alphabet = 2 + c.below(254);
    let longest = c.pick(&[4, 16, 30, 300]);
    let mut keys: Vec<Key> = (0..1 + c.below(entries.max(1)))
        .map(|_| {
            let n = c.below(longest + 1);
            let mut k = stem.clone();
            k.extend(c.bytes(n).into_iter().map(|b| (usize::from(b) % alphabet) as u8));
            k.into()
        })
        .collect();
    if stem.is_empty() && c.one_in(4) {
        keys.push(Vec::new().into());
    }
    keys.sort_by(|a, b| order.compare(a, b));
    keys.dedup();
    keys
}

fn two(c: &mut Choices, keys: &[Key]) -> (Key, Key) {
    let (a, b) = (c.below(keys.len()), c.below(keys.len()));
    (keys[a.min(b)].clone(), keys[a.max(b)].clone())
}

/// Sorted, disjoint ranges with ends among the keys.
fn ranges(c: &mut Choices, keys: &[Key]) -> Vec<KeyRange> {
    let n = 2 * c.below(4);
    let mut at: Vec<usize> = (0..n).map(|_| c.below(keys.len())).collect();
    at.sort_unstable();
    at.dedup();
    at.chunks_exact(2)
        .map(|p| KeyRange {
            lo: keys[p[0]].clone(),
            hi: End { key: keys[p[1]].clone(), inclusive: c.one_in(2) },
        })
        .collect()
}

fn recipe(c: &mut Choices, order: ComparatorRef, keys: &[Key], runs: u16, span: u64) -> Recipe {
    let mut recipe = Recipe { order: order.clone(), ..Recipe::new(runs) };
    // Behind an older run lies no more than behind a newer one.
    let mut newer = InUse::All;
    for used in &mut recipe.in_use {
        newer = match (newer, c.below(4)) {
            (InUse::All, 0) => InUse::All,
            (InUse::All, 1..3) => InUse::Ranges(ranges(c, keys)),
            (InUse::Ranges(mut list), 0) => {
                list.pop();
                InUse::Ranges(list)
            }
            (same @ InUse::Ranges(_), 1..3) => same,
            _ => InUse::none(),
        };
        used.clone_from(&newer);
    }
    let top = u64::from(runs) * span;
    let many = c.clone().pick(&[0, 1, 4]);
    let mut snapshots: Vec<Seq> = (0..c.below(many + 1)).map(|_| c.bits() % top).collect();
    snapshots.sort_unstable();
    snapshots.dedup();
    recipe.snapshots = snapshots;
    let splits = |c: &mut Choices| {
        let n = c.pick(&[0, 0, 1, 5]);
        let mut s: Vec<Key> = (0..n).map(|_| keys[c.below(keys.len())].clone()).collect();
        s.sort_by(|a, b| order.compare(a, b));
        s.dedup();
        s
    };
    recipe.hard_splits = splits(c);
    recipe.soft_splits = splits(c);
    recipe.block_bytes = 1 << (6 + c.below(8));
    recipe.file_bytes = u64::from(recipe.block_bytes) * (1 + c.below(20) as u64);
    recipe.restart_interval = c.pick(&[1, 2, 4, 8, 16]);
    recipe.codec = c.pick(&[Codec::None, Codec::None, Codec::Lz4, Codec::Snappy]);
    recipe.filter = !c.one_in(4);
    recipe.drop_tombstones = !c.one_in(4);
    recipe.zero_seqs = !c.one_in(4);
    if c.one_in(3) {
        let (lo, hi) = two(c, keys);
        let end = End { key: hi, inclusive: c.one_in(2) };
        recipe.range = JobRange {
            lo: Some(lo).filter(|_| !c.one_in(3)),
            hi: Some(end).filter(|_| !c.one_in(3)),
        };
    }
    recipe
}

/// Entries of one run with distinct sequence numbers above `base`, unsorted.
fn run_entries(c: &mut Choices, keys: &[Key], run: u16, base: Seq, size: Size) -> Vec<Entry> {
    let n = c.below(size.entries + 1);
    let plain = c.one_in(3);
    let value_max = c.pick(&[0, 10, 100, size.value]).min(size.value);
    (0..n as u64)
        .map(|i| {
            let kind = match c.below(if plain { 1 } else { 12 }) {
                0..=6 => Kind::Value,
                7 | 8 => Kind::Delete,
                9 => Kind::SingleDelete,
                _ => Kind::Merge,
            };
            let len = if kind.is_delete() { 0 } else { c.below(value_max + 1) };
            Entry {
                key: keys[c.below(keys.len())].to_vec(),
                tag: Tag::new(base + 1 + i, kind),
                value: c.bytes(len),
                run,
            }
        })
        .collect()
}

/// Has half of all keys go on from the key of some entry with bytes of its tag, as it is or as D4 leaves it, and
/// sequence numbers differ in their upper bytes alone. Numbers keep their order, so runs keep theirs.
fn spell_tags(c: &mut Choices, recipe: &mut Recipe, runs: &mut [Vec<Entry>]) {
    let stride = c.pick(&[1, 1 << 8, 1 << 16]);
    recipe.snapshots.iter_mut().for_each(|seq| *seq *= stride);
    runs.iter_mut().flatten().for_each(|e| e.tag = e.tag.with_seq(e.tag.seq() * stride));
    let mut known: Vec<(Vec<u8>, Tag)> = Vec::new();
    for e in runs.iter_mut().flatten() {
        if !known.is_empty() && c.one_in(2) {
            let (mut key, tag) = known[c.below(known.len())].clone();
            let tag = if c.one_in(3) { Tag(tag.0 & 0xff) } else { tag };
            key.extend_from_slice(&tag.0.to_le_bytes()[..1 + c.below(8)]);
            let more = c.pick(&[0, 0, 1, 3]);
            key.extend(c.bytes(more));
            if key.len() <= DEVICE_KEY {
                e.key = key;
            }
        }
        known.push((e.key.clone(), e.tag));
    }
}

/// Gives values repetitions of all lengths, near and far, beside bytes that have none.
fn repeat(c: &mut Choices, run: &mut [Entry]) {
    let lengths = c.pick(&[[1, 4, 9], [20, 60, 300], [300, 1000, 3000]]);
    let mut seen: Vec<Vec<u8>> = Vec::new();
    for e in run.iter_mut().filter(|e| !e.tag.kind().is_some_and(Kind::is_delete)) {
        let most = c.pick(&lengths);
        let len = c.below(most + 1);
        e.value = match c.below(5) {
            0 => c.bytes(len),
            1 => vec![c.bits() as u8; len],
            2 => c.bytes(len).into_iter().map(|b| b % 3).collect(),
            3 if !seen.is_empty() => seen[c.below(seen.len())].clone(),
            _ => {
                let period = 1 + c.below(24);
                c.bytes(period).into_iter().cycle().take(len).collect()
            }
        };
        seen.push(e.value.clone());
    }
}

/// How the blocks of an input run are made.
#[derive(Clone, Copy, Debug)]
pub struct BlockStyle {
    /// A block ends when its encoding reaches this many bytes.
    pub bytes: usize,
    /// Entries per restart point.
    pub restart_interval: u32,
    /// Compression.
    pub codec: Codec,
    /// Checksum.
    pub checksum: ChecksumKind,
    /// Context modifier of the first block; later blocks count up from it.
    pub modifier: u32,
}

impl Default for BlockStyle {
    fn default() -> BlockStyle {
        BlockStyle {
            bytes: 4096,
            restart_interval: 16,
            codec: Codec::None,
            checksum: ChecksumKind::Xxh3,
            modifier: 0,
        }
    }
}

fn encode_run(c: &mut Choices, entries: &[Entry], lz4: bool) -> Result<Vec<InputBlock>> {
    let mut style = BlockStyle {
        bytes: c.pick(&[1, 100, 1000, 4096]),
        restart_interval: c.pick(&[1, 4, 16]),
        codec: c.pick(&[Codec::None, Codec::None, Codec::Lz4, Codec::Snappy]),
        checksum: c.pick(&[ChecksumKind::Xxh3, ChecksumKind::Crc32c, ChecksumKind::XxHash64]),
        modifier: c.bits() as u32,
    };
    if lz4 {
        style.bytes = c.pick(&[100, 1000, 4096, 16 << 10]);
        style.codec = c.pick(&[Codec::Lz4, Codec::Lz4, Codec::Lz4, style.codec]);
        style.checksum = c.pick(&[ChecksumKind::Xxh3, ChecksumKind::Xxh3, style.checksum]);
    }
    style.encode(entries)
}

impl BlockStyle {
    /// Encodes a sorted run.
    ///
    /// # Errors
    /// Unsupported for a codec this build does not write.
    pub fn encode(&self, entries: &[Entry]) -> Result<Vec<InputBlock>> {
        let mut compressor = Compressor::new(self.codec, 0)?;
        let decoder = Arc::new(Decoder::rocksdb());
        let mut builder = BlockBuilder::new(self.restart_interval);
        let mut file = Vec::new();
        let mut found = Vec::new();
        for (i, e) in entries.iter().enumerate() {
            builder.add_entry(InternalKey { user: &e.key, tag: e.tag }, &e.value);
            if builder.size() < self.bytes && i + 1 < entries.len() {
                continue;
            }
            let start = file.len();
            let modifier = self.modifier.wrapping_add(start as u32);
            let count = builder.entries() as u32;
            let key_bytes = builder.raw_key_bytes();
            let type_byte = compressor.append(builder.finish(), &mut file);
            let sum = raw_sum(self.checksum, &file[start..], type_byte).wrapping_add(modifier);
            file.push(type_byte);
            file.extend_from_slice(&sum.to_le_bytes());
            // As where a file begins: the first block's first key is known, and that of some others.
            let first = &entries[i + 1 - count as usize].key;
            let first_key = (found.len() % 4 == 0).then(|| Key::from(&first[..]));
            found.push((start..file.len(), modifier, count, key_bytes, first_key, &e.key[..]));
            builder.clear();
        }
        let file = Bytes::from(file);
        let mut blocks = Vec::new();
        for (range, modifier, entries, key_bytes, first_key, last_key) in found {
            let bytes = range.len() as u64;
            let slice = BlockSlice {
                offset: range.start as u64,
                bytes: file.slice(range)?,
                checksum: self.checksum,
                modifier,
                decoder: decoder.clone(),
                entries,
                key_bytes,
                seq: None,
            };
            let fence = BlockFence { first_key, last_key: last_key.into(), bytes };
            blocks.push(InputBlock { slice, fence });
        }
        Ok(blocks)
    }
}
