//! Checking a database without opening it: see [`lithify_store::verify`] for what is checked.

use std::path::Path;

use lithify_base::{ComparatorRef, Result};
use lithify_env::FsRef;
use lithify_store::Dir;
pub use lithify_store::verify::{Finding, Grade, Progress, Report};

use crate::builder::Builder;

impl Builder {
    /// Checks every byte and every invariant of the database in `path`. Nothing is changed and no lock is
    /// taken, so the database may be open meanwhile. Each column family is checked in the order that it
    /// records by name: one of ours, the builder's, or that of a family given with
    /// [`column_family`](Builder::column_family). `watch` is told of the progress.
    ///
    /// ```
    /// # fn main() -> lithify::Result<()> {
    /// # let dir = std::env::temp_dir().join(format!("lithify-verify-{}", std::process::id()));
    /// use lithify::{Builder, Db, Settings};
    ///
    /// Db::open(&dir, Settings::default())?.close()?;
    /// let report = Builder::new(Settings::default()).verify(&dir, &mut |_| {})?;
    /// report.findings.iter().for_each(|finding| eprintln!("{finding}"));
    /// assert!(report.is_clean());
    /// # std::fs::remove_dir_all(&dir).ok();
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `NotFound` if there is no database; `Io` if the directory can't be listed. All else is in the
    /// report, with the name of the column family; a family whose order is not known is in it as
    /// [`Grade::Unchecked`].
    pub fn verify(
        &self,
        path: impl AsRef<Path>,
        watch: &mut dyn FnMut(Progress),
    ) -> Result<Report> {
        let dir = Dir::new(self.fs(), path.as_ref()).hold_if_there()?;
        lithify_store::verify::verify(&dir, &self.orders(), watch)
    }
}

/// [`Builder::verify`] of the database in `path` of `fs`, where `order` is the order of keys if it is
/// not one of ours.
///
/// # Errors
/// As [`Builder::verify`].
pub fn verify(
    fs: FsRef,
    path: impl AsRef<Path>,
    order: Option<ComparatorRef>,
    watch: &mut dyn FnMut(Progress),
) -> Result<Report> {
    let dir = Dir::new(fs, path.as_ref()).hold_if_there()?;
    lithify_store::verify::verify(&dir, order.as_slice(), watch)
}
