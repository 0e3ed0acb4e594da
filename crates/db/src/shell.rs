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
//! A panic on the way (a broken invariant, or a comparator's) halts the core: nothing more is
//! started or committed, writes are refused, reads go on, and the database can be closed.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Duration;

use arc_swap::ArcSwap;
use lithify_base::{
    Comparator, ComparatorRef, Error, ErrorKind, FileId, JobId, KeyRange, Pos, Result,
};
use lithify_compact::{CompactionJob, CompactionSpec, Cut, FlushJob, FlushSpec, Outcome, Workshop};
use lithify_control::{Command, Core, Cutting, Event, Flow, MemId};
use lithify_engine::Engine;
use lithify_env::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use lithify_env::sync::{Arc, Mutex};
use lithify_env::{Class, Env, Job, LockGuard, Mono, Step, Ticket, Wake, panic_message};
use lithify_format::files::FileName;
use lithify_format::manifest::{WalAddition, WireEdit};
use lithify_lsm::{Edit, FileRef, Version};
use lithify_memtable::{ArenaPool, MemTable, MemTableOptions, MemWriter};
use lithify_plan::{JobSpec, ManualRequest};
use lithify_store::cache::{BlockCache, TableCache};
use lithify_store::dir::Dir;
use lithify_store::manifest::{ManifestLog, translate};
use lithify_store::wal::WalWriter;

use crate::events::{Events, Field};
use crate::gate::Gate;
use crate::metrics::{Counter, Metrics};
use crate::open::core_options;
use crate::settings::Settings;
use crate::snapshot::Snapshots;
use crate::super_version::{Mem, SuperVersion, Tree};
use crate::turn::Turn;
use crate::write::{Held, Log};

/// Size at which the event log is put aside as `EVENTS.old` and started anew, bytes.
const EVENTS_MAX: u64 = 32 << 20;
/// How often the upkeep job looks around when nothing wakes it.
const UPKEEP_EVERY: Duration = Duration::from_millis(50);

/// One open database.
pub(crate) struct Shell {
    pub(crate) settings: Settings,
    pub(crate) env: Env,
    pub(crate) dir: Dir,
    pub(crate) tables: Arc<TableCache>,
    pub(crate) blocks: Arc<BlockCache>,
    pub(crate) metrics: Metrics,
    pub(crate) gate: Gate,
    pub(crate) snapshots: Arc<Snapshots>,
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
    /// Jobs that a worker is busy with, each with the flag that tells it to stop.
    at_work: Mutex<BTreeMap<JobId, Arc<AtomicBool>>>,
    /// Files out of the tree that a reader may still pin.
    obsolete: Mutex<Vec<FileRef>>,
    /// Logs made since the open and not deleted.
    logs: Mutex<Vec<FileId>>,
    manual_results: Mutex<BTreeMap<u64, Result<()>>>,
    next_manual: AtomicU64,
    levels: Mutex<LevelTally>,
    /// Completed when the upkeep job shall end, and by it when it has.
    stop: Ticket,
    stopped: Ticket,
    closed: AtomicBool,
    read_only_handle: bool,
    me: std::sync::Weak<Shell>,
    lock: Mutex<Option<Box<dyn LockGuard>>>,
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
        let sv = SuperVersion { no: 0, mems, tree: Arc::new(Tree::new(version, None)) };
        let read_only_handle = p.manifest.is_none();
        let shell = Arc::new_cyclic(|me| Shell {
            me: me.clone(),
            events: Events::new(p.settings.event_log && !read_only_handle),
            published: AtomicU64::new(p.log.next_seq - 1),
            settings: p.settings,
            env: p.env,
            dir: p.dir,
            tables: p.tables,
            blocks: p.blocks,
            metrics: Metrics::new(),
            gate: Gate::new(),
            snapshots: Arc::default(),
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
            obsolete: Mutex::default(),
            logs: Mutex::default(),
            manual_results: Mutex::default(),
            next_manual: AtomicU64::new(1),
            levels: Mutex::default(),
            stop: Ticket::new(),
            stopped: Ticket::new(),
            closed: AtomicBool::new(false),
            read_only_handle,
            lock: Mutex::new(p.lock),
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
            let policy = shell.settings.policy.name();
            shell.note("opened", &[("policy", policy.into()), ("unix_seconds", wall.into())]);
            let upkeep = Upkeep { shell: shell.clone(), log: None, at: 0 };
            shell.env.rt.spawn(Class::Upkeep, Box::new(upkeep));
            shell.drive(Event::Tick);
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
    pub(crate) fn workshop(&self) -> &Workshop {
        &self.workshop
    }
    /// A file number nobody used before.
    pub(crate) fn next_file(&self) -> FileId {
        self.workshop.next_file()
    }
    /// An empty memtable and its write handle.
    pub(crate) fn new_memtable(&self) -> (Arc<MemTable>, MemWriter) {
        new_memtable(&self.settings, &self.order, &self.arenas)
    }

    /// Tells the mind what happened and carries out what it wants.
    pub(crate) fn drive(&self, event: Event) {
        let told = catch_unwind(AssertUnwindSafe(|| self.tell(|core, now| core.on(event, now))));
        if let Err(payload) = told {
            let what = format!("the database lost its mind: {}", panic_message(&*payload));
            let error = Error::new(ErrorKind::Internal, what);
            self.tell(|core, _| core.halt(error));
        }
    }

    fn tell(&self, event: impl FnOnce(&mut Core, u64) -> Vec<Command>) {
        // Commands that only set memory are applied under the lock, so that verdicts can't
        // overtake each other; the rest is ordered by what it waits for.
        let (commands, quieter) = {
            let mut core = self.core.lock();
            let now = self.env.rt.now();
            let before = (core.jobs(), core.is_idle());
            let mut rest = Vec::new();
            for command in event(&mut core, now.0) {
                match command {
                    Command::Press(pressure) => self.gate.press(pressure, now, &self.events),
                    Command::Trouble(error) => self.gate.trouble(error),
                    Command::ReadOnly { error } => self.refuse_writes(error, now),
                    other => rest.push(other),
                }
            }
            let after = (core.jobs(), core.is_idle());
            let over = after.0 < before.0 || (after.1 && !before.1);
            (rest, over || core.is_halted())
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
                if let Some(flag) = self.at_work.lock().get(&job) {
                    flag.store(true, Ordering::Relaxed);
                }
            }
            Command::Commit { edit, what } => self.commit_edit(*edit, what),
            Command::Install { no, version, flushed, obsolete } => {
                self.install(no, *version, flushed);
                self.obsolete.lock().extend(obsolete);
                self.progressed();
            }
            Command::ManualDone { id, result } => {
                self.manual_results.lock().insert(id, result);
                self.progressed();
            }
            Command::Press(_) | Command::Trouble(_) | Command::ReadOnly { .. } => {
                unreachable!("applied in tell")
            }
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

    fn me(&self) -> Arc<Shell> {
        self.me.upgrade().expect("a shell at work is alive")
    }

    fn note(&self, event: &str, fields: &[(&str, Field)]) {
        self.events.note(self.env.rt.now(), event, fields);
    }

    // ---- flushes

    fn start_flush(&self, job: JobId, mem: MemId, out: Pos, cutting: Cutting) {
        let sv = self.super_version();
        let found = sv.mems.iter().find(|m| m.id == mem);
        let table = found.expect("a frozen memtable is published until it is flushed");
        let bytes = table.table.bytes() as u64;
        let to = u64::from(out.level);
        let fields = [("job", job.0.into()), ("to", to.into()), ("bytes", bytes.into())];
        self.note("flush_start", &fields);
        let spec = FlushSpec {
            mem: table.table.clone(),
            out,
            snapshots: self.snapshots.list(),
            cut: self.cut(cutting, &sv.tree.version, &table.table),
        };
        self.at_work.lock().insert(job, Arc::default());
        let me = self.me();
        let report = Box::new(move |outcome| me.flush_ended(job, outcome));
        let work = FlushJob::new(self.workshop.clone(), spec, report);
        self.env.rt.spawn(Class::Flush, Box::new(work));
    }

    /// How a flush is cut. Keys that only go on where the tree ends (a sequential load) are not:
    /// their file will move down as it is.
    fn cut(&self, cutting: Cutting, version: &Version, mem: &MemTable) -> Cut {
        let beyond = |range: KeyRange| {
            version.file_count() > 0
                && version.files().all(|f| f.range.is_before(&range, self.order()))
        };
        match cutting {
            Cutting::Whole => Cut::Whole,
            _ if mem.range().is_some_and(beyond) => Cut::Whole,
            Cutting::By(map) => Cut::By(map),
            Cutting::First => Cut::First {
                version: Box::new(version.clone()),
                options: Box::new(core_options(&self.settings).plan),
            },
        }
    }

    fn flush_ended(&self, job: JobId, outcome: Outcome) {
        self.at_work.lock().remove(&job);
        let flow = outcome.flow.map(|(map, report)| Box::new(Flow { map, report }));
        match outcome.result {
            Ok(adds) => {
                let work = outcome.work;
                self.metrics.add(Counter::Flushes, 1);
                self.metrics.add(Counter::FlushBytes, work.written);
                self.metrics.add(Counter::FlushNanos, work.nanos);
                self.metrics.flush.record(work.nanos);
                let mut levels = self.levels.lock();
                levels.written[0] += work.written;
                levels.jobs[0] += 1;
                drop(levels);
                self.note(
                    "flush_end",
                    &[
                        ("job", job.0.into()),
                        ("files", (adds.len() as u64).into()),
                        ("bytes", work.written.into()),
                        ("micros", (work.nanos / 1000).into()),
                    ],
                );
                self.drive(Event::Built { job, adds, flow });
            }
            Err(error) => self.job_failed(job, error),
        }
    }

    // ---- compactions

    fn start_compaction(
        &self,
        job: JobId,
        spec: Arc<JobSpec>,
        inputs: Vec<FileRef>,
        version: Version,
    ) {
        let from = inputs.iter().map(|f| f.pos.level).min().unwrap_or(spec.out.level);
        self.note(
            "compaction_start",
            &[
                ("job", job.0.into()),
                ("kind", format!("{:?}", spec.kind).into()),
                ("from", u64::from(from).into()),
                ("to", u64::from(spec.out.level).into()),
                ("what", spec.describe(&version).into()),
                ("why", spec.reason.to_string().into()),
                ("bytes", spec.est.read.into()),
            ],
        );
        let abort: Arc<AtomicBool> = Arc::default();
        self.at_work.lock().insert(job, abort.clone());
        let to = usize::from(spec.out.level);
        let work = CompactionSpec {
            job,
            plan: spec,
            inputs,
            version,
            snapshots: self.snapshots.list(),
            abort,
        };
        let me = self.me();
        let report = Box::new(move |outcome| me.compaction_ended(job, to, outcome));
        let work = CompactionJob::new(self.workshop.clone(), self.engine.clone(), work, report);
        self.env.rt.spawn(Class::Compact, Box::new(work));
    }

    fn compaction_ended(&self, job: JobId, to: usize, outcome: Outcome) {
        self.at_work.lock().remove(&job);
        let work = outcome.work;
        self.metrics.add(Counter::CompactionNanos, work.nanos);
        self.metrics.add(Counter::CompactionCpuNanos, work.cpu_nanos);
        self.metrics.add(Counter::CompactionRead, work.read);
        self.metrics.add(Counter::CompactionWrite, work.written);
        self.metrics.add(Counter::CompactionEntries, work.entries_in);
        self.metrics.add(Counter::CompactionDrops, work.entries_in - work.entries_out);
        match outcome.result {
            Ok(adds) => {
                self.metrics.add(Counter::Compactions, 1);
                self.metrics.compaction.record(work.nanos);
                let mut levels = self.levels.lock();
                levels.written[to] += work.written;
                levels.read[to] += work.read;
                levels.jobs[to] += 1;
                drop(levels);
                self.note(
                    "compaction_end",
                    &[
                        ("job", job.0.into()),
                        ("files", (adds.len() as u64).into()),
                        ("read", work.read.into()),
                        ("written", work.written.into()),
                        ("entries", work.entries_in.into()),
                        ("dropped", (work.entries_in - work.entries_out).into()),
                        ("micros", (work.nanos / 1000).into()),
                        ("cpu_micros", (work.cpu_nanos / 1000).into()),
                    ],
                );
                self.drive(Event::Built { job, adds, flow: None });
            }
            Err(error) => self.job_failed(job, error),
        }
    }

    fn job_failed(&self, job: JobId, error: Error) {
        let what = if error.kind() == ErrorKind::ShuttingDown {
            "job_stopped"
        } else {
            self.metrics.add(Counter::JobFailures, 1);
            "job_failed"
        };
        self.note(what, &[("job", job.0.into()), ("cause", error.to_string().into())]);
        self.drive(Event::Failed { job, error });
        self.progressed();
    }

    // ---- the manifest

    /// Hands an edit to an upkeep job, together with the manifest.
    fn commit_edit(&self, edit: Edit, what: String) {
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
            true => (no, Arc::new(Tree::new(version, Some(&now.tree)))),
            false => (now.no, now.tree.clone()),
        };
        self.current.store(Arc::new(SuperVersion { no, mems, tree }));
    }

    /// Remembers a log that will be obsolete one day.
    pub(crate) fn log_made(&self, number: FileId) {
        self.logs.lock().push(number);
    }

    /// Deletes logs whose writes are all in tables.
    fn sweep_logs(&self) {
        let first = self.core.lock().version().log_number();
        let gone: Vec<FileId> = {
            let mut logs = self.logs.lock();
            logs.extract_if(.., |n| n.0 < first).collect()
        };
        for number in gone {
            if let Err(e) = self.dir.remove(FileName::Wal(number.0)) {
                self.note("delete_failed", &[("cause", e.to_string().into())]);
            }
        }
    }

    /// Deletes obsolete tables that nobody pins any more: the list holds the last references. A
    /// table that moved is known by a reference for each place it had, and goes with the last.
    fn sweep_tables(&self) {
        let free: Vec<FileRef> = {
            let mut list = self.obsolete.lock();
            let (free, kept): (Vec<_>, Vec<_>) =
                std::mem::take(&mut *list).into_iter().partition(|f| Arc::strong_count(f) == 1);
            let pinned: BTreeSet<FileId> = kept.iter().map(|f| f.id).collect();
            let (free, still) = free.into_iter().partition(|f| !pinned.contains(&f.id));
            *list = kept;
            list.extend::<Vec<_>>(still);
            free
        };
        if free.is_empty() {
            return;
        }
        let version = self.core.lock().version().clone();
        let gone: BTreeSet<FileId> =
            free.iter().map(|f| f.id).filter(|id| version.file(*id).is_none()).collect();
        for id in gone {
            self.tables.forget(id);
            if let Err(e) = self.dir.remove(FileName::Table(id.0)) {
                // An orphan now; the next open collects it.
                self.note("delete_failed", &[("cause", e.to_string().into())]);
            }
        }
    }

    // ---- memory

    /// Gives the block cache what memtables and open tables leave of the budget, and a sixteenth
    /// of it in any case.
    fn fit_cache(&self) {
        let room = self.settings.cache_budget();
        let tables = self.current.load().tree.memory();
        let bytes = room.saturating_sub(tables).max(room / 16);
        // Steps of 1/64: what a table more or less weighs is not worth an eviction run.
        if self.blocks.capacity().abs_diff(bytes) > room / 64 {
            self.blocks.set_capacity(bytes);
        }
    }

    // ---- waiting

    /// Waits until `done` says so, asking again at every progress.
    fn wait_until<T>(
        &self,
        limit: Option<Duration>,
        mut done: impl FnMut(&Shell) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        let deadline = limit.map(|l| self.env.rt.now() + l);
        loop {
            let ticket = self.progress.lock().clone();
            if let Some(answer) = done(self)? {
                return Ok(Some(answer));
            }
            if self.env.rt.park(&ticket, deadline) == Wake::TimedOut {
                return done(self);
            }
        }
    }

    /// Freezes the memtable and waits until it is in the tree.
    pub(crate) fn flush(&self) -> Result<()> {
        let mut held = Held::new(self, self.take_turn()?);
        let frozen = self.freeze_for_flush(held.log());
        drop(held);
        self.wait_flushed(frozen?)
    }

    /// Freezes the memtable unless it is empty; what to wait for.
    fn freeze_for_flush(&self, log: &mut Log) -> Result<Option<MemId>> {
        if let Some(error) = self.gate.refused() {
            return Err(error);
        }
        if !log.mem.table().is_empty() {
            self.freeze(log)?;
        }
        // Older frozen memtables are part of what the caller wants on disk.
        Ok(log.mem_id.0.checked_sub(1).filter(|n| *n > 0).map(MemId))
    }

    fn wait_flushed(&self, last: Option<MemId>) -> Result<()> {
        let Some(last) = last else { return Ok(()) };
        let (troubles, _) = self.core.lock().flush_trouble();
        self.wait_until(None, |shell| {
            // What counts is what readers see: the core knows a little earlier.
            if shell.current.load().mems.iter().all(|m| m.id > last) {
                return Ok(Some(()));
            }
            let core = shell.core.lock();
            // It will be tried again, but whoever waits shall know.
            if let (now, Some(error)) = core.flush_trouble()
                && now > troubles
            {
                return Err(error.clone());
            }
            drop(core);
            match shell.gate.refused() {
                Some(error) => Err(error),
                None => Ok(None),
            }
        })?;
        Ok(())
    }

    /// Compacts `range` (all keys if `None`) and waits for it.
    pub(crate) fn compact(&self, range: Option<KeyRange>) -> Result<()> {
        if let Some(error) = self.gate.refused() {
            return Err(error);
        }
        let id = self.next_manual.fetch_add(1, Ordering::Relaxed);
        let up_to = self.published.load(Ordering::Acquire);
        let request = ManualRequest { up_to: Some(up_to), ..ManualRequest::new(range) };
        self.drive(Event::Manual { id, request });
        self.wait_until(None, |shell| Ok(shell.manual_results.lock().remove(&id)))?
            .unwrap_or(Ok(()))
    }

    pub(crate) fn wait_idle(&self, limit: Option<Duration>) -> Result<bool> {
        let idle = self.wait_until(limit, |shell| {
            let (idle, installs) = {
                let core = shell.core.lock();
                (core.is_idle(), core.installs())
            };
            if idle && shell.current.load().no >= installs {
                return Ok(Some(()));
            }
            match shell.gate.refused() {
                Some(error) => Err(error),
                None => Ok(None),
            }
        })?;
        Ok(idle.is_some())
    }

    pub(crate) fn set_auto_compaction(&self, on: bool) {
        if self.read_only_handle {
            return; // its tree is as it was left, whatever is due
        }
        self.drive(Event::AutoCompaction { on });
    }

    // ---- the end

    /// Ends the database: what no log holds is flushed, jobs end, the log is closed. Only the
    /// first call does it.
    pub(crate) fn close(&self) -> Result<()> {
        if self.closed.swap(true, Ordering::AcqRel) || self.read_only_handle {
            return Ok(());
        }
        self.gate.hurry(self.closed_error());
        let mut log = self.take_turn()?;
        let flushed = match self.gate.refused() {
            None => self.flush_unlogged(&mut log),
            Some(_) => Ok(()),
        };
        self.turn.close(self.closed_error());
        self.gate.refuse(self.closed_error());
        self.drive(Event::Closing);
        self.progressed();
        self.wait_until(None, |shell| {
            let core = shell.core.lock();
            let over = shell.at_work.lock().is_empty() && (core.jobs() == 0 || core.is_halted());
            Ok(over.then_some(()))
        })?;
        let sealed = log.wal.take().map_or(Ok(None), close_log);
        let synced = self.sync_closing(&mut log.closing);
        if let (Ok(Some(number)), Ok(())) = (&sealed, &synced) {
            self.record_log(*number);
        }
        drop(log);
        self.stop.complete();
        self.env.rt.park(&self.stopped, None);
        *self.lock.lock() = None;
        flushed.and(sealed.map(drop)).and(synced)
    }

    /// Waits until no memtable holds writes that no log holds.
    fn flush_unlogged(&self, log: &mut Log) -> Result<()> {
        match log.unlogged {
            true => self.freeze_for_flush(log).and_then(|last| self.wait_flushed(last)),
            false => self.wait_flushed(log.unlogged_before),
        }
    }

    /// Notes in the manifest that the last log is whole, so that the next open misses what
    /// someone removes or cuts off meanwhile. The log is as safe without.
    fn record_log(&self, number: FileId) {
        let Some(mut manifest) = self.manifest.lock().take() else { return };
        let Ok(synced) = self.dir.len_of(FileName::Wal(number.0)) else { return };
        let addition = WalAddition { number: number.0, synced };
        let edit = WireEdit { wal_additions: vec![addition], ..WireEdit::default() };
        if manifest.uncertain().is_none()
            && let Err(e) = manifest.commit(&[edit])
        {
            self.note("log_not_recorded", &[("cause", e.to_string().into())]);
        }
    }
}

/// Seals and syncs the last log; its number.
fn close_log(wal: WalWriter) -> Result<Option<FileId>> {
    let number = wal.number();
    wal.close().map(|()| Some(number))
}

/// An empty memtable and its write handle.
pub(crate) fn new_memtable(
    settings: &Settings,
    order: &ComparatorRef,
    arenas: &Arc<dyn ArenaPool>,
) -> (Arc<MemTable>, MemWriter) {
    let options = MemTableOptions {
        order: order.clone(),
        arena_bytes: settings.memtable_bytes as usize,
        bloom: true,
    };
    MemTable::new(options, arenas.clone())
}

/// Closes the database when the last handle goes.
pub(crate) struct Closer(pub(crate) Arc<Shell>);

impl Drop for Closer {
    fn drop(&mut self) {
        // Nobody is left to be told; `Db::close` is there for those who want to know.
        let _ = self.0.close();
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
    fn panicked(&mut self, message: String) {
        let error = Error::new(ErrorKind::Internal, message);
        self.shell.drive(Event::EditFailed { error });
    }
}

/// Looks around now and then: time for the mind, the event log, files nobody pins any more.
struct Upkeep {
    shell: Arc<Shell>,
    log: Option<lithify_env::FileRef>,
    at: u64,
}

impl Upkeep {
    fn write_events(&mut self) {
        let text = self.shell.events.drain();
        if text.is_empty() {
            return;
        }
        let path = self.shell.dir.path().join("EVENTS");
        if self.log.is_some() && self.at > EVENTS_MAX {
            // The log before this one is given up: two of them are as much as anyone reads.
            self.log = None;
            let old = self.shell.dir.path().join("EVENTS.old");
            let _ = self.shell.env.fs.rename(&path, &old);
        }
        if self.log.is_none() {
            let opts = lithify_env::OpenOpts::write().or_create();
            let Ok(file) = self.shell.env.fs.open(&path, opts) else { return };
            self.at = file.len().unwrap_or(0);
            self.log = Some(file);
        }
        if let Some(file) = &self.log
            && lithify_env::write_all_at(&**file, text.as_bytes(), self.at).is_ok()
        {
            self.at += text.len() as u64;
        }
    }
}

impl Job for Upkeep {
    fn step(&mut self) -> Step {
        self.shell.drive(Event::Tick);
        self.shell.sweep_logs();
        self.shell.sweep_tables();
        self.shell.fit_cache();
        self.write_events();
        if self.shell.stop.is_done() {
            self.shell.stopped.complete();
            return Step::Done;
        }
        Step::WaitUntil(self.shell.stop.clone(), self.shell.env.rt.now() + UPKEEP_EVERY)
    }
    fn panicked(&mut self, message: String) {
        self.shell.go_read_only(Error::new(ErrorKind::Internal, message));
        self.shell.stopped.complete();
    }
}

#[cfg(test)]
mod tests;
