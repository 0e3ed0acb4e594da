//! The shell: runs the core of one column family. It tells the [`Core`] what happened, carries out
//! its commands, and owns what the core decides about: tables, jobs, the published views. What the
//! families of a database have in common is in [`Shared`].
//!
//! Locks: `core` is the one lock over tree state, held for memory work only. Taken inside it:
//! the gate's, the event queue's, those of `progress` and of the shared disk. `views` guards the read-modify-write of
//! the super-version and is taken without `core`. None is ever held across a call of the
//! environment.
//!
//! Commands are carried out after the core's lock is gone, so those of two events may overtake
//! each other. Edits can't, because only one is handed out at a time; trees can, and are numbered.
//!
//! Leaves to others: flushes and compactions, and what callers wait for (`background`), the manifest
//! (`manifest`), the end of a family and of all (`close`).
//!
//! A panic on the way (a broken invariant, or a comparator's) halts the core: nothing more is
//! started or committed, writes are refused, reads go on, and the database can be closed.

pub(crate) mod calls;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

use lithify_base::{Error, ErrorKind, FileId, JobId, Result, Seq};
use lithify_compact::JobContext;
use lithify_control::{Command, Core, Event, MemId};
use lithify_env::panic_message;
use lithify_env::sync::atomic::Ordering;
use lithify_env::sync::{Arc, Weak};
use lithify_lsm::Version;
use lithify_memtable::MemWriter;
use lithify_plan::Cause;

use crate::family::{CoreGuard, LevelTally, OpenFamily, TreeParts};
use crate::shared::Shared;
use crate::write::log::{Filling, Log};
use lithify_reports::explain::AtWork;
use lithify_reports::field::Field;
use lithify_reports::progress::UnderWay;
use lithify_views::names::DEFAULT_CF;
use lithify_views::super_version::{SuperVersion, Tree};

/// One column family of an open database, together with what it shares with the others.
#[derive(Clone)]
pub struct Shell {
    pub(crate) shared: Arc<Shared>,
    pub(crate) family: Arc<OpenFamily>,
}

/// A [`Shell`] that keeps nothing open.
#[derive(Clone)]
pub(crate) struct WeakShell {
    shared: Weak<Shared>,
    family: Weak<OpenFamily>,
}

impl WeakShell {
    pub(crate) fn upgrade(&self) -> Option<Shell> {
        Some(Shell { shared: self.shared.upgrade()?, family: self.family.upgrade()? })
    }
}

impl Shell {
    /// The core, for memory work only.
    pub(crate) fn core(&self) -> CoreGuard<'_> {
        self.family.core()
    }
    pub(crate) fn tally(&self) -> lithify_env::sync::MutexGuard<'_, LevelTally> {
        self.family.work.levels.lock()
    }
    /// Jobs that a worker is busy with.
    pub(crate) fn at_work(&self) -> BTreeMap<JobId, Arc<AtWork>> {
        self.family.work.at_work.lock().clone()
    }
    /// Opens every table of the tree: from now on no deletion takes them away.
    pub fn open_tables(&self) -> Result<()> {
        let sv = self.super_version();
        let mut slots = sv.tree.runs.iter().flat_map(|run| run.slots.iter());
        slots.try_for_each(|slot| slot.reader(&self.family.tables).map(drop))
    }
    pub(crate) fn context(&self) -> &JobContext {
        &self.family.context
    }

    /// Tells the core what happened and carries out what it wants.
    pub(crate) fn drive(&self, event: Event) {
        self.drive_by(|| event);
    }

    /// The same with an event that is looked up under the core's lock: of two such events the one
    /// that comes later is the newer one.
    pub(crate) fn drive_by(&self, event: impl FnOnce() -> Event) {
        // Commands are carried out under the mark, too: some compare keys under other locks.
        let _at = self.shared.mark().set();
        let told = catch_unwind(AssertUnwindSafe(|| self.tell(|core, now| core.on(event(), now))));
        if let Err(payload) = told {
            let what = format!("the core panicked: {}", panic_message(&*payload));
            let error = Error::new(ErrorKind::Internal, what);
            self.tell(|core, _| core.halt(error));
        }
    }

    pub(crate) fn tell(&self, event: impl FnOnce(&mut Core, u64) -> Vec<Command>) {
        // Commands that only set memory are applied under the lock, so that verdicts can't
        // overtake each other; the rest is ordered by what it waits for.
        let (commands, quieter, _under_way) = {
            let mut core = self.core();
            let now = self.shared.resources.env.rt.now();
            let before = (core.jobs(), core.is_idle());
            let mut rest = Vec::new();
            let disk = &self.shared.background.disk;
            for command in disk.over(&mut core, |core| event(core, now.0)) {
                match command {
                    Command::Stall(pressure) => {
                        self.family.gate.press(pressure, now, &self.shared.events)
                    }
                    Command::FlushesFail(error) => self.family.gate.trouble(error),
                    Command::CompactionsFail(error) => {
                        self.family.gate.stuck(error, now, &self.shared.events)
                    }
                    Command::ReadOnly { error } => self.refuse_writes(error),
                    other => rest.push(other),
                }
            }
            let after = (core.jobs(), core.is_idle());
            let over = after.0 < before.0 || (after.1 && !before.1);
            let under_way =
                (!rest.is_empty()).then(|| UnderWay::new(&self.shared.background.progress));
            (rest, over || core.is_halted(), under_way)
        };
        for command in commands {
            self.execute(command);
        }
        // A job may leave the table, or the core find nothing to do, without any command.
        if quieter {
            self.shared.progressed();
        }
    }

    pub(crate) fn execute(&self, command: Command) {
        match command {
            Command::StartFlush { job, mem, out, cutting } => {
                self.start_flush(job, mem, out, cutting);
            }
            Command::StartCompaction { job, spec, inputs, version } => {
                self.start_compaction(job, spec, inputs, *version);
            }
            Command::Abort { job } => {
                if let Some(work) = self.family.work.at_work.lock().get(&job) {
                    work.control.stop();
                }
            }
            Command::Discard { files } => self.family.work.litter.lock().extend(files),
            Command::Hurry { job, prio } => {
                if let Some(work) = self.family.work.at_work.lock().get(&job) {
                    work.control.hurry(prio);
                }
            }
            Command::Commit { edits } => self.commit_edits(edits),
            Command::Install { no, version, flushed, obsolete } => {
                self.install(no, *version, flushed);
                self.family.work.obsolete.lock().extend(obsolete);
                self.shared.progressed();
                if self.family.gate.stop() == Some(Cause::DiskSpace) {
                    self.sweep_for_room();
                }
            }
            Command::RequestDone { id, result } => {
                self.family.work.manual_results.lock().insert(id, result);
                self.shared.progressed();
            }
            Command::Stall(_)
            | Command::FlushesFail(_)
            | Command::CompactionsFail(_)
            | Command::ReadOnly { .. } => unreachable!("applied in tell"),
        }
    }

    /// Writes are over: for this family alone if it was dropped, else for the database.
    pub(crate) fn refuse_writes(&self, error: Error) {
        match self.is_dropped() {
            true => self.family.gate.refuse(error),
            false => self.shared.go_read_only(error),
        }
    }

    /// A handle that outlives the close must not read on: another handle may own its files by now.
    ///
    /// # Errors
    /// `ShuttingDown`; `NotFound` if the family was dropped.
    pub fn check_open(&self) -> Result<()> {
        if self.family.over.load(Ordering::Relaxed) { Err(self.over_error()) } else { Ok(()) }
    }
    /// The same for a read, which may go on after the family was dropped.
    #[inline]
    pub(crate) fn check_readable(&self) -> Result<()> {
        match self.family.over.load(Ordering::Relaxed) && !self.reads_on() {
            true => Err(self.over_error()),
            false => Ok(()),
        }
    }
    pub(crate) fn over_error(&self) -> Error {
        if self.is_dropped() { self.family.dropped_error() } else { self.shared.closed_error() }
    }
    /// Nothing is read any more, and callers that wait for progress look again.
    pub(crate) fn set_over(&self) {
        self.family.over.store(true, Ordering::SeqCst);
    }
    pub(crate) fn is_dropped(&self) -> bool {
        self.family.is_dropped()
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }
    /// A reference that keeps nothing open.
    pub(crate) fn weak(&self) -> WeakShell {
        WeakShell { shared: Arc::downgrade(&self.shared), family: Arc::downgrade(&self.family) }
    }

    /// Adds to the event log; what is not about the default family names its own.
    pub fn note(&self, event: &str, fields: &[(&str, Field)]) {
        let now = self.shared.resources.env.rt.now();
        if self.family.cf == DEFAULT_CF {
            return self.shared.events.note(now, event, fields);
        }
        let family = [("family", Field::from(self.family.name.as_str()))];
        self.shared.events.note(now, event, &[&family[..], fields].concat());
    }

    // ---- what readers see

    /// Shows readers tree number `no`, which holds every memtable up to `flushed`. A tree that
    /// comes after its successor changes nothing, as the successor holds what it holds.
    pub(crate) fn install(&self, no: u64, version: Version, flushed: Option<MemId>) {
        let _one_at_a_time = self.family.views.lock.lock();
        let now = self.family.views.current.load_full();
        let mems = now.mems.iter().filter(|m| flushed.is_none_or(|f| m.id > f)).cloned().collect();
        let mut known = None;
        let (no, tree) = match no > now.no {
            true => {
                known = self.shown(&version);
                let tree = Arc::new(Tree::new(version, Some(&now.tree)));
                let mut trees = self.family.views.trees.lock();
                trees.retain(|t| t.strong_count() > 0);
                trees.push(Arc::downgrade(&tree));
                (no, tree)
            }
            false => (now.no, now.tree.clone()),
        };
        let show = || self.family.views.current.store(Arc::new(SuperVersion { no, mems, tree }));
        match known {
            Some(known) => self.shared.snapshots.keep(self.family.cf, known, &now, show),
            None => show(),
        }
    }

    /// The newest snapshot that all compactions knew of whose filters took something away that `version`
    /// is the first to lack; `None` if there is no such compaction.
    pub(crate) fn shown(&self, version: &Version) -> Option<Option<Seq>> {
        let mut judged = self.family.views.judged.lock();
        if judged.is_empty() {
            return None;
        }
        let left: BTreeSet<FileId> = version.files().map(|f| f.id).collect();
        judged.extract_if(.., |job| !left.contains(&job.input)).map(|job| job.known).min()
    }
}

impl Shared {
    /// Adds a family, while the database is opened.
    pub(crate) fn join(self: &Arc<Shared>, parts: TreeParts, writer: MemWriter) {
        let mut log = self.writes.turn.try_take().expect("no write begins before the open ends");
        self.add(&mut log, parts, writer);
        self.writes.turn.pass_on(log);
    }

    /// Adds a family, whose number is above those of all others.
    pub(crate) fn add(
        self: &Arc<Shared>,
        log: &mut Log,
        parts: TreeParts,
        writer: MemWriter,
    ) -> Shell {
        let family = Arc::new(OpenFamily::new(parts, self.mark()));
        log.families.push(Filling::new(family.clone(), writer, self.resources.env.rt.clone()));
        self.families.lock().push(family.clone());
        self.shell(family)
    }

    /// The open families by number, the default one first.
    pub(crate) fn families(self: &Arc<Shared>) -> Vec<Shell> {
        let families = self.families.lock().clone();
        families.into_iter().map(|family| self.shell(family)).collect()
    }

    /// Dropped families that still have files or jobs.
    pub(crate) fn dropped_families(self: &Arc<Shared>) -> Vec<Shell> {
        let dropped = self.dropped.lock().clone();
        dropped.into_iter().map(|family| self.shell(family)).collect()
    }

    /// A family of this database.
    pub(crate) fn shell(self: &Arc<Shared>, family: Arc<OpenFamily>) -> Shell {
        Shell { shared: self.clone(), family }
    }

    /// Writes fail with `error` from now on, in all families.
    pub(crate) fn refuse(self: &Arc<Shared>, error: &Error) {
        self.families().iter().for_each(|family| family.family.gate.refuse(error.clone()));
    }

    /// Stops writes for good.
    pub(crate) fn go_read_only(self: &Arc<Shared>, error: Error) {
        let cause = [("cause", error.to_string().into())];
        self.events.note(self.resources.env.rt.now(), "read_only", &cause);
        self.refuse(
            &Error::new(
                ErrorKind::ReadOnly,
                "an earlier error stopped writes; reads go on; reopen the database once the cause \
                 is mended",
            )
            .caused_by(error),
        );
        self.progressed();
    }

    /// Logs below this number hold nothing that any family needs.
    pub(crate) fn first_log_of_families(self: &Arc<Shared>) -> u64 {
        let of_family = |family: &Shell| family.core().version().log_number();
        let least = self.families().iter().map(of_family).min().unwrap_or(0);
        least.max(self.writes.logs_from.load(Ordering::Acquire))
    }

    /// Whether logs hold sections of prepared transactions that may count.
    pub(crate) fn needs_sections(self: &Arc<Shared>) -> bool {
        self.writes.prepared.first_log(self.first_log_of_families()) != 0
    }

    /// Logs below this number hold nothing that is needed.
    pub(crate) fn first_log(self: &Arc<Shared>) -> u64 {
        self.writes.prepared.kept_from(self.first_log_of_families())
    }
}
