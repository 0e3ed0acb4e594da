//! Staging: a block set becomes blocks side by side, with what is known of each.
//!
//! Keeps: what is staged is what the files hold. Blocks with XXH3 that are plain, or compressed with LZ4, go as they are
//! and are verified, and decoded, on the device; all others are verified, decompressed and, where their form is odd,
//! written anew here. Figures that a file states, and sizes that a block announces, are only believed as far as they
//! are possible.
//! Leaves to others: what the entries are, and whether they are in order.

use std::borrow::Cow;

use lithify_base::{Error, ErrorKind, Result};
use lithify_format::block::{BlockBuilder, BlockIter};
use lithify_format::checksum::{ChecksumKind, raw_sum};
use lithify_format::compress::Codec;
use lithify_format::limits::{LZ4_RATIO, MAX_BLOCK, plain_max};
use lithify_format::varint;
use lithify_merge::products::TRAILER;
use lithify_merge::{BlockSet, BlockSlice, Bytes, CleanRange};

use crate::layout::{BlockIn, NO_SEQ, RunIn};

/// Bits of a block's footer word: number of restart points, and a hint without meaning here.
const PLAIN_FOOTER: u32 = ((1 << 28) - 1) | (1 << 29);
/// Restart interval of blocks that are written anew.
const RESTARTS: u32 = 16;
/// Alignment of blocks in the input.
const ALIGN: usize = 16;
/// Most records of a set: their numbers have 32 bits.
const RECORDS_MOST: u64 = 1 << 31;

/// A block that the host copies, with its trailer.
enum Piece {
    /// As it was read.
    Read(Bytes),
    /// As it was normalised.
    Made(Vec<u8>),
}

impl Piece {
    fn bytes(&self) -> &[u8] {
        match self {
            Piece::Read(bytes) => bytes.as_slice(),
            Piece::Made(bytes) => bytes,
        }
    }
}

/// A stretch of the input.
enum Stretch {
    /// Blocks that the device copies from where they were read: they lie side by side there, and in the input as well.
    Sent(Bytes),
    /// Blocks that the host copies, each with its place.
    Copied(Vec<(usize, Piece)>),
}

/// Where a stretch goes: to this place of the input, from so many bytes of an arena, or from where it lies.
pub(crate) enum Way {
    Arena(usize),
    Sent(Bytes),
}

/// A set, ready to be copied.
pub(crate) struct Staged {
    /// The keys that it is about.
    pub(crate) keys: CleanRange,
    /// The input, in order, each with where it begins.
    stretches: Vec<(usize, Stretch)>,
    /// Bytes of it that the host copies.
    pub(crate) copied: usize,
    /// By block, what the device is told.
    pub(crate) blocks: Vec<BlockIn>,
    /// By run that has blocks, newest first. Records are counted once all blocks are.
    pub(crate) runs: Vec<RunIn>,
    /// Bytes of the input.
    pub(crate) bytes: usize,
    /// Bytes of the payloads that are decoded on the device, side by side.
    pub(crate) plain: u64,
    /// Bytes of all payloads, none compressed.
    pub(crate) payload: u64,
    /// Blocks of which the file does not say how many entries they have.
    pub(crate) uncounted: bool,
    /// Blocks that are decoded on the device.
    pub(crate) decoded: u64,
    /// Blocks that were normalised.
    pub(crate) normalised: u64,
}

/// The last word of a block's payload, and its type byte.
type End = [u8; 5];

/// How a block ends; none if it is shorter than its trailer.
fn end(block: &BlockSlice) -> Option<End> {
    const LONG: usize = 4 + TRAILER;
    let stored = block.bytes.as_slice();
    match stored.last_chunk::<LONG>() {
        Some([a, b, c, d, type_byte, ..]) => Some([*a, *b, *c, *d, *type_byte]),
        // Too short for a footer: a word that no plain one has.
        None => {
            Some([u8::MAX, u8::MAX, u8::MAX, u8::MAX, *stored.last_chunk::<TRAILER>()?.first()?])
        }
    }
}

/// How a block goes to the device.
enum Form {
    /// As it was read, not compressed.
    Plain,
    /// As it was read, compressed with LZ4 from so many bytes.
    Lz4(u32),
    /// Normalised.
    Odd,
}

impl Form {
    /// That of a block that ends so.
    fn of(block: &BlockSlice, end: End) -> Form {
        let [word @ .., type_byte] = end;
        match Codec::from_u8(type_byte) {
            _ if block.checksum != ChecksumKind::Xxh3 => Form::Odd,
            Some(Codec::None) if is_plain(&word) => Form::Plain,
            Some(Codec::Lz4 | Codec::Lz4hc) if block.decoder.dictionary_bytes() == 0 => {
                let stored = block.bytes.as_slice();
                Form::of_lz4(stored.get(..stored.len() - TRAILER).unwrap_or_default())
            }
            _ => Form::Odd,
        }
    }

    /// Every encoder of LZ4 ends a block with five literals at least, so its footer can be seen here. What a block of
    /// another encoder seems to be costs time only: the device refuses a form that it does not take.
    fn of_lz4(payload: &[u8]) -> Form {
        match varint::get_u32(payload) {
            Some((size, body)) if is_plain(body) && possible(size, payload.len()) => {
                Form::Lz4(size)
            }
            _ => Form::Odd,
        }
    }
}

/// Entries and bytes of user keys as a block's file states them, if a payload of `len` bytes may have so many. An entry has three
/// lengths, and an internal key of eight bytes at least, of which a few may stand for all.
fn possible_counts(block: &BlockSlice, len: u32) -> Option<(u32, u32)> {
    let (entries, key_bytes) = (u64::from(block.entries), block.key_bytes);
    let user_bytes = key_bytes.checked_sub(8 * entries)?;
    let possible = entries > 0 && 3 * entries <= u64::from(len) && key_bytes <= MAX_BLOCK as u64;
    if possible { Some((block.entries, u32::try_from(user_bytes).ok()?)) } else { None }
}

/// Whether `stored` bytes of LZ4 may become `size`.
fn possible(size: u32, stored: usize) -> bool {
    let size = size as usize;
    size <= stored.saturating_mul(LZ4_RATIO) && size <= plain_max(stored)
}

/// What all blocks hold together.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    /// Entries.
    pub(crate) records: u64,
    /// Bytes of user keys.
    pub(crate) heap: u64,
}

impl Staged {
    /// Stages `set`. What lies in memory that the device copies from by itself `is_lent`.
    ///
    /// # Errors
    /// Corruption of a block that is read here, or one that cannot be a block; InvalidArgument if a run comes
    /// twice.
    pub(crate) fn new(set: &BlockSet, is_lent: impl Fn(&[u8]) -> bool) -> Result<Staged> {
        let mut slices: Vec<_> = set.runs.iter().filter(|run| !run.blocks.is_empty()).collect();
        slices.sort_by_key(|run| run.run);
        if slices.windows(2).any(|w| w[0].run == w[1].run) {
            return Err(Error::invalid("a run comes twice in a set"));
        }
        let mut staged = Staged {
            keys: set.keys.clone(),
            stretches: Vec::new(),
            copied: 0,
            blocks: Vec::new(),
            runs: Vec::new(),
            bytes: 0,
            plain: 0,
            payload: 0,
            uncounted: false,
            decoded: 0,
            normalised: 0,
        };
        for slice in slices {
            // All of them first: blocks are cold, and a pass that does nothing else has many reads under way.
            let ends: Vec<Option<End>> = slice.blocks.iter().map(end).collect();
            for (block, end) in slice.blocks.iter().zip(ends) {
                let pushed = match end {
                    Some(end) => staged.push(slice.run, block, end, &is_lent),
                    None => Err(Error::corruption("block is shorter than its trailer")),
                };
                pushed.map_err(|e| e.at(block.offset))?;
            }
            staged.runs.push(RunIn { run: u64::from(slice.run), ..RunIn::default() });
        }
        Ok(staged)
    }

    fn push(
        &mut self,
        run: u16,
        block: &BlockSlice,
        end: End,
        is_lent: &dyn Fn(&[u8]) -> bool,
    ) -> Result<()> {
        let stored = block.bytes.as_slice();
        let type_byte = end[4];
        let form = Form::of(block, end);
        let (stored_at, all, modifier) = match form {
            Form::Odd => {
                let made = normalised(block)?;
                let all = made.len();
                (self.copy(Piece::Made(made)), all, 0)
            }
            Form::Plain | Form::Lz4(_) => {
                (self.put(&block.bytes, is_lent), stored.len(), block.modifier)
            }
        };
        let stored_at = stored_at as u64;
        let stored = u32::try_from(all - TRAILER).map_err(|_| {
            Error::new(ErrorKind::LimitExceeded, "a block is larger than a device takes")
        })?;
        let (at, len, codec) = match form {
            Form::Lz4(size) => (self.plain, size, u32::from(type_byte)),
            Form::Plain | Form::Odd => (stored_at, stored, 0),
        };
        let counts = possible_counts(block, len);
        self.uncounted |= counts.is_none();
        let (entries, key_bytes) = counts.unwrap_or_default();
        self.blocks.push(BlockIn {
            at,
            len,
            stored_at,
            stored,
            codec,
            modifier,
            seq: block.seq.unwrap_or(NO_SEQ),
            run: run.into(),
            entries,
            key_bytes,
            ..BlockIn::default()
        });
        self.payload += u64::from(len);
        match form {
            Form::Lz4(size) => {
                self.decoded += 1;
                self.plain = (self.plain + u64::from(size)).next_multiple_of(ALIGN as u64);
            }
            Form::Odd => self.normalised += 1,
            Form::Plain => {}
        }
        Ok(())
    }

    /// Gives a block as it was read its place; says where that is.
    fn put(&mut self, bytes: &Bytes, is_lent: &dyn Fn(&[u8]) -> bool) -> usize {
        // Behind the one before, if it lies there in memory as well: one copy for both, and lent as that one is.
        if let Some((from, Stretch::Sent(before))) = self.stretches.last_mut() {
            let at = *from + before.len();
            if before.join(bytes) {
                self.bytes = at + bytes.len();
                return at;
            }
        }
        if !is_lent(bytes.as_slice()) {
            return self.copy(Piece::Read(bytes.clone()));
        }
        let at = self.bytes.next_multiple_of(ALIGN);
        self.stretches.push((at, Stretch::Sent(bytes.clone())));
        self.bytes = at + bytes.len();
        at
    }

    /// Gives a block that the host copies its place; says where that is.
    fn copy(&mut self, piece: Piece) -> usize {
        let len = piece.bytes().len();
        let at = self.bytes.next_multiple_of(ALIGN);
        if !matches!(self.stretches.last(), Some((_, Stretch::Copied(_)))) {
            self.stretches.push((at, Stretch::Copied(Vec::new())));
        }
        if let Some((from, Stretch::Copied(pieces))) = self.stretches.last_mut() {
            pieces.push((at - *from, piece));
            // As the arena has them, with what lies between.
            self.copied += at + len - self.bytes.max(*from);
        }
        self.bytes = at + len;
        at
    }

    /// The stretches of the input: where each goes, and from where. Those that the host copies lie in an arena one after
    /// the other, which [`Staged::fill`] fills.
    pub(crate) fn ways(&self) -> impl Iterator<Item = (usize, Way)> {
        self.stretches.iter().map(|(at, stretch)| match stretch {
            Stretch::Sent(bytes) => (*at, Way::Sent(bytes.clone())),
            Stretch::Copied(pieces) => (*at, Way::Arena(length(pieces))),
        })
    }

    /// Copies what the host copies to its places; `to` has [`Staged::copied`] bytes.
    pub(crate) fn fill(&self, mut to: &mut [u8]) {
        for (_, stretch) in &self.stretches {
            let Stretch::Copied(pieces) = stretch else { continue };
            let Some((part, rest)) = to.split_at_mut_checked(length(pieces)) else { return };
            for (at, piece) in pieces {
                let bytes = piece.bytes();
                if let Some(place) = part.get_mut(*at..at + bytes.len()) {
                    place.copy_from_slice(bytes);
                }
            }
            to = rest;
        }
    }

    /// Lets go of the blocks, which are copied, or are the device's to hold.
    pub(crate) fn forget(&mut self) {
        self.stretches = Vec::new();
    }

    /// Takes the counts that the device made: entries and user key bytes of each block.
    pub(crate) fn take_counts(&mut self, words: &[u64]) {
        // Fewer than a block has bytes: they were held against that.
        let count = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        for (block, counts) in self.blocks.iter_mut().zip(words.chunks_exact(2)) {
            (block.entries, block.key_bytes) = (count(counts[0]), count(counts[1]));
        }
        self.uncounted = false;
    }

    /// Gives every block and run its records and its place for keys.
    ///
    /// # Errors
    /// LimitExceeded if there are too many.
    pub(crate) fn place(&mut self) -> Result<Totals> {
        let mut totals = Totals::default();
        let mut blocks = self.blocks.iter_mut().peekable();
        // Blocks lie by run, in the order of runs.
        for run in &mut self.runs {
            run.first = totals.records;
            while let Some(block) = blocks.next_if(|block| u64::from(block.run) == run.run) {
                // More than fit are refused below.
                block.first = u32::try_from(totals.records).unwrap_or(u32::MAX);
                block.heap_at = totals.heap;
                totals.records += u64::from(block.entries);
                totals.heap += u64::from(block.key_bytes);
            }
            run.count = totals.records - run.first;
        }
        if totals.records >= RECORDS_MOST {
            return Err(Error::new(
                ErrorKind::LimitExceeded,
                "a set has more entries than a device takes",
            ));
        }
        Ok(totals)
    }
}

/// Bytes from the first of these pieces to the end of the last.
fn length(pieces: &[(usize, Piece)]) -> usize {
    pieces.last().map_or(0, |(at, piece)| at + piece.bytes().len())
}

/// True if a payload has neither a hash index nor values apart.
fn is_plain(payload: &[u8]) -> bool {
    payload.last_chunk::<4>().is_some_and(|word| u32::from_le_bytes(*word) & !PLAIN_FOOTER == 0)
}

/// A block with the same entries, plain and summed by XXH3.
fn normalised(block: &BlockSlice) -> Result<Vec<u8>> {
    let payload = block.plain()?;
    let mut bytes = match is_plain(&payload) {
        true => payload.into_owned(),
        false => rewritten(payload)?,
    };
    let sum = raw_sum(ChecksumKind::Xxh3, &bytes, 0);
    bytes.push(0);
    bytes.extend_from_slice(&sum.to_le_bytes());
    Ok(bytes)
}

/// The entries of a payload in the usual form.
fn rewritten(payload: Cow<'_, [u8]>) -> Result<Vec<u8>> {
    let mut it = BlockIter::new(payload)?;
    let mut builder = BlockBuilder::new(RESTARTS);
    let mut more = it.seek_to_first()?;
    let mut keys = 0;
    while more {
        keys += it.key().len();
        if it.key().len() < 8 || keys > MAX_BLOCK {
            return Err(Error::corruption("a block entry does not parse"));
        }
        builder.add(it.key(), it.value());
        more = it.next()?;
    }
    Ok(builder.finish().to_vec())
}
