//! The content of in-memory files, and the space they share.

use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::fs::{Advice, File, IoError, IoResult};
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Arc, RwLock};

/// The longest file, as on any system with signed 64-bit offsets.
const LEN_MAX: u64 = i64::MAX as u64;

/// Bytes of content in use and allowed, over all files.
pub(super) struct Space {
    used: AtomicU64,
    limit: AtomicU64,
}

impl Default for Space {
    fn default() -> Self {
        Self { used: AtomicU64::new(0), limit: AtomicU64::new(u64::MAX) }
    }
}

impl Space {
    pub(super) fn set_limit(&self, bytes: u64) {
        self.limit.store(bytes, Ordering::Relaxed);
    }

    pub(super) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    pub(super) fn free(&self) -> u64 {
        self.limit.load(Ordering::Relaxed).saturating_sub(self.used())
    }

    /// Takes up to `wanted` bytes and returns how many there were.
    fn take(&self, wanted: u64) -> u64 {
        let limit = self.limit.load(Ordering::Relaxed);
        let grant = |used: u64| wanted.min(limit.saturating_sub(used));
        let before = self
            .used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| Some(used + grant(used)));
        before.map_or(0, grant)
    }

    fn give(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// A file, whatever its names.
pub(super) struct Inode {
    bytes: RwLock<Vec<u8>>,
    locked: AtomicBool,
    space: Arc<Space>,
}

impl Inode {
    pub(super) fn new(space: &Arc<Space>) -> Arc<Self> {
        Arc::new(Self {
            bytes: RwLock::default(),
            locked: AtomicBool::new(false),
            space: Arc::clone(space),
        })
    }

    pub(super) fn len(&self) -> u64 {
        self.bytes.read().len() as u64
    }

    /// Takes the lock; false if it is held.
    pub(super) fn lock(&self) -> bool {
        !self.locked.swap(true, Ordering::AcqRel)
    }

    pub(super) fn unlock(&self) {
        self.locked.store(false, Ordering::Release);
    }

    /// Extends `bytes` with zeros towards `wanted` as far as there is space, at least to `least`.
    fn grow(&self, bytes: &mut Vec<u8>, wanted: u64, least: u64) -> Result<(), Errno> {
        let len = bytes.len() as u64;
        if wanted <= len {
            return Ok(());
        }
        let taken = self.space.take(wanted - len);
        let enough = len + taken >= least && bytes.try_reserve(taken as usize).is_ok();
        if !enough {
            self.space.give(taken);
            return Err(Errno::NOSPC);
        }
        bytes.resize((len + taken) as usize, 0);
        Ok(())
    }
}

impl Drop for Inode {
    fn drop(&mut self) {
        self.space.give(self.bytes.get_mut().len() as u64);
    }
}

/// An open file.
pub(super) struct MemFile {
    inode: Arc<Inode>,
    path: PathBuf,
    write: bool,
}

impl MemFile {
    pub(super) fn new(inode: Arc<Inode>, path: &Path, write: bool) -> Self {
        Self { inode, path: path.to_path_buf(), write }
    }

    fn error(&self, op: &'static str, errno: Errno) -> IoError {
        IoError::new(op, &self.path, errno)
    }

    fn write(&self, bytes: &[u8], offset: u64) -> Result<usize, Errno> {
        if !self.write {
            return Err(Errno::BADF);
        }
        if bytes.is_empty() {
            return Ok(0);
        }
        let end = offset.checked_add(bytes.len() as u64).filter(|&end| end <= LEN_MAX);
        let end = end.ok_or(Errno::FBIG)?;
        let mut content = self.inode.bytes.write();
        self.inode.grow(&mut content, end, offset + 1)?;
        let start = offset as usize;
        let count = bytes.len().min(content.len() - start);
        content[start..start + count].copy_from_slice(&bytes[..count]);
        Ok(count)
    }

    fn resize(&self, len: u64) -> Result<(), Errno> {
        if !self.write || len > LEN_MAX {
            return Err(Errno::INVAL);
        }
        let mut content = self.inode.bytes.write();
        let before = content.len() as u64;
        if len < before {
            content.truncate(len as usize);
            self.inode.space.give(before - len);
        }
        self.inode.grow(&mut content, len, len)
    }

    fn reserve(&self, offset: u64, len: u64) -> Result<(), Errno> {
        if !self.write {
            return Err(Errno::BADF);
        }
        if len == 0 {
            return Err(Errno::INVAL);
        }
        let end = offset.checked_add(len).filter(|&end| end <= LEN_MAX).ok_or(Errno::FBIG)?;
        self.inode.grow(&mut self.inode.bytes.write(), end, end)
    }
}

impl File for MemFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> IoResult<usize> {
        if offset > LEN_MAX {
            return Err(self.error("read_at", Errno::INVAL));
        }
        let content = self.inode.bytes.read();
        let rest = usize::try_from(offset).ok().and_then(|start| content.get(start..));
        let rest = rest.unwrap_or_default();
        let count = buf.len().min(rest.len());
        buf[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> IoResult<usize> {
        self.write(bytes, offset).map_err(|errno| self.error("write_at", errno))
    }

    fn sync_data(&self) -> IoResult<()> {
        Ok(())
    }

    fn sync_all(&self) -> IoResult<()> {
        Ok(())
    }

    fn set_len(&self, len: u64) -> IoResult<()> {
        self.resize(len).map_err(|errno| self.error("set_len", errno))
    }

    fn len(&self) -> IoResult<u64> {
        Ok(self.inode.len())
    }

    fn allocate(&self, offset: u64, len: u64) -> IoResult<()> {
        self.reserve(offset, len).map_err(|errno| self.error("allocate", errno))
    }

    fn alignment(&self) -> usize {
        1
    }

    fn advise(&self, _offset: u64, _len: u64, _advice: Advice) {}

    fn path(&self) -> &Path {
        &self.path
    }

    fn identity(&self) -> Option<(u64, u64)> {
        Some((0, Arc::as_ptr(&self.inode).addr() as u64))
    }
}
