//! The bytes of a log that its writer may be writing to meanwhile, in this process or another.
//!
//! A log that is written through a mapping is longer than what was written, with zeros behind. What comes there while the log is read
//! would show late records without the earlier ones, which may be copied a moment too late to be seen: a later seal would
//! then call damage what is none. So a reader first looks where the zeros at the end begin, and takes what lies behind for zeros
//! when it reads the rest afterwards: what it sees of a record that was begun by then may be torn, which is how a log may end, and what was promised
//! by then is whole.
//!
//! ```text
//!   first look    records . . . . . . . . 7 8 (9 half)|0 0 0 0 0 0
//!   then          records . . . . . . . . 7 8  9      |S 10 11 0 0     what is right of | is not looked at
//! ```
//! Keeps: of a log that is not written to, only zeros are left out, and none that a record may have.

use lithify_base::{FileId, Result};
use lithify_env::{File, OpenOpts, read_full_at};

use super::reader::LOG_MAX;
use crate::dir::{Dir, FileName, OrTyped, Sparse};

/// Zeros that a writer leaves at the end of a log at most, and some: a log with more is looked at no further.
const ZEROS_MAX: u64 = 2 << 20;
/// Bytes that are looked at in one go.
const LOOK: usize = 64 << 10;

/// The content of log `number` as of a moment; `None` if there is no such log.
///
/// # Errors
/// As [`Dir::read_sparse`].
pub fn read_log(dir: &Dir, number: FileId) -> Result<Option<Sparse>> {
    dir.read_sparse_to(FileName::Wal(number.0), LOG_MAX, Some(end_of))
}

/// Where the zeros begin with which log `number` ends, in bytes: it grows with each write, unlike the log's length. 0 if there is no such
/// log.
///
/// # Errors
/// Io.
pub fn end_of_log(dir: &Dir, number: FileId) -> Result<u64> {
    let file = match dir.fs().open(&dir.path_of(FileName::Wal(number.0)), OpenOpts::read()) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(0),
        other => other.or_typed()?,
    };
    end_of(&*file)
}

/// Where the zeros begin with which a file ends; [`ZEROS_MAX`] before its end if that lies further back.
fn end_of(file: &dyn File) -> Result<u64> {
    let len = file.len().or_typed()?;
    let (mut end, least) = (len, len.saturating_sub(ZEROS_MAX));
    let mut bytes = vec![0; LOOK];
    while end > least {
        let start = end.saturating_sub(LOOK as u64).max(least);
        let part = &mut bytes[..(end - start) as usize];
        let count = read_full_at(file, part, start).or_typed()?;
        if let Some(last) = part[..count].iter().rposition(|byte| *byte != 0) {
            return Ok(start + last as u64 + 1);
        }
        end = start;
    }
    Ok(end)
}
