//! Taking out what is readable of a damaged directory into a new database.
//!
//! All versions that can still be read are merged by key; of each key the one with the largest
//! sequence number counts, unless it is a deletion or a newer range deletion covers it; merge operands
//! are combined with what is below them, if there is a merge operator. So the
//! new database shows what the old one showed, but for what is lost: a key whose newest version
//! is in a lost block shows an older one or is missing, and a lost deletion brings back what it
//! had deleted. The report says where. One column family is taken out after the other.
//!
//! Keeps: the old directory is only read. The new one is no database before all is in it
//! ([`Dir::begin`]), whatever cuts the salvage short. What is in blocks that pass their sums comes back exactly.
//! Leaves to others: finding what is readable ([`lithify_store::salvage`]).

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::ops::ControlFlow;
use std::path::Path;

use crate::hold;
use lithify_base::{
    CfId, ComparatorRef, Error, InternalKey, Kind, MAX_SEQ, MergeOperatorRef, Result, Tag,
    shown_path,
};
use lithify_env::Env;
use lithify_files::Dir;
pub use lithify_store::salvage::Lost;
use lithify_store::salvage::{FamilySalvage, LoggedEntry, Salvage, TableSalvage};
use lithify_tree::{
    Batch, DEFAULT_CF, DEFAULT_NAME, Durability, Making, OpenOptions, Operands, Shell,
    WriteOptions, open, proportion,
};

/// Bytes of keys and values written at once.
const BATCH_BYTES: usize = 1 << 20;

/// What was taken out, and what was not.
#[derive(Clone, Debug, Default)]
pub struct SalvageReport {
    /// Number of the manifest that was followed; `None` if none could be believed.
    pub manifest: Option<u64>,
    /// The column families of the new database, `default` first. The figures below are of all.
    pub families: Vec<SalvagedFamily>,
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
    /// Keys whose merge operands were read and could not be combined. They are not in the new database.
    pub left_out: u64,
    /// What else one should know.
    pub notes: Vec<String>,
}

/// What was taken out of one column family.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SalvagedFamily {
    /// Its name; `unnamed-N` if nothing says that of family number N.
    pub name: String,
    /// Its keys in the new database.
    pub keys: u64,
    /// Bytes of these keys and their values.
    pub bytes: u64,
    /// Its tables that were read, in full or in part.
    pub tables: u64,
    /// Entries of its tables and of the logs, all versions.
    pub entries: u64,
}

/// What `Builder::salvage` does.
pub fn salvage(
    mut with: OpenOptions,
    from: &Path,
    to: &Path,
    watch: &mut dyn FnMut(u64),
) -> Result<SalvageReport> {
    with.forget_times();
    let env = with.world();
    with.env = Some(env.clone());
    let source = with.hold(&env.fs, from)?;
    let target = Dir::new(source.fs().clone(), to);
    // A writer deletes what is being read, and a part would come out as the whole.
    let _held = hold(&source)?;
    let orders =
        |cf: CfId, name: &str, recorded: Option<&str>| with.order_found(cf, name, recorded);
    let found = lithify_store::salvage::salvage(&source, &target, &orders)?;
    proportion::admit(found.families.len(), &with.settings)?;
    if let Some(default) = found.families.get(&DEFAULT_CF) {
        with.order = default.order.clone();
    }
    // Nothing is there but what begins here. What is set is stored, and must not refuse later opens.
    with.settings.create_if_missing = true;
    with.settings.error_if_exists = false;
    with.denied = source.denied()?;
    let target = target.create(with.denied())?;
    with = with.at_home();
    with.making = Making::Copy;
    with.env = Some(Env { fs: target.fs().clone(), ..env });
    let fill = |target: Dir| {
        let report = fill(with, to, found, watch)?;
        target.finish()?;
        Ok(report)
    };
    target.begin().and_then(fill).map_err(|e: Error| e.left_unfinished(shown_path(to)))
}

/// Makes the new database of what was found.
fn fill(
    with: OpenOptions,
    to: &Path,
    found: Salvage,
    watch: &mut dyn FnMut(u64),
) -> Result<SalvageReport> {
    let db = open(with.clone(), to)?;
    let mut report = SalvageReport {
        manifest: found.manifest,
        batches: found.batches,
        lost: found.lost,
        notes: found.notes,
        ..SalvageReport::default()
    };
    for (cf, taken) in found.families {
        let options = with.family(cf, &taken.name);
        let operator = options.components().operator;
        let family = match cf {
            DEFAULT_CF => db.shell.clone(),
            _ => {
                let options = options.comparator(taken.order.clone());
                db.shell.create_family(&taken.name, &options)?
            }
        };
        let (batch, done) = (Batch::default(), SalvagedFamily::default());
        let (family, report) = (&family, &mut report);
        let mut writer = Writer { family, batch, report, done, operator, failed: 0 };
        writer.take(taken, watch)?;
        family.flush()?;
    }
    if !report.lost.is_empty() {
        report.notes.push(
            "a lost stretch may have held newer values and deletions: keys in it may be missing, \
             show an older value, or be back although they were deleted"
                .to_owned(),
        );
    }
    db.close()?;
    Ok(report)
}

/// Fills a column family of the new database.
struct Writer<'a> {
    family: &'a Shell,
    batch: Batch,
    report: &'a mut SalvageReport,
    done: SalvagedFamily,
    operator: Option<MergeOperatorRef>,
    /// Keys whose operands could not be combined.
    failed: u64,
}

impl Writer<'_> {
    fn take(&mut self, taken: FamilySalvage, watch: &mut dyn FnMut(u64)) -> Result<()> {
        let FamilySalvage { name, order, tables, logged, deletions, unbounded } = taken;
        self.done.tables = tables.len() as u64;
        let mut merge = Merge::new(order.clone(), tables, logged);
        // Of each key the first is the newest; the others are passed over, but for those that operands
        // are applied to.
        let mut last: Option<Vec<u8>> = None;
        let mut operands = Operands::default();
        while let Some(head) = merge.next() {
            self.done.entries += 1;
            let all = self.report.entries + self.done.entries;
            if all.is_multiple_of(1 << 12) {
                watch(all);
            }
            let same = last.as_ref().filter(|key| order.compare(key, &head.key).is_eq());
            if same.is_some() && operands.is_empty() {
                continue;
            }
            if let (Some(key), None) = (&last, same) {
                self.combined(key, &mut operands, None)?;
            }
            if matches!(head.tag.kind(), None | Some(Kind::RangeDelete)) {
                continue; // no entry of a key
            }
            let mut covered = deletions.covering_seq(&head.key, MAX_SEQ, &*order);
            if head.tag.seq() > 0 {
                covered = covered.max(unbounded.covering_seq(&head.key, MAX_SEQ, &*order));
            }
            match operands.take(head.tag, &head.value, covered)? {
                ControlFlow::Continue(()) => {}
                ControlFlow::Break(base) if !operands.is_empty() => {
                    self.combined(&head.key, &mut operands, base)?;
                }
                ControlFlow::Break(Some(value)) => self.put(&head.key, &value)?,
                ControlFlow::Break(None) => {}
            }
            last = Some(head.key);
        }
        if let Some(key) = &last {
            self.combined(key, &mut operands, None)?;
        }
        self.write()?;
        for mut table in merge.tables {
            self.report.blocks += table.blocks_read();
            let of_family = |lost: Lost| Lost { family: Some(name.clone()), ..lost };
            self.report.lost.extend(table.take_lost().into_iter().map(of_family));
        }
        self.tell(name);
        Ok(())
    }

    /// Adds what was done to the report.
    fn tell(&mut self, name: String) {
        if self.failed > 0 {
            let why = match &self.operator {
                Some(operator) => {
                    format!("merge operator `{}` can't combine them", operator.name())
                }
                None => "no merge operator was given".to_owned(),
            };
            let whose = match name.as_str() {
                DEFAULT_NAME => String::new(),
                name => format!(" of column family `{name}`"),
            };
            let keys = self.failed;
            let note = format!("{keys} keys{whose} with merge operands are left out: {why}");
            self.report.notes.push(note);
            self.report.left_out += keys;
        }
        let done = SalvagedFamily { name, ..std::mem::take(&mut self.done) };
        self.report.keys += done.keys;
        self.report.bytes += done.bytes;
        self.report.tables += done.tables;
        self.report.entries += done.entries;
        self.report.families.push(done);
    }

    /// Writes what `operands`, if there are any, make of `base`.
    fn combined(
        &mut self,
        key: &[u8],
        operands: &mut Operands,
        base: Option<Vec<u8>>,
    ) -> Result<()> {
        if operands.is_empty() {
            return Ok(());
        }
        let value = operands.combine(self.operator.as_ref(), key, base.as_deref());
        operands.clear();
        match value {
            Ok(value) => self.put(key, &value),
            Err(_) => {
                self.failed += 1;
                Ok(())
            }
        }
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.batch.put(self.family.cf(), key, value)?;
        self.done.keys += 1;
        self.done.bytes += (key.len() + value.len()) as u64;
        if self.batch.byte_len() >= BATCH_BYTES { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<()> {
        if !self.batch.is_empty() {
            self.family.write_batch(&self.batch, &WriteOptions::at(Durability::Buffered))?;
            self.batch.clear();
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
