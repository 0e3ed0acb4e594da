//! The caller's own write, as a group takes it, and what a group is together.

use lithify_base::{CfId, Kind, Result, Seq};
use lithify_env::sync::Arc;
use lithify_journal::wal::BatchBuilder;
use lithify_memtable::MemTable;

use crate::mems::{Adds, Mems, insert_batch};
use crate::turn::Waiter;

/// Entries of a batch from which its writer is asked to insert it.
const LARGE: usize = if cfg!(shuttle) { 2 } else { 48 };

/// Most entries of a small group: the processor has only so many requests under way.
const PREFETCHED: usize = 8;

/// The caller's own write, borrowed.
pub enum Own<'a, T> {
    /// One key and its value.
    Put {
        /// The family.
        cf: CfId,
        /// The key.
        key: &'a [u8],
        /// The value.
        value: &'a [u8],
    },
    /// One deletion.
    Delete {
        /// The family.
        cf: CfId,
        /// The key.
        key: &'a [u8],
    },
    /// Several, in order.
    Batch(&'a BatchBuilder),
    /// Nothing to write: the log is to be synced.
    Sync,
    /// The write was queued and is in the waiter.
    Queued(&'a Waiter<T>),
}

/// What a group takes: its entries, and their bytes.
#[inline]
pub fn measure<T>(own: Own<'_, T>, peers: &[Arc<Waiter<T>>]) -> (usize, usize) {
    peers.iter().fold((own.entries(), own.byte_len()), |(entries, bytes), peer| {
        (entries + peer.batch.count() as usize, bytes + peer.batch.byte_len())
    })
}

/// Asks for the places in `table` that a small group is inserted at: they come while the system takes the log's
/// bytes.
#[inline(always)]
pub fn prefetch<T>(own: Own<'_, T>, peers: &[Arc<Waiter<T>>], table: &MemTable) {
    if measure(own, peers).0 <= PREFETCHED {
        let all = peers.iter().map(|peer| Own::Queued(peer)).chain([own]);
        all.for_each(|write| write.each_key(|key| table.prefetch(key)));
    }
}

/// Inserts a group from sequence number `first` on; the number after.
#[inline]
pub fn insert_all<T>(
    own: Own<'_, T>,
    peers: &[Arc<Waiter<T>>],
    mems: &mut impl Mems,
    first: Seq,
) -> Seq {
    let next = own.insert(mems, first);
    peers.iter().fold(next, |next, peer| insert_batch(mems, &peer.batch.view(), next))
}

impl<T> Clone for Own<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Own<'_, T> {}

impl<'a, T> Own<'a, T> {
    /// Bytes of its keys and values, or of the encoded batch.
    #[inline]
    pub fn byte_len(&self) -> usize {
        match self {
            Own::Put { key, value, .. } => key.len() + value.len(),
            Own::Delete { key, .. } => key.len(),
            Own::Batch(b) => b.byte_len(),
            Own::Queued(w) => w.batch.byte_len(),
            Own::Sync => 0,
        }
    }
    /// At most so many entries.
    #[inline]
    pub fn entries(&self) -> usize {
        match self {
            Own::Put { .. } | Own::Delete { .. } => 1,
            Own::Batch(b) => b.count() as usize,
            Own::Queued(w) => w.batch.count() as usize,
            Own::Sync => 0,
        }
    }
    /// The batch, if it is one.
    #[inline]
    pub fn batch(self) -> Option<&'a BatchBuilder> {
        match self {
            Own::Batch(b) => Some(b),
            Own::Queued(w) => Some(&w.batch),
            Own::Put { .. } | Own::Delete { .. } | Own::Sync => None,
        }
    }
    /// The family of a single write.
    #[inline]
    pub fn cf(self) -> Option<CfId> {
        match self {
            Own::Put { cf, .. } | Own::Delete { cf, .. } => Some(cf),
            Own::Batch(_) | Own::Queued(_) | Own::Sync => None,
        }
    }
    /// It is worth waking its writer to insert it, side by side with others.
    pub fn is_large(&self) -> bool {
        self.is_of_default() && self.entries() >= LARGE
    }
    /// All of it goes to the default family.
    pub fn is_of_default(&self) -> bool {
        match self.batch() {
            Some(batch) => !batch.names_families(),
            None => self.cf().is_none_or(|cf| cf == CfId(0)),
        }
    }
    /// Its keys, one after the other.
    #[inline]
    pub fn each_key(self, mut each: impl FnMut(&[u8])) {
        match self {
            Own::Put { key, .. } | Own::Delete { key, .. } => each(key),
            Own::Batch(b) => b.view().iter().for_each(|op| each(op.key)),
            Own::Queued(w) => w.batch.view().iter().for_each(|op| each(op.key)),
            Own::Sync => {}
        }
    }
    /// A batch of it.
    ///
    /// # Errors
    /// `LimitExceeded` if there is no memory for it.
    pub fn to_batch(self) -> Result<BatchBuilder> {
        let mut batch = BatchBuilder::new();
        batch.try_reserve(self.entries(), self.byte_len())?;
        self.add_to(&mut batch);
        Ok(batch)
    }
    /// Adds it to `batch`, which has room for it.
    #[inline]
    pub fn add_to(self, batch: &mut BatchBuilder) {
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
    pub fn insert(self, mems: &mut impl Mems, seq: Seq) -> Seq {
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
