//! Ranges of keys as a whole: how much they hold, and dropping the tables that lie in them.

use lithify_base::{KeyRange, Result};
use lithify_control::Outside;
use lithify_lsm::FileRef;
use lithify_store::sst::TableReader;

use crate::batch::check_order;
use crate::db::Db;
use crate::shell::Shell;
use crate::super_version::{RunTables, SuperVersion};

/// What [`Db::approximate_sizes`] counts.
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

impl Db {
    /// About how many bytes the keys of each range take, from its first key on below its second.
    /// Versions that are out of date and deletions count until they are compacted away.
    ///
    /// Tables are not read, only their indexes. A table that lies wholly in the range counts with its
    /// file's size. One that reaches over an end counts with its share of that, to a block: so for each
    /// run of the tree, and each end of the range, the answer is off by at most the largest stored
    /// block and its share of the index and filter.
    ///
    /// ```
    /// # fn main() -> lithify::Result<()> {
    /// # let dir = std::env::temp_dir().join(format!("lithify-sizes-{}", std::process::id()));
    /// # let db = lithify::Db::open(&dir, lithify::Settings::default())?;
    /// db.put(b"apple", [7; 1000])?;
    /// db.put(b"banana", [7; 1000])?;
    /// let what = lithify::SizeOptions { memtables: true, ..Default::default() };
    /// let sizes = db.approximate_sizes(&[(b"a", b"b"), (b"a", b"c")], &what)?;
    /// assert_eq!(sizes, [1005, 2011]);
    /// # db.close()?;
    /// # std::fs::remove_dir_all(&dir).ok();
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` for a range that ends before it starts; `Corruption` or `Io` if the index of
    /// a table can't be read.
    pub fn approximate_sizes<A: AsRef<[u8]>, B: AsRef<[u8]>>(
        &self,
        ranges: &[(A, B)],
        options: &SizeOptions,
    ) -> Result<Vec<u64>> {
        self.shell.check_open()?;
        let sv = self.shell.super_version();
        let size = |(from, to): &(A, B)| self.shell.size(&sv, from.as_ref(), to.as_ref(), options);
        ranges.iter().map(size).collect()
    }

    /// Drops the tables whose keys all lie from `from` on below `to` (all tables without bounds):
    /// space is free at once, without a compaction. Keys in memtables, in tables that reach out of the
    /// range, and in tables that a compaction is working on stay; for the rest,
    /// [`delete_range`](Db::delete_range) first and this after it leaves nothing behind. A key that
    /// was in a dropped table has either a newer value or none: a table stays if older data of its
    /// keys would. Newer merge operands stay as they are, and combine with nothing from then on.
    ///
    /// It is no write: it has no sequence number, and snapshots see that the tables are gone.
    /// Iterators that exist go on as they are. What was written before is durable before the tables
    /// go, but for writes that skipped the log.
    ///
    /// # Errors
    /// `InvalidArgument` if `from` is above `to`; `ReadOnly`. `OutcomeUnknown` if the manifest could
    /// not be written: the next open shows all of the tables or none.
    pub fn delete_files_in_range(&self, from: Option<&[u8]>, to: Option<&[u8]>) -> Result<()> {
        self.drop_files(self.clip(from, to)?.into_iter().collect())
    }

    /// [`delete_files_in_range`](Db::delete_files_in_range) for several ranges at once, atomically.
    ///
    /// # Errors
    /// As [`delete_files_in_range`](Db::delete_files_in_range).
    pub fn delete_files_in_ranges<A: AsRef<[u8]>, B: AsRef<[u8]>>(
        &self,
        ranges: &[(A, B)],
    ) -> Result<()> {
        let mut clipped = Vec::new();
        for (from, to) in ranges {
            clipped.extend(self.clip(Some(from.as_ref()), Some(to.as_ref()))?);
        }
        self.drop_files(clipped)
    }

    fn drop_files(&self, ranges: Vec<KeyRange>) -> Result<()> {
        self.shell.sync_log()?;
        self.shell.outside(Outside::Drop { ranges })
    }
}

impl Shell {
    fn size(
        &self,
        sv: &SuperVersion,
        from: &[u8],
        to: &[u8],
        options: &SizeOptions,
    ) -> Result<u64> {
        let order = self.order();
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
        let order = self.order();
        let span = run.run.overlapping_span(range, order);
        let mut bytes = 0;
        for slot in &run.slots[span] {
            bytes += match range.covers(&slot.file.range, order) {
                true => slot.file.bytes,
                false => share(&slot.file, slot.reader(&self.tables)?, range),
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
