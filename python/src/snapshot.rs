//! The database as it was at a moment.

use std::sync::{Arc, Mutex, PoisonError};

use lithify::{Db, ReadOptions};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};

use crate::bytes::Bytes;
use crate::database::{Shared, found, missing, several};
use crate::errors::{closed, warn_forgotten};
use crate::scan::{Range, Scan, What};

/// A moment of the database: reads of it find what was there then.
#[pyclass(frozen, module = "lithify")]
pub(crate) struct Snapshot {
    db: Db,
    shared: Arc<Shared>,
    /// `None` once it is closed. Held for a clone only, never across a call.
    inner: Mutex<Option<lithify::Snapshot>>,
}

impl Snapshot {
    pub(crate) fn new(db: Db, shared: Arc<Shared>) -> Snapshot {
        let inner = Mutex::new(Some(db.snapshot()));
        Snapshot { db, shared, inner }
    }
    pub(crate) fn get_inner(&self, py: Python<'_>) -> PyResult<lithify::Snapshot> {
        self.shared.check(py)?;
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.clone().ok_or_else(|| closed(py, "snapshot"))
    }
    fn found<'py>(&self, py: Python<'py>, key: &[u8]) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let options = ReadOptions::at(&self.get_inner(py)?);
        found(py, &self.db, &self.shared, key, &options)
    }
}

#[pymethods]
impl Snapshot {
    fn __getitem__<'py>(&self, py: Python<'py>, key: Bytes<'_>) -> PyResult<Bound<'py, PyBytes>> {
        self.found(py, &key)?.ok_or_else(|| missing(py, &key))
    }
    fn __contains__(&self, py: Python<'_>, key: Bytes<'_>) -> PyResult<bool> {
        Ok(self.found(py, &key)?.is_some())
    }
    fn __iter__(&self, py: Python<'_>) -> PyResult<Scan> {
        let options = ReadOptions::at(&self.get_inner(py)?);
        Scan::new(py, &self.db, &self.shared, Range::default(), options, What::Keys)
    }
    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }
    #[pyo3(signature = (*_args))]
    fn __exit__(&self, _args: &Bound<'_, PyTuple>) {
        self.close();
    }
    /// The value of `key` at that moment, or `default`.
    #[pyo3(signature = (key, default=None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: Bytes<'_>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(self.found(py, &key)?.map(Bound::into_any).or(default))
    }
    /// The values of `keys` in their order, None for those that were not there.
    fn multi_get<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyList>> {
        several(py, &self.db, keys, &ReadOptions::at(&self.get_inner(py)?))
    }
    /// As `Database.scan`, at that moment.
    #[pyo3(signature = (start=None, stop=None, *, prefix=None, reverse=false, limit=None, keys_only=false))]
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
    ) -> PyResult<Scan> {
        let options = ReadOptions::at(&self.get_inner(py)?);
        let range = Range::new(start, stop, prefix)?.walked(reverse, limit);
        let what = if keys_only { What::Keys } else { What::Items };
        Scan::new(py, &self.db, &self.shared, range, options, what)
    }
    /// The sequence number of that moment.
    #[getter]
    fn sequence(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.get_inner(py)?.sequence())
    }
    /// Lets go of it, so that compaction may drop what only it still showed.
    fn close(&self) {
        drop(self.inner.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        let inner = self.inner.get_mut().unwrap_or_else(PoisonError::into_inner);
        if inner.take().is_some() && !self.shared.is_closed() {
            warn_forgotten(c"a snapshot was not closed; use `with db.snapshot() as s:`");
        }
    }
}
