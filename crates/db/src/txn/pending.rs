//! What a transaction has written and not committed: the batch that a commit writes, and the same
//! entries in a memtable, so that reads find them.
//!
//! Entry number n of the batch has sequence number [`OWN`] + n in the memtable: above all of the
//! database, so own writes are the newest, and an iterator that reads up to the number it was
//! made at sees the transaction as it was then.
//!
//! Keeps: batch and memtable hold the same entries. A rollback cuts the batch and builds the
//! memtable anew, because a memtable forgets nothing.
//! Leaves to others: locks and conflicts.

use lithify_base::{ComparatorRef, Kind, MAX_SEQ, Result, Seq, Tag, memory};
use lithify_env::sync::Arc;
use lithify_format::wal::BatchMark;
use lithify_memtable::{HeapPool, MemIter, MemTable, MemTableOptions, MemWriter};

use crate::batch::WriteBatch;
use crate::write::insert_batch;

/// Sequence numbers above this one are of uncommitted writes.
const OWN: Seq = MAX_SEQ / 2;

/// Uncommitted writes.
pub(crate) struct Pending {
    batch: WriteBatch,
    /// Made when the first write comes.
    index: Option<MemWriter>,
    order: ComparatorRef,
}

impl Pending {
    pub(crate) fn new(order: ComparatorRef) -> Pending {
        Pending { batch: WriteBatch::new(), index: None, order }
    }
    /// What a commit writes.
    pub(crate) fn batch(&self) -> &WriteBatch {
        &self.batch
    }
    /// The newest number, which reads of own writes are made at.
    fn last(&self) -> Seq {
        OWN + self.batch.len() as u64
    }

    /// Adds one write: `add` puts it into the batch.
    ///
    /// # Errors
    /// Those of `add`, and `LimitExceeded` if there is no memory; nothing was added.
    pub(crate) fn add(
        &mut self,
        kind: Kind,
        key: &[u8],
        value: &[u8],
        add: impl FnOnce(&mut WriteBatch) -> Result<()>,
    ) -> Result<()> {
        if self.index.is_none() {
            self.index = Some(empty(&self.order)?);
        }
        let index = self.index.as_mut().expect("made above");
        let room = index.try_reserve(1, key.len() + value.len());
        room.map_err(|none| memory::refused("a transaction", none.bytes, &none))?;
        add(&mut self.batch)?;
        index.add(OWN + self.batch.len() as u64, kind, key, value);
        Ok(())
    }

    /// The own writes of `key`, newest first.
    pub(crate) fn entries<'a>(&'a self, key: &'a [u8]) -> impl Iterator<Item = (Tag, &'a [u8])> {
        self.index.iter().flat_map(move |index| index.table().entries(key, self.last()))
    }
    /// A cursor over own writes, and the number to read them at.
    pub(crate) fn cursor(&self) -> Option<(MemIter, Seq)> {
        self.index.as_ref().map(|index| (index.table().iter(), self.last()))
    }

    /// Where the writes end now.
    pub(crate) fn mark(&self) -> BatchMark {
        self.batch.inner.mark()
    }
    /// Forgets every write since `mark`.
    ///
    /// # Errors
    /// `LimitExceeded` if there is no memory; nothing was forgotten.
    pub(crate) fn cut(&mut self, mark: BatchMark) -> Result<()> {
        if mark == self.mark() {
            return Ok(());
        }
        let mut index = empty(&self.order)?;
        let kept = self.batch.inner.view_to(mark);
        let room = index.try_reserve(kept.count() as usize, kept.byte_len());
        room.map_err(|none| memory::refused("a transaction", none.bytes, &none))?;
        insert_batch(&mut index, &kept, OWN + 1);
        self.batch.inner.truncate(mark);
        self.index = Some(index);
        Ok(())
    }
    /// Forgets all writes.
    pub(crate) fn clear(&mut self) {
        self.batch.clear();
        self.index = None;
    }
}

fn empty(order: &ComparatorRef) -> Result<MemWriter> {
    // A filter pays for many lookups of a large table; most transactions are small.
    let options = MemTableOptions { order: order.clone(), arena_bytes: 0, bloom: false };
    let made = MemTable::try_new(options, Arc::new(HeapPool));
    made.map(|(_, writer)| writer)
        .map_err(|none| memory::refused("a transaction", none.bytes, &none))
}
