//! What a transaction has written and not committed: the batch that a commit writes, and the same
//! entries in memtables, one for each column family, so that reads find them.
//!
//! Entry number n of the batch has sequence number [`OWN`] + n in its memtable: above all of the
//! database, so own writes are the newest, and an iterator that reads up to the number it was
//! made at sees the transaction as it was then.
//!
//! Keeps: batch and memtables hold the same entries. A rollback cuts the batch and builds the
//! memtables anew, because a memtable forgets nothing.
//! Leaves to others: locks and conflicts.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use lithify_base::{CfId, ComparatorRef, Error, Kind, MAX_SEQ, Result, Seq, Tag, memory};
use lithify_env::OutOfMemory;
use lithify_env::sync::Arc;
use lithify_journal::wal::{BatchMark, BatchView};
use lithify_memtable::{HeapPool, MemIter, MemTable, MemTableOptions, MemWriter};
use lithify_tree::{Batch, Mems, insert_batch};

/// Sequence numbers above this one are of uncommitted writes.
const OWN: Seq = MAX_SEQ / 2;

/// Uncommitted writes.
#[derive(Default)]
pub(crate) struct Pending {
    batch: Batch,
    /// Those of each family, from the first write to it on.
    indexes: Indexes,
}

#[derive(Default)]
struct Indexes(BTreeMap<CfId, Index>);

struct Index {
    order: ComparatorRef,
    entries: MemWriter,
}

impl Mems for Indexes {
    type Writer = MemWriter;
    fn of(&mut self, cf: CfId) -> Option<&mut MemWriter> {
        self.0.get_mut(&cf).map(|index| &mut index.entries)
    }
}

impl Pending {
    /// What a prepared transaction has written; of a family without an order no read will ask.
    ///
    /// # Errors
    /// `LimitExceeded` if there is no memory.
    pub(crate) fn of(
        batch: Batch,
        order: impl Fn(CfId) -> Option<ComparatorRef>,
    ) -> Result<Pending> {
        let indexes = Indexes::of(&batch.view(), order)?;
        Ok(Pending { batch, indexes })
    }
    /// What a commit writes.
    pub(crate) fn batch(&self) -> &Batch {
        &self.batch
    }
    /// Whether it may have entries of this family.
    pub(crate) fn names(&self, cf: CfId) -> bool {
        self.indexes.0.contains_key(&cf)
    }
    /// The newest number, which reads of own writes are made at.
    fn last(&self) -> Seq {
        OWN + self.batch.len() as u64
    }

    /// Adds one write to family `cf`, whose keys are in this order.
    ///
    /// # Errors
    /// As [`Batch`] has it, and `LimitExceeded` if there is no memory; nothing was added.
    pub(crate) fn add(
        &mut self,
        cf: CfId,
        order: impl FnOnce() -> ComparatorRef,
        kind: Kind,
        key: &[u8],
        value: &[u8],
    ) -> Result<()> {
        let index = match self.indexes.0.entry(cf) {
            Entry::Occupied(index) => index.into_mut(),
            Entry::Vacant(none) => none.insert(Index::empty(order())?),
        };
        index.entries.try_reserve(1, key.len() + value.len()).map_err(refused)?;
        match kind {
            Kind::Value => self.batch.put(cf, key, value)?,
            Kind::Delete => self.batch.delete(cf, key)?,
            Kind::SingleDelete => self.batch.single_delete(cf, key)?,
            Kind::Merge => self.batch.merge(cf, key, value)?,
            Kind::RangeDelete => unreachable!("a transaction deletes no ranges"),
        }
        index.entries.add(OWN + self.batch.len() as u64, kind, key, value);
        Ok(())
    }

    /// The own writes of `key` of a family, newest first.
    pub(crate) fn entries<'a>(
        &'a self,
        cf: CfId,
        key: &'a [u8],
    ) -> impl Iterator<Item = (Tag, &'a [u8])> {
        let index = self.indexes.0.get(&cf);
        let entries = move |index: &'a Index| index.entries.table().entries(key, self.last());
        index.into_iter().flat_map(entries)
    }
    /// A cursor over own writes to a family, and the number to read them at.
    pub(crate) fn cursor(&self, cf: CfId) -> Option<(MemIter, Seq)> {
        self.indexes.0.get(&cf).map(|index| (index.entries.table().iter(), self.last()))
    }

    /// Where the writes end now.
    pub(crate) fn mark(&self) -> BatchMark {
        self.batch.mark()
    }
    /// Forgets every write since `mark`.
    ///
    /// # Errors
    /// `LimitExceeded` if there is no memory; nothing was forgotten.
    pub(crate) fn cut(&mut self, mark: BatchMark) -> Result<()> {
        if mark == self.mark() {
            return Ok(());
        }
        let order = |cf| self.indexes.0.get(&cf).map(|index: &Index| index.order.clone());
        self.indexes = Indexes::of(&self.batch.view_to(mark), order)?;
        self.batch.truncate(mark);
        Ok(())
    }
    /// Forgets all writes.
    pub(crate) fn clear(&mut self) {
        self.batch.clear();
        self.indexes = Indexes::default();
    }
}

impl Indexes {
    /// Of the writes of `batch` to families that have an order.
    fn of(batch: &BatchView<'_>, order: impl Fn(CfId) -> Option<ComparatorRef>) -> Result<Indexes> {
        let mut room: BTreeMap<CfId, (usize, usize)> = BTreeMap::new();
        for op in batch.iter() {
            let (entries, bytes) = room.entry(op.cf).or_default();
            *entries += 1;
            *bytes += op.key.len() + op.value.len();
        }
        let mut indexes = Indexes::default();
        for (cf, (entries, bytes)) in room {
            let Some(order) = order(cf) else { continue };
            let mut index = Index::empty(order)?;
            index.entries.try_reserve(entries, bytes).map_err(refused)?;
            indexes.0.insert(cf, index);
        }
        insert_batch(&mut indexes, batch, OWN + 1);
        Ok(indexes)
    }
}

impl Index {
    fn empty(order: ComparatorRef) -> Result<Index> {
        // A filter pays for many lookups of a large table; most transactions are small.
        let options = MemTableOptions { order: order.clone(), arena_bytes: 0, bloom: false };
        let made = MemTable::try_new(options, Arc::new(HeapPool)).map_err(refused)?;
        Ok(Index { order, entries: made.1 })
    }
}

fn refused(none: OutOfMemory) -> Error {
    memory::refused("a transaction", none.bytes, &none)
}
