//! Writing a table outside of any database, to be [ingested](crate::Db::ingest) by one or several.

use std::path::{Path, PathBuf};

use lithify_base::{
    ComparatorRef, Error, Key, Kind, MergeOperatorRef, Prefixes, Result, shown_path,
};
use lithify_compact::{ExternalTable, Maker};
use lithify_env::{Env, OpenOpts, Random};
use lithify_files::dir::{self, OrTyped};

use lithify_tree::{
    OpenOptions, Settings, check_bounds, check_key, check_order, check_value, output_options,
};

use crate::builder::Builder;
use crate::db::Db;

/// A table that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuiltTable {
    /// Where it is.
    pub path: PathBuf,
    /// Its size in bytes.
    pub bytes: u64,
    /// Point entries in it: puts, deletions and merge operands.
    pub entries: u64,
    /// Range deletions in it, those that overlapped cut into pieces.
    pub range_deletes: u64,
    /// Its smallest key, a range deletion's start included.
    pub smallest: Key,
    /// Its largest key; the end of a range deletion, if it reaches further, and then itself not
    /// deleted.
    pub largest: Key,
}

/// Writes a table file of sorted entries, in the database's own format. RocksDB 8.6 and later ingest
/// it too (6.6 and later at [`Settings::format_version`] 5).
///
/// Each key is given once, in rising order; range deletions come in any order. They delete what the
/// database has when the table is ingested, and none of the table's own entries. Nothing else is
/// decided before then, so one table can be ingested by any number of databases. A builder that is
/// dropped without [`finish`](TableBuilder::finish) leaves an incomplete file.
///
/// See [`Db::ingest`] for an example.
pub struct TableBuilder {
    table: ExternalTable,
    env: Env,
    order: ComparatorRef,
    path: PathBuf,
    last: Vec<u8>,
    any: bool,
    /// A write failed: the file is of no use.
    failed: Option<Error>,
}

impl std::fmt::Debug for TableBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TableBuilder({})", shown_path(&self.path))
    }
}

impl TableBuilder {
    /// A table in the new file `path`, with the block size, format version and filters of `settings`
    /// and the compression of their deeper levels, for databases in byte order.
    /// [`Builder::table`] is for others.
    ///
    /// # Errors
    /// `Io` if the file exists or can't be made, `InvalidArgument` for settings that contradict each
    /// other, `Unsupported` for a compression this build does not have.
    pub fn create(path: impl AsRef<Path>, settings: &Settings) -> Result<TableBuilder> {
        Builder::new(settings.clone()).table(path)
    }

    fn new(
        path: &Path,
        settings: &Settings,
        prefixes: Prefixes,
        operator: Option<&MergeOperatorRef>,
        order: ComparatorRef,
        env: Env,
    ) -> Result<TableBuilder> {
        settings.check()?;
        let file = env.fs.create(path, OpenOpts::write()).or_typed()?;
        let name = shown_path(path).to_string();
        let now = env.rt.wall_seconds();
        // Each table is bound to an identity of its own, so that one put in another's place shows.
        let mut random = Random::from_seed(env.rt.seed(&format!("table {name} of {now}")));
        let db_id = dir::fresh_identity(&mut random);
        let maker = Maker { db_id, session: dir::fresh_session(&mut random) };
        let output = output_options(settings, prefixes);
        let table = ExternalTable::new(file, name, order.clone(), &output, maker, operator, now);
        let table = table.inspect_err(|_| drop(env.fs.unlink(path)))?;
        let (path, last) = (path.to_owned(), Vec::new());
        Ok(TableBuilder { table, env, order, path, last, any: false, failed: None })
    }

    /// Sets `key`, which is above every key before, to `value`.
    ///
    /// # Errors
    /// `InvalidArgument` for a key that is not above the one before, `LimitExceeded` for one
    /// or a value that is too long: the table is as before. `Io`, `NoSpace`: the table is lost.
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        check_value(value.as_ref())?;
        self.add(key.as_ref(), Kind::Value, value.as_ref())
    }
    /// Deletes `key` from the database that ingests the table.
    ///
    /// # Errors
    /// As [`put`](TableBuilder::put).
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.add(key.as_ref(), Kind::Delete, &[])
    }
    /// Adds an operand for the merge operator that the table was made with ([`Builder::table`],
    /// [`Db::table_builder`]); made without one, for that of whichever database ingests the table.
    ///
    /// # Errors
    /// As [`put`](TableBuilder::put).
    pub fn merge(&mut self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        check_value(operand.as_ref())?;
        self.add(key.as_ref(), Kind::Merge, operand.as_ref())
    }
    /// Deletes what the database that ingests the table has from `from` on below `to`.
    ///
    /// # Errors
    /// As [`put`](TableBuilder::put); `InvalidArgument` if `from` is above `to`. An empty range is no
    /// error and deletes nothing.
    pub fn delete_range(&mut self, from: impl AsRef<[u8]>, to: impl AsRef<[u8]>) -> Result<()> {
        let (from, to) = (from.as_ref(), to.as_ref());
        check_bounds(from, to)?;
        check_order(&*self.order, from, to)?;
        self.table.push_range_delete(from, to);
        Ok(())
    }

    /// Bytes written so far, give or take a block: to know when to begin the next file.
    pub fn bytes(&self) -> u64 {
        self.table.bytes()
    }

    /// Ends the table and makes it durable, its name included.
    ///
    /// # Errors
    /// `InvalidArgument` if there is nothing in it; `Io`, `NoSpace`. The file is removed then.
    pub fn finish(self) -> Result<BuiltTable> {
        let TableBuilder { table, env, path, failed, .. } = self;
        let finish = || {
            let built = failed.map_or_else(|| table.finish(), Err)?;
            let above = path.parent().filter(|p| !p.as_os_str().is_empty());
            env.fs.sync_dir(above.unwrap_or(Path::new("."))).or_typed()?;
            Ok(built.meta)
        };
        let meta = finish().inspect_err(|_| drop(env.fs.unlink(&path)))?;
        Ok(BuiltTable {
            path,
            bytes: meta.bytes,
            entries: meta.entries,
            range_deletes: meta.range_deletes,
            smallest: meta.range.lo,
            largest: meta.range.hi.key,
        })
    }

    fn add(&mut self, key: &[u8], kind: Kind, value: &[u8]) -> Result<()> {
        check_key(key)?;
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        if self.any && self.order.compare(&self.last, key).is_ge() {
            return Err(Error::invalid(format!(
                "key `{}` is not above the one before, `{}`; sort the entries, and give each key once",
                key.escape_ascii(),
                self.last.escape_ascii()
            )));
        }
        self.any = true;
        self.last.clear();
        self.last.extend_from_slice(key);
        let added = self.table.push(key, kind, value);
        if let Err(error) = &added {
            self.failed = Some(error.clone());
        }
        added
    }
}

impl Builder {
    /// A table in the new file `path`, for databases with these components: see
    /// [`TableBuilder::create`].
    ///
    /// # Errors
    /// As [`TableBuilder::create`].
    pub fn table(self, path: impl AsRef<Path>) -> Result<TableBuilder> {
        let env = self.with.world();
        let OpenOptions { settings, order, operator, prefixes, .. } = self.with;
        TableBuilder::new(path.as_ref(), &settings, prefixes, operator.as_ref(), order, env)
    }
}

impl Db {
    /// A table in the new file `path`, with the order of keys, the merge operator and the settings of
    /// this database: see
    /// [`TableBuilder::create`].
    ///
    /// # Errors
    /// As [`TableBuilder::create`].
    pub fn table_builder(&self, path: impl AsRef<Path>) -> Result<TableBuilder> {
        let (settings, order) = (self.shell.settings(), self.shell.comparator().clone());
        let (prefixes, operator) = (self.shell.prefixes().clone(), self.shell.operator());
        let env = self.shell.env().clone();
        TableBuilder::new(path.as_ref(), &settings, prefixes, operator, order, env)
    }
}
