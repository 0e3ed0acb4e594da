//! Conflicts: whether a key was written after a moment that a transaction relies on.
//!
//! The moment is a snapshot, and that is what makes the answer exact, however long ago a newer
//! write was flushed and compacted: what the snapshot sees stays, so a later deletion stays to hide
//! it, and a later value keeps its sequence number, as none above a snapshot is dropped for being
//! old. If nothing newer is found, the key's state is the one at the snapshot.
//!
//! Keeps: no look at a table that holds nothing newer than the moment; a memtable says so with one
//! comparison, a table by what the tree knows of it.
//! Leaves to others: which keys are asked for, and when.

use lithify_base::zoo::{self, Bug};
use lithify_base::{MAX_SEQ, Result};
use lithify_format::filter::key_hash;

use super::Look;

impl Look<'_> {
    /// Whether `key` was written after the number of this look, of which a snapshot is held.
    ///
    /// # Errors
    /// `Corruption` or `Io` of a table.
    pub fn is_newer(&self, key: &[u8]) -> Result<bool> {
        let (sv, since) = (self.sv, self.at);
        for mem in sv.mems.iter().map(|m| &*m.table) {
            if mem.last_seq().is_none_or(|last| last <= since) {
                continue;
            }
            let deleted = mem.has_range_tombstones()
                && mem.covering(key, MAX_SEQ).is_some_and(|seq| seq > since);
            let written = || mem.get_newest(key, MAX_SEQ).is_some_and(|(tag, _)| tag.seq() > since);
            if deleted || written() {
                return Ok(true);
            }
        }
        if zoo::on(Bug::TablesUnasked) {
            return Ok(false);
        }
        let order = sv.tree.version.order();
        let hash = key_hash(key);
        for run in &sv.tree.runs {
            let slot = run.find(key, order).filter(|slot| slot.file.seqs.1 > since);
            let Some(slot) = slot else { continue };
            let reader = slot.reader(self.tables)?;
            let deleted = slot.file.range_deletes > 0
                && reader.covering_seq(&slot.file, key, MAX_SEQ).is_some_and(|seq| seq > since);
            if deleted || reader.get(key, hash, MAX_SEQ)?.is_some_and(|(tag, _)| tag.seq() > since)
            {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
