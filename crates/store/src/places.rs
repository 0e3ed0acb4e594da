//! The further directories of a database: which may be used, by whom, and where its tables are.
//!
//! ```text
//!   /db    DEED  5f0c..           /fast  OWNER  5f0c.. id /db    its tables are here
//!   /copy  (a checkpoint of /db)  /fast  OWNER  5f0c.. id /db    refused: it has no DEED, or another one
//!   /copy  DEED  5f0c.. (cp -a)   /fast  OWNER  5f0c.. id /db    refused: it is elsewhere
//! ```
//!
//! The first open for writing takes the directories: it draws a name, writes it to DEED at home, and then
//! to OWNER in each of them, with where home is. DEED also counts them, so that one that is not named is missed.
//! A crash in between leaves some without OWNER; the next open goes on.
//!
//! Keeps: a directory is used, and its orphans are deleted, only if its OWNER is this database. One without
//! OWNER is taken only if no database is in it, and no tables, but for those of the manifest that is
//! being opened: it may be of RocksDB. All is looked at before the first byte is written.
//! Leaves to others: which directory a new table goes to (`plan`, `compact`).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use lithify_base::{CfId, Error, Result};
use lithify_env::Random;
use lithify_files::dir::{Deed, Dir, FileName, Listed, NAME_DIRS, Owner, TableDir, fresh_identity};
use lithify_journal::manifest::{ManifestState, WireFile};

/// Holds those of `wanted` that are there, so that tables of `home` are found in them, after a look at whose
/// they are.
///
/// # Errors
/// `InvalidArgument` for a directory of another database; Io.
pub fn attach(home: &Dir, wanted: &[PathBuf]) -> Result<()> {
    for path in wanted {
        let place = home.place_at(path);
        if place.path() == home.path() {
            continue;
        }
        let place = place.hold_if_there()?;
        if place.list_if_there()?.is_some() {
            check(home, &place)?;
            home.add_place(place);
        }
    }
    Ok(())
}

/// Makes all of `wanted` directories of `home`, whose id is `db_id` and whose manifest names the tables
/// `named`. What is new gets no permission bit of `denied`.
///
/// # Errors
/// `InvalidArgument`, and nothing was changed, if one of them is another database's, or has tables that
/// are not known to be of this one; Io.
pub fn own(
    home: &Dir,
    wanted: &[PathBuf],
    (db_id, named): (&str, &BTreeSet<u64>),
    random: &mut Random,
    denied: u32,
) -> Result<()> {
    let elsewhere = |path: &&PathBuf| home.place_at(path).path() != home.path();
    let wanted: Vec<&PathBuf> = wanted.iter().filter(elsewhere).collect();
    if wanted.is_empty() {
        return Ok(());
    }
    for path in &wanted {
        let place = home.place_at(path);
        check(home, &place)?;
        check_tables(home, &place, named)?;
    }
    let added = wanted.iter().filter(|path| !is_known(home, path)).count();
    let dirs = home.places().len() + added;
    let deed = match home.read_deed()? {
        Some(deed) if deed.dirs >= dirs => deed.name,
        old => {
            let name = old.map_or_else(|| fresh_identity(random), |old| old.name);
            home.write_deed(&Deed { name: name.clone(), dirs })?;
            name
        }
    };
    let owner = Owner { deed, db_id: db_id.to_owned(), home: home.whereabouts() };
    for path in wanted {
        let place = home.place_at(path).create(denied)?;
        if place.read_owner()?.is_none() {
            place.write_owner(&owner)?;
        }
        // Another database may have come first meanwhile.
        check(home, &place)?;
        home.add_place(place);
    }
    Ok(())
}

/// Whether tables are looked for in `path` already.
fn is_known(home: &Dir, path: &Path) -> bool {
    let place = home.place_at(path);
    home.places().iter().any(|known| known.path() == place.path())
}

/// Refuses the directories of `wanted` in which a new database in `home` can't have tables.
///
/// # Errors
/// As [`own`]. Those of another database are not attached.
pub fn check_new(home: &Dir, wanted: &[PathBuf]) -> Result<()> {
    if home.list_if_there()?.unwrap_or_default().iter().any(|e| e.file == Some(FileName::Owner)) {
        let what = "tables of another database are kept here; choose another directory";
        return Err(Error::invalid(what).in_file(home.path().display()));
    }
    for place in wanted.iter().map(|path| home.place_at(path)) {
        if place.path() != home.path() {
            check_tables(home, &place, &BTreeSet::new())?;
        }
    }
    Ok(())
}

/// Refuses a directory of another database.
fn check(home: &Dir, place: &Dir) -> Result<()> {
    let Some(listed) = place.list_if_there()? else { return Ok(()) };
    let refused = |what: String| Err(Error::invalid(what).in_file(place.path().display()));
    match place.read_owner()? {
        Some(owner) if home.read_deed()?.is_some_and(|deed| deed.name == owner.deed) => {
            if owner.home == home.whereabouts() {
                return Ok(());
            }
            refused(format!(
                "these are tables of the database in {}, and this one has its DEED: if it was moved here, remove \
                 OWNER, and it is written anew; if it is a copy, name other directories for its tables, or make \
                 the copy as a checkpoint",
                owner.home
            ))
        }
        Some(owner) => refused(format!(
            "tables of another database are kept here, whose id is {}, or this one is a copy of it; name \
             another directory for tables, or remove this one if that database is gone",
            owner.db_id
        )),
        None => match listed.iter().find(|entry| entry.file.is_some_and(is_of_home)) {
            Some(entry) => refused(format!(
                "there is a database here already: `{}`; name another directory for tables",
                entry.name
            )),
            None => Ok(()),
        },
    }
}

/// A file that only the home of a database has.
fn is_of_home(file: FileName) -> bool {
    use FileName::{Current, Deed, Identity, Manifest, Options, Wal};
    matches!(file, Deed | Current | Identity | Manifest(_) | Options(_) | Wal(_))
}

/// Refuses a directory without an owner that has tables, if none of `named` is found in it.
fn check_tables(home: &Dir, place: &Dir, named: &BTreeSet<u64>) -> Result<()> {
    let Some(listed) = place.list_if_there()? else { return Ok(()) };
    if place.read_owner()?.is_some() {
        return Ok(());
    }
    let number = |entry: &Listed| match entry.file? {
        FileName::Table(n) | FileName::LevelDbTable(n) => Some(n),
        _ => None,
    };
    let tables: Vec<(&Listed, u64)> =
        listed.iter().filter_map(|entry| Some((entry, number(entry)?))).collect();
    let Some((first, _)) = tables.first() else { return Ok(()) };
    for (_, number) in tables.iter().filter(|(_, number)| named.contains(number)) {
        if home.find_table(*number)?.is_some_and(|found| found.dir.path() == place.path()) {
            return Ok(());
        }
    }
    let what = format!(
        "there are tables here, such as `{}`, and none is of this database; name another directory for \
         tables, or move them away",
        first.name
    );
    Err(Error::invalid(what).in_file(place.path().display()))
}

/// Finds every table that the manifest names for a family with the directories `dirs`, checks that it has
/// its recorded size (V10), and notes in which of them it is.
///
/// # Errors
/// Corruption if one is missing or has another size; `InvalidArgument` if it may be in a directory that was
/// not named. Nothing was changed.
pub fn locate(home: &Dir, state: &mut ManifestState, cf: CfId, dirs: &[TableDir]) -> Result<()> {
    let Some(family) = state.families.get_mut(&cf) else { return Ok(()) };
    let dirs: Vec<Dir> = dirs.iter().map(|dir| home.place_at(&dir.path)).collect();
    for file in family.files.values_mut() {
        let number = file.backing.unwrap_or(file.number);
        let Some(found) = home.find_table(number)? else {
            return Err(lost(home, file, (&family.name, dirs.len())));
        };
        if found.len != file.size && file.backing.is_none() {
            let what =
                format!("the table has {} bytes, the manifest says {}", found.len, file.size);
            let path = found.dir.path_of(FileName::Table(number));
            return Err(Error::corruption(what).in_file(lithify_base::shown_path(&path)));
        }
        let at = dirs.iter().position(|dir| dir.path() == found.dir.path());
        file.place = match at.and_then(|at| u8::try_from(at).ok()) {
            Some(at) => at,
            // It came with a copy, or from a time with other directories, and stays until it is merged.
            None if usize::from(file.place) < dirs.len().max(1) => file.place,
            None => 0,
        };
    }
    Ok(())
}

/// What is said of a table that is nowhere.
fn lost(home: &Dir, file: &WireFile, (family, dirs): (&str, usize)) -> Error {
    let number = file.backing.unwrap_or(file.number);
    let path = home.path_of(FileName::Table(number));
    let what = match usize::from(file.place) {
        place if place >= dirs.max(1) => Error::invalid(format!(
            "table {number:06} of column family `{family}` is in directory number {place} of those that it \
             had for tables, counted from 0, and {dirs} were named; {NAME_DIRS}"
        )),
        _ => match home.lost(number) {
            e if !e.is_corruption() => return e,
            _ if home.places().is_empty() => Error::corruption(
                "the manifest names this table, which is missing; restore it from a backup",
            ),
            _ => Error::corruption(
                "the manifest names this table, which is missing; if one of the directories for tables is on a disk \
                 that is not mounted, mount it, else restore the table from a backup",
            ),
        },
    };
    what.in_file(lithify_base::shown_path(&path))
}

/// A copy has all tables at home.
pub fn all_at_home(state: &mut ManifestState) {
    let files = state.families.values_mut().flat_map(|family| family.files.values_mut());
    files.for_each(|file| file.place = 0);
}

/// The directories of these families without those that are named twice.
pub fn union<'a>(families: impl Iterator<Item = &'a [TableDir]>) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = Vec::new();
    for path in families.flatten().map(|dir| &dir.path) {
        if !all.contains(path) {
            all.push(path.clone());
        }
    }
    all
}

#[cfg(test)]
mod tests;
