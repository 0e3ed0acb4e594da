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
        Ok(Db::open_read_only(&self.db, Settings::default())?)
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
        let opened = Db::open(&self.db, settings).map_err(|e| match e.kind() {
            // The store's own advice names a setting.
            ErrorKind::NotFound => {
                Error::new(ErrorKind::NotFound, format!("{} holds no database", self.db.display()))
            }
            _ => e,
        });
        Ok(opened?)
    }
}
