//! Directories that other engines wrote: who made one, and whether all of it can be taken over.
//!
//! Manifest, logs and tables of RocksDB and LevelDB are read by the same code as our own. What is
//! asked here is the rest: the options file, features that none of our readers knows, and the
//! operands and orders of keys that only the program that wrote them understands.
//!
//! Keeps: nothing is written. What cannot be taken over is refused by its name, before anyone has
//! written a byte; a directory that passes a survey of [`Depth::Entries`] holds no entry that a
//! later read would refuse.
//! Leaves to others: making a directory of ours of it (`checkpoint`, and the facade).

mod keep;
mod options;
mod survey;

pub use keep::keep;
pub use options::{DeclaredOptions, declared};
pub use survey::{Depth, Operators, Survey, survey};

use std::sync::Arc;

use lithify_base::{Error, MAX_SEQ, Result, shown_path};
use lithify_files::dir::{Dir, FileName};
use lithify_lsm::FileMeta;

use crate::manifest::Recovered;

/// The engine that made a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Maker {
    /// This store.
    Lithify,
    /// RocksDB, or an engine that writes its formats.
    RocksDb,
    /// LevelDB.
    LevelDb,
}

impl std::fmt::Display for Maker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Maker::Lithify => "Lithify",
            Maker::RocksDb => "RocksDB",
            Maker::LevelDb => "LevelDB",
        })
    }
}

/// Who made the directory. LevelDB is known by what it lacks: a database id, options, families, and
/// anything about a file but its size and bounds.
///
/// # Errors
/// Io if the directory can't be listed.
pub fn maker(dir: &Dir, found: &Recovered) -> Result<Maker> {
    if found.ours {
        return Ok(Maker::Lithify);
    }
    let state = &found.state;
    let mut files = state.families.values().flat_map(|f| f.files.values());
    let numbered = files.any(|f| f.largest_seq != MAX_SEQ);
    let named = state.db_id.is_some() || state.max_cf > 0 || numbered;
    let has_options = || -> Result<bool> {
        Ok(dir.list()?.iter().any(|e| matches!(e.file, Some(FileName::Options(_)))))
    };
    Ok(match named || has_options()? {
        true => Maker::RocksDb,
        false => Maker::LevelDb,
    })
}

/// The error for a LevelDB directory that was opened for writing.
pub fn upgrade_first(dir: &Dir) -> Error {
    Error::unsupported(format!(
        "{} is a LevelDB directory. LevelDB would not read it again after a write, so say what you \
         want: open it read-only, import it into a new directory (`lithify import FROM TO`), or \
         upgrade it in place (`lithify import --in-place DIR`)",
        dir.path().display()
    ))
}

/// Refuses to copy what only an import completes: LevelDB gives a directory no id, and notes of no table which
/// writes are in it. A copy without these would open for reading only.
///
/// # Errors
/// `Unsupported`.
pub fn check_complete<'a>(
    dir: &Dir,
    db_id: &str,
    mut files: impl Iterator<Item = &'a Arc<FileMeta>>,
) -> Result<()> {
    if !db_id.is_empty() && files.all(|file| file.seqs.1 != MAX_SEQ) {
        return Ok(());
    }
    let what = "LevelDB notes too little of this directory for a copy; import it into a new directory \
                (`lithify import FROM TO`), and copy that";
    Err(Error::unsupported(what).in_file(shown_path(dir.path())))
}

#[cfg(test)]
mod tests;
