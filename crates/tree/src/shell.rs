//! The shell: runs the mind of one column family. It tells the [`Core`] what happened, carries out
//! its commands, and owns what the mind decides about: tables, jobs, the published views. What the
//! families of a database have in common is in [`Shared`].
//!
//! Locks: `core` is the one lock over tree state, held for memory work only. Taken inside it:
//! the gate's, the event queue's and that of `progress`. `views` guards the read-modify-write of
//! the super-version and is taken without `core`. None is ever held across a call of the
//! environment.
//!
//! Commands are carried out after the core's lock is gone, so those of two events may overtake
//! each other. Edits can't, because only one is handed out at a time; trees can, and are numbered.
//!
//! Chapters: [`jobs`] flushes and compactions, [`commits`] the manifest, [`upkeep`] what may wait,
//! [`waiting`] what callers wait for, [`dropping`] the end of a family, [`closing`] that of all.
//! Here is what they share.
//!
//! A panic on the way (a broken invariant, or a comparator's) halts the core: nothing more is
//! started or committed, writes are refused, reads go on, and the database can be closed.

pub(crate) mod closing;
pub(crate) mod commits;
mod dropping;
mod jobs;
pub(crate) mod upkeep;
mod waiting;

#[cfg(test)]
mod tests;

pub use closing::Closer;
pub(crate) use upkeep::HANGS;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind};

use arc_swap::ArcSwap;
use lithify_base::{
    CfId, ComparatorRef, Error, ErrorKind, FileId, JobId, KeyRange, Result, Seq, memory,
};
use lithify_compact::{Reins, Workshop};
use lithify_control::{Command, Core, Event, MemId};
use lithify_env::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use lithify_env::sync::{Arc, Mutex, MutexGuard, Weak};
use lithify_env::{Mono, panic_message};
use lithify_lsm::{FileRef, Version};
use lithify_memtable::{ArenaPool, HeapPool, MemTable, MemTableOptions, MemWriter};
use lithify_plan::Cause;
use lithify_store::cache::TableCache;

use crate::events::Field;
use crate::gate::Gate;
use crate::open::DEFAULT_CF;
use crate::reentry::{At, Mark};
use crate::settings::Settings;
use crate::shared::Shared;
use crate::super_version::{Mem, SuperVersion, Tree};

/// Smallest memtables that are kept in regions: these are pieces of 2 MiB, which smaller ones would
/// not fill.
const REGION_MIN: u64 = 2 << 20;

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
    /// Whether both are the same family.
    pub(crate) fn ptr_eq(&self, other: &WeakShell) -> bool {
        self.family.ptr_eq(&other.family)
    }
}

/// One column family: its core, and what the core decides about. It knows nothing of the others.
pub(crate) struct OpenFamily {
    pub(crate) cf: CfId,
    pub(crate) name: String,
    /// Those in force, of the database where they concern it as a whole, else of the family. Some
    /// can change.
    pub(crate) settings: ArcSwap<Settings>,
    /// Size at which a memtable is full; it never changes.
    pub(crate) memtable_bytes: u64,
    pub(crate) tables: Arc<TableCache>,
    pub(crate) gate: Gate,
    pub(crate) views: Views,
    pub(crate) order: ComparatorRef,
    core: Mutex<Core>,
    /// On the threads that hold its lock.
    thinks: Mark,
    /// On the threads that are at work for the database.
    mark: Mark,
    pub(crate) workshop: Arc<Workshop>,
    pub(crate) work: Work,
    /// The family was dropped or the database closed: nothing is read or written any more.
    over: AtomicBool,
    /// It was dropped.
    gone: AtomicBool,
}

/// What readers see, and have seen.
pub(crate) struct Views {
    /// What readers see.
    pub(crate) current: ArcSwap<SuperVersion>,
    lock: Mutex<()>,
    /// Trees that readers may still look at, the newest last.
    trees: Mutex<Vec<Weak<Tree>>>,
    /// Compactions whose filter took something away, until the tree without it is shown.
    judged: Mutex<Vec<Judged>>,
}

/// Jobs and requests of one family, and what they leave behind.
pub(crate) struct Work {
    /// Jobs that a worker is busy with.
    at_work: Mutex<BTreeMap<JobId, Arc<AtWork>>>,
    /// Callers that wait for background work to end.
    awaited: AtomicUsize,
    /// Files out of the tree that a reader may still pin.
    obsolete: Mutex<Vec<FileRef>>,
    /// Files of jobs that were given up.
    litter: Mutex<Vec<FileId>>,
    manual_results: Mutex<BTreeMap<u64, Result<()>>>,
    pub(crate) next_manual: AtomicU64,
    levels: Mutex<LevelTally>,
}

/// The mind while its lock is held, and the marks that this thread holds it.
pub(crate) struct CoreGuard<'a> {
    core: MutexGuard<'a, Core>,
    _at: (At, At),
}

impl Deref for CoreGuard<'_> {
    type Target = Core;
    fn deref(&self) -> &Core {
        &self.core
    }
}

impl DerefMut for CoreGuard<'_> {
    fn deref_mut(&mut self) -> &mut Core {
        &mut self.core
    }
}

/// While it lives, a close waits: for commands handed out and not carried out, and for edits being
/// written.
struct UnderWay(Shell);

impl UnderWay {
    fn new(shell: Shell) -> UnderWay {
        shell.shared.background.under_way.fetch_add(1, Ordering::SeqCst);
        UnderWay(shell)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let last = self.0.shared.background.under_way.fetch_sub(1, Ordering::SeqCst) == 1;
        if last && self.0.shared.life.closed.load(Ordering::SeqCst) {
            self.0.shared.progressed();
        }
    }
}

/// A compaction whose filter took values away.
struct Judged {
    /// One of its inputs, which goes when its output is shown.
    input: FileId,
    /// The newest snapshot that it knew of.
    known: Option<Seq>,
}

/// A job that a worker is busy with.
pub(crate) struct AtWork {
    pub(crate) reins: Arc<Reins>,
    pub(crate) since: Mono,
    /// The keys of a flush; those of a compaction are in its spec.
    pub(crate) flushes: Option<KeyRange>,
}

/// Bytes moved into each level since the open.
#[derive(Default)]
pub(crate) struct LevelTally {
    pub(crate) written: [u64; lithify_base::MAX_LEVELS],
    pub(crate) read: [u64; lithify_base::MAX_LEVELS],
    pub(crate) jobs: [u64; lithify_base::MAX_LEVELS],
}

/// What a family begins with.
pub(crate) struct TreeParts {
    pub(crate) cf: CfId,
    pub(crate) name: String,
    pub(crate) settings: Settings,
    pub(crate) tables: Arc<TableCache>,
    pub(crate) core: Core,
    pub(crate) workshop: Arc<Workshop>,
    /// Memtables, the newest first.
    pub(crate) mems: Vec<Mem>,
}

impl OpenFamily {
    pub(crate) fn new(p: TreeParts, mark: Mark) -> OpenFamily {
        let version = p.core.version().clone();
        let order = version.comparator().clone();
        let tree = Arc::new(Tree::new(version, None));
        let trees = Mutex::new(vec![Arc::downgrade(&tree)]);
        let sv = SuperVersion { no: 0, mems: p.mems, tree };
        OpenFamily {
            gate: Gate::new((p.cf.0 != 0).then(|| p.name.clone())),
            cf: p.cf,
            name: p.name,
            memtable_bytes: p.settings.memtable_bytes,
            settings: ArcSwap::from_pointee(p.settings),
            tables: p.tables,
            views: Views {
                current: ArcSwap::from_pointee(sv),
                lock: Mutex::new(()),
                trees,
                judged: Mutex::default(),
            },
            order,
            core: Mutex::new(p.core),
            thinks: Mark::fresh(),
            mark,
            workshop: p.workshop,
            work: Work {
                at_work: Mutex::default(),
                awaited: AtomicUsize::new(0),
                obsolete: Mutex::default(),
                litter: Mutex::default(),
                manual_results: Mutex::default(),
                next_manual: AtomicU64::new(1),
                levels: Mutex::default(),
            },
            over: AtomicBool::new(false),
            gone: AtomicBool::new(false),
        }
    }

    /// The core, for memory work only.
    pub(crate) fn core(&self) -> CoreGuard<'_> {
        assert!(
            !self.thinks.is_on(),
            "a comparator asked its database for what only the mind knows, which is asking it"
        );
        let at = (self.mark.set(), self.thinks.set());
        CoreGuard { core: self.core.lock(), _at: at }
    }
    /// What readers see.
    pub(crate) fn super_version(&self) -> Arc<SuperVersion> {
        self.views.current.load_full()
    }
    pub(crate) fn is_dropped(&self) -> bool {
        self.gone.load(Ordering::SeqCst)
    }
    pub(crate) fn dropped_error(&self) -> Error {
        let what = format!("column family `{}` was dropped", self.name);
        Error::new(ErrorKind::NotFound, what)
    }

    /// Puts a fresh active memtable in front of the frozen one.
    pub(crate) fn push_memtable(&self, new: Mem) {
        let _one_at_a_time = self.views.lock.lock();
        let mut next = SuperVersion::clone(&self.views.current.load());
        next.mems.insert(0, new);
        self.views.current.store(Arc::new(next));
    }

    /// An empty memtable and its write handle, of memory from `arenas`.
    pub(crate) fn new_memtable(
        &self,
        arenas: &Arc<dyn ArenaPool>,
    ) -> Result<(Arc<MemTable>, MemWriter)> {
        new_memtable(self.settings.load().memtable_bytes, &self.order, arenas)
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
    /// Opens every table of the tree: from now on nobody can take them away.
    pub fn open_tables(&self) -> Result<()> {
        let sv = self.super_version();
        let mut slots = sv.tree.runs.iter().flat_map(|run| run.slots.iter());
        slots.try_for_each(|slot| slot.reader(&self.family.tables).map(drop))
    }
    pub(crate) fn workshop(&self) -> &Workshop {
        &self.family.workshop
    }

    /// Tells the mind what happened and carries out what it wants.
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
            let what = format!("the database lost its mind: {}", panic_message(&*payload));
            let error = Error::new(ErrorKind::Internal, what);
            self.tell(|core, _| core.halt(error));
        }
    }

    fn tell(&self, event: impl FnOnce(&mut Core, u64) -> Vec<Command>) {
        // Commands that only set memory are applied under the lock, so that verdicts can't
        // overtake each other; the rest is ordered by what it waits for.
        let (commands, quieter, _under_way) = {
            let mut core = self.core();
            let now = self.shared.resources.env.rt.now();
            let before = (core.jobs(), core.is_idle());
            let mut rest = Vec::new();
            for command in event(&mut core, now.0) {
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
            let under_way = (!rest.is_empty()).then(|| UnderWay::new(self.clone()));
            (rest, over || core.is_halted(), under_way)
        };
        for command in commands {
            self.execute(command);
        }
        // A job may leave the table, or the mind find nothing to do, without any command.
        if quieter {
            self.shared.progressed();
        }
    }

    fn execute(&self, command: Command) {
        match command {
            Command::StartFlush { job, mem, out, cutting } => {
                self.start_flush(job, mem, out, cutting);
            }
            Command::StartCompaction { job, spec, inputs, version } => {
                self.start_compaction(job, spec, inputs, *version);
            }
            Command::Abort { job } => {
                if let Some(work) = self.family.work.at_work.lock().get(&job) {
                    work.reins.stop();
                }
            }
            Command::Discard { files } => self.family.work.litter.lock().extend(files),
            Command::Hurry { job, prio } => {
                if let Some(work) = self.family.work.at_work.lock().get(&job) {
                    work.reins.hurry(prio);
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
    fn refuse_writes(&self, error: Error) {
        match self.is_dropped() {
            true => self.family.gate.refuse(error),
            false => self.shared.go_read_only(error),
        }
    }

    /// A handle that outlives the close must not read on: its files may be somebody else's by now.
    pub(crate) fn check_open(&self) -> Result<()> {
        if self.family.over.load(Ordering::Relaxed) { Err(self.over_error()) } else { Ok(()) }
    }
    fn over_error(&self) -> Error {
        if self.is_dropped() { self.family.dropped_error() } else { self.shared.closed_error() }
    }
    /// Nothing is read any more, and whoever waits for progress looks again.
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
    pub(crate) fn note(&self, event: &str, fields: &[(&str, Field)]) {
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
    fn install(&self, no: u64, version: Version, flushed: Option<MemId>) {
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
    fn shown(&self, version: &Version) -> Option<Option<Seq>> {
        let mut judged = self.family.views.judged.lock();
        if judged.is_empty() {
            return None;
        }
        let left: BTreeSet<FileId> = version.files().map(|f| f.id).collect();
        judged.extract_if(.., |job| !left.contains(&job.input)).map(|job| job.known).min()
    }
}

/// An empty memtable for about `bytes` bytes, and its write handle.
pub(crate) fn new_memtable(
    bytes: u64,
    order: &ComparatorRef,
    arenas: &Arc<dyn ArenaPool>,
) -> Result<(Arc<MemTable>, MemWriter)> {
    let options =
        MemTableOptions { order: order.clone(), arena_bytes: bytes as usize, bloom: true };
    let pool = match bytes < REGION_MIN {
        true => Arc::new(HeapPool),
        false => arenas.clone(),
    };
    MemTable::try_new(options, pool)
        .map_err(|none| memory::refused("a memtable", none.bytes, &none))
}
