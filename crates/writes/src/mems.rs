//! How entries find memory and come into the memtables of their families.

use std::collections::BTreeMap;

use lithify_base::{CfId, Error, Kind, Result, Seq, memory};
use lithify_env::OutOfMemory;
use lithify_journal::wal::BatchView;
use lithify_memtable::{MemTable, MemWriter, SharedWriter};

/// Who has a write handle for a family.
pub trait Mems {
    /// The kind of handle.
    type Writer: Adds;
    /// The memtable that takes the writes to `cf`; `None` to pass over them.
    fn of(&mut self, cf: CfId) -> Option<&mut Self::Writer>;
}

/// A write handle of a memtable, or a share of one.
pub trait Adds {
    /// Adds an entry.
    fn add(&mut self, seq: Seq, kind: Kind, key: &[u8], value: &[u8]);
    /// Adds a range deletion.
    fn add_range_delete(&mut self, seq: Seq, lo: &[u8], hi: &[u8]);
}

impl Adds for MemWriter {
    #[inline]
    fn add(&mut self, seq: Seq, kind: Kind, key: &[u8], value: &[u8]) {
        MemWriter::add(self, seq, kind, key, value);
    }
    fn add_range_delete(&mut self, seq: Seq, lo: &[u8], hi: &[u8]) {
        MemWriter::add_range_delete(self, seq, lo, hi);
    }
}

impl Adds for SharedWriter {
    #[inline]
    fn add(&mut self, seq: Seq, kind: Kind, key: &[u8], value: &[u8]) {
        SharedWriter::add(self, seq, kind, key, value);
    }
    fn add_range_delete(&mut self, seq: Seq, lo: &[u8], hi: &[u8]) {
        SharedWriter::add_range_delete(self, seq, lo, hi);
    }
}

/// One memtable for everything.
impl<W: Adds> Mems for W {
    type Writer = W;
    fn of(&mut self, _: CfId) -> Option<&mut W> {
        Some(self)
    }
}

/// What batches take in the memtable of each family: entries, and bytes of their keys and values.
#[derive(Default)]
pub struct Reservation(BTreeMap<CfId, (usize, usize)>);

impl Reservation {
    /// Adds what a batch takes.
    pub fn add_batch(&mut self, batch: &BatchView<'_>) {
        let mut run: Option<(CfId, usize, usize)> = None;
        for op in batch.iter() {
            let bytes = op.key.len() + op.value.len();
            run = match run {
                Some((cf, entries, before)) if cf == op.cf => {
                    Some((cf, entries + 1, before + bytes))
                }
                other => {
                    self.add_run(other);
                    Some((op.cf, 1, bytes))
                }
            };
        }
        self.add_run(run);
    }
    fn add_run(&mut self, run: Option<(CfId, usize, usize)>) {
        if let Some((cf, entries, bytes)) = run {
            self.add(cf, entries, bytes);
        }
    }
    /// Adds so many entries of one family.
    pub fn add(&mut self, cf: CfId, entries: usize, bytes: usize) {
        let part = self.0.entry(cf).or_default();
        *part = (part.0 + entries, part.1 + bytes);
    }

    /// Sees to it that each memtable has room for its part, which is freed with it.
    ///
    /// # Errors
    /// `LimitExceeded` if there is no memory.
    pub fn reserve(&self, mems: &mut impl Mems<Writer = MemWriter>) -> Result<()> {
        for (&cf, &(entries, bytes)) in &self.0 {
            if let Some(mem) = mems.of(cf) {
                mem.try_reserve(entries, bytes).map_err(refused)?;
            }
        }
        Ok(())
    }
}

/// Memtables of so many bytes consist of whole chunks of 2 MiB or more.
const SPARING_FROM: u64 = 4 << 20;
/// Range deletions at which a memtable is full: a read looks through them all, which takes some tens of microseconds.
pub const RANGE_DELETES_MANY: u64 = 4096;
/// The most that such a memtable leaves of its last chunk.
const SPARED_MAX: u64 = 256 << 10;

/// Whether a memtable of at most so many bytes takes no more writes. One of several chunks ends a little before
/// its bytes: the next chunk would be taken, and stay, for a few writes. One with many range deletions ends, too.
#[inline]
pub fn is_full(table: &MemTable, most: u64) -> bool {
    if table.range_deletes() >= RANGE_DELETES_MANY {
        return true;
    }
    let spared = if most < SPARING_FROM { 0 } else { (most / 32).min(SPARED_MAX) };
    table.bytes() as u64 >= most - spared
}

/// The error of a memtable that finds no memory.
pub fn refused(none: OutOfMemory) -> Error {
    memory::refused("a memtable", none.bytes, &none)
}

/// Inserts a batch; also what replays a log.
pub fn insert_batch(mems: &mut impl Mems, batch: &BatchView<'_>, mut seq: Seq) -> Seq {
    for op in batch.iter() {
        if let Some(mem) = mems.of(op.cf) {
            match op.kind {
                Kind::RangeDelete => mem.add_range_delete(seq, op.key, op.value),
                kind => mem.add(seq, kind, op.key, op.value),
            }
        }
        seq += 1;
    }
    seq
}
