//! Snapshots: a sequence number that compaction must keep readable while anyone holds it.
//!
//! A snapshot's number is read and registered under one lock, and a compaction reads the list
//! under the same lock, so a number is never chosen and then missed (zoo entry Z22).

use std::collections::BTreeMap;

use lithify_base::{Error, Result, Seq};
use lithify_env::sync::{Arc, Mutex};

/// The live snapshots of a database: number -> how many hold it.
#[derive(Default)]
pub(crate) struct Snapshots {
    live: Mutex<BTreeMap<Seq, u32>>,
}

impl Snapshots {
    /// Registers a snapshot at the number that `published` reads.
    pub(crate) fn take(self: &Arc<Self>, published: impl FnOnce() -> Seq) -> Snapshot {
        let mut live = self.live.lock();
        let seq = published();
        *live.entry(seq).or_insert(0) += 1;
        Snapshot { hold: Arc::new(Hold { seq, of: self.clone() }) }
    }

    /// The number to read at: that of `snapshot`, or else what `published` reads.
    ///
    /// # Errors
    /// `InvalidArgument` for a snapshot of another database: its number means nothing here.
    pub(crate) fn read_at(
        &self,
        snapshot: Option<&Snapshot>,
        published: impl FnOnce() -> Seq,
    ) -> Result<Seq> {
        match snapshot {
            None => Ok(published()),
            Some(s) if std::ptr::eq(&*s.hold.of, self) => Ok(s.hold.seq),
            Some(_) => Err(Error::invalid(
                "the snapshot is of another database, or of an earlier open of this one; take a \
                 new one",
            )),
        }
    }

    /// The live numbers, ascending.
    pub(crate) fn list(&self) -> Vec<Seq> {
        self.live.lock().keys().copied().collect()
    }
}

/// A consistent view of the database as it was when the snapshot was taken.
///
/// Cheap to clone. Holding one keeps overwritten and deleted versions on disk, so let go of it
/// when done.
#[derive(Clone)]
pub struct Snapshot {
    hold: Arc<Hold>,
}

struct Hold {
    seq: Seq,
    of: Arc<Snapshots>,
}

impl Snapshot {
    /// The sequence number this snapshot reads at.
    pub fn sequence(&self) -> Seq {
        self.hold.seq
    }
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Snapshot@{}", self.hold.seq)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut live = self.of.live.lock();
        if let Some(n) = live.get_mut(&self.seq) {
            *n -= 1;
            if *n == 0 {
                live.remove(&self.seq);
            }
        }
    }
}
