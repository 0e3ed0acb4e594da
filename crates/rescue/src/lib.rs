//! What is done with a directory that is not simply opened: taking over one that RocksDB or LevelDB
//! wrote ([`mod@import`]), taking out what is readable of a damaged one ([`mod@salvage`]), and checking
//! one ([`mod@verify`]).
#![forbid(unsafe_code)]

use lithify_base::{ErrorKind, Result};
use lithify_env::LockGuard;
use lithify_files::dir::{Dir, FileName};

pub mod import;
pub mod salvage;
pub mod verify;

/// Keeps the program that wrote the directory from opening it meanwhile. Where nothing can be locked,
/// because there is no lock file or it can't be written, no program can have it open for writing.
pub(crate) fn hold(dir: &Dir) -> Result<Option<Box<dyn LockGuard>>> {
    if dir.len_of(FileName::Lock)?.is_none() {
        return Ok(None);
    }
    match dir.lock() {
        Ok(guard) => Ok(Some(guard)),
        Err(e) if e.kind() == ErrorKind::Locked => Err(e),
        Err(_) => Ok(None),
    }
}
