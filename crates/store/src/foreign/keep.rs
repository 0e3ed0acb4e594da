//! The way back: a copy of a foreign directory as it is, before it is written to.
//!
//! Keeps: CURRENT comes last, so an interrupted copy is no database. Tables are linked, because no
//! engine changes one; all else is copied.
//! Leaves to others: keeping the directory still meanwhile.

use lithify_base::Result;
use lithify_files::dir::{Dir, FileName, OrTyped};

use crate::copy::{Placed, copy, link_table};

/// Makes `to`, which must be absent or empty, what `from` is.
///
/// # Errors
/// `InvalidArgument` if `to` has something in it; Io and `NoSpace`.
pub fn keep(from: &Dir, to: &Dir) -> Result<Placed> {
    let to = &to.create_copy(from, "what is to be kept")?;
    let mut placed = Placed::default();
    for name in from.list()?.into_iter().filter_map(|entry| entry.file) {
        match name {
            FileName::Table(n) | FileName::LevelDbTable(n) => {
                link_table(from, to, n, &mut placed)?.sync_all().or_typed()?;
            }
            FileName::Current | FileName::Unfinished | FileName::Lock => {}
            _ => copy(from, to, name, None)?,
        }
    }
    to.sync()?;
    if let Some(manifest) = from.read_current()? {
        to.point_current(manifest)?;
    }
    Ok(placed)
}
