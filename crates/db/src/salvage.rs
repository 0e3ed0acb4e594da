//! Taking out what is readable of a damaged directory into a new database.
//!
//! All versions that can still be read are merged by key; of each key the one with the largest
//! sequence number counts, unless it is a deletion or a newer range deletion covers it. So the
//! new database shows what the old one showed, but for what is lost: a key whose newest version
//! is in a lost block shows an older one or is missing, and a lost deletion brings back what it
//! had deleted. The report says where.
//!
//! Keeps: the old directory is only read. What is in blocks that pass their sums comes back exactly.
//! Leaves to others: finding what is readable ([`lithify_store::salvage`]).

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::path::Path;

use lithify_base::{ComparatorRef, Error, InternalKey, Kind, MAX_SEQ, Result, Tag};
use lithify_merge::tombstone::Fragments;
use lithify_store::Dir;
pub use lithify_store::salvage::Lost;
use lithify_store::salvage::{LoggedEntry, Salvage, TableSalvage};

use crate::batch::WriteBatch;
use crate::builder::Builder;
use crate::db::Db;
use crate::options::WriteOptions;
use crate::settings::Durability;

/// Bytes of keys and values written at once.
const BATCH_BYTES: usize = 1 << 20;

/// What was taken out, and what was not.
#[derive(Clone, Debug, Default)]
pub struct SalvageReport {
    /// Number of the manifest that was followed; `None` if none could be believed.
    pub manifest: Option<u64>,
    /// Keys in the new database.
    pub keys: u64,
    /// Bytes of these keys and their values.
    pub bytes: u64,
    /// Tables that were read, in full or in part.
    pub tables: u64,
    /// Blocks of them.
    pub blocks: u64,
    /// Entries of tables and logs, all versions.
    pub entries: u64,
    /// Batches from logs.
    pub batches: u64,
    /// What could not be read.
    pub lost: Vec<Lost>,
    /// What else one should know.
    pub notes: Vec<String>,
}

/// See [`Builder::salvage`].
pub(crate) fn salvage(
    mut builder: Builder,
    from: &Path,
    to: &Path,
    watch: &mut dyn FnMut(u64),
) -> Result<SalvageReport> {
    let env = builder.world();
    builder.env = Some(env.clone());
    // Byte order is what a builder has by default: the old database may say another one of ours.
    let order = Some(builder.order.clone()).filter(|order| !order.is_bytewise());
    let found = lithify_store::salvage::salvage(&Dir::new(env.fs.clone(), from), order)?;
    builder.order = found.order.clone();
    builder.settings.create_if_missing = true;
    builder.settings.error_if_exists = true;
    let target = Dir::new(env.fs.clone(), to);
    target.create()?;
    if let Some(entry) = target.list()?.first() {
        return Err(Error::invalid(format!(
            "the new database needs a new directory, and this one has `{}` in it",
            entry.name
        ))
        .in_file(to.display()));
    }
    let db = builder.open(to)?;
    let mut writer = Writer { db: &db, batch: WriteBatch::new(), report: SalvageReport::default() };
    writer.take(found, watch)?;
    let report = writer.report;
    db.flush()?;
    db.close()?;
    Ok(report)
}

/// Fills the new database.
struct Writer<'a> {
    db: &'a Db,
    batch: WriteBatch,
    report: SalvageReport,
}

impl Writer<'_> {
    fn take(&mut self, found: Salvage, watch: &mut dyn FnMut(u64)) -> Result<()> {
        let Salvage { order, manifest, tables, logged, batches, deletions, lost, notes } = found;
        let deletions = Fragments::from_raw(deletions, &*order);
        self.report.manifest = manifest;
        self.report.tables = tables.len() as u64;
        self.report.batches = batches;
        self.report.lost = lost;
        self.report.notes = notes;
        let mut merge = Merge::new(order.clone(), tables, logged);
        // Of each key the first is the newest; the others are passed over.
        let mut last: Option<Vec<u8>> = None;
        let mut operands = 0u64;
        while let Some(head) = merge.next() {
            self.report.entries += 1;
            if self.report.entries.is_multiple_of(1 << 12) {
                watch(self.report.entries);
            }
            if last.as_ref().is_some_and(|key| order.compare(key, &head.key).is_eq()) {
                continue;
            }
            let covered = deletions.covering_seq(&head.key, MAX_SEQ, &*order);
            if covered.is_none_or(|seq| seq <= head.tag.seq()) {
                match head.tag.kind() {
                    Some(Kind::Value) => self.put(&head.key, &head.value)?,
                    Some(Kind::Merge) => operands += 1,
                    _ => {}
                }
            }
            last = Some(head.key);
        }
        self.write()?;
        for mut table in merge.tables {
            self.report.blocks += table.blocks_read();
            self.report.lost.extend(table.take_lost());
        }
        self.report.lost.dedup();
        if operands > 0 {
            self.report.notes.push(format!(
                "{operands} keys whose newest version is a merge operand are left out: this \
                 version can't combine operands"
            ));
        }
        if !self.report.lost.is_empty() {
            self.report.notes.push(
                "a lost stretch may have held newer values and deletions: keys in it may be \
                 missing, show an older value, or be back although they were deleted"
                    .to_owned(),
            );
        }
        Ok(())
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.batch.put(key, value)?;
        self.report.keys += 1;
        self.report.bytes += (key.len() + value.len()) as u64;
        if self.batch.byte_len() >= BATCH_BYTES { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<()> {
        if !self.batch.is_empty() {
            let batch = std::mem::take(&mut self.batch);
            self.db.write_opt(&batch, &WriteOptions::at(Durability::Buffered))?;
        }
        Ok(())
    }
}

/// The entry under one source's cursor.
struct Head {
    order: ComparatorRef,
    key: Vec<u8>,
    tag: Tag,
    value: Vec<u8>,
    /// The newer of two equal entries: a log's, then that of the table with the larger number.
    age: u64,
    source: usize,
}

/// All sources by key, newest version first.
struct Merge {
    order: ComparatorRef,
    tables: Vec<TableSalvage>,
    logged: std::vec::IntoIter<LoggedEntry>,
    heads: BinaryHeap<Reverse<Head>>,
}

impl Merge {
    fn new(order: ComparatorRef, tables: Vec<TableSalvage>, mut logged: Vec<LoggedEntry>) -> Merge {
        logged.sort_by(|a, b| {
            let a = InternalKey { user: &a.key, tag: a.tag };
            a.cmp(InternalKey { user: &b.key, tag: b.tag }, &*order)
        });
        let sources = tables.len() + 1;
        let logged = logged.into_iter();
        let mut merge = Merge { order, tables, logged, heads: BinaryHeap::new() };
        (0..sources).for_each(|source| merge.refill(source));
        merge
    }

    fn refill(&mut self, source: usize) {
        let order = self.order.clone();
        let head = match self.tables.get_mut(source) {
            None => self.logged.next().map(|e| Head {
                order,
                key: e.key,
                tag: e.tag,
                value: e.value,
                age: u64::MAX,
                source,
            }),
            Some(table) => {
                table.advance();
                let age = table.number();
                table.entry().map(|(key, tag, value)| Head {
                    order,
                    key: key.to_vec(),
                    tag,
                    value: value.to_vec(),
                    age,
                    source,
                })
            }
        };
        self.heads.extend(head.map(Reverse));
    }

    fn next(&mut self) -> Option<Head> {
        let Reverse(head) = self.heads.pop()?;
        self.refill(head.source);
        Some(head)
    }
}

impl Ord for Head {
    fn cmp(&self, other: &Head) -> Ordering {
        let (a, b) = (
            InternalKey { user: &self.key, tag: self.tag },
            InternalKey { user: &other.key, tag: other.tag },
        );
        a.cmp(b, &*self.order).then(other.age.cmp(&self.age))
    }
}
impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Head) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl PartialEq for Head {
    fn eq(&self, other: &Head) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for Head {}
