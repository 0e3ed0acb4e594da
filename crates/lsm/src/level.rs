//! A level: its runs, newest first. Level 0 has one run per flush; deeper levels have a base run
//! (stratum 0) and, above it, newer runs stacked by compactions that could not wait.

use std::sync::Arc;

use lithify_base::{Comparator, Stratum};

use crate::file::FileRef;
use crate::index;
use crate::run::Run;

/// The runs of one level.
#[derive(Clone, Debug, Default)]
pub struct Level {
    runs: Arc<[Run]>,
    bytes: u64,
    files: usize,
    max_depth: u32,
}

impl Level {
    /// A level of runs sorted newest first.
    pub(crate) fn new(runs: Vec<Run>, order: &dyn Comparator) -> Level {
        debug_assert!(runs.windows(2).all(|w| w[0].pos.is_newer_than(w[1].pos)));
        Level {
            bytes: runs.iter().map(Run::bytes).fold(0, u64::saturating_add),
            files: runs.iter().map(|r| r.files().len()).sum(),
            max_depth: index::max_depth(&runs, order),
            runs: runs.into(),
        }
    }
    /// Runs, newest first.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }
    /// The run at `stratum`.
    pub fn run(&self, stratum: Stratum) -> Option<&Run> {
        let i = self.runs.partition_point(|r| r.pos.stratum > stratum);
        self.runs.get(i).filter(|r| r.pos.stratum == stratum)
    }
    /// All files, newest run first, each run in key order.
    pub fn files(&self) -> impl DoubleEndedIterator<Item = &FileRef> {
        self.runs.iter().flat_map(|r| r.files())
    }
    /// Number of files.
    pub fn file_count(&self) -> usize {
        self.files
    }
    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
    /// Bytes of all files, deletions weighted up.
    pub fn compensated_bytes(&self) -> u64 {
        self.runs.iter().map(Run::compensated_bytes).fold(0, u64::saturating_add)
    }
    /// The largest number of runs that cover one key: what a read may have to look at.
    pub fn max_depth(&self) -> u32 {
        self.max_depth
    }
    /// True without files.
    pub fn is_empty(&self) -> bool {
        self.files == 0
    }
    /// True if both are the very same value, so that what was derived from one holds for both.
    pub fn same(&self, other: &Level) -> bool {
        Arc::ptr_eq(&self.runs, &other.runs)
    }
}
