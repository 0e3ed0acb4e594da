//! The bytes of a file or of standard input, with a progress bar on a terminal.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use anyhow::Result;
use lithify_base::{Error, shown_path};

use crate::progress::Progress;

/// How files begin that are no text, and would be taken for rows of it.
const NO_TEXT: [(&[u8], &str); 6] = [
    (b"\x1f\x8b", "compressed by gzip; unpack it: `zcat FILE | lithify load ... -`"),
    (
        b"\x28\xb5\x2f\xfd",
        "compressed by Zstandard; unpack it: `zstdcat FILE | lithify load ... -`",
    ),
    (b"\xfd7zXZ\0", "compressed by xz; unpack it: `xzcat FILE | lithify load ... -`"),
    (b"PK\x03\x04", "an archive or a spreadsheet; unpack it, or save it as CSV or TSV"),
    (b"\xff\xfe", "UTF-16; convert it: `iconv -f UTF-16 -t UTF-8 FILE | lithify load ... -`"),
    (b"\xfe\xff", "UTF-16; convert it: `iconv -f UTF-16 -t UTF-8 FILE | lithify load ... -`"),
];
/// Bytes of the longest of these.
const KNOWN_START: usize = 6;

/// A file being read.
pub(super) struct Source {
    bytes: Box<dyn Read>,
    /// What was looked at and not read yet.
    ahead: Vec<u8>,
    bar: Progress,
}

impl Source {
    /// Opens `path`; `-` is standard input.
    pub(super) fn open(path: &Path) -> Result<Source> {
        if path.as_os_str() == "-" {
            return Ok(Source::over(io::stdin(), Progress::bytes_without_end()));
        }
        let failed = |op: &str, e: io::Error| Error::io(op, shown_path(path), e);
        let file = File::open(path).map_err(|e| failed("open", e))?;
        let facts = file.metadata().map_err(|e| failed("look at", e))?;
        if facts.is_dir() {
            return Err(Error::invalid(
                "this is a directory; name a file, or - for standard input",
            )
            .in_file(shown_path(path))
            .into());
        }
        let bar = Progress::bytes();
        bar.show(0, facts.len());
        Ok(Source::over(file, bar))
    }

    fn over(bytes: impl Read + 'static, bar: Progress) -> Source {
        Source { bytes: Box::new(bytes), ahead: Vec::new(), bar }
    }

    /// `bytes` as a source, for tests.
    #[cfg(test)]
    pub(super) fn from_bytes(bytes: &[u8]) -> Source {
        Source::from_reader(io::Cursor::new(bytes.to_vec()))
    }

    /// What `reader` gives as a source, for tests.
    #[cfg(test)]
    pub(super) fn from_reader(reader: impl Read + 'static) -> Source {
        Source::over(reader, Progress::hidden())
    }

    /// The next `count` bytes, fewer at the end, which stay to be read.
    pub(super) fn peek(&mut self, count: usize) -> io::Result<&[u8]> {
        let missing = count.saturating_sub(self.ahead.len()) as u64;
        (&mut self.bytes).take(missing).read_to_end(&mut self.ahead)?;
        Ok(&self.ahead[..count.min(self.ahead.len())])
    }

    /// What the bytes are instead of text, with what to do; `None` if they may be text.
    pub(super) fn no_text(&mut self) -> io::Result<Option<&'static str>> {
        let start = self.peek(KNOWN_START)?;
        let known = NO_TEXT.iter().find(|(magic, _)| start.starts_with(magic));
        Ok(known.map(|(_, what)| *what))
    }

    /// The bytes, buffered.
    pub(super) fn buffered(self) -> BufReader<Source> {
        BufReader::with_capacity(256 << 10, self)
    }
}

impl Read for Source {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let count = match self.ahead.len() {
            0 => self.bytes.read(buf)?,
            ahead => {
                let count = ahead.min(buf.len());
                buf[..count].copy_from_slice(&self.ahead[..count]);
                self.ahead.drain(..count);
                count
            }
        };
        self.bar.add(count as u64);
        Ok(count)
    }
}
