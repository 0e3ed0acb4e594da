//! Backups of a database in a directory of their own, many of which share their tables.
//!
//! ```text
//!   backups/shared/000012_9f86d081884c7d65_67108864.sst   number, sum of the content, length
//!   backups/private/3/MANIFEST-000040  CURRENT  IDENTITY  OPTIONS-000038
//!   backups/meta/3                                        which files, with length and sum
//! ```
//!
//! A table that is there already, by number, length and the sum of all its bytes, is not copied again.
//! The meta file appears last, whole or not at all; so a backup exists exactly if its meta file
//! does, and one that was cut short is litter, which the next one collects. A deletion removes the
//! meta file first.
//!
//! Keeps: what a meta file names is on stable storage before it appears, and nothing that any meta
//! file names is deleted. If one can't be read, nothing is.
//! Leaves to others: what belongs to a database at one moment ([`Checkpoint`]), keeping its files
//! alive meanwhile, and who may be at work here (the directory is locked).

mod list;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use lithify_base::{Error, ErrorKind, Result};
use lithify_env::sync::Mutex;
use lithify_env::{FileRef, FsRef, LockGuard, OpenOpts, read_full_at, write_all_at};
use lithify_format::files::FileName;
use xxhash_rust::xxh3::Xxh3;

pub use self::list::{BackedUp, Backup};
use crate::checkpoint::Checkpoint;
use crate::copy::in_chunks;
use crate::dir::{Dir, OPTIONS_MAX, OrTyped, typed};
use crate::manifest::ManifestLog;

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
    dir: Dir,
    /// Taken as soon as the directory is there.
    lock: Mutex<Option<Box<dyn LockGuard>>>,
}

impl BackupDir {
    /// The backups in `path`. If there are none, nothing is written until the first one is made.
    ///
    /// # Errors
    /// Locked if another handle or process is at work there; Io.
    pub fn open(fs: FsRef, path: &Path) -> Result<BackupDir> {
        let opened = BackupDir { dir: Dir::new(fs, path), lock: Mutex::new(None) };
        if opened.dir.list_if_there()?.is_some_and(|listed| listed.iter().any(|e| e.name == META)) {
            opened.make()?;
        }
        Ok(opened)
    }

    /// Makes the directory as far as it is not there, and locks it.
    fn make(&self) -> Result<()> {
        let mut lock = self.lock.lock();
        if lock.is_some() {
            return Ok(());
        }
        for part in PARTS {
            self.part(part).create(0)?;
        }
        let guard = self.dir.lock().map_err(|e| match e.kind() {
            ErrorKind::Locked => Error::new(
                ErrorKind::Locked,
                "another handle or process is at work on these backups; try again",
            )
            .in_file(self.dir.path().display()),
            _ => e,
        })?;
        *lock = Some(guard);
        Ok(())
    }

    /// Refuses a place for backups that belongs to something else, before anything is written: to the
    /// database in `from` or to other files.
    ///
    /// # Errors
    /// `InvalidArgument`.
    pub fn check_place(&self, from: &Dir) -> Result<()> {
        self.dir.check_apart(from, "a directory of backups")?;
        let listed = self.dir.list_if_there()?.unwrap_or_default();
        if listed.iter().any(|entry| PARTS.contains(&&*entry.name)) {
            return Ok(());
        }
        self.dir.check_empty("a directory of backups")
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
        let entries = self.part(META).list_if_there()?.unwrap_or_default();
        Ok(entries.iter().filter_map(|entry| id_of(&entry.name)).collect())
    }

    /// What backup `id` has.
    ///
    /// # Errors
    /// NotFound if there is none; Corruption if its list is damaged.
    pub fn read(&self, id: u64) -> Result<Backup> {
        let path = self.part(META).path().join(id.to_string());
        let file = match self.fs().open(&path, OpenOpts::read()) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                let what = format!("there is no backup {id} in {}", self.dir.path().display());
                return Err(Error::new(ErrorKind::NotFound, what));
            }
            other => other.or_typed()?,
        };
        let len = file.len().or_typed()?;
        if len > META_MAX {
            return Err(Error::corruption("the list is too long").in_file(path.display()));
        }
        let mut bytes = vec![0; len as usize];
        let count = read_full_at(&*file, &mut bytes, 0).or_typed()?;
        let backup = Backup::parse(&bytes[..count]).map_err(|e| e.in_file(path.display()))?;
        match backup.id == id {
            true => Ok(backup),
            false => Err(Error::corruption(format!("it is the list of backup {}", backup.id))
                .in_file(path.display())),
        }
    }

    /// Backs up `what` of the database in `from`, from which [this place](BackupDir::check_place) was
    /// found to be apart. Its tables must stay meanwhile.
    ///
    /// # Errors
    /// Io, NoSpace; Corruption if a table changes under it. The backups from before are as they were.
    pub fn create(
        &self,
        from: &Dir,
        what: Checkpoint,
        unix_seconds: u64,
        watch: &mut dyn FnMut(Progress),
    ) -> Result<(Backup, Progress)> {
        self.make()?;
        self.collect()?;
        let id = self.ids()?.last().map_or(1, |last| last + 1);
        let all = what.state.families.values().flat_map(|family| family.files.values());
        let numbers: BTreeSet<u64> = all.map(|f| f.backing.unwrap_or(f.number)).collect();
        let mut open = Vec::with_capacity(numbers.len());
        for number in numbers {
            let (name, file) = from.open_table(number, OpenOpts::read())?;
            let bytes = file.len().or_typed()?;
            open.push((name, file, bytes));
        }
        let mut progress =
            Progress { total: open.iter().map(|(_, _, bytes)| bytes).sum(), ..Progress::default() };
        let shared: BTreeSet<String> = self.names(SHARED)?;
        let mut tables = Vec::with_capacity(open.len());
        for (name, file, bytes) in open {
            let table = self.share(name, &file, bytes, &shared, &mut progress)?;
            tables.push(table);
            watch(progress);
        }
        self.part(SHARED).sync()?;
        let last_seq = what.state.last_seq;
        let manifest = what.manifest;
        let small = self.write_small(id, from, what)?;
        let backup = Backup { id, unix_seconds, last_seq, manifest, tables, small };
        self.publish(&backup)?;
        Ok((backup, progress))
    }

    /// Sees to it that a table is among the shared files.
    fn share(
        &self,
        name: FileName,
        file: &FileRef,
        bytes: u64,
        shared: &BTreeSet<String>,
        progress: &mut Progress,
    ) -> Result<BackedUp> {
        let start = format!("{:06}_", name.number().unwrap_or_default());
        let end = format!("_{bytes}.sst");
        let of_number = shared.range(start.clone()..).take_while(|there| there.starts_with(&start));
        if of_number.into_iter().any(|there| there.ends_with(&end)) {
            let sum = copy(file, bytes, None)?;
            let table = BackedUp { name, bytes, sum };
            if shared.contains(&table.shared_name()) {
                progress.done += bytes;
                return Ok(table);
            }
        }
        let dir = self.part(SHARED);
        let dir = dir.path();
        let temp = dir.join(format!("{start}{TEMP}"));
        let out = self.fresh(&temp)?;
        let sum = copy(file, bytes, Some(&out))?;
        out.sync_all().or_typed()?;
        drop(out);
        let table = BackedUp { name, bytes, sum };
        self.fs().rename(&temp, &dir.join(table.shared_name())).or_typed()?;
        progress.done += bytes;
        progress.copied += bytes;
        Ok(table)
    }

    /// An empty file; what a crash left of that name goes.
    fn fresh(&self, path: &Path) -> Result<FileRef> {
        match self.fs().unlink(path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(typed(e)),
            _ => {}
        }
        self.fs().create(path, OpenOpts::write()).or_typed()
    }

    /// Manifest, identity and options of backup `id`.
    fn write_small(&self, id: u64, from: &Dir, what: Checkpoint) -> Result<Vec<BackedUp>> {
        let dir = self.private(id);
        dir.create(0)?;
        let mut names = vec![FileName::Manifest(what.manifest), FileName::Identity];
        dir.write_identity(&what.db_id)?;
        if let Some(number) = what.options {
            let name = FileName::Options(number);
            if let Some(text) = from.read_whole(name, OPTIONS_MAX)? {
                dir.replace(name, FileName::OptionsTemp(number), &text)?;
                names.push(name);
            }
        }
        ManifestLog::create(&dir, what.manifest, what.state)?;
        let file = |name| {
            let file = dir.open_file(name, OpenOpts::read())?;
            let bytes = file.len().or_typed()?;
            Ok(BackedUp { name, bytes, sum: copy(&file, bytes, None)? })
        };
        names.into_iter().map(file).collect()
    }

    /// Makes a backup exist.
    fn publish(&self, backup: &Backup) -> Result<()> {
        let meta = self.part(META);
        let meta = meta.path();
        let (temp, path) = (meta.join(TEMP), meta.join(backup.id.to_string()));
        let out = self.fresh(&temp)?;
        write_all_at(&*out, backup.text().as_bytes(), 0).or_typed()?;
        out.sync_all().or_typed()?;
        drop(out);
        self.fs().rename(&temp, &path).or_typed()?;
        self.fs().sync_dir(meta).or_typed()
    }

    /// Reads every file of backup `id`; what is wrong with it.
    ///
    /// # Errors
    /// As [`read`](BackupDir::read).
    pub fn verify(&self, id: u64, watch: &mut dyn FnMut(Progress)) -> Result<Vec<Error>> {
        let backup = self.read(id)?;
        let mut progress = Progress { total: backup.bytes(), ..Progress::default() };
        let mut damage = Vec::new();
        for (file, path) in self.files(&backup) {
            if let Err(error) = self.transfer(&path, &file, None) {
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
        let backup = self.read(id)?;
        to.check_apart(&self.dir, "a restored backup")?;
        let to = &to.create_copy(&self.private(id), "a restored backup")?;
        let mut progress = Progress { total: backup.bytes(), ..Progress::default() };
        for (file, path) in self.files(&backup) {
            let out = to.create_file(file.name, OpenOpts::write())?;
            self.transfer(&path, &file, Some(&out))?;
            out.sync_all().or_typed()?;
            progress.done += file.bytes;
            progress.copied += file.bytes;
            watch(progress);
        }
        to.sync()?;
        to.point_current(backup.manifest)?;
        Ok(backup)
    }

    /// Deletes backup `id` and what no other needs.
    ///
    /// # Errors
    /// NotFound if there is none; Io.
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
        let ids: Vec<u64> = self.ids()?.into_iter().collect();
        if ids.is_empty() {
            return Ok(ids);
        }
        let old = &ids[..ids.len().saturating_sub(keep)];
        self.forget(old)?;
        Ok(old.to_vec())
    }

    /// Backups end, one after the other from the oldest on; then what only they named goes.
    fn forget(&self, ids: &[u64]) -> Result<()> {
        // A handle that was opened before the directory was made does not have its lock yet.
        self.make()?;
        let meta = self.part(META);
        let meta = meta.path();
        for id in ids {
            self.fs().unlink(&meta.join(id.to_string())).or_typed()?;
        }
        self.fs().sync_dir(meta).or_typed()?;
        self.collect()
    }

    /// Removes what no backup names: what deletions and crashes leave.
    fn collect(&self) -> Result<()> {
        let mut needed = BTreeSet::new();
        let ids = self.ids()?;
        for id in &ids {
            match self.read(*id) {
                Ok(backup) => needed.extend(backup.tables.iter().map(BackedUp::shared_name)),
                // Nobody knows what it needs.
                Err(e) if e.is_corruption() => return Ok(()),
                Err(e) => return Err(e),
            }
        }
        for name in self.names(SHARED)?.difference(&needed) {
            if name.ends_with(".sst") || name.ends_with(TEMP) {
                self.fs().unlink(&self.part(SHARED).path().join(name)).or_typed()?;
            }
        }
        for name in self.names(PRIVATE)? {
            let Some(id) = id_of(&name).filter(|id| !ids.contains(id)) else { continue };
            let dir = self.private(id);
            for entry in dir.list()?.iter().filter(|entry| entry.file.is_some()) {
                self.fs().unlink(&dir.path().join(&entry.name)).or_typed()?;
            }
            // Somebody else's file in it keeps it.
            let _ = self.fs().remove_dir(dir.path());
        }
        Ok(())
    }

    /// The files of a backup and where they are.
    fn files(&self, backup: &Backup) -> Vec<(BackedUp, PathBuf)> {
        let shared = self.part(SHARED);
        let shared = shared.path();
        let private = self.private(backup.id);
        let tables = backup.tables.iter().map(|f| (f.clone(), shared.join(f.shared_name())));
        let small = backup.small.iter().map(|f| (f.clone(), private.path_of(f.name)));
        tables.chain(small).collect()
    }

    /// Reads a file of a backup, and writes it to `out` if there is one.
    fn transfer(&self, path: &Path, of: &BackedUp, out: Option<&FileRef>) -> Result<()> {
        let within = |e: Error| e.in_file(path.display());
        let file = match self.fs().open(path, OpenOpts::read()) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                return Err(within(Error::corruption("a file of the backup is missing")));
            }
            other => other.or_typed()?,
        };
        let bytes = file.len().or_typed()?;
        if bytes != of.bytes {
            let what = format!("the file has {bytes} bytes, the backup had {}", of.bytes);
            return Err(within(Error::corruption(what)));
        }
        match copy(&file, bytes, out).map_err(within)? == of.sum {
            true => Ok(()),
            false => Err(within(Error::corruption("the content is not what was backed up"))),
        }
    }

    fn names(&self, part: &str) -> Result<BTreeSet<String>> {
        let entries = self.part(part).list()?;
        Ok(entries.into_iter().map(|entry| entry.name).collect())
    }

    fn fs(&self) -> &FsRef {
        self.dir.fs()
    }

    fn part(&self, part: &str) -> Dir {
        Dir::new(self.fs().clone(), self.dir.path().join(part))
    }

    fn private(&self, id: u64) -> Dir {
        Dir::new(self.fs().clone(), self.part(PRIVATE).path().join(id.to_string()))
    }
}

/// The folders of a directory of backups.
const PARTS: [&str; 3] = [SHARED, PRIVATE, META];
const SHARED: &str = "shared";
const PRIVATE: &str = "private";
const META: &str = "meta";

/// End of the name of a file that is not complete.
const TEMP: &str = "tmp";

/// The number that a name spells, if it is one and spells it as we would.
fn id_of(name: &str) -> Option<u64> {
    name.parse().ok().filter(|id: &u64| id.to_string() == name)
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
