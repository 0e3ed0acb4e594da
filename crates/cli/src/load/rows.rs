//! What every format of files makes: rows, one after the other, that are entries or the reason why not.

use anyhow::Result;

use crate::dump::Order;

/// What a format makes of the next row.
pub(crate) enum Row {
    /// The entry is in the buffer.
    Entry,
    /// No entry, and why.
    Skipped(&'static str),
    /// What follows is of this family, which is made if need be.
    Family { name: String, order: Order },
    /// Nothing is left.
    End,
}

/// Why a line without anything on it makes no entry, which is as it should be.
pub(crate) const EMPTY_LINE: &str = "empty line";

/// A key and a value being made; the memory is reused.
#[derive(Default)]
pub(crate) struct Entry {
    pub(crate) key: Vec<u8>,
    pub(crate) value: Vec<u8>,
}

/// The rows of a file.
pub(crate) trait Rows {
    /// Reads the next row into `entry`.
    ///
    /// # Errors
    /// If the file cannot be read any further.
    fn next(&mut self, entry: &mut Entry) -> Result<Row>;

    /// Whether an empty key is meant, as in what a database gave out. In files of other programs a field
    /// that is empty is rather one that was forgotten.
    fn means_empty_keys(&self) -> bool {
        false
    }
}

/// Which parts of a row become what.
pub(crate) struct Choice {
    pub(crate) key: Vec<String>,
    pub(crate) value: Option<String>,
    pub(crate) join: Vec<u8>,
    pub(crate) header: bool,
}
