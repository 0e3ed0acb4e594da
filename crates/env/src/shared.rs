//! A file system that opens a file once, however often it is asked to, and keeps it open: for one who
//! reads files that another process may delete at any time.
//!
//! A file that has lost its name can't be opened again, so nothing is closed before its last reader
//! lets go of it. The number of open files is bounded all the same: one that is beyond the bound, or
//! that the system refuses for want of descriptors, is refused by an error that says what helps.
//!
//! Keeps: two files are one only if the system says so ([`File::identity`]); a name may have been
//! given to another file since.
//! Leaves to others: which files are meant; all others are opened as ever.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use crate::capped::Closable;
use crate::fs::{DirEnt, File, FileRef, Fs, FsRef, IoError, IoResult, LockGuard, OpenOpts};
use crate::sync::{Arc, Mutex, Weak};

/// Entries of files that are gone which are not worth a look.
const ENTRIES_IDLE: usize = 64;

/// A file system that shares the files it opens; clones share them, too.
#[derive(Clone)]
pub struct SharedFs {
    inner: FsRef,
    shared: Arc<Shared>,
}

struct Shared {
    most: usize,
    which: Closable,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Open files by identity, and whether they bypass the page cache. Some may be gone.
    open: BTreeMap<(u64, u64, bool), Weak<dyn File>>,
    /// Looked through for those that are gone once there are so many.
    open_most: usize,
}

impl State {
    fn drop_gone(&mut self) {
        self.open.retain(|_, file| file.strong_count() > 0);
        self.open_most = 2 * self.open.len() + ENTRIES_IDLE;
    }
}

impl SharedFs {
    /// `inner` with at most `most` open files among those that `which` names.
    pub fn new(inner: FsRef, most: usize, which: Closable) -> Self {
        let state = Mutex::new(State { open_most: ENTRIES_IDLE, ..State::default() });
        Self { inner, shared: Arc::new(Shared { most: most.max(1), which, state }) }
    }

    /// Files that are open now, of those that are shared.
    pub fn open_files(&self) -> usize {
        let mut state = self.shared.state.lock();
        state.drop_gone();
        state.open.len()
    }

    /// The file that is open already if it is this one, which was just opened by `path`.
    fn share(&self, file: FileRef, path: &Path, opts: OpenOpts) -> IoResult<FileRef> {
        let Some((device, number)) = file.identity() else { return Ok(file) };
        let key = (device, number, opts.direct);
        let mut state = self.shared.state.lock();
        if let Some(same) = state.open.get(&key).and_then(Weak::upgrade) {
            return Ok(same);
        }
        if state.open.len() >= state.open_most.min(self.shared.most) {
            state.drop_gone();
        }
        if state.open.len() >= self.shared.most {
            return Err(self.refuse(path, self.shared.most));
        }
        state.open.insert(key, Arc::downgrade(&file));
        Ok(file)
    }

    fn refuse(&self, path: &Path, held: usize) -> IoError {
        let what = format!(
            "{held} tables are held open, and the process may open no more; a follower keeps every \
             table of its views open, as their names may go: raise the limit of open files \
             (`ulimit -n`), or let go of old views"
        );
        IoError::new("open", path, io::Error::other(what))
    }
}

impl Fs for SharedFs {
    fn beneath(&self, dir: &Path, denied: u32) -> IoResult<FsRef> {
        let inner = self.inner.beneath(dir, denied)?;
        Ok(Arc::new(Self { inner, shared: Arc::clone(&self.shared) }))
    }

    fn permissions(&self, path: &Path) -> IoResult<u32> {
        self.inner.permissions(path)
    }

    fn create(&self, path: &Path, opts: OpenOpts) -> IoResult<FileRef> {
        self.inner.create(path, opts)
    }

    fn open(&self, path: &Path, opts: OpenOpts) -> IoResult<FileRef> {
        if opts.write || !(self.shared.which)(path) {
            return self.inner.open(path, opts);
        }
        match self.inner.open(path, opts) {
            Ok(file) => self.share(file, path, opts),
            Err(e) if e.is_out_of_descriptors() => Err(self.refuse(path, self.open_files())),
            Err(e) => Err(e),
        }
    }

    fn resolve(&self, path: &Path) -> PathBuf {
        self.inner.resolve(path)
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
        self.inner.list(dir)
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
        self.inner.sync_dir(dir)
    }

    fn free_space(&self, dir: &Path) -> IoResult<u64> {
        self.inner.free_space(dir)
    }

    fn open_files_max(&self) -> Option<u64> {
        self.inner.open_files_max()
    }

    fn lock(&self, path: &Path) -> IoResult<Box<dyn LockGuard>> {
        self.inner.lock(path)
    }
}

#[cfg(all(test, not(any(shuttle, loom))))]
mod tests {
    use super::*;
    use crate::{MemFs, write_all_at};

    fn is_table(path: &Path) -> bool {
        path.extension().is_some_and(|e| e == "sst")
    }

    fn file(fs: &MemFs, name: &str, content: u8) {
        let file = fs.create(Path::new(name), OpenOpts::write()).unwrap();
        write_all_at(&*file, &[content; 10], 0).unwrap();
    }

    fn read(file: &FileRef) -> u8 {
        let mut buf = [0; 4];
        assert_eq!(file.read_at(&mut buf, 3).unwrap(), 4);
        buf[0]
    }

    #[test]
    fn a_file_is_open_once_and_a_name_may_be_given_to_another() {
        let inner = MemFs::new();
        file(&inner, "/1.sst", 1);
        let fs = SharedFs::new(Arc::new(inner.clone()), 8, is_table);
        let open = || fs.open(Path::new("/1.sst"), OpenOpts::read()).unwrap();
        let (first, again) = (open(), open());
        assert!(Arc::ptr_eq(&first, &again));
        assert_eq!(fs.open_files(), 1);
        inner.unlink(Path::new("/1.sst")).unwrap();
        file(&inner, "/1.sst", 2);
        let other = open();
        assert_eq!((read(&first), read(&other), fs.open_files()), (1, 2, 2));
        drop((first, again));
        assert_eq!(fs.open_files(), 1);
    }

    #[test]
    fn what_is_beyond_the_bound_is_refused_until_others_are_gone() {
        let inner = MemFs::new();
        let names: Vec<String> = (0..5).map(|n| format!("/{n}.sst")).collect();
        names.iter().for_each(|name| file(&inner, name, 7));
        file(&inner, "/log", 7);
        let fs = SharedFs::new(Arc::new(inner), 4, is_table);
        let open = |name: &str| fs.open(Path::new(name), OpenOpts::read());
        let mut held: Vec<FileRef> = names[..4].iter().map(|name| open(name).unwrap()).collect();
        let refused = open(&names[4]).err().unwrap();
        assert!(refused.to_string().contains("4 tables are held open"), "{refused}");
        assert!(open(&names[3]).is_ok() && open("/log").is_ok(), "it is open already, or no table");
        held.pop();
        assert!(open(&names[4]).is_ok());
    }
}
