//! Checking a database without opening it: see [`lithify_store::verify`] for what is checked.

use std::path::Path;

use lithify_base::{ComparatorRef, Result};
use lithify_env::FsRef;
use lithify_files::Dir;
pub use lithify_store::verify::{Finding, Grade, Progress, Report};

/// Checks every byte and every invariant of the database in `path` of `fs`, where `order` is the order of keys if it is
/// not one of ours.
///
/// # Errors
/// `NotFound` if there is no database; `Io` if the directory can't be listed.
pub fn verify(
    fs: FsRef,
    path: impl AsRef<Path>,
    order: Option<ComparatorRef>,
    watch: &mut dyn FnMut(Progress),
) -> Result<Report> {
    let dir = Dir::new(fs, path.as_ref()).hold_if_there()?;
    lithify_store::verify::verify(&dir, order.as_slice(), watch)
}
