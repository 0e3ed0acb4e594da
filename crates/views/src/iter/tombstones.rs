//! Which range deletion hides a key, for readers: the newest one over the key, from memtables
//! and from the tables that have any. Most databases have none, and then this costs one branch.

use lithify_base::{ComparatorRef, Result, Seq};
use lithify_env::sync::Arc;
use lithify_lsm::FileRef;
use lithify_merge::tombstone::{Fragments, RangeTombstone};
use lithify_tables::sst::TableReader;

/// The range deletions one reader must honour.
pub(crate) struct Tombstones {
    order: ComparatorRef,
    /// Newer ones are not honoured.
    cap: Seq,
    /// From memtables, those up to `cap`: over each key the newest.
    memory: Vec<Fragments>,
    /// Tables with range deletions and their files, whose bounds say which count.
    tables: Vec<(FileRef, Arc<TableReader>)>,
}

impl Tombstones {
    /// None yet; of those to be added, none newer than `cap` will be honoured.
    pub(crate) fn new(order: ComparatorRef, cap: Seq) -> Tombstones {
        Tombstones { order, cap, memory: Vec::new(), tables: Vec::new() }
    }
    pub(crate) fn add_memory(&mut self, raw: &[lithify_memtable::RangeTombstone]) {
        let raw = raw.iter().filter(|t| t.seq <= self.cap).map(|t| RangeTombstone {
            lo: t.lo.clone(),
            hi: t.hi.clone(),
            seq: t.seq,
            run: 0,
        });
        self.memory.push(Fragments::newest(raw, &*self.order));
    }
    pub(crate) fn add_table(&mut self, file: FileRef, table: Arc<TableReader>) {
        self.tables.push((file, table));
    }
    pub(crate) fn is_empty(&self) -> bool {
        self.memory.is_empty() && self.tables.is_empty()
    }
    /// Largest sequence number at most `at` of a range deletion over `key`.
    pub(crate) fn covering(&self, key: &[u8], at: Seq) -> Result<Option<Seq>> {
        let at = at.min(self.cap);
        let mut newest = None;
        for fragments in &self.memory {
            newest = newest.max(fragments.covering_seq(key, at, &*self.order));
        }
        for (file, table) in &self.tables {
            newest = newest.max(table.covering_seq(file, key, at));
        }
        Ok(newest)
    }
}
