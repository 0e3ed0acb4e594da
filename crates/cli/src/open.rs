//! Opening the database that a command names.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;
use lithify::engine::Engine;
use lithify::{Builder, ColumnFamily, ColumnFamilyOptions, Db, Error, ErrorKind, Settings};
use lithify_base::shown_path;

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

/// `--create-among-files`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct CreateArg {
    /// Make the database even if the directory has other files in it
    #[arg(long)]
    create_among_files: bool,
}

/// `--merge-operator [FAMILY=]NAME`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct OperatorArg {
    /// Merge operator of the database: `uint64add`, `stringappend` or `max`; of another column family
    /// with its name before it
    #[arg(long, value_name = "[FAMILY=]NAME")]
    merge_operator: Vec<String>,
}

impl OperatorArg {
    /// A builder with these operators.
    pub(crate) fn builder(&self, settings: Settings) -> Result<Builder> {
        self.builder_with(settings, BTreeMap::new())
    }

    /// The same for the database in `dir`: its families have the settings that they were last opened
    /// with, as far as these are their own.
    pub(crate) fn builder_of(&self, dir: &Path, settings: Settings) -> Result<Builder> {
        let families = stored_families(dir, &settings);
        self.builder_with(settings, families)
    }

    fn builder_with(
        &self,
        settings: Settings,
        mut families: BTreeMap<String, ColumnFamilyOptions>,
    ) -> Result<Builder> {
        let mut builder = Builder::new(settings);
        for text in &self.merge_operator {
            // The name of a family may have any sign in it, that of an operator has no `=`.
            let (family, name) =
                text.rsplit_once('=').map_or((None, &**text), |(f, n)| (Some(f), n));
            let Some(operator) = lithify::merge::built_in(name) else {
                return usage(format!(
                    "--merge-operator {text}: there are uint64add, stringappend and max; others need \
                     a program of their own"
                ));
            };
            match family {
                None | Some("default") => builder = builder.merge_operator(operator),
                Some(family) => {
                    let options = families.remove(family).unwrap_or_default();
                    families.insert(family.to_owned(), options.merge_operator(operator));
                }
            }
        }
        let named = |builder: Builder, (name, options): (String, ColumnFamilyOptions)| {
            builder.column_family(&name, options)
        };
        Ok(families.into_iter().fold(builder, named))
    }
}

/// The settings that a database was last opened with, if they are sound on this machine; else those
/// of the machine. Its owner chose a policy and formats for it, and a command does not change them.
pub(crate) fn stored(dir: &Path) -> Settings {
    let stored = Settings::stored_in(dir).ok().flatten().map(|(settings, _)| settings);
    stored.filter(|settings| settings.check().is_ok()).unwrap_or_default()
}

/// The same for its column families: those whose settings are not sound here have the database's.
fn stored_families(dir: &Path, db: &Settings) -> BTreeMap<String, ColumnFamilyOptions> {
    let stored = Settings::stored_families_in(dir, db).unwrap_or_default();
    let sound = stored.into_iter().filter(|(_, settings)| settings.check().is_ok());
    sound.map(|(name, own)| (name, ColumnFamilyOptions::new().settings(own))).collect()
}

/// A database and one of its column families.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct TreeArg {
    #[command(flatten)]
    pub(crate) db: DbArg,
    /// Column family, if not the default one
    #[arg(long, value_name = "NAME")]
    pub(crate) family: Option<String>,
}

impl TreeArg {
    /// As [`DbArg::for_reading`].
    pub(crate) fn for_reading(&self) -> Result<Db> {
        self.of(self.db.for_reading()?)
    }
    /// As [`DbArg::for_writing`].
    pub(crate) fn for_writing(&self) -> Result<Db> {
        self.of(self.db.for_writing()?)
    }
    /// As [`DbArg::for_writing`]; compactions go to `engine`, if there is one.
    pub(crate) fn for_writing_on(&self, engine: Option<Arc<dyn Engine>>) -> Result<Db> {
        self.of(self.db.open(None, engine)?)
    }
    /// As [`DbArg::for_filling`]; a family but the default one is in no database that is yet to be made.
    pub(crate) fn for_filling(&self, create: &CreateArg) -> Result<Db> {
        match self.family.as_deref() {
            None | Some("default") => self.of(self.db.for_filling(create)?),
            Some(_) => self.for_writing(),
        }
    }
    /// The family in an open database, for batches.
    pub(crate) fn family(&self, db: &Db) -> Result<ColumnFamily> {
        Ok(db.column_family(self.family.as_deref().unwrap_or("default"))?)
    }
    /// The handle whose keys are the family's.
    fn of(&self, db: Db) -> Result<Db> {
        let Some(name) = &self.family else { return Ok(db) };
        let Ok(family) = db.column_family(name) else {
            let names = db.column_families().join(", ");
            return usage(format!("--family {name}: the database has {names}"));
        };
        Ok(Db::clone(&family))
    }
}

/// `--set NAME=VALUE`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct SetArg {
    /// Open it with this setting instead of the one it was last opened with; `lithify settings --all`
    /// lists all
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
}

impl SetArg {
    /// As if these had been given.
    pub(crate) fn new(set: Vec<String>) -> SetArg {
        SetArg { set }
    }
    /// Changes what was given.
    pub(crate) fn apply(&self, settings: &mut Settings) -> Result<()> {
        for pair in &self.set {
            let Some((name, value)) = pair.split_once('=') else {
                return usage(format!("--set {pair}: write NAME=VALUE"));
            };
            // The name or the value was not understood, wherever that was found.
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
        let mut settings = stored(&self.db);
        self.set.apply(&mut settings)?;
        self.told(self.operator.builder_of(&self.db, settings)?.open_read_only(&self.db))
    }
    /// Opens an existing database for writing.
    pub(crate) fn for_writing(&self) -> Result<Db> {
        self.open(None, None)
    }
    /// Opens for writing and makes the database if there is none.
    pub(crate) fn for_filling(&self, create: &CreateArg) -> Result<Db> {
        self.open(Some(create), None)
    }
    fn open(&self, create: Option<&CreateArg>, engine: Option<Arc<dyn Engine>>) -> Result<Db> {
        let mut settings = stored(&self.db);
        settings.create_if_missing = create.is_some();
        settings.error_if_exists = false;
        self.set.apply(&mut settings)?;
        let mut builder = self.operator.builder_of(&self.db, settings)?;
        if create.is_some_and(|create| create.create_among_files) {
            builder = builder.create_among_files();
        }
        if let Some(engine) = engine {
            builder = builder.engine(engine);
        }
        self.told(builder.open(&self.db))
    }
    /// The store's own advice about a missing database is for programs.
    fn told(&self, opened: lithify::Result<Db>) -> Result<Db> {
        let what = || format!("{} holds no database", shown_path(&self.db));
        Ok(opened.map_err(|e| match e.kind() {
            ErrorKind::NotFound => Error::new(ErrorKind::NotFound, what()),
            _ => e,
        })?)
    }
}
