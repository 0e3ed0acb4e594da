//! What a group is made of: the caller's own write, borrowed, and batches that others queued.

use lithify_base::{CfId, Kind, Result, Seq};
use lithify_env::sync::Arc;
use lithify_journal::wal::BatchBuilder;

use super::log::Log;
use super::mems::{Adds, Mems, Reservation, insert_batch, refused};
use crate::write::turn::Waiter;

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
#[inline(always)]
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
