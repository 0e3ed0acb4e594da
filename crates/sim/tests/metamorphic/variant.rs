//! A way to run the database that must not show: its settings, the order of its jobs, and what is done
//! to it between two operations of the client (flushes, compactions, restarts, copies, kills).
//!
//! Keeps: a restart happens only while no view is held, and a kill only where every write was handed
//! to the file system, so the client can't tell.

use std::fmt;
use std::path::Path;

use lithify::verify::verify;
use lithify::{
    Builder, CompactionPri, Compression, Db, DbIter, Durability, Policy, ReadOptions, Settings,
    Snapshot, WriteBatch, WriteOptions,
};
use lithify_env::random::derive_seed;
use lithify_env::sync::Arc;
use lithify_env::sync::atomic::{AtomicU64, Ordering};
use lithify_env::{Env, Fault, FaultFs, Fs, MemFs, Random};
use lithify_plan::{BucketOptions, CommitOrder, DfWhen, PlanOptions};
use lithify_sim::choices::{Dice, Stream};
use lithify_sim::pump::{Order, Pump};

use crate::image;
use crate::plan::{Change, KeyNo, Move, Op, key, value};
use crate::subject::{Answer, Entry, Subject, named};

/// What ends a life now and then, unnoticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restart {
    Never,
    /// It is closed and opened.
    Close,
    /// What is on the disk in the middle of everything is opened elsewhere.
    Kill,
    /// Life goes on in a checkpoint.
    Copy,
}

/// One way to run.
#[derive(Clone, Debug)]
pub struct Variant {
    pub settings: Settings,
    pub restart: Restart,
    /// A restart comes once in so many operations.
    odds: u64,
    /// A flush follows every so many writes; 0 for none.
    flush_every: u64,
    /// A compaction of some keys comes once in so many operations; 0 for none.
    compact_odds: u64,
    /// Background steps between operations, at most.
    pace: u64,
    order: Order,
    /// Reads leave nothing in the cache.
    uncached: bool,
    /// Transfers are cut short.
    short: bool,
    seed: u64,
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = &self.settings;
        write!(
            f,
            "{}, {:?}, restart {:?} 1/{}, flush every {}, compact 1/{}, pace {}, {:?}{}{}; memtables \
             {}, budget {}, files {}, blocks {}, l0 {}/{}/{}, threads {}+{}, parts {}, {}, {:?}/{:?}, bloom {} in {}, \
             version {}, buckets {:?}",
            s.effective_policy().name(),
            s.durability,
            self.restart,
            self.odds,
            self.flush_every,
            self.compact_odds,
            self.pace,
            self.order,
            if self.uncached { ", uncached" } else { "" },
            if self.short { ", short transfers" } else { "" },
            s.memtable_count,
            s.memory_budget,
            s.file_bytes,
            s.block_bytes,
            s.l0_trigger,
            s.l0_slowdown,
            s.l0_stop,
            s.compaction_threads,
            s.flush_threads,
            s.max_subcompactions,
            s.compaction_pri.name(),
            s.compression_upper,
            s.compression_lower,
            s.bloom_bits,
            s.partition_bytes,
            s.format_version,
            s.plan.as_ref().map(|p| (p.buckets.initial, p.commit_order)),
        )
    }
}

impl Variant {
    /// Variant `index` of a seed. The policies go round, so that neighbours have them all.
    pub fn new(seed: u64, index: u64) -> Variant {
        let mut random = Random::from_seed(derive_seed(seed, &format!("variant {index}")));
        let r = &mut random;
        let policy =
            Policy::EVERY[(seed.wrapping_add(index) % Policy::EVERY.len() as u64) as usize];
        let restarts = [Restart::Never, Restart::Close, Restart::Kill, Restart::Copy];
        let restart = *pick(r, &restarts);
        let mut settings = settings(policy, r);
        if restart == Restart::Kill {
            settings.durability = *pick(r, &[Durability::Os, Durability::Sync]);
        }
        let flush_every = *pick(r, &[0, 0, 50, 7, 1]);
        let mut variant = Variant {
            settings,
            restart,
            odds: *pick(r, &[20, 60, 200]),
            flush_every,
            compact_odds: *pick(r, &[0, 0, 30, 200]),
            pace: *pick(r, &[0, 4, 30, 2000]),
            order: *pick(r, &[Order::Chosen, Order::Chosen, Order::Calm]),
            uncached: r.one_in(4),
            short: r.one_in(5),
            seed: r.next_u64(),
        };
        variant.settings.max_subcompactions = *pick(r, &[1, 2, 4]);
        let pri = *pick(r, &CompactionPri::ALL);
        if !policy.takes_runs() {
            variant.settings.compaction_pri = pri;
        }
        variant
    }
}

fn pick<'a, T>(random: &mut Random, of: &'a [T]) -> &'a T {
    &of[random.below(of.len() as u64) as usize]
}

fn settings(policy: Policy, r: &mut Random) -> Settings {
    let codecs = &[Compression::None, Compression::Lz4, Compression::Snappy];
    let mut s = Settings::default();
    s.policy = Some(policy);
    s.memtable_bytes = *pick(r, &[64 << 10, 64 << 10, 256 << 10, 4 << 20]);
    s.memtable_count = 2 + r.below(4) as u32;
    let memtables = s.memtable_bytes * u64::from(s.memtable_count);
    s.memory_budget = memtables + *pick(r, &[1 << 20, 1 << 20, 4 << 20, 256 << 20]);
    s.level_base_bytes = *pick(r, &[64 << 10, 256 << 10, 8 << 20]);
    s.level_multiplier = *pick(r, &[2, 4, 10]);
    s.file_bytes = *pick(r, &[16 << 10, 16 << 10, 64 << 10, 4 << 20]);
    s.block_bytes = *pick(r, &[512, 512, 4096, 64 << 10]);
    s.l0_trigger = 1 + r.below(5) as u32;
    s.l0_slowdown = s.l0_trigger + 1 + r.below(8) as u32;
    s.l0_stop = s.l0_slowdown + 1 + r.below(8) as u32;
    s.compaction_threads = *pick(r, &[1, 2, 4, 8]);
    s.flush_threads = 1 + r.below(3) as u32;
    s.dynamic_levels = r.one_in(2);
    s.format_version = 5 + r.below(2) as u32;
    s.compression_upper = *pick(r, codecs);
    s.compression_lower = *pick(r, codecs);
    s.bloom_bits = *pick(r, &[0, 1, 10, 20]);
    s.event_log = r.one_in(2);
    s.auto_compaction = !r.one_in(8);
    if !s.auto_compaction {
        // Nobody else would ever make room.
        (s.l0_slowdown, s.l0_stop) = (100_000, 100_000);
    }
    let levels = &[Durability::NoWal, Durability::Buffered, Durability::Os, Durability::Sync];
    s.durability = *pick(r, levels);
    if !r.one_in(4) {
        let buckets = BucketOptions {
            initial: *pick(r, &[1, 3, 8, 64]),
            window: 3,
            split_percent: 150,
            merge_percent: 60,
            min_file_bytes: 1 << 10,
            only_when_empty: r.one_in(6),
            by_bytes: r.one_in(2),
            ..BucketOptions::default()
        };
        let issue = r.one_in(4);
        s.plan = Some(Box::new(PlanOptions {
            df_when: DfWhen::Always,
            df_max_depth: 2 + r.below(5) as u32,
            df_extra_percent: u32::MAX,
            tiered_runs: 2 + r.below(3) as u32,
            commit_order: if issue { CommitOrder::Issue } else { CommitOrder::Dependency },
            buckets,
            ..PlanOptions::default()
        }));
    }
    s.partition_bytes = *pick(r, &[0, 0, 1 << 10, 4 << 10]);
    s
}

/// A database that is run in one way.
pub struct Database {
    variant: Variant,
    random: Random,
    pump: Arc<Pump>,
    fs: MemFs,
    home: String,
    homes: u32,
    db: Option<Db>,
    snapshots: Vec<Snapshot>,
    iterators: Vec<DbIter>,
    writes: u64,
    /// Restarts that the client did not ask for.
    pub restarts: u64,
}

fn told(e: lithify::Error) -> String {
    format!("{e:?}")
}

impl Database {
    /// An empty one.
    ///
    /// # Errors
    /// If it does not open.
    pub fn new(variant: &Variant) -> Result<Database, String> {
        let dice = Dice::new(Stream::seeded(variant.seed, "jobs"));
        let mut database = Database {
            random: Random::from_seed(variant.seed),
            pump: Arc::new(Pump::new(dice, variant.seed, variant.order)),
            fs: MemFs::new(),
            home: "/db".to_owned(),
            homes: 0,
            db: None,
            snapshots: Vec::new(),
            iterators: Vec::new(),
            writes: 0,
            restarts: 0,
            variant: variant.clone(),
        };
        database.open()?;
        Ok(database)
    }

    fn env(&self) -> Env {
        let fs: Arc<dyn Fs> = Arc::new(self.fs.clone());
        let count = AtomicU64::new(self.variant.seed % 100);
        let short = move |n: u64, len: u64| Fault::Short(1 + (n * 37 % len) as usize);
        let fs: Arc<dyn Fs> = match self.variant.short {
            false => fs,
            true => Arc::new(FaultFs::new(fs, move |op| {
                let n = count.fetch_add(1, Ordering::Relaxed);
                let transfer = matches!(op.name, "read_at" | "write_at") && op.len > 1;
                (transfer && n.is_multiple_of(3)).then(|| short(n, op.len))
            })),
        };
        Env { fs, rt: self.pump.clone() }
    }

    fn builder(&self) -> Builder {
        Builder::new(self.variant.settings.clone()).env(self.env())
    }

    fn open(&mut self) -> Result<(), String> {
        self.db = Some(self.builder().open(&self.home).map_err(told)?);
        Ok(())
    }

    fn db(&self) -> &Db {
        self.db.as_ref().expect("open between operations")
    }

    fn options(&self) -> ReadOptions {
        ReadOptions { skip_cache_fill: self.variant.uncached, ..ReadOptions::default() }
    }

    /// What the client does not know of.
    fn meanwhile(&mut self) -> Result<(), String> {
        let steps = self.random.below(self.variant.pace + 1);
        for _ in 0..steps {
            if !self.pump.step() {
                break;
            }
        }
        let due = |random: &mut Random, odds: u64| odds > 0 && random.one_in(odds);
        if due(&mut self.random, self.variant.compact_odds) {
            let from = self.random.below(1000) as KeyNo;
            let to = from + self.random.below(200) as KeyNo;
            self.db().compact_range(Some(&key(from)), Some(&key(to))).map_err(told)?;
        }
        let unseen = self.snapshots.is_empty() && self.iterators.is_empty();
        if unseen && due(&mut self.random, self.variant.odds) {
            self.restart()?;
        }
        Ok(())
    }

    fn restart(&mut self) -> Result<(), String> {
        self.restarts += u64::from(self.variant.restart != Restart::Never);
        match self.variant.restart {
            Restart::Never => Ok(()),
            Restart::Close => self.reopen(),
            Restart::Kill => {
                let left = image::take(&self.fs, &self.home);
                let elsewhere = image::put(&left, &self.home);
                // What the old one does from here on, nobody sees.
                let old = std::mem::replace(&mut self.fs, elsewhere);
                drop(self.db.take());
                drop(old);
                self.open()
            }
            Restart::Copy => {
                let home = self.free_home();
                self.db().checkpoint(&home).map_err(told)?;
                self.home = home;
                self.reopen()
            }
        }
    }

    fn free_home(&mut self) -> String {
        self.homes += 1;
        format!("/copy{}", self.homes)
    }

    fn reopen(&mut self) -> Result<(), String> {
        self.snapshots.clear();
        self.iterators.clear();
        if let Some(db) = self.db.take() {
            db.close().map_err(told)?;
        }
        self.open()
    }

    fn write(&mut self, changes: &[Change]) -> Result<(), String> {
        let options = WriteOptions::default();
        match changes {
            [Change::Put(k, v)] => self.db().put_opt(key(*k), value(*v), &options),
            [Change::Delete(k)] => self.db().delete_opt(key(*k), &options),
            several => {
                let mut batch = WriteBatch::new();
                for change in several {
                    match change {
                        Change::Put(k, v) => batch.put(key(*k), value(*v)),
                        Change::Delete(k) => batch.delete(key(*k)),
                        Change::DeleteRange(from, to) => batch.delete_range(key(*from), key(*to)),
                    }
                    .map_err(told)?;
                }
                self.db().write_opt(&batch, &options)
            }
        }
        .map_err(told)?;
        self.writes += 1;
        if self.variant.flush_every > 0 && self.writes.is_multiple_of(self.variant.flush_every) {
            self.db().flush().map_err(told)?;
        }
        Ok(())
    }

    fn do_it(&mut self, op: &Op) -> Result<Answer, String> {
        let options = self.options();
        Ok(match op {
            Op::Write(changes) => {
                self.write(changes)?;
                Answer::Nothing
            }
            Op::Get(k) => {
                let found = self.db().get_opt(key(*k), &options).map_err(told)?;
                Answer::Values(vec![found.map(|v| v.to_vec())])
            }
            Op::MultiGet(keys) => {
                let keys: Vec<Vec<u8>> = keys.iter().map(|k| key(*k)).collect();
                let found = self.db().multi_get_opt(&keys, &options).map_err(told)?;
                Answer::Values(found.into_iter().map(|v| v.map(|v| v.to_vec())).collect())
            }
            Op::Scan { from, to, backward, most } => {
                let options = options.with_bounds(from.map(key), to.map(key));
                Answer::Entries(scan(self.db(), &options, *backward, *most)?)
            }
            Op::Walk(moves) => {
                Answer::Places(walk(&mut self.db().iter_opt(&options).map_err(told)?, moves)?)
            }
            Op::Snapshot => {
                self.snapshots.push(self.db().snapshot());
                Answer::Nothing
            }
            Op::GetAt(which, k) => match named(*which, self.snapshots.len()) {
                Some(at) => {
                    let options =
                        ReadOptions { snapshot: Some(self.snapshots[at].clone()), ..options };
                    let found = self.db().get_opt(key(*k), &options).map_err(told)?;
                    Answer::Values(vec![found.map(|v| v.to_vec())])
                }
                None => Answer::Nothing,
            },
            Op::ScanAt(which) => match named(*which, self.snapshots.len()) {
                Some(at) => {
                    let options =
                        ReadOptions { snapshot: Some(self.snapshots[at].clone()), ..options };
                    Answer::Entries(scan(self.db(), &options, false, u32::MAX)?)
                }
                None => Answer::Nothing,
            },
            Op::ForgetSnapshot(which) => {
                named(*which, self.snapshots.len()).map(|at| self.snapshots.remove(at));
                Answer::Nothing
            }
            Op::Hold(k) => {
                let mut iter = self.db().iter_opt(&options).map_err(told)?;
                let place = walk(&mut iter, &[Move::Seek(*k)])?;
                self.iterators.push(iter);
                Answer::Places(place)
            }
            Op::WalkHeld(which, moves) => match named(*which, self.iterators.len()) {
                Some(at) => Answer::Places(walk(&mut self.iterators[at], moves)?),
                None => Answer::Nothing,
            },
            Op::LetGo(which) => {
                named(*which, self.iterators.len()).map(|at| self.iterators.remove(at));
                Answer::Nothing
            }
            Op::Checkpoint => {
                let home = self.free_home();
                self.db().checkpoint(&home).map_err(told)?;
                let copy = self.builder().open(&home).map_err(told)?;
                let entries = scan(&copy, &options, false, u32::MAX)?;
                copy.close().map_err(told)?;
                Answer::Entries(entries)
            }
            Op::ReadOnly => {
                // It sees what the file system was handed.
                self.db().flush().map_err(told)?;
                let copy = self.builder().open_read_only(&self.home).map_err(told)?;
                Answer::Entries(scan(&copy, &options, false, u32::MAX)?)
            }
            Op::Reopen => {
                self.reopen()?;
                Answer::Nothing
            }
            Op::Flush => self.db().flush().map(|()| Answer::Nothing).map_err(told)?,
            Op::Compact(from, to) => {
                let (from, to) = (from.map(key), to.map(key));
                self.db().compact_range(from.as_deref(), to.as_deref()).map_err(told)?;
                Answer::Nothing
            }
            Op::Settle => {
                self.db().wait_idle(None).map_err(told)?;
                Answer::Nothing
            }
            Op::Sync => self.db().sync().map(|()| Answer::Nothing).map_err(told)?,
        })
    }

    /// What it did so far, step by step: its tree and how many steps its jobs took.
    pub fn trace(&self) -> String {
        format!("{} steps\n{}", self.pump.steps(), self.db().picture())
    }

    /// Ends its life, and looks at every byte that is left.
    ///
    /// # Errors
    /// Whatever is wrong with it.
    pub fn end(mut self) -> Result<(), String> {
        self.snapshots.clear();
        self.iterators.clear();
        self.db.take().map_or(Ok(()), Db::close).map_err(told)?;
        let fs: Arc<dyn Fs> = Arc::new(self.fs.clone());
        let report = verify(fs, Path::new(&self.home), None, &mut |_| {}).map_err(told)?;
        if report.is_clean() { Ok(()) } else { Err(format!("verify: {:?}", report.findings)) }
    }
}

impl Subject for Database {
    fn apply(&mut self, op: &Op) -> Result<Answer, String> {
        self.meanwhile()?;
        let answer = self.do_it(op)?;
        match self.pump.panics().first() {
            None => Ok(answer),
            Some(message) => Err(format!("a job panicked: {message}")),
        }
    }
}

fn scan(db: &Db, options: &ReadOptions, backward: bool, most: u32) -> Result<Vec<Entry>, String> {
    let mut iter = db.iter_opt(options).map_err(told)?;
    let mut entries = Vec::new();
    if backward {
        iter.seek_to_last()
    } else {
        iter.seek_to_first()
    }
    while iter.valid() && entries.len() < most as usize {
        entries.push((iter.key().to_vec(), iter.value().to_vec()));
        if backward { iter.prev() } else { iter.next() }
    }
    iter.status().map_err(told)?;
    Ok(entries)
}

fn walk(iter: &mut DbIter, moves: &[Move]) -> Result<Vec<Option<Entry>>, String> {
    let mut places = Vec::new();
    for step in moves {
        match step {
            Move::First => iter.seek_to_first(),
            Move::Last => iter.seek_to_last(),
            Move::Seek(k) => iter.seek(key(*k)),
            Move::SeekForPrev(k) => iter.seek_for_prev(key(*k)),
            Move::Next => iter.next(),
            Move::Prev => iter.prev(),
        }
        iter.status().map_err(told)?;
        places.push(iter.valid().then(|| (iter.key().to_vec(), iter.value().to_vec())));
    }
    Ok(places)
}
