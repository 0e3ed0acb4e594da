//! How a backup comes into being, and how what is left of one goes.
//!
//! ```text
//!   meta/3.unmade    making 000012.sst ...                            a crash: its files may go
//!   shared/000012_3.tmp  private/3/MANIFEST-000040 ...  synced          the same
//!   meta/3.unmade    the whole list                                   the same
//!   shared/000012_3.tmp -> shared/000012_9f86d081884c7d65_67108864.sst  the same
//!   meta/3.unmade -> meta/3                                           the backup exists
//! ```
//!
//! A deletion is the last step backwards: `meta/3 -> meta/3.unmade`.
//!
//! Keeps: a file is made only when a durable list names it; what an unmade list names goes, unless a
//! backup needs it, and nothing else does.
//! Leaves to others: what is in a list.

use std::collections::BTreeSet;
use std::path::Path;

use lithify_base::{Error, ErrorKind, Result};
use lithify_env::{FileRef, OpenOpts};
use lithify_files::dir::{Dir, FileName, OPTIONS_MAX, OrTyped};
use xxhash_rust::xxh3::xxh3_64;

use super::folder::Folder;
use super::list::{BackedUp, Backup, Key, Unmade, is_table};
use super::survey::begun;
use super::{BackupDir, META, Meta, PRIVATE, Progress, SHARED};
use super::{copy, folder, id_of, private_path, transfer};
use crate::checkpoint::Checkpoint;
use crate::places::all_at_home;

/// A table to back up.
struct Source {
    name: FileName,
    file: FileRef,
    bytes: u64,
}

/// The shared files as they were before.
struct Shared {
    folder: Folder,
    names: BTreeSet<String>,
    /// What backups need of them, if that is known.
    needed: Option<BTreeSet<Key>>,
}

impl BackupDir {
    /// Backs up `what` of the database in `from`, from which [this place](BackupDir::check_place) was
    /// found to be apart. Its tables must stay meanwhile.
    ///
    /// # Errors
    /// `InvalidArgument`, and nothing was written, if something is here that is not ours; Locked while another
    /// change is under way; Io, NoSpace; Corruption if a table changes under it. The backups from before are as they were.
    pub fn create(
        &self,
        from: &Dir,
        mut what: Checkpoint,
        unix_seconds: u64,
        watch: &mut dyn FnMut(Progress),
    ) -> Result<(Backup, Progress)> {
        let denied = from.denied()?;
        let _change = self.enter(denied)?;
        let to = self.dir()?.hold(denied)?;
        let needed = self.collect()?;
        let id = self.next_id()?;
        all_at_home(&mut what.state);
        let sources = sources(from, &what)?;
        let mut small = vec![FileName::Manifest(what.manifest), FileName::Identity];
        if let Some(options) = what.options.map(FileName::Options) {
            small.extend(from.len_of(options)?.map(|_| options));
        }
        small.extend(what.sections.iter().map(|(number, _)| FileName::Wal(*number)));
        let mut backup = Backup {
            id,
            unix_seconds,
            last_seq: what.state.last_seq,
            manifest: what.manifest,
            tables: Vec::with_capacity(sources.len()),
            small: Vec::new(),
        };
        let making: Vec<_> = sources.iter().map(|s| s.name).chain(small.iter().copied()).collect();
        let meta = folder(&to, Path::new(META));
        write_unmade(&meta, id, &backup.text_with(&making))?;

        let tables = folder(&to, Path::new(SHARED));
        let shared = Shared { names: tables.names()?, folder: tables, needed };
        let total = sources.iter().map(|source| source.bytes).sum();
        let mut progress = Progress { total, ..Progress::default() };
        let mut copied = Vec::new();
        for source in &sources {
            let (table, is_new) = shared.take(id, source)?;
            progress.done += table.bytes;
            if is_new {
                progress.copied += table.bytes;
                copied.push((temp_name(source.name, id), table.shared_name()));
            }
            backup.tables.push(table);
            watch(progress);
        }
        backup.small = write_small(&folder(&to, &private_path(id)), from, &what, &small)?;
        write_unmade(&meta, id, &backup.text())?;
        for (temp, name) in copied {
            shared.folder.rename(&temp, &name)?;
        }
        shared.folder.sync()?;
        meta.rename(&Meta::Unmade(id).name(), &Meta::List(id).name())?;
        meta.sync()?;
        Ok((backup, progress))
    }

    /// A number for a new backup: larger than those from before, and nothing has it.
    fn next_id(&self) -> Result<u64> {
        let (mut last, mut taken) = (0, BTreeSet::new());
        for name in self.part(META)?.names()? {
            match Meta::of(&name) {
                Some(Meta::List(id) | Meta::Unmade(id)) => last = last.max(id),
                Some(Meta::Temp(id)) => drop(taken.insert(id)),
                None => {}
            }
        }
        let of_temp = |name: &String| id_of(name.strip_suffix(".tmp")?.split_once('_')?.1);
        taken.extend(self.part(SHARED)?.names()?.iter().filter_map(of_temp));
        taken.extend(self.part(PRIVATE)?.names()?.iter().filter_map(|name| id_of(name)));
        let mut free = last.checked_add(1);
        while let Some(id) = free.filter(|id| taken.contains(id)) {
            free = id.checked_add(1);
        }
        free.ok_or_else(|| {
            let what = "a backup here has the highest number there is; delete that one, or choose \
                        another directory";
            Error::new(ErrorKind::LimitExceeded, what).in_file(self.named.path().display())
        })
    }

    /// Removes what unmade lists name and no backup needs; what backups need. If a list can't be read,
    /// nothing is known, and nothing goes.
    pub(super) fn collect(&self) -> Result<Option<BTreeSet<Key>>> {
        let ids = self.ids()?;
        let mut needed = BTreeSet::new();
        for id in &ids {
            match self.read(*id) {
                Ok(backup) => needed.extend(backup.tables.iter().map(BackedUp::key)),
                Err(e) if e.is_corruption() => return Ok(None),
                Err(e) => return Err(e),
            }
        }
        let (meta, shared, private) = (self.part(META)?, self.part(SHARED)?, self.part(PRIVATE)?);
        let mut gone = Vec::new();
        for name in meta.names()? {
            let is_gone = match Meta::of(&name) {
                Some(Meta::Unmade(id)) => match self.read_unmade(id) {
                    Ok(unmade) => {
                        unmake_shared(&shared, &unmade, &needed)?;
                        if !ids.contains(&id) {
                            self.unmake_private(&private, &unmade)?;
                        }
                        true
                    }
                    // What it names is not known, so it stays; numbers pass it by.
                    Err(e) if e.is_corruption() => false,
                    Err(e) => return Err(e),
                },
                Some(Meta::Temp(_)) => begun(&meta, &name)?,
                _ => false,
            };
            gone.extend(is_gone.then_some(name));
        }
        if !gone.is_empty() {
            // A list goes after what it names.
            shared.sync()?;
            private.sync()?;
            gone.iter().try_for_each(|name| meta.remove(name))?;
            meta.sync()?;
        }
        Ok(Some(needed))
    }

    /// Removes the files that an unmade backup has for itself.
    fn unmake_private(&self, above: &Folder, unmade: &Unmade) -> Result<()> {
        let dir = self.private(unmade.backup.id)?;
        let small = unmade.backup.small.iter().map(|file| file.name).chain(unmade.making.clone());
        // Backups had this one, too, and did not list it.
        for name in small.chain([FileName::Current]) {
            dir.remove(&name.to_string())?;
        }
        if !above.remove_folder(&unmade.backup.id.to_string())? {
            dir.sync()?;
        }
        Ok(())
    }
}

/// Writes, or replaces, the list of what is being made, durably.
fn write_unmade(meta: &Folder, id: u64, text: &str) -> Result<()> {
    let temp = Meta::Temp(id).name();
    meta.write(&temp, text.as_bytes())?;
    meta.rename(&temp, &Meta::Unmade(id).name())?;
    meta.sync()
}

/// Makes the folder of a backup: manifest, identity and options, and a log of what is prepared if anything is.
fn write_small(
    dir: &Folder,
    from: &Dir,
    what: &Checkpoint,
    names: &[FileName],
) -> Result<Vec<BackedUp>> {
    dir.create()?;
    let mut small = Vec::new();
    for &name in names {
        let bytes = match name {
            FileName::Manifest(number) => what.state.to_manifest(number).0,
            FileName::Identity => what.db_id.clone().into_bytes(),
            // The only log that a backup has.
            FileName::Wal(_) => what.sections.iter().flat_map(|(_, log)| log.clone()).collect(),
            _ => {
                let gone = || Error::corruption("the file is gone").in_file(name);
                from.read_whole(name, OPTIONS_MAX)?.ok_or_else(gone)?
            }
        };
        dir.write(&name.to_string(), &bytes)?;
        small.push(BackedUp { name, bytes: bytes.len() as u64, sum: xxh3_64(&bytes) });
    }
    dir.sync()?;
    Ok(small)
}

/// Removes the shared files that an unmade backup names and no other needs.
fn unmake_shared(shared: &Folder, unmade: &Unmade, needed: &BTreeSet<Key>) -> Result<()> {
    let Unmade { backup, making } = unmade;
    for table in backup.tables.iter().filter(|table| !needed.contains(&table.key())) {
        shared.remove(&table.shared_name())?;
    }
    let names = backup.tables.iter().map(|table| table.name).chain(making.iter().copied());
    for name in names.filter(|name| is_table(*name)) {
        shared.remove(&temp_name(name, backup.id))?;
    }
    Ok(())
}

/// The name among the shared files that a table of backup `id` has until its sum is known.
fn temp_name(table: FileName, id: u64) -> String {
    format!("{:06}_{id}.tmp", table.number().unwrap_or_default())
}

/// The tables of `what`, open, by number.
fn sources(from: &Dir, what: &Checkpoint) -> Result<Vec<Source>> {
    let all = what.state.families.values().flat_map(|family| family.files.values());
    let numbers: BTreeSet<u64> = all.map(|f| f.backing.unwrap_or(f.number)).collect();
    let open = numbers.into_iter().map(|number| {
        let (name, file) = from.open_table(number, OpenOpts::read())?;
        let bytes = file.len().or_typed()?;
        Ok(Source { name, file, bytes })
    });
    open.collect()
}

impl Shared {
    /// A table among the shared files, and whether it had to be copied: it has a name of its own then,
    /// until the sum is on record.
    fn take(&self, id: u64, source: &Source) -> Result<(BackedUp, bool)> {
        let Source { name, ref file, bytes } = *source;
        let (start, end) =
            (format!("{:06}_", name.number().unwrap_or_default()), format!("_{bytes}.sst"));
        let of_number =
            self.names.range(start.clone()..).take_while(|there| there.starts_with(&start));
        if of_number.into_iter().any(|there| there.ends_with(&end)) {
            let table = BackedUp { name, bytes, sum: copy(file, bytes, None)? };
            if self.has(&table)? {
                return Ok((table, false));
            }
        }
        let out = self.folder.make(&temp_name(name, id))?;
        let sum = copy(file, bytes, Some(&out))?;
        out.sync_all().or_typed()?;
        Ok((BackedUp { name, bytes, sum }, true))
    }

    /// Whether a table is there already, byte for byte. One that a list names and that is damaged may
    /// be replaced by a good one.
    ///
    /// # Errors
    /// InvalidArgument if another file has its name.
    fn has(&self, table: &BackedUp) -> Result<bool> {
        let name = table.shared_name();
        if !self.names.contains(&name) {
            return Ok(false);
        }
        match transfer(&self.folder, &name, table, None) {
            Ok(()) => Ok(true),
            Err(e) if !e.is_corruption() => Err(e),
            Err(_) if self.needed.as_ref().is_some_and(|of| of.contains(&table.key())) => Ok(false),
            Err(e) => {
                let what = "the file has the name of a table to back up, another content, and no \
                            list that can be read names it; move it away, or choose another directory";
                Err(Error::invalid(what).in_file(self.folder.path(&name).display()).caused_by(e))
            }
        }
    }
}
