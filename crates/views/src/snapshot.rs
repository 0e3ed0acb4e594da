//! Snapshots: a sequence number that compaction must keep readable while anyone holds it.
//!
//! A snapshot's number is read and registered under one lock, and a compaction reads the list
//! under the same lock, so a number is never chosen and then missed (zoo entry Z22).
//!
//! A compaction filter is the one thing that takes values away from snapshots that a compaction does
//! not know of, those taken while it ran. They must not change their answers, so they keep reading the
//! tree from before: it is handed to them under the same lock under which the new one is shown.

use std::collections::BTreeMap;
use std::ops::Bound;

use arc_swap::ArcSwapOption;
use lithify_base::{CfId, Error, Result, Seq};
use lithify_env::sync::{Arc, Mutex};

use crate::super_version::SuperVersion;

/// The live snapshots of a database.
#[derive(Default)]
pub struct Snapshots {
    live: Mutex<Live>,
}

#[derive(Default)]
struct Live {
    /// By number, and among those of one number by age: they need not read the same tree.
    moments: BTreeMap<(Seq, u64), Arc<Moment>>,
    taken: u64,
}

/// What one snapshot reads.
#[derive(Default)]
struct Moment {
    seq: Seq,
    no: u64,
    /// By family: the tree to read in place of the newest one. Written under the lock of the list.
    trees: ArcSwapOption<BTreeMap<CfId, Arc<SuperVersion>>>,
}

impl Moment {
    fn key(&self) -> (Seq, u64) {
        (self.seq, self.no)
    }

    /// Reads `tree` from now on, unless there is an older one.
    fn keep(&self, cf: CfId, tree: &Arc<SuperVersion>) {
        let mut trees = self.trees.load_full().map_or_else(BTreeMap::new, |t| BTreeMap::clone(&t));
        trees.entry(cf).or_insert_with(|| tree.clone());
        self.trees.store(Some(Arc::new(trees)));
    }
}

impl Snapshots {
    /// Registers a snapshot at the number that `published` reads.
    pub fn take(self: &Arc<Self>, published: impl FnOnce() -> Seq) -> Snapshot {
        let mut live = self.live.lock();
        live.taken += 1;
        let moment = Arc::new(Moment { seq: published(), no: live.taken, ..Moment::default() });
        live.moments.insert(moment.key(), moment.clone());
        drop(live);
        let hold = Hold { moment, of: self.clone() };
        Snapshot { hold: Arc::new(hold) }
    }

    /// The number to read at: that of `snapshot`, or else what `published` reads.
    ///
    /// # Errors
    /// `InvalidArgument` for a snapshot of another database: its number means nothing here.
    #[inline]
    pub fn read_at(
        &self,
        snapshot: Option<&Snapshot>,
        published: impl FnOnce() -> Seq,
    ) -> Result<Seq> {
        match snapshot {
            None => Ok(published()),
            Some(s) if std::ptr::eq(&*s.hold.of, self) => Ok(s.sequence()),
            Some(_) => Err(Error::invalid(
                "the snapshot is of another database, or of an earlier open of this one; take a \
                 new one",
            )),
        }
    }

    /// The live numbers, ascending.
    pub fn list(&self) -> Vec<Seq> {
        let mut all: Vec<Seq> = self.live.lock().moments.keys().map(|key| key.0).collect();
        all.dedup();
        all
    }

    /// Lets `show` replace `tree` of family `cf` with one in which a filter took values away. `known` is
    /// the newest snapshot that the compaction knew of; younger ones go on reading `tree`.
    pub fn keep(
        &self,
        cf: CfId,
        known: Option<Seq>,
        tree: &Arc<SuperVersion>,
        show: impl FnOnce(),
    ) {
        let live = self.live.lock();
        let last_known = known.map(|seq| (seq, u64::MAX));
        let younger = (last_known.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded);
        live.moments.range(younger).for_each(|(_, moment)| moment.keep(cf, tree));
        show();
    }
}

/// A consistent view of the database as it was when the snapshot was taken.
///
/// Cheap to clone. Holding one keeps overwritten and deleted versions on disk, so let go of it
/// when done. One that was taken while a compaction ran whose
/// [filter](lithify_base::CompactionFilter) removed or changed something keeps the tables and memtables from
/// before that, as an iterator does.
#[derive(Clone)]
pub struct Snapshot {
    hold: Arc<Hold>,
}

struct Hold {
    moment: Arc<Moment>,
    of: Arc<Snapshots>,
}

impl Snapshot {
    /// The sequence number this snapshot reads at.
    #[inline]
    pub fn sequence(&self) -> Seq {
        self.hold.moment.seq
    }

    /// The tree of family `cf` that it reads, if that is not the newest. To be asked only once the
    /// newest is pinned.
    #[inline]
    pub fn tree(&self, cf: CfId) -> Option<Arc<SuperVersion>> {
        self.hold.moment.trees.load().as_ref()?.get(&cf).cloned()
    }
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Snapshot@{}", self.sequence())
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        // What it read is let go of after the lock.
        self.of.live.lock().moments.remove(&self.moment.key());
    }
}
