//! The bytes of one table file, read at any offset and length whatever the file's alignment.
//!
//! Keeps: a read delivers all bytes asked for or an error that names file and offset.
//! Leaves to others: checksums.

use std::sync::Arc;

use lithify_base::{Error, Result, memory};
use lithify_env::{FileRef, IoBuf, SharedBytes, SlotPool, read_exact_at};
use lithify_files::dir::{Allowance, OrTyped};

use crate::cache::check_may_read;

/// A table file and its name in errors.
pub(crate) struct Source {
    file: FileRef,
    name: String,
    size: u64,
    /// 1 for buffered files, a power of two for direct ones.
    align: usize,
    /// Where what is read has its memory, if not outside of any pool.
    memory: Option<Arc<SlotPool>>,
}

impl Source {
    /// Wraps an open file; asks for its length.
    pub(crate) fn new(
        file: FileRef,
        name: String,
        memory: Option<Arc<SlotPool>>,
    ) -> Result<Source> {
        let size = file.len().or_typed()?;
        let align = file.alignment();
        Ok(Source { file, name, size, align, memory })
    }
    pub(crate) fn size(&self) -> u64 {
        self.size
    }
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
    pub(crate) fn file(&self) -> &FileRef {
        &self.file
    }

    /// Adds this file's name to an error.
    pub(crate) fn blame(&self, e: Error) -> Error {
        e.in_file(&self.name)
    }

    /// `len` bytes from `offset`.
    pub(crate) fn read(&self, offset: u64, len: usize) -> Result<SharedBytes> {
        self.read_behind(0, offset, len)
    }

    /// The same behind `front` bytes of any content.
    pub(crate) fn read_behind(&self, front: usize, offset: u64, len: usize) -> Result<SharedBytes> {
        check_may_read().map_err(|e| self.blame(e.at(offset)))?;
        self.check_read(Allowance::DATA, offset, len)?;
        let mut bytes = self.memory(front + len).map_err(|e| self.blame(e.at(offset)))?;
        let buf = bytes.get_mut().expect("not shared yet");
        self.read_into(offset, &mut buf[front..])?;
        Ok(bytes)
    }

    /// Memory for `len` bytes of the file, with any content.
    ///
    /// # Errors
    /// `LimitExceeded` if the system has none.
    pub(crate) fn memory(&self, len: usize) -> Result<SharedBytes> {
        let bytes = match &self.memory {
            Some(pool) => pool.get(len),
            None => SharedBytes::zeroed(len),
        };
        bytes.map_err(|none| memory::refused("a block", len, &none))
    }

    /// Whether so much can be read at once, however much of it is holes.
    pub(crate) fn check_read(&self, allowed: Allowance, offset: u64, len: usize) -> Result<()> {
        allowed.check(&*self.file, offset, len as u64).map_err(|e| self.blame(e))
    }

    /// Fills `buf` from `offset`.
    pub(crate) fn read_into(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        if offset.checked_add(buf.len() as u64).is_none_or(|end| end > self.size) {
            let what = format!("{} bytes wanted beyond the end of the file", buf.len());
            return Err(self.blame(Error::corruption(what).at(offset)));
        }
        check_may_read().map_err(|e| self.blame(e.at(offset)))?;
        let read = match self.align {
            1 => read_exact_at(&*self.file, buf, offset).or_typed(),
            align => self.read_aligned(offset, buf, align as u64),
        };
        read.map_err(|e| self.blame(e.at(offset)))
    }

    /// Direct files deliver whole blocks only: reads those around the range and copies.
    fn read_aligned(&self, offset: u64, buf: &mut [u8], align: u64) -> Result<()> {
        let start = offset - offset % align;
        let end = (offset + buf.len() as u64).next_multiple_of(align);
        let skip = (offset - start) as usize;
        let mut pages = IoBuf::try_with_capacity((end - start) as usize).map_err(|_| {
            Error::new(lithify_base::ErrorKind::LimitExceeded, "no memory for a read buffer")
        })?;
        pages.set_len((end - start) as usize);
        let count =
            lithify_env::read_full_at(&*self.file, pages.as_mut_slice(), start).or_typed()?;
        match pages.as_slice().get(skip..skip + buf.len()).filter(|_| count >= skip + buf.len()) {
            Some(bytes) => buf.copy_from_slice(bytes),
            None => return Err(Error::corruption("the file ends before its content does")),
        }
        Ok(())
    }
}
