//! A way to run the database that must not show: its settings, the order of its jobs, and what is done
//! to it between two operations of the client (flushes, compactions, restarts, copies, kills).
//!
//! Keeps: a restart happens only while no view is held, and a kill only where every write was handed
//! to the file system, so the client can't tell.

use std::fmt;
use std::path::Path;

use lithify::verify::verify;
use lithify::{
    Builder, ColumnFamily, ColumnFamilyOptions, CompactionPri, Db, DbIter, Durability, Policy,
    ReadOptions, Settings, Snapshot, WriteBatch, WriteOptions,
};
use lithify_env::random::derive_seed;
use lithify_env::sync::Arc;
use lithify_env::sync::atomic::{AtomicU64, Ordering};
use lithify_env::{Env, Fault, FaultFs, Fs, MemFs, Random};
use lithify_sim::choices::{Dice, Stream};
use lithify_sim::pump::{Order, Pump};

use crate::image;
use crate::plan::{Change, FamilyNo, KeyNo, Move, Op, key, value};
use crate::settings::{Prefixes, RARE_CODECS, merge_widths, of_families, pick, settings};
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
    /// Those of the other families.
    families: Settings,
    prefixes: Prefixes,
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
             prefixes {:?}, version {}, buckets {:?}; families {}",
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
            self.prefixes,
            s.format_version,
            s.plan.as_ref().map(|p| (p.buckets.initial, p.commit_order)),
            self.families.effective_policy().name(),
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
            families: settings.clone(),
            prefixes: Prefixes::None,
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
        let ways = [Prefixes::None, Prefixes::Fixed(2), Prefixes::Fixed(4), Prefixes::Capped(3)];
        variant.prefixes = *pick(r, &ways);
        variant.settings.whole_key_filtering = r.one_in(2) || variant.prefixes == Prefixes::None;
        let codec = *pick(r, &RARE_CODECS);
        variant.settings.compression_lower = codec.unwrap_or(variant.settings.compression_lower);
        if policy == Policy::Universal {
            merge_widths(&mut variant.settings, r);
        }
        variant.families = of_families(&variant.settings, r);
        variant
    }
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

/// Families that may be there, besides the default one.
const FAMILIES: FamilyNo = 2;

fn name(family: FamilyNo) -> String {
    match family {
        0 => "default".to_owned(),
        n => format!("family {n}"),
    }
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
        let builder = Builder::new(self.variant.settings.clone()).env(self.env());
        let builder = match self.variant.prefixes.extractor() {
            Some(by) => builder.prefix_extractor(by),
            None => builder,
        };
        (1..=FAMILIES)
            .fold(builder, |b, family| b.column_family(&name(family), self.of_family(family)))
    }

    /// What a family is opened with: the first as the database is.
    fn of_family(&self, family: FamilyNo) -> ColumnFamilyOptions {
        let options = ColumnFamilyOptions::new();
        let options = match family {
            1 => options,
            _ => options.settings(self.variant.families.clone()),
        };
        match self.variant.prefixes.extractor() {
            Some(by) => options.prefix_extractor(by),
            None => options,
        }
    }

    /// A family, if it is there.
    fn family(&self, family: FamilyNo) -> Result<Option<ColumnFamily>, String> {
        let name = name(family);
        match self.db().column_families().contains(&name) {
            true => self.db().column_family(&name).map(Some).map_err(told),
            false => Ok(None),
        }
    }

    /// All that are there, the default one first.
    fn families(&self) -> Result<Vec<ColumnFamily>, String> {
        let all = (0..=FAMILIES).filter_map(|family| self.family(family).transpose());
        all.collect()
    }

    fn flush_all(&self) -> Result<(), String> {
        self.families()?.iter().try_for_each(|family| family.flush().map_err(told))
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
            let families = self.families()?;
            let family = &families[self.random.below(families.len() as u64) as usize];
            family.compact_range(Some(&key(from)), Some(&key(to))).map_err(told)?;
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
                        Change::Put(k, v) => batch.put(key(*k), value(*v)).map_err(told)?,
                        Change::Delete(k) => batch.delete(key(*k)).map_err(told)?,
                        Change::DeleteRange(from, to) => {
                            batch.delete_range(key(*from), key(*to)).map_err(told)?;
                        }
                        Change::In(family, change) => {
                            if let Some(family) = self.family(*family)? {
                                add_to(&mut batch, &family, change).map_err(told)?;
                            }
                        }
                    }
                }
                self.db().write_opt(&batch, &options)
            }
        }
        .map_err(told)?;
        self.writes += 1;
        if self.variant.flush_every > 0 && self.writes.is_multiple_of(self.variant.flush_every) {
            self.flush_all()?;
        }
        Ok(())
    }

    fn do_it(&mut self, op: &Op) -> Result<Answer, String> {
        Ok(match op {
            Op::In(family, op) => match self.family(*family)? {
                Some(family) => self.do_in(&family, op)?,
                None => Answer::Nothing,
            },
            Op::Write(changes) => {
                self.write(changes)?;
                Answer::Nothing
            }
            Op::Snapshot => {
                self.snapshots.push(self.db().snapshot());
                Answer::Nothing
            }
            Op::ForgetSnapshot(which) => {
                named(*which, self.snapshots.len()).map(|at| self.snapshots.remove(at));
                Answer::Nothing
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
                let entries = self.everything(&copy)?;
                copy.close().map_err(told)?;
                Answer::Entries(entries)
            }
            Op::ReadOnly => {
                // It sees what the file system was handed.
                self.flush_all()?;
                let copy = self.builder().open_read_only(&self.home).map_err(told)?;
                Answer::Entries(self.everything(&copy)?)
            }
            Op::Reopen => {
                self.reopen()?;
                Answer::Nothing
            }
            Op::Settle => {
                self.db().wait_idle(None).map_err(told)?;
                Answer::Nothing
            }
            Op::Sync => self.db().sync().map(|()| Answer::Nothing).map_err(told)?,
            Op::Create(family) => {
                if self.family(*family)?.is_none() {
                    let options = self.of_family(*family);
                    self.db().create_column_family(&name(*family), options).map_err(told)?;
                }
                Answer::Nothing
            }
            Op::Drop(family) => {
                if self.family(*family)?.is_some() {
                    self.db().drop_column_family(&name(*family)).map_err(told)?;
                }
                Answer::Nothing
            }
            op => {
                let family = self.db().column_family("default").map_err(told)?;
                self.do_in(&family, op)?
            }
        })
    }

    /// An operation about one family.
    fn do_in(&mut self, db: &Db, op: &Op) -> Result<Answer, String> {
        let options = self.options();
        Ok(match op {
            Op::Get(k) => {
                let found = db.get_opt(key(*k), &options).map_err(told)?;
                Answer::Values(vec![found.map(|v| v.to_vec())])
            }
            Op::MultiGet(keys) => {
                let keys: Vec<Vec<u8>> = keys.iter().map(|k| key(*k)).collect();
                let found = db.multi_get_opt(&keys, &options).map_err(told)?;
                Answer::Values(found.into_iter().map(|v| v.map(|v| v.to_vec())).collect())
            }
            Op::Scan { from, to, backward, most } => {
                let options = options.with_bounds(from.map(key), to.map(key));
                Answer::Entries(scan(db, &options, *backward, *most)?)
            }
            Op::Walk(moves) => {
                Answer::Places(walk(&mut db.iter_opt(&options).map_err(told)?, moves)?)
            }
            Op::Prefix { of, bytes, backward } => {
                let options = options.with_prefix(&key(*of)[..*bytes as usize]);
                Answer::Entries(scan(db, &options, *backward, u32::MAX)?)
            }
            Op::GetAt(which, k) => match named(*which, self.snapshots.len()) {
                Some(at) => {
                    let options =
                        ReadOptions { snapshot: Some(self.snapshots[at].clone()), ..options };
                    let found = db.get_opt(key(*k), &options).map_err(told)?;
                    Answer::Values(vec![found.map(|v| v.to_vec())])
                }
                None => Answer::Nothing,
            },
            Op::ScanAt(which) => match named(*which, self.snapshots.len()) {
                Some(at) => {
                    let options =
                        ReadOptions { snapshot: Some(self.snapshots[at].clone()), ..options };
                    Answer::Entries(scan(db, &options, false, u32::MAX)?)
                }
                None => Answer::Nothing,
            },
            Op::Hold(k) => {
                let mut iter = db.iter_opt(&options).map_err(told)?;
                let place = walk(&mut iter, &[Move::Seek(*k)])?;
                self.iterators.push(iter);
                Answer::Places(place)
            }
            Op::Flush => db.flush().map(|()| Answer::Nothing).map_err(told)?,
            Op::Compact(from, to) => {
                let (from, to) = (from.map(key), to.map(key));
                db.compact_range(from.as_deref(), to.as_deref()).map_err(told)?;
                Answer::Nothing
            }
            op => unreachable!("{op:?} is not about one family"),
        })
    }

    /// All that `copy` has, family by family.
    fn everything(&self, copy: &Db) -> Result<Vec<Entry>, String> {
        let mut entries = Vec::new();
        for family in (0..=FAMILIES).map(name) {
            if copy.column_families().contains(&family) {
                let family = copy.column_family(&family).map_err(told)?;
                entries.extend(scan(&family, &self.options(), false, u32::MAX)?);
            }
        }
        Ok(entries)
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

/// Adds a change of a family.
fn add_to(batch: &mut WriteBatch, family: &ColumnFamily, change: &Change) -> lithify::Result<()> {
    match change {
        Change::Put(k, v) => batch.put_cf(family, key(*k), value(*v)),
        Change::Delete(k) => batch.delete_cf(family, key(*k)),
        Change::DeleteRange(from, to) => batch.delete_range_cf(family, key(*from), key(*to)),
        Change::In(..) => unreachable!("a family holds no families"),
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
