//! Whole transfers out of short ones.
//!
//! Keeps: a transfer ends with every byte moved, at the end of the file (reads), or with an
//! error; it never loops without progress. Interrupted calls are repeated, other errors are not.
//!
//! On a direct file a short count may end inside a block, from where no further direct call can
//! start. The transfer then goes back to the block's start and moves the block again:
//!
//! ```text
//! asked 12288 at 0, got 5000   -> resume at 4096 (align 4096), 904 bytes are moved twice
//! asked  8192 at 4096, got 904 -> no block completed: at the end of the file, done; else an error
//! ```

use std::io;

use super::{File, IoError, IoResult};

/// Interrupted calls in a row before a transfer gives up: signals come in bursts, not in
/// thousands, so beyond this the file is broken rather than busy.
const INTERRUPTS_MAX: u32 = 1000;

/// The state of one transfer; each `read` or `write` makes one system call.
#[derive(Debug, Default)]
pub(crate) struct Transfer {
    done: usize,
    interrupts: u32,
}

impl Transfer {
    /// Bytes moved so far.
    pub(crate) fn done(&self) -> usize {
        self.done
    }

    /// One call; true when `buf` is full or the file has ended.
    pub(crate) fn read(&mut self, file: &dyn File, buf: &mut [u8], at: u64) -> IoResult<bool> {
        let total = buf.len();
        if self.done == total {
            return Ok(true);
        }
        let result = file.read_at(&mut buf[self.done..], at + self.done as u64);
        let Some(count) = self.uninterrupted(result)? else { return Ok(false) };
        assert!(count <= total - self.done, "a file returned more bytes than the buffer holds");
        let reached = self.done + count;
        if count == 0 || reached == total {
            self.done = reached;
            return Ok(true);
        }
        let resume = reached - reached % file.alignment();
        if resume != reached && at + reached as u64 >= file.len()? {
            self.done = reached;
            return Ok(true);
        }
        self.advance(file, "read_at", resume)?;
        Ok(false)
    }

    /// One call; true when all of `bytes` are written.
    pub(crate) fn write(&mut self, file: &dyn File, bytes: &[u8], at: u64) -> IoResult<bool> {
        let total = bytes.len();
        if self.done == total {
            return Ok(true);
        }
        let result = file.write_at(&bytes[self.done..], at + self.done as u64);
        let Some(count) = self.uninterrupted(result)? else { return Ok(false) };
        assert!(count <= total - self.done, "a file took more bytes than it was given");
        let reached = self.done + count;
        if reached == total {
            self.done = reached;
            return Ok(true);
        }
        self.advance(file, "write_at", reached - reached % file.alignment())?;
        Ok(false)
    }

    /// Moves on to `resume`, which must be ahead of where the last call started.
    fn advance(&mut self, file: &dyn File, op: &'static str, resume: usize) -> IoResult<()> {
        if resume <= self.done {
            let kind =
                if op == "write_at" { io::ErrorKind::WriteZero } else { io::ErrorKind::Other };
            let source = io::Error::new(kind, "the call made no progress");
            return Err(IoError::new(op, file.path(), source));
        }
        self.done = resume;
        Ok(())
    }

    /// The count of a call, `None` if it was interrupted and may be repeated.
    fn uninterrupted(&mut self, result: IoResult<usize>) -> IoResult<Option<usize>> {
        match result {
            Ok(count) => {
                self.interrupts = 0;
                Ok(Some(count))
            }
            Err(error)
                if error.kind() == io::ErrorKind::Interrupted
                    && self.interrupts < INTERRUPTS_MAX =>
            {
                self.interrupts += 1;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

/// Reads at `offset` until `buf` is full or the file ends; returns the count.
///
/// On a direct file the address and length of `buf` and the offset must be aligned.
pub fn read_full_at(file: &dyn File, buf: &mut [u8], offset: u64) -> IoResult<usize> {
    let mut transfer = Transfer::default();
    while !transfer.read(file, buf, offset)? {}
    Ok(transfer.done())
}

/// Fills `buf` from `offset`; `UnexpectedEof` if the file ends before.
pub fn read_exact_at(file: &dyn File, buf: &mut [u8], offset: u64) -> IoResult<()> {
    let count = read_full_at(file, buf, offset)?;
    if count < buf.len() {
        let source = io::Error::from(io::ErrorKind::UnexpectedEof);
        return Err(IoError::new("read_at", file.path(), source));
    }
    Ok(())
}

/// Writes all of `bytes` at `offset`.
///
/// After an error an unknown part of the range is written: the caller cuts the file or leaves it.
pub fn write_all_at(file: &dyn File, bytes: &[u8], offset: u64) -> IoResult<()> {
    let mut transfer = Transfer::default();
    while !transfer.write(file, bytes, offset)? {}
    Ok(())
}

#[cfg(test)]
mod tests;
