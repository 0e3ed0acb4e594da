//! Checking one whole table: every byte and every promise a reader relies on.
//!
//! Keeps: finds any damaged byte that a read could meet (blocks by their sums, the tail when it is
//! opened), any entry out of order, any index entry that would lead a search astray, any key that
//! its filter denies, and any count that differs from the properties.
//! Leaves to others: comparing the table with the manifest or with other tables.

use std::sync::Arc;

use lithify_base::{Error, InternalKey, Kind, Result};
use lithify_format::block::{BlockIter, TRAILER_LEN};
use lithify_format::filter::key_hash;
use lithify_format::table::handle::BlockHandle;

use super::reader::TableReader;

/// What was counted on the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Data blocks.
    pub blocks: u64,
    /// Point entries.
    pub entries: u64,
    /// Point deletions among them.
    pub deletes: u64,
    /// Merge operands among them.
    pub merges: u64,
    /// Sum of the lengths of internal keys.
    pub raw_key_bytes: u64,
    /// Sum of the lengths of values.
    pub raw_value_bytes: u64,
}

/// Reads every data block of `table` from its file and checks it.
///
/// # Errors
/// Corruption naming the block's offset and the promise it breaks, or what reading gives.
pub fn verify(table: &Arc<TableReader>) -> Result<Checked> {
    let mut walk = Walk { table, seen: Checked::default(), last: Vec::new() };
    let mut end = 0;
    for i in 0..table.fences.len() {
        let at = table.fences.block(i);
        let handle = BlockHandle::new(at.offset, u64::from(at.size));
        walk.block(i, handle).map_err(|e| table.blame(i, e))?;
        // Tables of ours have no padding (R4); foreign ones may align their blocks.
        if at.offset != end && table.counts.is_some() {
            let gap = at.offset - end;
            let e = Error::corruption(format!("{gap} bytes before the block belong to nothing"));
            return Err(table.blame(i, e));
        }
        end = at.offset + u64::from(at.size) + TRAILER_LEN as u64;
    }
    walk.counts().map_err(|e| e.in_file(table.name()))?;
    Ok(walk.seen)
}

struct Walk<'a> {
    table: &'a TableReader,
    seen: Checked,
    /// The internal key before; empty before the first.
    last: Vec<u8>,
}

impl Walk<'_> {
    fn block(&mut self, i: usize, handle: BlockHandle) -> Result<()> {
        let table = self.table;
        let before = (self.seen.entries, self.seen.raw_key_bytes);
        // Past the cache, and checked even where readers do not check.
        let stored = table.blocks.stored_len(handle)?;
        let bytes = table.blocks.source.read(handle.offset, stored)?;
        table.check().verify(&bytes, handle.offset)?;
        let mut entries = BlockIter::new(table.blocks.decode(bytes, 0, handle)?)?;
        let mut more = entries.seek_to_first()?;
        if !more {
            return Err(Error::corruption("data block without entries"));
        }
        while more {
            self.entry(i, entries.internal_key(), entries.value())?;
            more = entries.next()?;
        }
        self.seen.blocks += 1;
        let counted = (self.seen.entries - before.0, self.seen.raw_key_bytes - before.1);
        if let Some(counts) = table.counts.as_ref().map(|c| c[i])
            && counted != (counts.entries, counts.raw_key_bytes)
        {
            return Err(Error::corruption(format!(
                "block has {} entries of {} key bytes, lithify.blocks says {} of {}",
                counted.0, counted.1, counts.entries, counts.raw_key_bytes
            )));
        }
        Ok(())
    }

    fn entry(&mut self, i: usize, key: InternalKey<'_>, value: &[u8]) -> Result<()> {
        let table = self.table;
        let order = &*table.order;
        let Some(kind) = key.tag.kind() else {
            return Err(Error::corruption(format!("entry {key:?} is of unknown kind")));
        };
        if kind == Kind::RangeDelete {
            return Err(Error::corruption(format!("range deletion {key:?} among point entries")));
        }
        let last = InternalKey::decode(&self.last);
        if last.is_some_and(|last| last.cmp(key, order).is_ge()) {
            return Err(Error::corruption(format!("entry {key:?} is out of order")));
        }
        if last.is_none_or(|last| order.compare(last.user, key.user).is_ne())
            && !table.may_contain(key.user, key_hash(key.user))
        {
            return Err(Error::corruption(format!("the filter denies the key of entry {key:?}")));
        }
        if table.fences.find(key.user, key.tag, order) != i {
            return Err(Error::corruption(format!("the index leads past the block of {key:?}")));
        }
        self.last.clear();
        key.encode_into(&mut self.last);
        self.seen.entries += 1;
        self.seen.deletes += u64::from(kind.is_delete());
        self.seen.merges += u64::from(kind == Kind::Merge);
        self.seen.raw_key_bytes += key.user.len() as u64 + 8;
        self.seen.raw_value_bytes += value.len() as u64;
        Ok(())
    }

    /// Compares what was seen with what the properties say.
    fn counts(&self) -> Result<()> {
        if let Some(e) = self.table.counts_fault() {
            return Err(e.clone());
        }
        let p = self.table.properties();
        if self.table.format_version() == 0 {
            return Ok(());
        }
        let seen = &self.seen;
        // RocksDB does not count the blocks that it held back to train a dictionary; opening
        // found that it counts no more than there are.
        let blocks = match self.table.counts {
            Some(_) => p.num_data_blocks,
            None => seen.blocks,
        };
        for (what, counted, stated) in [
            ("data blocks", seen.blocks, blocks),
            ("entries", seen.entries, p.points()),
            ("deletions", seen.deletes, p.deleted_keys.saturating_sub(p.num_range_deletions)),
            ("merge operands", seen.merges, p.merge_operands),
        ] {
            if counted != stated {
                return Err(Error::corruption(format!(
                    "the table has {counted} {what}, its properties say {stated}"
                )));
            }
        }
        Ok(())
    }
}
