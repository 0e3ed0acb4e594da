//! One column family: its core, and what the core decides about: tables, jobs, the published views. It
//! knows nothing of the database that it is in, nor of the other families.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

use arc_swap::ArcSwap;
use lithify_base::{CfId, ComparatorRef, Error, ErrorKind, FileId, JobId, Result, Seq, memory};
use lithify_compact::JobContext;
use lithify_control::Core;
use lithify_env::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use lithify_env::sync::{Arc, Mutex, MutexGuard, Weak};
use lithify_lsm::FileRef;
use lithify_memtable::{MemTable, MemTableOptions, MemWriter};
use lithify_reports::explain::AtWork;
use lithify_tables::cache::TableCache;

use crate::settings::{InForce, Settings};
use lithify_reports::reentry::{At, Mark};
use lithify_views::super_version::{Mem, SuperVersion, Tree};
use lithify_writes::gate::Gate;
use lithify_writes::shared::Arenas;

/// One column family: its core, and what the core decides about. It knows nothing of the others.
pub(crate) struct OpenFamily {
    pub(crate) cf: CfId,
    pub(crate) name: String,
    /// Those in force, of the database where they concern it as a whole, else of the family. Some
    /// can change.
    pub(crate) settings: InForce,
    pub(crate) tables: Arc<TableCache>,
    pub(crate) gate: Gate,
    pub(crate) views: Views,
    pub(crate) order: ComparatorRef,
    pub(crate) core: Mutex<Core>,
    /// On the threads that hold its lock.
    pub(crate) thinks: Mark,
    /// On the threads that are at work for the database.
    pub(crate) mark: Mark,
    pub(crate) context: Arc<JobContext>,
    pub(crate) work: Work,
    /// The family was dropped or the database closed: nothing is read or written any more.
    pub(crate) over: AtomicBool,
    /// It was dropped.
    pub(crate) gone: AtomicBool,
}

/// What stays of a family after it was dropped.
#[derive(Default)]
pub(crate) struct Afterlife {
    /// Callers that read on.
    pub(crate) readers: usize,
    /// It was dropped, and its jobs are over: what it held goes with the last of them.
    pub(crate) begun: bool,
    /// It holds nothing any more.
    pub(crate) over: bool,
}

/// What readers see, and have seen.
pub(crate) struct Views {
    /// What readers see.
    pub(crate) current: ArcSwap<SuperVersion>,
    pub(crate) lock: Mutex<()>,
    /// Trees that readers may still look at, the newest last.
    pub(crate) trees: Mutex<Vec<Weak<Tree>>>,
    /// Compactions whose filter took something away, until the tree without it is shown.
    pub(crate) judged: Mutex<Vec<Judged>>,
    pub(crate) afterlife: Mutex<Afterlife>,
}

/// Jobs and requests of one family, and what they leave behind.
pub(crate) struct Work {
    /// Jobs that a worker is busy with.
    pub(crate) at_work: Mutex<BTreeMap<JobId, Arc<AtWork>>>,
    /// Callers that wait for background work to end.
    pub(crate) awaited: AtomicUsize,
    /// Files out of the tree that a reader may still pin.
    pub(crate) obsolete: Mutex<Vec<FileRef>>,
    /// Files of jobs that were given up.
    pub(crate) litter: Mutex<Vec<FileId>>,
    pub(crate) manual_results: Mutex<BTreeMap<u64, Result<()>>>,
    pub(crate) next_manual: AtomicU64,
    pub(crate) levels: Mutex<LevelTally>,
}

/// The core while its lock is held, and the marks that this thread holds it.
pub(crate) struct CoreGuard<'a> {
    pub(crate) core: MutexGuard<'a, Core>,
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

/// A compaction whose filter took values away.
pub(crate) struct Judged {
    /// One of its inputs, which goes when its output is shown.
    pub(crate) input: FileId,
    /// The newest snapshot that it knew of.
    pub(crate) known: Option<Seq>,
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
    pub(crate) context: Arc<JobContext>,
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
            settings: InForce::new(p.settings),
            tables: p.tables,
            views: Views {
                current: ArcSwap::from_pointee(sv),
                lock: Mutex::new(()),
                trees,
                judged: Mutex::default(),
                afterlife: Mutex::default(),
            },
            order,
            core: Mutex::new(p.core),
            thinks: Mark::fresh(),
            mark,
            context: p.context,
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
            "a comparator asked its database for what only the core knows, which is asking it"
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

    /// Changes the memtables that readers look into, the active one first.
    pub(crate) fn change_memtables(&self, change: impl FnOnce(&mut Vec<Mem>)) {
        let _one_at_a_time = self.views.lock.lock();
        let mut next = SuperVersion::clone(&self.views.current.load());
        change(&mut next.mems);
        self.views.current.store(Arc::new(next));
    }

    /// An empty memtable and its write handle, of memory from `arenas`.
    pub(crate) fn new_memtable(&self, arenas: &Arenas) -> Result<(Arc<MemTable>, MemWriter)> {
        new_memtable(self.settings.load().memtable_bytes, &self.order, arenas)
    }
}

/// An empty memtable for about `bytes` bytes, and its write handle.
pub(crate) fn new_memtable(
    bytes: u64,
    order: &ComparatorRef,
    arenas: &Arenas,
) -> Result<(Arc<MemTable>, MemWriter)> {
    let (pool, bytes) = arenas.of(bytes);
    let options =
        MemTableOptions { order: order.clone(), arena_bytes: bytes as usize, bloom: true };
    MemTable::try_new(options, pool)
        .map_err(|none| memory::refused("a memtable", none.bytes, &none))
}
