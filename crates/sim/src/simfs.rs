//! A file system over a [`Disk`] that writes down everything that is done to it.
//!
//! It answers as a real one does, call by call; each change is an [`Entry`] of the log. A world
//! that has crashed is told to be [`dead`](SimFs::kill): every call fails from then on, so the
//! database in it comes to its end without touching the image that was taken of it.
//!
//! Keeps: a call that fails has no entry, but a failed sync, and a call that did what it says it did not.
//! Leaves to others: what goes wrong when (`faults`); paths that go up (`..`), links to directories,
//! permissions, times.

mod faults;

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use lithify_env::sync::{Arc, Mutex};
use lithify_env::{
    Advice, DirEnt, EntryKind, File, FileRef, Fs, FsRef, IoError, IoResult, LockGuard, Mapped,
    OpenOpts,
};
use rustix::io::Errno;

pub use self::faults::Fault;
use self::faults::Faults;
use crate::crew;
use crate::disk::{Content, DirId, Disk, Entry, Forgets, Ino, NoPath, Node};

/// A file that is written through a mapping goes on with zeros to a multiple of this, in bytes: little, so that it ends now and then.
const PART: usize = 4 << 10;

/// A simulated file system; clones are the same one.
#[derive(Clone)]
pub struct SimFs(Arc<Mutex<State>>);

struct State {
    disk: Disk,
    log: Vec<Entry>,
    locked: BTreeSet<Ino>,
    dead: bool,
    /// What all files may hold together, and no fault: the disk is as large as that.
    capacity: Option<u64>,
    faults: Faults,
}

type Raw<T> = Result<T, Errno>;

impl SimFs {
    /// A file system on `disk`, with an empty log.
    pub fn new(mut disk: Disk) -> SimFs {
        disk.position = 0;
        let state = State {
            disk,
            log: Vec::new(),
            locked: BTreeSet::new(),
            dead: false,
            capacity: None,
            faults: Faults::default(),
        };
        SimFs(Arc::new(Mutex::new(state)))
    }

    /// Entries logged so far.
    pub fn position(&self) -> usize {
        self.0.lock().log.len()
    }

    /// The disk is this large from now on, in bytes of file content; by itself it has no bound.
    pub fn set_capacity(&self, bytes: u64) {
        self.0.lock().capacity = Some(bytes);
    }

    /// Every call fails from now on.
    pub fn kill(&self) {
        self.0.lock().dead = true;
    }

    /// Takes the log out; it starts anew.
    pub fn take_log(&self) -> Vec<Entry> {
        std::mem::take(&mut self.0.lock().log)
    }

    /// The entries from `from` on.
    pub fn log_from(&self, from: usize) -> Vec<Entry> {
        self.0.lock().log[from..].to_vec()
    }

    /// A copy of the disk as it is now.
    pub fn disk(&self) -> Disk {
        self.0.lock().disk.clone()
    }

    fn on<T>(
        &self,
        op: &'static str,
        path: &Path,
        call: impl FnOnce(&mut State) -> Raw<T>,
    ) -> IoResult<T> {
        // On a real machine others go on meanwhile.
        crew::breathe();
        self.0.lock().alive(call).map_err(|errno| IoError::new(op, path, errno))
    }

    fn handle(&self, ino: Ino, path: &Path, write: bool, grows: bool) -> FileRef {
        Arc::new(SimFile { fs: self.clone(), ino, path: path.to_path_buf(), write, grows })
    }
}

impl State {
    fn alive<T>(&mut self, call: impl FnOnce(&mut State) -> Raw<T>) -> Raw<T> {
        if self.dead {
            return Err(Errno::IO);
        }
        let at = self.log.len();
        self.faults.call(at)?;
        let done = call(self)?;
        if self.log.len() > at {
            self.faults.changed(at)?;
        }
        Ok(done)
    }

    /// How many of `wanted` bytes a transfer moves.
    fn shortened(&mut self, wanted: usize) -> usize {
        self.faults.shortened(wanted, self.log.len())
    }

    /// How far a file of `len` bytes may grow towards `end`.
    ///
    /// # Errors
    /// `NOSPC` if it may not grow at all, and should.
    fn room(&mut self, len: usize, end: usize) -> Raw<usize> {
        let bounds = [self.faults.most_bytes(), self.capacity];
        let Some(most) = bounds.into_iter().flatten().min() else { return Ok(end) };
        if end <= len {
            return Ok(end);
        }
        let free = most.saturating_sub(used(&self.disk)) as usize;
        if free < end - len && self.faults.most_bytes().is_some() {
            self.faults.strike(self.log.len());
        }
        match end.min(len + free) {
            room if room > len => Ok(room),
            _ => Err(Errno::NOSPC),
        }
    }

    /// Makes a file that grows longer than a write that ends at `end`, as one that is written through a mapping is; not where
    /// space is short, as zeros that were never written take none.
    fn lengthen(&mut self, ino: Ino, end: usize) {
        let bounded = self.capacity.is_some() || self.faults.most_bytes().is_some();
        if !bounded && end > self.visible(ino).len() {
            self.enter(Entry::SetLen(ino, (end + 1).next_multiple_of(PART)));
        }
    }

    fn enter(&mut self, entry: Entry) {
        self.disk.apply(&entry);
        self.log.push(entry);
    }

    fn find(&self, path: &Path) -> Raw<Option<Node>> {
        self.disk.find(names(path)).map_err(|e| match e {
            NoPath::Missing => Errno::NOENT,
            NoPath::Blocked => Errno::NOTDIR,
        })
    }

    fn dir(&self, path: &Path) -> Raw<DirId> {
        match self.find(path)? {
            Some(Node::Dir(dir)) => Ok(dir),
            Some(Node::File(_)) => Err(Errno::NOTDIR),
            None => Err(Errno::NOENT),
        }
    }

    /// The directory that `path` is a name in, and the name.
    fn place(&self, path: &Path) -> Raw<(DirId, String)> {
        let name = names(path).last().ok_or(Errno::EXIST)?.to_owned();
        let parent = path.parent().map_or_else(PathBuf::new, Path::to_path_buf);
        Ok((self.dir(&parent)?, name))
    }

    /// A new file at `path`, where nothing is.
    fn create(&mut self, path: &Path) -> Raw<Ino> {
        let (dir, name) = self.place(path)?;
        let ino = self.disk.next_ino();
        self.enter(Entry::Create(dir, name, ino));
        Ok(ino)
    }

    fn visible(&self, ino: Ino) -> &Content {
        &self.disk.inodes[&ino].visible
    }

    fn sync(&mut self, ino: Ino) -> Raw<()> {
        match self.sync_fails() {
            Some((forgets, with)) => {
                self.enter(Entry::SyncFailed(ino, forgets));
                Err(with)
            }
            None => {
                self.enter(Entry::SyncFile(ino));
                Ok(())
            }
        }
    }

    /// Whether the sync asked for now fails, what becomes of the bytes, and how.
    fn sync_fails(&mut self) -> Option<(Forgets, Errno)> {
        let disk = &self.disk;
        self.faults.sync(self.log.len(), || used(disk))
    }
}

/// Bytes in all files that have a name.
fn used(disk: &Disk) -> u64 {
    let named = disk.dirs.values().flat_map(|dir| dir.visible.values());
    let inodes: BTreeSet<Ino> =
        named.filter_map(|n| if let Node::File(ino) = n { Some(*ino) } else { None }).collect();
    inodes.iter().map(|ino| disk.inodes[ino].visible.len() as u64).sum()
}

fn names(path: &Path) -> impl Iterator<Item = &str> {
    path.components().filter_map(|c| match c {
        Component::Normal(name) => name.to_str(),
        _ => None,
    })
}

impl Fs for SimFs {
    // There are no links on this disk.
    fn beneath(&self, dir: &Path, _denied: u32) -> IoResult<FsRef> {
        self.on("beneath", dir, |s| s.dir(dir))?;
        Ok(Arc::new(self.clone()))
    }

    fn create(&self, path: &Path, opts: OpenOpts) -> IoResult<FileRef> {
        let ino = self.on("create", path, |s| match s.find(path)? {
            Some(_) => Err(Errno::EXIST),
            None => s.create(path),
        })?;
        Ok(self.handle(ino, path, true, opts.mapped != Mapped::No))
    }

    fn open(&self, path: &Path, opts: OpenOpts) -> IoResult<FileRef> {
        let ino = self.on("open", path, |s| match s.find(path)? {
            Some(Node::Dir(_)) => Err(Errno::ISDIR),
            Some(Node::File(ino)) => Ok(ino),
            None if opts.create => s.create(path),
            None => Err(Errno::NOENT),
        })?;
        Ok(self.handle(ino, path, opts.write, opts.mapped != Mapped::No))
    }

    fn rename(&self, from: &Path, to: &Path) -> IoResult<()> {
        self.on("rename", from, |s| {
            let node = s.find(from)?.ok_or(Errno::NOENT)?;
            let ((source, old), (target, new)) = (s.place(from)?, s.place(to)?);
            if source != target {
                return Err(Errno::XDEV);
            }
            match (node, s.find(to)?) {
                (a, Some(b)) if a == b => return Ok(()),
                (_, None) | (Node::File(_), Some(Node::File(_))) => {}
                (_, Some(Node::Dir(_))) => return Err(Errno::ISDIR),
                (Node::Dir(_), Some(Node::File(_))) => return Err(Errno::NOTDIR),
            }
            s.enter(Entry::Rename(source, old, new, node));
            Ok(())
        })
    }

    fn unlink(&self, path: &Path) -> IoResult<()> {
        self.on("unlink", path, |s| match s.find(path)?.ok_or(Errno::NOENT)? {
            Node::Dir(_) => Err(Errno::ISDIR),
            Node::File(_) => {
                let (dir, name) = s.place(path)?;
                s.enter(Entry::Remove(dir, name));
                Ok(())
            }
        })
    }

    fn link(&self, from: &Path, to: &Path) -> IoResult<()> {
        self.on("link", from, |s| {
            let node = s.find(from)?.ok_or(Errno::NOENT)?;
            match (s.find(to)?, node) {
                (Some(_), _) => Err(Errno::EXIST),
                (None, Node::Dir(_)) => Err(Errno::PERM),
                (None, Node::File(ino)) => {
                    let (dir, name) = s.place(to)?;
                    s.enter(Entry::Link(dir, name, ino));
                    Ok(())
                }
            }
        })
    }

    fn list(&self, dir: &Path) -> IoResult<Vec<DirEnt>> {
        self.on("list", dir, |s| {
            let id = s.dir(dir)?;
            let entries = s.disk.dirs[&id].visible.iter().map(|(name, node)| match node {
                Node::Dir(_) => DirEnt { name: name.clone(), len: 0, kind: EntryKind::Dir },
                Node::File(ino) => {
                    let len = s.visible(*ino).len() as u64;
                    DirEnt { name: name.clone(), len, kind: EntryKind::File }
                }
            });
            Ok(entries.collect())
        })
    }

    fn len(&self, path: &Path) -> IoResult<Option<u64>> {
        self.on("len", path, |s| match s.find(path) {
            Ok(Some(Node::Dir(_))) => Err(Errno::ISDIR),
            Ok(Some(Node::File(ino))) => Ok(Some(s.visible(ino).len() as u64)),
            Ok(None) | Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno),
        })
    }

    fn create_dir_all(&self, dir: &Path) -> IoResult<()> {
        let mut path = PathBuf::new();
        for name in names(dir) {
            path.push(name);
            self.on("create_dir_all", dir, |s| match s.find(&path)? {
                Some(Node::Dir(_)) => Ok(()),
                Some(Node::File(_)) => Err(Errno::EXIST),
                None => {
                    let (parent, name) = s.place(&path)?;
                    let id = s.disk.next_dir();
                    s.enter(Entry::MakeDir(parent, name, id));
                    Ok(())
                }
            })?;
        }
        Ok(())
    }

    fn remove_dir(&self, dir: &Path) -> IoResult<()> {
        self.on("remove_dir", dir, |s| {
            let id = s.dir(dir)?;
            if !s.disk.dirs[&id].visible.is_empty() {
                return Err(Errno::NOTEMPTY);
            }
            let (parent, name) = s.place(dir).map_err(|_| Errno::BUSY)?;
            s.enter(Entry::Remove(parent, name));
            Ok(())
        })
    }

    fn sync_dir(&self, dir: &Path) -> IoResult<()> {
        self.on("sync_dir", dir, |s| {
            let id = s.dir(dir)?;
            match s.sync_fails() {
                Some((_, with)) => {
                    s.enter(Entry::SyncDirFailed(id));
                    Err(with)
                }
                None => {
                    s.enter(Entry::SyncDir(id));
                    Ok(())
                }
            }
        })
    }

    fn free_space(&self, dir: &Path) -> IoResult<u64> {
        self.on("free_space", dir, |s| {
            s.dir(dir)?;
            Ok(s.capacity.map_or(u64::MAX, |most| most.saturating_sub(used(&s.disk))))
        })
    }

    fn lock(&self, path: &Path) -> IoResult<Box<dyn LockGuard>> {
        let ino = self.on("lock", path, |s| {
            let ino = match s.find(path)? {
                Some(Node::Dir(_)) => return Err(Errno::ISDIR),
                Some(Node::File(ino)) => ino,
                None => s.create(path)?,
            };
            if s.locked.contains(&ino) { Err(Errno::WOULDBLOCK) } else { Ok(ino) }
        })?;
        // A lock that is said to have failed is not held.
        self.0.lock().locked.insert(ino);
        Ok(Box::new(SimLock { fs: self.clone(), ino, path: path.to_path_buf() }))
    }
}

/// A held lock, given back on drop.
struct SimLock {
    fs: SimFs,
    ino: Ino,
    path: PathBuf,
}

impl LockGuard for SimLock {
    fn is_owner(&self) -> bool {
        self.fs.0.lock().find(&self.path) == Ok(Some(Node::File(self.ino)))
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SimLock {
    fn drop(&mut self) {
        self.fs.0.lock().locked.remove(&self.ino);
    }
}

/// An open file.
struct SimFile {
    fs: SimFs,
    ino: Ino,
    path: PathBuf,
    write: bool,
    /// It is written through a mapping, if it is written.
    grows: bool,
}

impl SimFile {
    fn on<T>(&self, op: &'static str, call: impl FnOnce(&mut State) -> Raw<T>) -> IoResult<T> {
        self.fs.on(op, &self.path, call)
    }

    fn change<T>(&self, op: &'static str, call: impl FnOnce(&mut State) -> Raw<T>) -> IoResult<T> {
        self.on(op, |s| if self.write { call(s) } else { Err(Errno::BADF) })
    }
}

fn position(offset: u64) -> Raw<usize> {
    // No simulated file comes near this; a real one may not grow beyond it.
    usize::try_from(offset).ok().filter(|&n| n <= 1 << 40).ok_or(Errno::FBIG)
}

impl File for SimFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> IoResult<usize> {
        let (content, most) = self.on("read_at", |s| {
            let most = s.shortened(buf.len());
            Ok((s.visible(self.ino).clone(), most))
        })?;
        let rest = usize::try_from(offset).ok().and_then(|start| content.get(start..));
        let rest = rest.unwrap_or_default();
        let count = most.min(rest.len());
        buf[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> IoResult<usize> {
        self.change("write_at", |s| {
            let offset = position(offset)?;
            if bytes.is_empty() {
                return Ok(0);
            }
            let most = s.shortened(bytes.len());
            if self.grows {
                s.lengthen(self.ino, offset + most);
            }
            let len = s.visible(self.ino).len();
            let room = s.room(len, offset + most)?;
            let count = room.checked_sub(offset).filter(|n| *n > 0).ok_or(Errno::NOSPC)?;
            s.enter(Entry::Write(self.ino, offset, bytes[..count].into()));
            Ok(count)
        })
    }

    fn sync_data(&self) -> IoResult<()> {
        self.on("sync_data", |s| s.sync(self.ino))
    }

    fn sync_all(&self) -> IoResult<()> {
        self.on("sync_all", |s| s.sync(self.ino))
    }

    fn set_len(&self, len: u64) -> IoResult<()> {
        self.change("set_len", |s| {
            let len = position(len)?;
            s.enter(Entry::SetLen(self.ino, len));
            Ok(())
        })
    }

    fn len(&self) -> IoResult<u64> {
        self.on("file_len", |s| Ok(s.visible(self.ino).len() as u64))
    }

    fn allocate(&self, offset: u64, len: u64) -> IoResult<()> {
        self.change("allocate", |s| {
            let end = position(offset)? + position(len)?;
            let now = s.visible(self.ino).len();
            if end > now {
                if s.room(now, end)? < end {
                    return Err(Errno::NOSPC);
                }
                s.enter(Entry::SetLen(self.ino, end));
            }
            Ok(())
        })
    }

    fn alignment(&self) -> usize {
        1
    }

    fn advise(&self, _offset: u64, _len: u64, _advice: Advice) {}

    fn path(&self) -> &Path {
        &self.path
    }
}
