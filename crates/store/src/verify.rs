//! Checking a whole database directory: every byte of every file that counts, and every
//! invariant that files alone can show.
//!
//! Checked: CURRENT and IDENTITY against the manifest; each edit of the manifest and the tree they
//! add up to (V1, V3 to V5, V9, V10, V13 to V15); every byte of every table and what the manifest
//! says of it (V3); the logs with the promises that they, the manifest and their followers make;
//! the sum of each options file; and that numbers strictly fall along the order of reads, key by
//! key, range deletions included (invariant R, V2).
//!
//! Keeps: nothing is written and no lock is taken, so it also works beside a running database:
//! what that one deleted or is writing meanwhile is no damage. One fault does not hide another:
//! if a file can't be read, the others still are.
//! Leaves to others: taking out what is good (`salvage`). The event log is no part of the
//! database: it is text for people, has no sums, and is not looked into.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use lithify_base::{CfId, ComparatorRef, Error, ErrorKind, Result, shown};
use lithify_env::OpenOpts;
use lithify_files::dir::{Dir, FileName, Listed, OPTIONS_MAX};
use lithify_journal::manifest::ManifestState;
use lithify_journal::options::{self, OptionsFile};
use lithify_lsm::{FileMeta, FileRef, Version, check};
use lithify_tables::sst::verify::{Stated, inspect};
use lithify_tables::sst::{OpenTable, TableReader};

use crate::janitor::{self, Live};
use crate::manifest::{family_version, known_order, translate};

mod logs;
mod manifest;
mod recency;

pub(crate) use manifest::{MANIFEST_MAX, is_followed};

/// How sure it is that something is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    /// Bytes are not what was written, or an invariant is broken.
    Damage,
    /// The end of a file is unfinished, and nothing says that it ever was finished: a crash leaves
    /// that behind, and the next open cuts it off; damage there looks the same.
    Torn,
    /// It could not be looked at, so nothing is known: the order of its keys is not known.
    Unchecked,
}

/// Something that was found wrong.
#[derive(Clone, Debug)]
pub struct Finding {
    /// How sure that is.
    pub grade: Grade,
    /// The column family that it is about; `None` if it concerns the database as a whole.
    pub family: Option<String>,
    /// File, offset where there is one, and cause.
    pub error: Error,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(family) = &self.family {
            write!(f, "column family `{}`: ", shown(family))?;
        }
        write!(f, "{}", self.error)
    }
}

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Everything that is wrong, in the order it was met.
    pub findings: Vec<Finding>,
    /// Tables read to their end.
    pub tables: u64,
    /// Data blocks that are good.
    pub blocks: u64,
    /// Entries of tables.
    pub entries: u64,
    /// Bytes of tables and logs.
    pub bytes: u64,
    /// Logs that are needed.
    pub logs: u64,
    /// Batches in them.
    pub batches: u64,
    /// Keys that a scan would show.
    pub keys: u64,
    /// Files of ours that nothing needs. The next open for writing collects them.
    pub orphans: Vec<String>,
    /// Files that are none of ours. They are never touched.
    pub foreign: Vec<String>,
    /// The family that is being looked at.
    family: Option<String>,
}

impl Report {
    /// True if nothing was found.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }
    fn damage(&mut self, error: Error) {
        self.find(Grade::Damage, error);
    }
    fn torn(&mut self, error: Error) {
        self.find(Grade::Torn, error);
    }
    fn find(&mut self, grade: Grade, error: Error) {
        self.findings.push(Finding { grade, family: self.family.clone(), error });
    }
}

/// Bytes read so far and to be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// So far.
    pub done: u64,
    /// In all.
    pub total: u64,
}

/// Checks the database in `dir`. `orders` are orders of keys that are none of ours: a family, or a table
/// without a manifest, is checked in the one whose name it records. `watch` is told of the progress, at
/// least once per block.
///
/// # Errors
/// NotFound if there is no database; Io if the directory can't be listed. All else is a finding.
pub fn verify(
    dir: &Dir,
    orders: &[ComparatorRef],
    watch: &mut dyn FnMut(Progress),
) -> Result<Report> {
    let mut look = Look {
        dir,
        orders,
        watch,
        progress: Progress::default(),
        listed: dir.list_if_there()?.ok_or_else(|| no_database(dir))?,
        report: Report::default(),
    };
    look.all()?;
    look.settle()?;
    Ok(look.report)
}

/// A table to be checked.
struct Table {
    file: FileRef,
    /// Whether the manifest counts its entries.
    counted: bool,
}

/// One family, as far as the manifest can be believed.
struct Family {
    name: String,
    order: ComparatorRef,
    /// `None` if its files form no tree.
    version: Option<Version>,
    tables: Vec<Table>,
}

struct Look<'a> {
    dir: &'a Dir,
    orders: &'a [ComparatorRef],
    watch: &'a mut dyn FnMut(Progress),
    progress: Progress,
    /// The directory when the look began.
    listed: Vec<Listed>,
    report: Report,
}

impl Look<'_> {
    fn all(&mut self) -> Result<()> {
        self.small_files();
        let Some(found) = self.manifest()? else {
            self.tables_alone();
            return Ok(());
        };
        let families = self.families(&found.state);
        let tables = families.values().flat_map(|f| &f.tables);
        // A manifest may state any sizes.
        let table_bytes = tables.fold(0_u64, |sum, t| sum.saturating_add(t.file.bytes));
        // Once block by block, once merged with the others.
        let total = table_bytes.saturating_mul(2);
        self.progress.total = total.saturating_add(self.log_bytes(&found.state));
        let mut read = BTreeMap::new();
        for (&cf, family) in &families {
            self.report.family = Some(family.name.clone());
            for table in &family.tables {
                let fragments = self.table(table, &family.order);
                read.insert((cf, table.file.id), fragments);
            }
        }
        self.report.family = None;
        let logged = self.logs(&found.state);
        for (cf, family) in &families {
            let of_log = logged.get(cf).map(Vec::as_slice).unwrap_or_default();
            if family.tables.is_empty() && of_log.is_empty() {
                continue;
            }
            self.report.family = Some(family.name.clone());
            let empty = || Version::empty(family.order.clone());
            let of_logs_alone = family.tables.is_empty().then(empty);
            if let Some(version) = family.version.as_ref().or(of_logs_alone.as_ref()) {
                let of_tables = |id| read.get(&(*cf, id)).and_then(Option::as_ref);
                self.recency(&family.order, version, &of_tables, of_log);
            }
        }
        self.report.family = None;
        self.rest_of_directory(found.manifest, &found.state);
        Ok(())
    }

    fn path(&self, file: FileName) -> String {
        self.dir.path_of(file).display().to_string()
    }

    fn advance(&mut self, bytes: u64) {
        self.progress.done = self.progress.done.saturating_add(bytes);
        (self.watch)(self.progress);
    }

    /// LOCK and the options files, but for those that no open of this database looks at; IDENTITY is
    /// compared with the manifest.
    fn small_files(&mut self) {
        let newest = self.dir.newest_options().unwrap_or(None);
        for entry in self.listed.clone() {
            let checked = match entry.file {
                Some(FileName::Lock) if entry.len > 0 => {
                    Err(Error::corruption("the lock file should be empty"))
                }
                Some(file @ FileName::Options(n)) if Some(n) <= newest => self.options(file),
                _ => Ok(()),
            };
            if let (Err(e), Some(file)) = (checked, entry.file) {
                self.report.damage(e.in_file(self.path(file)));
            }
        }
    }

    fn options(&self, file: FileName) -> Result<()> {
        // It may have been replaced since it was listed.
        let Some(bytes) = self.dir.read_whole(file, OPTIONS_MAX)? else { return Ok(()) };
        options::check_sum(&bytes)?;
        OptionsFile::parse(&bytes).map(drop)
    }

    /// The families of a manifest; what can't be a tree is reported.
    fn families(&mut self, state: &ManifestState) -> BTreeMap<CfId, Family> {
        let mut families = BTreeMap::new();
        for (&cf, family) in &state.families {
            let name = family.comparator.as_deref();
            self.report.family = Some(family.name.clone());
            let given = self.orders.iter().find(|o| name.is_none_or(|n| n == o.name())).cloned();
            let order = match given.map_or_else(|| known_order(name), Ok) {
                Ok(order) => order,
                Err(e) => {
                    let what = "it is not checked; give its comparator with Builder::comparator, or \
                                Builder::column_family";
                    let error = Error::new(e.kind(), what).caused_by(e);
                    self.report.find(Grade::Unchecked, error.in_file(self.dir.path().display()));
                    continue;
                }
            };
            let version = family_version(state, cf, order.clone());
            let version = version.and_then(|v| match check::all(&v) {
                Ok(()) => Ok(v),
                Err(violation) => Err(Error::corruption(violation.to_string())),
            });
            let version = match version {
                // A tree takes far more memory than the name of a family in a manifest.
                Ok(_) if family.files.is_empty() => None,
                Ok(version) => Some(version),
                Err(e) => {
                    self.report.damage(e.in_file(self.dir.path().display()));
                    None
                }
            };
            let meta = |wire| {
                let file = translate::file_meta(wire, &*order).ok()?;
                Some(Table { file: file.into(), counted: wire.counts.is_some() })
            };
            let tables = family.files.values().filter_map(meta).collect();
            let name = family.name.clone();
            families.insert(cf, Family { name, order, version, tables });
        }
        self.report.family = None;
        families
    }

    /// Checks one table. Its range deletions, if it can be read.
    fn table(
        &mut self,
        Table { file, counted }: &Table,
        order: &ComparatorRef,
    ) -> Option<recency::Deletions> {
        let opened = open_table(self.dir, file, order);
        let table = match opened {
            Ok(table) => table,
            Err(e) => {
                self.report.damage(e);
                self.advance(file.bytes);
                return None;
            }
        };
        let start = self.progress.done;
        // A slice of a table has bounds of its own, inside those of the table.
        let stated = Stated { meta: file, counted: *counted };
        let stated = file.backing.is_none().then_some(&stated);
        let (progress, watch) = (&mut self.progress, &mut *self.watch);
        let (checked, errors) = inspect(&table, stated, &mut |bytes| {
            progress.done = progress.done.saturating_add(bytes);
            watch(*progress);
        });
        self.progress.done = start.saturating_add(file.bytes);
        self.report.tables += 1;
        self.report.blocks += checked.blocks;
        self.report.entries += checked.entries;
        self.report.bytes += table.file_bytes();
        errors.into_iter().for_each(|e| self.report.damage(e));
        Some(recency::Deletions::of(&table, file))
    }

    /// Without a manifest each table speaks for itself.
    fn tables_alone(&mut self) {
        let numbers: Vec<(u64, u64)> = self
            .listed
            .iter()
            .filter_map(|entry| match entry.file? {
                FileName::Table(n) | FileName::LevelDbTable(n) => Some((n, entry.len)),
                _ => None,
            })
            .collect();
        self.progress.total = numbers.iter().map(|(_, len)| len).sum();
        for (number, len) in numbers {
            let start = self.progress.done;
            let (progress, watch) = (&mut self.progress, &mut *self.watch);
            let opened = lithify_tables::sst::open_alone(self.dir, number, self.orders);
            let (checked, errors) = match opened {
                Ok(table) => inspect(&table, None, &mut |bytes| {
                    progress.done += bytes;
                    watch(*progress);
                }),
                Err(e) => (Default::default(), vec![e]),
            };
            self.progress.done = start + len;
            self.report.tables += 1;
            self.report.blocks += checked.blocks;
            self.report.entries += checked.entries;
            self.report.bytes += len;
            errors.into_iter().for_each(|e| self.report.damage(e));
        }
    }

    /// Names what nothing needs and what is none of ours.
    fn rest_of_directory(&mut self, manifest: u64, state: &ManifestState) {
        let live = live(manifest, state, &self.listed);
        for entry in &self.listed {
            match entry.file {
                Some(file) if janitor::fate(file, &live) == janitor::Fate::Keep => {}
                Some(_) => self.report.orphans.push(entry.name.clone()),
                None => self.report.foreign.push(entry.name.clone()),
            }
        }
        // One that can't be listed has a missing table at most, and that is told.
        for entry in self.dir.places().iter().flat_map(|place| place.list().unwrap_or_default()) {
            let table =
                |file: &FileName| matches!(file, FileName::Table(_) | FileName::LevelDbTable(_));
            if let Some(file) = entry.file.filter(table)
                && janitor::fate(file, &live) != janitor::Fate::Keep
            {
                self.report.orphans.push(entry.name);
            }
        }
    }

    /// Takes back what a running database explains: files that it deleted or wrote to while they
    /// were being read.
    fn settle(&mut self) -> Result<()> {
        if self.report.findings.is_empty() {
            return Ok(());
        }
        let now = self.dir.list()?;
        let changed: BTreeSet<String> = self
            .listed
            .iter()
            .filter(|before| !now.contains(before))
            .map(|before| self.dir.path().join(&before.name).display().to_string())
            .collect();
        if changed.is_empty() {
            return Ok(());
        }
        // A new manifest makes every finding about an old file void; a writer at work grows its
        // last log and its manifest.
        let live = match crate::manifest::recover(self.dir) {
            Ok(Some(found)) => live(found.manifest, &found.state, &now),
            _ => return Ok(()),
        };
        let there: BTreeSet<&str> = now.iter().map(|entry| entry.name.as_str()).collect();
        self.report.findings.retain(|finding| {
            let Some(path) = finding.error.file() else { return true };
            let name = Path::new(path).file_name().and_then(|n| n.to_str()).unwrap_or_default();
            // A log may have been made after the look began, and be gone by now.
            if !changed.contains(path) && there.contains(name) {
                return true;
            }
            let file = FileName::parse(name);
            let needed = file.is_none_or(|f| janitor::fate(f, &live) == janitor::Fate::Keep);
            needed && finding.grade != Grade::Torn
        });
        Ok(())
    }
}

/// What a manifest needs, for telling orphans.
fn live(manifest: u64, state: &ManifestState, listed: &[Listed]) -> Live {
    let families = || state.families.values();
    let newest_options = listed.iter().filter_map(|entry| match entry.file {
        Some(FileName::Options(n)) => Some(n),
        _ => None,
    });
    Live {
        tables: families()
            .flat_map(|f| f.files.values())
            .map(|f| f.backing.unwrap_or(f.number))
            .collect(),
        manifests: [manifest].into(),
        logs: state.logs(),
        // The one before the newest is kept, too, and so are all others for what is said here.
        options: newest_options.min(),
        next_file: u64::MAX,
    }
}

/// The newest log below number `end`.
fn newest_log(listed: &[Listed], end: u64) -> Option<u64> {
    let logs = listed.iter().filter_map(|entry| match entry.file {
        Some(FileName::Wal(n)) if n < end => Some(n),
        _ => None,
    });
    logs.max()
}

/// Opens a table as the manifest describes it.
fn open_table(
    dir: &Dir,
    file: &FileMeta,
    order: &ComparatorRef,
) -> Result<std::sync::Arc<TableReader>> {
    let number = file.backing.unwrap_or(file.id).0;
    let (dir, name, opened) = dir.open_table_there(number, OpenOpts::read())?;
    TableReader::open(OpenTable {
        bytes: file.backing.is_none().then_some(file.bytes),
        base_context: file.base_context,
        largest_seq: Some(file.seqs.1),
        tail_bytes: file.tail_bytes,
        ..OpenTable::new(opened, dir.path_of(name).display().to_string(), order.clone())
    })
}

/// There is nothing to check.
pub(crate) fn no_database(dir: &Dir) -> Error {
    Error::new(ErrorKind::NotFound, "there is no database here").in_file(dir.path().display())
}
