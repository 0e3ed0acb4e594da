//! Whether a table gives back what it was given: the sum over entries that the writer keeps, worked
//! out again when all of them are taken out.
//!
//! Keeps: an entry that is missing, doubled, or whose key, number, kind or value's length changed in
//! memory is noticed (but for one in 2^64). Leaves to others: the values' bytes, which only the
//! checksums of blocks cover, from the flush on: a sum of them costs 4.5% of a put's instructions.

use lithify_base::Tag;

use crate::table::{MemTable, entry_sum};

/// What was taken out of a table so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Audit {
    entries: u64,
    sum: u64,
}

impl Audit {
    /// One entry, in any order.
    #[inline]
    pub fn take(&mut self, key: &[u8], tag: Tag, value_len: usize) {
        self.entries += 1;
        self.sum = self.sum.wrapping_add(entry_sum(key, tag, value_len));
    }

    /// What is wrong, for people, if this is not exactly what went into `table`.
    ///
    /// # Errors
    /// That sentence.
    pub fn settle(self, table: &MemTable) -> Result<(), String> {
        let (entries, sum) = table.ledger();
        if self.entries != entries {
            return Err(format!(
                "the memtable took {entries} entries and gave back {}; it was damaged in memory",
                self.entries
            ));
        }
        if self.sum != sum {
            return Err(format!(
                "the memtable gave back {entries} entries, as many as it took, and some are not \
                 the same; it was damaged in memory"
            ));
        }
        Ok(())
    }
}
