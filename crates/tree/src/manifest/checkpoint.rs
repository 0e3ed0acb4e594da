//! Checkpoints: a second, independent database of the present state.

use std::collections::BTreeMap;
use std::path::Path;

use lithify_base::{Error, ErrorKind, Result, Seq};
use lithify_env::sync::Arc;
use lithify_env::sync::atomic::{AtomicUsize, Ordering};
use lithify_files::dir::{Dir, FileName};
use lithify_store::backup::{Backup, BackupDir, Progress};
use lithify_store::checkpoint::Checkpoint;
use lithify_store::foreign;

use crate::open::written::manifest_state;
use crate::shell::Shell;
use crate::write::Held;
use crate::write::log::Filling;
use lithify_views::super_version::SuperVersion;

/// How a checkpoint takes what is in no table yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckpointOptions {
    /// Logs that have fewer bytes than this together are copied, and nothing is flushed. With 0 memtables
    /// are flushed first in any case. They are also where a write skipped the log.
    pub copy_logs_below: u64,
}

/// Logs with the bytes of each that count.
type Logs = Vec<(u64, u64)>;

/// What a copy is made of.
struct Moment {
    trees: Trees,
    /// Number of the last write.
    last_seq: Seq,
    /// Those that hold what is in no table, oldest first.
    logs: Logs,
    /// A log of what is prepared, if anything is.
    sections: Option<Vec<u8>>,
}

/// Families with what they hold.
type Trees = Vec<(Shell, Arc<SuperVersion>)>;

impl Shell {
    /// Makes a copy of the present state in `path`. The memtables are flushed first, so that the
    /// tables hold everything; they are pinned while they are linked.
    pub fn checkpoint(&self, path: &Path) -> Result<()> {
        let target = Dir::new(self.shared.resources.env.fs.clone(), path);
        target.check_target(&self.shared.resources.dir, "a checkpoint")?;
        let moment = self.one_moment()?;
        let copy = self.copy_of(&moment, None);
        copy.write(&self.shared.resources.dir, &target, &mut |_| {}).map(drop)
    }

    /// The same, with the log that the database would go on with: a copy of those that hold what is in no
    /// table, if they are small enough, else an empty one.
    pub fn checkpoint_with_log(&self, path: &Path, options: &CheckpointOptions) -> Result<()> {
        let (from, fs) = (&self.shared.resources.dir, self.shared.resources.env.fs.clone());
        let target = Dir::new(fs, path);
        target.check_target(from, "a checkpoint")?;
        // Logs are copied after the turn is passed on.
        let _kept = self.keep_files()?;
        let small = match self.shared.is_read_only_handle() {
            true => None,
            false => self.moment_of_logs(options.copy_logs_below)?,
        };
        let moment = match small {
            Some(moment) => moment,
            None => {
                let moment = self.one_moment()?;
                // The number of a log that comes later than all that the trees name.
                let logs = vec![(self.shared.next_file().0, 0)];
                Moment { logs, ..moment }
            }
        };
        let mut copy = self.copy_of(&moment, None);
        // The tree of a family that was not flushed for long names logs that are gone.
        copy.state.min_log_to_keep =
            moment.logs.iter().map(|(number, _)| *number).min().unwrap_or(0);
        copy.logs = moment.logs;
        copy.write(from, &target, &mut |_| {}).map(drop)
    }

    /// The trees as of now with the logs that hold the rest, with the bytes of each; `None` if these
    /// have `most` bytes or more, or do not hold all of the rest.
    fn moment_of_logs(&self, most: u64) -> Result<Option<Moment>> {
        if most == 0 {
            return Ok(None);
        }
        let mut held = Held::new(self, self.take_turn()?);
        let log = held.log();
        self.check_replaced(log, false)?;
        if log.families.iter().any(Filling::lacks_log) {
            return Ok(None);
        }
        if let Some(wal) = &mut log.wal {
            wal.write_out()?;
        }
        // The logs come first: trees that are looked at later need no older ones, and none is begun meanwhile.
        let now = log.wal_number.0;
        let numbers: Vec<u64> =
            self.shared.writes.logs.lock().iter().map(|log| log.number.0).collect();
        let trees: Trees = self.families().into_iter().map(with_tree).collect();
        // These trees say what they need: what the manifest says may be of a flush that is not in them yet.
        let needs =
            |(_, sv): &(Shell, Arc<SuperVersion>)| sv.first_log(sv.tree.version.log_number(), now);
        let first = trees.iter().map(needs).min().unwrap_or(now);
        if first < now && !numbers.contains(&first) {
            // Such a flush is on its way, and the log of what it flushed is gone already.
            return Ok(None);
        }
        // A file may be longer than what was written, and one that ended shorter than it will be.
        let current = log.wal.as_ref().map(|wal| (now, wal.written()));
        let ends: BTreeMap<u64, u64> = log.kept.iter().copied().chain(current).collect();
        let mut logs = Vec::new();
        for number in numbers.into_iter().filter(|number| *number >= first) {
            let len = self.shared.resources.dir.len_of(FileName::Wal(number))?;
            let (Some(len), Some(end)) = (len, ends.get(&number)) else { return Ok(None) };
            logs.push((number, len.min(*end)));
        }
        if logs.is_empty() {
            logs.push((now, 0));
        }
        let last_seq = self.shared.writes.published.load(Ordering::Acquire);
        let total: u64 = logs.iter().map(|(_, bytes)| bytes).sum();
        let sections = self.shared.writes.prepared.log(last_seq)?;
        Ok((total < most).then_some(Moment { trees, last_seq, logs, sections }))
    }

    /// Backs the present state up into `to`; the backup, and the bytes that were copied for it.
    ///
    /// # Errors
    /// `InvalidArgument` if `to` lies in the database; `ReadOnly` for a handle that only reads where
    /// the log holds writes, `Unsupported` for one on a directory of LevelDB; `Io`, `NoSpace`.
    pub fn back_up(
        &self,
        to: &BackupDir,
        watch: &mut dyn FnMut(Progress),
    ) -> Result<(Backup, u64)> {
        to.check_place(&self.shared.resources.dir)?;
        // Their tables are pinned for as long as they are held.
        let moment = self.one_moment()?;
        let what = self.copy_of(&moment, self.shared.resources.dir.newest_options()?);
        let now = self.shared.resources.env.rt.wall_seconds();
        let (backup, progress) = to.create(&self.shared.resources.dir, what, now, watch)?;
        Ok((backup, progress.copied))
    }

    /// What a copy of that moment is to have.
    fn copy_of(&self, moment: &Moment, options: Option<u64>) -> Checkpoint {
        let manifest = self.shared.next_file();
        let db_id = &self.shared.resources.maker.db_id;
        let named = moment
            .trees
            .iter()
            .map(|(family, sv)| (family.family.cf, &*family.family.name, &sv.tree.version));
        let named: Vec<_> = named.collect();
        let sections = moment.sections.clone().map(|log| (self.shared.next_file().0, log));
        let mut state =
            manifest_state(&named, db_id, self.shared.resources.numbers.peek(), moment.last_seq);
        if let Some((number, log)) = &sections {
            state.sections_from = *number;
            state.wals.insert(*number, Some(log.len() as u64));
        }
        state.max_cf = self.shared.max_cf.load(Ordering::SeqCst);
        Checkpoint {
            state,
            manifest: manifest.0,
            logs: Vec::new(),
            sections,
            options,
            db_id: db_id.clone(),
            unsynced: false,
        }
    }

    /// The trees of all families, with everything up to one write. With several families no write is made
    /// meanwhile: a later flush of one would bring in its part of a batch alone, as one of what was prepared would
    /// commit what is prepared here.
    ///
    /// # Errors
    /// `ReadOnly` for a handle that only reads where the log holds writes; [`foreign::check_complete`]'s; a flush's.
    fn one_moment(&self) -> Result<Moment> {
        if self.shared.is_read_only_handle() {
            let trees: Trees = self.families().into_iter().map(with_tree).collect();
            if trees.iter().any(|(_, sv)| sv.mems.iter().any(|mem| !mem.table.is_empty())) {
                let what = "the log holds writes that are in no table, and a handle that only reads \
                            can't flush them; open the database for writing to copy it";
                return Err(Error::new(ErrorKind::ReadOnly, what));
            }
            let files = trees.iter().flat_map(|(_, sv)| sv.tree.version.files());
            let resources = &self.shared.resources;
            foreign::check_complete(&resources.dir, &resources.maker.db_id, files)?;
            return self.moment(trees);
        }
        let mut held = Held::new(self, self.take_turn()?);
        // None comes or goes meanwhile.
        let families = self.families();
        let mut frozen = Vec::new();
        for family in &families {
            frozen.push(family.freeze_for_flush(held.log())?);
        }
        let alone = families.len() == 1 && self.shared.writes.prepared.is_empty();
        let _copying = Copying::new(&self.shared.writes.copies);
        let held = (!alone).then_some(held);
        for (family, frozen) in families.iter().zip(frozen) {
            family.wait_flushed(frozen)?;
        }
        let mut moment = self.moment(families.into_iter().map(with_tree).collect())?;
        if alone {
            // What was prepared meanwhile relies on writes that are not in these trees.
            moment.sections = None;
        }
        drop(held);
        Ok(moment)
    }

    /// The moment that these trees are of, with no log.
    fn moment(&self, trees: Trees) -> Result<Moment> {
        let last_seq = self.shared.writes.published.load(Ordering::Acquire);
        let sections = self.shared.writes.prepared.log(last_seq)?;
        Ok(Moment { trees, last_seq, logs: Vec::new(), sections })
    }
}

/// A copy waits for flushes, and may do so without the write turn. While it lives an ingestion waits until what was written
/// before it is in tables.
struct Copying<'a>(&'a AtomicUsize);

impl<'a> Copying<'a> {
    fn new(copies: &'a AtomicUsize) -> Copying<'a> {
        copies.fetch_add(1, Ordering::SeqCst);
        Copying(copies)
    }
}

impl Drop for Copying<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn with_tree(family: Shell) -> (Shell, Arc<SuperVersion>) {
    let sv = family.super_version();
    (family, sv)
}
