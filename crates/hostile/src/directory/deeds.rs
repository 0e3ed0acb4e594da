//! The operations that are done to a hostile directory: all that a library's user or the command line
//! would do.
//!
//! Keeps: an operation may fail, and may leave anything in the directory itself, in its target and in
//! the sound database or backups beside it.

use std::path::{Path, PathBuf};

use lithify::import::ImportOptions;
use lithify::{Backups, Db, IngestOptions, Result};
use lithify_base::{Bytewise, Error, ErrorKind, ReverseBytewise};
use lithify_env::{Fs, OpenOpts, PosixFs};
use lithify_tables::sst::{OpenTable, TableIter, TableReader, verify::verify};

use super::guard::walk;
use super::images::{builder, env};
use crate::image::scan;

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    /// Open, put, get, flush, scan, statistics, picture, explain, close; and open again.
    Open,
    /// The same as far as it goes without writing.
    ReadOnly,
    Follow,
    Verify,
    Salvage,
    Import,
    ImportInPlace,
    Checkpoint,
    /// The directory's database is backed up to sound backups.
    BackUpFrom,
    /// A sound database is backed up to the directory.
    BackUpInto,
    /// Backups are listed and verified.
    BackupsRead,
    Restore,
    Purge,
    DeleteBackup,
    /// Each of its tables by itself.
    Dump,
    /// A sound database takes in one of its tables.
    Ingest,
}

impl Deed {
    pub(super) const ALL: [Deed; 16] = [
        Deed::Open,
        Deed::ReadOnly,
        Deed::Follow,
        Deed::Verify,
        Deed::Salvage,
        Deed::Import,
        Deed::ImportInPlace,
        Deed::Checkpoint,
        Deed::BackUpFrom,
        Deed::BackUpInto,
        Deed::BackupsRead,
        Deed::Restore,
        Deed::Purge,
        Deed::DeleteBackup,
        Deed::Dump,
        Deed::Ingest,
    ];

    /// True if it needs a sound database or sound backups.
    pub(super) fn needs(self) -> (bool, bool) {
        (matches!(self, Deed::BackUpInto | Deed::Ingest), self == Deed::BackUpFrom)
    }
}

/// The places of one program.
#[derive(Debug)]
pub(super) struct Places {
    /// The directory that a stranger prepared.
    pub(super) hostile: PathBuf,
    /// Where an operation puts what it makes.
    pub(super) target: PathBuf,
    /// A sound database of ours.
    pub(super) database: PathBuf,
    /// Sound backups of ours.
    pub(super) backups: PathBuf,
}

/// Does `deed`; `how` chooses among its variants.
pub(super) fn carry_out(deed: Deed, how: u8, at: &Places) -> Result<()> {
    let hostile = &at.hostile;
    match deed {
        Deed::Open => open(hostile),
        Deed::ReadOnly => {
            let db = builder().open_read_only(hostile)?;
            let looked = look(&db);
            db.close().and(looked)
        }
        Deed::Follow => {
            let follower = builder().open_follower(hostile)?;
            follower.catch_up()?;
            look(&follower.view())
        }
        Deed::Verify => builder().verify(hostile, &mut |_| {}).map(drop),
        Deed::Salvage => builder().salvage(hostile, &at.target, &mut |_| {}).map(drop),
        Deed::Import => {
            let options = ImportOptions { quick: how & 1 == 1, verify: how & 2 == 2 };
            builder().import(hostile, &at.target, options, &mut |_| {}).map(drop)
        }
        Deed::ImportInPlace => {
            let options = ImportOptions { quick: how & 1 == 1, verify: false };
            let kept = (how & 2 == 2).then_some(&*at.target);
            builder().import_in_place(hostile, kept, options, &mut |_| {}).map(drop)
        }
        Deed::Checkpoint => {
            let db = builder().open(hostile)?;
            let made = db.checkpoint(&at.target);
            db.close().and(made)
        }
        Deed::BackUpFrom => back_up(hostile, &at.backups),
        Deed::BackUpInto => back_up(&at.database, hostile),
        Deed::BackupsRead => {
            let backups = Backups::open_in(hostile, env())?;
            for backup in backups.list()? {
                backups.verify(backup.id, &mut |_| {})?;
            }
            Ok(())
        }
        Deed::Restore => {
            let backups = Backups::open_in(hostile, env())?;
            backups.restore(number(&backups, how), &at.target, &mut |_| {}).map(drop)
        }
        Deed::Purge => Backups::open_in(hostile, env())?.purge(usize::from(how % 3)).map(drop),
        Deed::DeleteBackup => {
            let backups = Backups::open_in(hostile, env())?;
            backups.delete(number(&backups, how))
        }
        Deed::Dump => dump_all(hostile),
        Deed::Ingest => ingest(at, how),
    }
}

/// The number of a backup: one that is listed, or a small one where the list does not read.
fn number(backups: &Backups, how: u8) -> u64 {
    let listed = backups.list().unwrap_or_default();
    let chosen = listed.get(usize::from(how) % listed.len().max(1));
    chosen.map_or(u64::from(how % 4), |backup| backup.id)
}

fn open(at: &Path) -> Result<()> {
    let db = builder().open(at)?;
    let done = || -> Result<()> {
        db.put("key0042", "written by its owner")?;
        db.get("key0042")?;
        let looked = look(&db);
        db.flush()?;
        db.get("key0001")?;
        looked
    };
    let done = done();
    db.close().and(done)?;
    // Nothing locks the owner out: who could write can open, and finds what was written.
    let again = builder().open(at).unwrap_or_else(|e| panic!("it does not open again: {e}"));
    let found = again.get("key0042").unwrap_or_else(|e| panic!("it does not read again: {e}"));
    assert_eq!(found.as_deref(), Some(&b"written by its owner"[..]), "what was written is there");
    drop(found);
    again.close()
}

/// Reads all families, and says of the database what there is to say.
fn look(db: &Db) -> Result<()> {
    let _ = (db.stats().to_string(), db.explain().to_string(), db.picture());
    for name in db.column_families() {
        let family = db.column_family(&name)?;
        scan(&family)?;
    }
    Ok(())
}

fn back_up(from: &Path, to: &Path) -> Result<()> {
    let db = builder().open(from)?;
    let done = Backups::open_in(to, env()).and_then(|b| b.create(&db, &mut |_| {}).map(drop));
    db.close().and(done)
}

/// The tables among the directory's names, whatever they are.
fn tables(at: &Path) -> Vec<PathBuf> {
    let mut all = walk(at).unwrap_or_default();
    all.retain(|path| path.extension().is_some_and(|e| e == "sst" || e == "ldb"));
    all
}

fn dump_all(at: &Path) -> Result<()> {
    // One that does not open hides none of the others.
    let results: Vec<Result<()>> = tables(at).iter().map(|path| dump(path)).collect();
    results.into_iter().collect()
}

/// As `lithify table dump` and `table verify` do it.
fn dump(path: &Path) -> Result<()> {
    let name = path.display().to_string();
    let opened = PosixFs::new().open(path, OpenOpts::read());
    let file = opened.map_err(|e| Error::io(e.op, &name, e.source))?;
    let first =
        TableReader::open(OpenTable::new(file.clone(), &*name, std::sync::Arc::new(Bytewise)));
    let table = match first {
        Err(e) if e.kind() == ErrorKind::Unsupported => {
            let order = std::sync::Arc::new(ReverseBytewise);
            TableReader::open(OpenTable::new(file, &*name, order))?
        }
        other => other?,
    };
    let mut iter = TableIter::new(table.clone());
    let mut more = iter.seek_to_first();
    while more {
        more = iter.next();
    }
    iter.status()?;
    verify(&table).map(drop)
}

fn ingest(at: &Places, how: u8) -> Result<()> {
    let tables = tables(&at.hostile);
    let one = tables.get(usize::from(how) % tables.len().max(1));
    let db = builder().open(&at.database)?;
    let done = db.ingest(one.as_slice(), &IngestOptions::default());
    db.close().and(done)
}
