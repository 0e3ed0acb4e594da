//! Opening the database that a command names.

use std::path::PathBuf;

use anyhow::Result;
use lithify::{Db, Error, ErrorKind, Settings};

/// `--db DIR`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct DbArg {
    /// Directory of the database
    #[arg(long, value_name = "DIR")]
    pub(crate) db: PathBuf,
}

impl DbArg {
    /// Opens for reading only: no lock is taken and nothing changes.
    pub(crate) fn for_reading(&self) -> Result<Db> {
        self.told(Db::open_read_only(&self.db, Settings::default()))
    }
    /// Opens an existing database for writing.
    pub(crate) fn for_writing(&self) -> Result<Db> {
        self.open(false)
    }
    /// Opens for writing and makes the database if there is none.
    pub(crate) fn for_filling(&self) -> Result<Db> {
        self.open(true)
    }
    fn open(&self, create: bool) -> Result<Db> {
        let mut settings = Settings::default();
        settings.create_if_missing = create;
        self.told(Db::open(&self.db, settings))
    }
    /// The store's own advice about a missing database is for programs.
    fn told(&self, opened: lithify::Result<Db>) -> Result<Db> {
        let what = || format!("{} holds no database", self.db.display());
        Ok(opened.map_err(|e| match e.kind() {
            ErrorKind::NotFound => Error::new(ErrorKind::NotFound, what()),
            _ => e,
        })?)
    }
}
