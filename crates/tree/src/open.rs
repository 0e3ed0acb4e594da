//! Opening: lock, read the manifest, check the files, replay the logs, start.
//!
//! What the logs hold is written to level 0 before the open returns, in one edit per memtable,
//! and a new manifest is started; so the directory an open leaves behind never depends on the
//! logs it found, and opening again after a crash at any point finds the same data (F4).
//! Leaves to others: what the families are made with ([`resources`]), and each one of them ([`family`]).

mod family;
mod foreign;
pub(crate) mod resources;
pub(crate) mod written;

pub use foreign::identity;
pub(crate) use resources::Resources;

use written::{manifest_state, write_options};

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::path::Path;

use lithify_base::{CfId, Error, ErrorKind, FileId, Result, Seq, shown_path};
use lithify_compact::Engines;
use lithify_control::{Event, MemId};
use lithify_env::sync::Arc;
use lithify_env::{Class, Env, LockGuard, Random};
use lithify_files::dir::{self, Dir};
use lithify_files::wal::{self, OnRot};
use lithify_journal::manifest::FamilyState;
use lithify_journal::wal::tail::LoggedBatch;
use lithify_journal::wal::{BatchBuilder, Sections};
use lithify_lsm::{Edit, Version};
use lithify_memtable::MemWriter;
use lithify_opening::{Components, Files, Handle, Making, OpenOptions, layered};
use lithify_store::checkpoint::write_log;
use lithify_store::janitor::{self, Live};
use lithify_store::manifest::{self, ManifestLog, Recovered};
use lithify_store::{numbers, places};

use crate::background::upkeep::Upkeep;
use crate::close::closing::Closer;
use crate::settings::Settings;
use crate::shared::{Parts, Shared};
use crate::shell::Shell;
use crate::write::log::Log;
use lithify_files::wal::Prepared;
use lithify_reports::listener::Listeners;
use lithify_views::names::{DEFAULT_CF, DEFAULT_NAME};
use lithify_views::operands::{self, Foreign};
use lithify_views::super_version::Mem;
use lithify_writes::mems::insert_batch;

use family::{Family, Replay, internal};

/// How many times its even share of the logs a family's memtable is made for while they are replayed:
/// many families that a small log names take no more memory together than the log warrants.
const LOGGED_SHARE: u64 = 4;
/// An open database.
pub struct Opened {
    /// Its default family.
    pub shell: Shell,
    /// Closes the database when it is dropped.
    pub closer: Closer,
}

impl Opened {
    /// Closes the database.
    ///
    /// # Errors
    /// What kept the last writes from being made safe. It is closed all the same.
    pub fn close(self) -> Result<()> {
        self.shell.close()
    }
}

/// A database that is being put together.
struct Opening {
    settings: Settings,
    listeners: Listeners,
    resources: Resources,
    /// By number, the default one first.
    families: Vec<Family>,
    last_seq: Seq,
    max_cf: u32,
    /// Transactions that are prepared.
    prepared: Prepared,
    /// Numbers of the logs that families may need.
    logs: Range<u64>,
    known_logs: BTreeMap<u64, Option<u64>>,
}

/// Opens, and creates if need be, the database in directory `path`.
///
/// # Errors
/// `InvalidArgument` for settings that contradict each other, and for a directory of other files;
/// `Locked` if another handle or process has it open; `Corruption` or `Unsupported` for a directory
/// that can't be read; `Io`.
pub fn open(with: OpenOptions, path: &Path) -> Result<Opened> {
    with.settings.check()?;
    Engines::check_names(&with.engines)?;
    let (mut env, files) = layered(with.world(), &with.settings, Handle::Writes);
    let dir = with.hold(&env.fs, path)?;
    if dir.read_current()?.is_none() {
        // Before the first byte is written, the lock included. Another process may be making the
        // database meanwhile: then its lock says what is to be said.
        match may_be_made(&with, &dir) {
            Err(e) if dir.read_current()?.is_none() => return Err(e),
            _ => {}
        }
    }
    let (denied, table_dirs) = (with.denied(), with.table_dirs());
    let dir = dir.create(denied)?;
    env.fs = dir.fs().clone();
    let lock = dir.lock()?;
    let recovered = manifest::recover(&dir)?;
    if recovered.is_some() && with.settings.error_if_exists {
        return Err(Error::invalid(format!(
            "{} holds a database already; choose another directory or clear error_if_exists",
            shown_path(path)
        )));
    }
    if let Some(found) = &recovered {
        found.check_room(&dir)?;
    }
    let recovered = match recovered {
        Some(r) if !r.ours => Some(foreign::admit(&with, &env, &dir, r)?),
        other => other,
    };
    let mut opening = match recovered {
        Some(r) => Opening::existing(with, (env, files), dir, r)?,
        None => Opening::fresh(with, (env, files), dir)?,
    };
    opening.resources.own(&table_dirs, &tables_of(&opening.families), denied)?;
    opening.replay()?;
    opening.start(lock)
}

/// Refuses to make a database in a directory that has none.
fn may_be_made(with: &OpenOptions, dir: &Dir) -> Result<()> {
    if !with.settings.create_if_missing {
        return Err(missing(dir.path(), "check the path, or set create_if_missing"));
    }
    places::check_new(dir, &with.table_dirs())?;
    manifest::check_empty(dir)?;
    if with.making == Making::AmongFiles { Ok(()) } else { dir.check_unclaimed() }
}

/// Opens the database in `path` for reading only, with tables that are opened as `handle` needs it.
///
/// # Errors
/// As [`open`]; `NotFound` if there is none.
pub fn open_reading(with: OpenOptions, path: &Path, handle: Handle) -> Result<Opened> {
    with.settings.check()?;
    let (mut env, files) = layered(with.world(), &with.settings, handle);
    let dir = with.hold(&env.fs, path)?;
    env.fs = dir.fs().clone();
    let recovered = match dir.read_current()? {
        Some(_) => manifest::recover(&dir)?,
        None => None,
    };
    let Some(recovered) = recovered else {
        return Err(missing(path, "check the path; opening for reading makes none"));
    };
    let mut opening = Opening::existing(with, (env, files), dir, recovered)?;
    opening.replay()?;
    opening.serve()
}

fn missing(path: &Path, what_to_do: &str) -> Error {
    let what = format!("{} holds no database; {what_to_do}", shown_path(path));
    Error::new(ErrorKind::NotFound, what)
}

/// The manifest of a directory that must hold a database.
///
/// # Errors
/// `NotFound` if it holds none; as [`manifest::recover`].
pub fn recovered(dir: &Dir) -> Result<Recovered> {
    let there = dir.list_if_there()?.is_some();
    let found = if there { manifest::recover(dir)? } else { None };
    found.ok_or_else(|| missing(dir.path(), "check the path"))
}

impl Opening {
    fn existing(
        with: OpenOptions,
        world: (Env, Files),
        dir: Dir,
        found: Recovered,
    ) -> Result<Opening> {
        let mut state = found.state;
        let named = |(cf, f): (&CfId, &FamilyState)| (*cf, f.name.clone(), f.comparator.clone());
        let names: Vec<_> = state.families.iter().map(named).collect();
        lithify_settings::proportion::check(&dir, names.len(), &with.settings)?;
        let declared = operands::declared(&dir)?;
        let mut families = Vec::new();
        for (cf, name, comparator) in names {
            let options = with.family(cf, &name);
            let order = options.order_of(&name, comparator.as_deref())?;
            let settings = options.settings_in(&with.settings, &name)?;
            places::locate(&dir, &mut state, cf, &settings.table_dirs)?;
            manifest::count_tables(&dir, &mut state, cf, &order)?;
            let version = manifest::family_version(&state, cf, order)?;
            let components = options.components();
            let foreign = Foreign::look(&declared, &name, components.operator.as_ref());
            let family = Family::of(cf, &name, settings, version);
            families.push(Family { components, foreign, ..family });
        }
        let db_id = match state.db_id.clone() {
            Some(id) => id,
            None => dir.read_identity()?.unwrap_or_default(),
        };
        Ok(Opening {
            resources: Resources::new(
                world,
                dir,
                db_id,
                FileId(state.next_file),
                &with.settings,
                (with.engines, with.shared_cache, with.shared_memtables),
            ),
            settings: with.settings,
            listeners: Listeners::new(with.listeners),
            families,
            last_seq: state.last_seq,
            prepared: Prepared::default(),
            max_cf: state.max_cf,
            logs: state.logs(),
            known_logs: state.wals,
        })
    }

    fn fresh(with: OpenOptions, world: (Env, Files), dir: Dir) -> Result<Opening> {
        let db_id = match dir.read_identity()? {
            Some(id) => id,
            None => {
                // One runtime may serve several databases: each gets an id of its own.
                let who = format!("identity of {}", shown_path(dir.path()));
                let mut random = Random::from_seed(world.0.rt.seed(&who));
                let id = dir::fresh_identity(&mut random);
                dir.write_identity(&id)?;
                id
            }
        };
        let settings = with.settings;
        // A crash while creating leaves files behind; their numbers are used up.
        let next_file = FileId(numbers::next_number(&dir, 0)?);
        let version = Version::empty(with.order);
        let family = Family::of(DEFAULT_CF, DEFAULT_NAME, settings.clone(), version);
        let components =
            Components { operator: with.operator, filter: with.filter, prefixes: with.prefixes };
        let parts = (with.engines, with.shared_cache, with.shared_memtables);
        Ok(Opening {
            resources: Resources::new(world, dir, db_id, next_file, &settings, parts),
            listeners: Listeners::new(with.listeners),
            families: vec![Family { components, ..family }],
            settings,
            last_seq: 0,
            prepared: Prepared::default(),
            max_cf: 0,
            logs: 0..0,
            known_logs: BTreeMap::new(),
        })
    }

    /// Puts what the logs hold into memtables, oldest first; the last one may be empty.
    fn replay(&mut self) -> Result<()> {
        let arenas = &self.resources.arenas;
        let logged = wal::bytes_logged(&self.resources.dir, self.logs.clone())?;
        let expected = LOGGED_SHARE * logged / self.families.len().max(1) as u64;
        for family in &mut self.families {
            if let Some(foreign) = &family.foreign {
                foreign.check_tables(&family.version, &family.tools(&self.resources).0)?;
            }
            family.mems.push(family.new_memtable(arenas, expected)?);
        }
        let mut replay = Replay { families: &mut self.families, log: 0 };
        let mut sections = Sections::default();
        let visit = |log: u64, batch: &LoggedBatch<'_>| {
            let logged = batch.view()?;
            let effect = sections.take(&logged)?;
            let batch = effect.as_ref().map_or(logged, BatchBuilder::view);
            replay.log = log;
            replay.check(&batch)?;
            replay.reserve(&batch)?;
            insert_batch(&mut replay, &batch, batch.sequence());
            replay.families.iter_mut().try_for_each(|f| f.make_room(arenas, expected))?;
            Ok(batch.sequence() + u64::from(batch.count()))
        };
        let (dir, logs) = (&self.resources.dir, self.logs.clone());
        let replayed = wal::replay(dir, logs, &self.known_logs, OnRot::Refuse, visit)?;
        self.last_seq = self.last_seq.max(replayed.last_seq);
        for (name, of) in sections.into_open() {
            self.prepared.begin(&name, 0, of);
        }
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
            made: None,
            next_wal: None,
            before: None,
            closing: Vec::new(),
            kept: VecDeque::new(),
            room: 0,
            given_up: None,
            next_seq: self.last_seq + 1,
            gap: false,
            group: BatchBuilder::new(),
        };
        Shared::new(Parts {
            settings: self.settings,
            listeners: self.listeners,
            resources: self.resources,
            max_cf: self.max_cf,
            log: Box::new(log),
            prepared: self.prepared,
            manifest: manifest.map(Box::new),
            lock,
        })
    }

    /// A handle that only reads: the replayed memtables stay in memory.
    fn serve(mut self) -> Result<Opened> {
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
            let tools = family.tools(&shared.resources);
            shared.join(family.parts(tools, mems), newest);
        }
        Ok(begin(&shared))
    }

    /// Refuses to write if the numbers of writes that are left are few, whether the manifest, a table or
    /// a log says so.
    fn check_seqs(&self, families: &[Family]) -> Result<()> {
        let files = families.iter().flat_map(|f| f.version.files());
        let last = files.map(|f| f.seqs.1).fold(self.last_seq, Ord::max);
        numbers::check_seqs(last).map_err(|e| e.in_file(shown_path(self.resources.dir.path())))
    }

    /// Writes what is prepared into a log of its own; the number and bytes of that, if anything is.
    fn log_prepared(&self) -> Result<Option<(u64, u64)>> {
        let Some(log) = self.prepared.log(self.last_seq)? else { return Ok(None) };
        let number = self.resources.numbers.next().0;
        write_log(&self.resources.dir, number, &log)?;
        self.prepared.moved_to(number);
        Ok(Some((number, log.len() as u64)))
    }

    /// Flushes what was replayed, starts a new manifest and log, collects orphans, and goes.
    fn start(mut self, lock: Box<dyn LockGuard>) -> Result<Opened> {
        let mut families = std::mem::take(&mut self.families);
        self.check_seqs(&families)?;
        let numbers = self.resources.numbers.clone();
        let mut tools = Vec::new();
        for family in &mut families {
            let made = family.tools(&self.resources);
            family.flush(&made.1)?;
            tools.push(made);
        }
        let sections = self.log_prepared()?;
        let wal_number = numbers.next();
        for family in &mut families {
            let last = Edit { log_number: Some(wal_number.0), ..Edit::new(family.cf) };
            family.version = family.version.apply(&last).map_err(internal)?;
        }
        let manifest_number = numbers.next().0;
        let named: Vec<_> = families.iter().map(Family::described).collect();
        let (dir, db_id) = (&self.resources.dir, &self.resources.maker.db_id);
        let options_number = write_options(dir, &numbers, &named)?;
        let trees: Vec<_> = families.iter().map(|f| (f.cf, &*f.name, &f.version)).collect();
        let mut state = manifest_state(&trees, db_id, numbers.peek(), self.last_seq);
        state.max_cf = state.max_cf.max(self.max_cf);
        if let Some((number, bytes)) = sections {
            state.sections_from = number;
            state.min_log_to_keep = number;
            state.wals.insert(number, Some(bytes));
        }
        let manifest = ManifestLog::create(dir, manifest_number, state)?;
        let live = Live {
            tables: tables_of(&families),
            manifests: [manifest_number].into(),
            logs: sections.map_or(wal_number.0, |log| log.0)..numbers.peek().0,
            options: Some(options_number),
            next_file: numbers.peek().0,
        };
        janitor::sweep(dir, &live, db_id)?;
        let shared = self.shared(wal_number, Some(manifest), Some(lock));
        sections.into_iter().for_each(|(number, _)| shared.log_made(FileId(number)));
        for (family, tools) in families.into_iter().zip(tools) {
            let writer = family.new_memtable(&shared.resources.arenas, u64::MAX)?;
            let mems = vec![Mem::new(MemId(1), writer.table().clone(), wal_number)];
            shared.join(family.parts(tools, mems), writer);
        }
        Ok(begin(&shared))
    }
}

/// Numbers of the tables that these families have.
fn tables_of(families: &[Family]) -> BTreeSet<u64> {
    let files = families.iter().flat_map(|f| f.version.files());
    files.map(|f| f.backing.unwrap_or(f.id).0).collect()
}

/// All families are there: background work begins.
fn set_going(shared: &Arc<Shared>) {
    if shared.life.read_only_handle {
        shared.refuse(&Error::new(
            ErrorKind::ReadOnly,
            "the database was opened for reading only; open it with `open` to write",
        ));
        shared.background.stopped.complete();
        return;
    }
    // The clock of the log starts anew with each open.
    let now = shared.resources.env.rt.now();
    shared.events.note(now, "opened", &shared.told_first(now));
    shared.look_at_disk_first();
    let upkeep = shared.background.upkeep.counted(Box::new(Upkeep::new(shared.clone())));
    shared.resources.env.rt.spawn(Class::Upkeep, upkeep);
    for family in shared.families() {
        family.drive(Event::Awaited { by: 0 });
    }
}

/// Sets an open database going.
fn begin(shared: &Arc<Shared>) -> Opened {
    set_going(shared);
    let shell = shared.families().swap_remove(0);
    Opened { closer: Closer(shell.clone()), shell }
}
