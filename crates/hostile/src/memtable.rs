//! The safe interface of the memtable, called with whatever lengths the bytes say: what it was given is
//! what its twin has, and memory that is not there is refused.
//!
//! An input is a list of calls, each a byte that says which, and what it takes. Lengths are powers of
//! two, and multiples of 2^k near the end of their range, so that every sum of sizes gets near to
//! where it wraps around.

use std::sync::Arc;

use lithify_base::{ComparatorRef, Kind, MAX_SEQ, ReverseBytewise, Seq, Tag, bytewise};
use lithify_env::OutOfMemory;
use lithify_memtable::naive::Naive;
use lithify_memtable::{
    ArenaChunk, ArenaPool, Audit, HeapPool, MemTable, MemTableOptions, MemWriter, SharedWriter,
};

/// Longest chunk that there is memory for.
const CHUNK_MAX: usize = 128 << 10;
/// Most calls of one input.
const CALLS_MAX: usize = 400;
/// Bytes that all shares of an input take at most.
const SHARES_BYTES: usize = 512 << 10;
/// Most shares about at once.
const SHARES_MAX: usize = 4;

/// Heap memory in short chunks.
struct Small;

impl ArenaPool for Small {
    fn chunk(&self, bytes: usize) -> Result<Box<dyn ArenaChunk>, OutOfMemory> {
        if bytes > CHUNK_MAX { Err(OutOfMemory { bytes }) } else { HeapPool.chunk(bytes) }
    }
    fn granule(&self) -> usize {
        64
    }
}

/// What is left of the input.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }
    /// Any length: small, a power of two, near the largest, or near what a multiple of wraps around.
    fn length(&mut self) -> Option<usize> {
        let (kind, low) = (self.byte()?, usize::from(self.byte()?));
        let shift = u32::from(kind >> 2) % usize::BITS;
        Some(match kind & 3 {
            0 => low,
            1 => (1 << shift) + low,
            2 => usize::MAX >> shift.min(usize::BITS / 2),
            _ => (usize::MAX / (low + 1)).wrapping_sub(shift as usize),
        })
    }
    /// Up to 31 bytes of the input, or one byte many times.
    fn text(&mut self) -> Option<Vec<u8>> {
        let len = usize::from(self.byte()?);
        if len >= 224 {
            return Some(vec![self.byte()?; (len - 223) * 40]);
        }
        let (text, rest) = self.0.split_at((len % 32).min(self.0.len()));
        self.0 = rest;
        Some(text.to_vec())
    }
}

/// A table, its writers and its twin.
struct Pair {
    table: Arc<MemTable>,
    writer: MemWriter,
    twin: Naive,
    /// With the entries and bytes that each may still take.
    shares: Vec<(SharedWriter, usize, usize)>,
    /// Bytes that are left to more of them.
    room: usize,
    seq: Seq,
}

pub(crate) fn calls(bytes: &[u8]) {
    let mut input = Input(bytes);
    let Some(first) = input.byte() else { return };
    let order: ComparatorRef = if first & 1 == 0 { bytewise() } else { Arc::new(ReverseBytewise) };
    let arena_bytes = if first & 2 == 0 { 4096 } else { input.length().unwrap_or(usize::MAX) };
    let options = MemTableOptions { order: order.clone(), arena_bytes, bloom: first & 4 == 0 };
    let Ok((table, writer)) = MemTable::try_new(options, Arc::new(Small)) else { return };
    let (twin, shares) = (Naive::new(order), Vec::new());
    let mut pair = Pair { table, writer, twin, shares, room: SHARES_BYTES, seq: 0 };
    for _ in 0..CALLS_MAX {
        if pair.call(&mut input).is_none() {
            break;
        }
    }
    pair.end();
}

impl Pair {
    /// One call; `None` once the input is used up.
    fn call(&mut self, input: &mut Input<'_>) -> Option<()> {
        match input.byte()? % 8 {
            0 if self.shares.is_empty() => {
                let _ = self.writer.try_reserve(input.length()?, input.length()?);
            }
            1 => self.share(input.length()?, input.length()?),
            2 if !self.shares.is_empty() => {
                let at = usize::from(input.byte()?) % self.shares.len();
                self.writer.take_back(self.shares.swap_remove(at).0);
            }
            3 => {
                let (key, at) = (input.text()?, u64::from(input.byte()?));
                self.look(&key, at);
            }
            4 => {
                let (lo, hi) = (input.text()?, input.text()?);
                self.seq += 1;
                self.writer.add_range_delete(self.seq, &lo, &hi);
                self.twin.add_range_delete(self.seq, &lo, &hi);
            }
            _ => {
                let (key, value) = (input.text()?, input.text()?);
                self.add(&key, &value, input.byte()?);
            }
        }
        Some(())
    }

    fn share(&mut self, entries: usize, bytes: usize) {
        // What there may be memory for is limited; what there is none for is always asked.
        let wanted = entries.saturating_mul(32).saturating_add(bytes);
        let counts = wanted < 2 * CHUNK_MAX;
        if self.shares.len() == SHARES_MAX || (counts && wanted > self.room) {
            return;
        }
        if counts {
            self.room -= wanted;
        }
        // The first memory of a table is taken whether the share is to be had or not.
        if self.shares.is_empty() && self.writer.try_reserve(0, 0).is_err() {
            return;
        }
        let before = self.table.reserved_bytes();
        match self.writer.share(entries, bytes) {
            Ok(share) => {
                assert!(bytes <= CHUNK_MAX && entries <= CHUNK_MAX, "({entries}, {bytes})");
                self.shares.push((share, entries, bytes));
            }
            Err(_) => assert_eq!(self.table.reserved_bytes(), before),
        }
    }

    /// By a share that has room for it, or by the one writer.
    fn add(&mut self, key: &[u8], value: &[u8], how: u8) {
        let (bytes, seq) = (key.len() + value.len(), self.seq + 1);
        let kind = if how & 1 == 0 { Kind::Value } else { Kind::Delete };
        let count = self.shares.len();
        if count == 0 {
            if self.writer.try_reserve(1, bytes).is_err() {
                return;
            }
            self.writer.add(seq, kind, key, value);
        } else {
            let (share, entries, left) = &mut self.shares[usize::from(how >> 1) % count];
            if *entries == 0 || *left < bytes {
                return;
            }
            (*entries, *left) = (*entries - 1, *left - bytes);
            share.add(seq, kind, key, value);
        }
        self.seq = seq;
        self.twin.add(seq, kind, key, value);
        self.look(key, seq);
    }

    /// The versions of a key up to a number, and what is near it.
    fn look(&self, key: &[u8], at: Seq) {
        let found: Vec<_> = self.table.entries(key, at).collect();
        assert_eq!(found, self.twin.versions(key, at).collect::<Vec<_>>());
        assert_eq!(self.table.get_newest(key, at), found.first().copied());
        assert_eq!(self.table.covering(key, at), self.twin.covering(key, at));
        let mut iter = self.table.iter();
        let mut sought = |back| {
            match back {
                true => iter.seek_for_prev(key, Tag::seek(at)),
                false => iter.seek(key, Tag::seek(at)),
            }
            let entry = |i: &lithify_memtable::MemIter| {
                (i.user_key().to_vec(), i.tag(), i.value().to_vec())
            };
            iter.valid().then(|| entry(&iter))
        };
        assert_eq!(sought(false), self.twin.seek(key, Tag::seek(at)));
        assert_eq!(sought(true), self.twin.seek_for_prev(key, Tag::seek(at)));
    }

    /// All of it, forward and as a flush takes it.
    fn end(mut self) {
        for (share, ..) in self.shares.drain(..) {
            self.writer.take_back(share);
        }
        let table = self.writer.freeze();
        let mut audit = Audit::default();
        let mut all = self.twin.all();
        for (key, tag, value) in table.walk() {
            assert_eq!(Some((key, tag, value)), all.next());
            audit.take(key, tag, value.len());
        }
        assert!(all.next().is_none(), "an entry is missing");
        audit.settle(&table).expect("what was given");
        assert!(table.last_seq().is_none_or(|last| last <= self.seq && last <= MAX_SEQ));
        assert!(table.reserved_bytes() >= table.bytes());
    }
}
