//! Opening: lock, read the manifest, check the files, replay the logs, start.
//!
//! What the logs hold is written to level 0 before the open returns, in one edit per memtable,
//! and a new manifest is started; so the directory an open leaves behind never depends on the
//! logs it found, and opening again after a crash at any point finds the same data (F4).

use std::collections::BTreeMap;
use std::path::Path;

use lithify_base::{
    CfId, CompactionFilterRef, Error, ErrorKind, FileId, MergeOperatorRef, Pos, Result, Seq, memory,
};
use lithify_compact::{Cut, FlushJob, FlushSpec, Outcome, Reins, Workshop};
use lithify_control::{Core, MemId};
use lithify_engine::CpuEngine;
use lithify_env::sync::{Arc, Mutex};
use lithify_env::{BufPool, CappedFs, Env, Job, LockGuard, Random, RegionPool, Step, WatchedFs};
use lithify_format::files::FileName;
use lithify_format::manifest::{FamilyState, ManifestState};
use lithify_format::wal::BatchBuilder;
use lithify_lsm::{Edit, FileMeta, Version};
use lithify_memtable::{ArenaPool, HeapPool, MemTable, MemWriter};
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
use crate::settings::translate::{core_options, options_text, output_options};
use crate::shell::{Closer, Parts, Shell, new_memtable};
use crate::write::{Log, insert_batch};

/// Fewest table files that are kept open, however few the process may have.
const OPEN_FILES_MIN: u64 = 16;
/// Most tables the cache keeps open by itself; those of the tree stay open anyway.
const OPEN_TABLES: usize = 256;
/// Smallest memtables that are kept in regions.
const REGION_MIN: u64 = 2 << 20;
pub(crate) const DEFAULT_CF: CfId = CfId(0);
pub(crate) const DEFAULT_NAME: &str = "default";

/// A database that is being put together.
struct Opening {
    settings: Settings,
    env: Env,
    /// Of `env`.
    files: Files,
    listeners: Listeners,
    dir: Dir,
    version: Version,
    db_id: String,
    next_file: FileId,
    last_seq: Seq,
    next_epoch: u32,
    log_number: u64,
    known_logs: BTreeMap<u64, Option<u64>>,
    blocks: Arc<BlockCache>,
    arenas: Arc<dyn ArenaPool>,
    operator: Option<MergeOperatorRef>,
    filter: Option<CompactionFilterRef>,
    /// The directory may hold operands for another operator.
    foreign: Option<Foreign>,
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
    let replayed = opening.replay()?;
    opening.start(replayed, lock)
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
    let replayed = opening.replay()?;
    opening.serve(replayed)
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
        let settings = builder.settings;
        let foreign = Foreign::look(&dir, builder.operator.as_ref())?;
        let mut state = found.state;
        if let Some(other) = state.families.values().find(|f| f.name != DEFAULT_NAME) {
            return Err(Error::unsupported(format!(
                "the database has a column family `{}`; this version opens databases with the \
                 default family only",
                other.name
            )));
        }
        manifest::count_tables(&dir, &mut state, DEFAULT_CF, &builder.order)?;
        let version = manifest::family_version(&state, DEFAULT_CF, builder.order)?;
        check_files(&dir, &version)?;
        let db_id = match state.db_id.clone() {
            Some(id) => id,
            None => dir.read_identity()?.unwrap_or_default(),
        };
        // Above every epoch and stratum in use, at any level: compaction outputs carry theirs down.
        let epochs = version.files().map(|f| f.epoch.max(u64::from(f.pos.stratum.0)));
        let newest = epochs.filter(|&n| n < u64::from(u32::MAX)).max().unwrap_or(0);
        let next_epoch = translate::FIRST_EPOCH.max(newest as u32 + 1);
        Ok(Opening {
            blocks: BlockCache::new(settings.cache_budget(), shards()),
            arenas: arenas(&settings),
            files: Files::default(),
            listeners: Listeners::default(),
            settings,
            env,
            dir,
            db_id,
            next_file: FileId(state.next_file),
            last_seq: state.last_seq,
            next_epoch,
            log_number: version.log_number(),
            known_logs: state.wals,
            version,
            operator: builder.operator,
            filter: builder.filter,
            foreign,
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
        Ok(Opening {
            blocks: BlockCache::new(settings.cache_budget(), shards()),
            arenas: arenas(&settings),
            files: Files::default(),
            listeners: Listeners::default(),
            settings,
            env,
            dir,
            version: Version::empty(builder.order),
            db_id,
            next_file,
            last_seq: 0,
            next_epoch: translate::FIRST_EPOCH,
            log_number: 0,
            known_logs: BTreeMap::new(),
            operator: builder.operator,
            filter: builder.filter,
            foreign: None,
        })
    }

    fn new_memtable(&self) -> Result<(Arc<MemTable>, MemWriter)> {
        new_memtable(&self.settings, self.version.comparator(), &self.arenas)
    }

    /// Puts what the logs hold into memtables, oldest first; the last one may be empty.
    fn replay(&mut self) -> Result<Vec<MemWriter>> {
        let foreign = self.foreign.as_ref();
        if let Some(foreign) = foreign {
            foreign.check_tables(&self.version, &self.tables())?;
        }
        let mut mems = vec![self.new_memtable()?.1];
        let full = self.settings.memtable_bytes;
        let order = self.version.comparator().clone();
        let (settings, arenas) = (&self.settings, &self.arenas);
        let manifest_seq = self.last_seq;
        let replayed = wal::replay(
            &self.dir,
            self.log_number,
            &self.known_logs,
            OnRot::Refuse,
            |_, batch| {
                let batch = batch.view()?;
                foreign.map_or(Ok(()), |foreign| foreign.check_batch(&batch))?;
                let mem = mems.last_mut().expect("there is always one");
                mem.try_reserve(batch.count() as usize, batch.byte_len())
                    .map_err(|none| memory::refused("a memtable", none.bytes, &none))?;
                insert_batch(mem, &batch, batch.sequence());
                if mem.table().bytes() as u64 >= full {
                    mems.push(new_memtable(settings, &order, arenas)?.1);
                }
                Ok(())
            },
        )?;
        self.last_seq = manifest_seq.max(replayed.last_seq);
        Ok(mems)
    }

    fn workshop(&self, tables: Arc<TableCache>) -> Workshop {
        let mut workshop = Workshop::new(
            self.env.clone(),
            self.dir.clone(),
            tables,
            BufPool::new(self.settings.effective_buffer_bytes() as usize),
            self.db_id.clone(),
            self.version.comparator().clone(),
            output_options(&self.settings),
            self.next_file,
        );
        workshop.operator = self.operator.clone();
        workshop.filter = self.filter.clone();
        workshop.limiter.set(self.settings.background_rate, self.settings.tuning());
        workshop
    }

    fn tables(&self) -> Arc<TableCache> {
        let options = TableOptions {
            order: self.version.comparator().clone(),
            blocks: Some(self.blocks.clone()),
            verify: match self.settings.verify_checksums && !self.settings.unchecked {
                true => Verify::Always,
                false => Verify::Never,
            },
            direct: self.settings.direct_reads,
        };
        TableCache::new(self.dir.clone(), options, OPEN_TABLES)
    }

    /// A handle that only reads: the replayed memtables stay in memory.
    fn serve(self, mems: Vec<MemWriter>) -> Result<Db> {
        // Everything goes into one memtable stack; only the newest keeps its writer.
        let tables = self.tables();
        let workshop = Arc::new(self.workshop(tables.clone()));
        let core = Core::new(core_options(&self.settings), self.version.clone(), self.next_epoch);
        let mut mems = mems;
        let newest = mems.pop().expect("there is always one");
        let older: Vec<Arc<MemTable>> = mems.into_iter().map(MemWriter::freeze).collect();
        let log = self.first_log(newest, FileId(0), older.len() as u64 + 1);
        let shell = Shell::new(Parts {
            files: self.files,
            listeners: self.listeners,
            core,
            log,
            older,
            manifest: None,
            workshop,
            engine: Arc::new(CpuEngine),
            arenas: self.arenas,
            lock: None,
            tables,
            blocks: self.blocks,
            settings: self.settings,
            env: self.env,
            dir: self.dir,
        });
        Ok(handle(shell))
    }

    /// Flushes what was replayed, starts a new manifest and log, collects orphans, and goes.
    fn start(mut self, mems: Vec<MemWriter>, lock: Box<dyn LockGuard>) -> Result<Db> {
        let tables = self.tables();
        let workshop = Arc::new(self.workshop(tables.clone()));
        let mut edit = Edit::new(CfId(0));
        for mem in mems {
            let table = mem.freeze();
            if table.is_empty() {
                continue;
            }
            let out = Pos::new(0, self.next_epoch);
            self.next_epoch += 1;
            edit.adds.extend(flush_now(&workshop, table, out)?);
        }
        let wal_number = workshop.next_file().0;
        let version = self.with_flushed(edit, wal_number)?;
        let manifest_number = workshop.next_file().0;
        let options_number = self.write_options(&workshop)?;
        let state = manifest_state(&version, &self.db_id, workshop.peek_next_file(), self.last_seq);
        let manifest = ManifestLog::create(&self.dir, manifest_number, state)?;
        let live = Live {
            tables: version.files().map(|f| f.backing.unwrap_or(f.id).0).collect(),
            manifests: [manifest_number].into(),
            first_log: wal_number,
            options: Some(options_number),
            next_file: workshop.peek_next_file().0,
        };
        janitor::sweep(&self.dir, &live, &self.db_id)?;
        let core = Core::new(core_options(&self.settings), version, self.next_epoch);
        let (_, writer) = self.new_memtable()?;
        let log = self.first_log(writer, FileId(wal_number), 1);
        let shell = Shell::new(Parts {
            files: self.files,
            listeners: self.listeners,
            core,
            log,
            older: Vec::new(),
            manifest: Some(Box::new(manifest)),
            workshop,
            engine: Arc::new(CpuEngine),
            arenas: self.arenas,
            lock: Some(lock),
            tables,
            blocks: self.blocks,
            settings: self.settings,
            env: self.env,
            dir: self.dir,
        });
        Ok(handle(shell))
    }

    /// The tree with the files flushed now; logs below `wal_number` hold nothing more.
    fn with_flushed(&self, edit: Edit, wal_number: u64) -> Result<Version> {
        let mut version = self.version.clone();
        // One edit per stratum, as if each had been flushed by itself (V13).
        let mut strata: Vec<u32> = edit.adds.iter().map(|f| f.pos.stratum.0).collect();
        strata.dedup();
        for stratum in strata {
            let of = |f: &&FileMeta| f.pos.stratum.0 == stratum;
            let adds = edit.adds.iter().filter(of).cloned().collect();
            let one = Edit { adds, ..Edit::new(CfId(0)) };
            version = version.apply(&one).map_err(internal)?;
        }
        let last = Edit { log_number: Some(wal_number), ..Edit::new(CfId(0)) };
        version.apply(&last).map_err(internal)
    }

    fn first_log(&self, mem: MemWriter, wal_number: FileId, id: u64) -> Box<Log> {
        Box::new(Log {
            mem,
            mem_id: MemId(id),
            wal: None,
            wal_number,
            before: None,
            closing: Vec::new(),
            given_up: None,
            next_seq: self.last_seq + 1,
            unlogged: false,
            unlogged_before: None,
            gap: false,
            group: BatchBuilder::new(),
        })
    }

    /// Writes the settings down; the file's number.
    fn write_options(&self, workshop: &Workshop) -> Result<u64> {
        let operator = self.operator.as_ref().map(|op| op.name());
        let text = options_text(&self.settings, self.version.order().name(), operator);
        let number = workshop.next_file().0;
        self.dir.replace(
            FileName::Options(number),
            FileName::OptionsTemp(number),
            text.as_bytes(),
        )?;
        Ok(number)
    }
}

/// What a manifest of `version` says.
pub(crate) fn manifest_state(
    version: &Version,
    db_id: &str,
    next_file: FileId,
    last_seq: Seq,
) -> ManifestState {
    let family = FamilyState {
        name: DEFAULT_NAME.to_owned(),
        comparator: Some(version.order().name().to_owned()),
        log_number: version.log_number(),
        files: version.files().map(|f| (f.id.0, translate::wire_file(f))).collect(),
        ..FamilyState::default()
    };
    ManifestState {
        db_id: Some(db_id.to_owned()),
        next_file: next_file.0,
        // What is taken in from outside is in the tree a moment before its number is published.
        last_seq: version.files().map(|f| f.seqs.1).fold(last_seq, Ord::max),
        families: [(DEFAULT_CF, family)].into(),
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

/// Recycled memory for memtables. It comes in pieces of 2 MiB, which small ones would not fill.
fn arenas(s: &Settings) -> Arc<dyn ArenaPool> {
    if s.memtable_bytes < REGION_MIN {
        return Arc::new(HeapPool);
    }
    Arc::new(RegionPool::new(s.memtable_bytes as usize * s.memtable_count as usize))
}

fn handle(shell: Arc<Shell>) -> Db {
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
