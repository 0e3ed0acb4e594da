//! A file system in memory, for tests.
//!
//! It gives the same results as [`crate::PosixFs`], call by call (the conformance suite replays
//! random traces on both), with these simplifications: there is one tree, in which `a` and `/a`
//! are the same and `..` is resolved by name; there are no symbolic links, permissions or times;
//! direct IO is always refused; syncs have nothing to do.
//!
//! Leaves to others: crashes. Nothing is ever lost here.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::{Component, Path, PathBuf};

use rustix::io::Errno;

use crate::fs::{DirEnt, EntryKind, FileRef, Fs, FsRef, IoError, IoResult, LockGuard, OpenOpts};
use crate::sync::{Arc, Mutex};

mod file;

use file::{Inode, MemFile, Space};

/// A file system in memory; clones are the same one.
#[derive(Clone, Default)]
pub struct MemFs {
    tree: Arc<Mutex<Tree>>,
    space: Arc<Space>,
}

#[derive(Clone)]
enum Node {
    Dir,
    File(Arc<Inode>),
}

/// All names. The root is the empty path, always present though not stored.
#[derive(Default)]
struct Tree {
    nodes: BTreeMap<PathBuf, Node>,
}

type Raw<T> = Result<T, Errno>;

impl MemFs {
    /// An empty file system without a limit.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty file system for at most `bytes` of file content.
    pub fn with_capacity(bytes: u64) -> Self {
        let fs = Self::new();
        fs.set_capacity(bytes);
        fs
    }

    /// Changes the limit of file content in bytes. Below what is used, only growth fails.
    pub fn set_capacity(&self, bytes: u64) {
        self.space.set_limit(bytes);
    }

    /// Bytes of file content, including files that are only held open.
    pub fn used(&self) -> u64 {
        self.space.used()
    }

    fn on<T>(
        &self,
        op: &'static str,
        path: &Path,
        call: impl FnOnce(&mut Tree) -> Raw<T>,
    ) -> IoResult<T> {
        call(&mut self.tree.lock()).map_err(|errno| IoError::new(op, path, errno))
    }

    fn handle(&self, inode: Arc<Inode>, path: &Path, write: bool) -> FileRef {
        Arc::new(MemFile::new(inode, path, write))
    }
}

/// The one spelling of a path: names only.
fn canonical(path: &Path) -> PathBuf {
    let mut names = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => names.push(name),
            Component::ParentDir => drop(names.pop()),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    names
}

impl Tree {
    /// What `path` names; an error if its parent is missing or no directory.
    fn find(&self, path: &Path) -> Raw<Option<Node>> {
        let Some(parent) = path.parent() else { return Ok(Some(Node::Dir)) };
        let nearest = parent
            .ancestors()
            .find_map(|dir| self.nodes.get(dir).map(|node| (dir, node)))
            .unwrap_or((Path::new(""), &Node::Dir));
        match nearest {
            (_, Node::File(_)) => Err(Errno::NOTDIR),
            (dir, Node::Dir) if dir != parent => Err(Errno::NOENT),
            (_, Node::Dir) => Ok(self.nodes.get(path).cloned()),
        }
    }

    fn existing(&self, path: &Path) -> Raw<Node> {
        self.find(path)?.ok_or(Errno::NOENT)
    }

    fn dir(&self, path: &Path) -> Raw<()> {
        match self.existing(path)? {
            Node::Dir => Ok(()),
            Node::File(_) => Err(Errno::NOTDIR),
        }
    }

    /// The file at `path`, made if absent and `create` is set.
    fn file(&mut self, path: PathBuf, create: bool, space: &Arc<Space>) -> Raw<Arc<Inode>> {
        match self.find(&path)? {
            Some(Node::Dir) => Err(Errno::ISDIR),
            Some(Node::File(inode)) => Ok(inode),
            None if !create => Err(Errno::NOENT),
            None => {
                let inode = Inode::new(space);
                self.nodes.insert(path, Node::File(Arc::clone(&inode)));
                Ok(inode)
            }
        }
    }

    /// Everything below `dir`, at any depth. Paths sort by component, so it is one range.
    fn below<'a>(&'a self, dir: &'a Path) -> impl Iterator<Item = (&'a PathBuf, &'a Node)> {
        let after = (Bound::Excluded(dir), Bound::Unbounded);
        self.nodes.range::<Path, _>(after).take_while(move |(path, _)| path.starts_with(dir))
    }

    fn rename(&mut self, from: &Path, to: &Path) -> Raw<()> {
        let (source, target) = (self.find(from), self.find(to));
        let (source, target) = (source?, target?);
        let source = source.ok_or(Errno::NOENT)?;
        if to != from && to.starts_with(from) {
            return Err(Errno::INVAL);
        }
        if to != from && from.starts_with(to) {
            return Err(Errno::NOTEMPTY);
        }
        match (&source, &target) {
            (_, None) => {}
            // Two names of one file: POSIX keeps both.
            (Node::File(a), Some(Node::File(b))) if Arc::ptr_eq(a, b) => return Ok(()),
            (Node::File(_), Some(Node::File(_))) => {}
            (Node::File(_), Some(Node::Dir)) => return Err(Errno::ISDIR),
            (Node::Dir, Some(Node::File(_))) => return Err(Errno::NOTDIR),
            (Node::Dir, Some(Node::Dir)) if from == to => return Ok(()),
            (Node::Dir, Some(Node::Dir)) if self.below(to).next().is_some() => {
                return Err(Errno::NOTEMPTY);
            }
            (Node::Dir, Some(Node::Dir)) => {}
        }
        let moved: Vec<PathBuf> = self.below(from).map(|(path, _)| path.clone()).collect();
        for path in moved {
            let name = path.strip_prefix(from).expect("everything below starts with it");
            let node = self.nodes.remove(&path).expect("listed under the same lock");
            self.nodes.insert(to.join(name), node);
        }
        self.nodes.remove(from);
        self.nodes.insert(to.to_path_buf(), source);
        Ok(())
    }

    fn create_dir_all(&mut self, dir: &Path) -> Raw<()> {
        match self.find(dir) {
            Ok(Some(Node::Dir)) => return Ok(()),
            Ok(Some(Node::File(_))) => return Err(Errno::EXIST),
            Ok(None) => {}
            Err(Errno::NOENT) => {
                let parent = dir.parent().expect("the root exists");
                self.create_dir_all(parent)?;
            }
            Err(errno) => return Err(errno),
        }
        self.nodes.insert(dir.to_path_buf(), Node::Dir);
        Ok(())
    }

    fn list(&self, dir: &Path) -> Raw<Vec<DirEnt>> {
        self.dir(dir)?;
        let mut entries = Vec::new();
        for (path, node) in self.below(dir) {
            if path.parent() != Some(dir) {
                continue;
            }
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let (len, kind) = match node {
                Node::Dir => (0, EntryKind::Dir),
                Node::File(inode) => (inode.len(), EntryKind::File),
            };
            entries.push(DirEnt { name, len, kind });
        }
        entries.sort_unstable();
        Ok(entries)
    }
}

impl Fs for MemFs {
    // There are no links here, and nothing moves a directory from under its path.
    fn beneath(&self, dir: &Path, _denied: u32) -> IoResult<FsRef> {
        self.on("beneath", dir, |tree| tree.dir(&canonical(dir)))?;
        Ok(Arc::new(self.clone()))
    }

    fn permissions(&self, path: &Path) -> IoResult<u32> {
        self.on("permissions", path, |tree| tree.existing(&canonical(path)).map(|_| 0o777))
    }

    fn create(&self, path: &Path, _opts: OpenOpts) -> IoResult<FileRef> {
        let inode = self.on("create", path, |tree| {
            let name = canonical(path);
            match tree.find(&name)? {
                Some(_) => Err(Errno::EXIST),
                None => tree.file(name, true, &self.space),
            }
        })?;
        Ok(self.handle(inode, path, true))
    }

    fn open(&self, path: &Path, opts: OpenOpts) -> IoResult<FileRef> {
        let inode =
            self.on("open", path, |tree| tree.file(canonical(path), opts.create, &self.space))?;
        Ok(self.handle(inode, path, opts.write))
    }

    fn rename(&self, from: &Path, to: &Path) -> IoResult<()> {
        self.on("rename", from, |tree| tree.rename(&canonical(from), &canonical(to)))
    }

    fn unlink(&self, path: &Path) -> IoResult<()> {
        self.on("unlink", path, |tree| {
            let name = canonical(path);
            match tree.existing(&name)? {
                Node::Dir => Err(Errno::ISDIR),
                Node::File(_) => {
                    tree.nodes.remove(&name);
                    Ok(())
                }
            }
        })
    }

    fn link(&self, from: &Path, to: &Path) -> IoResult<()> {
        self.on("link", from, |tree| {
            let node = tree.existing(&canonical(from))?;
            let name = canonical(to);
            match (tree.find(&name)?, node) {
                (Some(_), _) => Err(Errno::EXIST),
                (None, Node::Dir) => Err(Errno::PERM),
                (None, file) => {
                    tree.nodes.insert(name, file);
                    Ok(())
                }
            }
        })
    }

    fn list(&self, dir: &Path) -> IoResult<Vec<DirEnt>> {
        self.on("list", dir, |tree| tree.list(&canonical(dir)))
    }

    fn len(&self, path: &Path) -> IoResult<Option<u64>> {
        self.on("len", path, |tree| match tree.find(&canonical(path)) {
            Ok(Some(Node::Dir)) => Err(Errno::ISDIR),
            Ok(Some(Node::File(inode))) => Ok(Some(inode.len())),
            Ok(None) | Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno),
        })
    }

    fn create_dir_all(&self, dir: &Path) -> IoResult<()> {
        self.on("create_dir_all", dir, |tree| tree.create_dir_all(&canonical(dir)))
    }

    fn remove_dir(&self, dir: &Path) -> IoResult<()> {
        self.on("remove_dir", dir, |tree| {
            let name = canonical(dir);
            tree.dir(&name)?;
            if tree.below(&name).next().is_some() {
                return Err(Errno::NOTEMPTY);
            }
            tree.nodes.remove(&name).map(drop).ok_or(Errno::BUSY)
        })
    }

    fn sync_dir(&self, dir: &Path) -> IoResult<()> {
        self.on("sync_dir", dir, |tree| tree.dir(&canonical(dir)))
    }

    fn free_space(&self, dir: &Path) -> IoResult<u64> {
        self.on("free_space", dir, |tree| tree.existing(&canonical(dir)).map(drop))?;
        Ok(self.space.free())
    }

    fn lock(&self, path: &Path) -> IoResult<Box<dyn LockGuard>> {
        let name = canonical(path);
        let inode = self.on("lock", path, |tree| {
            let inode = tree.file(name.clone(), true, &self.space)?;
            if inode.lock() { Ok(inode) } else { Err(Errno::WOULDBLOCK) }
        })?;
        Ok(Box::new(MemLock {
            inode,
            name,
            path: path.to_path_buf(),
            tree: Arc::clone(&self.tree),
        }))
    }
}

/// A held lock, given back on drop.
struct MemLock {
    inode: Arc<Inode>,
    name: PathBuf,
    path: PathBuf,
    tree: Arc<Mutex<Tree>>,
}

impl LockGuard for MemLock {
    fn is_owner(&self) -> bool {
        let found = self.tree.lock().find(&self.name);
        matches!(found, Ok(Some(Node::File(inode))) if Arc::ptr_eq(&inode, &self.inode))
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for MemLock {
    fn drop(&mut self) {
        self.inode.unlock();
    }
}
