//! Ranges of keys as a whole: how much they hold.

use lithify_base::{Comparator, Error, KeyRange, Result};
use lithify_lsm::FileRef;
use lithify_tables::sst::TableReader;

use super::Look;
use crate::super_version::RunTables;

/// What counts for the size of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeOptions {
    /// Bytes of tables on disk, compressed as they are. Default: true.
    pub tables: bool,
    /// Bytes of keys and values in memtables. These are walked, so a range with many of them takes as
    /// long as a scan of them. Default: false.
    pub memtables: bool,
}

impl Default for SizeOptions {
    fn default() -> SizeOptions {
        SizeOptions { tables: true, memtables: false }
    }
}

impl Look<'_> {
    /// About how many bytes the keys from `from` on and below `to` take.
    ///
    /// # Errors
    /// `InvalidArgument` for a range that ends before it starts; `Corruption` or `Io` if the index of
    /// a table can't be read.
    pub fn size(&self, from: &[u8], to: &[u8], options: &SizeOptions) -> Result<u64> {
        let sv = self.sv;
        let order = self.sv.tree.version.order();
        check_order(order, from, to)?;
        if order.compare(from, to).is_eq() {
            return Ok(0);
        }
        let mut bytes = 0;
        if options.memtables {
            for mem in &sv.mems {
                let mut entries = mem.table.iter();
                entries.seek(from, lithify_base::Tag::seek(lithify_base::MAX_SEQ));
                while entries.valid() && order.compare(entries.user_key(), to).is_lt() {
                    bytes += (entries.user_key().len() + entries.value().len()) as u64;
                    entries.next();
                }
            }
        }
        if options.tables {
            let range = KeyRange::excl(from, to);
            for run in &sv.tree.runs {
                bytes += self.size_in_run(run, &range)?;
            }
        }
        Ok(bytes)
    }

    fn size_in_run(&self, run: &RunTables, range: &KeyRange) -> Result<u64> {
        let order = self.sv.tree.version.order();
        let span = run.run.overlapping_span(range, order);
        let mut bytes = 0;
        for slot in &run.slots[span] {
            bytes += match range.covers(&slot.file.range, order) {
                true => slot.file.bytes,
                false => share(&slot.file, slot.reader(self.tables)?, range),
            };
        }
        Ok(bytes)
    }
}

/// The part of a table's file that its keys in `range` take, the tail in proportion.
fn share(file: &FileRef, table: &TableReader, range: &KeyRange) -> u64 {
    let from = table.approximate_offset_of(&range.lo);
    let to = table.approximate_offset_of(&range.hi.key);
    let data = table.data_bytes().max(1);
    let inside = u128::from(to.saturating_sub(from)) * u128::from(file.bytes);
    (inside / u128::from(data)) as u64
}

/// Refuses a range that ends before it starts; an empty one is no error.
///
/// # Errors
/// `InvalidArgument`.
pub fn check_order(order: &dyn Comparator, from: &[u8], to: &[u8]) -> Result<()> {
    match order.compare(from, to).is_gt() {
        true => Err(Error::invalid("the range ends before it starts; swap its bounds")),
        false => Ok(()),
    }
}
