//! Taking out what is readable of a damaged directory, whatever is damaged: which files to look
//! at, and what each of them still holds.
//!
//! With a manifest that can be believed, its tables and logs are looked at and hardly anything
//! else. That is the newest manifest that reads, whatever CURRENT says, unless it shows that edits
//! are missing: good ones behind damage, tables that are gone while others are there, or a log
//! whose predecessor is gone. Without one, all tables and logs of the directory are; what belongs
//! to which level is then unknown and not needed, as every entry has its sequence number. Only
//! what had been deleted for good can come back from tables that were obsolete. Which table is of which
//! column family, the next best source says (`census`).
//!
//! Keeps: nothing is written. What is delivered passed its sum at its place; every stretch that
//! did not is a [`Lost`], and so is every file that is missing. Memory holds the logs and one
//! block per table.
//! Leaves to others: merging, deciding which version of a key is seen, writing it anew.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use lithify_base::{CfId, ComparatorRef, Error, Key, Result, shown};
use lithify_files::dir::{Dir, FileName};
use lithify_journal::manifest::WireFile;
use lithify_merge::tombstone::Fragments;

use crate::manifest::{Orders, Recovered, newest_readable, recover};
use crate::verify::{MANIFEST_MAX, is_followed};

mod blocks;
mod census;
mod logs;
mod table;

pub use logs::LoggedEntry;
pub use table::TableSalvage;

use census::{Census, Known};
use logs::Logs;

/// The family that every database has, and its name.
const DEFAULT_CF: CfId = CfId(0);
const DEFAULT_NAME: &str = "default";

/// Something that could not be read, or not be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Name of the file.
    pub file: String,
    /// The column family that it was of; `None` for what is of all, as logs and manifests are, and
    /// where nothing says it.
    pub family: Option<String>,
    /// Where the lost stretch begins, if it is not the whole file.
    pub offset: Option<u64>,
    /// Length of the stretch in bytes; 0 if it is not known.
    pub bytes: u64,
    /// Keys lie at or above this one; `None` is from the start.
    pub from: Option<Key>,
    /// Keys lie at or below this one; `None` is to the end.
    pub up_to: Option<Key>,
    /// Entries that were there, where something still says so.
    pub entries: Option<u64>,
    /// Why.
    pub cause: String,
}

impl Lost {
    fn file(file: FileName, cause: impl Into<String>) -> Lost {
        Lost {
            file: file.to_string(),
            family: None,
            offset: None,
            bytes: 0,
            from: None,
            up_to: None,
            entries: None,
            cause: cause.into(),
        }
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", lithify_base::foreign::sentence(&self.file))?;
        if let Some(family) = self.family.as_ref().filter(|name| *name != DEFAULT_NAME) {
            write!(f, " of column family `{}`", shown(family))?;
        }
        if let Some(offset) = self.offset {
            write!(f, " at byte {offset}")?;
        }
        match self.bytes {
            0 => {}
            1 => write!(f, ", 1 byte")?,
            n => write!(f, ", {n} bytes")?,
        }
        match self.entries {
            None => {}
            Some(1) => write!(f, ", 1 entry")?,
            Some(n) => write!(f, ", {n} entries")?,
        }
        match (&self.from, &self.up_to) {
            (None, None) => {}
            (Some(lo), None) => write!(f, ", keys from {}", shown(lo).short())?,
            (None, Some(hi)) => write!(f, ", keys up to {}", shown(hi).short())?,
            (Some(lo), Some(hi)) => {
                write!(f, ", keys from {} up to {}", shown(lo).short(), shown(hi).short())?;
            }
        }
        write!(f, ": {}", self.cause)
    }
}

/// What a directory still holds.
pub struct Salvage {
    /// The manifest that was followed; `None` if none can be believed.
    pub manifest: Option<u64>,
    /// The column families, by number; the default one is always there.
    pub families: BTreeMap<CfId, FamilySalvage>,
    /// Batches in the logs.
    pub batches: u64,
    /// What is known to be lost so far; reading the tables may add to it.
    pub lost: Vec<Lost>,
    /// What the reader of a report should know besides.
    pub notes: Vec<String>,
}

/// What a directory still holds of one column family.
pub struct FamilySalvage {
    /// Its name.
    pub name: String,
    /// Order of its keys.
    pub order: ComparatorRef,
    /// Tables whose blocks can be found.
    pub tables: Vec<TableSalvage>,
    /// What the logs hold, in the order it was written.
    pub logged: Vec<LoggedEntry>,
    /// Range deletions of tables and logs, each as far as it counts.
    pub deletions: Fragments,
    /// Range deletions of tables whose bounds nothing says. They say nothing of values whose sequence
    /// number is 0: those may be newer.
    pub unbounded: Fragments,
}

/// Looks for what is readable in `dir`, so that a new database in `target` can be made of it. `orders` knows
/// how keys are ordered.
///
/// # Errors
/// NotFound if no file of a database is there, or only what was made of one and is not finished; InvalidArgument, before anything is read, if `target` has
/// something in it or one directory lies in the other; Io if the directory can't be listed; those of `orders`,
/// which refuses orders that only the program knows.
pub fn salvage(dir: &Dir, target: &Dir, orders: Orders<'_>) -> Result<Salvage> {
    // What is only a part of a database would come out as a whole one.
    dir.check_finished()?;
    let tables = tables_in(dir)?;
    target.check_target(dir, "the new database")?;
    let mut notes = Vec::new();
    let mut lost = Vec::new();
    let (found, believed) = manifest(dir, &tables, &mut notes, &mut lost)?;
    let read = found.as_ref().map(|found| &found.state);
    let followed = read.filter(|_| believed);
    let mut logs = Logs::take(dir, followed);
    lost.append(&mut logs.lost);
    notes.append(&mut logs.notes);
    let named = read.and_then(|state| state.db_id.clone());
    let db_id = match believed {
        true => named,
        false => dir.read_identity().ok().flatten().or(named),
    };
    let mut census = match followed {
        Some(state) => {
            Census::stated(dir, state, &tables, state.last_seq.max(logs.last), &mut notes)
        }
        None => Census::listed(dir, read, &tables, db_id.as_deref(), &mut notes),
    };
    census.settle(&logs, &mut notes, &mut lost);
    let mut out = Salvage {
        manifest: found.as_ref().filter(|_| believed).map(|found| found.manifest),
        families: BTreeMap::new(),
        batches: logs.batches,
        lost,
        notes,
    };
    for (cf, Known { name, comparator }) in census.families {
        let order = orders(cf, &name, comparator.as_deref())?;
        let logged = logs.families.remove(&cf).unwrap_or_default();
        let deletions = Fragments::newest(logged.deletions, &*order);
        let (logged, tables, unbounded) = (logged.entries, Vec::new(), Fragments::default());
        let family = FamilySalvage { name, order, tables, logged, deletions, unbounded };
        out.families.insert(cf, family);
    }
    for table in census.tables {
        let family = table.cf.and_then(|cf| out.families.get_mut(&cf));
        let Some(family) = family else { continue };
        let (number, stated) = (table.number, table.stated);
        match TableSalvage::open(dir, number, stated, db_id.as_deref(), &family.order) {
            Ok(table) => {
                family.tables.push(table);
            }
            Err(e) => {
                let family = Some(family.name.clone());
                out.lost.push(Lost { family, ..whole_table(number, stated, &e) });
            }
        }
    }
    out.families.values_mut().for_each(FamilySalvage::join_deletions);
    Ok(out)
}

/// Numbers of the tables in a directory, which need not have any if it has a log or a manifest.
fn tables_in(dir: &Dir) -> Result<Vec<u64>> {
    let mut listed = dir.list_if_there()?.ok_or_else(|| super::verify::no_database(dir))?;
    for place in dir.places() {
        listed.extend(place.list()?);
    }
    let tables: Vec<u64> = listed
        .iter()
        .filter_map(|entry| match entry.file? {
            FileName::Table(n) | FileName::LevelDbTable(n) => Some(n),
            _ => None,
        })
        .collect();
    let any = |f: &FileName| matches!(f, FileName::Wal(_) | FileName::Manifest(_));
    if tables.is_empty() && !listed.iter().filter_map(|entry| entry.file.as_ref()).any(any) {
        return Err(super::verify::no_database(dir));
    }
    Ok(tables)
}

impl FamilySalvage {
    /// Joins the deletions of its tables, those with bounds and those without apart, and those of logs.
    fn join_deletions(&mut self) {
        let (tables, order) = (&self.tables, &*self.order);
        let of = |bounded| {
            let tables = tables.iter().filter(move |table| table.is_bounded() == bounded);
            tables.map(|table| (0, table.deletions().clone()))
        };
        let logged = (0, std::mem::take(&mut self.deletions));
        self.deletions = Fragments::union(of(true).chain([logged]), order);
        self.unbounded = Fragments::union(of(false), order);
    }
}

/// The newest manifest that reads, and whether it is to be followed.
fn manifest(
    dir: &Dir,
    tables: &[u64],
    notes: &mut Vec<String>,
    lost: &mut Vec<Lost>,
) -> Result<(Option<Recovered>, bool)> {
    let found = match recover(dir) {
        Ok(found) => found,
        Err(e) => {
            notes.push(format!("the manifest can't be reached as usual: {e}"));
            newest_readable(dir)?
        }
    };
    let all = "all tables and logs were taken, and what had been deleted or dropped for good may be back from \
               those that were obsolete";
    let Some(found) = found else {
        notes.push(format!("no manifest can be read: {all}"));
        return Ok((None, false));
    };
    let name = FileName::Manifest(found.manifest);
    if found.torn {
        let what = "its end is no whole edit";
        lost.push(Lost { offset: Some(found.good_end), ..Lost::file(name, what) });
    }
    match doubt(dir, &found, tables)? {
        None => Ok((Some(found), true)),
        Some(doubt) => {
            notes.push(format!("{name} can't be believed, as {doubt}: {all}"));
            Ok((Some(found), false))
        }
    }
}

/// Why a manifest that reads is not the last word: it lost edits that had taken effect.
fn doubt(dir: &Dir, found: &Recovered, tables: &[u64]) -> Result<Option<&'static str>> {
    let name = FileName::Manifest(found.manifest);
    let bytes = dir.read_sparse(name, MANIFEST_MAX)?.unwrap_or_default();
    if found.torn && is_followed(bytes.bytes()) {
        return Ok(Some("it is damaged in the middle"));
    }
    let files = || found.state.families.values().flat_map(|f| f.files.values());
    let named: BTreeSet<u64> = files().map(|f| f.backing.unwrap_or(f.number)).collect();
    let missing = named.iter().any(|n| !tables.contains(n));
    if missing && tables.iter().any(|n| !named.contains(n)) {
        return Ok(Some("it names tables that are gone and does not name others that are there"));
    }
    if found.check_room(dir).is_err() {
        return Ok(Some("no counter has reached the numbers in it"));
    }
    Ok(logs::is_broken_chain(dir, found.state.logs())
        .then_some("logs are gone that would be needed"))
}

/// A table of which nothing can be read.
fn whole_table(number: u64, stated: Option<&WireFile>, e: &Error) -> Lost {
    let user = |bytes: &[u8]| lithify_base::InternalKey::decode(bytes).map(|k| Key::from(k.user));
    Lost {
        bytes: stated.map_or(0, |f| f.size),
        from: stated.and_then(|f| user(&f.smallest)),
        up_to: stated.and_then(|f| user(&f.largest)),
        entries: stated.and_then(|f| f.counts).map(|c| c.entries),
        ..Lost::file(FileName::Table(number), e.to_string())
    }
}
