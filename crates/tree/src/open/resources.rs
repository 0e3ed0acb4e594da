//! What the column families of a database are made with: its world, and what they share of memory,
//! numbers and rates.

use std::collections::BTreeSet;
use std::path::PathBuf;

use lithify_base::{CfId, ComparatorRef, FileId, Result, shown_path};
use lithify_compact::{
    Engines, FileNumbers, JobContext, Maker, OutputOptions, TableDirs, set_bytes,
};
use lithify_engine::Engine;
use lithify_env::sync::Arc;
use lithify_env::{BufPool, Env, Mapped, Random, RateLimiter, RegionPool};
use lithify_files::dir::{self, Dir};
use lithify_files::wal::NewLog;
use lithify_settings::{buffer_bytes, jobs};
use lithify_store::places;
use lithify_tables::cache::{BlockCache, SharedCache, TableCache, TableOptions};
use lithify_tables::sst::Verify;

use crate::settings::Settings;
use crate::settings::translate::{output_options, tuning};
use lithify_opening::{Components, Files};
use lithify_reports::alive::Alive;
use lithify_reports::reentry::{Mark, marking};
use lithify_writes::shared::{Arenas, SharedMemtables};

/// Most tables the cache keeps open by itself; those of the tree stay open anyway.
const OPEN_TABLES: usize = 256;

/// What the families of a database are made with.
#[derive(Clone)]
pub(crate) struct Resources {
    pub(crate) env: Env,
    pub(crate) dir: Dir,
    pub(crate) maker: Maker,
    pub(crate) numbers: FileNumbers,
    pub(crate) blocks: Arc<BlockCache>,
    /// What `blocks` are of, if other databases may have it as well.
    pub(crate) shared_cache: Option<SharedCache>,
    pub(crate) arenas: Arenas,
    pub(crate) limiter: Arc<RateLimiter>,
    /// On the threads that are at work for this database.
    pub(crate) mark: Mark,
    /// Jobs that may still hold tables, and functions of the user's.
    pub(crate) alive: Alive,
    /// What stands before the file system of `env`.
    pub(crate) files: Files,
    pub(crate) engines: Arc<Engines>,
    buffers: BufPool,
    /// What `arenas` take from.
    regions: RegionPool,
    mapped_log: bool,
}

/// Bytes of memory that the settings give to parts of the database.
pub(crate) struct Shares {
    pub(crate) memtables: u64,
    pub(crate) buffers: u64,
}

/// What may be of other databases as well: engines, the block cache, the bound of memtables.
type Given = (Vec<Arc<dyn Engine>>, Option<SharedCache>, Option<SharedMemtables>);

impl Resources {
    pub(super) fn new(
        (env, files): (Env, Files),
        dir: Dir,
        db_id: String,
        next_file: FileId,
        s: &Settings,
        (engines, shared_cache, shared_memtables): Given,
    ) -> Resources {
        let (session, buffers) = (session(&env, &dir, next_file), buffer_bytes(s));
        let memtables = s.memtable_bytes as usize * s.memtable_count as usize;
        let regions = RegionPool::new(memtables);
        Resources {
            env,
            dir,
            maker: Maker { db_id, session },
            numbers: FileNumbers::new(next_file),
            blocks: match &shared_cache {
                Some(cache) => cache.blocks().clone(),
                None => BlockCache::new(lithify_settings::cache_bytes(s), BlockCache::shards()),
            },
            shared_cache,
            arenas: Arenas::new(Arc::new(regions.clone()), shared_memtables.as_ref()),
            regions,
            limiter: Arc::new(RateLimiter::new(s.background_rate, tuning(s))),
            mark: Mark::fresh(),
            alive: Alive::default(),
            files,
            engines: Arc::new(Engines::new(engines, set_bytes(buffers, jobs(s)))),
            buffers: BufPool::new(buffers as usize),
            mapped_log: s.mapped_log,
        }
    }

    /// Makes directories for tables the database's own, which has the tables `named`.
    pub(crate) fn own(&self, dirs: &[PathBuf], named: &BTreeSet<u64>, denied: u32) -> Result<()> {
        let who = format!("deed of {}", shown_path(self.dir.path()));
        let mut random = Random::from_seed(self.env.rt.seed(&who));
        places::own(&self.dir, dirs, (&self.maker.db_id, named), &mut random, denied)
    }

    /// As [`NewLog::make`].
    pub(crate) fn new_log(&self, number: FileId) -> Result<NewLog> {
        NewLog::make(&self.dir, number, self.mapped_log)
    }

    /// Bytes of memtables and of buffers beyond their shares: open iterators keep memtables that were
    /// flushed, and buffers are never waited for.
    pub(crate) fn beyond_shares(&self, shares: &Shares) -> u64 {
        let regions = (self.regions.in_use() + self.regions.idle()) as u64;
        let buffers = (self.buffers.in_use() + self.buffers.idle()) as u64;
        regions.saturating_sub(shares.memtables) + buffers.saturating_sub(shares.buffers)
    }

    /// Bytes of memtables that are held now.
    pub(crate) fn memtables_in_use(&self) -> u64 {
        self.regions.in_use() as u64
    }

    /// Bytes of the shares that nothing holds now, less one memtable of `memtable` bytes: the next one finds its memory.
    pub(crate) fn unused(&self, shares: &Shares, memtable: u64) -> u64 {
        let memtables = self.memtables_in_use().saturating_add(memtable);
        let buffers = self.buffers.in_use() as u64;
        shares.memtables.saturating_sub(memtables) + shares.buffers.saturating_sub(buffers)
    }

    /// Keeps buffers and memory of memtables for the next use as far as their shares go, less
    /// `missing` bytes.
    pub(crate) fn keep_idle(&self, shares: &Shares, missing: u64) {
        let buffers = shares.buffers.saturating_sub(missing);
        let rest = missing.saturating_sub(shares.buffers);
        self.buffers.set_budget(buffers as usize);
        self.regions.set_budget(shares.memtables.saturating_sub(rest) as usize);
    }

    /// The tables and the context of a family.
    pub(crate) fn tools(
        &self,
        cf: CfId,
        name: &str,
        s: &Settings,
        order: &ComparatorRef,
        own: &Components,
    ) -> (Arc<TableCache>, Arc<JobContext>) {
        let options = TableOptions {
            order: order.clone(),
            prefixes: own.prefixes.clone(),
            blocks: Some(self.blocks.clone()),
            verify: match s.verify_checksums && !s.unchecked {
                true => Verify::Always,
                false => Verify::Never,
            },
            direct: s.direct_reads,
            mapped: match s.mapped_reads {
                Some(true) => Mapped::Yes,
                Some(false) => Mapped::No,
                None => Mapped::IfItFits,
            },
        };
        let tables = TableCache::new(self.dir.clone(), options, OPEN_TABLES);
        let output = output_options(s, own.prefixes.clone());
        let output = OutputOptions { cf, cf_name: name.to_owned(), ..output };
        let mut env = self.env.clone();
        env.rt = marking(env.rt, self.mark, self.alive.clone());
        let mut context = JobContext::new(
            env,
            self.dir.clone(),
            tables.clone(),
            self.buffers.clone(),
            self.maker.clone(),
            order.clone(),
            output,
            self.numbers.clone(),
        );
        let dirs = s.table_dirs.iter().map(|dir| self.dir.place_at(&dir.path)).collect();
        context.table_dirs = TableDirs::new(&self.dir, dirs, s.places());
        context.operator = own.operator.clone();
        context.filter = own.filter.clone();
        context.limiter = self.limiter.clone();
        (tables, Arc::new(context))
    }
}

/// An identity of this opening. One runtime may open several databases, and one of them several times,
/// another copy in its place between: equal names have equal seeds, so the name has what differs.
fn session(env: &Env, dir: &Dir, next_file: FileId) -> String {
    let (path, now) = (shown_path(dir.path()), env.rt.now().nanos());
    let who = format!("session of {path} from {} at {now}", next_file.0);
    dir::fresh_session(&mut Random::from_seed(env.rt.seed(&who)))
}
