//! Opening the database that a command names.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Result;
use lithify::{
    Builder, ColumnFamily, ColumnFamilyOptions, Comparator, Db, Error, ErrorKind, ReverseBytewise,
    Settings,
};
use lithify_base::{shown, shown_path};

use crate::dirs::TableDirArg;
use crate::engines::EngineArg;
use crate::failure::{stuck, usage, usage_with};
use crate::output;

/// Names the database where a command line does not.
const DB_VARIABLE: &str = "LITHIFY_DB";

/// The directory that was named, or the one of [`DB_VARIABLE`].
fn named(dir: Option<&PathBuf>) -> Result<PathBuf> {
    let variable = || std::env::var_os(DB_VARIABLE).filter(|dir| !dir.is_empty());
    match dir.cloned().or_else(|| variable().map(PathBuf::from)) {
        Some(dir) => no_file(&dir, "a database is a directory; name that").map(|()| dir),
        None => usage_with(
            "no database is named",
            format!("name its directory with --db DIR, or for all commands in {DB_VARIABLE}"),
        ),
    }
}

/// Refuses a file where a directory is meant, with the `way` out.
pub(crate) fn no_file(dir: &Path, way: &str) -> Result<()> {
    if dir.is_file() { stuck(format!("{} is a file", shown_path(dir)), way) } else { Ok(()) }
}

/// `DIR` or `--db DIR`, of a command that needs no other argument.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct DirArg {
    /// Directory of the database [default: what LITHIFY_DB says]
    #[arg(value_name = "DIR", conflicts_with = "db")]
    dir: Option<PathBuf>,
    /// The same, as every command takes it
    #[arg(long, value_name = "DIR")]
    db: Option<PathBuf>,
}

impl DirArg {
    /// The directory.
    pub(crate) fn dir(&self) -> Result<PathBuf> {
        named(self.given())
    }
    /// What was named on the command line.
    pub(crate) fn given(&self) -> Option<&PathBuf> {
        self.dir.as_ref().or(self.db.as_ref())
    }
}

/// `--db DIR`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct DbArg {
    /// Directory of the database [default: what LITHIFY_DB says]
    #[arg(long, value_name = "DIR")]
    pub(crate) db: Option<PathBuf>,
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

/// `--merge-operator [FAMILY=]NAME` and `--table-dir`: what a database needs of its program at each open.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct OperatorArg {
    /// Merge operator of the database: `uint64add`, `stringappend` or `max`; of another column family
    /// with its name before it
    #[arg(long, value_name = "[FAMILY=]NAME")]
    merge_operator: Vec<String>,
    #[command(flatten)]
    pub(crate) dirs: TableDirArg,
}

impl OperatorArg {
    /// A builder with these operators and directories.
    pub(crate) fn builder(&self, settings: Settings) -> Result<Builder> {
        self.builder_with(settings, BTreeMap::new())
    }

    /// The same for the database in `dir`: its families have the settings that they were last opened
    /// with, as far as these are their own.
    pub(crate) fn builder_of(&self, dir: &Path, settings: Settings) -> Result<Builder> {
        self.builder_with(settings.clone(), stored_families(dir, &settings))
    }

    fn builder_with(
        &self,
        mut settings: Settings,
        mut own: BTreeMap<String, Settings>,
    ) -> Result<Builder> {
        self.dirs.apply(&mut settings)?;
        for (name, dirs) in self.dirs.families()? {
            own.entry(name).or_insert_with(|| settings.clone()).table_dirs = dirs;
        }
        let options = |(name, own)| (name, ColumnFamilyOptions::new().settings(own));
        let mut families: BTreeMap<String, ColumnFamilyOptions> =
            own.into_iter().map(options).collect();
        let mut builder = Builder::new(settings);
        for text in &self.merge_operator {
            // The name of a family may have any sign in it, that of an operator has no `=`.
            let (family, name) =
                text.rsplit_once('=').map_or((None, &**text), |(f, n)| (Some(f), n));
            let Some(operator) = lithify::merge::built_in(name) else {
                return usage_with(
                    format!("there is no merge operator `{}`", shown(name.as_bytes())),
                    "there are uint64add, stringappend and max; others need a program of their own",
                );
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

/// The settings that a database was last opened with; the machine's for one without any. Its owner chose a policy
/// and formats for it, and a command does not change them. They may not be sound on this machine.
///
/// # Errors
/// InvalidArgument or Corruption if this version can't read them, or those of a family. What else is wrong with the
/// directory, the open says.
fn stored(dir: &Path) -> Result<Settings, Error> {
    let all = Settings::stored_in(dir).and_then(|stored| {
        let settings = stored.map(|(settings, _)| settings).unwrap_or_default();
        Settings::stored_families_in(dir, &settings).map(|_| settings)
    });
    match all {
        Err(e) if matches!(e.kind(), ErrorKind::InvalidArgument | ErrorKind::Corruption) => Err(e),
        all => Ok(all.unwrap_or_default()),
    }
}

/// The settings to read with: the machine's where the stored ones can't be used, and the user is told.
pub(crate) fn stored_to_read(dir: &Path) -> Settings {
    let sound = |settings: Settings| settings.check().map(|()| settings);
    stored(dir).and_then(sound).unwrap_or_else(|e| {
        let what = "note: this machine's settings are used, as the stored ones can't be";
        output::error_line(&format!("{what}: {e}"), true);
        Settings::default()
    })
}

/// The settings to write with. An open for writing stores what it takes, so none replace those that can't be read.
fn stored_to_write(dir: &Path) -> Result<Settings> {
    stored(dir).or_else(|e| {
        stuck(
            format!("the settings that the database was last opened with can't be read: {e}"),
            "use the program that wrote them; without that file the database opens with this machine's settings",
        )
    })
}

/// The same for its column families: those whose settings are not sound here have the database's.
fn stored_families(dir: &Path, db: &Settings) -> BTreeMap<String, Settings> {
    let stored = Settings::stored_families_in(dir, db).unwrap_or_default();
    stored.into_iter().filter(|(_, settings)| settings.check().is_ok()).collect()
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
    /// As [`DbArg::at`].
    pub(crate) fn at(mut self, dir: Option<PathBuf>) -> TreeArg {
        self.db = self.db.at(dir);
        self
    }
    /// As [`DbArg::for_reading`].
    pub(crate) fn for_reading(&self) -> Result<Db> {
        self.of(self.db.for_reading()?)
    }
    /// As [`DbArg::for_writing`].
    pub(crate) fn for_writing(&self, engine: &EngineArg) -> Result<Db> {
        if let Some(name) = &self.family {
            // Before the open, which writes.
            self.db.has_family(name)?;
        }
        self.of(self.db.for_writing(engine)?)
    }
    /// As [`DbArg::for_filling`]; a family but the default one is in no database that is yet to be made.
    pub(crate) fn for_filling(&self, create: &CreateArg, engine: &EngineArg) -> Result<Db> {
        match self.family.as_deref() {
            None | Some("default") => self.of(self.db.for_filling(create, engine)?),
            Some(_) => self.for_writing(engine),
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
            return no_family(name, &db.column_families());
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
    /// `pair` goes before what was given.
    pub(crate) fn prefer(&mut self, pair: Option<String>) {
        self.set.splice(0..0, pair);
    }
    /// Changes what was given.
    pub(crate) fn apply(&self, settings: &mut Settings) -> Result<()> {
        for pair in &self.set {
            let Some((name, value)) = pair.split_once('=') else {
                return usage_with(
                    format!("--set {pair} has no value"),
                    "write NAME=VALUE, as --set memory_budget=1GiB; `lithify settings --all` lists all",
                );
            };
            // The name or the value was not understood, wherever that was found.
            let name = name.trim();
            if let Err(error) = settings.set(name, value) {
                return usage(format!("--set {pair}: {error}"));
            }
            if let Err(error) = settings.check_range(name) {
                return usage_with(
                    format!("--set {pair}: {error}"),
                    "`lithify settings --all --json` says what each setting takes",
                );
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
    /// With a directory that was named without `--db`.
    pub(crate) fn at(mut self, dir: Option<PathBuf>) -> DbArg {
        self.db = dir.or(self.db);
        self
    }
    /// The directory.
    pub(crate) fn dir(&self) -> Result<PathBuf> {
        named(self.db.as_ref())
    }
    /// Refuses the name of a column family that is not there. Of a database that is not there, the open says so.
    pub(crate) fn has_family(&self, name: &str) -> Result<()> {
        let names = Builder::new(Settings::default()).list_column_families(self.dir()?);
        match names {
            Ok(names) if !names.iter().any(|there| there == name) => no_family(name, &names),
            _ => Ok(()),
        }
    }
    /// Refuses a directory without a database, before anything else is looked at.
    pub(crate) fn is_there(&self) -> Result<()> {
        let dir = self.dir()?;
        match Builder::new(Settings::default()).list_column_families(&dir) {
            Err(e) if e.kind() == ErrorKind::NotFound => Err(none_in(&dir, e).into()),
            // Of all else the open says what it is.
            _ => Ok(()),
        }
    }
    /// Opens for reading only: no lock is taken and nothing changes.
    pub(crate) fn for_reading(&self) -> Result<Db> {
        let dir = self.dir()?;
        let mut settings = stored_to_read(&dir);
        self.set.apply(&mut settings)?;
        told(&dir, self.operator.builder_of(&dir, settings)?.open_read_only(&dir))
    }
    /// Opens an existing database for writing; compactions may go to `engine`.
    pub(crate) fn for_writing(&self, engine: &EngineArg) -> Result<Db> {
        self.open(None, engine)
    }
    /// Opens an existing database to do what a program that has it open can do itself: by `line`, which is told
    /// then.
    pub(crate) fn for_copying(&self, line: &str, engine: &EngineArg) -> Result<Db> {
        self.for_writing(engine).or_else(|e| match e.downcast_ref::<Error>() {
            Some(store) if store.kind() == ErrorKind::Locked => stuck(
                format!("another program has {} open, so this one can't", shown_path(&self.dir()?)),
                format!("that program can, without a pause: `{line}`"),
            ),
            _ => Err(e),
        })
    }
    /// As [`DbArg::for_writing`], and makes the database if there is none.
    pub(crate) fn for_filling(&self, create: &CreateArg, engine: &EngineArg) -> Result<Db> {
        self.open(Some(create), engine)
    }
    fn open(&self, create: Option<&CreateArg>, engine: &EngineArg) -> Result<Db> {
        let dir = self.dir()?;
        let mut settings = stored_to_write(&dir)?;
        if create.is_none() {
            // Not by create_if_missing: the open would store that, and its owner set nothing.
            self.is_there()?;
        }
        settings.error_if_exists = false;
        self.set.apply(&mut settings)?;
        let mut builder = self.operator.builder_of(&dir, settings)?;
        if create.is_some_and(|create| create.create_among_files) {
            builder = builder.create_among_files();
        }
        told(&dir, engine.onto(builder)?.open(&dir))
    }
}

/// The error of a family that there is none of.
pub(crate) fn no_family<T>(name: &str, names: &[String]) -> Result<T> {
    let shown = |name: &str| shown(name.as_bytes()).to_string();
    let names: Vec<String> = names.iter().map(|name| shown(name)).collect();
    usage_with(
        format!("there is no column family `{}`", shown(name)),
        format!(
            "the database has {}; `lithify family create --db DIR NAME` makes another",
            names.join(", ")
        ),
    )
}

/// The store's own advice about a missing database is for programs.
fn told(dir: &Path, opened: lithify::Result<Db>) -> Result<Db> {
    Ok(opened.map_err(|e| match e.kind() {
        ErrorKind::NotFound => none_in(dir, e),
        _ => e,
    })?)
}

fn none_in(dir: &Path, e: Error) -> Error {
    if e.is_unfinished() {
        return e; // it says what is there instead
    }
    Error::new(ErrorKind::NotFound, format!("{} holds no database", shown_path(dir)))
}

/// Refuses a range that ends before it starts, in the order of the keys of `db`.
pub(crate) fn check_range(db: &Db, from: &[u8], to: &[u8]) -> Result<()> {
    let (low, high) = match db.comparator_name() == ReverseBytewise.name() {
        true => (to, from),
        false => (from, to),
    };
    match low > high {
        true => usage_with("the range ends before it starts", "swap --from and --to"),
        false => Ok(()),
    }
}
