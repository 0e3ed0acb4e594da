//! Appending edits to the manifest, and starting a new one.
//!
//! Keeps: an edit counts only once its record is synced, and is folded into the state only then.
//! After a failed write or sync the outcome is *uncertain*: the record may or may not be found
//! by a later open, so the file is never appended to again (F8). [`ManifestLog::roll`] then
//! decides the matter: a new manifest holds what is certain, and once CURRENT names it the
//! uncertain edit can never take effect. One that fails leaves no file, unless CURRENT may name it: on a
//! full disk it is tried for as long as it takes.
//! Leaves to others: whether an edit is right (`lithify_lsm`, `control`), which files are live.
//!
//! ```text
//!   MANIFEST-7 .... edit  edit  edit?      sync failed: uncertain, poisoned
//!   MANIFEST-9 snapshot                    written, synced, name synced
//!   CURRENT -> MANIFEST-9                  temp, sync, rename, directory sync: decided
//! ```

use std::collections::BTreeMap;

use lithify_base::zoo::{self, Bug};
use lithify_base::{CfId, Error, ErrorKind, Level, Result};
use lithify_env::{FileRef, OpenOpts, write_all_at};
use lithify_files::dir::{Dir, FileName, OrTyped};
use lithify_journal::manifest::{ManifestState, ManifestWriter, WireEdit};

/// Bytes of edits behind a snapshot after which a new manifest pays, at least.
const ROLL_MIN: u64 = 4 << 20;

/// The live manifest.
pub struct ManifestLog {
    dir: Dir,
    open: Open,
    state: ManifestState,
    /// Why nothing may be appended any more.
    poison: Option<Error>,
    /// Manifests since the last certain one that could not be made for certain: CURRENT may name each of them.
    in_doubt: Vec<u64>,
}

/// The file being appended to.
struct Open {
    file: FileRef,
    number: u64,
    writer: ManifestWriter,
    /// Bytes in the file, all synced.
    end: u64,
    /// Bytes of the snapshot it began with.
    head: u64,
}

impl ManifestLog {
    /// Writes a new manifest that holds `state`, and makes CURRENT name it.
    ///
    /// # Errors
    /// Io or NoSpace. CURRENT names what it named before, or (if only its directory's sync
    /// failed) possibly the new manifest, which is complete.
    pub fn create(dir: &Dir, number: u64, state: ManifestState) -> Result<ManifestLog> {
        let open = write_new(dir, number, &state)?;
        Ok(ManifestLog { dir: dir.clone(), open, state, poison: None, in_doubt: Vec::new() })
    }

    /// Appends edits in order, syncs once, and folds them into the state.
    ///
    /// # Errors
    /// Internal if an edit contradicts the state: nothing was written. Otherwise Io or NoSpace:
    /// the edits are uncertain, and so is every call until [`roll`](ManifestLog::roll).
    pub fn commit(&mut self, edits: &[WireEdit]) -> Result<()> {
        if let Some(e) = &self.poison {
            return Err(e.clone());
        }
        check(&self.state, edits)?;
        let open = &mut self.open;
        let mut bytes = Vec::new();
        edits.iter().for_each(|edit| open.writer.append(edit, &mut bytes));
        let written =
            write_all_at(&*open.file, &bytes, open.end).and_then(|()| open.file.sync_data());
        if let Err(e) = written.or_typed() {
            self.poison = (!zoo::on(Bug::AppendAfterFailure)).then(|| e.clone());
            return Err(e);
        }
        open.end += bytes.len() as u64;
        for edit in edits {
            let applied = self.state.apply(edit);
            applied.map_err(|e| {
                Error::new(ErrorKind::Internal, "an edit was checked and still does not apply")
                    .caused_by(e)
            })?;
        }
        Ok(())
    }

    /// Starts manifest `number` with everything that is certain, and heals an uncertain one.
    /// `edit` may change the counters on the way.
    ///
    /// # Errors
    /// As [`create`](ManifestLog::create); the manifest is uncertain then, and `number` burnt.
    pub fn roll(&mut self, number: u64, next_file: u64) -> Result<()> {
        self.state.next_file = self.state.next_file.max(next_file);
        match write_new(&self.dir, number, &self.state) {
            Ok(open) => {
                self.open = open;
                self.poison = None;
                self.in_doubt.clear();
                Ok(())
            }
            Err(e) => {
                // CURRENT may name either: until that is settled, neither may grow.
                self.poison = Some(e.clone());
                // The number of one that is gone may be another owner's.
                let gone =
                    self.dir.len_of(FileName::Manifest(number)).is_ok_and(|len| len.is_none());
                self.in_doubt.extend((!gone).then_some(number));
                Err(e)
            }
        }
    }

    /// Why the directory is not this log's any more, if so. Every open makes a manifest of its own, so a
    /// number in CURRENT that is not ours is a later owner's: the epoch that fences off the one before.
    ///
    /// # Errors
    /// If CURRENT is there and can't be read.
    pub fn lost(&self) -> Result<Option<&'static str>> {
        Ok(match self.dir.read_current()? {
            Some(n) if n == self.open.number || self.in_doubt.contains(&n) => None,
            Some(_) => Some(
                "CURRENT names a manifest that this handle did not make: another has opened the \
                 database since; nothing more is written here",
            ),
            None => Some(
                "CURRENT is missing: it was removed, or the directory was; nothing more is \
                 written here",
            ),
        })
    }

    /// True once the edits behind the snapshot outweigh it.
    pub fn wants_roll(&self) -> bool {
        self.open.end - self.open.head > ROLL_MIN.max(self.open.head)
    }
    /// Why nothing may be appended, if the last commit failed.
    pub fn uncertain(&self) -> Option<&Error> {
        self.poison.as_ref()
    }
    /// What the manifest adds up to.
    pub fn state(&self) -> &ManifestState {
        &self.state
    }
    /// Its file number.
    pub fn number(&self) -> u64 {
        self.open.number
    }
    /// Its length in bytes.
    pub fn bytes(&self) -> u64 {
        self.open.end
    }
}

fn write_new(dir: &Dir, number: u64, state: &ManifestState) -> Result<Open> {
    let file = dir.create_file(FileName::Manifest(number), OpenOpts::write())?;
    let written = write_into(dir, file, number, state);
    // Nothing may be known of what CURRENT says; then the file stays.
    if written.is_err() && dir.read_current().is_ok_and(|named| named != Some(number)) {
        let _ = dir.remove(FileName::Manifest(number));
    }
    written
}

fn write_into(dir: &Dir, file: FileRef, number: u64, state: &ManifestState) -> Result<Open> {
    let (bytes, writer) = state.to_manifest(number);
    write_all_at(&*file, &bytes, 0).or_typed()?;
    if zoo::on(Bug::PointerBeforeSync) {
        dir.point_current(number)?;
    }
    file.sync_all().or_typed()?;
    // Its name must be durable before CURRENT says it.
    dir.sync()?;
    dir.point_current(number)?;
    let end = bytes.len() as u64;
    Ok(Open { file, number, writer, end, head: end })
}

/// Whether `edits` apply to `state` one after the other. Checked before they are written, because
/// a record that contradicts the ones before it makes the manifest unreadable.
fn check(state: &ManifestState, edits: &[WireEdit]) -> Result<()> {
    let mut changed: BTreeMap<(CfId, u64), Option<Level>> = BTreeMap::new();
    let wrong = |what: String| Err(Error::new(ErrorKind::Internal, what));
    for edit in edits {
        let family = state.families.get(&edit.cf);
        if family.is_none() && edit.cf_add.is_none() {
            return wrong(format!("an edit names unknown column family {}", edit.cf.0));
        }
        let level_of = |changed: &BTreeMap<_, _>, number: u64| match changed.get(&(edit.cf, number))
        {
            Some(&level) => level,
            None => family.and_then(|f| f.files.get(&number)).map(|f| f.level),
        };
        for &(level, number) in &edit.deleted {
            if level_of(&changed, number) != Some(level) {
                return wrong(format!("an edit deletes file {number:06}, not in level {level}"));
            }
            changed.insert((edit.cf, number), None);
        }
        for file in &edit.added {
            if level_of(&changed, file.number).is_some() {
                return wrong(format!("an edit adds file {:06} twice", file.number));
            }
            changed.insert((edit.cf, file.number), Some(file.level));
        }
    }
    Ok(())
}
