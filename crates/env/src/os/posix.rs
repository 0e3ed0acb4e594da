//! The real file system, on typed POSIX calls.
//!
//! Keeps: descriptors are close-on-exec; a call that a signal interrupted is made again (a
//! transfer by whoever asked for it), and no other ever; after a failed sync a file refuses
//! every further sync, because the kernel reports a write-back failure only once and marks the
//! lost pages clean (Rebello et al., "Can applications recover from fsync failures?", ATC 2020).
//!
//! Direct IO that the file system refuses (`EINVAL` at open, as on tmpfs) falls back to buffered,
//! visible as an alignment of 1.

use std::io;
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{self, AtFlags, CWD, FallocateFlags, FileType, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::lock::FileLock;
use crate::fs::{Advice, DirEnt, File, FileRef, Fs, IoError, IoResult, LockGuard, OpenOpts};
use crate::sync::Arc;
use crate::sync::atomic::{AtomicBool, Ordering};

/// What direct IO is aligned to: the largest logical block in common use, so that it is right for
/// 512-byte devices too.
const DIRECT_ALIGNMENT: usize = 4096;

/// Files are readable by all that the umask allows, as any other program makes them.
pub(super) const FILE_MODE: Mode = Mode::from_raw_mode(0o666);

/// The machine's own file system. It has no state: all values are the same one.
#[derive(Clone, Copy, Debug, Default)]
pub struct PosixFs;

impl PosixFs {
    /// The machine's own file system.
    pub const fn new() -> Self {
        Self
    }

    /// Lets this process have as many files open as its administrator allows: raises the soft limit
    /// of descriptors to the hard one. For programs; a library leaves that to its user, who may
    /// call `select`, which knows no descriptor from 1024 on.
    pub fn raise_open_files_max() {
        let limit = getrlimit(Resource::Nofile);
        // Refused: it stays as it was.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    }
}

/// Turns a raw result into ours, naming the operation.
fn on<T>(op: &'static str, path: &Path, result: rustix::io::Result<T>) -> IoResult<T> {
    result.map_err(|errno| IoError::new(op, path, errno))
}

fn open_file(
    op: &'static str,
    path: &Path,
    opts: OpenOpts,
    extra: OFlags,
) -> rustix::io::Result<PosixFile> {
    let access = if opts.write || op == "create" { OFlags::RDWR } else { OFlags::RDONLY };
    let flags = access | extra | OFlags::CLOEXEC;
    let mut alignment = 1;
    let fd = if opts.direct {
        match retry_on_intr(|| fs::open(path, flags | OFlags::DIRECT, FILE_MODE)) {
            Ok(fd) => {
                alignment = DIRECT_ALIGNMENT;
                fd
            }
            // The kernel may have made the file before refusing the flag: O_EXCL would now fail.
            Err(Errno::INVAL) => {
                retry_on_intr(|| fs::open(path, flags.difference(OFlags::EXCL), FILE_MODE))?
            }
            Err(errno) => return Err(errno),
        }
    } else {
        retry_on_intr(|| fs::open(path, flags, FILE_MODE))?
    };
    Ok(PosixFile { fd, path: path.to_path_buf(), alignment, poisoned: AtomicBool::new(false) })
}

impl Fs for PosixFs {
    fn create(&self, path: &Path, opts: OpenOpts) -> IoResult<FileRef> {
        let file =
            on("create", path, open_file("create", path, opts, OFlags::CREATE | OFlags::EXCL))?;
        Ok(Arc::new(file))
    }

    fn open(&self, path: &Path, opts: OpenOpts) -> IoResult<FileRef> {
        let extra = if opts.create { OFlags::CREATE } else { OFlags::empty() };
        let file = on("open", path, open_file("open", path, opts, extra))?;
        let stat = on("open", path, fs::fstat(&file.fd))?;
        if FileType::from_raw_mode(stat.st_mode).is_dir() {
            return Err(IoError::new("open", path, Errno::ISDIR));
        }
        Ok(Arc::new(file))
    }

    fn rename(&self, from: &Path, to: &Path) -> IoResult<()> {
        on("rename", from, fs::rename(from, to))
    }

    fn unlink(&self, path: &Path) -> IoResult<()> {
        on("unlink", path, fs::unlink(path))
    }

    fn link(&self, from: &Path, to: &Path) -> IoResult<()> {
        on("link", from, fs::link(from, to))
    }

    fn list(&self, dir: &Path) -> IoResult<Vec<DirEnt>> {
        let failed = |error: io::Error| IoError::new("list", dir, error);
        let mut entries = Vec::new();
        for entry in std::fs::read_dir(dir).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let metadata = match entry.metadata() {
                Ok(metadata) => metadata,
                // Removed since the directory was read.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(failed(error)),
            };
            let is_dir = metadata.is_dir();
            entries.push(DirEnt {
                name: entry.file_name().to_string_lossy().into_owned(),
                len: if is_dir { 0 } else { metadata.len() },
                is_dir,
            });
        }
        entries.sort_unstable();
        Ok(entries)
    }

    fn len(&self, path: &Path) -> IoResult<Option<u64>> {
        match fs::statat(CWD, path, AtFlags::empty()) {
            Ok(stat) if FileType::from_raw_mode(stat.st_mode).is_dir() => {
                Err(IoError::new("len", path, Errno::ISDIR))
            }
            Ok(stat) => Ok(Some(stat.st_size.max(0) as u64)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(IoError::new("len", path, errno)),
        }
    }

    fn create_dir_all(&self, dir: &Path) -> IoResult<()> {
        std::fs::create_dir_all(dir).map_err(|error| IoError::new("create_dir_all", dir, error))
    }

    fn remove_dir(&self, dir: &Path) -> IoResult<()> {
        on("remove_dir", dir, fs::rmdir(dir))
    }

    fn sync_dir(&self, dir: &Path) -> IoResult<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let synced = retry_on_intr(|| fs::open(dir, flags, Mode::empty()))
            .and_then(|fd| retry_on_intr(|| fs::fsync(&fd)));
        on("sync_dir", dir, synced)
    }

    fn free_space(&self, dir: &Path) -> IoResult<u64> {
        let stat = on("free_space", dir, fs::statvfs(dir))?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }

    fn open_files_max(&self) -> Option<u64> {
        getrlimit(Resource::Nofile).current
    }

    fn resolve(&self, path: &Path) -> PathBuf {
        // Without a working directory, relative paths lead nowhere, and are told so where they are used.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
        path.components().fold(PathBuf::new(), |mut at, component| {
            if component == Component::ParentDir {
                at.pop();
                return at;
            }
            at.push(component);
            // What is not there is no link.
            std::fs::canonicalize(&at).unwrap_or(at)
        })
    }

    fn lock(&self, path: &Path) -> IoResult<Box<dyn LockGuard>> {
        Ok(Box::new(FileLock::take(path)?))
    }
}

/// An open descriptor.
struct PosixFile {
    fd: OwnedFd,
    path: PathBuf,
    alignment: usize,
    poisoned: AtomicBool,
}

impl PosixFile {
    /// Syncs; after the first failure every later call fails too, with `EIO`.
    fn sync(
        &self,
        op: &'static str,
        call: impl Fn(&OwnedFd) -> rustix::io::Result<()>,
    ) -> IoResult<()> {
        if self.poisoned.load(Ordering::Acquire) {
            return Err(IoError::new(op, &self.path, Errno::IO));
        }
        // An interrupted sync has told nothing yet: what it has to tell, the next one does.
        let result = retry_on_intr(|| call(&self.fd));
        if result.is_err() {
            self.poisoned.store(true, Ordering::Release);
        }
        on(op, &self.path, result)
    }

    fn size(&self) -> rustix::io::Result<u64> {
        Ok(fs::fstat(&self.fd)?.st_size.max(0) as u64)
    }
}

impl File for PosixFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> IoResult<usize> {
        on("read_at", &self.path, rustix::io::pread(&self.fd, buf, offset))
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> IoResult<usize> {
        on("write_at", &self.path, rustix::io::pwrite(&self.fd, bytes, offset))
    }

    fn sync_data(&self) -> IoResult<()> {
        self.sync("sync_data", |fd| fs::fdatasync(fd))
    }

    fn sync_all(&self) -> IoResult<()> {
        self.sync("sync_all", |fd| fs::fsync(fd))
    }

    fn set_len(&self, len: u64) -> IoResult<()> {
        on("set_len", &self.path, retry_on_intr(|| fs::ftruncate(&self.fd, len)))
    }

    fn len(&self) -> IoResult<u64> {
        on("len", &self.path, self.size())
    }

    fn allocate(&self, offset: u64, len: u64) -> IoResult<()> {
        let result =
            match retry_on_intr(|| fs::fallocate(&self.fd, FallocateFlags::empty(), offset, len)) {
                // Nothing can be reserved here, but the length is part of the promise.
                Err(Errno::OPNOTSUPP | Errno::NOSYS) => self.size().and_then(|size| {
                    let wanted = offset.checked_add(len).ok_or(Errno::FBIG)?;
                    if wanted > size { fs::ftruncate(&self.fd, wanted) } else { Ok(()) }
                }),
                other => other,
            };
        on("allocate", &self.path, result)
    }

    fn alignment(&self) -> usize {
        self.alignment
    }

    fn advise(&self, offset: u64, len: u64, advice: Advice) {
        let advice = match advice {
            Advice::Sequential => fs::Advice::Sequential,
            Advice::Random => fs::Advice::Random,
            Advice::DontNeed => fs::Advice::DontNeed,
        };
        // A refused hint costs speed only.
        let _ = fs::fadvise(&self.fd, offset, NonZeroU64::new(len), advice);
    }

    fn path(&self) -> &Path {
        &self.path
    }

    fn identity(&self) -> Option<(u64, u64)> {
        let stat = fs::fstat(&self.fd).ok()?;
        Some((stat.st_dev, stat.st_ino))
    }
}
