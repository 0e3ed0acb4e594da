//! Options that name directories. All files of a database are in one, so they have to name that.

use std::path::{Path, PathBuf};

use lithify::Error;

use crate::raw::{Res, export, give};

/// Directories that options name, by the option.
#[derive(Clone, Default)]
pub(crate) struct Places(Vec<(&'static str, Vec<PathBuf>)>);

impl Places {
    /// What an option names; nothing where it is not given.
    pub(crate) fn set(&mut self, option: &'static str, dirs: Vec<PathBuf>) {
        self.0.retain(|(name, _)| *name != option);
        self.0.push((option, dirs));
    }
    /// Whether each is the directory `path` of the database, or is not given.
    ///
    /// # Errors
    /// `Unsupported` naming the option and the first that is another one.
    pub(crate) fn check(&self, path: &Path) -> Res<()> {
        for (option, dirs) in &self.0 {
            if let Some(dir) = dirs.iter().find(|dir| !is_same(dir, path)) {
                return Err(Error::unsupported(format!(
                    "{option}={dir:?}: all files are in the database's directory; leave it out"
                )));
            }
        }
        Ok(())
    }
}

/// Whether both name one directory, which may not be there yet.
pub(crate) fn is_same(a: &Path, b: &Path) -> bool {
    let real = |path: &Path| {
        let path = std::path::absolute(path).ok()?;
        let there = || Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?));
        path.canonicalize().ok().or_else(there)
    };
    a == b || real(a).is_some_and(|a| real(b).as_ref() == Some(&a))
}

/// `rocksdb_dbpath_t`.
pub(crate) struct DbPath(pub(crate) PathBuf);

export! {
    fn rocksdb_dbpath_create(path: path, target_size: u64) -> *mut DbPath {
        let _ = target_size;
        Ok(give(DbPath(path.to_owned())))
    }
    fn rocksdb_dbpath_destroy(path: own DbPath) {
        drop(path);
        Ok(())
    }
}
