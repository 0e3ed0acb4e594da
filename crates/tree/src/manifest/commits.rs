//! Edits on their way into the manifest: those of all families that wait are written and synced at
//! once by an upkeep job that takes the manifest along, so no lock is held across the write. A core
//! hands out its next edits only when it was told of those before, so the edits of one family keep
//! their order; those of different families have none. An edit that makes or drops a family goes alone,
//! and those that replace a lost log ([`Group`]) take effect together or not at all.

use std::collections::BTreeSet;

use lithify_base::zoo::{self, Bug};
use lithify_base::{CfId, Error, ErrorKind, FileId, Result};
use lithify_control::{Event, NewEdit};
use lithify_env::sync::Arc;
use lithify_env::sync::atomic::Ordering;
use lithify_env::{Class, Job, Step, Ticket, Urgency};
use lithify_journal::files::FileName;
use lithify_journal::manifest::WireEdit;
use lithify_lsm::Edit;
use lithify_store::manifest::{ManifestLog, translate};

use crate::family::OpenFamily;
use crate::manifest::queue::{Batch, Change, FamilyEdit, Group, Told};
use crate::shared::Shared;
use crate::shell::Shell;
use lithify_reports::metrics::Counter;
use lithify_reports::progress::UnderWay;

impl Shell {
    /// Hands edits to an upkeep job, together with the manifest.
    pub(crate) fn commit_edits(&self, edits: Vec<NewEdit>) {
        let under_way = UnderWay::new(&self.shared.background.progress);
        let change = Change { family: self.family.clone(), edits, _under_way: under_way };
        let mut queue = self.shared.queue.lock();
        let queue_now = &mut *queue;
        match queue_now.group.as_mut().filter(|group| group.takes(&change)) {
            None => queue_now.waiting.push_back(Batch::Tree(change)),
            Some(group) if group.over => {
                drop(queue);
                return self.edits_written(&change.edits, Err(self.shared.closed_error()));
            }
            Some(group) => {
                group.come.push(change);
                if group.come.len() == group.families.len() {
                    queue_now.waiting.push_back(Batch::Group(std::mem::take(&mut group.come)));
                }
            }
        }
        drop(queue);
        self.write_manifest();
    }

    /// From now on the edits of `families` that give up log `lost` wait for each other.
    pub(crate) fn expect_group(&self, lost: FileId, families: BTreeSet<CfId>) {
        let group = Group { lost: lost.0, families, come: Vec::new(), over: false };
        self.shared.queue.lock().group = Some(group);
    }

    /// Whether what this family flushed waits for the flushes of others, as a log is lost.
    pub(crate) fn waits_in_group(&self) -> bool {
        let queue = self.shared.queue.lock();
        let come = queue.group.iter().flat_map(|group| &group.come);
        come.into_iter().any(|change| change.family.cf == self.family.cf)
    }

    /// Edits that still wait for each other are not written any more: the lost log shows at the next
    /// open.
    pub(crate) fn end_group(&self) {
        let come = match &mut self.shared.queue.lock().group {
            Some(group) => {
                group.over = true;
                std::mem::take(&mut group.come)
            }
            None => Vec::new(),
        };
        for change in come {
            let family = self.shared.shell(change.family);
            family.edits_written(&change.edits, Err(self.shared.closed_error()));
        }
    }

    /// Writes an edit that makes or drops this family, and waits for it.
    ///
    /// # Errors
    /// As of a commit: with `NoSpace` it did not take effect; else it is not known.
    pub(crate) fn commit_family(&self, edit: WireEdit) -> Result<()> {
        let told = Arc::new(Told::default());
        let under_way = UnderWay::new(&self.shared.background.progress);
        let family = self.family.clone();
        let batch = Batch::Family(FamilyEdit {
            family,
            _under_way: under_way,
            edit: Box::new(edit),
            told: told.clone(),
        });
        self.shared.queue.lock().waiting.push_back(batch);
        self.write_manifest();
        self.shared.resources.env.rt.park(&told.done, None);
        let result = told.result.lock().take();
        result.unwrap_or_else(|| Err(Error::new(ErrorKind::Internal, "an edit was not written")))
    }

    /// Starts a job that writes the queued edits. If one is running, it picks them up when it finishes.
    fn write_manifest(&self) {
        let (manifest, batches) = {
            let mut queue = self.shared.queue.lock();
            if queue.manifest.is_none() || queue.waiting.is_empty() {
                return;
            }
            (queue.manifest.take(), queue.next())
        };
        let shared = self.shared().clone();
        let job = CommitEdits { shared, manifest, batches, lost: None };
        let job = self.shared.resources.alive.counted(Box::new(job));
        self.shared.resources.env.rt.spawn(Class::Upkeep, job);
    }

    fn edits_written(&self, edits: &[NewEdit], result: Result<()>) {
        match result {
            Ok(()) => {
                for NewEdit { edit, what } in edits {
                    if is_move(edit) {
                        self.shared.metrics.add(Counter::Moves, 1);
                    }
                    self.note("committed", &[("what", what.as_str().into())]);
                }
                self.drive(Event::EditSynced);
            }
            Err(error) => {
                self.note("commit_failed", &[("cause", error.to_string().into())]);
                self.drive(Event::EditFailed { error });
                self.shared.progressed();
            }
        }
    }
}

/// True if files only change place.
fn is_move(edit: &Edit) -> bool {
    edit.adds.first().is_some_and(|f| edit.deletes.iter().any(|(_, id)| *id == f.id))
}

/// Writes batches of edits.
struct CommitEdits {
    shared: Arc<Shared>,
    manifest: Option<Box<ManifestLog>>,
    batches: Vec<Batch>,
    /// A log below one of the edits that is not durable and never will be.
    lost: Option<Error>,
}

impl CommitEdits {
    /// Appends the edits. If it can't be told whether they took effect, a new manifest without them
    /// settles that they did not, and they are written there.
    fn write(&self, manifest: &mut ManifestLog) -> Result<()> {
        if let Some(lost) = &self.lost {
            return Err(lost.clone());
        }
        self.shared.check_owner()?;
        self.shared.check_epoch(manifest)?;
        if manifest.uncertain().is_some() {
            self.shared.roll(manifest)?;
        }
        if let Err(e) = self.append(manifest) {
            if manifest.uncertain().is_none() {
                return Err(e);
            }
            match self.is_of_family() {
                // There is no other try: whether it took effect must be known now.
                true => self.settle(manifest, e)?,
                false if e.kind() == ErrorKind::NoSpace => return Err(e),
                false => {
                    self.shared.roll(manifest)?;
                    self.append(manifest)?;
                }
            }
        }
        if manifest.wants_roll() {
            // The edits are durable whatever comes of this; a failure shows at the next commit.
            let _ = self.shared.roll(manifest);
        }
        Ok(())
    }

    /// Sees to it that edits which failed with `error`, and may be found all the same, did not take
    /// effect; they are written once more unless there is no space.
    fn settle(&self, manifest: &mut ManifestLog, error: Error) -> Result<()> {
        let unsettled = |e| Error::new(ErrorKind::Io, "no manifest could be made").caused_by(e);
        self.shared.roll(manifest).map_err(unsettled)?;
        if error.kind() == ErrorKind::NoSpace {
            return Err(error);
        }
        self.append(manifest).map_err(unsettled)
    }

    /// Whether it is a family that comes or goes.
    fn is_of_family(&self) -> bool {
        matches!(self.batches.first(), Some(Batch::Family(_)))
    }

    /// Whether it is a group.
    fn is_group(&self) -> bool {
        matches!(self.batches.first(), Some(Batch::Group(_)))
    }

    /// The edits of trees, each with its family.
    fn edits(&self) -> impl Iterator<Item = (&Arc<OpenFamily>, &Edit)> {
        let changes = self.batches.iter().flat_map(|batch| match batch {
            Batch::Tree(change) => std::slice::from_ref(change),
            Batch::Group(changes) => changes,
            Batch::Family(_) => &[],
        });
        changes.flat_map(|c| c.edits.iter().map(move |new| (&c.family, &new.edit)))
    }

    fn append(&self, manifest: &mut ManifestLog) -> Result<()> {
        if zoo::on(Bug::InputsGoFirst) {
            let edits = self.edits().filter(|(_, edit)| !is_move(edit));
            let gone = edits.flat_map(|(_, edit)| &edit.deletes);
            gone.for_each(|(_, id)| drop(self.shared.resources.dir.remove(FileName::Table(id.0))));
        }
        let next_file = Some(self.shared.resources.numbers.peek().0);
        let published = self.shared.writes.published.load(Ordering::Acquire);
        let wire = |cf: CfId, new: &NewEdit| {
            // The number of what is taken in from outside is published only once it is in the tree.
            let inside = new.edit.adds.iter().map(|f| f.seqs.1).max().unwrap_or(0);
            let last_seq = Some(published.max(inside));
            WireEdit { cf, next_file, last_seq, ..translate::wire_edit(&new.edit) }
        };
        let mut edits: Vec<WireEdit> = Vec::new();
        for batch in &self.batches {
            match batch {
                Batch::Tree(Change { family, edits: new, .. }) => {
                    edits.extend(new.iter().map(|e| wire(family.cf, e)))
                }
                Batch::Group(changes) => {
                    let all = changes
                        .iter()
                        .flat_map(|c| c.edits.iter().map(move |new| (c.family.cf, new)));
                    edits.extend(all.map(|(cf, new)| wire(cf, new)));
                    for (after, edit) in edits.iter_mut().rev().enumerate() {
                        edit.group_remaining = Some(after as u32);
                    }
                }
                Batch::Family(of) => edits.push(WireEdit {
                    next_file,
                    last_seq: Some(published),
                    ..WireEdit::clone(&of.edit)
                }),
            }
        }
        let first_log = self.first_log();
        let sections = self.shared.writes.prepared.first_log(self.shared.first_log_of_families());
        if let Some(last) = edits.last_mut() {
            last.name_logs(first_log, sections, manifest.state().sections_from);
        }
        let default = zoo::on(Bug::LockOverSync).then(|| self.shared.families()[0].clone());
        let _held = default.as_ref().map(|shell| shell.core());
        if zoo::on(Bug::FlushInTwoEdits) {
            // Some of the files first, with all that the whole edit says besides.
            let first = edits.iter_mut().find(|edit| edit.added.len() > 1);
            if let Some(edit) = first {
                let later = edit.added.split_off(1);
                manifest.commit(std::slice::from_ref(edit))?;
                *edit = WireEdit { added: later, ..WireEdit::default() };
            }
        }
        manifest.commit(&edits)?;
        self.shared.writes.prepared.tell(sections);
        if let Some(first_log) = first_log {
            self.shared.writes.logs_from.fetch_max(first_log, Ordering::AcqRel);
        }
        Ok(())
    }

    /// With these edits, logs below this number hold nothing that any family needs; `None` where
    /// the log numbers of families say so. It never falls: what prepared transactions need kept the manifest from
    /// saying so before, perhaps.
    fn first_log(&self) -> Option<u64> {
        let known = self.shared.writes.logs_from.load(Ordering::Acquire);
        let first = self.first_log_of_several().unwrap_or(0).max(known);
        (first > 0).then_some(first)
    }

    /// The same as it is now; `None` where there is one family.
    fn first_log_of_several(&self) -> Option<u64> {
        // Looked up first: a write that comes later is in this log or a later one.
        let now = self.shared.writes.log_now.load(Ordering::Acquire);
        let mut families = self.shared.families();
        if families.len() < 2 {
            return None;
        }
        if zoo::on(Bug::LogOfOthersGone) {
            families.retain(|family| self.edits().any(|(of, _)| of.cf == family.family.cf));
        }
        let needs = |family: &Shell| {
            let of_family = self.edits().filter(|(of, _)| of.cf == family.family.cf);
            let flushed = of_family.filter_map(|(_, edit)| edit.log_number).max();
            let sv = family.super_version();
            sv.first_log(flushed.unwrap_or(0), now)
        };
        families.iter().map(needs).min()
    }

    /// What has to be waited for before the edits may be written: a batch over several families must
    /// be durable as a whole in the log before any flush may take its part of it away. So must what ended a
    /// prepared transaction before what it committed is in tables, as its section is read again.
    fn unsynced_log(&mut self) -> Option<Ticket> {
        let alone = self.shared.families.lock().len() < 2;
        if (alone && !self.shared.needs_sections()) || zoo::on(Bug::BatchTorn) {
            return None;
        }
        let below = self.edits().filter_map(|(_, edit)| edit.log_number).max()?;
        let closing = self.shared.writes.closing.lock();
        let below = || closing.iter().filter(|log| log.end.number().0 < below);
        below().for_each(|log| log.ended.begin(&self.shared.resources.env.rt));
        for log in below() {
            if !log.ended.done().is_done() {
                return Some(log.ended.done().clone());
            }
            self.lost = self.lost.take().or(log.ended.result().err());
        }
        None
    }

    fn written(&self, change: &Change, result: &Result<()>) {
        let family = self.shared.shell(change.family.clone());
        family.edits_written(&change.edits, result.clone());
    }

    /// Tells everyone how it ended. What a family did that was dropped meanwhile is of no interest.
    fn tell(&mut self, result: &Result<()>) {
        for batch in std::mem::take(&mut self.batches) {
            match batch {
                Batch::Tree(change) => self.written(&change, result),
                Batch::Group(changes) => changes.iter().for_each(|c| self.written(c, result)),
                Batch::Family(FamilyEdit { family, edit, told, _under_way }) => {
                    if edit.cf_drop && result.is_ok() {
                        self.shared.shell(family).set_dropped();
                    }
                    told.tell(result.clone());
                }
            }
        }
    }
}

impl Job for CommitEdits {
    fn step(&mut self) -> Step {
        if let Some(log) = self.unsynced_log() {
            return Step::Wait(log);
        }
        if let Some(mut manifest) = self.manifest.take() {
            self.batches.retain(|batch| !matches!(batch, Batch::Tree(c) if c.family.is_dropped()));
            let result = match self.batches.is_empty() {
                true => Ok(()),
                false => self.write(&mut manifest),
            };
            if self.is_of_family() {
                // Before others write: they must know which families there are.
                self.tell(&result);
            }
            let replaced = self.is_group() && result.is_ok();
            {
                let mut queue = self.shared.queue.lock();
                queue.group.take_if(|_| replaced);
                queue.manifest = Some(manifest);
            }
            self.tell(&result);
            if let Some(shell) = self.shared.families().first() {
                shell.write_manifest();
            }
        }
        Step::Done
    }
    /// A commit frees a memtable, or files that others wait for.
    fn urgency(&self) -> Urgency {
        Urgency::FIRST
    }
    fn panicked(&mut self, message: String) {
        self.tell(&Err(Error::new(ErrorKind::Internal, message)));
    }
}
