//! What a reader pins: the memtables and the tree, newest first, as one immutable value. It is
//! published through a single pointer, so a read takes no lock, and whatever it refers to stays
//! alive and on disk until the reader lets go.

use lithify_base::{FileId, KeyRange, Pos, Result};
use lithify_control::MemId;
use lithify_env::sync::Arc;
use lithify_env::sync::atomic::{AtomicU64, Ordering};
use lithify_lsm::{FileRef, Run, Version};
use lithify_memtable::MemTable;
use lithify_tables::cache::TableCache;
use lithify_tables::sst::TableReader;

/// A memtable and its number.
#[derive(Clone)]
pub struct Mem {
    /// Its number: the higher, the newer.
    pub id: MemId,
    /// The memtable.
    pub table: Arc<MemTable>,
    /// Number of the log in which its first write is, or will be; none before has one of them.
    pub log: Arc<AtomicU64>,
}

impl Mem {
    /// Memtable `id`, whose first write is to be in log number `log`.
    pub fn new(id: MemId, table: Arc<MemTable>, log: FileId) -> Mem {
        Mem { id, table, log: Arc::new(AtomicU64::new(log.0)) }
    }
}

/// Memtables and tree at one moment.
#[derive(Clone)]
pub struct SuperVersion {
    /// How many trees were installed with this one.
    pub no: u64,
    /// The active memtable first, then the frozen ones, newest first.
    pub mems: Vec<Mem>,
    /// The tables below them.
    pub tree: Arc<Tree>,
}

/// A version with its tables at hand.
pub struct Tree {
    /// Which files there are.
    pub version: Version,
    /// Newest first.
    pub runs: Vec<RunTables>,
    /// Files that hold range deletions; none in most databases.
    pub with_range_deletes: Vec<Arc<TableSlot>>,
}

/// A run and its tables, in key order.
#[derive(Clone)]
pub struct RunTables {
    /// Which files it has.
    pub run: Run,
    /// Their tables, in the same order.
    pub slots: Arc<[Arc<TableSlot>]>,
}

/// A file of the tree and its reader, opened by the first who needs it. Holding the slot pins
/// the file.
pub struct TableSlot {
    /// The file.
    pub file: FileRef,
    reader: std::sync::OnceLock<Arc<TableReader>>,
}

impl TableSlot {
    fn new(file: FileRef) -> TableSlot {
        TableSlot { file, reader: std::sync::OnceLock::new() }
    }
    /// The reader.
    ///
    /// # Errors
    /// `Corruption` or `Io` if the table can't be opened.
    #[inline]
    pub fn reader(&self, tables: &TableCache) -> Result<&Arc<TableReader>> {
        if let Some(reader) = self.reader.get() {
            return Ok(reader);
        }
        let reader = tables.open(&self.file)?;
        Ok(self.reader.get_or_init(|| reader))
    }
}

impl RunTables {
    /// The table that may hold `key`.
    #[inline]
    pub fn find(
        &self,
        key: &[u8],
        order: &dyn lithify_base::Comparator,
    ) -> Option<&Arc<TableSlot>> {
        let at = self.run.lower_bound(key, order);
        let slot = self.slots.get(at)?;
        slot.file.range.contains(key, order).then_some(slot)
    }
}

impl Tree {
    /// The tree of `version`; slots of files that were in `before` are taken over.
    pub fn new(version: Version, before: Option<&Tree>) -> Tree {
        let runs: Vec<RunTables> = version
            .runs_newest_first()
            .map(|run| {
                if let Some(same) = before.and_then(|b| b.run(run.pos))
                    && std::ptr::eq(same.run.files(), run.files())
                {
                    return same.clone();
                }
                let slots = run
                    .files()
                    .iter()
                    .map(|f| {
                        before
                            .and_then(|b| b.slot(f))
                            .cloned()
                            .unwrap_or_else(|| Arc::new(TableSlot::new(f.clone())))
                    })
                    .collect();
                RunTables { run: run.clone(), slots }
            })
            .collect();
        let with_range_deletes = runs
            .iter()
            .flat_map(|r| r.slots.iter())
            .filter(|s| s.file.range_deletes > 0)
            .cloned()
            .collect();
        Tree { version, runs, with_range_deletes }
    }

    fn run(&self, pos: Pos) -> Option<&RunTables> {
        self.runs.iter().find(|r| r.run.pos == pos)
    }
    /// The slot of the very same file (a moved file is another value and opens anew, cheaply).
    fn slot(&self, file: &FileRef) -> Option<&Arc<TableSlot>> {
        let run = self.run(file.pos)?;
        let at = run.run.lower_bound(&file.range.lo, self.version.order());
        run.slots.get(at).filter(|s| s.file.id == file.id)
    }
}

impl SuperVersion {
    /// The first log that memtables from log `from` on need; `now` if none of them has a write.
    pub fn first_log(&self, from: u64, now: u64) -> u64 {
        let unflushed = self.mems.iter().filter(|m| !m.table.is_empty());
        let logs = unflushed.map(|m| m.log.load(Ordering::Acquire)).filter(|log| *log >= from);
        logs.min().unwrap_or(now)
    }
    /// The smallest range that holds every key, deleted ones included; `None` if there is none.
    pub fn bounds(&self) -> Option<KeyRange> {
        let order = self.tree.version.order();
        let tables = self.tree.version.files().map(|f| f.range.clone());
        let mems = self.mems.iter().filter_map(|m| m.table.range());
        tables.chain(mems).reduce(|a, b| a.hull(&b, order))
    }
}
