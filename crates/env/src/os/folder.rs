//! Directories that are held open, and names in them.
//!
//! A path is a promise about a moment: between two calls a stranger with a hand on one of its
//! directories can make it lead elsewhere, and a name inside can be a link to anywhere from the
//! start. So a directory is opened once, by the path that the user gave, and what lies in it is asked
//! for by that handle, one name after the other, none of them a symbolic link (`openat` with
//! `O_NOFOLLOW`; the kernel's `RESOLVE_BENEATH` does the same in one call, where it is allowed).
//!
//! Keeps: nothing outside of a held directory is reached by a name in it.
//! Leaves to others: which paths are names in it ([`super::posix`]).

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{self, AtFlags, CWD, FileType, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};

use crate::fs::EntryKind;

/// A directory that is held open.
#[derive(Debug)]
pub(super) struct Folder {
    fd: OwnedFd,
    path: PathBuf,
    /// Permission bits that nothing made in it gets.
    denied: u32,
}

impl Folder {
    /// `fd` is what `path` led to.
    pub(super) fn new(fd: OwnedFd, path: &Path, denied: u32) -> Self {
        Self { fd, path: plain(path).to_path_buf(), denied }
    }

    /// Whether `path` is this directory, or lies in it by its letters.
    pub(super) fn holds(&self, path: &Path) -> bool {
        self.names_in(path).is_some()
    }

    /// The names that lead from here to `path`, if it lies in here by its letters.
    pub(super) fn names_in<'a>(&self, path: &'a Path) -> Option<(&Self, &'a Path)> {
        let names = plain(path).strip_prefix(&self.path).ok()?;
        let up = names.components().any(|c| !matches!(c, Component::Normal(_)));
        (!up).then_some((self, names))
    }

    /// The number of names in its path: of two folders that a path lies in, the deeper one counts.
    pub(super) fn depth(&self) -> usize {
        self.path.components().count()
    }

    /// The place that `names` lead to. Directories on the way are opened, and must be directories.
    pub(super) fn place<'a>(&'a self, names: &'a Path) -> rustix::io::Result<Place<'a>> {
        let mut place = Place {
            above: Above::Held(self.fd.as_fd()),
            name: Path::new("."),
            denied: self.denied,
            follow: AtFlags::SYMLINK_NOFOLLOW,
        };
        let mut names = names.components();
        let Some(first) = names.next() else { return Ok(place) };
        place.name = Path::new(first.as_os_str());
        for name in names {
            let above = place.open_dir()?;
            place =
                Place { above: Above::Opened(above), name: Path::new(name.as_os_str()), ..place };
        }
        Ok(place)
    }
}

/// `./a` is `a`.
fn plain(path: &Path) -> &Path {
    path.strip_prefix(".").unwrap_or(path)
}

/// What a path is a name in.
enum Above<'a> {
    /// The working directory, or nothing, for paths from the root.
    Anywhere,
    Held(BorrowedFd<'a>),
    Opened(OwnedFd),
}

/// A name in an open directory, or a path that the user gave.
pub(super) struct Place<'a> {
    above: Above<'a>,
    name: &'a Path,
    denied: u32,
    /// `SYMLINK_NOFOLLOW` for a name in a held directory.
    follow: AtFlags,
}

impl<'a> Place<'a> {
    /// A path as it is, with links followed.
    pub(super) fn anywhere(path: &'a Path) -> Self {
        Self { above: Above::Anywhere, name: path, denied: 0, follow: AtFlags::empty() }
    }

    /// The directory that [`Place::name`] is in.
    pub(super) fn dir(&self) -> BorrowedFd<'_> {
        match &self.above {
            Above::Anywhere => CWD,
            Above::Held(fd) => *fd,
            Above::Opened(fd) => fd.as_fd(),
        }
    }

    /// The name, to be asked for in [`Place::dir`].
    pub(super) fn name(&self) -> &Path {
        self.name
    }

    /// Permission bits that nothing made here gets.
    pub(super) fn denied(&self) -> u32 {
        self.denied
    }

    /// The permissions of what is made here, before the umask.
    pub(super) fn mode(&self, all: u32) -> Mode {
        Mode::from_raw_mode(all & !self.denied)
    }

    /// What is here.
    pub(super) fn stat(&self) -> rustix::io::Result<fs::Stat> {
        fs::statat(self.dir(), self.name, self.follow)
    }

    /// Opens what is here; a symbolic link in a held directory is none (`ELOOP`).
    pub(super) fn open(&self, flags: OFlags, mode: u32) -> rustix::io::Result<OwnedFd> {
        let flags = if self.follow.is_empty() { flags } else { flags | OFlags::NOFOLLOW };
        retry_on_intr(|| fs::openat(self.dir(), self.name, flags, self.mode(mode)))
    }

    /// The file system that the directory here is on. No descriptor is needed for one that is held.
    pub(super) fn space(&self) -> rustix::io::Result<fs::StatVfs> {
        match &self.above {
            Above::Anywhere => fs::statvfs(self.name),
            Above::Held(fd) if self.name == Path::new(".") => fs::fstatvfs(fd),
            _ => fs::fstatvfs(&self.open_dir()?),
        }
    }

    /// Opens the directory that is here.
    pub(super) fn open_dir(&self) -> rustix::io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match self.open(flags, 0) {
            // Linux says so of links, too, when they are not to be followed.
            Err(Errno::NOTDIR) if self.stat().is_ok_and(|s| is_link(&s)) => Err(Errno::LOOP),
            other => other,
        }
    }
}

fn is_link(stat: &fs::Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode).is_symlink()
}

/// What a name stands for.
pub(super) fn kind_of(stat: &fs::Stat) -> EntryKind {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => EntryKind::File,
        FileType::Directory => EntryKind::Dir,
        _ => EntryKind::Other,
    }
}

/// Why something is not opened as a file; `None` for a regular file.
pub(super) fn not_opened(stat: &fs::Stat) -> Option<io::Error> {
    let what = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => return None,
        FileType::Directory => return Some(Errno::ISDIR.into()),
        FileType::Symlink => {
            "it is a symbolic link, and none is followed inside this directory, as it may lead anywhere; \
             put the file itself here"
        }
        FileType::Fifo => "it is a FIFO, not a regular file; remove it",
        FileType::Socket => "it is a socket, not a regular file; remove it",
        _ => "it is a device, not a regular file; remove it",
    };
    Some(io::Error::new(io::ErrorKind::InvalidInput, what))
}
