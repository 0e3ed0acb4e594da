//! Reads of files straight into the memory of a GPU, by NVIDIA's cuFile (GPUDirect Storage): what it is asked for, and what
//! its answers mean.
//!
//! Keeps: a read is whole or an error, whatever the library makes of it: short reads go on, and a file that ends too
//! early is told apart from one that can't be read. Nothing is written outside of the memory that a read names. A file is
//! registered once, and let go of when its last read has ended.
//! Leaves to others: the library's own calls (`cufile`), and who reads so. Compactions do not: their inputs come
//! through the host. The kit holds what is read so against the same bytes read by the host.
//!
//! Where a machine has neither the kernel module for it nor a device that may be written to by disks, the library reads through
//! memory of the host (its compatibility mode): correct, and slower.

use std::fmt;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use lithify_base::{Error, ErrorKind, Result};
use lithify_env::sync::Arc;

use crate::device::Memory;

/// What the library answers when a call does not succeed: its own number, and that of the GPU's driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// The library's; 0 is success.
    pub code: i32,
    /// The driver's, where the former says that it is to blame.
    pub driver: i32,
}

/// The GPU's driver is to blame.
const DRIVER_ERROR: i32 = 5011;
/// It is open already, which will do.
const ALREADY_OPEN: i32 = 5026;

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = [
            (5001, "its driver is not initialized"),
            (5004, "its driver is of another version"),
            (5007, "this platform is not supported"),
            (5008, "this file system is not supported"),
            (5009, "this GPU is not supported"),
            (5010, "its kernel module failed"),
            (DRIVER_ERROR, "the GPU's driver failed"),
            (5012, "no memory of a GPU"),
            (5014, "outside of a GPU's memory"),
            (5015, "memory of another context"),
            (5018, "no regular file"),
            (5020, "the file is not open for direct IO"),
            (5022, "invalid value"),
            (5025, "permission denied"),
            (5027, "the file is not registered"),
            (5028, "the file is registered already"),
            (5030, "internal error"),
            (5034, "IO is disabled"),
        ];
        let name = known.iter().find(|(code, _)| *code == self.code).map_or("an error", |of| of.1);
        write!(f, "{name} ({})", self.code)?;
        if self.code == DRIVER_ERROR { write!(f, ", CUDA error {}", self.driver) } else { Ok(()) }
    }
}

/// A file that is registered, by the library's own number for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registered(pub usize);

/// The library, call by call. A member makes the call and decides nothing.
pub trait Inlet: Send + Sync {
    /// Whether there is such a library, with all that is asked of it. Nothing else is called before.
    fn is_there(&self) -> bool;
    /// Makes it ready.
    fn open(&self) -> Result<(), Status>;
    /// Lets go of all that it has.
    fn close(&self);
    /// Registers a file that is open for reads.
    fn register(&self, file: BorrowedFd<'_>) -> Result<Registered, Status>;
    /// Lets go of it.
    fn deregister(&self, file: Registered);
    /// Reads bytes from a place of a file to an address of a GPU: how many; -1 where the system failed, less than that where
    /// the library did, by its number.
    fn read(&self, file: Registered, at: u64, len: usize, to: u64) -> isize;
    /// Why the system failed in the last call of this thread.
    fn system_error(&self) -> std::io::Error {
        std::io::Error::last_os_error()
    }
}

/// Why files are not read so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoGds {
    /// There is no such library.
    NoLibrary,
    /// It is there, and can't be used.
    Unusable(Status),
}

impl fmt::Display for NoGds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoGds::NoLibrary => {
                f.write_str("there is no library for GPUDirect Storage (libcufile)")
            }
            NoGds::Unusable(status) => write!(f, "libcufile can't be used: {status}"),
        }
    }
}

/// The library, ready.
pub struct Gds<I: Inlet>(Arc<Opened<I>>);

struct Opened<I: Inlet>(I);

impl<I: Inlet> Drop for Opened<I> {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl<I: Inlet> Gds<I> {
    /// Makes it ready.
    ///
    /// # Errors
    /// Why not.
    pub fn open(inlet: I) -> Result<Gds<I>, NoGds> {
        if !inlet.is_there() {
            return Err(NoGds::NoLibrary);
        }
        match inlet.open() {
            Ok(()) => {}
            Err(status) if status.code == ALREADY_OPEN => {}
            Err(status) => return Err(NoGds::Unusable(status)),
        }
        Ok(Gds(Arc::new(Opened(inlet))))
    }

    /// A file to read.
    ///
    /// # Errors
    /// Unsupported if the library does not take it: the host reads it as well.
    pub fn file(&self, file: OwnedFd) -> Result<GdsFile<I>> {
        let registered = self.0.0.register(file.as_fd()).map_err(|status| {
            Error::new(
                ErrorKind::Unsupported,
                format!("libcufile does not take the file: {status}"),
            )
        })?;
        Ok(GdsFile { gds: self.0.clone(), file: registered, opened: file })
    }
}

/// A file that is read so.
pub struct GdsFile<I: Inlet> {
    gds: Arc<Opened<I>>,
    file: Registered,
    #[expect(dead_code, reason = "open for as long as it is registered")]
    opened: OwnedFd,
}

impl<I: Inlet> GdsFile<I> {
    /// Reads bytes from a place of the file on to a part of a GPU's memory, all of them. The call returns when they are there.
    ///
    /// # Errors
    /// InvalidArgument for a part outside of the memory, Corruption if the file ends before, Io for what the system
    /// answers, Internal for the rest.
    pub fn read(&self, at: u64, to: &Memory, part: Range<u64>) -> Result<()> {
        let len = part.end.checked_sub(part.start).filter(|_| part.end <= to.bytes);
        let Some(mut left) = len.and_then(|len| usize::try_from(len).ok()) else {
            return Err(Error::invalid("a read reaches out of the memory of the GPU"));
        };
        let (mut at, mut to) = (at, to.address + part.start);
        while left > 0 {
            let n = self.gds.0.read(self.file, at, left, to);
            match usize::try_from(n) {
                Ok(0) => return Err(Error::corruption("the file ends before what is read of it")),
                Ok(n) if n <= left => {
                    left -= n;
                    at += n as u64;
                    to += n as u64;
                }
                Ok(_) => {
                    return Err(Error::new(
                        ErrorKind::Internal,
                        "libcufile read more than it was asked for",
                    ));
                }
                Err(_) => return Err(self.failed(n)),
            }
        }
        Ok(())
    }

    fn failed(&self, n: isize) -> Error {
        if n == -1 {
            let what = format!("libcufile could not read: {}", self.gds.0.system_error());
            return Error::new(ErrorKind::Io, what);
        }
        let code = i32::try_from(n.unsigned_abs()).unwrap_or(i32::MAX);
        let status = Status { code, driver: 0 };
        Error::new(ErrorKind::Internal, format!("libcufile could not read: {status}"))
    }
}

impl<I: Inlet> Drop for GdsFile<I> {
    fn drop(&mut self) {
        self.gds.0.deregister(self.file);
    }
}
