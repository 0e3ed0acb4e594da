//! Which files of a directory are not needed any more: a pure decision, and the deletion.
//!
//! Keeps: a file is deleted only if its name is one of ours, its number was
//! handed out by this database, and nothing live needs it; a table, besides, only if it does not
//! carry another database's id. Foreign files are never touched. Whatever is in doubt is kept
//! and reported. In further directories ([`crate::places`]) that is so for tables, and nothing else there is ours.
//! Leaves to others: when to look (never before the manifest was read without error), and what
//! is live.

use std::collections::BTreeSet;
use std::ops::Range;

use lithify_base::Result;
use lithify_base::zoo::{self, Bug};
use lithify_files::dir::{Dir, FileName, Listed};
use lithify_format::table::footer::FOOTER_LEN;

use crate::props::properties;

/// What is needed.
#[derive(Clone, Debug, Default)]
pub struct Live {
    /// Tables of every version that is pinned, of running jobs, and of uncertain edits; backing
    /// files included.
    pub tables: BTreeSet<u64>,
    /// The manifest that CURRENT names, and any other that it may name after a crash.
    pub manifests: BTreeSet<u64>,
    /// Logs with these numbers are needed.
    pub logs: Range<u64>,
    /// The newest complete options file, if there is one; the one before it is kept, too.
    pub options: Option<u64>,
    /// Numbers from here on were never handed out: such a file is foreign.
    pub next_file: u64,
}

/// What is to be done about a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is needed, or none of ours.
    Keep,
    /// It looks like ours, but its number was never handed out.
    Doubt,
    /// Nothing needs it.
    Delete,
}

/// What is to be done about a file, by its name.
pub fn fate(file: FileName, live: &Live) -> Fate {
    let needed = match file {
        FileName::Current | FileName::Unfinished | FileName::Identity | FileName::Lock => true,
        FileName::Events | FileName::OldEvents | FileName::InfoLog => true,
        FileName::Deed | FileName::Owner => true,
        FileName::Manifest(n) => live.manifests.contains(&n),
        FileName::Wal(n) => live.logs.contains(&n),
        FileName::Table(n) | FileName::LevelDbTable(n) => live.tables.contains(&n),
        FileName::Options(n) => live.options.is_none_or(|newest| n >= newest),
        FileName::Temp(_) | FileName::OptionsTemp(_) => false,
    };
    match file.number() {
        _ if needed => Fate::Keep,
        Some(n) if n >= live.next_file => Fate::Doubt,
        _ => Fate::Delete,
    }
}

/// The files to delete and those in doubt, in name order.
pub fn sort_out(listed: &[Listed], live: &Live) -> (Vec<FileName>, Vec<FileName>) {
    let live = with_older_options(listed, live);
    let ours = listed.iter().filter_map(|entry| Some((entry.file?, fate(entry.file?, &live))));
    let (mut delete, mut doubt) = (Vec::new(), Vec::new());
    for (file, fate) in ours {
        match fate {
            Fate::Keep => {}
            Fate::Doubt => doubt.push(file),
            Fate::Delete => delete.push(file),
        }
    }
    (delete, doubt)
}

/// Keeps the options file before the newest as well: it shows what an upgrade changed.
fn with_older_options(listed: &[Listed], live: &Live) -> Live {
    let older = listed.iter().filter_map(|entry| match entry.file {
        Some(FileName::Options(n)) if Some(n) < live.options => Some(n),
        _ => None,
    });
    let mut live = live.clone();
    live.options = older.max().or(live.options);
    live
}

/// What a clean-up did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Files that are gone, and their bytes.
    pub deleted: Vec<(FileName, u64)>,
    /// Files that were kept although nothing needs them, and why.
    pub kept: Vec<(FileName, &'static str)>,
}

/// Deletes what nothing needs. `db_id` guards orphaned tables: one that carries another
/// database's id was put there by someone and stays.
///
/// # Errors
/// Io if the directory cannot be listed. A file that cannot be deleted is reported and tried again
/// next time.
pub fn sweep(dir: &Dir, live: &Live, db_id: &str) -> Result<Swept> {
    let listed = dir.list()?;
    let live = with_older_options(&listed, live);
    let mut swept = Swept::default();
    let all = |entry: &Listed| Some((entry.file?, entry.len));
    sweep_in(dir, listed.iter().filter_map(all), (&live, db_id), &mut swept);
    for place in dir.places() {
        use FileName::{LevelDbTable, Table, Temp};
        let table = |entry: &Listed| Some((entry.file?, entry.len));
        let tables =
            |file: &(FileName, u64)| matches!(file.0, Table(_) | LevelDbTable(_) | Temp(_));
        let listed = place.list()?;
        sweep_in(
            &place,
            listed.iter().filter_map(table).filter(tables),
            (&live, db_id),
            &mut swept,
        );
    }
    Ok(swept)
}

/// The same for some files of one directory, each with its length.
fn sweep_in(
    dir: &Dir,
    files: impl Iterator<Item = (FileName, u64)>,
    (live, db_id): (&Live, &str),
    swept: &mut Swept,
) {
    for (file, len) in files {
        match fate(file, live) {
            Fate::Keep => {}
            Fate::Doubt => swept.kept.push((file, "its number was never handed out")),
            Fate::Delete
                if !zoo::on(Bug::ForeignDeleted) && is_of_another(dir, file, len, db_id) =>
            {
                swept.kept.push((file, "it belongs to another database"));
            }
            Fate::Delete => match dir.remove(file) {
                Ok(()) => swept.deleted.push((file, len)),
                Err(_) => swept.kept.push((file, "it could not be deleted")),
            },
        }
    }
}

/// True if `file` is a table that does not name this database as its maker, or if that can't be told.
/// One whose bytes make no table is what a crash leaves of one of ours: its number was handed out
/// here.
fn is_of_another(dir: &Dir, file: FileName, len: u64, db_id: &str) -> bool {
    let (FileName::Table(number) | FileName::LevelDbTable(number)) = file else { return false };
    if len < FOOTER_LEN as u64 {
        return false;
    }
    match properties(dir, number) {
        Ok(props) => props.creating_db_identity != db_id,
        Err(e) => !e.is_corruption(),
    }
}

#[cfg(test)]
mod tests;
