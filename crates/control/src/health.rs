//! The health of writes: the error that stopped them for good, and why flushes or compactions get
//! nowhere for now, which stalls writers who would have to wait for them.
//!
//! Keeps: what writers were told last. Leaves to others: when a failed job is tried again, and what
//! the tree and the memtables say of stalls (`throttle`).

use lithify_base::Error;

use crate::command::Command;
use crate::retry::PATIENCE;

/// What is wrong, and how often it went wrong.
#[derive(Clone, Debug, Default)]
pub(crate) struct Health {
    read_only: Option<Error>,
    /// Why the oldest memtable could not be flushed the last time it was tried.
    flushes: Option<Error>,
    /// That was an edit that could not be written.
    by_edit: bool,
    /// Flushes that failed since the open.
    failed_flushes: u64,
    /// Why compactions get nowhere, once writers were told.
    compactions: Option<Error>,
    /// Compactions that failed since the open.
    failed_compactions: u64,
    /// Compactions that failed since one succeeded.
    in_a_row: u32,
}

impl Health {
    /// The error that stopped writes, if one did.
    pub(crate) fn read_only(&self) -> Option<&Error> {
        self.read_only.as_ref()
    }
    /// How often a flush failed, and why the last one did unless one has succeeded since.
    pub(crate) fn flushes(&self) -> (u64, Option<&Error>) {
        (self.failed_flushes, self.flushes.as_ref())
    }
    /// Why compactions get nowhere, if writers were told that they do not.
    pub(crate) fn compactions(&self) -> Option<&Error> {
        self.compactions.as_ref()
    }
    /// Compactions that failed since the open.
    pub(crate) fn failed_compactions(&self) -> u64 {
        self.failed_compactions
    }

    /// Writes must fail from now on. The first error stays.
    pub(crate) fn stop_writes(&mut self, error: Error, out: &mut Vec<Command>) {
        if self.read_only.is_none() {
            self.read_only = Some(error.clone());
            out.push(Command::ReadOnly { error });
        }
    }

    /// A memtable could not be flushed; it stays in memory and is tried again.
    pub(crate) fn flush_failed(&mut self, error: Error, out: &mut Vec<Command>) {
        self.failed_flushes += 1;
        self.by_edit = false;
        self.flushes = Some(error.clone());
        out.push(Command::FlushesFail(Some(error)));
    }
    /// No edit can be written for now, which flushes need as much.
    pub(crate) fn edit_failed(&mut self, error: Error, out: &mut Vec<Command>) {
        self.flush_failed(error, out);
        self.by_edit = true;
    }
    /// Edits reach the manifest again. That says nothing of flushes that fail before.
    pub(crate) fn edits_work(&mut self, out: &mut Vec<Command>) {
        if self.by_edit {
            self.flushes_work(out);
        }
    }
    /// A memtable was flushed.
    pub(crate) fn flushes_work(&mut self, out: &mut Vec<Command>) {
        if self.flushes.take().is_some() {
            out.push(Command::FlushesFail(None));
        }
    }

    /// A compaction failed. After some in a row writers are told.
    pub(crate) fn compaction_failed(&mut self, error: &Error, out: &mut Vec<Command>) {
        self.in_a_row += 1;
        self.failed_compactions += 1;
        if self.in_a_row >= PATIENCE {
            self.compactions_stuck(error.clone(), out);
        }
    }
    /// Compactions get nowhere.
    pub(crate) fn compactions_stuck(&mut self, error: Error, out: &mut Vec<Command>) {
        self.compactions = Some(error.clone());
        out.push(Command::CompactionsFail(Some(error)));
    }
    /// A compaction succeeded, or none is wanted any more.
    pub(crate) fn compaction_succeeded(&mut self, out: &mut Vec<Command>) {
        self.in_a_row = 0;
        if self.compactions.take().is_some() {
            out.push(Command::CompactionsFail(None));
        }
    }
}
