//! Taking out what is readable of a damaged directory, whatever is damaged: which files to look
//! at, and what each of them still holds.
//!
//! With a manifest that can be believed, its tables and logs are looked at and hardly anything
//! else. That is the newest manifest that reads, whatever CURRENT says, unless it shows that edits
//! are missing: good ones behind damage, tables that are gone while others are there, or a log
//! whose predecessor is gone. Without one, all tables and logs of the directory are; what belongs
//! to which level is then unknown and not needed, as every entry has its sequence number. Only
//! what had been deleted for good can come back from tables that were obsolete.
//!
//! Keeps: nothing is written. What is delivered passed its sum at its place; every stretch that
//! did not is a [`Lost`], and so is every file that is missing. Memory holds the logs and one
//! block per table.
//! Leaves to others: merging, deciding which version of a key is seen, writing it anew.

use std::collections::BTreeSet;
use std::fmt;

use lithify_base::{Bytewise, CfId, ComparatorRef, Error, Key, Result, ReverseBytewise, Seq};
use lithify_format::manifest::{ManifestState, WireFile};
use lithify_merge::tombstone::RangeTombstone;

use crate::dir::{Dir, FileName};
use crate::manifest::{Recovered, known_order, newest_readable, recover};
use crate::sst::open_alone;
use crate::verify::{MANIFEST_MAX, is_followed};

mod blocks;
mod logs;
mod table;

pub use logs::LoggedEntry;
pub use table::TableSalvage;

/// The one family that is taken out.
const DEFAULT_CF: CfId = CfId(0);

/// Something that could not be read, or not be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Name of the file.
    pub file: String,
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
        f.write_str(&self.file)?;
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
            (Some(lo), None) => write!(f, ", keys from {}", lo.escape_ascii())?,
            (None, Some(hi)) => write!(f, ", keys up to {}", hi.escape_ascii())?,
            (Some(lo), Some(hi)) => {
                write!(f, ", keys from {} up to {}", lo.escape_ascii(), hi.escape_ascii())?;
            }
        }
        write!(f, ": {}", self.cause)
    }
}

/// What a directory still holds.
pub struct Salvage {
    /// Order of the keys.
    pub order: ComparatorRef,
    /// The manifest that was followed; `None` if none can be believed.
    pub manifest: Option<u64>,
    /// Tables whose blocks can be found.
    pub tables: Vec<TableSalvage>,
    /// What the logs hold, in the order it was written.
    pub logged: Vec<LoggedEntry>,
    /// Batches in the logs.
    pub batches: u64,
    /// Range deletions of tables and logs.
    pub deletions: Vec<RangeTombstone>,
    /// What is known to be lost so far; reading the tables may add to it.
    pub lost: Vec<Lost>,
    /// What the reader of a report should know besides.
    pub notes: Vec<String>,
}

/// Looks for what is readable in `dir`. `order` is the order of its keys if it is not one of ours.
///
/// # Errors
/// NotFound if no file of a database is there; Unsupported if its keys are in an order that only
/// its program knows; Io if the directory can't be listed.
pub fn salvage(dir: &Dir, order: Option<ComparatorRef>) -> Result<Salvage> {
    let listed = dir.list_if_there()?.ok_or_else(|| super::verify::no_database(dir))?;
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
    let mut notes = Vec::new();
    let mut lost = Vec::new();
    let found = manifest(dir, &tables, &mut notes, &mut lost)?;
    let order = match order {
        Some(order) => order,
        None => order_of(dir, found.as_ref(), &tables)?,
    };
    let mut out = Salvage {
        order,
        manifest: found.as_ref().map(|f| f.manifest),
        tables: Vec::new(),
        logged: Vec::new(),
        batches: 0,
        deletions: Vec::new(),
        lost,
        notes,
    };
    match found {
        Some(found) => out.by_manifest(dir, &found, &tables),
        None => out.by_listing(dir, &tables),
    }
    Ok(out)
}

/// The manifest to follow.
fn manifest(
    dir: &Dir,
    tables: &[u64],
    notes: &mut Vec<String>,
    lost: &mut Vec<Lost>,
) -> Result<Option<Recovered>> {
    let found = match recover(dir) {
        Ok(found) => found,
        Err(e) => {
            notes.push(format!("the manifest can't be reached as usual: {e}"));
            newest_readable(dir)?
        }
    };
    let all = "all tables and logs were taken, and what had been deleted for good may be back from \
               tables that were obsolete";
    let Some(found) = found else {
        notes.push(format!("no manifest can be read: {all}"));
        return Ok(None);
    };
    let name = FileName::Manifest(found.manifest);
    if found.torn {
        let what = "its end is no whole edit";
        lost.push(Lost { offset: Some(found.good_end), ..Lost::file(name, what) });
    }
    match doubt(dir, &found, tables)? {
        None => Ok(Some(found)),
        Some(doubt) => {
            notes.push(format!("{name} can't be believed, as {doubt}: {all}"));
            Ok(None)
        }
    }
}

/// Why a manifest that reads is not the last word: it lost edits that had taken effect.
fn doubt(dir: &Dir, found: &Recovered, tables: &[u64]) -> Result<Option<&'static str>> {
    let name = FileName::Manifest(found.manifest);
    let bytes = dir.read_whole(name, MANIFEST_MAX)?.unwrap_or_default();
    if found.torn && is_followed(&bytes) {
        return Ok(Some("it is damaged in the middle"));
    }
    let files = || found.state.families.values().flat_map(|f| f.files.values());
    let named: BTreeSet<u64> = files().map(|f| f.backing.unwrap_or(f.number)).collect();
    let missing = named.iter().any(|n| !tables.contains(n));
    if missing && tables.iter().any(|n| !named.contains(n)) {
        return Ok(Some("it names tables that are gone and does not name others that are there"));
    }
    let from = found.state.families.get(&DEFAULT_CF).map_or(0, |f| f.log_number);
    Ok(logs::is_broken_chain(dir, from).then_some("logs are gone that would be needed"))
}

fn order_of(dir: &Dir, found: Option<&Recovered>, tables: &[u64]) -> Result<ComparatorRef> {
    let family = found.and_then(|f| f.state.families.get(&DEFAULT_CF));
    if let Some(name) = family.and_then(|f| f.comparator.as_deref()) {
        return known_order(Some(name));
    }
    let reverse: ComparatorRef = std::sync::Arc::new(ReverseBytewise);
    let reversed = |&n: &u64| {
        let table = open_alone(dir, n, None).ok()?;
        Some(table.properties().comparator == reverse.name())
    };
    match tables.iter().find_map(reversed) {
        Some(true) => Ok(reverse),
        _ => Ok(std::sync::Arc::new(Bytewise)),
    }
}

impl Salvage {
    fn by_manifest(&mut self, dir: &Dir, found: &Recovered, listed: &[u64]) {
        let state = &found.state;
        for (cf, family) in state.families.iter().filter(|(cf, _)| **cf != DEFAULT_CF) {
            let (name, files) = (&family.name, family.files.len());
            self.notes.push(format!(
                "column family {} `{name}` with {files} tables is left out: this version has only \
                 the default family",
                cf.0
            ));
        }
        let Some(family) = state.families.get(&DEFAULT_CF) else { return };
        let db_id = state.db_id.as_deref();
        for file in family.files.values() {
            self.table(dir, file.backing.unwrap_or(file.number), Some(file), db_id);
        }
        self.logs(dir, family.log_number, &state.wals);
        self.newer_tables(dir, state, listed);
    }

    /// A manifest that lost its end knows nothing of what was flushed last, and the log of it may
    /// be gone. A table with numbers above all others can only be that.
    fn newer_tables(&mut self, dir: &Dir, state: &ManifestState, listed: &[u64]) {
        let of_logs = self.logged.last().map_or(0, LoggedEntry::seq);
        let known = state.last_seq.max(of_logs);
        let files = || state.families.values().flat_map(|f| f.files.values());
        for &number in listed.iter().filter(|n| !files().any(|f| f.number == **n)) {
            let newest = |n: u64| -> Option<Seq> {
                let table = open_alone(dir, n, Some(&self.order)).ok()?;
                let props = table.properties();
                let ours = state.db_id.as_deref() == Some(props.creating_db_identity.as_str());
                props.key_largest_seqno.filter(|_| ours)
            };
            if newest(number).is_some_and(|seq| seq > known) {
                self.notes.push(format!(
                    "{} has newer writes than the manifest knows of, and was taken",
                    FileName::Table(number)
                ));
                self.table(dir, number, None, state.db_id.as_deref());
            }
        }
    }

    fn by_listing(&mut self, dir: &Dir, tables: &[u64]) {
        let db_id = dir.read_identity().ok().flatten();
        for &number in tables {
            self.table(dir, number, None, db_id.as_deref());
        }
        self.logs(dir, 0, &Default::default());
    }

    fn table(&mut self, dir: &Dir, number: u64, stated: Option<&WireFile>, db_id: Option<&str>) {
        match TableSalvage::open(dir, number, stated, db_id, &self.order) {
            Ok(Some(table)) => {
                self.deletions.extend(table.deletions().iter().cloned());
                self.lost.extend(table.lost().cloned());
                self.tables.push(table);
            }
            Ok(None) => {
                let name = FileName::Table(number);
                self.notes.push(format!("{name} is of another database or family: left out"));
            }
            Err(e) => self.lost.push(whole_table(number, stated, &e)),
        }
    }
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
