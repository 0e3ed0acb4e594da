//! Errors of the store as exceptions of `lithify.errors`, which has a class for each kind.

use lithify::{Error, ErrorKind};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyType};

/// The class of `kind`.
fn class(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Corruption => "CorruptionError",
        ErrorKind::Io => "StorageError",
        ErrorKind::NoSpace => "NoSpaceError",
        ErrorKind::LimitExceeded => "LimitExceededError",
        ErrorKind::Stalled => "StalledError",
        ErrorKind::Locked => "LockedError",
        ErrorKind::Fenced => "FencedError",
        ErrorKind::NotCommitted => "NotCommittedError",
        ErrorKind::OutcomeUnknown => "OutcomeUnknownError",
        ErrorKind::ReadOnly => "ReadOnlyError",
        ErrorKind::Unsupported => "UnsupportedError",
        ErrorKind::ShuttingDown => "ClosedError",
        ErrorKind::Busy | ErrorKind::Deadlock => "ConflictError",
        ErrorKind::TimedOut => "LockTimeoutError",
        ErrorKind::Cancelled => "CancelledError",
        ErrorKind::InvalidArgument => "InvalidArgumentError",
        ErrorKind::NotFound => "NotFoundError",
        ErrorKind::MergeFailed => "MergeError",
        ErrorKind::Internal => "InternalError",
        _ => "Error",
    }
}

/// The exception for `error`.
#[cold]
pub(crate) fn raised(py: Python<'_>, error: &Error) -> PyErr {
    made(py, error).unwrap_or_else(|why| why)
}

fn made(py: Python<'_>, error: &Error) -> PyResult<PyErr> {
    static ERRORS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let module = ERRORS.get_or_try_init(py, || -> PyResult<Py<PyAny>> {
        Ok(py.import("lithify.errors")?.into_any().unbind())
    })?;
    let class = module.bind(py).getattr(class(error.kind()))?;
    let details = PyDict::new(py);
    details.set_item("file", error.file())?;
    details.set_item("offset", error.offset())?;
    details.set_item("errno", error.errno())?;
    let exception = class.cast::<PyType>()?.call((error.to_string(),), Some(&details))?;
    Ok(PyErr::from_value(exception))
}

/// What is closed: a database, a snapshot, a transaction, a scan.
#[cold]
pub(crate) fn closed(py: Python<'_>, what: &str) -> PyErr {
    raised(py, &Error::new(ErrorKind::ShuttingDown, format!("this {what} is closed")))
}

/// Turns the store's errors into exceptions.
pub(crate) trait OrRaise<T> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> OrRaise<T> for lithify::Result<T> {
    #[inline]
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| raised(py, &error))
    }
}

/// Says that `what` was left to the garbage collector, where warnings of that kind are on.
pub(crate) fn warn_forgotten(what: &std::ffi::CStr) {
    Python::try_attach(|py| {
        let category = py.get_type::<pyo3::exceptions::PyResourceWarning>();
        if let Err(error) = PyErr::warn(py, &category, what, 1) {
            error.write_unraisable(py, None);
        }
    });
}
