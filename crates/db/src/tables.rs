//! What a database does with whole tables: takes them in, drops them, says how much they hold, and
//! brings them into the form that RocksDB reads.

use std::path::{Path, PathBuf};

use lithify_base::{End, KeyRange, Result};
use lithify_tree::{IngestOptions, SizeOptions};

use crate::db::Db;

impl Db {
    /// Takes in tables that were written outside, by [`TableBuilder`](crate::TableBuilder) or RocksDB's
    /// `SstFileWriter`, without rewriting them. They count as one write: all become visible at once,
    /// over everything written before, and durable with everything before. Each goes as deep as
    /// nothing that overlaps it lies, so data loaded into an empty range is never compacted on its way
    /// down. Every block is verified first.
    ///
    /// Writers wait while the files are committed, and for a flush if the memtable has keys of theirs.
    ///
    /// ```
    /// use lithify::{Db, IngestOptions, Settings, TableBuilder};
    /// # fn main() -> lithify::Result<()> {
    /// # let dir = std::env::temp_dir().join(format!("lithify-ingest-{}", std::process::id()));
    /// # std::fs::create_dir_all(&dir).unwrap();
    /// let path = dir.join("fruit.sst");
    /// let mut table = TableBuilder::create(&path, &Settings::default())?;
    /// table.put(b"apple", b"red")?;
    /// table.put(b"banana", b"yellow")?; // in the order of keys
    /// table.finish()?;
    ///
    /// let db = Db::open(dir.join("db"), Settings::default())?;
    /// db.ingest(&[&path], &IngestOptions::default())?;
    /// assert_eq!(db.get(b"apple")?.as_deref(), Some(&b"red"[..]));
    /// # db.close()?;
    /// # std::fs::remove_dir_all(&dir).ok();
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Nothing was taken in: `InvalidArgument` if there is no file, or two overlap (ingest them one
    /// after the other, the newer one last); `Unsupported` for a table that no such writer made, in
    /// another order, or with operands for another merge operator; `Corruption`, `Io`, `NoSpace`;
    /// `ReadOnly`. `OutcomeUnknown` if the manifest could not be written: the next open shows all of
    /// them or none.
    pub fn ingest<P: AsRef<Path>>(&self, tables: &[P], options: &IngestOptions) -> Result<()> {
        let paths: Vec<PathBuf> = tables.iter().map(|p| p.as_ref().to_owned()).collect();
        self.shell.ingest(&paths, options)
    }

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
        let ranges = ranges.iter().map(|(from, to)| (from.as_ref(), to.as_ref()));
        self.shell.approximate_sizes(ranges, options)
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
        self.shell.drop_tables(self.shell.clip(from, to)?.into_iter().collect())
    }

    /// [`delete_files_in_range`](Db::delete_files_in_range) for the keys from `from` on up to `to`, which is
    /// one of them.
    ///
    /// # Errors
    /// As [`delete_files_in_range`](Db::delete_files_in_range).
    pub fn delete_files_through(&self, from: Option<&[u8]>, to: &[u8]) -> Result<()> {
        self.shell.drop_tables(vec![self.through(from, to)?])
    }

    /// The range from `from` on up to `to`, which is in it, as far as there are keys.
    ///
    /// # Errors
    /// `InvalidArgument` if it ends before it starts.
    pub(crate) fn through(&self, from: Option<&[u8]>, to: &[u8]) -> Result<KeyRange> {
        // Without its last key it may hold nothing.
        let clipped = self.shell.clip(from, Some(to))?;
        let mut range = clipped.unwrap_or_else(|| KeyRange::incl(to, to));
        if self.shell.order().compare(&range.hi.key, to).is_ge() {
            range.hi = End::incl(to);
        }
        Ok(range)
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
            clipped.extend(self.shell.clip(Some(from.as_ref()), Some(to.as_ref()))?);
        }
        self.shell.drop_tables(clipped)
    }

    /// Brings the directory into a form that RocksDB opens for reading and writing once this database
    /// is closed: one run in each level below the topmost, everything in tables. What already has that
    /// form is not rewritten, so this may be quick or as long as [`compact_range`](Db::compact_range).
    /// Nothing is compacted on its own from here on, so that the form stays; close the database
    /// next. What is written meanwhile is kept, in the log.
    ///
    /// ```
    /// # fn main() -> lithify::Result<()> {
    /// # let dir = std::env::temp_dir().join(format!("lithify-settle-{}", std::process::id()));
    /// let db = lithify::Db::open(&dir, lithify::Settings::default())?;
    /// db.put(b"apple", b"red")?;
    /// db.settle()?;
    /// db.close()?; // and RocksDB may open it
    /// # std::fs::remove_dir_all(&dir).ok();
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// RocksDB from 8.6 on reads the tables; RocksDB 6.6 to 8.5 those that were written with
    /// [`format_version`](crate::Settings::format_version) 5. With that set,
    /// [`CompactOptions::rewrite`](crate::CompactOptions::rewrite) of all keys makes them such.
    ///
    /// # Errors
    /// As [`compact_range`](Db::compact_range). The database is whole, and may be settled again.
    pub fn settle(&self) -> Result<()> {
        self.shell.settle_all()
    }
}
