//! The bytes of a file or of standard input, with a progress bar on a terminal.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};
use lithify_base::Error;

/// A file being read.
pub(super) struct Source {
    bytes: Box<dyn Read>,
    bar: ProgressBar,
}

impl Source {
    /// Opens `path`; `-` is standard input.
    pub(super) fn open(path: &Path) -> Result<Source> {
        if path.as_os_str() == "-" {
            let bar = styled(ProgressBar::new_spinner(), "{spinner} {bytes} ({bytes_per_sec})");
            return Ok(Source { bytes: Box::new(io::stdin()), bar });
        }
        let failed = |op: &str, e: io::Error| Error::io(op, path.display(), e);
        let file = File::open(path).map_err(|e| failed("open", e))?;
        let facts = file.metadata().map_err(|e| failed("look at", e))?;
        if facts.is_dir() {
            return Err(Error::invalid("this is a directory, not a file")
                .in_file(path.display())
                .into());
        }
        let template = "{wide_bar} {bytes} of {total_bytes} ({bytes_per_sec}), {eta} left";
        let bar = styled(ProgressBar::new(facts.len()), template);
        Ok(Source { bytes: Box::new(file), bar })
    }

    /// `bytes` as a source, for tests.
    #[cfg(test)]
    pub(super) fn from_bytes(bytes: &[u8]) -> Source {
        Source { bytes: Box::new(io::Cursor::new(bytes.to_vec())), bar: ProgressBar::hidden() }
    }

    /// The bar that follows this source.
    pub(super) fn bar(&self) -> ProgressBar {
        self.bar.clone()
    }

    /// The bytes, buffered.
    pub(super) fn buffered(self) -> BufReader<Source> {
        BufReader::with_capacity(256 << 10, self)
    }
}

/// On a terminal a bar shows itself; elsewhere it stays silent.
fn styled(bar: ProgressBar, template: &str) -> ProgressBar {
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

impl Read for Source {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let count = self.bytes.read(buf)?;
        self.bar.inc(count as u64);
        Ok(count)
    }
}
