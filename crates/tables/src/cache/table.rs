//! Open tables by file number, opened on demand and kept while there is room.
//!
//! Keeps: at most the promised number of tables is held open *by the cache*; a reader in use
//! stays open however long, evicted or not.
//! Leaves to others: which files exist; pinning the readers of a version.

use std::sync::Arc;

use lithify_base::{ComparatorRef, FileId, Prefixes, Result};
use lithify_env::sync::atomic::{AtomicU64, Ordering};
use lithify_env::{Mapped, OpenOpts};
use lithify_files::dir::Dir;
use lithify_lsm::FileMeta;
use quick_cache::sync::Cache;
use quick_cache::{OptionsBuilder, UnitWeighter};
use rustc_hash::FxBuildHasher;

use super::BlockCache;
use crate::sst::{OpenTable, TableReader, Verify};

/// How tables are opened.
#[derive(Clone)]
pub struct TableOptions {
    /// Order of user keys.
    pub order: ComparatorRef,
    /// How prefixes of keys are taken.
    pub prefixes: Prefixes,
    /// Where blocks are kept.
    pub blocks: Option<Arc<BlockCache>>,
    /// Whether blocks read from disk are checked.
    pub verify: Verify,
    /// Bypass the page cache on reads.
    pub direct: bool,
    /// Whether reads copy out of mappings of the files, in place of a system call each.
    pub mapped: Mapped,
}

/// Tables that the cache has room for from the start: each column family has one, and most have few.
const EXPECTED: usize = 16;

/// A shared, thread-safe cache of open tables.
pub struct TableCache {
    dir: Dir,
    options: TableOptions,
    open: Cache<FileId, Arc<TableReader>, UnitWeighter, FxBuildHasher>,
    left_out: AtomicU64,
}

impl TableCache {
    /// A cache of at most `most` open tables of `dir` (a cap of descriptors and of the memory
    /// of their indexes and filters).
    pub fn new(dir: Dir, options: TableOptions, most: usize) -> Arc<TableCache> {
        let most = most.max(1);
        let settings = OptionsBuilder::new()
            .shards(4)
            .estimated_items_capacity(most.min(EXPECTED))
            .weight_capacity(most as u64)
            .build()
            .expect("every required option is set");
        let open = Cache::with_options(
            settings,
            UnitWeighter,
            FxBuildHasher,
            quick_cache::sync::DefaultLifecycle::default(),
        );
        Arc::new(TableCache { dir, options, open, left_out: AtomicU64::new(0) })
    }

    /// The reader of a file. A file that is opened by several threads at once is opened once, if keys are in byte order.
    ///
    /// # Errors
    /// As [`TableReader::open`]; corruption, too, if the file is missing: a version names it.
    pub fn open(&self, file: &FileMeta) -> Result<Arc<TableReader>> {
        let number = file.backing.unwrap_or(file.id);
        if self.options.order.is_bytewise() {
            return self.open.get_or_insert_with(&number, || self.open_now(file, number));
        }
        // An order of the program's is asked as a table opens, and may read the database, perhaps this very table: no place
        // in the cache may be held meanwhile. So two threads may open it, and one of them in vain.
        if let Some(open) = self.open.get(&number) {
            return Ok(open);
        }
        let opened = self.open_now(file, number)?;
        self.open.get_or_insert_with(&number, || Ok(opened))
    }

    /// The reader of a file, if it is open.
    pub fn get(&self, file: &FileMeta) -> Option<Arc<TableReader>> {
        self.open.get(&file.backing.unwrap_or(file.id))
    }

    fn open_now(&self, file: &FileMeta, number: FileId) -> Result<Arc<TableReader>> {
        let TableOptions { direct, mapped, .. } = self.options;
        let opts = OpenOpts { direct, mapped, ..OpenOpts::read() };
        let (name, opened) = self.dir.open_table(number.0, opts)?;
        let slice = file.backing.is_some();
        let mut spec = OpenTable::new(opened, name.to_string(), self.options.order.clone());
        spec.bytes = (!slice && file.bytes > 0).then_some(file.bytes);
        spec.base_context = file.base_context;
        spec.largest_seq = Some(file.seqs.1);
        spec.tail_bytes = file.tail_bytes;
        spec.prefixes.clone_from(&self.options.prefixes);
        spec.cache.clone_from(&self.options.blocks);
        spec.verify = self.options.verify;
        TableReader::open(spec)
    }

    /// Lets go of a file that is being deleted, with its blocks.
    pub fn forget(&self, number: FileId) {
        if let Some((_, reader)) = self.open.remove(&number) {
            reader.forget_blocks();
        }
    }

    /// Whether new tables should have their indexes and filters in parts, because those of open tables, of all
    /// families, would take more memory than there is if they were whole.
    pub fn is_crowded(&self) -> bool {
        self.options.blocks.as_ref().is_some_and(|blocks| blocks.is_crowded())
    }

    /// Counts a table that a reader left out because of its filter of prefixes.
    pub fn leave_out(&self) {
        self.left_out.fetch_add(1, Ordering::Relaxed);
    }
    /// How often tables were left out.
    pub fn left_out(&self) -> u64 {
        self.left_out.load(Ordering::Relaxed)
    }
    /// Tables held open.
    pub fn len(&self) -> usize {
        self.open.len()
    }
    /// True if none is.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }
    /// Resident bytes of the tables held open.
    pub fn memory(&self) -> usize {
        self.open.iter().map(|(_, reader)| reader.memory()).sum()
    }
    /// The directory.
    pub fn dir(&self) -> &Dir {
        &self.dir
    }
    /// How tables are opened.
    pub fn options(&self) -> &TableOptions {
        &self.options
    }
}

#[cfg(test)]
mod tests;
