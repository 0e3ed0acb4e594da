//! What a group is made of: the caller's own write, borrowed, and batches that others queued; and how
//! their entries find memory and come into the memtables of their families.

use std::collections::BTreeMap;

use lithify_base::{CfId, Error, Kind, Result, Seq, memory};
use lithify_env::OutOfMemory;
use lithify_env::sync::Arc;
use lithify_format::wal::{BatchBuilder, BatchView};
use lithify_memtable::{MemWriter, SharedWriter};

use super::Log;
use crate::turn::Waiter;

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

impl Mems for Log {
    type Writer = MemWriter;
    #[inline]
    fn of(&mut self, cf: CfId) -> Option<&mut MemWriter> {
        let at = self.at(cf)?;
        self.families.get_mut(at).map(|f| &mut f.mem)
    }
}

/// The caller's own write, borrowed.
#[derive(Clone, Copy)]
pub(crate) enum Own<'a> {
    Put {
        cf: CfId,
        key: &'a [u8],
        value: &'a [u8],
    },
    Delete {
        cf: CfId,
        key: &'a [u8],
    },
    Batch(&'a BatchBuilder),
    /// Nothing to write: the log is to be synced.
    Sync,
    /// The write was queued and is in the waiter.
    Queued(&'a Waiter<Log>),
}

impl<'a> Own<'a> {
    pub(super) fn byte_len(&self) -> usize {
        match self {
            Own::Put { key, value, .. } => key.len() + value.len(),
            Own::Delete { key, .. } => key.len(),
            Own::Batch(b) => b.byte_len(),
            Own::Queued(w) => w.batch.byte_len(),
            Own::Sync => 0,
        }
    }
    /// At most so many entries.
    pub(super) fn entries(&self) -> usize {
        match self {
            Own::Put { .. } | Own::Delete { .. } => 1,
            Own::Batch(b) => b.count() as usize,
            Own::Queued(w) => w.batch.count() as usize,
            Own::Sync => 0,
        }
    }
    pub(super) fn batch(self) -> Option<&'a BatchBuilder> {
        match self {
            Own::Batch(b) => Some(b),
            Own::Queued(w) => Some(&w.batch),
            Own::Put { .. } | Own::Delete { .. } | Own::Sync => None,
        }
    }
    /// The family of a single write.
    pub(super) fn cf(self) -> Option<CfId> {
        match self {
            Own::Put { cf, .. } | Own::Delete { cf, .. } => Some(cf),
            Own::Batch(_) | Own::Queued(_) | Own::Sync => None,
        }
    }
    /// # Errors
    /// `LimitExceeded` if there is no memory for it.
    pub(super) fn to_batch(self) -> Result<BatchBuilder> {
        let mut batch = BatchBuilder::new();
        batch.try_reserve(self.entries(), self.byte_len())?;
        self.add_to(&mut batch);
        Ok(batch)
    }
    pub(super) fn add_to(self, batch: &mut BatchBuilder) {
        match self {
            Own::Put { cf, key, value } => batch.put(cf, key, value),
            Own::Delete { cf, key } => batch.delete(cf, key),
            Own::Batch(b) => batch.append(b),
            Own::Queued(w) => batch.append(&w.batch),
            Own::Sync => {}
        }
    }
    /// Inserts into the memtables from sequence number `seq` on; the number after.
    #[inline(always)]
    pub(super) fn insert(self, mems: &mut impl Mems, seq: Seq) -> Seq {
        let (cf, kind, key, value) = match self {
            Own::Put { cf, key, value } => (cf, Kind::Value, key, value),
            Own::Delete { cf, key } => (cf, Kind::Delete, key, &[][..]),
            Own::Batch(b) => return insert_batch(mems, &b.view(), seq),
            Own::Queued(w) => return insert_batch(mems, &w.batch.view(), seq),
            Own::Sync => return seq,
        };
        let mem = mems.of(cf).expect("the family was there when the group began");
        mem.add(seq, kind, key, value);
        seq + 1
    }
}

/// Sees to it that a group finds memory, before anything of it exists.
///
/// # Errors
/// `LimitExceeded` if there is none.
pub(super) fn reserve(log: &mut Log, own: Own<'_>, peers: &[Arc<Waiter<Log>>]) -> Result<()> {
    let (mut entries, mut bytes) = (own.entries(), own.byte_len());
    for peer in peers {
        entries += peer.batch.count() as usize;
        bytes += peer.batch.byte_len();
    }
    log.group.clear();
    log.group.try_reserve(entries, bytes)?;
    if log.is_alone() {
        return log.families[0].mem.try_reserve(entries, bytes).map_err(refused);
    }
    let mut reservation = Reservation::default();
    for batch in peers.iter().map(|peer| &peer.batch).chain(own.batch()) {
        reservation.add_batch(&batch.view());
    }
    if let Some(cf) = own.cf() {
        reservation.add(cf, own.entries(), own.byte_len());
    }
    reservation.reserve(log)
}

fn refused(none: OutOfMemory) -> Error {
    memory::refused("a memtable", none.bytes, &none)
}

/// What batches take in the memtable of each family: entries, and bytes of their keys and values.
#[derive(Default)]
pub(crate) struct Reservation(BTreeMap<CfId, (usize, usize)>);

impl Reservation {
    pub(crate) fn add_batch(&mut self, batch: &BatchView<'_>) {
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
    fn add(&mut self, cf: CfId, entries: usize, bytes: usize) {
        let part = self.0.entry(cf).or_default();
        *part = (part.0 + entries, part.1 + bytes);
    }

    /// Sees to it that each memtable has room for its part, which is freed with it.
    ///
    /// # Errors
    /// `LimitExceeded` if there is no memory.
    pub(crate) fn reserve(&self, mems: &mut impl Mems<Writer = MemWriter>) -> Result<()> {
        for (&cf, &(entries, bytes)) in &self.0 {
            if let Some(mem) = mems.of(cf) {
                mem.try_reserve(entries, bytes).map_err(refused)?;
            }
        }
        Ok(())
    }
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
