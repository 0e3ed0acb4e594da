//! Standard output for programs that report on it.
//!
//! Keeps: an error of it says that it is one, because a full disk behind `> FILE` is not the database's.
//! The error's kind stays, so that a reader that has seen enough is still known from it.

use std::io::{self, StdoutLock, Write};

/// Standard output, locked. Flush it at the end, or an error is lost.
#[derive(Debug)]
pub struct StandardOutput(StdoutLock<'static>);

impl StandardOutput {
    /// Locks it.
    #[must_use]
    pub fn lock() -> StandardOutput {
        StandardOutput(io::stdout().lock())
    }

    /// Writes all of `text` and flushes it.
    ///
    /// # Errors
    /// Those of standard output.
    pub fn tell(text: &str) -> io::Result<()> {
        let mut out = StandardOutput::lock();
        out.write_all(text.as_bytes())?;
        out.flush()
    }
}

impl Write for StandardOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map_err(named)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().map_err(named)
    }
}

/// The error with the name of what it is of.
fn named(error: io::Error) -> io::Error {
    let what = format!("standard output can't be written: {error}");
    io::Error::new(error.kind(), format!("{what}; make room where it goes, or send it elsewhere"))
}

/// True if `error` says that the reader of an output has gone: it has seen enough.
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<io::Error>();
    io.is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_keeps_its_kind_and_says_what_it_is_of() {
        let full = named(io::Error::from(io::ErrorKind::StorageFull));
        assert_eq!(full.kind(), io::ErrorKind::StorageFull);
        assert!(full.to_string().starts_with("standard output can't be written: "), "{full}");
        assert!(is_closed_pipe(&named(io::Error::from(io::ErrorKind::BrokenPipe)).into()));
    }
}
