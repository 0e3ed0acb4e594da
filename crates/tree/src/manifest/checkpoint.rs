//! Checkpoints: a second, independent database of the present state.

use std::path::Path;

use lithify_base::{Error, ErrorKind, Result, Seq};
use lithify_env::sync::Arc;
use lithify_env::sync::atomic::Ordering;
use lithify_files::dir::Dir;
use lithify_store::backup::{Backup, BackupDir, Progress};
use lithify_store::checkpoint::Checkpoint;

use crate::open::written::manifest_state;
use crate::shell::Shell;
use crate::write::Held;
use lithify_views::super_version::SuperVersion;

/// Families with what they hold.
pub(crate) type Trees = Vec<(Shell, Arc<SuperVersion>)>;

impl Shell {
    /// Makes a copy of the present state in `path`. The memtables are flushed first, so that the
    /// tables hold everything; they are pinned while they are linked.
    pub fn checkpoint(&self, path: &Path) -> Result<()> {
        let target = Dir::new(self.shared.resources.env.fs.clone(), path);
        target.check_target(&self.shared.resources.dir, "a checkpoint")?;
        let (pinned, last_seq) = self.one_moment()?;
        let copy = self.copy_of(&pinned, last_seq, None);
        copy.write(&self.shared.resources.dir, &target, &mut |_| {}).map(drop)
    }

    /// Backs the present state up into `to`; the backup, and the bytes that were copied for it.
    ///
    /// # Errors
    /// `InvalidArgument` if `to` lies in the database; `ReadOnly` for a handle that only reads where
    /// the log holds writes; `Io`, `NoSpace`.
    pub fn back_up(
        &self,
        to: &BackupDir,
        watch: &mut dyn FnMut(Progress),
    ) -> Result<(Backup, u64)> {
        to.check_place(&self.shared.resources.dir)?;
        // Their tables are pinned for as long as they are held.
        let (trees, last_seq) = self.one_moment()?;
        let unflushed = |sv: &SuperVersion| sv.mems.iter().any(|mem| !mem.table.is_empty());
        if self.shared.is_read_only_handle() && trees.iter().any(|(_, sv)| unflushed(sv)) {
            let what = "the log holds writes that are in no table, and a handle that only reads \
                        can't flush them; open the database for writing to back it up";
            return Err(Error::new(ErrorKind::ReadOnly, what));
        }
        let what = self.copy_of(&trees, last_seq, self.shared.resources.dir.newest_options()?);
        let now = self.shared.resources.env.rt.wall_seconds();
        let (backup, progress) = to.create(&self.shared.resources.dir, what, now, watch)?;
        Ok((backup, progress.copied))
    }

    /// What a copy of these trees is to have.
    pub(crate) fn copy_of(&self, trees: &Trees, last_seq: Seq, options: Option<u64>) -> Checkpoint {
        let manifest = self.shared.next_file();
        let db_id = &self.shared.resources.maker.db_id;
        let named = trees
            .iter()
            .map(|(family, sv)| (family.family.cf, &*family.family.name, &sv.tree.version));
        let named: Vec<_> = named.collect();
        let mut state =
            manifest_state(&named, db_id, self.shared.resources.numbers.peek(), last_seq);
        state.max_cf = self.shared.max_cf.load(Ordering::SeqCst);
        Checkpoint {
            state,
            manifest: manifest.0,
            logs: Vec::new(),
            options,
            db_id: db_id.clone(),
            unsynced: false,
        }
    }

    /// The trees of all families, with everything up to one write. With several families no write is made
    /// meanwhile: a later flush of one would bring in its part of a batch alone.
    pub(crate) fn one_moment(&self) -> Result<(Trees, Seq)> {
        let families = self.families();
        if self.shared.is_read_only_handle() {
            let trees = families.into_iter().map(|family| {
                let sv = family.super_version();
                (family, sv)
            });
            return Ok((trees.collect(), self.shared.writes.published.load(Ordering::Acquire)));
        }
        let mut held = Held::new(self, self.take_turn()?);
        let mut frozen = Vec::new();
        for family in &families {
            frozen.push(family.freeze_for_flush(held.log())?);
        }
        let held = (families.len() > 1).then_some(held);
        for (family, frozen) in families.iter().zip(frozen) {
            family.wait_flushed(frozen)?;
        }
        let trees = families.into_iter().map(|family| {
            let sv = family.super_version();
            (family, sv)
        });
        let trees = trees.collect();
        let last_seq = self.shared.writes.published.load(Ordering::Acquire);
        drop(held);
        Ok((trees, last_seq))
    }
}
