//! What the column families of one database share: the world and the directory, the write turn
//! with the log, the manifest, sequence numbers, the block cache, counters and the event log.
//!
//! Each family is an [`OpenFamily`], with its own core, tree, memtables and gate, which knows nothing of
//! what is here. Threads are shared by the runtime: its queues order the jobs of all families by
//! their urgency.
//! Leaves to others: everything about a single tree (`family`), and what is done with both (`shell`).

use std::path::Path;

use arc_swap::ArcSwap;
use lithify_base::{Error, ErrorKind, FileId, Result};
use lithify_env::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize};
use lithify_env::sync::{Arc, Mutex};
use lithify_env::{LockGuard, Ticket};
use lithify_journal::files::FileName;
use lithify_store::manifest::ManifestLog;

use crate::background::disk::SharedDisk;
use crate::close::ending::Ending;
use crate::family::OpenFamily;
use crate::manifest::queue::ManifestQueue;
use crate::open::resources::Resources;
use crate::settings::Settings;
use crate::write::ahead::Ahead;
use crate::write::log::{Closing, Log, LogFile};
use lithify_files::wal::Prepared;
use lithify_reports::alive::Alive;
use lithify_reports::events::Events;
use lithify_reports::exclusive::Exclusive;
use lithify_reports::listener::Listeners;
use lithify_reports::metrics::Metrics;
use lithify_reports::progress::Progress;
use lithify_reports::reentry::Mark;
use lithify_views::snapshot::Snapshots;
use lithify_writes::turn::Turn;

/// One open database. Its families know nothing of it: a `Shell` joins the two.
pub(crate) struct Shared {
    /// Of the database as a whole, and of its default family: those in force.
    pub(crate) db_settings: ArcSwap<Settings>,
    /// Held while settings are changed.
    pub(crate) altering: Exclusive,
    pub(crate) resources: Resources,
    /// Largest number a family ever had.
    pub(crate) max_cf: AtomicU32,
    pub(crate) metrics: Metrics,
    pub(crate) events: Events,
    pub(crate) snapshots: Arc<Snapshots>,
    pub(crate) writes: Writes,
    /// The manifest, and edits that wait for it.
    pub(crate) queue: Mutex<ManifestQueue>,
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
    /// Transactions that are prepared, and the logs that hold them.
    pub(crate) prepared: Prepared,
    /// Logs made since the open and not deleted.
    pub(crate) logs: Mutex<Vec<LogFile>>,
    /// The log that comes after the one that is written.
    pub(crate) ahead: Mutex<Ahead>,
    /// Checkpoints and backups under way that copy tables and no log.
    pub(crate) copies: AtomicUsize,
}

/// What holds background work back, and how far it is.
pub(crate) struct Background {
    /// Callers that hold background work back.
    pub(crate) pauses: AtomicUsize,
    /// Callers that keep files from being deleted.
    pub(crate) keeps: AtomicUsize,
    /// The upkeep job.
    pub(crate) upkeep: Alive,
    /// What compactions of all families were promised of the disk.
    pub(crate) disk: SharedDisk,
    /// The room on the disk, or of its budget, is looked up often.
    pub(crate) disk_low: AtomicBool,
    /// There was next to nothing to write for a while: the cache may borrow memory of memtables and buffers.
    pub(crate) resting: AtomicBool,
    pub(crate) progress: Arc<Progress>,
    /// Completed when the upkeep job shall end, and by it when it has.
    pub(crate) stop: Ticket,
    pub(crate) stopped: Ticket,
}

/// For what the database is open, and how it ended.
pub(crate) struct Life {
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
    pub(crate) prepared: Prepared,
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
            altering: Exclusive::default(),
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
                prepared: p.prepared,
                logs: Mutex::default(),
                ahead: Mutex::default(),
                copies: AtomicUsize::default(),
            },
            queue: Mutex::new(ManifestQueue::new(p.manifest)),
            families: Mutex::default(),
            dropped: Mutex::default(),
            background: Background {
                pauses: AtomicUsize::new(0),
                keeps: AtomicUsize::new(0),
                upkeep: Alive::default(),
                disk: SharedDisk::default(),
                disk_low: AtomicBool::new(false),
                resting: AtomicBool::new(false),
                progress: Arc::default(),
                stop: Ticket::new(),
                stopped: Ticket::new(),
            },
            life: Life {
                settled: AtomicBool::new(false),
                ending: Ending::default(),
                read_only_handle,
                lock: Mutex::new(p.lock.map(Arc::from)),
            },
        })
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
    /// A file number that was not used before.
    pub(crate) fn next_file(&self) -> FileId {
        self.resources.numbers.next()
    }
    /// Wakes all callers that wait for a tree to change.
    pub(crate) fn progressed(&self) {
        self.background.progress.made();
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

    /// Starts a new manifest with what is certain.
    pub(crate) fn roll(&self, manifest: &mut ManifestLog) -> Result<()> {
        let old = manifest.number();
        let number = self.next_file().0;
        manifest.roll(number, self.resources.numbers.peek().0)?;
        // Deleted only now that CURRENT durably names the new one; a leftover is an orphan.
        if !self.keeps_files() {
            let _ = self.resources.dir.remove(FileName::Manifest(old));
        }
        Ok(())
    }
}
