//! Edits on their way into the manifest: one at a time, written by an upkeep job that takes the
//! manifest along, so no lock is held across the write.

use lithify_base::{Error, ErrorKind, Result};
use lithify_control::Event;
use lithify_env::sync::Arc;
use lithify_env::sync::atomic::Ordering;
use lithify_env::{Class, Job, Step, Urgency};
use lithify_format::files::FileName;
use lithify_lsm::Edit;
use lithify_store::manifest::{ManifestLog, translate};

use super::Shell;
use crate::metrics::Counter;

impl Shell {
    /// Hands an edit to an upkeep job, together with the manifest.
    pub(super) fn commit_edit(&self, edit: Edit, what: String) {
        let manifest = self.manifest.lock().take();
        let manifest = manifest.expect("one edit at a time: the manifest is here");
        let job = CommitEdit { shell: self.me(), manifest: Some(manifest), edit, what };
        self.env.rt.spawn(Class::Upkeep, Box::new(job));
    }

    fn edit_written(&self, manifest: Box<ManifestLog>, of: &CommitEdit, result: Result<()>) {
        *self.manifest.lock() = Some(manifest);
        let what = of.what.as_str();
        match result {
            Ok(()) => {
                if of.is_move() {
                    self.metrics.add(Counter::Moves, 1);
                }
                self.note("committed", &[("what", what.into())]);
                self.drive(Event::EditSynced);
            }
            Err(error) => {
                self.note("commit_failed", &[("cause", error.to_string().into())]);
                self.drive(Event::EditFailed { error });
                self.progressed();
            }
        }
    }
}

/// Writes one edit.
struct CommitEdit {
    shell: Arc<Shell>,
    manifest: Option<Box<ManifestLog>>,
    edit: Edit,
    what: String,
}

impl CommitEdit {
    /// True if files only change place.
    fn is_move(&self) -> bool {
        let deletes = &self.edit.deletes;
        self.edit.adds.first().is_some_and(|f| deletes.iter().any(|(_, id)| *id == f.id))
    }

    /// Appends the edit. If nobody can tell whether it took effect, a new manifest without it
    /// settles that it did not, and it is written there.
    fn write(&self, manifest: &mut ManifestLog) -> Result<()> {
        if manifest.uncertain().is_some() {
            self.roll(manifest)?;
        }
        if let Err(e) = self.append(manifest) {
            if manifest.uncertain().is_none() || e.kind() == ErrorKind::NoSpace {
                return Err(e);
            }
            self.roll(manifest)?;
            self.append(manifest)?;
        }
        if manifest.wants_roll() {
            // The edit is durable whatever comes of this; a failure shows at the next commit.
            let _ = self.roll(manifest);
        }
        Ok(())
    }

    fn append(&self, manifest: &mut ManifestLog) -> Result<()> {
        let mut wire = translate::wire_edit(&self.edit);
        wire.next_file = Some(self.shell.workshop.peek_next_file().0);
        wire.last_seq = Some(self.shell.published.load(Ordering::Acquire));
        manifest.commit(&[wire])
    }

    fn roll(&self, manifest: &mut ManifestLog) -> Result<()> {
        let old = manifest.number();
        let number = self.shell.next_file().0;
        manifest.roll(number, self.shell.workshop.peek_next_file().0)?;
        // Deleted only now that CURRENT durably names the new one; a leftover is an orphan.
        let _ = self.shell.dir.remove(FileName::Manifest(old));
        Ok(())
    }
}

impl Job for CommitEdit {
    fn step(&mut self) -> Step {
        if let Some(mut manifest) = self.manifest.take() {
            let result = self.write(&mut manifest);
            self.shell.edit_written(manifest, self, result);
        }
        Step::Done
    }
    /// A commit frees a memtable, or files that others wait for.
    fn urgency(&self) -> Urgency {
        Urgency::FIRST
    }
    fn panicked(&mut self, message: String) {
        let error = Error::new(ErrorKind::Internal, message);
        self.shell.drive(Event::EditFailed { error });
    }
}
