//! The shell: runs the mind. It tells the [`Core`] what happened, carries out its commands, and
//! owns everything that touches the world: files, threads, the published views.
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
//! [`waiting`] what callers wait for, [`closing`] the end. Here is what they share.
//!
//! A panic on the way (a broken invariant, or a comparator's) halts the core: nothing more is
//! started or committed, writes are refused, reads go on, and the database can be closed.

mod closing;
mod commits;
mod jobs;
mod upkeep;
mod waiting;

#[cfg(test)]
mod tests;

pub(crate) use closing::Closer;
pub(crate) use upkeep::HANGS;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use arc_swap::ArcSwap;
use lithify_base::{
    Comparator, ComparatorRef, Error, ErrorKind, FileId, JobId, KeyRange, Result, memory,
};
use lithify_compact::{Reins, Workshop};
use lithify_control::{Command, Core, Event, MemId};
use lithify_engine::Engine;
use lithify_env::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use lithify_env::sync::{Arc, Mutex, Weak};
use lithify_env::{Class, Env, LockGuard, Mono, Ticket, panic_message};
use lithify_format::files::FileName;
use lithify_lsm::{FileRef, Version};
use lithify_memtable::{ArenaPool, MemTable, MemTableOptions, MemWriter};
use lithify_store::cache::{BlockCache, TableCache};
use lithify_store::dir::Dir;
use lithify_store::manifest::ManifestLog;

use crate::events::{Events, Field};
use crate::gate::Gate;
use crate::listener::Listeners;
use crate::metrics::Metrics;
use crate::open::Files;
use crate::settings::Settings;
use crate::snapshot::Snapshots;
use crate::super_version::{Mem, SuperVersion, Tree};
use crate::turn::Turn;
use crate::txn::locks::Locks;
use crate::write::Log;
use crate::write::logs::LogFile;

use closing::Ending;
use upkeep::Upkeep;

/// One open database.
pub(crate) struct Shell {
    /// Those in force; some can change.
    pub(crate) settings: ArcSwap<Settings>,
    pub(crate) env: Env,
    /// Of `env`.
    pub(crate) files: Files,
    pub(crate) dir: Dir,
    pub(crate) tables: Arc<TableCache>,
    pub(crate) blocks: Arc<BlockCache>,
    pub(crate) metrics: Metrics,
    pub(crate) gate: Gate,
    pub(crate) snapshots: Arc<Snapshots>,
    /// Of pessimistic transactions.
    pub(crate) locks: Locks,
    pub(crate) turn: Turn<Log>,
    /// What readers see.
    pub(crate) current: ArcSwap<SuperVersion>,
    /// Every write up to this number is visible.
    pub(crate) published: AtomicU64,
    pub(crate) events: Events,
    order: ComparatorRef,
    core: Mutex<Core>,
    views: Mutex<()>,
    /// Completed and replaced whenever something was installed, failed or ended.
    progress: Mutex<Ticket>,
    /// The manifest, while no edit is being written.
    manifest: Mutex<Option<Box<ManifestLog>>>,
    workshop: Arc<Workshop>,
    engine: Arc<dyn Engine>,
    arenas: Arc<dyn ArenaPool>,
    /// Jobs that a worker is busy with.
    at_work: Mutex<BTreeMap<JobId, Arc<AtWork>>>,
    /// Callers that wait for background work to end.
    awaited: AtomicUsize,
    /// Callers that hold background work back.
    pub(crate) pauses: AtomicUsize,
    /// Somebody changes settings.
    pub(crate) altering: AtomicBool,
    /// Size at which a memtable is full; it never changes.
    pub(crate) memtable_bytes: u64,
    /// Trees that readers may still look at, the newest last.
    trees: Mutex<Vec<Weak<Tree>>>,
    /// Files out of the tree that a reader may still pin.
    obsolete: Mutex<Vec<FileRef>>,
    /// Files of jobs that were given up.
    litter: Mutex<Vec<FileId>>,
    /// Logs made since the open and not deleted.
    logs: Mutex<Vec<LogFile>>,
    manual_results: Mutex<BTreeMap<u64, Result<()>>>,
    pub(crate) next_manual: AtomicU64,
    levels: Mutex<LevelTally>,
    /// Answers of the core that are being carried out: some of it nobody else can see yet.
    under_way: AtomicUsize,
    /// Completed when the upkeep job shall end, and by it when it has.
    stop: Ticket,
    stopped: Ticket,
    closed: AtomicBool,
    /// Whoever closes leaves a manifest that RocksDB reads.
    pub(crate) settled: AtomicBool,
    ending: Ending,
    read_only_handle: bool,
    me: Weak<Shell>,
    lock: Mutex<Option<Arc<dyn LockGuard>>>,
}

/// While it lives, a close waits: for commands handed out and not carried out, and for edits being
/// written.
struct UnderWay(Arc<Shell>);

impl UnderWay {
    fn new(shell: Arc<Shell>) -> UnderWay {
        shell.under_way.fetch_add(1, Ordering::SeqCst);
        UnderWay(shell)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let last = self.0.under_way.fetch_sub(1, Ordering::SeqCst) == 1;
        if last && self.0.closed.load(Ordering::SeqCst) {
            self.0.progressed();
        }
    }
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

/// What `open` hands over.
pub(crate) struct Parts {
    pub(crate) settings: Settings,
    pub(crate) env: Env,
    /// Of `env`.
    pub(crate) files: Files,
    pub(crate) listeners: Listeners,
    pub(crate) dir: Dir,
    pub(crate) tables: Arc<TableCache>,
    pub(crate) blocks: Arc<BlockCache>,
    pub(crate) core: Core,
    pub(crate) log: Box<Log>,
    /// Memtables of a handle that only reads, oldest first.
    pub(crate) older: Vec<Arc<MemTable>>,
    pub(crate) manifest: Option<Box<ManifestLog>>,
    pub(crate) workshop: Arc<Workshop>,
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) arenas: Arc<dyn ArenaPool>,
    pub(crate) lock: Option<Box<dyn LockGuard>>,
}

impl Shell {
    pub(crate) fn new(p: Parts) -> Arc<Shell> {
        let version = p.core.version().clone();
        let order = version.comparator().clone();
        let mut mems = vec![Mem { id: p.log.mem_id, table: p.log.mem.table().clone() }];
        for (i, table) in p.older.into_iter().enumerate() {
            mems.insert(1, Mem { id: MemId(i as u64), table });
        }
        let tree = Arc::new(Tree::new(version, None));
        let trees = Mutex::new(vec![Arc::downgrade(&tree)]);
        let sv = SuperVersion { no: 0, mems, tree };
        let read_only_handle = p.manifest.is_none();
        let shell = Arc::new_cyclic(|me| Shell {
            me: me.clone(),
            events: Events::new(p.settings.event_log && !read_only_handle)
                .with_listeners(p.listeners),
            published: AtomicU64::new(p.log.next_seq - 1),
            memtable_bytes: p.settings.memtable_bytes,
            settings: ArcSwap::from_pointee(p.settings),
            env: p.env,
            files: p.files,
            dir: p.dir,
            tables: p.tables,
            blocks: p.blocks,
            metrics: Metrics::new(),
            gate: Gate::new(),
            snapshots: Arc::default(),
            locks: Locks::default(),
            turn: Turn::new(p.log),
            current: ArcSwap::from_pointee(sv),
            order,
            core: Mutex::new(p.core),
            views: Mutex::new(()),
            progress: Mutex::default(),
            manifest: Mutex::new(p.manifest),
            workshop: p.workshop,
            engine: p.engine,
            arenas: p.arenas,
            at_work: Mutex::default(),
            awaited: AtomicUsize::new(0),
            pauses: AtomicUsize::new(0),
            altering: AtomicBool::new(false),
            trees,
            obsolete: Mutex::default(),
            litter: Mutex::default(),
            logs: Mutex::default(),
            manual_results: Mutex::default(),
            next_manual: AtomicU64::new(1),
            levels: Mutex::default(),
            stop: Ticket::new(),
            stopped: Ticket::new(),
            under_way: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
            settled: AtomicBool::new(false),
            ending: Ending::default(),
            read_only_handle,
            lock: Mutex::new(p.lock.map(Arc::from)),
        });
        if read_only_handle {
            shell.gate.refuse(Error::new(
                ErrorKind::ReadOnly,
                "the database was opened for reading only; open it with `open` to write",
            ));
            shell.stopped.complete();
        } else {
            // The clock of the log starts anew with each open.
            let wall = shell.env.rt.wall_seconds();
            let policy = shell.settings.load().effective_policy().name();
            shell.note("opened", &[("policy", policy.into()), ("unix_seconds", wall.into())]);
            let upkeep = Upkeep::new(shell.clone());
            shell.env.rt.spawn(Class::Upkeep, Box::new(upkeep));
            shell.drive(Event::Awaited { by: 0 });
        }
        shell
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }
    pub(crate) fn order(&self) -> &dyn Comparator {
        &*self.order
    }
    pub(crate) fn core(&self) -> lithify_env::sync::MutexGuard<'_, Core> {
        self.core.lock()
    }
    pub(crate) fn tally(&self) -> lithify_env::sync::MutexGuard<'_, LevelTally> {
        self.levels.lock()
    }
    /// Jobs that a worker is busy with.
    pub(crate) fn at_work(&self) -> BTreeMap<JobId, Arc<AtWork>> {
        self.at_work.lock().clone()
    }
    /// Opens every table of the tree: from now on nobody can take them away.
    pub(crate) fn open_tables(&self) -> Result<()> {
        let sv = self.super_version();
        let mut slots = sv.tree.runs.iter().flat_map(|run| run.slots.iter());
        slots.try_for_each(|slot| slot.reader(&self.tables).map(drop))
    }
    pub(crate) fn is_read_only_handle(&self) -> bool {
        self.read_only_handle
    }
    pub(crate) fn workshop(&self) -> &Workshop {
        &self.workshop
    }
    /// A file number nobody used before.
    pub(crate) fn next_file(&self) -> FileId {
        self.workshop.next_file()
    }
    /// An empty memtable and its write handle.
    pub(crate) fn new_memtable(&self) -> Result<(Arc<MemTable>, MemWriter)> {
        new_memtable(&self.settings.load(), &self.order, &self.arenas)
    }

    /// Tells the mind what happened and carries out what it wants.
    pub(crate) fn drive(&self, event: Event) {
        self.drive_by(|| event);
    }

    /// The same with an event that is looked up under the core's lock: of two such events the one
    /// that comes later is the newer one.
    pub(crate) fn drive_by(&self, event: impl FnOnce() -> Event) {
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
            let mut core = self.core.lock();
            let now = self.env.rt.now();
            let before = (core.jobs(), core.is_idle());
            let mut rest = Vec::new();
            for command in event(&mut core, now.0) {
                match command {
                    Command::Press(pressure) => self.gate.press(pressure, now, &self.events),
                    Command::Trouble(error) => self.gate.trouble(error),
                    Command::Stuck(error) => self.gate.stuck(error, now, &self.events),
                    Command::ReadOnly { error } => self.refuse_writes(error, now),
                    other => rest.push(other),
                }
            }
            let after = (core.jobs(), core.is_idle());
            let over = after.0 < before.0 || (after.1 && !before.1);
            let under_way = (!rest.is_empty()).then(|| UnderWay::new(self.me()));
            (rest, over || core.is_halted(), under_way)
        };
        for command in commands {
            self.execute(command);
        }
        // A job may leave the table, or the mind find nothing to do, without any command.
        if quieter {
            self.progressed();
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
                if let Some(work) = self.at_work.lock().get(&job) {
                    work.reins.stop();
                }
            }
            Command::Discard { files } => self.litter.lock().extend(files),
            Command::Hurry { job, prio } => {
                if let Some(work) = self.at_work.lock().get(&job) {
                    work.reins.hurry(prio);
                }
            }
            Command::Commit { edits } => self.commit_edits(edits),
            Command::Install { no, version, flushed, obsolete } => {
                self.install(no, *version, flushed);
                self.obsolete.lock().extend(obsolete);
                self.progressed();
            }
            Command::ManualDone { id, result } => {
                self.manual_results.lock().insert(id, result);
                self.progressed();
            }
            Command::Press(_)
            | Command::Trouble(_)
            | Command::Stuck(_)
            | Command::ReadOnly { .. } => unreachable!("applied in tell"),
        }
    }

    /// Wakes whoever waits for the tree to change.
    fn progressed(&self) {
        std::mem::take(&mut *self.progress.lock()).complete();
    }

    fn refuse_writes(&self, error: Error, now: Mono) {
        self.events.note(now, "read_only", &[("cause", error.to_string().into())]);
        self.gate.refuse(Error::new(
            ErrorKind::ReadOnly,
            "an earlier error stopped writes; reads go on; reopen the database once the cause is \
             mended",
        )
        .caused_by(error));
        self.progressed();
    }

    /// Stops writes for good.
    pub(crate) fn go_read_only(&self, error: Error) {
        self.refuse_writes(error, self.env.rt.now());
    }

    pub(crate) fn closed_error(&self) -> Error {
        Error::new(ErrorKind::ShuttingDown, "the database is closed; open it again to go on")
    }

    /// A handle that outlives the close must not read on: its files may be somebody else's by now.
    pub(crate) fn check_open(&self) -> Result<()> {
        if self.closed.load(Ordering::Relaxed) { Err(self.closed_error()) } else { Ok(()) }
    }

    /// A child of a fork has a copy of everything but the threads. What it wrote would land in the
    /// parent's files.
    pub(crate) fn check_home(&self) -> Result<()> {
        match self.env.rt.is_at_home() {
            true => Ok(()),
            false => Err(Error::new(
                ErrorKind::Fenced,
                "the database was opened before this process was forked off, and belongs to the \
                 parent; open it here once the parent has closed it",
            )),
        }
    }

    /// Whether the directory is still ours: asked before every commit and before whatever reaches
    /// stable storage. A database that has lost it never writes again.
    pub(crate) fn check_owner(&self) -> Result<()> {
        let lock = self.lock.lock().clone();
        let Some(lock) = lock.filter(|lock| !lock.is_owner()) else { return Ok(()) };
        let what = "the lock file is not the one this handle took: it was removed, and another may \
                    have the database open by now; nothing more is written here";
        Err(self.fence(what, lock.path()))
    }

    /// The same where the lock can't tell, because its file was put back or the file system has no
    /// identities to compare: every open leaves a manifest of its own in CURRENT.
    pub(crate) fn check_epoch(&self, manifest: &ManifestLog) -> Result<()> {
        // If nobody can tell, the lock's word stands.
        if manifest.is_current().unwrap_or(true) {
            return Ok(());
        }
        let what = "CURRENT names a manifest that this handle did not make: another has opened the \
                    database since; nothing more is written here";
        Err(self.fence(what, &self.dir.path_of(FileName::Current)))
    }

    fn fence(&self, what: &str, path: &Path) -> Error {
        let error = Error::new(ErrorKind::Fenced, what).in_file(path.display());
        self.go_read_only(error.clone());
        error
    }

    /// A reference that keeps nothing open.
    pub(crate) fn weak(&self) -> Weak<Shell> {
        self.me.clone()
    }
    pub(crate) fn me(&self) -> Arc<Shell> {
        self.me.upgrade().expect("a shell at work is alive")
    }

    pub(crate) fn note(&self, event: &str, fields: &[(&str, Field)]) {
        self.events.note(self.env.rt.now(), event, fields);
    }

    // ---- what readers see

    /// Puts a fresh active memtable in front of the frozen one.
    pub(crate) fn push_memtable(&self, new: MemId, table: Arc<MemTable>) {
        let _one_at_a_time = self.views.lock();
        let mut next = SuperVersion::clone(&self.current.load());
        next.mems.insert(0, Mem { id: new, table });
        self.current.store(Arc::new(next));
    }

    /// Shows readers tree number `no`, which holds every memtable up to `flushed`. A tree that
    /// comes after its successor changes nothing, as the successor holds what it holds.
    fn install(&self, no: u64, version: Version, flushed: Option<MemId>) {
        let _one_at_a_time = self.views.lock();
        let now = self.current.load_full();
        let mems = now.mems.iter().filter(|m| flushed.is_none_or(|f| m.id > f)).cloned().collect();
        let (no, tree) = match no > now.no {
            true => {
                let tree = Arc::new(Tree::new(version, Some(&now.tree)));
                let mut trees = self.trees.lock();
                trees.retain(|t| t.strong_count() > 0);
                trees.push(Arc::downgrade(&tree));
                (no, tree)
            }
            false => (now.no, now.tree.clone()),
        };
        self.current.store(Arc::new(SuperVersion { no, mems, tree }));
    }
}

/// An empty memtable and its write handle.
pub(crate) fn new_memtable(
    settings: &Settings,
    order: &ComparatorRef,
    arenas: &Arc<dyn ArenaPool>,
) -> Result<(Arc<MemTable>, MemWriter)> {
    let options = MemTableOptions {
        order: order.clone(),
        arena_bytes: settings.memtable_bytes as usize,
        bloom: true,
    };
    MemTable::try_new(options, arenas.clone())
        .map_err(|none| memory::refused("a memtable", none.bytes, &none))
}
