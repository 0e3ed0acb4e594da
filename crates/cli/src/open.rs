//! Opening the database that a command names.

use std::path::PathBuf;

use anyhow::Result;
use lithify::{Builder, Db, Error, ErrorKind, Settings};

use crate::failure::usage;

/// `--db DIR`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct DbArg {
    /// Directory of the database
    #[arg(long, value_name = "DIR")]
    pub(crate) db: PathBuf,
    #[command(flatten)]
    pub(crate) set: SetArg,
    #[command(flatten)]
    pub(crate) operator: OperatorArg,
}

/// `--merge-operator NAME`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct OperatorArg {
    /// Merge operator of the database: `uint64add`, `stringappend` or `max`
    #[arg(long, value_name = "NAME")]
    merge_operator: Option<String>,
}

impl OperatorArg {
    /// A builder with that operator.
    pub(crate) fn builder(&self, settings: Settings) -> Result<Builder> {
        let builder = Builder::new(settings);
        let Some(name) = &self.merge_operator else { return Ok(builder) };
        match lithify::merge::built_in(name) {
            Some(operator) => Ok(builder.merge_operator(operator)),
            None => usage(format!(
                "--merge-operator {name}: there are uint64add, stringappend and max; others need a \
                 program of their own"
            )),
        }
    }
}

/// `--set NAME=VALUE`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct SetArg {
    /// Open it with this setting; `lithify settings` lists all
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
}

impl SetArg {
    /// Changes what was given.
    pub(crate) fn apply(&self, settings: &mut Settings) -> Result<()> {
        for pair in &self.set {
            let Some((name, value)) = pair.split_once('=') else {
                return usage(format!("--set {pair}: write NAME=VALUE"));
            };
            // The name or the value was not understood, whoever says so.
            if let Err(error) = settings.set(name.trim(), value) {
                return usage(format!("--set {pair}: {}", error));
            }
        }
        Ok(())
    }
    /// True if it was given.
    pub(crate) fn names(&self, name: &str) -> bool {
        let mut given = self.set.iter().filter_map(|pair| Some(pair.split_once('=')?.0));
        given.any(|given| given.trim().replace('-', "_") == name)
    }
}

impl DbArg {
    /// Opens for reading only: no lock is taken and nothing changes.
    pub(crate) fn for_reading(&self) -> Result<Db> {
        let mut settings = Settings::default();
        self.set.apply(&mut settings)?;
        self.told(self.operator.builder(settings)?.open_read_only(&self.db))
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
        self.set.apply(&mut settings)?;
        self.told(self.operator.builder(settings)?.open(&self.db))
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
