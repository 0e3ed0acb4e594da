//! A file system that fails on command.
//!
//! [`FaultFs`] passes every call to another [`Fs`] unless its rule says otherwise. Operations are
//! numbered from 0 in the order in which they arrive, over the file system and all its files, so
//! a test can first count the operations of a workload and then fail each of them in turn.
//!
//! ```
//! use lithify_env::{Fault, FaultFs, Fs, MemFs, OpenOpts};
//! use std::{io, path::Path, sync::Arc};
//!
//! let fs = FaultFs::new(Arc::new(MemFs::new()), |op| match op.name {
//!     "write_at" if op.offset >= 100 => Some(io::Error::from(io::ErrorKind::StorageFull).into()),
//!     "write_at" => Some(Fault::Short(3)),
//!     _ => None,
//! });
//! let file = fs.create(Path::new("f"), OpenOpts::write())?;
//! assert_eq!(file.write_at(b"hello", 0)?, 3);
//! assert!(file.write_at(b"hello", 100).unwrap_err().is_no_space());
//! # Ok::<(), lithify_env::IoError>(())
//! ```
//!
//! Leaves to others: losing unsynced bytes at a crash, which needs a model of the disk.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::fs::{Advice, DirEnt, File, FileRef, Fs, FsRef, IoError, IoResult, LockGuard, OpenOpts};
use crate::sync::Arc;
use crate::sync::atomic::{AtomicU64, Ordering};

/// An operation about to run.
#[derive(Clone, Copy, Debug)]
pub struct Op<'a> {
    /// Its number, counted from 0.
    pub index: u64,
    /// The method of [`Fs`] or [`File`], as in [`IoError::op`]. The length of an open file is
    /// `file_len`, that of a path `len`.
    pub name: &'static str,
    /// The path of the call or of the open file; the source path where there are two.
    pub path: &'a Path,
    /// Where in the file; the new length for `set_len`; 0 where there is no offset.
    pub offset: u64,
    /// Bytes to be moved or allocated; 0 for other operations.
    pub len: u64,
}

/// What happens instead of the operation.
#[derive(Debug)]
pub enum Fault {
    /// It fails and has no effect.
    Fail(io::Error),
    /// A read or write moves at most this many bytes; other operations run as usual.
    Short(usize),
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Fail(error)
    }
}

type Rule = dyn Fn(&Op<'_>) -> Option<Fault> + Send + Sync;

/// An [`Fs`] that obeys a rule before it obeys the caller.
pub struct FaultFs {
    inner: FsRef,
    judge: Arc<Judge>,
}

/// The rule and the operation counter, shared with the open files.
struct Judge {
    rule: Box<Rule>,
    count: AtomicU64,
}

impl Judge {
    /// Numbers an operation and asks the rule: an error, or the most bytes it may move.
    fn admit(&self, name: &'static str, path: &Path, offset: u64, len: u64) -> IoResult<usize> {
        let index = self.count.fetch_add(1, Ordering::Relaxed);
        match (self.rule)(&Op { index, name, path, offset, len }) {
            None => Ok(usize::MAX),
            Some(Fault::Short(most)) => Ok(most),
            Some(Fault::Fail(error)) => Err(IoError::new(name, path, error)),
        }
    }
}

impl FaultFs {
    /// Wraps `inner`; `rule` sees each operation and says how it fails, if it does. The rule is
    /// called from whichever thread does the IO, and must not do IO through this value itself.
    pub fn new(
        inner: FsRef,
        rule: impl Fn(&Op<'_>) -> Option<Fault> + Send + Sync + 'static,
    ) -> Self {
        let judge = Judge { rule: Box::new(rule), count: AtomicU64::new(0) };
        Self { inner, judge: Arc::new(judge) }
    }

    /// Operations seen so far.
    pub fn count(&self) -> u64 {
        self.judge.count.load(Ordering::Relaxed)
    }

    fn admit(&self, name: &'static str, path: &Path) -> IoResult<()> {
        self.judge.admit(name, path, 0, 0).map(drop)
    }

    fn wrap(&self, inner: FileRef) -> FileRef {
        Arc::new(FaultFile { inner, judge: Arc::clone(&self.judge) })
    }
}

impl Fs for FaultFs {
    fn beneath(&self, dir: &Path, denied: u32) -> IoResult<FsRef> {
        self.admit("beneath", dir)?;
        let inner = self.inner.beneath(dir, denied)?;
        Ok(Arc::new(Self { inner, judge: Arc::clone(&self.judge) }))
    }

    fn permissions(&self, path: &Path) -> IoResult<u32> {
        self.admit("permissions", path)?;
        self.inner.permissions(path)
    }

    fn create(&self, path: &Path, opts: OpenOpts) -> IoResult<FileRef> {
        self.admit("create", path)?;
        Ok(self.wrap(self.inner.create(path, opts)?))
    }

    fn open(&self, path: &Path, opts: OpenOpts) -> IoResult<FileRef> {
        self.admit("open", path)?;
        Ok(self.wrap(self.inner.open(path, opts)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> IoResult<()> {
        self.admit("rename", from)?;
        self.inner.rename(from, to)
    }

    fn unlink(&self, path: &Path) -> IoResult<()> {
        self.admit("unlink", path)?;
        self.inner.unlink(path)
    }

    fn link(&self, from: &Path, to: &Path) -> IoResult<()> {
        self.admit("link", from)?;
        self.inner.link(from, to)
    }

    fn list(&self, dir: &Path) -> IoResult<Vec<DirEnt>> {
        self.admit("list", dir)?;
        self.inner.list(dir)
    }

    fn len(&self, path: &Path) -> IoResult<Option<u64>> {
        self.admit("len", path)?;
        self.inner.len(path)
    }

    fn create_dir_all(&self, dir: &Path) -> IoResult<()> {
        self.admit("create_dir_all", dir)?;
        self.inner.create_dir_all(dir)
    }

    fn remove_dir(&self, dir: &Path) -> IoResult<()> {
        self.admit("remove_dir", dir)?;
        self.inner.remove_dir(dir)
    }

    fn sync_dir(&self, dir: &Path) -> IoResult<()> {
        self.admit("sync_dir", dir)?;
        self.inner.sync_dir(dir)
    }

    fn free_space(&self, dir: &Path) -> IoResult<u64> {
        self.admit("free_space", dir)?;
        self.inner.free_space(dir)
    }

    fn open_files_max(&self) -> Option<u64> {
        self.inner.open_files_max()
    }

    fn resolve(&self, path: &Path) -> PathBuf {
        self.inner.resolve(path)
    }

    fn lock(&self, path: &Path) -> IoResult<Box<dyn LockGuard>> {
        self.admit("lock", path)?;
        self.inner.lock(path)
    }
}

struct FaultFile {
    inner: FileRef,
    judge: Arc<Judge>,
}

impl FaultFile {
    fn admit(&self, name: &'static str, offset: u64, len: u64) -> IoResult<usize> {
        self.judge.admit(name, self.inner.path(), offset, len)
    }
}

impl File for FaultFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> IoResult<usize> {
        let most = self.admit("read_at", offset, buf.len() as u64)?.min(buf.len());
        self.inner.read_at(&mut buf[..most], offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> IoResult<usize> {
        let most = self.admit("write_at", offset, bytes.len() as u64)?.min(bytes.len());
        self.inner.write_at(&bytes[..most], offset)
    }

    fn sync_data(&self) -> IoResult<()> {
        self.admit("sync_data", 0, 0)?;
        self.inner.sync_data()
    }

    fn sync_all(&self) -> IoResult<()> {
        self.admit("sync_all", 0, 0)?;
        self.inner.sync_all()
    }

    fn set_len(&self, len: u64) -> IoResult<()> {
        self.admit("set_len", len, 0)?;
        self.inner.set_len(len)
    }

    fn len(&self) -> IoResult<u64> {
        self.admit("file_len", 0, 0)?;
        self.inner.len()
    }

    fn allocate(&self, offset: u64, len: u64) -> IoResult<()> {
        self.admit("allocate", offset, len)?;
        self.inner.allocate(offset, len)
    }

    fn alignment(&self) -> usize {
        self.inner.alignment()
    }

    fn advise(&self, offset: u64, len: u64, advice: Advice) {
        self.inner.advise(offset, len, advice);
    }

    fn path(&self) -> &Path {
        self.inner.path()
    }

    fn links(&self) -> IoResult<u64> {
        self.inner.links()
    }

    fn identity(&self) -> Option<(u64, u64)> {
        self.inner.identity()
    }
    fn next_data(&self, from: u64) -> IoResult<Option<Range<u64>>> {
        self.inner.next_data(from)
    }
}
