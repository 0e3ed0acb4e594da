//! What is done with a directory that is not simply opened: taking over one that RocksDB or LevelDB
//! wrote ([`mod@import`]), taking out what is readable of a damaged one ([`mod@salvage`]), and checking
//! one ([`mod@verify`]).
#![forbid(unsafe_code)]

use std::io;

use lithify_base::{Error, ErrorKind, Result, shown_path};
use lithify_env::LockGuard;
use lithify_files::dir::{Dir, FileName, OrTyped};

pub mod import;
pub mod salvage;
pub mod verify;

/// Keeps the program that wrote the directory from opening it meanwhile; before anything of it is read, as
/// that program may be about to close it. Where nothing can be locked there is nothing to wait for: without a
/// lock file no program has it open, and none writes on a file system that lets nothing be locked, or in a
/// directory whose lock file may be written by none.
///
/// # Errors
/// `Locked` if a program has it open, or if this user may not lock what other users may; Io.
pub(crate) fn hold(dir: &Dir) -> Result<Option<Box<dyn LockGuard>>> {
    if dir.len_of(FileName::Lock)?.is_none() {
        return Ok(None);
    }
    let path = dir.path_of(FileName::Lock);
    match dir.lock() {
        Ok(guard) => Ok(Some(guard)),
        Err(e) if e.kind() == ErrorKind::Locked => Err(e),
        Err(e) if is_denied(&e) && dir.fs().permissions(&path).or_typed()? & 0o222 != 0 => {
            let what = "this user may not lock the directory, and a program of another user may have it open; \
                        do this as the user whose it is, or on a copy";
            Err(Error::new(ErrorKind::Locked, what).in_file(shown_path(&path)).caused_by(e))
        }
        Err(_) => Ok(None),
    }
}

fn is_denied(e: &Error) -> bool {
    let kind = e.errno().map(|errno| io::Error::from_raw_os_error(errno).kind());
    kind == Some(io::ErrorKind::PermissionDenied)
}
