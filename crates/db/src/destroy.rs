//! Removing a database with all its files.
//!
//! Keeps: only files that are a database's go, and none of a database that is open. The first to go is
//! what makes the directory a database, so that a crash leaves none that opens with a part of its data.

use std::path::Path;

use lithify_base::Result;
use lithify_files::dir::{Dir, Listed, OrTyped};
use lithify_journal::files::FileName;
use lithify_store::places;

use crate::builder::Builder;

impl Builder {
    /// Removes the database in `path`, and the directory if nothing else is in it. Other files stay. It is
    /// no error if there is none. [Directories of tables](fn@crate::Settings::table_dirs) that the database has are
    /// emptied where they are named, and stay as they are otherwise.
    ///
    /// ```
    /// # fn main() -> lithify::Result<()> {
    /// # let dir = std::env::temp_dir().join(format!("lithify-destroy-{}", std::process::id()));
    /// use lithify::{Builder, Db, ErrorKind, Settings};
    ///
    /// let db = Db::open(&dir, Settings::default())?;
    /// let refused = Builder::new(Settings::default()).destroy(&dir).unwrap_err();
    /// assert_eq!(refused.kind(), ErrorKind::Locked);
    /// db.close()?;
    /// Builder::new(Settings::default()).destroy(&dir)?;
    /// assert!(!dir.exists());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Locked` if it is open, and nothing was removed; `Io`.
    pub fn destroy(&self, path: impl AsRef<Path>) -> Result<()> {
        let dir = Dir::new(self.with.fs(), path.as_ref());
        let Some(listed) = dir.list_if_there()? else { return Ok(()) };
        // Another program's directory is left alone, without so much as a lock in it.
        let is_ours = |entry: &Listed| entry.file.is_some_and(|file| file != FileName::Lock);
        let is_owned = listed.iter().any(|entry| entry.file == Some(FileName::Owner));
        if is_owned || !listed.iter().any(is_ours) {
            return Ok(());
        }
        places::attach(&dir, &self.with.table_dirs())?;
        let lock = dir.lock()?;
        // What the last owner made since is removed, too.
        let listed = dir.list()?;
        dir.remove(FileName::Current)?;
        dir.sync()?;
        dir.places().iter().try_for_each(|place| empty(&dir, place))?;
        let rest = listed.iter().filter_map(|entry| entry.file);
        rest.filter(|file| *file != FileName::Lock).try_for_each(|file| dir.remove(file))?;
        // While it is held: the file of that name is another owner's as soon as it is not.
        dir.remove(FileName::Lock)?;
        drop(lock);
        if dir.list()?.is_empty() {
            dir.fs().remove_dir(dir.path()).or_typed()?;
        }
        Ok(())
    }
}

/// Removes the tables of a database from a directory that it has for them, if it is known to be its own, and
/// the directory if nothing else is in it.
fn empty(home: &Dir, place: &Dir) -> Result<()> {
    if place.read_owner()?.is_none() {
        return Ok(());
    }
    let listed = place.list()?;
    let table = |file: &FileName| {
        matches!(file, FileName::Table(_) | FileName::LevelDbTable(_) | FileName::Temp(_))
    };
    let tables = listed.iter().filter_map(|entry| entry.file).filter(table);
    tables.into_iter().try_for_each(|file| place.remove(file))?;
    // Until then it is known whose it is.
    place.sync()?;
    place.remove(FileName::Owner)?;
    if place.list()?.is_empty() {
        // Through home's, as one that is held can't be named by itself.
        home.fs().remove_dir(place.path()).or_typed()?;
    }
    Ok(())
}
