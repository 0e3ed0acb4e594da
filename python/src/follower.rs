//! A reader of a database that another process writes.

use std::path::PathBuf;

use lithify::Settings;
use pyo3::prelude::*;

use crate::database::Database;
use crate::errors::OrRaise;

/// Follows a database that another process writes. `view` is the database as it was at the last look, and `catch_up`
/// looks anew. A view stays as it is for as long as it is held, with every table of it open.
#[pyclass(frozen, module = "lithify")]
pub(crate) struct Follower {
    inner: lithify::Follower,
    path: PathBuf,
    settings: Settings,
}

impl Follower {
    pub(crate) fn new(inner: lithify::Follower, path: PathBuf, settings: Settings) -> Follower {
        Follower { inner, path, settings }
    }
}

#[pymethods]
impl Follower {
    /// The database as it was at the last look, for reading.
    fn view(&self) -> Database {
        Database::shown(self.inner.view(), self.path.clone(), self.settings.clone())
    }
    /// Looks at what was written since; whether there was something.
    fn catch_up(&self, py: Python<'_>) -> PyResult<bool> {
        py.detach(|| self.inner.catch_up()).or_raise(py)
    }
    fn __repr__(&self) -> String {
        format!("<lithify.Follower {:?}>", self.path)
    }
}
