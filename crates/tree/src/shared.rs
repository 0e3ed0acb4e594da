//! What the column families of one database share: the world and the directory, the write turn
//! with the log, the manifest, sequence numbers, the block cache, counters and the event log.
//!
//! Each family has a [`Shell`] of its own, with its own mind, tree, memtables and gate; all of them
//! point here. Threads are shared by the runtime: its queues order the jobs of all families by
//! their urgency.
//! Leaves to others: everything about a single tree (`shell`).

use std::path::Path;

use arc_swap::ArcSwap;
use lithify_base::{Error, ErrorKind, FileId, Result, shown_path};
use lithify_control::Event;
use lithify_env::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use lithify_env::sync::{Arc, Mutex};
use lithify_env::{Class, LockGuard, Ticket};
use lithify_format::files::FileName;
use lithify_memtable::MemWriter;
use lithify_store::manifest::ManifestLog;

use crate::events::Events;
use crate::listener::Listeners;
use crate::metrics::Metrics;
use crate::open::Resources;
use crate::reentry::Mark;
use crate::settings::Settings;
use crate::shell::closing::Ending;
use crate::shell::commits::Desk;
use crate::shell::upkeep::Upkeep;
use crate::shell::{OpenFamily, Shell, TreeParts};
use crate::snapshot::Snapshots;
use crate::solo::Solo;
use crate::turn::Turn;
use crate::write::logs::{Closing, LogFile};
use crate::write::{Filling, Log};

/// One open database. Its families know nothing of it: a [`Shell`] joins the two.
pub(crate) struct Shared {
    /// Of the database as a whole, and of its default family: those in force.
    pub(crate) db_settings: ArcSwap<Settings>,
    /// Held while settings are changed.
    pub(crate) altering: Solo,
    pub(crate) resources: Resources,
    /// Largest number a family ever had.
    pub(crate) max_cf: AtomicU32,
    pub(crate) metrics: Metrics,
    pub(crate) events: Events,
    pub(crate) snapshots: Arc<Snapshots>,
    pub(crate) writes: Writes,
    /// The manifest, and edits that wait for it.
    pub(crate) desk: Mutex<Desk>,
    /// The open families by number, the default one first; none once the database is closed.
    pub(crate) families: Mutex<Vec<Arc<OpenFamily>>>,
    /// Dropped families that still have files or jobs.
    pub(crate) dropped: Mutex<Vec<Arc<OpenFamily>>>,
    pub(crate) background: Background,
    pub(crate) life: Life,
}

/// The write turn with the log, how far writes are visible, and the logs that were written before.
pub(crate) struct Writes {
    pub(crate) turn: Turn<Log>,
    /// Every write up to this number is visible.
    pub(crate) published: AtomicU64,
    /// Number of the log that writes go to, or that the next one begins. It may lag behind, and
    /// never runs ahead.
    pub(crate) log_now: AtomicU64,
    /// Logs below this number hold nothing that any family needs, as the manifest says.
    pub(crate) logs_from: AtomicU64,
    /// Logs on their way to stable storage, and those that did not get there.
    pub(crate) closing: Mutex<Vec<Closing>>,
    /// Logs made since the open and not deleted.
    pub(crate) logs: Mutex<Vec<LogFile>>,
}

/// What holds background work back, and how far it is.
pub(crate) struct Background {
    /// Callers that hold background work back.
    pub(crate) pauses: AtomicUsize,
    /// The room on the disk, or of its budget, is looked up often.
    pub(crate) disk_low: AtomicBool,
    /// Completed and replaced whenever something was installed, failed or ended.
    pub(crate) progress: Mutex<Ticket>,
    /// Answers of cores that are being carried out: some of it no other thread can see yet.
    pub(crate) under_way: AtomicUsize,
    /// Completed when the upkeep job shall end, and by it when it has.
    pub(crate) stop: Ticket,
    pub(crate) stopped: Ticket,
}

/// Whether the database is open, for what, and how it ended.
pub(crate) struct Life {
    pub(crate) closed: AtomicBool,
    /// The close leaves a manifest that RocksDB reads.
    pub(crate) settled: AtomicBool,
    pub(crate) ending: Ending,
    pub(crate) read_only_handle: bool,
    pub(crate) lock: Mutex<Option<Arc<dyn LockGuard>>>,
}

/// What `open` hands over for the whole database.
pub(crate) struct Parts {
    pub(crate) settings: Settings,
    pub(crate) listeners: Listeners,
    pub(crate) resources: Resources,
    pub(crate) max_cf: u32,
    pub(crate) log: Box<Log>,
    /// None for a handle that only reads.
    pub(crate) manifest: Option<Box<ManifestLog>>,
    pub(crate) lock: Option<Box<dyn LockGuard>>,
}

impl Shared {
    pub(crate) fn new(p: Parts) -> Arc<Shared> {
        let read_only_handle = p.manifest.is_none();
        Arc::new(Shared {
            events: Events::new(p.settings.event_log && !read_only_handle)
                .with_listeners(p.listeners),
            altering: Solo::default(),
            max_cf: AtomicU32::new(p.max_cf),
            db_settings: ArcSwap::from_pointee(p.settings),
            resources: p.resources,
            metrics: Metrics::new(),
            snapshots: Arc::default(),
            writes: Writes {
                published: AtomicU64::new(p.log.next_seq - 1),
                log_now: AtomicU64::new(p.log.wal_number.0),
                logs_from: AtomicU64::new(0),
                turn: Turn::new(p.log),
                closing: Mutex::default(),
                logs: Mutex::default(),
            },
            desk: Mutex::new(Desk::new(p.manifest)),
            families: Mutex::default(),
            dropped: Mutex::default(),
            background: Background {
                pauses: AtomicUsize::new(0),
                disk_low: AtomicBool::new(false),
                progress: Mutex::default(),
                under_way: AtomicUsize::new(0),
                stop: Ticket::new(),
                stopped: Ticket::new(),
            },
            life: Life {
                closed: AtomicBool::new(false),
                settled: AtomicBool::new(false),
                ending: Ending::default(),
                read_only_handle,
                lock: Mutex::new(p.lock.map(Arc::from)),
            },
        })
    }

    /// Adds a family, while the database is opened.
    pub(crate) fn join(self: &Arc<Shared>, parts: TreeParts, writer: MemWriter) {
        let mut log = self.writes.turn.try_take().expect("nobody writes yet");
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
        log.families.push(Filling::new(family.clone(), writer));
        self.families.lock().push(family.clone());
        self.shell(family)
    }

    /// All families are there: background work begins.
    pub(crate) fn begin(self: &Arc<Shared>) {
        if self.life.read_only_handle {
            self.refuse(&Error::new(
                ErrorKind::ReadOnly,
                "the database was opened for reading only; open it with `open` to write",
            ));
            self.background.stopped.complete();
            return;
        }
        // The clock of the log starts anew with each open.
        let wall = self.resources.env.rt.wall_seconds();
        let policy = self.db_settings.load().effective_policy().name();
        self.note("opened", &[("policy", policy.into()), ("unix_seconds", wall.into())]);
        self.look_at_disk_first();
        self.resources.env.rt.spawn(Class::Upkeep, Box::new(Upkeep::new(self.clone())));
        for family in self.families() {
            family.drive(Event::Awaited { by: 0 });
        }
    }

    /// On the threads that are at work for this database.
    pub(crate) fn mark(&self) -> Mark {
        self.resources.mark
    }
    pub(crate) fn path(&self) -> &Path {
        self.resources.dir.path()
    }
    pub(crate) fn is_read_only_handle(&self) -> bool {
        self.life.read_only_handle
    }
    /// A file number nobody used before.
    pub(crate) fn next_file(&self) -> FileId {
        self.resources.numbers.next()
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

    /// Wakes whoever waits for a tree to change.
    pub(crate) fn progressed(&self) {
        std::mem::take(&mut *self.background.progress.lock()).complete();
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

    pub(crate) fn closed_error(&self) -> Error {
        Error::new(ErrorKind::ShuttingDown, "the database is closed; open it again to go on")
    }

    /// A child of a fork has a copy of everything but the threads. What it wrote would land in the
    /// parent's files.
    pub(crate) fn check_home(&self) -> Result<()> {
        match self.resources.env.rt.is_at_home() {
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
    pub(crate) fn check_owner(self: &Arc<Shared>) -> Result<()> {
        let lock = self.life.lock.lock().clone();
        let Some(lock) = lock.filter(|lock| !lock.is_owner()) else { return Ok(()) };
        let what = "the lock file is not the one this handle took: it was removed, and another may \
                    have the database open by now; nothing more is written here";
        Err(self.fence(what, lock.path()))
    }

    /// The same where the lock can't tell, because its file was put back or the file system has no
    /// identities to compare: every open leaves a manifest of its own in CURRENT.
    pub(crate) fn check_epoch(self: &Arc<Shared>, manifest: &ManifestLog) -> Result<()> {
        // If nobody can tell, the lock's word stands.
        match manifest.lost().unwrap_or(None) {
            Some(what) => Err(self.fence(what, &self.resources.dir.path_of(FileName::Current))),
            None => Ok(()),
        }
    }

    fn fence(self: &Arc<Shared>, what: &str, path: &Path) -> Error {
        let error = Error::new(ErrorKind::Fenced, what).in_file(shown_path(path));
        self.go_read_only(error.clone());
        error
    }

    /// Starts a new manifest with what is certain.
    pub(crate) fn roll(&self, manifest: &mut ManifestLog) -> Result<()> {
        let old = manifest.number();
        let number = self.next_file().0;
        manifest.roll(number, self.resources.numbers.peek().0)?;
        // Deleted only now that CURRENT durably names the new one; a leftover is an orphan.
        let _ = self.resources.dir.remove(FileName::Manifest(old));
        Ok(())
    }

    /// Logs below this number hold nothing that any family needs.
    pub(crate) fn first_log(self: &Arc<Shared>) -> u64 {
        let of_family = |family: &Shell| family.core().version().log_number();
        let least = self.families().iter().map(of_family).min().unwrap_or(0);
        least.max(self.writes.logs_from.load(Ordering::Acquire))
    }
}
