//! Backups of a database in a directory of their own, many of which share their tables.
//!
//! ```text
//!   backups/shared/000012_9f86d081884c7d65_67108864.sst   number, sum of the content, length
//!   backups/private/3/MANIFEST-000040  IDENTITY  OPTIONS-000038
//!   backups/meta/3                                        which files, with length and sum
//! ```
//!
//! A table that is there already, by number, length and the sum of all its bytes, is not copied again.
//! A backup exists exactly if its meta file does, and that appears last, whole or not at all. A backup
//! that is being made, was cut short or is being deleted has a list `meta/3.unmade` instead: what it
//! names goes with the next change, unless a backup needs it (`create`).
//!
//! Keeps: what a meta file names is on stable storage before it appears, and nothing that any meta
//! file names is deleted. If one can't be read, nothing is. What no list names is never deleted, and
//! nothing is written to a directory that is not ours (`survey`).
//! Leaves to others: what belongs to a database at one moment ([`Checkpoint`](crate::checkpoint)),
//! keeping its files alive meanwhile, and which handle may be at work here (the directory is locked). A
//! handle makes one change at a time.

mod create;
mod folder;
mod list;
mod survey;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use lithify_base::{Error, ErrorKind, Result, memory, shown_path};
use lithify_env::sync::Mutex;
use lithify_env::{FileRef, FsRef, LockGuard, read_full_at, write_all_at};
use lithify_files::dir::{Allowance, Dir, OrTyped, denied_by};
use xxhash_rust::xxh3::Xxh3;

use self::folder::{Folder, make_file};
use self::list::Unmade;
pub use self::list::{BackedUp, Backup};
use crate::copy::in_chunks;

/// Largest meta file that is read, bytes: about a million tables.
const META_MAX: u64 = 128 << 20;

/// What a backup is about to do or has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of tables looked at: read, and copied where they were not there.
    pub done: u64,
    /// Bytes of all tables.
    pub total: u64,
    /// Bytes that were copied.
    pub copied: u64,
}

/// A directory of backups, locked.
pub struct BackupDir {
    /// Where it is.
    named: Dir,
    held: Mutex<Held>,
}

/// What is held as soon as the directory is there.
#[derive(Default)]
struct Held {
    /// Through this everything in it is reached ([`Dir::hold`]).
    dir: Option<Dir>,
    lock: Option<Box<dyn LockGuard>>,
    /// A change is under way.
    busy: bool,
}

/// A change that is under way: a second one would take what the first has made, and no list names yet, for
/// what is left of one that was cut short.
struct Change<'a>(&'a BackupDir);

impl Drop for Change<'_> {
    fn drop(&mut self) {
        self.0.held.lock().busy = false;
    }
}

impl BackupDir {
    /// The backups in `path`. If there are none, nothing is written until the first one is made.
    ///
    /// # Errors
    /// `InvalidArgument`, and nothing was written, if backups of another program are there; Locked if
    /// another handle or process is at work there; Io.
    pub fn open(fs: FsRef, path: &Path) -> Result<BackupDir> {
        let opened = BackupDir { named: Dir::new(fs, path), held: Mutex::default() };
        let survey = opened.survey()?;
        match &survey.foreign {
            // Ours are among them, and can still be read: nothing is changed here.
            Some(_) if survey.ours => {}
            Some(what) => return Err(opened.foreign(what)),
            None if survey.lists => match opened.make(0) {
                // Backups that may only be read can be listed, verified and restored without the lock.
                Err(e) if is_read_only(&e) => {}
                made => made?,
            },
            None => {}
        }
        Ok(opened)
    }

    /// The directory, held if it is there.
    fn dir(&self) -> Result<Dir> {
        let mut held = self.held.lock();
        if let Some(dir) = &held.dir {
            return Ok(dir.clone());
        }
        let dir = self.named.hold_if_there()?;
        if dir.list_if_there()?.is_some() {
            held.dir = Some(dir.clone());
        }
        Ok(dir)
    }

    /// Begins a change. Makes sure that all in the directory may be ours, that it is there, and locked. What is
    /// new of it has no permission bit of `denied`.
    ///
    /// # Errors
    /// Locked if a change is under way; a wait for it could be one for oneself, inside of `watch`.
    fn enter(&self, denied: u32) -> Result<Change<'_>> {
        self.check_ours()?;
        self.make(denied)?;
        let mut held = self.held.lock();
        if held.busy {
            let what =
                "a backup is being made or deleted through this handle; try again once it is done";
            return Err(Error::new(ErrorKind::Locked, what).in_file(self.named.path().display()));
        }
        held.busy = true;
        Ok(Change(self))
    }

    /// Makes the directory as far as it is not there, and locks it.
    fn make(&self, denied: u32) -> Result<()> {
        let dir = self.dir()?;
        let mut held = self.held.lock();
        if held.lock.is_some() {
            return Ok(());
        }
        let dir = dir.create(denied)?;
        for part in PARTS {
            folder(&dir, Path::new(part)).create()?;
        }
        let guard = dir.lock().map_err(|e| match e.kind() {
            ErrorKind::Locked => Error::new(
                ErrorKind::Locked,
                "another handle or process is at work on these backups; try again",
            )
            .in_file(dir.path().display())
            .caused_by(e),
            _ => e,
        })?;
        // Its name is what tells that the directory is ours as long as there is no list.
        dir.sync()?;
        held.dir.get_or_insert(dir);
        held.lock = Some(guard);
        Ok(())
    }

    /// Refuses a place for backups that belongs to something else, before anything is written: to the
    /// database in `from`, to other files, or to another program's backups.
    ///
    /// # Errors
    /// `InvalidArgument`.
    pub fn check_place(&self, from: &Dir) -> Result<()> {
        self.named.check_apart(from, "a directory of backups")?;
        match self.check_ours()?.backups {
            true => Ok(()),
            false => self.named.check_empty("a directory of backups"),
        }
    }

    /// The backups, the oldest first. One that can't be read is an error in its place.
    ///
    /// # Errors
    /// Io if the directory can't be listed.
    pub fn list(&self) -> Result<Vec<Result<Backup>>> {
        Ok(self.ids()?.into_iter().map(|id| self.read(id)).collect())
    }

    /// Numbers of all backups, ascending.
    ///
    /// # Errors
    /// As [`list`](BackupDir::list).
    pub fn ids(&self) -> Result<BTreeSet<u64>> {
        let names = self.part(META)?.names()?;
        Ok(names.iter().filter_map(|name| id_of(name)).collect())
    }

    /// What backup `id` has.
    ///
    /// # Errors
    /// NotFound if there is none; Corruption if its list is damaged.
    pub fn read(&self, id: u64) -> Result<Backup> {
        self.read_list(Meta::List(id), Backup::parse)?.ok_or_else(|| {
            let what = format!("there is no backup {id} in {}", self.named.path().display());
            Error::new(ErrorKind::NotFound, what)
        })
    }

    /// What is known of a backup that does not exist.
    fn read_unmade(&self, id: u64) -> Result<Unmade> {
        let missing = || Error::corruption("the list is gone");
        self.read_list(Meta::Unmade(id), Unmade::parse)?.ok_or_else(missing)
    }

    /// Reads a list; `None` if there is none.
    fn read_list<T: AsRef<Backup>>(
        &self,
        file: Meta,
        parse: fn(&[u8]) -> Result<T>,
    ) -> Result<Option<T>> {
        let (meta, name) = (self.part(META)?, file.name());
        let Some(opened) = meta.open(&name)? else { return Ok(None) };
        let read = text_of(&opened).and_then(|bytes| parse(&bytes));
        let list = read.map_err(|e| e.in_file(meta.path(&name).display()))?;
        match list.as_ref().id {
            id if file.id() == id => Ok(Some(list)),
            id => Err(Error::corruption(format!("it is the list of backup {id}"))
                .in_file(meta.path(&name).display())),
        }
    }

    /// Reads every file of backup `id`; what is wrong with it.
    ///
    /// # Errors
    /// As [`read`](BackupDir::read).
    pub fn verify(&self, id: u64, watch: &mut dyn FnMut(Progress)) -> Result<Vec<Error>> {
        let backup = self.read(id)?;
        let mut progress = Progress { total: backup.bytes(), ..Progress::default() };
        let mut damage = Vec::new();
        for (file, folder, name) in self.files(&backup)? {
            if let Err(error) = transfer(&folder, &name, &file, None) {
                damage.push(error);
            }
            progress.done += file.bytes;
            watch(progress);
        }
        Ok(damage)
    }

    /// Makes a database of backup `id` in `to`, which must be absent or empty. Every byte is checked
    /// on its way.
    ///
    /// # Errors
    /// InvalidArgument if `to` has something in it; Corruption naming the damaged file; Io, NoSpace.
    /// What was written stays, and opens as no database.
    pub fn restore(&self, id: u64, to: &Dir, watch: &mut dyn FnMut(Progress)) -> Result<Backup> {
        let backup = self.check_restore(id, to)?;
        to.check_empty("a restored backup")?;
        let made = to.create(self.denied(&backup)?)?;
        let copied = made.begin().and_then(|to| self.copy_to(&to, &backup, watch));
        copied.map_err(|e| e.left_unfinished(shown_path(to.path())))?;
        Ok(backup)
    }

    /// What backup `id` has, if `to` is a place that it may be restored to, once that is empty.
    ///
    /// # Errors
    /// As [`read`](BackupDir::read); `InvalidArgument` if `to` lies among the backups.
    pub fn check_restore(&self, id: u64, to: &Dir) -> Result<Backup> {
        let backup = self.read(id)?;
        to.check_apart(&self.named, "a restored backup")?;
        Ok(backup)
    }

    /// Copies what a backup has, and makes it a database.
    fn copy_to(&self, to: &Dir, backup: &Backup, watch: &mut dyn FnMut(Progress)) -> Result<()> {
        let mut progress = Progress { total: backup.bytes(), ..Progress::default() };
        for (file, folder, name) in self.files(backup)? {
            transfer(&folder, &name, &file, Some(to))?;
            progress.done += file.bytes;
            progress.copied += file.bytes;
            watch(progress);
        }
        to.sync()?;
        to.point_current(backup.manifest)?;
        to.finish()
    }

    /// Deletes backup `id` and what no other needs.
    ///
    /// # Errors
    /// NotFound if there is none; `InvalidArgument`, and nothing was changed, if something is here that
    /// is not ours; Io.
    pub fn delete(&self, id: u64) -> Result<()> {
        if !self.ids()?.contains(&id) {
            self.read(id)?;
        }
        self.forget(&[id])
    }

    /// Deletes all but the newest `keep`; their numbers.
    ///
    /// # Errors
    /// As [`delete`](BackupDir::delete).
    pub fn purge(&self, keep: usize) -> Result<Vec<u64>> {
        if !self.check_ours()?.lists {
            return Ok(Vec::new());
        }
        let ids: Vec<u64> = self.ids()?.into_iter().collect();
        let old = &ids[..ids.len().saturating_sub(keep)];
        self.forget(old)?;
        Ok(old.to_vec())
    }

    /// Backups end, one after the other from the oldest on; then what only they named goes.
    fn forget(&self, ids: &[u64]) -> Result<()> {
        // A handle that was opened before the directory was made does not have its lock yet.
        let _change = self.enter(0)?;
        let meta = self.part(META)?;
        for &id in ids {
            let name = Meta::List(id).name();
            match self.read(id) {
                Ok(_) => meta.rename(&name, &Meta::Unmade(id).name())?,
                // What it named is not known, and stays.
                Err(e) if e.is_corruption() => meta.remove(&name)?,
                Err(e) => return Err(e),
            }
        }
        meta.sync()?;
        self.collect().map(drop)
    }

    /// The files of a backup and where they are.
    fn files(&self, backup: &Backup) -> Result<Vec<(BackedUp, Folder, String)>> {
        let (shared, private) = (self.part(SHARED)?, self.private(backup.id)?);
        let tables = backup.tables.iter().map(|f| (f.clone(), shared.clone(), f.shared_name()));
        let small = backup.small.iter().map(|f| (f.clone(), private.clone(), f.name.to_string()));
        Ok(tables.chain(small).collect())
    }

    /// The permission bits that no copy of a backup may have: what one of its files, or the way to
    /// them, denies.
    fn denied(&self, backup: &Backup) -> Result<u32> {
        let (mut way, mut least) = (folder(&self.dir()?, Path::new("")).permissions("")?, 0o777);
        for folder in [self.part(SHARED)?, self.private(backup.id)?] {
            way &= folder.permissions("")?;
        }
        for (_, folder, name) in self.files(backup)? {
            least &= folder.permissions(&name)?;
        }
        Ok(denied_by(way, least))
    }

    fn part(&self, part: &str) -> Result<Folder> {
        Ok(folder(&self.dir()?, Path::new(part)))
    }

    fn private(&self, id: u64) -> Result<Folder> {
        Ok(folder(&self.dir()?, &private_path(id)))
    }
}

/// The folder `path` of a directory of backups, which is held: every folder is reached through here,
/// and so through no symbolic link.
fn folder(dir: &Dir, path: &Path) -> Folder {
    Folder::new(Dir::new(dir.fs().clone(), dir.path().join(path)))
}

/// Where the files are that backup `id` has for itself.
fn private_path(id: u64) -> PathBuf {
    Path::new(PRIVATE).join(id.to_string())
}

/// Whether nothing may be written here.
fn is_read_only(e: &Error) -> bool {
    use std::io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    let kind = e.errno().map(|errno| std::io::Error::from_raw_os_error(errno).kind());
    matches!(kind, Some(PermissionDenied | ReadOnlyFilesystem))
}

/// The folders of a directory of backups.
const PARTS: [&str; 3] = [SHARED, PRIVATE, META];
const SHARED: &str = "shared";
const PRIVATE: &str = "private";
const META: &str = "meta";

/// End of the name of a file that is not complete.
const TEMP: &str = "tmp";

/// A file among the lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meta {
    /// `3`: the backup exists.
    List(u64),
    /// `3.unmade`: it does not.
    Unmade(u64),
    /// `3.tmp`: a list that is being written.
    Temp(u64),
}

impl Meta {
    fn of(name: &str) -> Option<Meta> {
        match name.split_once('.') {
            None => id_of(name).map(Meta::List),
            Some((id, "unmade")) => id_of(id).map(Meta::Unmade),
            Some((id, TEMP)) => id_of(id).map(Meta::Temp),
            Some(_) => None,
        }
    }
    fn name(self) -> String {
        match self {
            Meta::List(id) => id.to_string(),
            Meta::Unmade(id) => format!("{id}.unmade"),
            Meta::Temp(id) => format!("{id}.{TEMP}"),
        }
    }
    fn id(self) -> u64 {
        let (Meta::List(id) | Meta::Unmade(id) | Meta::Temp(id)) = self;
        id
    }
}

/// The number that a name spells, if it is one and spells it as we would.
fn id_of(name: &str) -> Option<u64> {
    name.parse().ok().filter(|id: &u64| id.to_string() == name)
}

/// The bytes of a list. No text has zeros in it: a file that has more length than content ends there.
///
/// # Errors
/// Corruption if it has zeros in it, or is too long; LimitExceeded if there is no memory for it.
fn text_of(file: &FileRef) -> Result<Vec<u8>> {
    if file.len().or_typed()? > META_MAX {
        return Err(Error::corruption("the list is too long"));
    }
    let (mut bytes, mut chunk) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        let count = read_full_at(&**file, &mut chunk, bytes.len() as u64).or_typed()?;
        if count == 0 {
            return Ok(bytes);
        }
        if bytes.len() as u64 > META_MAX || chunk[..count].contains(&0) {
            return Err(Error::corruption("the list is no text, or too long"));
        }
        memory::reserve(&mut bytes, count, "the list of a backup")?;
        bytes.extend_from_slice(&chunk[..count]);
    }
}

/// Reads a file of a backup, and makes its copy in `to` if there is one.
fn transfer(folder: &Folder, name: &str, of: &BackedUp, to: Option<&Dir>) -> Result<()> {
    let path = folder.path(name);
    let within = |e: Error| e.in_file(path.display());
    let missing = || within(Error::corruption("a file of the backup is missing"));
    let file = folder.open(name)?.ok_or_else(missing)?;
    let bytes = file.len().or_typed()?;
    if bytes != of.bytes {
        let what = format!("the file has {bytes} bytes, the backup had {}", of.bytes);
        return Err(within(Error::corruption(what)));
    }
    // A file that is next to nothing but long would take for ever.
    Allowance::STREAMED.check(&*file, 0, bytes).map_err(within)?;
    let out = match to {
        Some(to) => Some(make_file(to, &of.name.to_string())?),
        None => None,
    };
    if copy(&file, bytes, out.as_ref()).map_err(within)? != of.sum {
        return Err(within(Error::corruption("the content is not what was backed up")));
    }
    out.map_or(Ok(()), |out| out.sync_all().or_typed())
}

/// Reads `bytes` of a file, writes them to `out` if there is one, and says their sum.
fn copy(file: &FileRef, bytes: u64, out: Option<&FileRef>) -> Result<u64> {
    let mut sum = Xxh3::new();
    in_chunks(file, bytes, |chunk, at| {
        sum.update(chunk);
        out.map_or(Ok(()), |out| write_all_at(&**out, chunk, at).or_typed())
    })?;
    Ok(sum.digest())
}
