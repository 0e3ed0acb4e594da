//! The bytes of a log that may be written to while it is read, in this process or another.
//!
//! The writer of a mapped log copies records into zeros, so a reader may see half of a record. That is how a log may end. It
//! would be damage, though, if the reader went on and met a seal which says that the record was synced: the writer copied the other half,
//! synced and sealed in between. So the reader finds out first where the zeros at the end of the log begin, then reads up to
//! there, and takes everything behind for zeros. Each seal that it meets was begun before it looked, and what a seal promises
//! was whole before that.
//!
//! ```text
//!   first look    records . . . . . . . . 7 8 (9 half)|0 0 0 0 0 0
//!   then          records . . . . . . . . 7 8  9      |S 10 11 0 0     what is right of | is taken for zeros
//! ```
//! Keeps: of a log that is not written to, only blocks of zeros at its end are left out.

use lithify_base::{FileId, Result};
use lithify_env::{File, read_full_at};

use super::reader::LOG_MAX;
use crate::dir::{Dir, FileName, OrTyped, Sparse};

/// More zeros than any writer leaves at the end of a log, in bytes: a reader does not look for its end further back.
const ZEROS_MAX: u64 = 2 << 20;
/// Bytes that are looked at in one go.
const LOOK: usize = 64 << 10;

/// The content of log `number` at one moment; `None` if there is no such log.
///
/// # Errors
/// As [`Dir::read_sparse`].
pub fn read_log(dir: &Dir, number: FileId) -> Result<Option<Sparse>> {
    let Some(file) = dir.open_if_there(FileName::Wal(number.0))? else { return Ok(None) };
    let end = end_of(&*file)?;
    Sparse::read(&file, LOG_MAX, end).map(Some)
}

/// Where the zeros at the end of log `number` begin, in bytes from its beginning; 0 if there is no such log. Each write moves
/// it, where the length of a mapped log may stay as it is.
///
/// # Errors
/// Io.
pub fn end_of_log(dir: &Dir, number: FileId) -> Result<u64> {
    dir.open_if_there(FileName::Wal(number.0))?.map_or(Ok(0), |file| end_of(&*file))
}

/// Where the zeros at the end of a file begin; [`ZEROS_MAX`] before its end if there are more.
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
