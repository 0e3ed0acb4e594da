//! A file system that knows which of its calls are under way, so that one that hangs can be named.
//!
//! Keeps: a call costs its caller no lock of another's and no wait: it marks its beginning and its
//! end in a slot. A transfer of an open file takes the time of the last [`look`](WatchedFs::look)
//! for its beginning, so that it looks at no clock; everything else is rare enough to ask.
//!
//! Not watched: short reads, of which there may be a million a second; who waits for one is the
//! reader itself. Of several calls at once on one file the one begun last is shown, once none begins
//! any more.
//! Leaves to others: how long is too long, who is told, and what to do about it.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::clock::Mono;
use crate::fs::{Advice, DirEnt, File, FileRef, Fs, FsRef, IoResult, LockGuard, OpenOpts};
use crate::rt::RtRef;
use crate::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Arc, Mutex};

/// Reads of fewer bytes are not watched.
const LONG_READ: usize = 64 << 10;

/// What is called.
#[derive(Clone, Copy)]
enum Op {
    Beneath,
    Permissions,
    Create,
    Open,
    Rename,
    Unlink,
    Link,
    List,
    Len,
    CreateDirAll,
    RemoveDir,
    SyncDir,
    FreeSpace,
    ReadAt,
    WriteAt,
    Sync,
    Resize,
}

/// Their names in the order of [`Op`], as in [`crate::IoError::op`].
const NAMES: [&str; Op::Resize as usize + 1] = [
    "beneath",
    "permissions",
    "create",
    "open",
    "rename",
    "unlink",
    "link",
    "list",
    "len",
    "create_dir_all",
    "remove_dir",
    "sync_dir",
    "free_space",
    "read_at",
    "write_at",
    "sync",
    "resize",
];

/// A call that has not come back for long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hanging {
    /// The same as long as it is the same call; no other has it.
    pub id: (u64, u64),
    /// What was called: a method of [`Fs`] or [`File`]; `sync` and `resize` are two methods each.
    pub op: &'static str,
    /// On what.
    pub path: PathBuf,
    /// When it began; of a transfer up to the time between two looks before it.
    pub since: Mono,
}

/// A file system whose calls are watched; clones share it.
#[derive(Clone)]
pub struct WatchedFs {
    inner: FsRef,
    shared: Arc<Shared>,
}

struct Shared {
    rt: RtRef,
    /// The last look.
    looked: AtomicU64,
    slots: Mutex<Slots>,
}

#[derive(Default)]
struct Slots {
    all: Vec<Arc<Slot>>,
    /// Those for calls by name that are not in use.
    idle: Vec<Arc<Slot>>,
    made: u64,
}

/// Where calls on one thing are marked.
struct Slot {
    number: u64,
    path: Mutex<PathBuf>,
    op: AtomicUsize,
    since: AtomicU64,
    begun: AtomicU64,
    ended: AtomicU64,
    /// Its file is closed.
    closed: AtomicBool,
}

/// A call under way.
struct Call<'a>(&'a Slot);

impl Slot {
    fn begin(&self, op: Op, since: u64) -> Call<'_> {
        self.op.store(op as usize, Ordering::Relaxed);
        self.since.store(since, Ordering::Relaxed);
        self.begun.fetch_add(1, Ordering::Release);
        Call(self)
    }

    fn hanging(&self, now: Mono, limit: Duration) -> Option<Hanging> {
        let ended = self.ended.load(Ordering::Acquire);
        let begun = self.begun.load(Ordering::Acquire);
        let since = Mono(self.since.load(Ordering::Relaxed));
        if begun == ended || now.since(since) < limit {
            return None;
        }
        let op = NAMES[self.op.load(Ordering::Relaxed)];
        let path = self.path.lock().clone();
        Some(Hanging { id: (self.number, begun), op, path, since })
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::Release);
    }
}

impl Slots {
    fn add(&mut self, path: &Path) -> Arc<Slot> {
        self.made += 1;
        let slot = Arc::new(Slot {
            number: self.made,
            path: Mutex::new(path.to_path_buf()),
            op: AtomicUsize::new(0),
            since: AtomicU64::new(0),
            begun: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            closed: AtomicBool::new(false),
        });
        self.all.push(slot.clone());
        slot
    }
}

impl WatchedFs {
    /// Watches the calls of `inner`, by the clock of `rt`.
    pub fn new(inner: FsRef, rt: RtRef) -> Self {
        let looked = AtomicU64::new(rt.now().0);
        Self { inner, shared: Arc::new(Shared { rt, looked, slots: Mutex::default() }) }
    }

    /// The calls that have been under way for `limit` and longer, the oldest first. To be called now
    /// and then: transfers are timed by it.
    pub fn look(&self, limit: Duration) -> Vec<Hanging> {
        let now = self.shared.rt.now();
        self.shared.looked.store(now.0, Ordering::Relaxed);
        let mut slots = self.shared.slots.lock();
        slots.all.retain(|slot| !slot.closed.load(Ordering::Relaxed));
        let mut all: Vec<Hanging> =
            slots.all.iter().filter_map(|slot| slot.hanging(now, limit)).collect();
        all.sort_by_key(|call| (call.since, call.id));
        all
    }

    /// Makes a call by name.
    fn call<T>(&self, op: Op, path: &Path, call: impl FnOnce(&dyn Fs) -> T) -> T {
        let slot = {
            let mut slots = self.shared.slots.lock();
            slots.idle.pop().unwrap_or_else(|| slots.add(path))
        };
        path.clone_into(&mut slot.path.lock());
        let under_way = slot.begin(op, self.shared.rt.now().0);
        let result = call(&*self.inner);
        drop(under_way);
        self.shared.slots.lock().idle.push(slot);
        result
    }

    fn watch(&self, inner: FileRef) -> FileRef {
        let slot = self.shared.slots.lock().add(inner.path());
        Arc::new(Watched { inner, slot, shared: self.shared.clone() })
    }
}

impl Fs for WatchedFs {
    fn beneath(&self, dir: &Path, denied: u32) -> IoResult<FsRef> {
        let inner = self.call(Op::Beneath, dir, |fs| fs.beneath(dir, denied))?;
        Ok(Arc::new(Self { inner, shared: Arc::clone(&self.shared) }))
    }

    fn permissions(&self, path: &Path) -> IoResult<u32> {
        self.call(Op::Permissions, path, |fs| fs.permissions(path))
    }

    fn create(&self, path: &Path, opts: OpenOpts) -> IoResult<FileRef> {
        Ok(self.watch(self.call(Op::Create, path, |fs| fs.create(path, opts))?))
    }

    fn open(&self, path: &Path, opts: OpenOpts) -> IoResult<FileRef> {
        Ok(self.watch(self.call(Op::Open, path, |fs| fs.open(path, opts))?))
    }

    fn rename(&self, from: &Path, to: &Path) -> IoResult<()> {
        self.call(Op::Rename, from, |fs| fs.rename(from, to))
    }

    fn unlink(&self, path: &Path) -> IoResult<()> {
        self.call(Op::Unlink, path, |fs| fs.unlink(path))
    }

    fn link(&self, from: &Path, to: &Path) -> IoResult<()> {
        self.call(Op::Link, from, |fs| fs.link(from, to))
    }

    fn list(&self, dir: &Path) -> IoResult<Vec<DirEnt>> {
        self.call(Op::List, dir, |fs| fs.list(dir))
    }

    fn len(&self, path: &Path) -> IoResult<Option<u64>> {
        self.call(Op::Len, path, |fs| fs.len(path))
    }

    fn create_dir_all(&self, dir: &Path) -> IoResult<()> {
        self.call(Op::CreateDirAll, dir, |fs| fs.create_dir_all(dir))
    }

    fn remove_dir(&self, dir: &Path) -> IoResult<()> {
        self.call(Op::RemoveDir, dir, |fs| fs.remove_dir(dir))
    }

    fn sync_dir(&self, dir: &Path) -> IoResult<()> {
        self.call(Op::SyncDir, dir, |fs| fs.sync_dir(dir))
    }

    fn free_space(&self, dir: &Path) -> IoResult<u64> {
        self.call(Op::FreeSpace, dir, |fs| fs.free_space(dir))
    }

    fn open_files_max(&self) -> Option<u64> {
        self.inner.open_files_max()
    }

    fn resolve(&self, path: &Path) -> PathBuf {
        self.inner.resolve(path)
    }

    // Never waits.
    fn lock(&self, path: &Path) -> IoResult<Box<dyn LockGuard>> {
        self.inner.lock(path)
    }
}

/// An open file.
struct Watched {
    inner: FileRef,
    slot: Arc<Slot>,
    shared: Arc<Shared>,
}

impl Watched {
    fn transfer(&self, op: Op) -> Call<'_> {
        self.slot.begin(op, self.shared.looked.load(Ordering::Relaxed))
    }

    fn rare(&self, op: Op) -> Call<'_> {
        self.slot.begin(op, self.shared.rt.now().0)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.slot.closed.store(true, Ordering::Relaxed);
    }
}

impl File for Watched {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> IoResult<usize> {
        let _under_way = (buf.len() >= LONG_READ).then(|| self.transfer(Op::ReadAt));
        self.inner.read_at(buf, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> IoResult<usize> {
        let _under_way = self.transfer(Op::WriteAt);
        self.inner.write_at(bytes, offset)
    }

    fn sync_data(&self) -> IoResult<()> {
        let _under_way = self.rare(Op::Sync);
        self.inner.sync_data()
    }

    fn sync_all(&self) -> IoResult<()> {
        let _under_way = self.rare(Op::Sync);
        self.inner.sync_all()
    }

    fn set_len(&self, len: u64) -> IoResult<()> {
        let _under_way = self.rare(Op::Resize);
        self.inner.set_len(len)
    }

    fn len(&self) -> IoResult<u64> {
        self.inner.len()
    }

    fn allocate(&self, offset: u64, len: u64) -> IoResult<()> {
        let _under_way = self.rare(Op::Resize);
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

#[cfg(all(test, not(any(shuttle, loom))))]
mod tests;
