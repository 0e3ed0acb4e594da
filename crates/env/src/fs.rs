//! The storage seam: a file system and its open files.
//!
//! Keeps: IO is positional, so a [`File`] has no cursor and may be used from several threads;
//! names given to a call are durable only after [`Fs::sync_dir`] of their directory returned, and
//! bytes only after [`File::sync_data`] did; listings are sorted.
//!
//! A single `read_at` or `write_at` may transfer fewer bytes than asked for, or be interrupted.
//! [`read_exact_at`], [`read_full_at`] and [`write_all_at`] turn that into whole transfers.
//!
//! Leaves to others: what to do after a failed sync. The bytes written since the last good sync
//! are then in an unknown state and a later sync that succeeds proves nothing about them.

use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use rustix::io::Errno;

use crate::sync::Arc;

mod transfer;

pub(crate) use transfer::Transfer;
pub use transfer::{read_exact_at, read_full_at, write_all_at};

/// A shared file system.
pub type FsRef = Arc<dyn Fs>;
/// A shared open file; the file is closed when the last reference goes.
pub type FileRef = Arc<dyn File>;
/// What a storage call returns.
pub type IoResult<T> = Result<T, IoError>;

/// A failed storage call.
#[derive(Debug)]
pub struct IoError {
    /// The operation, named as the method of [`Fs`] or [`File`].
    pub op: &'static str,
    /// What it was applied to; the source path where there are two.
    pub path: PathBuf,
    /// What the system said.
    pub source: io::Error,
}

impl IoError {
    /// An error of `op` on `path`.
    pub fn new(op: &'static str, path: &Path, source: impl Into<io::Error>) -> Self {
        Self { op, path: path.to_path_buf(), source: source.into() }
    }

    /// The kind of [`IoError::source`].
    pub fn kind(&self) -> io::ErrorKind {
        self.source.kind()
    }

    /// Whether space or quota ran out: the one failure that time and deleted files can heal.
    pub fn is_no_space(&self) -> bool {
        matches!(self.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
    }

    /// Whether the process, or the system, has no descriptor left.
    pub fn is_out_of_descriptors(&self) -> bool {
        let errno = self.source.raw_os_error();
        [Errno::MFILE, Errno::NFILE].iter().any(|full| errno == Some(full.raw_os_error()))
    }
}

impl fmt::Display for IoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A path is any bytes; this way what is hidden in it acts on no terminal.
        write!(f, "{} {:?}: {}", self.op, self.path, self.source)
    }
}

impl std::error::Error for IoError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// Whether a file is mapped into memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mapped {
    /// Each read and write is a system call.
    #[default]
    No,
    /// If all files that this process maps to read, with this one, are then at most half of the memory that it may
    /// have: their pages can stay in the page cache. Decided when the file is opened, and no file is mapped so where
    /// the address space is limited. For a file that is written it is the same as [`Mapped::Yes`].
    IfItFits,
    /// If the system and the file system allow it.
    Yes,
}

/// How to open a file. Starts at [`OpenOpts::read`] or [`OpenOpts::write`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenOpts {
    /// May write as well as read.
    pub write: bool,
    /// Bypass the page cache where the file system can; see [`File::alignment`].
    pub direct: bool,
    /// Whether reads copy out of a mapping of the file, writes into one; see [`OpenOpts::mapped`].
    pub mapped: Mapped,
    /// `open` makes an empty file if there is none.
    pub create: bool,
}

impl OpenOpts {
    /// Read only, buffered.
    pub const fn read() -> Self {
        Self { write: false, direct: false, mapped: Mapped::No, create: false }
    }

    /// Read and write, buffered.
    pub const fn write() -> Self {
        Self { write: true, direct: false, mapped: Mapped::No, create: false }
    }

    /// Bypass the page cache if possible.
    #[must_use]
    pub const fn direct(mut self) -> Self {
        self.direct = true;
        self
    }

    /// The file is mapped into memory, in place of a system call for each read or write. A file system that can't do it ignores
    /// the wish, and it has no effect on files that bypass the page cache.
    ///
    /// Of a file that is opened to be read, reads copy out of the mapping: for files that do not change. Of one that is opened to
    /// be written, writes copy into it: for files that grow at their end, by one writer. Such a file is up to a MiB longer than what was written,
    /// with zeros there, until [`File::set_len`] cuts it, which its writer does at the end.
    ///
    /// A failed device and a file that was cut lead to the error or the short read that they lead to without a mapping. One thing
    /// differs: if the file is cut while it is open, the rest of the page in which it ends now reads as zeros.
    #[must_use]
    pub const fn mapped(mut self) -> Self {
        self.mapped = Mapped::Yes;
        self
    }

    /// Make the file if it is absent; implies writing.
    #[must_use]
    pub const fn or_create(mut self) -> Self {
        self.write = true;
        self.create = true;
        self
    }
}

/// One entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DirEnt {
    /// Name inside the directory. Bytes that are not UTF-8 are shown as U+FFFD, which no name
    /// made by this library contains: such an entry is foreign.
    pub name: String,
    /// Length in bytes of a regular file; 0 for everything else.
    pub len: u64,
    /// What it is. A symbolic link is [`EntryKind::Other`], whatever it leads to.
    pub kind: EntryKind,
}

/// What a name in a directory stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EntryKind {
    /// A regular file: the only kind that is opened.
    File,
    /// A directory.
    Dir,
    /// A symbolic link, FIFO, socket or device.
    Other,
}

/// How a range of a file will be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Front to back: read ahead.
    Sequential,
    /// In no order: do not read ahead.
    Random,
    /// Not again soon: its cached pages may go.
    DontNeed,
}

/// Proof that this process owns a lock file; dropping it gives the lock back.
pub trait LockGuard: Send + Sync {
    /// Whether the lock still protects the caller: false in a forked child, which shares the
    /// parent's guard without owning it, and false once the lock file was unlinked or replaced.
    fn is_owner(&self) -> bool;

    /// The lock file.
    fn path(&self) -> &Path;
}

/// A file system. Every method may be slow, and every method may fail.
///
/// Only regular files are opened, and no open waits: a FIFO or a device in the place of a file is an
/// error (`InvalidInput`), because reading it may block for ever or move a machine.
pub trait Fs: Send + Sync + 'static {
    /// This file system with the directory `dir` held open, as one sees that reads and changes a
    /// directory which a stranger may have prepared, or may be changing.
    ///
    /// Names in `dir`, at any depth, are reached through that very directory, whatever becomes of its
    /// path, and through no symbolic link: one is refused (`InvalidInput`), so that nothing outside is
    /// read, made, changed or deleted. The path `dir` itself is followed, since the caller chose it. Files
    /// and directories that are made in it never get a permission bit that is in `denied`, or that a
    /// directory held around `dir` denied; with 0 and none around it the umask alone decides.
    ///
    /// Directories that this file system held before stay held, but for those that `dir` lies in: what
    /// the user names there is followed again. Paths in none of them go as ever.
    ///
    /// # Errors
    /// `NotFound`, `NotADirectory`, and what opening a directory gives.
    fn beneath(&self, dir: &Path, denied: u32) -> IoResult<FsRef>;

    /// The permission bits of a file or directory, 0 to 0o777, its group taken to be that of the files
    /// that this process makes: another group's bits count as far as all others have them, too.
    /// Everything may be done with all where there are none.
    fn permissions(&self, path: &Path) -> IoResult<u32> {
        let _ = path;
        Ok(0o777)
    }

    /// Makes a new file for reading and writing; `AlreadyExists` if the name is taken.
    fn create(&self, path: &Path, opts: OpenOpts) -> IoResult<FileRef>;

    /// Opens a file; its content stays. `NotFound` if it is absent and `opts.create` is not set,
    /// `IsADirectory` for a directory.
    fn open(&self, path: &Path, opts: OpenOpts) -> IoResult<FileRef>;

    /// Renames a file or directory, atomically replacing a file at `to`.
    fn rename(&self, from: &Path, to: &Path) -> IoResult<()>;

    /// Removes a name of a file; open files go on.
    fn unlink(&self, path: &Path) -> IoResult<()>;

    /// Gives the file `from` a second name `to`; `AlreadyExists` if that is taken.
    fn link(&self, from: &Path, to: &Path) -> IoResult<()>;

    /// The entries of a directory, sorted by name.
    fn list(&self, dir: &Path) -> IoResult<Vec<DirEnt>>;

    /// Length of a file in bytes; `None` if nothing has this name, `IsADirectory` for a directory.
    fn len(&self, path: &Path) -> IoResult<Option<u64>>;

    /// Makes a directory and its missing parents; fine if it exists.
    fn create_dir_all(&self, dir: &Path) -> IoResult<()>;

    /// Removes an empty directory.
    fn remove_dir(&self, dir: &Path) -> IoResult<()>;

    /// Makes the names made, renamed or removed in `dir` so far durable.
    fn sync_dir(&self, dir: &Path) -> IoResult<()>;

    /// Bytes an ordinary user may still write to the file system of `dir`.
    fn free_space(&self, dir: &Path) -> IoResult<u64>;

    /// How many files the process may have open here, as things are; `None` if nothing limits it.
    fn open_files_max(&self) -> Option<u64> {
        None
    }

    /// Where `path` leads, so that two paths can be compared: absolute and without symbolic links as
    /// far as the directories exist, `.` and `..` resolved. Without links, the path by its letters.
    fn resolve(&self, path: &Path) -> PathBuf {
        path.components().fold(PathBuf::new(), |mut at, component| {
            match component {
                Component::CurDir => {}
                Component::ParentDir => drop(at.pop()),
                other => at.push(other),
            }
            at
        })
    }

    /// Takes the exclusive lock of the file `path`, which is made if absent; `WouldBlock` if it
    /// is held, in this process or another. Never waits.
    fn lock(&self, path: &Path) -> IoResult<Box<dyn LockGuard>>;
}

/// An open file.
#[expect(clippy::len_without_is_empty, reason = "emptiness of a file is no question of its own")]
pub trait File: Send + Sync {
    /// Reads at `offset` into the front of `buf`; returns the count, 0 only at the end of the
    /// file or for an empty `buf`.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> IoResult<usize>;

    /// Writes the front of `bytes` at `offset`, growing the file (with zeros before `offset`) as
    /// needed; returns the count.
    fn write_at(&self, bytes: &[u8], offset: u64) -> IoResult<usize>;

    /// Makes the content and the length durable. After a failure the file is *poisoned*: its
    /// unsynced bytes are lost or not, and asking again tells nothing.
    fn sync_data(&self) -> IoResult<()>;

    /// Like [`File::sync_data`], with times and permissions.
    fn sync_all(&self) -> IoResult<()>;

    /// Cuts the file to `len` bytes or extends it with zeros.
    fn set_len(&self, len: u64) -> IoResult<()>;

    /// Length in bytes.
    fn len(&self) -> IoResult<u64>;

    /// Grows the file to at least `offset + len` bytes, zeros included, with the space reserved
    /// where the file system can do that.
    fn allocate(&self, offset: u64, len: u64) -> IoResult<()>;

    /// What offsets, lengths and buffer addresses must be multiples of: 1 when buffered, also
    /// when direct IO was asked for and refused; a power of two when direct.
    ///
    /// A writer of a direct file pads its last block with zeros ([`crate::IoBuf::pad_to`]) and
    /// then cuts the file back to its true length with [`File::set_len`].
    fn alignment(&self) -> usize;

    /// Hints how `len` bytes from `offset` will be used (`len` 0: to the end). Never fails.
    fn advise(&self, offset: u64, len: u64, advice: Advice);

    /// The path the file was opened by.
    fn path(&self) -> &Path;

    /// How many names (hard links) the file has: what is written through one shows under all.
    fn links(&self) -> IoResult<u64> {
        Ok(1)
    }

    /// What tells the file from every other one as long as it is open, whatever its names: device and
    /// number. `None` where there is no such thing.
    fn identity(&self) -> Option<(u64, u64)> {
        None
    }

    /// The first stretch at or behind `from` that may hold anything but zeros; `None` if nothing but
    /// zeros follows. What lies between stretches takes no space and reads as zeros. Where nothing is
    /// known of that, all of the file is one stretch.
    fn next_data(&self, from: u64) -> IoResult<Option<Range<u64>>> {
        let len = self.len()?;
        Ok((from < len).then_some(from..len))
    }
}
