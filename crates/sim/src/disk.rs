//! A disk as a file system sees it: for each file what is surely on it and what is on its way
//! there, for each directory the same for its names.
//!
//! Keeps: [`Disk::apply`] is the only change, and it is pure, so a disk replayed from a log of
//! [`Entry`]s is the disk that wrote the log, at any position. Bytes become durable by
//! [`Entry::SyncFile`] of their file alone, names by [`Entry::SyncDir`] of their directory alone:
//! less than any real file system keeps, which is the point.
//! Leaves to others: what survives a crash of what is pending (`crash`), paths and errors (`simfs`).

use std::collections::BTreeMap;
use std::fmt;

use lithify_env::sync::Arc;
use lithify_env::{Random, random::derive_seed};

/// What a system writes at a time, bytes.
pub const PAGE: usize = 4096;

/// Number of a file; never used twice on a disk.
pub type Ino = u32;
/// Number of a directory; the root is 0.
pub type DirId = u32;
/// Content of a file; shared until someone writes.
pub type Content = Arc<Vec<u8>>;

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Node {
    /// A file.
    File(Ino),
    /// A directory.
    Dir(DirId),
}

/// Names of a directory.
pub type Names = BTreeMap<String, Node>;

/// A change of a file that is not durable yet.
#[derive(Clone, Debug)]
pub struct Pending<T> {
    /// Position of its entry in the log.
    pub at: usize,
    /// The change.
    pub what: T,
}

/// A change of a file's bytes.
#[derive(Clone, Debug)]
pub enum Change {
    /// Bytes at an offset.
    Write {
        /// Where.
        offset: usize,
        /// What.
        bytes: Arc<[u8]>,
    },
    /// Cut or extended with zeros to this length.
    SetLen(usize),
}

impl Change {
    /// Does it to `content`.
    pub fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Change::Write { offset, bytes } => write(content, *offset, bytes),
            Change::SetLen(len) => content.resize(*len, 0),
        }
    }
}

/// Puts `bytes` at `offset`, with zeros before it if the content is shorter.
pub fn write(content: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    let end = offset + bytes.len();
    if content.len() < end {
        content.resize(end, 0);
    }
    content[offset..end].copy_from_slice(bytes);
}

/// Does `change` to `content`, but for the pages that `random` leaves out; a length is set or not.
fn write_partly(content: &mut Vec<u8>, change: &Change, random: &mut Random) {
    match change {
        Change::Write { offset, bytes } => {
            for (from, to) in pieces(*offset, bytes.len(), PAGE) {
                if random.one_in(2) {
                    write(content, offset + from, &bytes[from..to]);
                }
            }
        }
        Change::SetLen(len) => {
            if random.one_in(2) {
                content.resize(*len, 0);
            }
        }
    }
}

/// The parts of a write of `len` bytes at `offset` that lie in one piece of a file each.
pub fn pieces(offset: usize, len: usize, piece: usize) -> impl Iterator<Item = (usize, usize)> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let to = len.min(from + piece - (offset + from) % piece);
        let part = (from < len).then_some((from, to));
        from = to;
        part
    })
}

/// A change of a directory's names.
#[derive(Clone, Debug)]
pub enum Naming {
    /// A name begins to stand for something.
    Set(String, Node),
    /// A name is gone.
    Remove(String),
    /// A name moves, in one piece.
    Rename(String, String, Node),
}

impl Naming {
    /// Does it to `names`.
    pub fn apply(&self, names: &mut Names) {
        match self {
            Naming::Set(name, node) => drop(names.insert(name.clone(), *node)),
            Naming::Remove(name) => drop(names.remove(name)),
            Naming::Rename(from, to, node) => {
                names.remove(from);
                names.insert(to.clone(), *node);
            }
        }
    }
}

/// A file.
#[derive(Clone, Debug, Default)]
pub struct Inode {
    /// Surely on the disk.
    pub durable: Content,
    /// What readers see.
    pub visible: Content,
    /// Changes on their way, oldest first.
    pub pending: Vec<Pending<Change>>,
    /// Something that readers see will never reach the disk: a sync failed, and the system
    /// forgot what it had to write.
    pub forgot: bool,
}

/// A directory.
#[derive(Clone, Debug, Default)]
pub struct Dir {
    /// Surely on the disk.
    pub durable: Names,
    /// What everyone sees.
    pub visible: Names,
    /// Changes on their way, oldest first.
    pub pending: Vec<Pending<Naming>>,
}

/// What is left after a sync that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forgets {
    /// The bytes stay readable and are never written: the pages are marked clean.
    Keeps,
    /// Readers see the durable bytes again.
    Reverts,
    /// They are still on their way: some may arrive, and a later sync may bring them all.
    Delays,
    /// Some pages of each write are written, the others are forgotten as with `Keeps`. Which ones follows
    /// from the number, and from where in the log the sync is.
    Partly(u32),
}

/// One change of a disk.
#[derive(Clone, Debug)]
pub enum Entry {
    /// A file begins, under a name.
    Create(DirId, String, Ino),
    /// A directory begins, under a name.
    MakeDir(DirId, String, DirId),
    /// A file gets one more name.
    Link(DirId, String, Ino),
    /// A name goes.
    Remove(DirId, String),
    /// A name moves inside its directory.
    Rename(DirId, String, String, Node),
    /// Bytes are written.
    Write(Ino, usize, Arc<[u8]>),
    /// A length is set.
    SetLen(Ino, usize),
    /// Content is made durable.
    SyncFile(Ino),
    /// The sync of a file failed.
    SyncFailed(Ino, Forgets),
    /// Names are made durable.
    SyncDir(DirId),
    /// The sync of a directory failed. Its names are still on their way: a file system whose
    /// journal fails stops, it does not forget a name and go on.
    SyncDirFailed(DirId),
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Entry::Create(dir, name, ino) => write!(f, "create {dir}/{name} as #{ino}"),
            Entry::MakeDir(dir, name, id) => write!(f, "make directory {dir}/{name} as {id}"),
            Entry::Link(dir, name, ino) => write!(f, "link {dir}/{name} to #{ino}"),
            Entry::Remove(dir, name) => write!(f, "remove {dir}/{name}"),
            Entry::Rename(dir, from, to, _) => write!(f, "rename {dir}/{from} to {to}"),
            Entry::Write(ino, offset, bytes) => {
                write!(f, "write #{ino} at {offset}, {} bytes", bytes.len())
            }
            Entry::SetLen(ino, len) => write!(f, "set length of #{ino} to {len}"),
            Entry::SyncFile(ino) => write!(f, "sync #{ino}"),
            Entry::SyncFailed(ino, how) => write!(f, "sync #{ino} fails and {how:?}"),
            Entry::SyncDir(dir) => write!(f, "sync directory {dir}"),
            Entry::SyncDirFailed(dir) => write!(f, "sync directory {dir} fails"),
        }
    }
}

/// Files and directories.
#[derive(Clone, Debug)]
pub struct Disk {
    /// Files by number, those without a name included.
    pub inodes: BTreeMap<Ino, Inode>,
    /// Directories by number.
    pub dirs: BTreeMap<DirId, Dir>,
    /// Entries applied since the disk was made.
    pub position: usize,
}

impl Default for Disk {
    fn default() -> Disk {
        Disk { inodes: BTreeMap::new(), dirs: [(0, Dir::default())].into(), position: 0 }
    }
}

impl Disk {
    /// A number no file has.
    pub fn next_ino(&self) -> Ino {
        self.inodes.last_key_value().map_or(1, |(n, _)| n + 1)
    }

    /// A number no directory has.
    pub fn next_dir(&self) -> DirId {
        self.dirs.last_key_value().map_or(1, |(n, _)| n + 1)
    }

    /// Carries out `entry`, which must be possible.
    pub fn apply(&mut self, entry: &Entry) {
        let at = self.position;
        self.position += 1;
        match entry {
            Entry::Create(dir, name, ino) => {
                self.inodes.insert(*ino, Inode::default());
                self.name(at, *dir, Naming::Set(name.clone(), Node::File(*ino)));
            }
            Entry::MakeDir(dir, name, id) => {
                self.dirs.insert(*id, Dir::default());
                self.name(at, *dir, Naming::Set(name.clone(), Node::Dir(*id)));
            }
            Entry::Link(dir, name, ino) => {
                self.name(at, *dir, Naming::Set(name.clone(), Node::File(*ino)));
            }
            Entry::Remove(dir, name) => self.name(at, *dir, Naming::Remove(name.clone())),
            Entry::Rename(dir, from, to, node) => {
                self.name(at, *dir, Naming::Rename(from.clone(), to.clone(), *node));
            }
            Entry::Write(ino, offset, bytes) => {
                self.change(at, *ino, Change::Write { offset: *offset, bytes: bytes.clone() });
            }
            Entry::SetLen(ino, len) => self.change(at, *ino, Change::SetLen(*len)),
            Entry::SyncFile(ino) => self.sync(*ino),
            Entry::SyncFailed(ino, how) => self.forget(at, *ino, *how),
            Entry::SyncDir(id) => {
                let dir = self.dirs.get_mut(id).expect("synced directories exist");
                dir.pending.clear();
                dir.durable = dir.visible.clone();
            }
            Entry::SyncDirFailed(_) => {}
        }
    }

    fn name(&mut self, at: usize, dir: DirId, what: Naming) {
        let dir = self.dirs.get_mut(&dir).expect("names are made in directories that exist");
        what.apply(&mut dir.visible);
        dir.pending.push(Pending { at, what });
    }

    fn change(&mut self, at: usize, ino: Ino, what: Change) {
        let inode = self.inodes.get_mut(&ino).expect("files that are written exist");
        what.apply(Arc::make_mut(&mut inode.visible));
        inode.pending.push(Pending { at, what });
    }

    fn sync(&mut self, ino: Ino) {
        let inode = self.inodes.get_mut(&ino).expect("files that are synced exist");
        if !inode.forgot {
            inode.pending.clear();
            inode.durable = inode.visible.clone();
            return;
        }
        let content = Arc::make_mut(&mut inode.durable);
        inode.pending.drain(..).for_each(|p| p.what.apply(content));
    }

    fn forget(&mut self, at: usize, ino: Ino, how: Forgets) {
        let inode = self.inodes.get_mut(&ino).expect("files that are synced exist");
        match how {
            Forgets::Keeps => inode.forgot = true,
            Forgets::Reverts => inode.visible = inode.durable.clone(),
            Forgets::Delays => return,
            Forgets::Partly(seed) => {
                inode.forgot = true;
                let content = Arc::make_mut(&mut inode.durable);
                let seed = derive_seed(at as u64, "pages") ^ u64::from(seed);
                let mut random = Random::from_seed(seed);
                inode.pending.iter().for_each(|p| write_partly(content, &p.what, &mut random));
            }
        }
        inode.pending.clear();
    }

    /// What `names`, a path from the root, stands for: `Err` if a directory on the way is
    /// missing, with whether a file stands in its place.
    pub fn find<'a>(
        &self,
        mut names: impl Iterator<Item = &'a str>,
    ) -> Result<Option<Node>, NoPath> {
        let mut node = Node::Dir(0);
        let mut missing = false;
        for name in names.by_ref() {
            let Node::Dir(dir) = node else { return Err(NoPath::Blocked) };
            if missing {
                return Err(NoPath::Missing);
            }
            match self.dirs[&dir].visible.get(name) {
                Some(next) => node = *next,
                None => missing = true,
            }
        }
        Ok((!missing).then_some(node))
    }
}

/// Why a path leads nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoPath {
    /// A directory on the way does not exist.
    Missing,
    /// What should be a directory is a file.
    Blocked,
}
