//! Files that grow, written through a mapping of the part that is written next.
//!
//! What is copied behind the end of a file, in its last page, is lost. So the file is made longer first, a [`STEP`] at a time, with
//! zeros there. The mapping itself reaches further from the beginning: a thread that maps anew waits for every other thread of
//! the process that is just being given memory.
//!
//! Keeps: only bytes that the file has are written through the mapping. A write that could not be made so is left to a call,
//! and so are all after it.

use std::os::fd::BorrowedFd;

use rustix::fs::{fstat, ftruncate};
use rustix::io::retry_on_intr;
use rustix::mm::ProtFlags;
use rustix::process::{Resource, getrlimit};

use super::{COPIED_MAX, Mapping};

/// Bytes of address space for a file that grows.
const WINDOW: usize = 64 << 20;
/// How much such a file is longer than what was written at most, in bytes.
const STEP: u64 = 1 << 20;
/// Where a window may begin: every size of a page divides it.
const PAGE: u64 = 64 << 10;

/// A file that is written at its end.
pub(in crate::os) struct Growing {
    window: Option<Window>,
    /// Writes are left to the system from now on.
    refused: bool,
}

/// A mapped part of a file, by offsets in the file.
struct Window {
    mapping: Mapping,
    start: u64,
    /// The file has what lies before this.
    grown: u64,
    /// Pages before this are no longer counted as the process's.
    left: u64,
}

impl Growing {
    /// For a file that is written from its beginning.
    pub(in crate::os) fn new(file: BorrowedFd<'_>) -> Growing {
        Growing { window: Window::at(file, 0), refused: false }
    }

    /// Puts `bytes` at `offset` of the file, as a call would. False if that has to be done by a call: they are many, the system
    /// can't map the file, or the device gave no page for them.
    pub(in crate::os) fn write(&mut self, file: BorrowedFd<'_>, bytes: &[u8], offset: u64) -> bool {
        if self.refused || bytes.len() > COPIED_MAX {
            return false;
        }
        let mut written = self.window.as_mut().and_then(|window| window.write(file, bytes, offset));
        if written.is_none() {
            self.window = None;
            self.window = Window::at(file, offset);
            written = self.window.as_mut().and_then(|window| window.write(file, bytes, offset));
        }
        if written != Some(true) {
            // What failed once fails again, for the price of a signal each time.
            *self = Growing { window: None, refused: true };
        }
        !self.refused
    }

    /// The file was resized, or is about to be.
    pub(in crate::os) fn resized(&mut self) {
        if let Some(window) = &mut self.window {
            window.grown = window.start;
        }
    }
}

impl Window {
    /// One that begins with the page of `offset`.
    fn at(file: BorrowedFd<'_>, offset: u64) -> Option<Window> {
        let start = offset - offset % PAGE;
        // A process that may have so much address space and no more needs it.
        let len = if getrlimit(Resource::As).current.is_some() { STEP as usize } else { WINDOW };
        let mapping = Mapping::map(file, start, len, ProtFlags::READ | ProtFlags::WRITE)?;
        Some(Window { mapping, start, grown: start, left: start })
    }

    /// As [`Mapping::write`].
    fn write(&mut self, file: BorrowedFd<'_>, bytes: &[u8], offset: u64) -> Option<bool> {
        let at = offset.checked_sub(self.start)?;
        let end =
            at.checked_add(bytes.len() as u64).filter(|end| *end <= self.mapping.len as u64)?;
        if self.start + end > self.grown && !self.grow(file, self.start + end) {
            return Some(false);
        }
        let written = self.mapping.write(bytes, at as usize);
        if offset >= self.left + STEP {
            // They stay the system's, which writes them to the device in its own time.
            self.mapping.leave((self.left - self.start) as usize, STEP as usize);
            self.left += STEP;
        }
        Some(written)
    }

    /// Makes the file `end` bytes long or longer; false if that is not allowed.
    fn grow(&mut self, file: BorrowedFd<'_>, end: u64) -> bool {
        let most = self.start + self.mapping.len as u64;
        let end = end.next_multiple_of(STEP).min(most);
        let Ok(stat) = fstat(file) else { return false };
        if (stat.st_size.max(0) as u64) < end {
            // Beyond what a file of this process may have, the system would send a signal that ends it.
            let allowed = getrlimit(Resource::Fsize).current.is_none_or(|limit| end <= limit);
            if !allowed || retry_on_intr(|| ftruncate(file, end)).is_err() {
                return false;
            }
        }
        self.grown = end;
        true
    }
}
