//! What a database says of itself, in numbers.

use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Statistics of a moment; counters run from the open.
#[pyclass(frozen, module = "lithify")]
pub(crate) struct Stats(pub(crate) lithify::Stats);

#[pymethods]
impl Stats {
    /// Bytes written to tables for each byte written by the program; 0.0 before the first flush.
    #[getter]
    fn write_amplification(&self) -> f64 {
        self.0.write_amplification()
    }
    /// Seconds that writers waited for compaction and memory, all causes together.
    #[getter]
    fn stalled_seconds(&self) -> f64 {
        self.0.stalled().as_secs_f64()
    }
    /// Bytes of all tables on disk.
    #[getter]
    fn disk_bytes(&self) -> u64 {
        self.0.disk_bytes
    }
    /// Bytes that memtables take.
    #[getter]
    fn memtable_bytes(&self) -> u64 {
        self.0.memtable_bytes
    }
    /// Bytes in the block cache.
    #[getter]
    fn cache_bytes(&self) -> u64 {
        self.0.cache_bytes
    }
    /// Look-ups that found their block in the cache.
    #[getter]
    fn cache_hits(&self) -> u64 {
        self.0.cache_hits
    }
    /// Look-ups that did not.
    #[getter]
    fn cache_misses(&self) -> u64 {
        self.0.cache_misses
    }
    /// Bytes that compaction still has to rewrite, about.
    #[getter]
    fn debt_bytes(&self) -> u64 {
        self.0.debt_bytes
    }
    /// Compactions at work.
    #[getter]
    fn running_compactions(&self) -> usize {
        self.0.running_compactions
    }
    /// The number of the last write that reads can see.
    #[getter]
    fn last_sequence(&self) -> u64 {
        self.0.last_sequence
    }
    /// Snapshots that are held.
    #[getter]
    fn snapshots(&self) -> usize {
        self.0.snapshots
    }
    /// Every counter by its name.
    #[getter]
    fn counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        for (name, count) in self.0.counts.list() {
            all.set_item(name, count)?;
        }
        Ok(all)
    }
    /// The levels, 0 first: a dict of numbers for each.
    #[getter]
    fn levels<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let one = |level: &lithify::LevelStats| {
            let all = PyDict::new(py);
            all.set_item("level", level.level)?;
            all.set_item("runs", level.runs)?;
            all.set_item("files", level.files)?;
            all.set_item("bytes", level.bytes)?;
            all.set_item("written_bytes", level.written_bytes)?;
            all.set_item("read_bytes", level.read_bytes)?;
            all.set_item("jobs", level.jobs)?;
            Ok(all)
        };
        self.0.levels.iter().map(one).collect()
    }
    /// All of it in Prometheus' text format.
    fn prometheus(&self) -> String {
        self.0.prometheus()
    }
    fn __str__(&self) -> String {
        self.0.to_string()
    }
}
