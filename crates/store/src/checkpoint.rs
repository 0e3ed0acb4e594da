//! A consistent copy of a database at one moment, in a new directory.
//!
//! Tables are immutable, so they get a second name (a hard link) or, on another file system, a
//! copy; logs grow, so their first bytes are copied; the manifest is written anew. The id stays
//! the same, because block sums are bound to it through the files' base contexts. Tables of every directory
//! come into the one of the copy.
//!
//! Keeps: CURRENT appears last ([`Dir::begin`]). A checkpoint that was interrupted has none, opens as no
//! database, and is refused as a target, with the advice to remove it.
//! Leaves to others: keeping the files alive meanwhile, and writing out the logs before.

use lithify_base::{Result, shown_path};
use lithify_env::{OpenOpts, write_all_at};
use lithify_files::dir::{Dir, FileName, OrTyped};
use lithify_journal::manifest::ManifestState;

use crate::copy::{copy, link_table};
use crate::manifest::ManifestLog;
use crate::places::all_at_home;

pub use crate::copy::Placed;

/// What goes into a checkpoint.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    /// The tree and the counters. Every file it names must be pinned.
    pub state: ManifestState,
    /// Number of the new manifest.
    pub manifest: u64,
    /// Logs to copy, with the number of bytes of each that count; one of 0 bytes need not exist, and is made.
    pub logs: Vec<(u64, u64)>,
    /// A log to make, with its content: what is prepared.
    pub sections: Option<(u64, Vec<u8>)>,
    /// The options file to copy, if there is one.
    pub options: Option<u64>,
    /// The database id.
    pub db_id: String,
    /// The tables may never have been synced: someone copied them here. Ours always were.
    pub unsynced: bool,
}

/// Makes log `number` with this content, durable once the directory is synced.
///
/// # Errors
/// Io and NoSpace.
pub fn write_log(dir: &Dir, number: u64, content: &[u8]) -> Result<()> {
    let log = dir.create_file(FileName::Wal(number), OpenOpts::write())?;
    write_all_at(&*log, content, 0).or_typed()?;
    log.sync_all().or_typed()
}

impl Checkpoint {
    /// Writes the checkpoint to `to`, which must be absent or empty; the directory, held, and how its
    /// tables came there. `watch` is told of the bytes of
    /// each table that is there.
    ///
    /// # Errors
    /// InvalidArgument if `to` has something in it; Io and NoSpace. What was written stays.
    pub fn write(
        mut self,
        from: &Dir,
        to: &Dir,
        watch: &mut dyn FnMut(u64),
    ) -> Result<(Dir, Placed)> {
        let made = to.create_copy(from, "a checkpoint")?;
        all_at_home(&mut self.state);
        let filled = made.begin().and_then(|to| self.fill(from, &to, watch));
        let placed = filled.map_err(|e| e.left_unfinished(shown_path(to.path())))?;
        Ok((made, placed))
    }

    /// Writes what goes into `to`, and makes it a database.
    fn fill(self, from: &Dir, to: &Dir, watch: &mut dyn FnMut(u64)) -> Result<Placed> {
        let mut placed = Placed::default();
        for file in self.state.families.values().flat_map(|f| f.files.values()) {
            let table = link_table(from, to, file.backing.unwrap_or(file.number), &mut placed)?;
            if self.unsynced {
                table.sync_all().or_typed()?;
            }
            watch(file.size);
        }
        for &(number, bytes) in &self.logs {
            let name = FileName::Wal(number);
            match bytes {
                0 => to.create_file(name, OpenOpts::write())?.sync_all().or_typed()?,
                bytes => copy(from, to, name, Some(bytes))?,
            }
        }
        if let Some((number, bytes)) = &self.sections {
            write_log(to, *number, bytes)?;
        }
        if let Some(number) = self.options {
            copy(from, to, FileName::Options(number), None)?;
        }
        to.write_identity(&self.db_id)?;
        // Syncs the directory, and so the names of everything above, before CURRENT appears.
        ManifestLog::create(to, self.manifest, self.state)?;
        to.finish()?;
        Ok(placed)
    }
}

#[cfg(test)]
mod tests;
