//! A directory of backups.

use std::path::PathBuf;

use lithify::BackupSummary;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::database::Database;
use crate::errors::OrRaise;

/// Backups of a database in a directory of their own; tables that several of them have are kept once.
#[pyclass(frozen, module = "lithify")]
pub(crate) struct Backups(lithify::Backups);

fn shown<'py>(py: Python<'py>, backup: &BackupSummary) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    all.set_item("id", backup.id)?;
    all.set_item("unix_seconds", backup.unix_seconds)?;
    all.set_item("last_sequence", backup.last_sequence)?;
    all.set_item("tables", backup.tables)?;
    all.set_item("bytes", backup.bytes)?;
    all.set_item("copied", backup.copied)?;
    Ok(all)
}

#[pymethods]
impl Backups {
    /// Opens the backups in `path`, and makes the directory if there is none.
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Backups> {
        py.detach(|| lithify::Backups::open(path)).or_raise(py).map(Backups)
    }
    /// Backs up `db` as it is now; it goes on meanwhile.
    fn create<'py>(&self, py: Python<'py>, db: &Database) -> PyResult<Bound<'py, PyDict>> {
        let made = py.detach(|| self.0.create(&db.db, &mut |_| {}));
        shown(py, &made.or_raise(py)?)
    }
    /// The backups, the oldest first.
    fn list<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let all = py.detach(|| self.0.list()).or_raise(py)?;
        all.iter().map(|backup| shown(py, backup)).collect()
    }
    /// Compares every byte of a backup with what was backed up: a sentence for all that is wrong.
    fn verify(&self, py: Python<'_>, id: u64) -> PyResult<Vec<String>> {
        let wrong = py.detach(|| self.0.verify(id, &mut |_| {})).or_raise(py)?;
        Ok(wrong.iter().map(ToString::to_string).collect())
    }
    /// Makes a database of a backup in `to`, which is absent or empty.
    fn restore<'py>(&self, py: Python<'py>, id: u64, to: PathBuf) -> PyResult<Bound<'py, PyDict>> {
        let made = py.detach(|| self.0.restore(id, to, &mut |_| {}));
        shown(py, &made.or_raise(py)?)
    }
    /// Deletes one.
    fn delete(&self, py: Python<'_>, id: u64) -> PyResult<()> {
        py.detach(|| self.0.delete(id)).or_raise(py)
    }
    /// Deletes all but the newest `keep`; the numbers of those that are gone.
    fn purge(&self, py: Python<'_>, keep: usize) -> PyResult<Vec<u64>> {
        py.detach(|| self.0.purge(keep)).or_raise(py)
    }
}
