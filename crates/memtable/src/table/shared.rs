//! Several writers of one table for a while: the one writer shares its right, each share goes to a
//! thread, and all come back before the one goes on.
//!
//! Keeps: between [`MemWriter::share`] and [`MemWriter::take_back`] only shared writers add; what they
//! added is in the table's totals once they are back. Each writes its records into a piece of the
//! arena that was cut off for it, so they meet in the index only.
//! Leaves to others: when an entry may be seen. Readers may meet entries of any share at any time,
//! and numbers that are published keep them from it.

use std::sync::Arc;

use lithify_base::{Kind, Seq, Tag};
use lithify_env::OutOfMemory;
use xxhash_rust::xxh3::xxh3_64;

use super::{MemTable, MemWriter, UNBEGUN, hashed_entry_sum};
use crate::arena::Slab;
use crate::index::Growth;
use crate::rangedel::RangeTombstone;

/// A share of the right to add to a [`MemTable`], for one thread.
///
/// One that is dropped instead of taken back leaves its table unwritable.
pub struct SharedWriter {
    table: Arc<MemTable>,
    slab: Slab,
    entries: u64,
    sum: u64,
    seqs: Option<(Seq, Seq)>,
}

impl MemWriter {
    /// A writer for another thread, for at most `entries` entries with `bytes` bytes of keys and
    /// values together. What all of them take should have been [reserved](MemWriter::try_reserve).
    ///
    /// # Errors
    /// If there is no memory; the table is as it was, but for its first memory, if it had none.
    pub fn share(&mut self, entries: usize, bytes: usize) -> Result<SharedWriter, OutOfMemory> {
        if self.shared == UNBEGUN {
            self.begin()?;
        }
        let _lock = self.table.splits.lock();
        // SAFETY: the one writer does not allocate while it is here, shared ones only with the lock.
        let slab = unsafe { self.table.arena.slab(entries, bytes)? };
        self.shared += 1;
        let table = self.table.clone();
        Ok(SharedWriter { table, slab, entries: 0, sum: 0, seqs: None })
    }

    /// Ends a share. Once all are back, this writer adds again.
    ///
    /// # Panics
    /// If it is another table's.
    pub fn take_back(&mut self, writer: SharedWriter) {
        assert!(Arc::ptr_eq(&self.table, &writer.table), "a share goes back where it is from");
        self.shared -= 1;
        let totals = &self.table.totals;
        if let Some((first, last)) = writer.seqs {
            totals.note_seq(first);
            totals.note_seq(last);
        }
        totals.note_entries(writer.entries, writer.sum);
    }
}

impl SharedWriter {
    /// Adds an entry, as [`MemWriter::add`] does.
    ///
    /// # Panics
    /// As that, and if it is more than the share is for.
    pub fn add(&mut self, seq: Seq, kind: Kind, key: &[u8], value: &[u8]) {
        assert!(kind != Kind::RangeDelete, "range deletions have a call of their own");
        let table = &*self.table;
        let tag = Tag::new(seq, kind);
        let hash = xxh3_64(key);
        if let Some(bloom) = &table.bloom {
            bloom.prefetch(hash);
        }
        // SAFETY: the slab is of this table's arena; while a share is about, all who insert into
        // the index do so with the table's lock for splits.
        unsafe {
            let rec = self.slab.append(&table.arena, tag, key, value);
            let growth = Growth::new(&table.index, &table.arena, table.order());
            growth.insert_shared(rec, &table.splits);
        }
        if let Some(bloom) = &table.bloom {
            bloom.add_shared(hash);
        }
        self.entries += 1;
        self.sum = self.sum.wrapping_add(hashed_entry_sum(hash, tag, value.len()));
        self.note_seq(seq);
    }

    /// Deletes a range, as [`MemWriter::add_range_delete`] does.
    pub fn add_range_delete(&mut self, seq: Seq, lo: &[u8], hi: &[u8]) {
        if self.table.order.compare(lo, hi).is_ge() {
            return;
        }
        self.note_seq(seq);
        self.table.rangedels.add(RangeTombstone { lo: lo.into(), hi: hi.into(), seq });
    }

    fn note_seq(&mut self, seq: Seq) {
        let (first, last) = self.seqs.unwrap_or((seq, seq));
        self.seqs = Some((first.min(seq), last.max(seq)));
    }
}
