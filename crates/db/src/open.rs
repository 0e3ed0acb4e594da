//! Opening: lock, read the manifest, check the files, replay the logs, start.
//!
//! What the logs hold is written to level 0 before the open returns, in one edit per memtable,
//! and a new manifest is started; so the directory an open leaves behind never depends on the
//! logs it found, and opening again after a crash at any point finds the same data (F4).

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;

use lithify_base::{
    CfId, CompactionFilterRef, ComparatorRef, Error, ErrorKind, FileId, MergeOperatorRef, Pos,
    Result, Seq, memory,
};
use lithify_compact::{
    Cut, FileNumbers, FlushJob, FlushSpec, Outcome, OutputOptions, Reins, Workshop,
};
use lithify_control::{Core, MemId};
use lithify_engine::CpuEngine;
use lithify_env::sync::{Arc, Mutex};
use lithify_env::{
    BufPool, CappedFs, Env, Job, LockGuard, Random, RateLimiter, RegionPool, Step, WatchedFs,
};
use lithify_format::files::FileName;
use lithify_format::manifest::{FamilyState, ManifestState};
use lithify_format::wal::tail::LoggedBatch;
use lithify_format::wal::{BatchBuilder, BatchView};
use lithify_lsm::{Edit, FileMeta, Version};
use lithify_memtable::{ArenaPool, MemTable, MemWriter};
use lithify_store::cache::{BlockCache, TableCache, TableOptions};
use lithify_store::dir::{self, Dir};
use lithify_store::janitor::{self, Live};
use lithify_store::manifest::{self, ManifestLog, Recovered, translate};
use lithify_store::sst::Verify;
use lithify_store::wal::{self, OnRot};

use crate::builder::Builder;
use crate::db::Db;
use crate::import;
use crate::listener::Listeners;
use crate::operands::Foreign;
use crate::settings::Settings;
use crate::settings::translate::{Described, core_options, options_text, output_options};
use crate::shared::{Parts, Shared};
use crate::shell::{Closer, TreeParts, new_memtable};
use crate::super_version::Mem;
use crate::write::{Log, Mems, insert_batch};

/// Fewest table files that are kept open, however few the process may have.
const OPEN_FILES_MIN: u64 = 16;
/// Most tables the cache keeps open by itself; those of the tree stay open anyway.
const OPEN_TABLES: usize = 256;
pub(crate) const DEFAULT_CF: CfId = CfId(0);
pub(crate) const DEFAULT_NAME: &str = "default";

/// A database that is being put together.
struct Opening {
    settings: Settings,
    /// Of the outfit's world.
    files: Files,
    listeners: Listeners,
    outfit: Outfit,
    /// By number, the default one first.
    families: Vec<Family>,
    last_seq: Seq,
    max_cf: u32,
    /// Logs below this number hold nothing that any family needs.
    first_log: u64,
    known_logs: BTreeMap<u64, Option<u64>>,
}

/// What the families of a database are made with.
#[derive(Clone)]
pub(crate) struct Outfit {
    pub(crate) env: Env,
    pub(crate) dir: Dir,
    pub(crate) db_id: String,
    pub(crate) numbers: FileNumbers,
    pub(crate) blocks: Arc<BlockCache>,
    pub(crate) arenas: Arc<dyn ArenaPool>,
    pub(crate) limiter: Arc<RateLimiter>,
    buffers: BufPool,
}

impl Outfit {
    fn new(env: Env, dir: Dir, db_id: String, next_file: FileId, s: &Settings) -> Outfit {
        Outfit {
            env,
            dir,
            db_id,
            numbers: FileNumbers::new(next_file),
            blocks: BlockCache::new(s.cache_budget(), shards()),
            arenas: arenas(s),
            limiter: Arc::new(RateLimiter::new(s.background_rate, s.tuning())),
            buffers: BufPool::new(s.effective_buffer_bytes() as usize),
        }
    }

    /// The tables and the workshop of a family.
    pub(crate) fn tools(
        &self,
        cf: CfId,
        name: &str,
        s: &Settings,
        order: &ComparatorRef,
        own: &Components,
    ) -> (Arc<TableCache>, Arc<Workshop>) {
        let options = TableOptions {
            order: order.clone(),
            blocks: Some(self.blocks.clone()),
            verify: match s.verify_checksums && !s.unchecked {
                true => Verify::Always,
                false => Verify::Never,
            },
            direct: s.direct_reads,
        };
        let tables = TableCache::new(self.dir.clone(), options, OPEN_TABLES);
        let output = OutputOptions { cf, cf_name: name.to_owned(), ..output_options(s) };
        let mut workshop = Workshop::new(
            self.env.clone(),
            self.dir.clone(),
            tables.clone(),
            self.buffers.clone(),
            self.db_id.clone(),
            order.clone(),
            output,
            self.numbers.clone(),
        );
        workshop.operator = own.operator.clone();
        workshop.filter = own.filter.clone();
        workshop.limiter = self.limiter.clone();
        (tables, Arc::new(workshop))
    }
}

/// Components of one family that are no part of its tree.
#[derive(Clone, Default)]
pub(crate) struct Components {
    pub(crate) operator: Option<MergeOperatorRef>,
    pub(crate) filter: Option<CompactionFilterRef>,
}

/// A column family that is being put together.
struct Family {
    cf: CfId,
    name: String,
    settings: Settings,
    version: Version,
    next_epoch: u32,
    components: Components,
    /// The directory may hold operands for another operator.
    foreign: Option<Foreign>,
    /// What logs held, oldest first; the last one may be empty.
    mems: Vec<MemWriter>,
}

impl Family {
    fn of(cf: CfId, name: &str, settings: Settings, version: Version) -> Family {
        // Above every epoch and stratum in use, at any level: compaction outputs carry theirs down.
        let epochs = version.files().map(|f| f.epoch.max(u64::from(f.pos.stratum.0)));
        let newest = epochs.filter(|&n| n < u64::from(u32::MAX)).max().unwrap_or(0);
        let next_epoch = translate::FIRST_EPOCH.max(newest as u32 + 1);
        let name = name.to_owned();
        let (components, foreign, mems) = (Components::default(), None, Vec::new());
        Family { cf, name, settings, version, next_epoch, components, foreign, mems }
    }
}

pub(crate) fn open(mut builder: Builder, path: &Path) -> Result<Db> {
    builder.settings.check()?;
    let (env, files) = layered(builder.world(), &builder.settings, Handle::Writes);
    let dir = Dir::new(env.fs.clone(), path);
    if dir.read_current()?.is_none() && !builder.settings.create_if_missing {
        return Err(missing(path, "check the path, or set create_if_missing"));
    }
    dir.create()?;
    let lock = dir.lock()?;
    let recovered = manifest::recover(&dir)?;
    if recovered.is_some() && builder.settings.error_if_exists {
        return Err(Error::invalid(format!(
            "{} holds a database already; choose another directory or clear error_if_exists",
            path.display()
        )));
    }
    let recovered = match recovered {
        Some(r) if !r.ours => Some(import::admit(&builder, &env, &dir, r)?),
        other => other,
    };
    let listeners = std::mem::take(&mut builder.listeners);
    let mut opening = match recovered {
        Some(r) => Opening::existing(builder, env, dir, r)?,
        None => Opening::fresh(builder, env, dir)?,
    };
    opening.files = files;
    opening.listeners = Listeners::new(listeners);
    opening.replay()?;
    opening.start(lock)
}

pub(crate) fn open_read_only(builder: Builder, path: &Path) -> Result<Db> {
    builder.settings.check()?;
    let (env, files) = layered(builder.world(), &builder.settings, Handle::Reads);
    let dir = Dir::new(env.fs.clone(), path);
    let recovered = match dir.read_current()? {
        Some(_) => manifest::recover(&dir)?,
        None => None,
    };
    let Some(recovered) = recovered else {
        return Err(missing(path, "check the path; opening for reading makes none"));
    };
    let mut opening = Opening::existing(builder, env, dir, recovered)?;
    opening.files = files;
    opening.replay()?;
    opening.serve()
}

/// What stands between a database and its file system.
#[derive(Clone, Default)]
pub(crate) struct Files {
    /// Keeps few tables open, if anything limits them.
    pub(crate) capped: Option<CappedFs>,
    /// Knows which calls hang; not for a handle that only reads, which has no log to tell it in.
    pub(crate) watched: Option<WatchedFs>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Handle {
    Reads,
    Writes,
}

/// `env` with few tables open at a time, and watched.
fn layered(mut env: Env, s: &Settings, handle: Handle) -> (Env, Files) {
    let mut files = Files::default();
    if handle == Handle::Writes {
        let watched = WatchedFs::new(env.fs, env.rt.clone());
        env.fs = Arc::new(watched.clone());
        files.watched = Some(watched);
    }
    let of_process = || env.fs.open_files_max().map(|max| (max / 4 * 3).max(OPEN_FILES_MIN));
    if let Some(most) = s.max_open_files.map(u64::from).or_else(of_process) {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let capped = CappedFs::new(env.fs, most, is_table);
        env.fs = Arc::new(capped.clone());
        files.capped = Some(capped);
    }
    (env, files)
}

/// Tables are closed and opened again: they never change, and their names stay while they are needed.
fn is_table(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).and_then(FileName::parse);
    matches!(name, Some(FileName::Table(_) | FileName::LevelDbTable(_)))
}

fn missing(path: &Path, what_to_do: &str) -> Error {
    let what = format!("{} holds no database; {what_to_do}", path.display());
    Error::new(ErrorKind::NotFound, what)
}

impl Opening {
    fn existing(builder: Builder, env: Env, dir: Dir, found: Recovered) -> Result<Opening> {
        let mut state = found.state;
        let named = |(cf, f): (&CfId, &FamilyState)| (*cf, f.name.clone(), f.comparator.clone());
        let names: Vec<_> = state.families.iter().map(named).collect();
        let mut families = Vec::new();
        for (cf, name, comparator) in names {
            let options = builder.family(cf, &name);
            let order = options.order_of(&name, comparator.as_deref())?;
            manifest::count_tables(&dir, &mut state, cf, &order)?;
            let version = manifest::family_version(&state, cf, order)?;
            check_files(&dir, &version)?;
            let settings = options.settings_in(&builder.settings, &name)?;
            let components = options.components();
            let foreign = Foreign::look(&dir, &name, components.operator.as_ref())?;
            let family = Family::of(cf, &name, settings, version);
            families.push(Family { components, foreign, ..family });
        }
        let db_id = match state.db_id.clone() {
            Some(id) => id,
            None => dir.read_identity()?.unwrap_or_default(),
        };
        Ok(Opening {
            outfit: Outfit::new(env, dir, db_id, FileId(state.next_file), &builder.settings),
            settings: builder.settings,
            files: Files::default(),
            listeners: Listeners::default(),
            families,
            last_seq: state.last_seq,
            max_cf: state.max_cf,
            first_log: state.first_log(),
            known_logs: state.wals,
        })
    }

    fn fresh(builder: Builder, env: Env, dir: Dir) -> Result<Opening> {
        let db_id = match dir.read_identity()? {
            Some(id) => id,
            None => {
                // One runtime may serve several databases: each gets an id of its own.
                let who = format!("identity of {}", dir.path().display());
                let mut random = Random::from_seed(env.rt.seed(&who));
                let id = dir::fresh_identity(&mut random);
                dir.write_identity(&id)?;
                id
            }
        };
        let settings = builder.settings;
        // A crash while creating leaves files behind; their numbers are used up.
        let next_file = FileId(janitor::number_floor(&dir)?);
        let version = Version::empty(builder.order);
        let family = Family::of(DEFAULT_CF, DEFAULT_NAME, settings.clone(), version);
        let components = Components { operator: builder.operator, filter: builder.filter };
        Ok(Opening {
            outfit: Outfit::new(env, dir, db_id, next_file, &settings),
            files: Files::default(),
            listeners: Listeners::default(),
            families: vec![Family { components, ..family }],
            settings,
            last_seq: 0,
            max_cf: 0,
            first_log: 0,
            known_logs: BTreeMap::new(),
        })
    }

    /// Puts what the logs hold into memtables, oldest first; the last one may be empty.
    fn replay(&mut self) -> Result<()> {
        let arenas = &self.outfit.arenas;
        for family in &mut self.families {
            if let Some(foreign) = &family.foreign {
                foreign.check_tables(&family.version, &family.tools(&self.outfit).0)?;
            }
            family.mems.push(family.new_memtable(arenas)?);
        }
        let mut replay = Replay { families: &mut self.families, log: 0 };
        let visit = |log: u64, batch: &LoggedBatch<'_>| {
            let batch = batch.view()?;
            replay.log = log;
            replay.check(&batch)?;
            replay.reserve(&batch)?;
            insert_batch(&mut replay, &batch, batch.sequence());
            replay.families.iter_mut().try_for_each(|family| family.make_room(arenas))
        };
        let (dir, from) = (&self.outfit.dir, self.first_log);
        let replayed = wal::replay(dir, from, &self.known_logs, OnRot::Refuse, visit)?;
        self.last_seq = self.last_seq.max(replayed.last_seq);
        Ok(())
    }

    /// What the families share, with a log that begins at `wal_number`.
    fn shared(
        self,
        wal_number: FileId,
        manifest: Option<ManifestLog>,
        lock: Option<Box<dyn LockGuard>>,
    ) -> Arc<Shared> {
        let log = Log {
            families: Vec::new(),
            wal: None,
            wal_number,
            before: None,
            closing: Vec::new(),
            kept: VecDeque::new(),
            given_up: None,
            next_seq: self.last_seq + 1,
            gap: false,
            group: BatchBuilder::new(),
        };
        Shared::new(Parts {
            settings: self.settings,
            files: self.files,
            listeners: self.listeners,
            outfit: self.outfit,
            max_cf: self.max_cf,
            engine: Arc::new(CpuEngine),
            log: Box::new(log),
            manifest: manifest.map(Box::new),
            lock,
        })
    }

    /// A handle that only reads: the replayed memtables stay in memory.
    fn serve(mut self) -> Result<Db> {
        let families = std::mem::take(&mut self.families);
        let shared = self.shared(FileId(0), None, None);
        for mut family in families {
            // Everything goes into one memtable stack; only the newest keeps its writer.
            let newest = family.mems.pop().expect("there is always one");
            let older = family.mems.drain(..).map(MemWriter::freeze);
            let tables = older.chain([newest.table().clone()]).zip(1..);
            let mems = tables.map(|(table, id)| Mem::new(MemId(id), table, FileId(0)));
            let mut mems: Vec<Mem> = mems.collect();
            mems.reverse();
            let tools = family.tools(&shared.outfit);
            shared.join(family.parts(tools, mems), newest)?;
        }
        Ok(begin(&shared))
    }

    /// Flushes what was replayed, starts a new manifest and log, collects orphans, and goes.
    fn start(mut self, lock: Box<dyn LockGuard>) -> Result<Db> {
        let mut families = std::mem::take(&mut self.families);
        let numbers = self.outfit.numbers.clone();
        let mut tools = Vec::new();
        for family in &mut families {
            let made = family.tools(&self.outfit);
            family.flush(&made.1)?;
            tools.push(made);
        }
        let wal_number = numbers.next();
        for family in &mut families {
            let last = Edit { log_number: Some(wal_number.0), ..Edit::new(family.cf) };
            family.version = family.version.apply(&last).map_err(internal)?;
        }
        let manifest_number = numbers.next().0;
        let named: Vec<_> = families.iter().map(Family::described).collect();
        let (dir, db_id) = (&self.outfit.dir, &self.outfit.db_id);
        let options_number = write_options(dir, &numbers, &named)?;
        let trees: Vec<_> = families.iter().map(|f| (f.cf, &*f.name, &f.version)).collect();
        let mut state = manifest_state(&trees, db_id, numbers.peek(), self.last_seq);
        state.max_cf = state.max_cf.max(self.max_cf);
        let manifest = ManifestLog::create(dir, manifest_number, state)?;
        let files = families.iter().flat_map(|f| f.version.files());
        let live = Live {
            tables: files.map(|f| f.backing.unwrap_or(f.id).0).collect(),
            manifests: [manifest_number].into(),
            first_log: wal_number.0,
            options: Some(options_number),
            next_file: numbers.peek().0,
        };
        janitor::sweep(dir, &live, db_id)?;
        let shared = self.shared(wal_number, Some(manifest), Some(lock));
        for (family, tools) in families.into_iter().zip(tools) {
            let writer = family.new_memtable(&shared.outfit.arenas)?;
            let mems = vec![Mem::new(MemId(1), writer.table().clone(), wal_number)];
            shared.join(family.parts(tools, mems), writer)?;
        }
        Ok(begin(&shared))
    }
}

/// What logs hold, on its way into memtables.
struct Replay<'a> {
    families: &'a mut Vec<Family>,
    /// The log that is being read.
    log: u64,
}

impl Mems for Replay<'_> {
    /// A family has flushed past its older logs, and one that was dropped takes nothing.
    fn of(&mut self, cf: CfId) -> Option<&mut MemWriter> {
        let at = self.families.binary_search_by_key(&cf, |f| f.cf).ok()?;
        let family = &mut self.families[at];
        match family.version.log_number() <= self.log {
            true => family.mems.last_mut(),
            false => None,
        }
    }
}

impl Replay<'_> {
    /// Refuses operands that are for another operator than the family has.
    fn check(&self, batch: &BatchView<'_>) -> Result<()> {
        let takes = |f: &&Family| f.version.log_number() <= self.log;
        self.families.iter().filter(takes).try_for_each(|family| match &family.foreign {
            Some(foreign) => foreign.check_batch(family.cf, batch),
            None => Ok(()),
        })
    }

    /// Room for a batch, in each family as if all of it went there: it is freed with the memtable.
    fn reserve(&mut self, batch: &BatchView<'_>) -> Result<()> {
        for mem in self.families.iter_mut().filter_map(|f| f.mems.last_mut()) {
            mem.try_reserve(batch.count() as usize, batch.byte_len())
                .map_err(|none| memory::refused("a memtable", none.bytes, &none))?;
        }
        Ok(())
    }
}

impl Family {
    fn described(&self) -> Described {
        Described {
            name: self.name.clone(),
            settings: self.settings.clone(),
            comparator: self.version.order().name().to_owned(),
            merge_operator: self.components.operator.as_ref().map(|op| op.name().to_owned()),
        }
    }

    fn new_memtable(&self, arenas: &Arc<dyn ArenaPool>) -> Result<MemWriter> {
        Ok(new_memtable(&self.settings, self.version.comparator(), arenas)?.1)
    }

    /// Goes on in a new memtable if the last one is full.
    fn make_room(&mut self, arenas: &Arc<dyn ArenaPool>) -> Result<()> {
        let last = self.mems.last().map_or(0, |mem| mem.table().bytes() as u64);
        if last >= self.settings.memtable_bytes {
            self.mems.push(self.new_memtable(arenas)?);
        }
        Ok(())
    }

    fn tools(&self, outfit: &Outfit) -> (Arc<TableCache>, Arc<Workshop>) {
        let order = self.version.comparator();
        outfit.tools(self.cf, &self.name, &self.settings, order, &self.components)
    }

    /// Writes what was replayed to level 0, as if each memtable had been flushed by itself (V13).
    fn flush(&mut self, workshop: &Arc<Workshop>) -> Result<()> {
        for mem in std::mem::take(&mut self.mems) {
            let table = mem.freeze();
            if table.is_empty() {
                continue;
            }
            let out = Pos::new(0, self.next_epoch);
            self.next_epoch += 1;
            let adds = flush_now(workshop, table, out)?;
            let edit = Edit { adds, ..Edit::new(self.cf) };
            self.version = self.version.apply(&edit).map_err(internal)?;
        }
        Ok(())
    }

    fn parts(
        self,
        (tables, workshop): (Arc<TableCache>, Arc<Workshop>),
        mems: Vec<Mem>,
    ) -> TreeParts {
        let Family { cf, name, settings, version, next_epoch, .. } = self;
        let core = Core::new(core_options(&settings), version, next_epoch);
        TreeParts { cf, name, settings, tables, core, workshop, mems }
    }
}

/// Writes the settings of the families down; the file's number.
pub(crate) fn write_options(
    dir: &Dir,
    numbers: &FileNumbers,
    families: &[Described],
) -> Result<u64> {
    let text = options_text(families);
    let number = numbers.next().0;
    dir.replace(FileName::Options(number), FileName::OptionsTemp(number), text.as_bytes())?;
    Ok(number)
}

/// What a manifest of these families and their trees says.
pub(crate) fn manifest_state(
    trees: &[(CfId, &str, &Version)],
    db_id: &str,
    next_file: FileId,
    last_seq: Seq,
) -> ManifestState {
    let family = |&(cf, name, version): &(CfId, &str, &Version)| {
        let family = FamilyState {
            name: name.to_owned(),
            comparator: Some(version.order().name().to_owned()),
            log_number: version.log_number(),
            files: version.files().map(|f| (f.id.0, translate::wire_file(f))).collect(),
            ..FamilyState::default()
        };
        (cf, family)
    };
    ManifestState {
        db_id: Some(db_id.to_owned()),
        next_file: next_file.0,
        // What is taken in from outside is in the tree a moment before its number is published.
        last_seq: trees.iter().flat_map(|t| t.2.files()).map(|f| f.seqs.1).fold(last_seq, Ord::max),
        max_cf: trees.iter().map(|(cf, ..)| cf.0).max().unwrap_or(0),
        families: trees.iter().map(family).collect(),
        ..ManifestState::default()
    }
}

/// Every file of the tree must be there with its recorded size (V10).
fn check_files(dir: &Dir, version: &Version) -> Result<()> {
    for file in version.files() {
        let number = file.backing.unwrap_or(file.id).0;
        let name = FileName::Table(number);
        let old = FileName::LevelDbTable(number);
        let found = match dir.len_of(name)? {
            None => dir.len_of(old)?,
            some => some,
        };
        match found {
            None => {
                let what = "the manifest names this table, which is missing; restore it from a \
                            backup";
                return Err(Error::corruption(what).in_file(dir.path_of(name).display()));
            }
            Some(n) if n != file.bytes && file.backing.is_none() => {
                let what = format!("the table has {n} bytes, the manifest says {}", file.bytes);
                return Err(Error::corruption(what).in_file(dir.path_of(name).display()));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// Recycled memory for the memtables of all families.
fn arenas(s: &Settings) -> Arc<dyn ArenaPool> {
    Arc::new(RegionPool::new(s.memtable_bytes as usize * s.memtable_count as usize))
}

/// Sets an open database going.
fn begin(shared: &Arc<Shared>) -> Db {
    shared.begin();
    let shell = shared.families()[0].clone();
    Db { _closer: Arc::new(Closer(shell.clone())), shell }
}

fn internal(v: lithify_lsm::Violation) -> Error {
    Error::new(ErrorKind::Internal, v.to_string())
}

/// Runs a flush to its end on this thread.
fn flush_now(workshop: &Arc<Workshop>, mem: Arc<MemTable>, out: Pos) -> Result<Vec<FileMeta>> {
    let ended: Arc<Mutex<Option<Outcome>>> = Arc::default();
    let report = {
        let ended = ended.clone();
        Box::new(move |outcome| *ended.lock() = Some(outcome))
    };
    let reins = Arc::new(Reins::flush(mem.bytes() as u64));
    let spec = FlushSpec { mem, out, snapshots: Vec::new(), cut: Cut::Whole, reins };
    let mut job = FlushJob::new(workshop.clone(), spec, report);
    loop {
        match job.step() {
            Step::More => {}
            Step::Wait(ticket) => {
                workshop.env.rt.park(&ticket, None);
            }
            Step::WaitUntil(ticket, at) => {
                workshop.env.rt.park(&ticket, Some(at));
            }
            Step::Done => break,
        }
    }
    let outcome = ended.lock().take();
    outcome.expect("a finished job has reported").result
}

/// Shards of the block cache: enough that threads rarely meet.
fn shards() -> usize {
    std::thread::available_parallelism().map_or(4, |n| (4 * n.get()).min(64))
}
