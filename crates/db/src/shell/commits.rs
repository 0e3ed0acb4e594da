//! Edits on their way into the manifest: one batch at a time, written and synced at once by an
//! upkeep job that takes the manifest along, so no lock is held across the write.

use lithify_base::zoo::{self, Bug};
use lithify_base::{Error, ErrorKind, Result};
use lithify_control::{Event, NewEdit};
use lithify_env::sync::atomic::Ordering;
use lithify_env::{Class, Job, Step, Urgency};
use lithify_format::files::FileName;
use lithify_format::manifest::WireEdit;
use lithify_lsm::Edit;
use lithify_store::manifest::{ManifestLog, translate};

use super::{Shell, UnderWay};
use crate::metrics::Counter;

impl Shell {
    /// Hands edits to an upkeep job, together with the manifest.
    pub(super) fn commit_edits(&self, edits: Vec<NewEdit>) {
        let manifest = self.manifest.lock().take();
        let manifest = manifest.expect("one batch at a time: the manifest is here");
        let shell = UnderWay::new(self.me());
        let job = CommitEdits { shell, manifest: Some(manifest), edits };
        self.env.rt.spawn(Class::Upkeep, Box::new(job));
    }

    /// Starts a new manifest with what is certain.
    pub(super) fn roll(&self, manifest: &mut ManifestLog) -> Result<()> {
        let old = manifest.number();
        let number = self.next_file().0;
        manifest.roll(number, self.workshop.peek_next_file().0)?;
        // Deleted only now that CURRENT durably names the new one; a leftover is an orphan.
        let _ = self.dir.remove(FileName::Manifest(old));
        Ok(())
    }

    fn edits_written(&self, manifest: Box<ManifestLog>, edits: &[NewEdit], result: Result<()>) {
        *self.manifest.lock() = Some(manifest);
        match result {
            Ok(()) => {
                for NewEdit { edit, what } in edits {
                    if is_move(edit) {
                        self.metrics.add(Counter::Moves, 1);
                    }
                    self.note("committed", &[("what", what.as_str().into())]);
                }
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

/// True if files only change place.
fn is_move(edit: &Edit) -> bool {
    edit.adds.first().is_some_and(|f| edit.deletes.iter().any(|(_, id)| *id == f.id))
}

/// Writes a batch of edits.
struct CommitEdits {
    shell: UnderWay,
    manifest: Option<Box<ManifestLog>>,
    edits: Vec<NewEdit>,
}

impl CommitEdits {
    /// Appends the edits. If nobody can tell whether they took effect, a new manifest without them
    /// settles that they did not, and they are written there.
    fn write(&self, manifest: &mut ManifestLog) -> Result<()> {
        self.shell.0.check_owner()?;
        self.shell.0.check_epoch(manifest)?;
        if manifest.uncertain().is_some() {
            self.shell.0.roll(manifest)?;
        }
        if let Err(e) = self.append(manifest) {
            if manifest.uncertain().is_none() || e.kind() == ErrorKind::NoSpace {
                return Err(e);
            }
            self.shell.0.roll(manifest)?;
            self.append(manifest)?;
        }
        if manifest.wants_roll() {
            // The edits are durable whatever comes of this; a failure shows at the next commit.
            let _ = self.shell.0.roll(manifest);
        }
        Ok(())
    }

    fn append(&self, manifest: &mut ManifestLog) -> Result<()> {
        if zoo::on(Bug::InputsGoFirst) {
            let edits = self.edits.iter().filter(|new| !is_move(&new.edit));
            let gone = edits.flat_map(|new| &new.edit.deletes);
            gone.for_each(|(_, id)| drop(self.shell.0.dir.remove(FileName::Table(id.0))));
        }
        let next_file = Some(self.shell.0.workshop.peek_next_file().0);
        let published = self.shell.0.published.load(Ordering::Acquire);
        let wire = |new: &NewEdit| {
            // The number of what is taken in from outside is published only once it is in the tree.
            let inside = new.edit.adds.iter().map(|f| f.seqs.1).max().unwrap_or(0);
            let last_seq = Some(published.max(inside));
            WireEdit { next_file, last_seq, ..translate::wire_edit(&new.edit) }
        };
        let mut edits: Vec<WireEdit> = self.edits.iter().map(wire).collect();
        let _held = zoo::on(Bug::LockOverSync).then(|| self.shell.0.core());
        if zoo::on(Bug::FlushInTwoEdits) {
            // Some of the files first, with all that the whole edit says besides.
            let first = edits.iter_mut().find(|edit| edit.added.len() > 1);
            if let Some(edit) = first {
                let later = edit.added.split_off(1);
                manifest.commit(std::slice::from_ref(edit))?;
                *edit = WireEdit { added: later, ..WireEdit::default() };
            }
        }
        manifest.commit(&edits)
    }
}

impl Job for CommitEdits {
    fn step(&mut self) -> Step {
        if let Some(mut manifest) = self.manifest.take() {
            let result = self.write(&mut manifest);
            self.shell.0.edits_written(manifest, &self.edits, result);
        }
        Step::Done
    }
    /// A commit frees a memtable, or files that others wait for.
    fn urgency(&self) -> Urgency {
        Urgency::FIRST
    }
    fn panicked(&mut self, message: String) {
        let error = Error::new(ErrorKind::Internal, message);
        self.shell.0.drive(Event::EditFailed { error });
    }
}
