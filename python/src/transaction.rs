//! Reads and writes that become visible together, kept apart from those of others.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lithify::{ReadOptions, TransactionOptions, WriteOptions};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyAny, PyBytes, PyTuple};

use crate::bytes::Bytes;
use crate::database::{Shared, missing};
use crate::errors::{OrRaise, closed, warn_forgotten};
use crate::scan::{Range, Scan, What};

/// Reads and writes that become visible together, by its commit, or never.
#[pyclass(frozen, module = "lithify")]
pub(crate) struct Transaction {
    shared: Arc<Shared>,
    /// `None` once it was committed or rolled back.
    inner: Mutex<Option<lithify::Transaction>>,
}

/// What a transaction asks for by keyword.
pub(crate) fn options(
    optimistic: bool,
    snapshot: bool,
    lock_timeout: f64,
    write: WriteOptions,
) -> PyResult<TransactionOptions> {
    let limit = Duration::try_from_secs_f64(lock_timeout)
        .map_err(|e| PyValueError::new_err(format!("lock_timeout: {e}")))?;
    let options = match optimistic {
        true => TransactionOptions::optimistic(),
        false => TransactionOptions::pessimistic(),
    };
    let options = options.with_lock_timeout(limit).with_write(write);
    Ok(if snapshot { options.with_snapshot() } else { options })
}

impl Transaction {
    pub(crate) fn new(inner: lithify::Transaction, shared: Arc<Shared>) -> Transaction {
        Transaction { shared, inner: Mutex::new(Some(inner)) }
    }
    /// Does `work` with the transaction, detached from the interpreter: it may wait for a lock.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut lithify::Transaction) -> lithify::Result<T> + Send,
    ) -> PyResult<T> {
        self.shared.check(py)?;
        let done = py.detach(|| {
            let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            inner.as_mut().map(work)
        });
        done.ok_or_else(|| closed(py, "transaction"))?.or_raise(py)
    }
    fn found<'py>(&self, py: Python<'py>, key: &[u8]) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let value = self.with(py, |t| t.get(key))?;
        Ok(value.map(|value| PyBytes::new(py, &value)))
    }
}

#[pymethods]
impl Transaction {
    fn __getitem__<'py>(&self, py: Python<'py>, key: Bytes<'_>) -> PyResult<Bound<'py, PyBytes>> {
        self.found(py, &key)?.ok_or_else(|| missing(py, &key))
    }
    fn __setitem__(&self, py: Python<'_>, key: Bytes<'_>, value: Bytes<'_>) -> PyResult<()> {
        self.put(py, key, value)
    }
    fn __delitem__(&self, py: Python<'_>, key: Bytes<'_>) -> PyResult<()> {
        self.delete(py, key)
    }
    fn __contains__(&self, py: Python<'_>, key: Bytes<'_>) -> PyResult<bool> {
        Ok(self.found(py, &key)?.is_some())
    }
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.with(py, |t| Ok(t.len()))
    }
    fn __bool__(&self) -> bool {
        true
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
        let over =
            py.detach(|| self.inner.lock().unwrap_or_else(PoisonError::into_inner).is_none());
        match (kind.is_none(), over) {
            (true, false) => self.commit(py),
            _ => {
                self.rollback(py);
                Ok(())
            }
        }
    }
    /// The value of `key`, this transaction's own writes included, or `default`.
    #[pyo3(signature = (key, default=None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: Bytes<'_>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(self.found(py, &key)?.map(Bound::into_any).or(default))
    }
    /// As `get`, and claims the key: no other transaction writes it before this one is over, or with optimistic=True this
    /// one's commit is refused if anything was written to it meanwhile. Writes outside of transactions take no locks: only
    /// an optimistic one is told of them.
    #[pyo3(signature = (key, default=None))]
    fn get_for_update<'py>(
        &self,
        py: Python<'py>,
        key: Bytes<'_>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let key = &*key;
        let value = self.with(py, |t| t.get_for_update(key))?;
        Ok(value.map(|value| PyBytes::new(py, &value).into_any()).or(default))
    }
    /// Sets `key` to `value`.
    fn put(&self, py: Python<'_>, key: Bytes<'_>, value: Bytes<'_>) -> PyResult<()> {
        let (key, value) = (&*key, &*value);
        self.with(py, |t| t.put(key, value))
    }
    /// Removes `key`.
    fn delete(&self, py: Python<'_>, key: Bytes<'_>) -> PyResult<()> {
        let key = &*key;
        self.with(py, |t| t.delete(key))
    }
    /// Merges `operand` into the value of `key`.
    fn merge(&self, py: Python<'_>, key: Bytes<'_>, operand: Bytes<'_>) -> PyResult<()> {
        let (key, operand) = (&*key, &*operand);
        self.with(py, |t| t.merge(key, operand))
    }
    /// As `Database.scan`, this transaction's own writes so far included.
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
        let range = Range::new(start, stop, prefix)?.walked(reverse, limit);
        let bounds = range.bound(ReadOptions::default());
        let cursor = self.with(py, |t| {
            let options = ReadOptions { snapshot: t.snapshot().cloned(), ..bounds };
            t.iter_opt(&options)
        })?;
        let what = if keys_only { What::Keys } else { What::Items };
        Ok(Scan::over(cursor, &self.shared, range, what))
    }
    /// Marks the present state for `rollback_to_savepoint`.
    fn set_savepoint(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |t| {
            t.set_savepoint();
            Ok(())
        })
    }
    /// Undoes what came after the last savepoint, which is gone then.
    fn rollback_to_savepoint(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |t| t.rollback_to_savepoint())
    }
    /// Makes the writes visible. On a ConflictError none of them is; run the transaction again.
    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        self.shared.check(py)?;
        let done = py.detach(|| {
            let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner).take();
            inner.map(lithify::Transaction::commit)
        });
        done.ok_or_else(|| closed(py, "transaction"))?.or_raise(py)
    }
    /// Forgets the writes and lets go of the locks.
    fn rollback(&self, py: Python<'_>) {
        py.detach(|| drop(self.inner.lock().unwrap_or_else(PoisonError::into_inner).take()));
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        let inner = self.inner.get_mut().unwrap_or_else(PoisonError::into_inner);
        if inner.take().is_some() && !self.shared.is_closed() {
            warn_forgotten(c"a transaction was not ended; use `with db.transaction() as t:`");
        }
    }
}
