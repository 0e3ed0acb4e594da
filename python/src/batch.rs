//! Writes that become visible together.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lithify::{ColumnFamily, Db, Error, WriteBatch, WriteOptions};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyAny, PyTuple};

use crate::bytes::Bytes;
use crate::database::{Database, Shared, each_pair};
use crate::errors::OrRaise;

/// Writes that become visible together, when it is written, or never.
#[pyclass(frozen, module = "lithify")]
pub(crate) struct Batch {
    db: Db,
    /// Whose keys are meant where a call names none.
    family: Option<ColumnFamily>,
    options: WriteOptions,
    shared: Arc<Shared>,
    writes: Mutex<WriteBatch>,
}

impl Batch {
    pub(crate) fn new(of: &Database, options: WriteOptions) -> Batch {
        let (db, family, shared) = (of.db.clone(), of.family.clone(), of.shared.clone());
        Batch { db, family, options, shared, writes: Mutex::new(WriteBatch::new()) }
    }
    fn writes(&self, py: Python<'_>) -> MutexGuard<'_, WriteBatch> {
        self.writes.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }
    /// Does `plain`, or `of` a family if one is meant.
    fn add(
        &self,
        py: Python<'_>,
        family: Option<&Database>,
        plain: impl FnOnce(&mut WriteBatch) -> lithify::Result<()>,
        of: impl FnOnce(&mut WriteBatch, &ColumnFamily) -> lithify::Result<()>,
    ) -> PyResult<()> {
        self.shared.check(py)?;
        // Families are told apart by numbers, which another database has as well.
        if family.is_some_and(|named| !Arc::ptr_eq(&named.shared, &self.shared)) {
            let what = "the family is one of another database, and a batch is written to one alone";
            return Err(Error::invalid(what)).or_raise(py);
        }
        let mut writes = self.writes(py);
        let family = family.map_or(self.family.as_ref(), |named| named.family.as_ref());
        match family {
            None => plain(&mut writes),
            Some(family) => of(&mut writes, family),
        }
        .or_raise(py)
    }
}

#[pymethods]
impl Batch {
    fn __setitem__(&self, py: Python<'_>, key: Bytes<'_>, value: Bytes<'_>) -> PyResult<()> {
        self.put(py, key, value, None)
    }
    fn __delitem__(&self, py: Python<'_>, key: Bytes<'_>) -> PyResult<()> {
        self.delete(py, key, None)
    }
    fn __len__(&self, py: Python<'_>) -> usize {
        self.writes(py).len()
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
            return self.write(py);
        }
        self.clear(py);
        Ok(())
    }
    /// Sets `key` to `value`, in `family` if one is named.
    #[pyo3(signature = (key, value, *, family=None))]
    fn put(
        &self,
        py: Python<'_>,
        key: Bytes<'_>,
        value: Bytes<'_>,
        family: Option<&Database>,
    ) -> PyResult<()> {
        self.add(py, family, |b| b.put(&key, &value), |b, f| b.put_cf(f, &key, &value))
    }
    /// Removes `key`.
    #[pyo3(signature = (key, *, family=None))]
    fn delete(&self, py: Python<'_>, key: Bytes<'_>, family: Option<&Database>) -> PyResult<()> {
        self.add(py, family, |b| b.delete(&key), |b, f| b.delete_cf(f, &key))
    }
    /// Merges `operand` into the value of `key`.
    #[pyo3(signature = (key, operand, *, family=None))]
    fn merge(
        &self,
        py: Python<'_>,
        key: Bytes<'_>,
        operand: Bytes<'_>,
        family: Option<&Database>,
    ) -> PyResult<()> {
        self.add(py, family, |b| b.merge(&key, &operand), |b, f| b.merge_cf(f, &key, &operand))
    }
    /// Removes the keys from `start` on and before `stop`.
    #[pyo3(signature = (start, stop, *, family=None))]
    fn delete_range(
        &self,
        py: Python<'_>,
        start: Bytes<'_>,
        stop: Bytes<'_>,
        family: Option<&Database>,
    ) -> PyResult<()> {
        let of = |b: &mut WriteBatch, f: &ColumnFamily| b.delete_range_cf(f, &start, &stop);
        self.add(py, family, |b| b.delete_range(&start, &stop), of)
    }
    /// Sets all pairs of a mapping, or of an iterable of pairs.
    fn update(&self, py: Python<'_>, pairs: &Bound<'_, PyAny>) -> PyResult<()> {
        each_pair(pairs, |key, value| self.put(py, key, value, None))
    }
    /// Forgets all writes.
    fn clear(&self, py: Python<'_>) {
        self.writes(py).clear();
    }
    /// Writes it, and empties it for more. If that fails, it keeps its writes.
    fn write(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| {
            let mut writes = self.writes.lock().unwrap_or_else(PoisonError::into_inner);
            self.db.write_opt(&writes, &self.options)?;
            writes.clear();
            Ok(())
        })
        .or_raise(py)
    }
}
