//! A folder of a directory of backups: the one place where its files are reached, each by its name.
//!
//! Keeps: a file is written only by who made it new here, so what another name of it shows, in a
//! database for example, never changes; a list appears under its name whole or not at all.
//! Leaves to others: which names there are.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::PathBuf;

use lithify_base::Result;
use lithify_env::{DirEnt, FileRef, OpenOpts, write_all_at};
use lithify_files::dir::{Dir, OrTyped, typed};

/// A folder. Cheap to clone.
#[derive(Clone)]
pub(super) struct Folder(Dir);

/// Makes the file `name` in `dir`, which has none of that name: every file of a backup, and every one of
/// a restore, comes into being here. What it may not be allowed is denied by `dir`.
pub(super) fn make_file(dir: &Dir, name: &str) -> Result<FileRef> {
    dir.fs().create(&dir.path().join(name), OpenOpts::write()).or_typed()
}

impl Folder {
    pub(super) fn new(dir: Dir) -> Folder {
        Folder(dir)
    }
    /// Makes the folder as far as it is not there, durably.
    pub(super) fn create(&self) -> Result<()> {
        self.0.create(0).map(drop)
    }
    /// Where a file is, for messages.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
    /// Everything in it; nothing if there is no such folder.
    pub(super) fn entries(&self) -> Result<Vec<DirEnt>> {
        match self.0.fs().list(self.0.path()) {
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            other => other.or_typed(),
        }
    }
    /// The names of all that.
    pub(super) fn names(&self) -> Result<BTreeSet<String>> {
        Ok(self.entries()?.into_iter().map(|entry| entry.name).collect())
    }
    /// The permission bits of a file, or of the folder if `name` is empty; all if it is not there.
    pub(super) fn permissions(&self, name: &str) -> Result<u32> {
        let path = if name.is_empty() { self.0.path().to_path_buf() } else { self.path(name) };
        match self.0.fs().permissions(&path) {
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(0o777),
            other => other.or_typed(),
        }
    }
    /// A file to read; `None` if it is absent.
    pub(super) fn open(&self, name: &str) -> Result<Option<FileRef>> {
        match self.0.fs().open(&self.path(name), OpenOpts::read()) {
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            other => other.or_typed().map(Some),
        }
    }
    /// A new file.
    pub(super) fn make(&self, name: &str) -> Result<FileRef> {
        make_file(&self.0, name)
    }
    /// A new file with all its bytes, durable once the folder is.
    pub(super) fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let out = self.make(name)?;
        write_all_at(&*out, bytes, 0).or_typed()?;
        out.sync_all().or_typed()
    }
    /// Gives a file another name, in place of what has that one.
    pub(super) fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.0.fs().rename(&self.path(from), &self.path(to)).or_typed()
    }
    /// Removes a file; fine if it is gone already.
    pub(super) fn remove(&self, name: &str) -> Result<()> {
        match self.0.fs().unlink(&self.path(name)) {
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
            other => other.or_typed(),
        }
    }
    /// Removes a folder in it, unless there is something left in that; whether it is gone.
    pub(super) fn remove_folder(&self, name: &str) -> Result<bool> {
        match self.0.fs().remove_dir(&self.path(name)) {
            Ok(()) => Ok(true),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(true),
            Err(e) if e.kind() == ErrorKind::DirectoryNotEmpty => Ok(false),
            Err(e) => Err(typed(e)),
        }
    }
    /// Makes names made, renamed and removed so far durable.
    pub(super) fn sync(&self) -> Result<()> {
        self.0.sync()
    }
}
