//! Options that name directories: those of tables, and that of logs, which has to be the database's own.

use std::path::{Path, PathBuf};

use lithify::{Error, TableDir};

use crate::raw::{Res, export, give};

/// Directories that options name.
#[derive(Clone, Default)]
pub(crate) struct Places {
    /// That of logs, if it is given.
    pub(crate) wal_dir: Option<PathBuf>,
    /// Those of the tables of all families.
    pub(crate) db_paths: Vec<TableDir>,
    /// Those of the tables of one.
    pub(crate) cf_paths: Vec<TableDir>,
}

impl Places {
    /// Whether logs are in the directory `path` of the database.
    ///
    /// # Errors
    /// `Unsupported` if they are to be in another one.
    pub(crate) fn check(&self, path: &Path) -> Res<()> {
        match self.wal_dir.as_ref().filter(|dir| !is_same(dir, path)) {
            Some(dir) => Err(Error::unsupported(format!(
                "wal_dir={dir:?}: logs are in the database's directory; leave it out"
            ))),
            None => Ok(()),
        }
    }
    /// The directories of a family's tables, where the options of the database are these, too.
    pub(crate) fn of_default(&self) -> Vec<TableDir> {
        if self.cf_paths.is_empty() { self.db_paths.clone() } else { self.cf_paths.clone() }
    }
}

/// The directories of the tables of a database's families.
#[derive(Clone, Default)]
pub(crate) struct TableDirs {
    /// Those of the default family.
    pub(crate) of_default: Vec<TableDir>,
    /// Those of a family without any of its own.
    others: Vec<TableDir>,
}

impl TableDirs {
    /// As the options of the database in `path` say, and those of its default family, if there are some.
    pub(crate) fn new(path: &Path, db: &Places, default: Option<&Places>) -> TableDirs {
        let own = default.map(|places| &places.cf_paths).filter(|dirs| !dirs.is_empty());
        let of_default = own.cloned().unwrap_or_else(|| db.of_default());
        let others = match db.db_paths.is_empty() && !of_default.is_empty() {
            // Those of the default family are not for all here.
            true => vec![TableDir { path: path.to_owned(), target_bytes: 0 }],
            false => db.db_paths.clone(),
        };
        TableDirs { of_default, others }
    }
    /// Those of a family whose options name `places`; of one that was not named without.
    pub(crate) fn of(&self, places: Option<&Places>) -> Vec<TableDir> {
        let own = places.map(|places| &places.cf_paths).filter(|dirs| !dirs.is_empty());
        own.unwrap_or(&self.others).clone()
    }
    /// Whether a family that is not named has those of the default family.
    pub(crate) fn are_for_all(&self) -> bool {
        self.of_default == self.others
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
pub(crate) struct DbPath(pub(crate) TableDir);

export! {
    fn rocksdb_dbpath_create(path: path, target_size: u64) -> *mut DbPath {
        Ok(give(DbPath(TableDir { path: path.to_owned(), target_bytes: target_size })))
    }
    fn rocksdb_dbpath_destroy(path: own DbPath) {
        drop(path);
        Ok(())
    }
}
