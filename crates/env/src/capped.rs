//! A file system that keeps few files open: those that are only read are closed when others need
//! their descriptors, and opened again by the next read.
//!
//! Keeps: of the files that may be closed no more than the cap are open, but for reads under way; a
//! read through a closed file shows what it would have shown, or fails. Who is closed next is found
//! as by a clock (Corbató, "A paging experiment with the Multics system", 1968): a file that was read
//! since the hand last passed is spared once. A read of an open file costs two loads more.
//!
//! Whatever is opened (logs and new tables, too) makes the cap's files give way when the system has
//! no descriptor left.
//!
//! Leaves to others: which files may be closed; that their names stay as long as they are needed. Who
//! lets a name go that is still read from says so before ([`CappedFs::hold`]).

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use arc_swap::ArcSwapOption;

use crate::fs::{Advice, DirEnt, File, FileRef, Fs, FsRef, IoError, IoResult, LockGuard, OpenOpts};
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Arc, Mutex, Weak, thread};

/// Tries to open a file while others are made to give way. Many, because other threads take what was
/// given up, and a file that was closed in the middle of a read has its descriptor until the read ends.
const TRIES: usize = 64;

/// Entries of files that are gone which are not worth a look.
const ENTRIES_IDLE: usize = 64;

/// Which files may be closed while they are not read.
pub type Closable = fn(&Path) -> bool;

/// A file system with a cap on open files; clones share it.
#[derive(Clone)]
pub struct CappedFs {
    inner: FsRef,
    shared: Arc<Shared>,
}

struct Shared {
    most: usize,
    closable: Closable,
    state: Mutex<State>,
    /// Set when nothing may be opened again: names may be of other files by now.
    sealed: AtomicBool,
    reopened: AtomicU64,
}

#[derive(Default)]
struct State {
    /// How many have a descriptor.
    open: usize,
    /// Those that have, in the order in which they lose it. Some may be gone.
    ring: VecDeque<Weak<Kept>>,
    /// All that may get one again. Some may be gone; looked through once there are `all_most`.
    all: Vec<Weak<Kept>>,
    all_most: usize,
}

/// A file that may be closed and opened again.
struct Kept {
    me: Weak<Kept>,
    /// Where it is opened again, by the directory that it was opened in.
    inner: FsRef,
    shared: Arc<Shared>,
    path: PathBuf,
    opts: OpenOpts,
    len: u64,
    alignment: usize,
    file: ArcSwapOption<FileRef>,
    /// Read since the hand last passed.
    used: AtomicBool,
    /// Never closed.
    held: AtomicBool,
}

/// What the state let go of: closed after its lock, because closing is a system call.
type Closed = Vec<(Arc<Kept>, Option<Arc<FileRef>>)>;

impl CappedFs {
    /// `inner` with at most `most` open files among those that are `closable`.
    pub fn new(inner: FsRef, most: usize, closable: Closable) -> Self {
        let shared = Shared {
            most: most.max(1),
            closable,
            state: Mutex::default(),
            sealed: AtomicBool::new(false),
            reopened: AtomicU64::new(0),
        };
        Self { inner, shared: Arc::new(shared) }
    }

    /// Files that have a descriptor now, of those that may be closed.
    pub fn open_files(&self) -> usize {
        self.shared.state.lock().open
    }

    /// How often a closed file was opened again.
    pub fn reopened(&self) -> u64 {
        self.shared.reopened.load(Ordering::Relaxed)
    }

    /// Opens the files that `needed` names, up to half the cap (the next caller needs descriptors,
    /// too), and keeps them open as long as they are used. Nothing else is opened again from
    /// now on: a read through a file that is closed fails.
    pub fn hold(&self, needed: impl Fn(&Path) -> bool) {
        let most = self.shared.most.div_ceil(2);
        let all: Vec<Arc<Kept>> = {
            let state = self.shared.state.lock();
            let all: Vec<_> = state.all.iter().filter_map(Weak::upgrade).collect();
            // Under the lock: no thread that closes files has just found that this one is not held.
            let needed = all.iter().filter(|kept| needed(&kept.path)).take(most);
            needed.for_each(|kept| kept.held.store(true, Ordering::SeqCst));
            all
        };
        for kept in all.iter().filter(|kept| kept.held.load(Ordering::SeqCst)) {
            // One that can't be opened fails its readers.
            let _ = kept.descriptor();
        }
        self.shared.sealed.store(true, Ordering::SeqCst);
        let closed = self.shared.state.lock().close_beyond(most);
        drop(closed);
    }

    /// Keeps `file`, which was opened by `path` and `opts`.
    fn keep(&self, file: FileRef, path: &Path, opts: OpenOpts) -> IoResult<FileRef> {
        let (len, alignment) = (file.len()?, file.alignment());
        let kept = Arc::new_cyclic(|me| Kept {
            me: me.clone(),
            inner: self.inner.clone(),
            shared: self.shared.clone(),
            path: path.to_path_buf(),
            opts,
            len,
            alignment,
            file: ArcSwapOption::from_pointee(file),
            used: AtomicBool::new(true),
            held: AtomicBool::new(false),
        });
        {
            let mut state = self.shared.state.lock();
            state.all.push(Arc::downgrade(&kept));
            if state.all.len() > state.all_most {
                state.all.retain(|kept| kept.strong_count() > 0);
                state.all_most = 2 * state.all.len() + ENTRIES_IDLE;
            }
        }
        self.shared.admit(&kept);
        Ok(kept)
    }
}

impl Shared {
    /// Runs `open`, again if it finds no descriptor: other files give theirs up.
    fn with_room<T>(&self, open: impl Fn() -> IoResult<T>) -> IoResult<T> {
        for _ in 1..TRIES {
            match open() {
                Err(e) if e.is_out_of_descriptors() => {
                    if !self.shed() {
                        thread::yield_now();
                    }
                }
                other => return other,
            }
        }
        open()
    }

    /// Closes a quarter of the files; false if none could be closed.
    fn shed(&self) -> bool {
        let closed = {
            let mut state = self.state.lock();
            let most = state.open - state.open.div_ceil(4).min(state.open);
            state.close_beyond(most)
        };
        closed.iter().any(|(_, file)| file.is_some())
    }

    /// `kept` has just got a descriptor.
    fn admit(&self, kept: &Arc<Kept>) {
        let closed = {
            let mut state = self.state.lock();
            state.open += 1;
            state.ring.push_back(Arc::downgrade(kept));
            // Files that are gone leave entries behind.
            if state.ring.len() > 2 * state.open + ENTRIES_IDLE {
                state.ring.retain(|kept| kept.strong_count() > 0);
            }
            state.close_beyond(self.most)
        };
        drop(closed);
    }
}

impl State {
    /// Closes files until `most` are open, or none can be closed.
    fn close_beyond(&mut self, most: usize) -> Closed {
        let mut closed = Closed::new();
        // Twice round: the first round may spare everyone.
        let mut steps = 2 * self.ring.len();
        while self.open > most && steps > 0 {
            steps -= 1;
            let Some(entry) = self.ring.pop_front() else { break };
            let Some(kept) = entry.upgrade() else { continue };
            if kept.held.load(Ordering::SeqCst) || kept.used.swap(false, Ordering::Relaxed) {
                self.ring.push_back(entry);
                closed.push((kept, None));
                continue;
            }
            let file = kept.file.swap(None);
            self.open -= usize::from(file.is_some());
            closed.push((kept, file));
        }
        closed
    }
}

impl Kept {
    /// The open file.
    #[inline]
    fn with<T>(&self, call: impl FnOnce(&dyn File) -> IoResult<T>) -> IoResult<T> {
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
        if let Some(file) = &*self.file.load() {
            return call(&***file);
        }
        call(&**self.again()?)
    }

    /// The file, opened if need be.
    fn descriptor(&self) -> IoResult<Arc<FileRef>> {
        match self.file.load_full() {
            Some(file) => Ok(file),
            None => self.again(),
        }
    }

    /// Opens the file again.
    #[cold]
    fn again(&self) -> IoResult<Arc<FileRef>> {
        let refuse = |what: &str| IoError::new("open", &self.path, io::Error::other(what));
        if self.shared.sealed.load(Ordering::SeqCst) {
            // What is held was opened before the seal, maybe since the caller's look.
            let held = self.file.load_full();
            return held.ok_or_else(|| refuse("the database was closed, and this file with it"));
        }
        let file = self.shared.with_room(|| self.inner.open(&self.path, self.opts))?;
        if file.len()? != self.len {
            return Err(refuse("the file changed its length while it was closed"));
        }
        self.shared.reopened.fetch_add(1, Ordering::Relaxed);
        let file = Arc::new(file);
        // Of several that open it at once one brings it back, the others only use their own.
        if self.file.swap(Some(file.clone())).is_none()
            && let Some(me) = self.me.upgrade()
        {
            self.shared.admit(&me);
        }
        Ok(file)
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if self.file.swap(None).is_some() {
            self.shared.state.lock().open -= 1;
        }
    }
}

impl Fs for CappedFs {
    fn beneath(&self, dir: &Path, denied: u32) -> IoResult<FsRef> {
        let inner = self.shared.with_room(|| self.inner.beneath(dir, denied))?;
        Ok(Arc::new(Self { inner, shared: Arc::clone(&self.shared) }))
    }

    fn permissions(&self, path: &Path) -> IoResult<u32> {
        self.inner.permissions(path)
    }

    fn create(&self, path: &Path, opts: OpenOpts) -> IoResult<FileRef> {
        self.shared.with_room(|| self.inner.create(path, opts))
    }

    fn open(&self, path: &Path, opts: OpenOpts) -> IoResult<FileRef> {
        let file = self.shared.with_room(|| self.inner.open(path, opts))?;
        match !opts.write && (self.shared.closable)(path) {
            true => self.keep(file, path, opts),
            false => Ok(file),
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> IoResult<()> {
        self.inner.rename(from, to)
    }

    fn unlink(&self, path: &Path) -> IoResult<()> {
        self.inner.unlink(path)
    }

    fn link(&self, from: &Path, to: &Path) -> IoResult<()> {
        self.inner.link(from, to)
    }

    fn list(&self, dir: &Path) -> IoResult<Vec<DirEnt>> {
        self.shared.with_room(|| self.inner.list(dir))
    }

    fn len(&self, path: &Path) -> IoResult<Option<u64>> {
        self.inner.len(path)
    }

    fn create_dir_all(&self, dir: &Path) -> IoResult<()> {
        self.inner.create_dir_all(dir)
    }

    fn remove_dir(&self, dir: &Path) -> IoResult<()> {
        self.inner.remove_dir(dir)
    }

    fn sync_dir(&self, dir: &Path) -> IoResult<()> {
        // Only the lack of a descriptor is tried again, which comes before the sync.
        self.shared.with_room(|| self.inner.sync_dir(dir))
    }

    fn free_space(&self, dir: &Path) -> IoResult<u64> {
        self.shared.with_room(|| self.inner.free_space(dir))
    }

    fn open_files_max(&self) -> Option<u64> {
        self.inner.open_files_max()
    }

    fn resolve(&self, path: &Path) -> PathBuf {
        self.inner.resolve(path)
    }

    fn lock(&self, path: &Path) -> IoResult<Box<dyn LockGuard>> {
        self.shared.with_room(|| self.inner.lock(path))
    }
}

impl File for Kept {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> IoResult<usize> {
        self.with(|file| file.read_at(buf, offset))
    }

    // It was opened for reading: what follows is refused, or has nothing to do.
    fn write_at(&self, bytes: &[u8], offset: u64) -> IoResult<usize> {
        self.with(|file| file.write_at(bytes, offset))
    }

    fn sync_data(&self) -> IoResult<()> {
        self.with(|file| file.sync_data())
    }

    fn sync_all(&self) -> IoResult<()> {
        self.with(|file| file.sync_all())
    }

    fn set_len(&self, len: u64) -> IoResult<()> {
        self.with(|file| file.set_len(len))
    }

    fn len(&self) -> IoResult<u64> {
        Ok(self.len)
    }

    fn allocate(&self, offset: u64, len: u64) -> IoResult<()> {
        self.with(|file| file.allocate(offset, len))
    }

    fn alignment(&self) -> usize {
        self.alignment
    }

    fn advise(&self, offset: u64, len: u64, advice: Advice) {
        if let Some(file) = &*self.file.load() {
            file.advise(offset, len, advice);
        }
    }

    fn path(&self) -> &Path {
        &self.path
    }

    fn links(&self) -> IoResult<u64> {
        self.with(|file| file.links())
    }

    fn identity(&self) -> Option<(u64, u64)> {
        self.with(|file| Ok(file.identity())).ok().flatten()
    }

    fn next_data(&self, from: u64) -> IoResult<Option<Range<u64>>> {
        self.with(|file| file.next_data(from))
    }
}

#[cfg(all(test, not(any(shuttle, loom))))]
mod tests;
