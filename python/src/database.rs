//! An open database, or one family of it: the same face for both.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use lithify::{
    ColumnFamily, Db, Durability, ErrorKind, IngestOptions, ReadOptions, Settings, Transfer, Value,
    WriteBatch, WriteOptions,
};
use pyo3::exceptions::{PyKeyError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};

use crate::batch::Batch;
use crate::bytes::Bytes;
use crate::columns::{Columns, Spare};
use crate::errors::{OrRaise, closed};
use crate::opening::{family_options, listed, text};
use crate::scan::{Range, Scan, What};
use crate::snapshot::Snapshot;
use crate::stats::Stats;
use crate::tables::TableWriter;
use crate::transaction::{self, Transaction};

/// What all handles of one open database share.
pub(crate) struct Shared {
    closed: AtomicBool,
    /// Others have the same open database, and go on with it when these handles are closed.
    is_view: bool,
    path: PathBuf,
    settings: Settings,
    pub(crate) spare: Spare,
    luck: Luck,
}

/// Whether look-ups should ask memory alone first. Where few find there what they ask for, the question is a search in
/// vain, so it is put less often.
#[derive(Default)]
struct Luck(AtomicU32);

impl Luck {
    /// So many more searches in vain than others, and memory is not asked any more.
    const ENOUGH: u32 = 8;
    /// Then so many look-ups later once again.
    const PAUSE: u32 = 16;

    fn is_worth_it(&self) -> bool {
        let vain = self.0.load(Ordering::Relaxed);
        if (Luck::ENOUGH..Luck::ENOUGH + Luck::PAUSE).contains(&vain) {
            self.0.store(vain + 1, Ordering::Relaxed);
            return false;
        }
        true
    }
    /// What came of it. Threads may overwrite what others say: it is a guess.
    fn learn(&self, found: bool) {
        let vain = self.0.load(Ordering::Relaxed).min(Luck::ENOUGH);
        let now = if found { vain / 2 } else { (vain + 1).min(Luck::ENOUGH) };
        if now != vain || vain == Luck::ENOUGH {
            self.0.store(now, Ordering::Relaxed);
        }
    }
}

impl Shared {
    pub(crate) fn check(&self, py: Python<'_>) -> PyResult<()> {
        if self.is_closed() { Err(closed(py, "database")) } else { Ok(()) }
    }
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }
}

/// A database, or one of its families: an ordered mapping of bytes to bytes that survives the program.
#[pyclass(frozen, mapping, weakref, module = "lithify")]
pub(crate) struct Database {
    pub(crate) db: Db,
    /// `None` for the default family.
    pub(crate) family: Option<ColumnFamily>,
    pub(crate) shared: Arc<Shared>,
}

/// What a write asks for by keyword.
pub(crate) fn write_options(durability: Option<&str>, wait: bool) -> PyResult<WriteOptions> {
    let durability = match durability {
        None => None,
        Some("no-wal") => Some(Durability::NoWal),
        Some("buffered") => Some(Durability::Buffered),
        Some("os") => Some(Durability::Os),
        Some("sync") => Some(Durability::Sync),
        Some(other) => {
            let what = format!("durability is no-wal, buffered, os or sync, not {other:?}");
            return Err(PyValueError::new_err(what));
        }
    };
    let mut options = WriteOptions::default();
    (options.durability, options.no_wait) = (durability, !wait);
    Ok(options)
}

/// What a read asks for by keyword.
pub(crate) fn read_options(py: Python<'_>, snapshot: Option<&Snapshot>) -> PyResult<ReadOptions> {
    match snapshot {
        None => Ok(ReadOptions::default()),
        Some(snapshot) => Ok(ReadOptions::at(&snapshot.get_inner(py)?)),
    }
}

/// The value of `key` as `options` show it.
pub(crate) fn found<'py>(
    py: Python<'py>,
    db: &Db,
    shared: &Shared,
    key: &[u8],
    options: &ReadOptions,
) -> PyResult<Option<Bound<'py, PyBytes>>> {
    look(py, db, shared, key, options, |value| PyBytes::new(py, value))
}

/// The same, as `take` makes it of the bytes. What memory holds is found without letting other threads of Python go on:
/// to let go of the interpreter and wait for it again takes longer than such a search, several times so where threads
/// are many. The search itself waits for none of them.
fn look<T>(
    py: Python<'_>,
    db: &Db,
    shared: &Shared,
    key: &[u8],
    options: &ReadOptions,
    take: impl Fn(&[u8]) -> T,
) -> PyResult<Option<T>> {
    if shared.luck.is_worth_it() {
        let snapshot = options.snapshot.clone();
        let memory = ReadOptions { snapshot, cache_only: true, ..ReadOptions::default() };
        let found = db.get_with(key, &memory, &take);
        let in_vain = found.as_ref().is_err_and(|e| e.kind() == ErrorKind::Stalled);
        shared.luck.learn(!in_vain);
        if !in_vain {
            return found.or_raise(py);
        }
    }
    let found = py.detach(|| db.get_opt(key, options)).or_raise(py)?;
    Ok(found.map(|value| take(&value)))
}

/// The values of `keys` in their order, as `options` show them.
pub(crate) fn several<'py>(
    py: Python<'py>,
    db: &Db,
    keys: &Bound<'py, PyAny>,
    options: &ReadOptions,
) -> PyResult<Bound<'py, PyList>> {
    let held: Vec<Bound<'py, PyAny>> = keys.try_iter()?.collect::<PyResult<_>>()?;
    let keys: Vec<Bytes<'_>> = held.iter().map(|k| k.extract()).collect::<PyResult<_>>()?;
    let found = py.detach(|| db.multi_get_opt(&keys, options)).or_raise(py)?;
    PyList::new(py, found.iter().map(|value| value.as_ref().map(|v| PyBytes::new(py, v))))
}

/// The error of a key that is not there, as a dict's.
#[cold]
pub(crate) fn missing(py: Python<'_>, key: &[u8]) -> PyErr {
    PyKeyError::new_err((PyBytes::new(py, key).unbind(),))
}

/// The pairs of a mapping or of an iterable of pairs.
pub(crate) fn each_pair(
    pairs: &Bound<'_, PyAny>,
    mut take: impl FnMut(Bytes<'_>, Bytes<'_>) -> PyResult<()>,
) -> PyResult<()> {
    let items = match pairs.hasattr("keys")? {
        true => pairs.call_method0("items")?,
        false => pairs.clone(),
    };
    for pair in items.try_iter()? {
        let pair = pair?;
        let (key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = pair.extract()?;
        take(key.extract()?, value.extract()?)?;
    }
    Ok(())
}

fn owned((key, value): (Value, Value)) -> (Vec<u8>, Value) {
    (key.into(), value)
}

impl Database {
    pub(crate) fn new(db: Db, path: PathBuf, settings: Settings) -> Database {
        Database::over(db, path, settings, false)
    }
    /// What a follower shows.
    pub(crate) fn shown(db: Db, path: PathBuf, settings: Settings) -> Database {
        Database::over(db, path, settings, true)
    }
    fn over(db: Db, path: PathBuf, settings: Settings, is_view: bool) -> Database {
        let shared = Shared {
            closed: AtomicBool::new(false),
            is_view,
            path,
            settings,
            spare: Spare::default(),
            luck: Luck::default(),
        };
        Database { db, family: None, shared: Arc::new(shared) }
    }

    fn found<'py>(&self, py: Python<'py>, key: &[u8]) -> PyResult<Option<Bound<'py, PyBytes>>> {
        self.shared.check(py)?;
        found(py, &self.db, &self.shared, key, &ReadOptions::default())
    }

    fn walk(&self, py: Python<'_>, what: What) -> PyResult<Scan> {
        self.shared.check(py)?;
        Scan::new(py, &self.db, &self.shared, Range::default(), ReadOptions::default(), what)
    }
}

#[pymethods]
impl Database {
    fn __getitem__<'py>(&self, py: Python<'py>, key: Bytes<'_>) -> PyResult<Bound<'py, PyBytes>> {
        self.found(py, &key)?.ok_or_else(|| missing(py, &key))
    }
    fn __setitem__(&self, py: Python<'_>, key: Bytes<'_>, value: Bytes<'_>) -> PyResult<()> {
        let (key, value) = (&*key, &*value);
        py.detach(|| self.db.put(key, value)).or_raise(py)
    }
    /// As a dict's: a key that is not there is a KeyError. `delete` does not look.
    fn __delitem__(&self, py: Python<'_>, key: Bytes<'_>) -> PyResult<()> {
        if !self.__contains__(py, Bytes::Borrowed(&key))? {
            return Err(missing(py, &key));
        }
        let key = &*key;
        py.detach(|| self.db.delete(key)).or_raise(py)
    }
    fn __contains__(&self, py: Python<'_>, key: Bytes<'_>) -> PyResult<bool> {
        Ok(look(py, &self.db, &self.shared, &key, &ReadOptions::default(), |_| ())?.is_some())
    }
    fn __iter__(&self, py: Python<'_>) -> PyResult<Scan> {
        self.walk(py, What::Keys)
    }
    fn __reversed__(&self, py: Python<'_>) -> PyResult<Scan> {
        let range = Range { reverse: true, ..Range::default() };
        Scan::new(py, &self.db, &self.shared, range, ReadOptions::default(), What::Keys)
    }
    fn __len__(&self) -> PyResult<usize> {
        let what = "counting reads the whole database: `sum(1 for _ in db)`; `db.estimate_count()` is quick";
        Err(PyTypeError::new_err(what))
    }
    fn __bool__(&self) -> bool {
        !self.shared.is_closed()
    }
    fn __repr__(&self) -> String {
        let family = self.family.as_ref().map(|f| format!(", family={:?}", f.name()));
        let closed = if self.shared.is_closed() { ", closed" } else { "" };
        format!("<lithify.Database {:?}{}{closed}>", self.shared.path, family.unwrap_or_default())
    }
    fn __reduce__(&self) -> PyResult<()> {
        let what = "an open database belongs to its process: pass its path, and open it there";
        Err(PyTypeError::new_err(what))
    }
    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }
    #[pyo3(signature = (*_args))]
    fn __exit__(&self, py: Python<'_>, _args: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py)
    }

    /// The value of `key`, or `default`.
    #[pyo3(signature = (key, default=None, *, snapshot=None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: Bytes<'_>,
        default: Option<Bound<'py, PyAny>>,
        snapshot: Option<&Snapshot>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let found = found(py, &self.db, &self.shared, &key, &read_options(py, snapshot)?)?;
        Ok(found.map(Bound::into_any).or(default))
    }
    /// The values of `keys` in their order, None for those that are not there, all of one moment.
    #[pyo3(signature = (keys, *, snapshot=None))]
    fn multi_get<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'py, PyAny>,
        snapshot: Option<&Snapshot>,
    ) -> PyResult<Bound<'py, PyList>> {
        several(py, &self.db, keys, &read_options(py, snapshot)?)
    }
    /// Sets `key` to `value`.
    #[pyo3(signature = (key, value, *, durability=None, wait=true))]
    fn put(
        &self,
        py: Python<'_>,
        key: Bytes<'_>,
        value: Bytes<'_>,
        durability: Option<&str>,
        wait: bool,
    ) -> PyResult<()> {
        let (options, key, value) = (write_options(durability, wait)?, &*key, &*value);
        py.detach(|| self.db.put_opt(key, value, &options)).or_raise(py)
    }
    /// Removes `key`, whether it is there or not.
    #[pyo3(signature = (key, *, durability=None, wait=true))]
    fn delete(
        &self,
        py: Python<'_>,
        key: Bytes<'_>,
        durability: Option<&str>,
        wait: bool,
    ) -> PyResult<()> {
        let (options, key) = (write_options(durability, wait)?, &*key);
        py.detach(|| self.db.delete_opt(key, &options)).or_raise(py)
    }
    /// Merges `operand` into the value of `key` by the operator that the database was opened with.
    #[pyo3(signature = (key, operand, *, durability=None, wait=true))]
    fn merge(
        &self,
        py: Python<'_>,
        key: Bytes<'_>,
        operand: Bytes<'_>,
        durability: Option<&str>,
        wait: bool,
    ) -> PyResult<()> {
        let (options, key, operand) = (write_options(durability, wait)?, &*key, &*operand);
        py.detach(|| self.db.merge_opt(key, operand, &options)).or_raise(py)
    }
    /// Removes the keys from `start` on and before `stop`, at the cost of one write.
    #[pyo3(signature = (start, stop, *, durability=None, wait=true))]
    fn delete_range(
        &self,
        py: Python<'_>,
        start: Bytes<'_>,
        stop: Bytes<'_>,
        durability: Option<&str>,
        wait: bool,
    ) -> PyResult<()> {
        let (options, start, stop) = (write_options(durability, wait)?, &*start, &*stop);
        py.detach(|| self.db.delete_range_opt(start, stop, &options)).or_raise(py)
    }
    /// Sets all pairs of a mapping, or of an iterable of pairs, in one batch: all of them or none.
    fn update(&self, py: Python<'_>, pairs: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut batch = WriteBatch::new();
        each_pair(pairs, |key, value| {
            match &self.family {
                None => batch.put(key, value),
                Some(family) => batch.put_cf(family, key, value),
            }
            .or_raise(py)
        })?;
        py.detach(|| self.db.write(&batch)).or_raise(py)
    }

    /// Removes `key` and returns its value; without one, `default` if it is given, else a KeyError. Another
    /// thread may come in between: where that matters, use a transaction.
    #[pyo3(signature = (key, *default))]
    fn pop<'py>(
        &self,
        py: Python<'py>,
        key: Bytes<'_>,
        default: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Some(value) = self.found(py, &key)? else {
            return default.get_item(0).map_err(|_| missing(py, &key));
        };
        let key = &*key;
        py.detach(|| self.db.delete(key)).or_raise(py)?;
        Ok(value.into_any())
    }
    /// Removes the first entry and returns its key and value; KeyError if there is none.
    fn popitem<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
        let first = py.detach(|| {
            let first = self.db.range(..).next().transpose()?;
            if let Some((key, _)) = &first {
                self.db.delete(key)?;
            }
            Ok(first)
        });
        let Some((key, value)) = first.or_raise(py)? else {
            return Err(PyKeyError::new_err("the database is empty"));
        };
        Ok((PyBytes::new(py, &key), PyBytes::new(py, &value)))
    }
    /// The value of `key`, which is set to `default` if it has none.
    fn setdefault<'py>(
        &self,
        py: Python<'py>,
        key: Bytes<'_>,
        default: Bytes<'_>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        if let Some(value) = self.found(py, &key)? {
            return Ok(value);
        }
        let (key, value) = (&*key, &*default);
        py.detach(|| self.db.put(key, value)).or_raise(py)?;
        Ok(PyBytes::new(py, value))
    }
    /// Removes every entry.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| {
            let Some((mut last, _)) = self.db.range(..).next_back().transpose()?.map(owned) else {
                return Ok(());
            };
            last.push(0); // the key after it
            self.db.delete_range(b"", last)
        })
        .or_raise(py)
    }

    /// The entries from `start` on and before `stop`, or those whose keys begin with `prefix`, in the order of
    /// keys. They are those of the moment of the call (or of `snapshot`), whatever is written meanwhile.
    #[pyo3(signature = (start=None, stop=None, *, prefix=None, reverse=false, limit=None, keys_only=false, snapshot=None, fill_cache=true))]
    #[expect(clippy::too_many_arguments, reason = "each is a keyword of Python's")]
    fn scan(
        &self,
        py: Python<'_>,
        start: Option<Bytes<'_>>,
        stop: Option<Bytes<'_>>,
        prefix: Option<Bytes<'_>>,
        reverse: bool,
        limit: Option<u64>,
        keys_only: bool,
        snapshot: Option<&Snapshot>,
        fill_cache: bool,
    ) -> PyResult<Scan> {
        self.shared.check(py)?;
        let mut options = read_options(py, snapshot)?;
        options.skip_cache_fill = !fill_cache;
        let range = Range::new(start, stop, prefix)?.walked(reverse, limit);
        let what = if keys_only { What::Keys } else { What::Items };
        Scan::new(py, &self.db, &self.shared, range, options, what)
    }
    /// The same entries as columns for Arrow: an object with `__arrow_c_stream__`, which pyarrow, polars, DuckDB and
    /// pandas take, in batches of `rows`.
    #[pyo3(signature = (start=None, stop=None, *, prefix=None, reverse=false, limit=None, snapshot=None, rows=65536))]
    #[expect(clippy::too_many_arguments, reason = "each is a keyword of Python's")]
    fn scan_columns(
        &self,
        py: Python<'_>,
        start: Option<Bytes<'_>>,
        stop: Option<Bytes<'_>>,
        prefix: Option<Bytes<'_>>,
        reverse: bool,
        limit: Option<u64>,
        snapshot: Option<&Snapshot>,
        rows: usize,
    ) -> PyResult<Columns> {
        self.shared.check(py)?;
        if rows == 0 {
            return Err(PyValueError::new_err("a batch has one row or more"));
        }
        let range = Range::new(start, stop, prefix)?;
        let options = range.bound(read_options(py, snapshot)?);
        let cursor = match range.is_empty() {
            true => None,
            false => Some(py.detach(|| self.db.iter_opt(&options)).or_raise(py)?),
        };
        Ok(Columns::over(cursor, &self.shared, reverse, limit, rows))
    }
    /// All keys in order.
    fn keys(&self, py: Python<'_>) -> PyResult<Scan> {
        self.walk(py, What::Keys)
    }
    /// All values in the order of their keys.
    fn values(&self, py: Python<'_>) -> PyResult<Scan> {
        self.walk(py, What::Values)
    }
    /// All pairs of key and value in order.
    fn items(&self, py: Python<'_>) -> PyResult<Scan> {
        self.walk(py, What::Items)
    }

    /// Writes that become visible together: `with db.batch() as b: ...` writes them at its end, and drops them
    /// if an exception leaves the block.
    #[pyo3(signature = (*, durability=None, wait=true))]
    fn batch(&self, py: Python<'_>, durability: Option<&str>, wait: bool) -> PyResult<Batch> {
        self.shared.check(py)?;
        Ok(Batch::new(self, write_options(durability, wait)?))
    }
    /// The database as it is now, for reading while it changes: `with db.snapshot() as s: ...`.
    fn snapshot(&self, py: Python<'_>) -> PyResult<Snapshot> {
        self.shared.check(py)?;
        Ok(Snapshot::new(self.db.clone(), self.shared.clone()))
    }
    /// Reads and writes that become visible together: `with db.transaction() as t: ...` commits at its end, and
    /// rolls back if an exception leaves the block.
    #[pyo3(signature = (*, optimistic=false, snapshot=false, lock_timeout=1.0, durability=None))]
    fn transaction(
        &self,
        py: Python<'_>,
        optimistic: bool,
        snapshot: bool,
        lock_timeout: f64,
        durability: Option<&str>,
    ) -> PyResult<Transaction> {
        self.shared.check(py)?;
        let write = write_options(durability, true)?;
        let options = transaction::options(optimistic, snapshot, lock_timeout, write)?;
        Ok(Transaction::new(self.db.begin_transaction(options), self.shared.clone()))
    }

    /// The family `name`, as a handle with this same face. `create` makes it if there is none.
    #[pyo3(signature = (name, *, create=false, **options))]
    fn family(
        &self,
        py: Python<'_>,
        name: &str,
        create: bool,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Database> {
        if options.is_some() && !create {
            return Err(PyTypeError::new_err("options are for a family that create=True makes"));
        }
        let options = family_options(&self.shared.settings, options)?;
        let family = py.detach(|| match create {
            true => self.db.open_column_family(name, options),
            false => self.db.column_family(name),
        });
        let family = family.or_raise(py)?;
        let db = Db::clone(&family);
        Ok(Database { db, family: Some(family), shared: self.shared.clone() })
    }
    /// The names of the families, `default` first.
    fn families(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.shared.check(py)?;
        Ok(self.db.column_families())
    }
    /// Drops the family `name` with all that is in it.
    fn drop_family(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        py.detach(|| self.db.drop_column_family(name)).or_raise(py)
    }

    /// About how many entries there are; entries that were overwritten or deleted may be counted.
    fn estimate_count(&self, py: Python<'_>) -> PyResult<u64> {
        self.shared.check(py)?;
        Ok(self.db.int_property("rocksdb.estimate-num-keys").unwrap_or(0))
    }
    /// A property by RocksDB's name, as text; None if there is none of that name.
    fn get_property(&self, py: Python<'_>, name: &str) -> PyResult<Option<String>> {
        self.shared.check(py)?;
        Ok(self.db.property(name))
    }
    /// Makes every write so far survive a power cut, but for those with durability="no-wal": a `flush` of
    /// their family saves them.
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.db.sync()).or_raise(py)
    }
    /// Writes what this family has in memory to tables.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.db.flush()).or_raise(py)
    }
    /// Compacts the keys from `start` on and before `stop`, or all of them.
    #[pyo3(signature = (start=None, stop=None))]
    fn compact(
        &self,
        py: Python<'_>,
        start: Option<Bytes<'_>>,
        stop: Option<Bytes<'_>>,
    ) -> PyResult<()> {
        let (start, stop) = (start.as_deref(), stop.as_deref());
        py.detach(|| self.db.compact_range(start, stop)).or_raise(py)
    }
    /// Brings the directory into the shape that RocksDB opens. Writes meanwhile would undo that.
    fn settle(&self, py: Python<'_>) -> PyResult<()> {
        self.shared.check(py)?;
        py.detach(|| self.db.settle()).or_raise(py)
    }
    /// Waits until no compaction is due, at most `timeout` seconds; False if it took longer.
    #[pyo3(signature = (timeout=None))]
    fn wait_idle(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        let limit = timeout.map(Duration::try_from_secs_f64).transpose();
        let limit = limit.map_err(|e| PyValueError::new_err(format!("timeout: {e}")))?;
        self.shared.check(py)?;
        py.detach(|| self.db.wait_idle(limit)).or_raise(py)
    }
    /// Makes an independent database of the present state in `path`, which is absent or empty.
    fn checkpoint(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.detach(|| self.db.checkpoint(path)).or_raise(py)
    }
    /// A writer of a new table in `path`, for `ingest` of this database or of another one with the same order.
    fn table_writer(&self, py: Python<'_>, path: PathBuf) -> PyResult<TableWriter> {
        self.shared.check(py)?;
        let table = py.detach(|| self.db.table_builder(&path)).or_raise(py)?;
        Ok(TableWriter::new(table, path))
    }
    /// Takes in tables that `table_writer`, or RocksDB's writer, made: all of them, or none. What they have is newer than
    /// what is there. `transfer` is `copy`, `link` (or a copy, where a link can't be made) or `move`.
    #[pyo3(signature = (paths, *, transfer="copy"))]
    fn ingest(&self, py: Python<'_>, paths: Vec<PathBuf>, transfer: &str) -> PyResult<()> {
        self.shared.check(py)?;
        let transfer = match transfer {
            "copy" => Transfer::Copy,
            "link" => Transfer::Link,
            "move" => Transfer::Move,
            other => {
                let what = format!("transfer is copy, link or move, not {other:?}");
                return Err(PyValueError::new_err(what));
            }
        };
        let options = IngestOptions { transfer };
        py.detach(|| self.db.ingest(&paths, &options)).or_raise(py)
    }
    /// Changes settings of the open database; of all of them or none.
    #[pyo3(signature = (**settings))]
    fn set(&self, py: Python<'_>, settings: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        let mut changes: Vec<(String, String)> = Vec::new();
        for (name, value) in settings.iter().flat_map(|all| all.iter()) {
            let name: String = name.extract()?;
            let value = text(&name, &value)?;
            changes.push((name, value));
        }
        let changes: Vec<(&str, &str)> = changes.iter().map(|(n, v)| (&**n, &**v)).collect();
        py.detach(|| self.db.set_settings(&changes)).or_raise(py)
    }
    /// The settings in force, each name with its value as text.
    fn settings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        listed(py, &self.db.settings())
    }
    /// Statistics since the open.
    fn stats(&self, py: Python<'_>) -> Stats {
        Stats(py.detach(|| self.db.stats()))
    }
    /// What limits writing now, the jobs at work and what waits for them, as a report.
    fn explain(&self, py: Python<'_>) -> PyResult<String> {
        self.shared.check(py)?;
        Ok(py.detach(|| self.db.explain().to_string()))
    }
    /// The tree as a picture in text.
    fn picture(&self, py: Python<'_>) -> PyResult<String> {
        self.shared.check(py)?;
        Ok(py.detach(|| self.db.picture()))
    }
    /// The directory.
    #[getter]
    fn path(&self) -> PathBuf {
        self.shared.path.clone()
    }
    /// The family's name.
    #[getter]
    fn name(&self) -> &str {
        self.family.as_ref().map_or("default", |family| family.name())
    }
    /// Whether it was closed.
    #[getter]
    fn closed(&self) -> bool {
        self.shared.is_closed()
    }
    /// Writes what no log has, ends the background work and closes the database with all its families. Scans,
    /// snapshots and transactions that are still about raise ClosedError from now on.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        if self.shared.closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        self.shared.spare.clear();
        if self.shared.is_view {
            return Ok(());
        }
        py.detach(|| self.db.clone().close()).or_raise(py)
    }
}
