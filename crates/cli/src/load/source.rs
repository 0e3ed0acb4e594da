//! The bytes of a file or of standard input, with a progress bar on a terminal.
//!
//! Keeps: a source of lines ends in an error if a line is longer than any row can be, so a file
//! that is no text cannot fill the memory.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use anyhow::Result;
use lithify::MAX_VALUE_BYTES;
use lithify_base::Error;

use crate::progress::Progress;

/// Longest line of a text: the largest value, and room for what JSON or quotes add to it. Small
/// in tests, which reach it.
pub(super) const LINE_MAX: u64 = if cfg!(test) { 1 << 20 } else { 2 * MAX_VALUE_BYTES as u64 };

/// A file being read.
pub(super) struct Source {
    bytes: Box<dyn Read>,
    bar: Progress,
    /// Bytes since the last newline; not counted for a source without lines.
    line: Option<u64>,
}

impl Source {
    /// Opens `path`; `-` is standard input.
    pub(super) fn open(path: &Path) -> Result<Source> {
        if path.as_os_str() == "-" {
            let bar = Progress::bytes_without_end();
            return Ok(Source { bytes: Box::new(io::stdin()), bar, line: Some(0) });
        }
        let failed = |op: &str, e: io::Error| Error::io(op, path.display(), e);
        let file = File::open(path).map_err(|e| failed("open", e))?;
        let facts = file.metadata().map_err(|e| failed("look at", e))?;
        if facts.is_dir() {
            return Err(Error::invalid("this is a directory, not a file")
                .in_file(path.display())
                .into());
        }
        let bar = Progress::bytes();
        bar.show(0, facts.len());
        Ok(Source { bytes: Box::new(file), bar, line: Some(0) })
    }

    /// `bytes` as a source, for tests.
    #[cfg(test)]
    pub(super) fn from_bytes(bytes: &[u8]) -> Source {
        Source::from_reader(io::Cursor::new(bytes.to_vec()))
    }

    /// What `reader` gives as a source, for tests.
    #[cfg(test)]
    pub(super) fn from_reader(reader: impl Read + 'static) -> Source {
        Source { bytes: Box::new(reader), bar: Progress::hidden(), line: Some(0) }
    }

    /// The same bytes, which have no lines.
    pub(super) fn without_lines(self) -> Source {
        Source { line: None, ..self }
    }

    /// The bytes, buffered.
    pub(super) fn buffered(self) -> BufReader<Source> {
        BufReader::with_capacity(256 << 10, self)
    }
}

impl Read for Source {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let count = self.bytes.read(buf)?;
        self.bar.add(count as u64);
        if let Some(line) = &mut self.line {
            let read = &buf[..count];
            *line = match read.iter().rposition(|&b| b == b'\n') {
                Some(at) => (count - at - 1) as u64,
                None => *line + count as u64,
            };
            if *line > LINE_MAX {
                let what = "a line is longer than any value can be; is this a text file?";
                return Err(io::Error::new(io::ErrorKind::InvalidData, what));
            }
        }
        Ok(count)
    }
}
