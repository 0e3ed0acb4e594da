//! Reading the live manifest: CURRENT, then the edits it leads to, folded into a tree.
//!
//! Keeps: nothing is written. What is returned passed every check: sums, the order of edits, the
//! tail rule, and (for a family) the invariants of the tree.
//! Leaves to others: whether the named files exist and are what the manifest says; logs.

use std::sync::Arc;

use lithify_base::zoo::{self, Bug};
use lithify_base::{
    Bytewise, CfId, Comparator, ComparatorRef, Error, Key, Result, ReverseBytewise,
};
use lithify_files::dir::{Dir, FileName};
use lithify_journal::manifest::{FamilyState, ManifestState, read_manifest_over};
use lithify_journal::wal::Verdict;
use lithify_lsm::{Edit, Version};

use super::translate;
use crate::numbers;

/// Largest manifest that is read.
const MANIFEST_MAX: u64 = 4 << 30;

/// The live manifest, read.
#[derive(Clone, Debug)]
pub struct Recovered {
    /// Its number.
    pub manifest: u64,
    /// What it adds up to. Epochs of level 0 fit a stratum; the next file number is above that of every
    /// file that this database can have made, whether an edit knows it or not.
    pub state: ManifestState,
    /// Bytes that took effect; what follows is a torn edit that was never acknowledged.
    pub good_end: u64,
    /// Whether something torn was left out.
    pub torn: bool,
    /// Written by this store, not by another engine.
    pub ours: bool,
}

impl Recovered {
    /// Whether the database can be written to: its counters have room.
    ///
    /// # Errors
    /// Corruption, with what to do instead.
    pub fn check_room(&self, dir: &Dir) -> Result<()> {
        let name = FileName::Manifest(self.manifest);
        numbers::check_room(&self.state).map_err(|e| e.in_file(dir.path_of(name).display()))
    }
}

/// Reads the manifest that CURRENT names; `None` if there is no database here yet: no CURRENT, and
/// nothing that is written only once there was one.
///
/// # Errors
/// Corruption if CURRENT, the manifest it names, or an edit inside is damaged or missing;
/// `Unsupported`, naming the feature, if the database needs what this version lacks.
pub fn recover(dir: &Dir) -> Result<Option<Recovered>> {
    let Some(manifest) = dir.read_current()? else { return check_empty(dir).map(|()| None) };
    read(dir, manifest).map(Some)
}

/// The newest manifest of the directory that can be read, whatever CURRENT says: for looking into
/// a database whose CURRENT is damaged, never for opening it. `None` if there is none.
///
/// # Errors
/// Io if the directory can't be listed.
pub fn newest_readable(dir: &Dir) -> Result<Option<Recovered>> {
    let listed = dir.list()?;
    let numbers = listed.iter().filter_map(|entry| match entry.file {
        Some(FileName::Manifest(n)) => Some(n),
        _ => None,
    });
    let mut numbers: Vec<u64> = numbers.collect();
    numbers.sort_unstable();
    Ok(numbers.into_iter().rev().find_map(|n| read(dir, n).ok()))
}

/// How the keys of column families are ordered: by a family's number, its name, and the name of the
/// comparator that is recorded for it, if one is.
pub type Orders<'a> = &'a dyn Fn(CfId, &str, Option<&str>) -> Result<ComparatorRef>;

/// The order of keys with the name that a manifest records, if it is one of ours; byte order if
/// none is recorded.
///
/// # Errors
/// Unsupported, with the name, for an order that only its program knows.
pub fn known_order(name: Option<&str>) -> Result<ComparatorRef> {
    match name {
        None => Ok(Arc::new(Bytewise)),
        Some(name) if name == Bytewise.name() => Ok(Arc::new(Bytewise)),
        Some(name) if name == ReverseBytewise.name() => Ok(Arc::new(ReverseBytewise)),
        Some(name) if has_timestamps(name) => Err(Error::unsupported(format!(
            "its keys have user-defined timestamps (comparator `{name}`), which this version does not \
             read"
        ))),
        Some(name) => Err(Error::unsupported(format!(
            "its keys are ordered by comparator `{name}`, which only the program that made it knows"
        ))),
    }
}

fn read(dir: &Dir, manifest: u64) -> Result<Recovered> {
    let name = FileName::Manifest(manifest);
    let blame = |e: Error| e.in_file(dir.path_of(name).display());
    let Some(bytes) = dir.read_sparse(name, MANIFEST_MAX)? else {
        return Err(blame(Error::corruption("CURRENT names this manifest, which is missing")));
    };
    let read = read_manifest_over(bytes.bytes(), 0).map_err(blame)?;
    let mut state = read.state;
    state.families.values_mut().for_each(match read.ours {
        true => translate::renumber,
        false => translate::order_foreign,
    });
    if !read.ours && state.min_log_to_keep > 0 {
        // What is prepared or committed may lie there, says RocksDB, and nothing else tells.
        state.sections_from = state.min_log_to_keep;
    }
    // A crash leaves files whose numbers no edit knows; a number is never used twice.
    if !zoo::on(Bug::NumbersAgain) {
        state.next_file = numbers::next_number(dir, numbers::known(&state))?;
    }
    let torn = read.verdict != Verdict::Clean;
    Ok(Recovered { manifest, state, good_end: read.good_end, torn, ours: read.ours })
}

/// No CURRENT: fine if the directory is new or a creation was interrupted, which leaves at most a
/// manifest and options. Tables and logs come later; without CURRENT nothing says what they mean.
///
/// # Errors
/// Corruption if there are tables or logs.
pub fn check_empty(dir: &Dir) -> Result<()> {
    let of_a_database = |file: &FileName| {
        matches!(file, FileName::Table(_) | FileName::LevelDbTable(_) | FileName::Wal(_))
    };
    let mut listed = dir.list_if_there()?.unwrap_or_default();
    for place in dir.places() {
        listed.extend(place.list()?);
    }
    match listed.iter().filter_map(|entry| entry.file).find(of_a_database) {
        None => Ok(()),
        Some(file) => Err(Error::corruption(format!(
            "it is missing, yet there is {file}; if the directory is to hold a new database, move \
             its files away first"
        ))
        .in_file(dir.path_of(FileName::Current).display())),
    }
}

/// The keys of a family are in this order.
///
/// # Errors
/// InvalidArgument if they are in another one; Unsupported if that is one of keys with timestamps.
pub(super) fn check_order(family: &FamilyState, order: &ComparatorRef) -> Result<()> {
    match family.comparator.as_deref().filter(|&name| name != order.name()) {
        None => Ok(()),
        Some(name) => Err(timestamps(family).unwrap_or_else(|| {
            Error::invalid(format!(
                "column family `{}` is ordered by comparator `{name}`, not `{}`",
                family.name,
                order.name()
            ))
        })),
    }
}

/// RocksDB's comparators of keys with timestamps.
fn has_timestamps(name: &str) -> bool {
    name.ends_with(".u64ts")
}

/// What is said of a family whose keys have timestamps.
pub(crate) fn timestamps(family: &FamilyState) -> Option<Error> {
    let name = family.comparator.as_deref().filter(|name| has_timestamps(name))?;
    Some(Error::unsupported(format!(
        "column family `{}` has keys with user-defined timestamps (comparator `{name}`), which this \
         version does not read",
        family.name
    )))
}

/// The tree of one column family.
///
/// # Errors
/// Corruption if its files break an invariant of the tree; InvalidArgument if there is no such
/// family or its comparator is another one.
pub fn family_version(state: &ManifestState, cf: CfId, order: ComparatorRef) -> Result<Version> {
    let Some(family) = state.families.get(&cf) else {
        return Err(Error::invalid(format!("there is no column family {}", cf.0)));
    };
    check_order(family, &order)?;
    let mut edit = Edit::new(cf);
    edit.adds = family
        .files
        .values()
        .map(|file| translate::file_meta(file, &*order))
        .collect::<Result<_>>()?;
    edit.log_number = Some(family.log_number);
    let cursor = |key: &[u8]| lithify_base::InternalKey::decode(key).map(|k| Key::from(k.user));
    edit.cursors =
        family.cursors.iter().filter_map(|(&level, key)| Some((level, cursor(key)?))).collect();
    let hint = family.bucket_hint.as_deref().and_then(translate::decode_hint);
    edit.bucket_hint = hint.map(std::sync::Arc::new);
    Version::empty(order).apply(&edit).map_err(|violation| {
        Error::corruption(format!(
            "the files of family `{}` form no tree: {violation}",
            family.name
        ))
    })
}
