//! Lines of a text, each with its number.
//!
//! Keeps: no more of a row is in memory than a row may have, whatever the file is.

use std::io::{BufRead, BufReader};

use anyhow::{Result, bail};
use lithify::{MAX_KEY_BYTES, MAX_VALUE_BYTES};
use lithify_lsm::picture::readable;

use super::source::Source;

/// Most bytes of a row: the largest key and the largest value that the store takes. Small in tests,
/// which reach it.
pub(super) const ROW_MAX: usize =
    if cfg!(test) { 1 << 20 } else { MAX_KEY_BYTES + MAX_VALUE_BYTES };

/// The lines of a source.
pub(super) struct Lines {
    bytes: BufReader<Source>,
    /// Lines that were read.
    number: u64,
    max: usize,
}

impl Lines {
    /// Lines whose rows have at most `max` bytes.
    pub(super) fn new(source: Source, max: usize) -> Lines {
        Lines { bytes: source.buffered(), number: 0, max }
    }

    /// The number of the line that was read last, from 1.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Appends the next line, with its end, to `row`, which has the lines before it; false at the end
    /// of the file.
    pub(super) fn append(&mut self, row: &mut Vec<u8>) -> Result<bool> {
        let start = row.len();
        loop {
            let chunk = self.bytes.fill_buf()?;
            if chunk.is_empty() {
                self.number += u64::from(row.len() > start);
                return Ok(row.len() > start);
            }
            let end = chunk.iter().position(|&b| b == b'\n');
            let count = end.map_or(chunk.len(), |at| at + 1);
            if row.len() + count > self.max {
                return too_long(self.number + 1, self.max);
            }
            row.extend_from_slice(&chunk[..count]);
            self.bytes.consume(count);
            if end.is_some() {
                self.number += 1;
                return Ok(true);
            }
        }
    }
}

/// The error of a row that has more than `max` bytes at line `number`.
pub(super) fn too_long<T>(number: u64, max: usize) -> Result<T> {
    bail!(
        "line {number}: the row is longer than {}, the most that a key and a value can have; is the \
         file what --format says?",
        readable(max as u64)
    )
}
