//! The real file system, on typed POSIX calls.
//!
//! Keeps: descriptors are close-on-exec; a call that waits and that a signal interrupted is made again (a
//! transfer by its caller), and so is an open that the file system refuses direct, or without access times, as a plain one; only regular files are opened, without waiting; after a failed sync a file refuses
//! every further sync, because the kernel reports a write-back failure only once and marks the
//! lost pages clean (Rebello et al., "Can applications recover from fsync failures?", ATC 2020).
//!
//! Direct IO that the file system refuses (`EINVAL` at open, as on tmpfs) falls back to buffered,
//! visible as an alignment of 1. Files that were asked to be mapped are where that can be done safely (`mapped`).

use std::num::NonZeroU64;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{self, AtFlags, FallocateFlags, Mode, OFlags, SeekFrom};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::folder::{Folder, Place, kind_of, not_opened};
use super::lock::FileLock;
use super::mapped::{Growing, Mapping};
use super::memory::mapped_most;
use crate::fs::{
    Advice, DirEnt, EntryKind, File, FileRef, Fs, FsRef, IoError, IoResult, LockGuard, Mapped,
    OpenOpts,
};
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Arc, Mutex};

/// What direct IO is aligned to: the largest logical block in common use, so that it is right for
/// 512-byte devices too.
const DIRECT_ALIGNMENT: usize = 4096;

/// Files are readable by all that the umask allows, as any other program makes them.
const FILE_MODE: u32 = 0o666;
/// The same for directories.
const DIR_MODE: u32 = 0o777;

/// The machine's own file system, with the directories that are held open; see [`Fs::beneath`].
#[derive(Clone, Debug, Default)]
pub struct PosixFs {
    /// The one that was held last counts, of two with one path.
    held: Vec<Arc<Folder>>,
}

impl PosixFs {
    /// The machine's own file system.
    pub const fn new() -> Self {
        Self { held: Vec::new() }
    }

    /// Lets this process have as many files open as its administrator allows: raises the soft limit
    /// of descriptors to the hard one. For programs; a library leaves that to its user, who may
    /// call `select`, which knows no descriptor from 1024 on.
    pub fn raise_open_files_max() {
        let limit = getrlimit(Resource::Nofile);
        // Refused: it stays as it was.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    }

    /// How the system is asked for `path`: by the innermost directory held that it lies in, or as it is.
    fn place<'a>(&'a self, path: &'a Path) -> rustix::io::Result<Place<'a>> {
        let inside = self.held.iter().filter_map(|folder| folder.names_in(path));
        // Of equals the last.
        match inside.max_by_key(|(folder, _)| folder.depth()) {
            Some((folder, names)) => folder.place(names),
            None => Ok(Place::anywhere(path)),
        }
    }

    fn at<T>(
        &self,
        op: &'static str,
        path: &Path,
        call: impl FnOnce(&Place<'_>) -> rustix::io::Result<T>,
    ) -> IoResult<T> {
        on(op, path, self.place(path).and_then(|place| call(&place)))
    }

    /// Makes a directory; fine if it is there.
    fn make_dir(&self, dir: &Path) -> rustix::io::Result<()> {
        let at = self.place(dir)?;
        match fs::mkdirat(at.dir(), at.name(), at.mode(DIR_MODE)) {
            // One that is there may be ours to use and not to make: the system says so in several ways.
            Err(_) if at.stat().is_ok_and(|stat| kind_of(&stat) == EntryKind::Dir) => Ok(()),
            made => made,
        }
    }

    /// What is at `path`; `None` if nothing is.
    pub(super) fn stat(&self, path: &Path) -> rustix::io::Result<Option<fs::Stat>> {
        match retry_on_intr(|| self.place(path)?.stat()) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// Opens a regular file, and waits for nothing. Looked at before, because opening a device may do
    /// something already, and after, because it may have been put there in between.
    pub(super) fn open_regular(
        &self,
        op: &'static str,
        path: &Path,
        flags: OFlags,
    ) -> IoResult<OwnedFd> {
        let place = on(op, path, self.place(path))?;
        let refuse = |stat: &fs::Stat| not_opened(stat).map(|e| IoError::new(op, path, e));
        if !flags.contains(OFlags::EXCL)
            && let Some(e) = place.stat().ok().as_ref().and_then(refuse)
        {
            return Err(e);
        }
        let flags = flags | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let fd = match place.open(flags | unnoted(flags), FILE_MODE) {
            // Another user's file.
            Err(Errno::PERM) => place.open(flags, FILE_MODE),
            opened => opened,
        };
        let fd = on(op, path, fd)?;
        let stat = on(op, path, fs::fstat(&fd))?;
        refuse(&stat).map_or(Ok(fd), Err)
    }

    fn open_file(
        &self,
        op: &'static str,
        path: &Path,
        opts: OpenOpts,
        extra: OFlags,
    ) -> IoResult<FileRef> {
        let access = if opts.write { OFlags::RDWR } else { OFlags::RDONLY };
        let flags = access | extra;
        let buffered = |flags| Ok((self.open_regular(op, path, flags)?, 1));
        let (fd, alignment) = if opts.direct {
            match self.open_regular(op, path, flags | OFlags::DIRECT) {
                Ok(fd) => (fd, DIRECT_ALIGNMENT),
                Err(e) if e.source.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => {
                    if flags.contains(OFlags::EXCL) {
                        // The kernel may have made the file before it refused the flag.
                        let _ = self.unlink(path);
                    }
                    buffered(flags)?
                }
                Err(e) => return Err(e),
            }
        } else {
            buffered(flags)?
        };
        let poisoned = AtomicBool::new(false);
        let mut file =
            PosixFile { fd, path: path.to_path_buf(), alignment, poisoned, mapping: View::None };
        file.mapping = match opts {
            OpenOpts { mapped: Mapped::No, .. } | OpenOpts { direct: true, .. } => View::None,
            OpenOpts { write: true, .. } => {
                View::Growing(Mutex::new(Growing::new(file.fd.as_fd())))
            }
            _ => {
                let most = if opts.mapped == Mapped::IfItFits { mapped_most() } else { u64::MAX };
                let whole = Mapping::of(file.fd.as_fd(), on(op, path, file.size())?, most);
                whole.map_or(View::None, View::Whole)
            }
        };
        Ok(Arc::new(file))
    }
}

/// What keeps reads through a descriptor from noting in the file when it was read last: the system looks at the clock
/// and the mount for that each time, and the files of a database have no use for it.
fn unnoted(flags: OFlags) -> OFlags {
    #[cfg(target_os = "linux")]
    if !flags.intersects(OFlags::WRONLY | OFlags::RDWR) {
        return OFlags::NOATIME;
    }
    let _ = flags;
    OFlags::empty()
}

/// Turns a raw result into ours, naming the operation.
fn on<T>(op: &'static str, path: &Path, result: rustix::io::Result<T>) -> IoResult<T> {
    result.map_err(|errno| IoError::new(op, path, errno))
}

impl Fs for PosixFs {
    fn beneath(&self, dir: &Path, denied: u32) -> IoResult<FsRef> {
        let (fd, above) = self.at("beneath", dir, |at| Ok((at.open_dir()?, at.denied())))?;
        let denied = denied | above;
        // Those around it are let go of: a path that the user gives there is followed again.
        let apart = self.held.iter().filter(|folder| !folder.holds(dir));
        let mut held: Vec<_> = apart.cloned().collect();
        held.push(Arc::new(Folder::new(fd, dir, denied)));
        Ok(Arc::new(Self { held }))
    }

    fn permissions(&self, path: &Path) -> IoResult<u32> {
        let stat = self.at("permissions", path, |at| at.stat())?;
        let bits = Mode::from_raw_mode(stat.st_mode).bits() & 0o777;
        if stat.st_gid == rustix::process::getegid().as_raw() {
            return Ok(bits);
        }
        // What is made here is of another group, to which this file gives what it gives to all.
        Ok(bits & !(0o070 & !(bits << 3)))
    }

    fn create(&self, path: &Path, opts: OpenOpts) -> IoResult<FileRef> {
        let new = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        self.open_file("create", path, OpenOpts { write: true, ..opts }, new)
    }

    fn open(&self, path: &Path, opts: OpenOpts) -> IoResult<FileRef> {
        let extra = if opts.create { OFlags::CREATE } else { OFlags::empty() };
        self.open_file("open", path, opts, extra)
    }

    fn rename(&self, from: &Path, to: &Path) -> IoResult<()> {
        self.at("rename", from, |from| {
            let to = self.place(to)?;
            fs::renameat(from.dir(), from.name(), to.dir(), to.name())
        })
    }

    fn unlink(&self, path: &Path) -> IoResult<()> {
        self.at("unlink", path, |at| fs::unlinkat(at.dir(), at.name(), AtFlags::empty()))
    }

    fn link(&self, from: &Path, to: &Path) -> IoResult<()> {
        self.at("link", from, |from| {
            // What is wrong with the source comes first, as when the system looks at both.
            from.stat()?;
            let to = self.place(to)?;
            fs::linkat(from.dir(), from.name(), to.dir(), to.name(), AtFlags::empty())
        })
    }

    fn list(&self, dir: &Path) -> IoResult<Vec<DirEnt>> {
        self.at("list", dir, |at| {
            let fd = at.open_dir()?;
            let mut entries = Vec::new();
            for entry in fs::Dir::read_from(&fd)? {
                let entry = entry?;
                let name = entry.file_name();
                if matches!(name.to_bytes(), b"." | b"..") {
                    continue;
                }
                let stat = match fs::statat(&fd, name, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(stat) => stat,
                    // Removed since the directory was read.
                    Err(Errno::NOENT) => continue,
                    Err(errno) => return Err(errno),
                };
                let kind = kind_of(&stat);
                let len = if kind == EntryKind::File { stat.st_size.max(0) as u64 } else { 0 };
                entries.push(DirEnt { name: name.to_string_lossy().into_owned(), len, kind });
            }
            entries.sort_unstable();
            Ok(entries)
        })
    }

    fn len(&self, path: &Path) -> IoResult<Option<u64>> {
        let Some(stat) = on("len", path, self.stat(path))? else { return Ok(None) };
        match not_opened(&stat) {
            None => Ok(Some(stat.st_size.max(0) as u64)),
            Some(e) => Err(IoError::new("len", path, e)),
        }
    }

    fn create_dir_all(&self, dir: &Path) -> IoResult<()> {
        let mut made = self.make_dir(dir);
        let above = dir.parent().filter(|above| !above.as_os_str().is_empty());
        if let (Err(Errno::NOENT), Some(above)) = (made, above) {
            self.create_dir_all(above)?;
            made = self.make_dir(dir);
        }
        on("create_dir_all", dir, made)
    }

    fn remove_dir(&self, dir: &Path) -> IoResult<()> {
        self.at("remove_dir", dir, |at| fs::unlinkat(at.dir(), at.name(), AtFlags::REMOVEDIR))
    }

    fn sync_dir(&self, dir: &Path) -> IoResult<()> {
        self.at("sync_dir", dir, |at| {
            let fd = at.open_dir()?;
            retry_on_intr(|| fs::fsync(&fd))
        })
    }

    fn free_space(&self, dir: &Path) -> IoResult<u64> {
        let stat = self.at("free_space", dir, |at| at.space())?;
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
        Ok(Box::new(FileLock::take(self, path)?))
    }
}

/// An open descriptor.
struct PosixFile {
    fd: OwnedFd,
    path: PathBuf,
    alignment: usize,
    poisoned: AtomicBool,
    mapping: View,
}

/// What of a file is mapped.
enum View {
    None,
    /// Reads are copied out of it as long as they can be.
    Whole(Mapping),
    /// Writes are copied into the part of it that is written next, as long as they can be.
    Growing(Mutex<Growing>),
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
        if let View::Whole(mapping) = &self.mapping
            && mapping.read(buf, offset)
        {
            return Ok(buf.len());
        }
        on("read_at", &self.path, rustix::io::pread(&self.fd, buf, offset))
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> IoResult<usize> {
        if let View::Growing(growing) = &self.mapping
            && growing.lock().write(self.fd.as_fd(), bytes, offset)
        {
            return Ok(bytes.len());
        }
        on("write_at", &self.path, rustix::io::pwrite(&self.fd, bytes, offset))
    }

    fn sync_data(&self) -> IoResult<()> {
        self.sync("sync_data", |fd| fs::fdatasync(fd))
    }

    fn sync_all(&self) -> IoResult<()> {
        self.sync("sync_all", |fd| fs::fsync(fd))
    }

    fn set_len(&self, len: u64) -> IoResult<()> {
        if let View::Growing(growing) = &self.mapping {
            growing.lock().resized();
        }
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

    #[allow(clippy::unnecessary_cast, reason = "the field's width differs between systems")]
    fn links(&self) -> IoResult<u64> {
        let stat = on("links", &self.path, fs::fstat(&self.fd))?;
        Ok(stat.st_nlink as u64)
    }

    fn identity(&self) -> Option<(u64, u64)> {
        let stat = fs::fstat(&self.fd).ok()?;
        Some((stat.st_dev, stat.st_ino))
    }

    fn next_data(&self, from: u64) -> IoResult<Option<Range<u64>>> {
        let start = match fs::seek(&self.fd, SeekFrom::Data(from)) {
            Ok(start) => start,
            Err(Errno::NXIO) => return Ok(None),
            // A file system that keeps no account of holes: all is data.
            Err(_) => {
                let len = self.len()?;
                return Ok((from < len).then_some(from..len));
            }
        };
        let end = match fs::seek(&self.fd, SeekFrom::Hole(start)) {
            Ok(end) if end > start => end,
            _ => self.len()?.max(start),
        };
        Ok((start < end).then_some(start..end))
    }
}
