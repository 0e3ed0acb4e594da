//! The compiled half of the Python package `lithify`: its classes, over the handles of the Rust one.
//!
//! Every call that may wait or touch the disk runs detached from the interpreter, a single read included, so
//! that one thread's miss stops no other; only the end of a database that was forgotten and not closed comes attached, where
//! Python lets go of the last object of it. A lock that is held across such a call is waited for detached as well:
//! a thread that waits for it never keeps the interpreter from the thread that has it.
//!
//! Keeps: no `unsafe`; a closed database, snapshot or transaction raises and never crashes; bytes that an
//! object of Python owns are borrowed only where that object cannot change them (`bytes`), else copied.
//! Leaves to others: what the operations mean (the package `lithify` in Rust), the exceptions' classes
//! (`lithify/errors.py`).
#![allow(clippy::disallowed_types, reason = "its locks are Python's threads', not the store's")]
#![allow(clippy::disallowed_methods, reason = "it is asked for paths by programs")]

mod backups;
mod batch;
mod bytes;
mod columns;
mod database;
mod errors;
mod follower;
mod opening;
mod scan;
mod snapshot;
mod stats;
mod tables;
mod transaction;

use pyo3::prelude::*;

#[pymodule]
mod _lithify {
    #[pymodule_export]
    use crate::backups::Backups;
    #[pymodule_export]
    use crate::batch::Batch;
    #[pymodule_export]
    use crate::columns::Columns;
    #[pymodule_export]
    use crate::database::Database;
    #[pymodule_export]
    use crate::follower::Follower;
    #[pymodule_export]
    use crate::opening::{
        follow, import_directory, list_families, open, salvage, settings, verify,
    };
    #[pymodule_export]
    use crate::scan::Scan;
    #[pymodule_export]
    use crate::snapshot::Snapshot;
    #[pymodule_export]
    use crate::stats::Stats;
    #[pymodule_export]
    use crate::tables::TableWriter;
    #[pymodule_export]
    use crate::transaction::Transaction;
}
