//! Backups of an open database, in a directory that many of them share.

use std::path::Path;

use lithify_base::{Error, Result, shown_path};
use lithify_env::Env;
use lithify_files::dir::{Dir, Listed, OF_A_NEW_DISK};
pub use lithify_store::backup::Progress as BackupProgress;
use lithify_store::backup::{Backup, BackupDir};
use lithify_tree::Settings;

use crate::builder::Builder;
use crate::db::Db;

/// A directory of backups. Tables that several backups have are kept once; each backup is whole by
/// itself, and any may be deleted.
///
/// ```
/// # fn main() -> lithify::Result<()> {
/// # let place = std::env::temp_dir().join(format!("lithify-backup-{}", std::process::id()));
/// use lithify::{Backups, Db, Settings};
///
/// let db = Db::open(place.join("db"), Settings::default())?;
/// db.put(b"a", b"1")?;
/// let backups = Backups::open(place.join("backups"))?;
/// let first = backups.create(&db, &mut |_| {})?;
/// db.delete(b"a")?;
///
/// backups.restore(first.id, place.join("restored"), &mut |_| {})?;
/// let restored = Db::open(place.join("restored"), Settings::default())?;
/// assert_eq!(restored.get(b"a")?.as_deref(), Some(&b"1"[..]));
/// # restored.close()?;
/// # db.close()?;
/// # std::fs::remove_dir_all(&place).ok();
/// # Ok(())
/// # }
/// ```
pub struct Backups {
    env: Env,
    dir: BackupDir,
}

/// One backup.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupSummary {
    /// Its number, larger than those of the ones before.
    pub id: u64,
    /// When it was made, seconds since 1970.
    pub unix_seconds: u64,
    /// The last sequence number in it.
    pub last_sequence: u64,
    /// Its tables.
    pub tables: usize,
    /// Bytes of all its files, shared ones included.
    pub bytes: u64,
    /// Bytes that were copied for it; 0 in a list.
    pub copied: u64,
}

fn summary(backup: &Backup, copied: u64) -> BackupSummary {
    BackupSummary {
        id: backup.id,
        unix_seconds: backup.unix_seconds,
        last_sequence: backup.last_seq,
        tables: backup.tables.len(),
        bytes: backup.bytes(),
        copied,
    }
}

impl Backups {
    /// The backups in directory `path` of this machine. It is made with the first backup, and until
    /// then nothing is written. Once it is there, this handle alone works on it until it is dropped. Threads may
    /// share the handle. One of them can make or delete a backup at a time, and for the others that is `Locked`.
    ///
    /// # Errors
    /// `InvalidArgument`, and nothing was written, if backups of another program are there, RocksDB's for
    /// example, or a link in the place of a folder; `Locked` if another handle or process works on it;
    /// `Io`. A directory that has backups of Lithify besides opens: they can be read, and nothing can be
    /// changed.
    pub fn open(path: impl AsRef<Path>) -> Result<Backups> {
        Backups::open_in(path, Builder::machine(&Settings::default()))
    }
    /// The same in another world; databases in it can be backed up here.
    ///
    /// # Errors
    /// As [`open`](Backups::open).
    pub fn open_in(path: impl AsRef<Path>, env: Env) -> Result<Backups> {
        let dir = BackupDir::open(env.fs.clone(), path.as_ref())?;
        Ok(Backups { env, dir })
    }

    /// The world that they are in.
    pub fn env(&self) -> &Env {
        &self.env
    }

    /// Backs up `db` as it is now; it goes on meanwhile. Its memtable is flushed. Tables are read
    /// whole, and those that an earlier backup has are not written again. `watch` is told how far it
    /// is. What a backup that was cut short left is removed before. Its files are no more readable than
    /// those of the database.
    ///
    /// # Errors
    /// `InvalidArgument` if the directory is that of the database, lies in it or has it inside, or holds
    /// other things than backups of Lithify, and nothing was written; or if the place of a table is
    /// taken by a file that is none. `Locked`, also while this handle makes or deletes another backup; `LimitExceeded` if numbers are at their end; `Io`, `NoSpace`;
    /// what the flush gives; `Unsupported` for a database that LevelDB wrote and that is opened for reading only.
    /// Earlier backups are as they were.
    pub fn create(&self, db: &Db, watch: &mut dyn FnMut(BackupProgress)) -> Result<BackupSummary> {
        let (backup, copied) = db.shell.back_up(&self.dir, watch)?;
        Ok(summary(&backup, copied))
    }

    /// The backups, the oldest first.
    ///
    /// # Errors
    /// `Corruption` naming a list that is damaged; `Io`.
    pub fn list(&self) -> Result<Vec<BackupSummary>> {
        let all = self.dir.list()?;
        all.into_iter().map(|backup| backup.map(|backup| summary(&backup, 0))).collect()
    }

    /// The same without those whose lists are damaged.
    ///
    /// # Errors
    /// `Io`.
    pub fn list_readable(&self) -> Result<Vec<BackupSummary>> {
        let mut all = self.dir.list()?;
        all.retain(|backup| !backup.as_ref().is_err_and(Error::is_corruption));
        all.into_iter().map(|backup| backup.map(|backup| summary(&backup, 0))).collect()
    }

    /// Reads every byte of a backup and compares it with what was backed up: all that is wrong, each
    /// naming its file.
    ///
    /// # Errors
    /// `NotFound` if there is none; `Corruption` if its list is damaged; `Io`.
    pub fn verify(&self, id: u64, watch: &mut dyn FnMut(BackupProgress)) -> Result<Vec<Error>> {
        self.dir.verify(id, watch)
    }

    /// Makes a database of a backup in `to`, which must be absent or empty. Every byte is checked, and no
    /// file is more readable than those of the backup.
    ///
    /// # Errors
    /// As [`verify`](Backups::verify); `InvalidArgument` if `to` has something in it or lies among the
    /// backups; `NoSpace`. What was written until then opens as no database.
    pub fn restore(
        &self,
        id: u64,
        to: impl AsRef<Path>,
        watch: &mut dyn FnMut(BackupProgress),
    ) -> Result<BackupSummary> {
        let to = Dir::new(self.env.fs.clone(), to.as_ref());
        let backup = self.dir.restore(id, &to, watch)?;
        Ok(summary(&backup, backup.bytes()))
    }

    /// [`restore`](Backups::restore) in the place of the database that is in `to`, if there is one. That goes once every
    /// byte of the backup was read and found good, so a backup that is not there or damaged costs nothing. `watch` hears of
    /// the restore alone.
    ///
    /// # Errors
    /// As [`restore`](Backups::restore), and the first thing that [`verify`](Backups::verify) finds; `InvalidArgument` if
    /// `to` has something in it besides a database; `Locked` if that is open. What was there is as it was. Where
    /// the restore itself fails then, as on a full disk, what was there is gone, and `to` opens as no database.
    pub fn restore_over(
        &self,
        id: u64,
        to: impl AsRef<Path>,
        watch: &mut dyn FnMut(BackupProgress),
    ) -> Result<BackupSummary> {
        let place = Dir::new(self.env.fs.clone(), to.as_ref());
        self.dir.check_restore(id, &place)?;
        let listed = place.list_if_there()?.unwrap_or_default();
        let foreign = |entry: &&Listed| entry.file.is_none() && entry.name != OF_A_NEW_DISK;
        if let Some(entry) = listed.iter().find(foreign) {
            let what = format!(
                "a restored backup takes the place of a database, and this directory has `{}` in it, which is none \
                 of one; move it away, or choose another directory",
                entry.name
            );
            return Err(Error::invalid(what).in_file(shown_path(place.path())));
        }
        if !listed.is_empty() {
            let damage = self.dir.verify(id, &mut |_| {})?;
            damage.into_iter().next().map_or(Ok(()), Err)?;
            Builder::new(Settings::default()).env(self.env.clone()).destroy(to.as_ref())?;
        }
        self.restore(id, to, watch)
    }

    /// Deletes a backup, and the tables that no other has.
    ///
    /// Only what its list names goes; if another list can't be read, that is later.
    ///
    /// # Errors
    /// `NotFound` if there is none; `InvalidArgument`, and nothing was changed, if the directory holds
    /// something that is not ours ([`open`](Backups::open)); `Locked`; `Io`.
    pub fn delete(&self, id: u64) -> Result<()> {
        self.dir.delete(id)
    }

    /// Deletes all backups but the newest `keep`; the numbers of those that are gone.
    ///
    /// # Errors
    /// As [`delete`](Backups::delete).
    pub fn purge(&self, keep: usize) -> Result<Vec<u64>> {
        self.dir.purge(keep)
    }
}

impl std::fmt::Debug for Backups {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Backups")
    }
}
