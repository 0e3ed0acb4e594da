//! A table that is written outside of a database, for one or several that take it in.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use lithify::TableBuilder;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use crate::bytes::Bytes;
use crate::errors::{OrRaise, closed};

/// Writes a table of entries in the order of their keys, each key once, for `Database.ingest`. In a `with` block it is
/// finished at the end, and removed if an exception leaves the block.
#[pyclass(frozen, module = "lithify")]
pub(crate) struct TableWriter {
    /// `None` once it is finished. Held by one call at a time, detached from the interpreter: it may write to the file.
    inner: Mutex<Option<TableBuilder>>,
    path: PathBuf,
}

impl TableWriter {
    pub(crate) fn new(builder: TableBuilder, path: PathBuf) -> TableWriter {
        TableWriter { inner: Mutex::new(Some(builder)), path }
    }
    fn held(&self) -> MutexGuard<'_, Option<TableBuilder>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Takes it out, if it is not finished.
    fn take(&self, py: Python<'_>) -> Option<TableBuilder> {
        py.detach(|| self.held().take())
    }
    fn add(
        &self,
        py: Python<'_>,
        add: impl FnOnce(&mut TableBuilder) -> lithify::Result<()> + Send,
    ) -> PyResult<()> {
        let added = py.detach(|| self.held().as_mut().map(add));
        added.ok_or_else(|| closed(py, "table"))?.or_raise(py)
    }
}

#[pymethods]
impl TableWriter {
    /// Adds `key` with `value`; it is above the key before.
    fn put(&self, py: Python<'_>, key: Bytes<'_>, value: Bytes<'_>) -> PyResult<()> {
        let (key, value) = (&*key, &*value);
        self.add(py, |table| table.put(key, value))
    }
    /// Adds the deletion of `key`.
    fn delete(&self, py: Python<'_>, key: Bytes<'_>) -> PyResult<()> {
        let key = &*key;
        self.add(py, |table| table.delete(key))
    }
    /// Adds an operand for the value of `key`.
    fn merge(&self, py: Python<'_>, key: Bytes<'_>, operand: Bytes<'_>) -> PyResult<()> {
        let (key, operand) = (&*key, &*operand);
        self.add(py, |table| table.merge(key, operand))
    }
    /// Adds the deletion of the keys from `start` on and before `stop`, in any order. It deletes what the database has,
    /// and none of the table's own entries.
    fn delete_range(&self, py: Python<'_>, start: Bytes<'_>, stop: Bytes<'_>) -> PyResult<()> {
        let (start, stop) = (&*start, &*stop);
        self.add(py, |table| table.delete_range(start, stop))
    }
    /// Writes the rest and syncs the file: its number of entries, its bytes, its first and its last key.
    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let table = self.take(py).ok_or_else(|| closed(py, "table"))?;
        let made = py.detach(|| table.finish()).or_raise(py)?;
        let all = PyDict::new(py);
        all.set_item("path", made.path)?;
        all.set_item("entries", made.entries)?;
        all.set_item("bytes", made.bytes)?;
        all.set_item("smallest", PyBytes::new(py, &made.smallest))?;
        all.set_item("largest", PyBytes::new(py, &made.largest))?;
        Ok(all)
    }
    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }
    #[pyo3(signature = (kind=None, *_rest))]
    fn __exit__(
        &self,
        py: Python<'_>,
        kind: Option<&Bound<'_, PyAny>>,
        _rest: &Bound<'_, PyTuple>,
    ) -> PyResult<()> {
        if kind.is_none() {
            // It may have been finished in the block.
            let open = py.detach(|| self.held().is_some());
            return if open { self.finish(py).map(drop) } else { Ok(()) };
        }
        if self.take(py).is_some() {
            // What lies there is no table. That it stays is no reason to hide the exception.
            std::fs::remove_file(&self.path).ok();
        }
        Ok(())
    }
    fn __repr__(&self) -> String {
        format!("<lithify.TableWriter {:?}>", self.path)
    }
}
