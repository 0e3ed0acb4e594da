//! A database that is run in one way, with a client that sees no difference.
//!
//! Keeps: a restart happens only while no view is held, and a kill only where every write was handed
//! to the file system, so the client can't tell.

use std::path::Path;

use lithify::verify::verify;
use lithify::{
    Builder, ColumnFamily, ColumnFamilyOptions, Db, DbIter, ReadOptions, Snapshot, WriteBatch,
    WriteOptions,
};
use lithify_env::sync::Arc;
use lithify_env::sync::atomic::{AtomicU64, Ordering};
use lithify_env::{Env, Fault, FaultFs, Fs, MemFs, Random};
use lithify_sim::choices::{Dice, Stream};
use lithify_sim::marks::Marks;
use lithify_sim::pump::Pump;

use crate::image;
use crate::operator::Calls;
use crate::plan::{Change, FamilyNo, KeyNo, Move, Op, Operators, key, value};
use crate::subject::{Answer, Entry, Subject, named};
use crate::variant::{Restart, Variant};

/// A database that is run in one way.
pub struct Database {
    variant: Variant,
    operators: Operators,
    calls: Arc<Calls>,
    random: Random,
    pump: Arc<Pump>,
    fs: MemFs,
    home: String,
    homes: u32,
    db: Option<Db>,
    snapshots: Vec<Snapshot>,
    iterators: Vec<DbIter>,
    writes: u64,
    /// What was met on the way.
    pub marks: Marks,
}

/// Families that may be there, besides the default one.
const FAMILIES: FamilyNo = 2;

fn name(family: FamilyNo) -> String {
    match family {
        0 => "default".to_owned(),
        n => format!("family {n}"),
    }
}

pub fn told(e: lithify::Error) -> String {
    format!("{e:?}")
}

impl Database {
    /// An empty one.
    ///
    /// # Errors
    /// If it does not open.
    pub fn new(variant: &Variant, operators: Operators) -> Result<Database, String> {
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
            marks: Marks::default(),
            variant: variant.clone(),
            operators,
            calls: Arc::default(),
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
        let operator = self.operators[0].make(&self.calls);
        let builder = Builder::new(self.variant.settings.clone()).env(self.env());
        let builder = builder.merge_operator(operator);
        let builder = match self.variant.prefixes.extractor() {
            Some(by) => builder.prefix_extractor(by),
            None => builder,
        };
        (1..=FAMILIES)
            .fold(builder, |b, family| b.column_family(&name(family), self.of_family(family)))
    }

    /// What a family is opened with: the first as the database is.
    fn of_family(&self, family: FamilyNo) -> ColumnFamilyOptions {
        let operator = self.operators[usize::from(family)].make(&self.calls);
        let options = ColumnFamilyOptions::new().merge_operator(operator);
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
    pub fn family(&self, family: FamilyNo) -> Result<Option<ColumnFamily>, String> {
        let name = name(family);
        match self.db().column_families().contains(&name) {
            true => self.db().column_family(&name).map(Some).map_err(told),
            false => Ok(None),
        }
    }

    /// All that are there, the default one first.
    pub fn families(&self) -> Result<Vec<ColumnFamily>, String> {
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

    /// Lets go of the handle, once it said what it met.
    fn take(&mut self) -> Result<Option<Db>, String> {
        let Some(db) = &self.db else { return Ok(None) };
        self.marks.hit(&format!("policy {}", db.settings().effective_policy().name()));
        if self.families()?.iter().any(|family| family.stats().prefix_filter_useful > 0) {
            self.marks.hit("a table left out by its filter of prefixes");
        }
        let calls = [
            (&self.calls.full, "operands combined with a value by a user's operator"),
            (&self.calls.partial, "operands combined in a job by a user's operator"),
        ];
        for (count, mark) in calls {
            if count.load(Ordering::Relaxed) > 0 {
                self.marks.hit(mark);
            }
        }
        Ok(self.db.take())
    }

    fn db(&self) -> &Db {
        self.db.as_ref().expect("open between operations")
    }

    pub fn options(&self) -> ReadOptions {
        ReadOptions { skip_cache_fill: self.variant.uncached, ..ReadOptions::default() }
    }

    /// What the client does not know of.
    fn meanwhile(&mut self) -> Result<(), String> {
        self.background()?;
        let unseen = self.snapshots.is_empty() && self.iterators.is_empty();
        if unseen && due(&mut self.random, self.variant.odds) {
            self.restart()?;
        }
        Ok(())
    }

    /// The part of it that needs no restart.
    pub fn background(&mut self) -> Result<(), String> {
        let steps = self.random.below(self.variant.pace + 1);
        for _ in 0..steps {
            if !self.pump.step() {
                break;
            }
        }
        if due(&mut self.random, self.variant.compact_odds) {
            let from = self.random.below(1000) as KeyNo;
            let to = from + self.random.below(200) as KeyNo;
            let families = self.families()?;
            let family = &families[self.random.below(families.len() as u64) as usize];
            family.compact_range(Some(&key(from)), Some(&key(to))).map_err(told)?;
        }
        Ok(())
    }

    fn restart(&mut self) -> Result<(), String> {
        self.marks.hit(&format!("restart by {:?}", self.variant.restart));
        match self.variant.restart {
            Restart::Never => Ok(()),
            Restart::Close => self.reopen(),
            Restart::Kill => {
                let left = image::take(&self.fs, &self.home);
                let elsewhere = image::put(&left, &self.home);
                // What the old one does from here on, is not seen.
                let old = std::mem::replace(&mut self.fs, elsewhere);
                drop(self.take()?);
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
        if let Some(db) = self.take()? {
            db.close().map_err(told)?;
        }
        self.open()
    }

    fn write(&mut self, changes: &[Change]) -> Result<Answer, String> {
        let mut seen = Vec::new();
        let mut settled = Vec::new();
        for change in changes {
            let found = match change.asks(0) {
                Some((family, k)) => Some(self.look_for(family, k)?),
                None => None,
            };
            settled.push(change.settled(found.as_ref().is_some_and(Option::is_some)));
            seen.extend(found);
        }
        settled.iter().for_each(|change| self.note(0, change));
        match &settled[..] {
            [change] if !matches!(change, Change::In(..)) => self.write_one(self.db(), change),
            several => {
                let mut batch = WriteBatch::new();
                for change in several {
                    self.add_to(&mut batch, change)?;
                }
                self.db().write_opt(&batch, &WriteOptions::default()).map_err(told)
            }
        }?;
        self.wrote()?;
        Ok(Answer::seen(seen))
    }

    /// A key of a family, if that is there.
    fn look_for(&self, family: FamilyNo, k: KeyNo) -> Result<Option<Vec<u8>>, String> {
        let Some(family) = self.family(family)? else { return Ok(None) };
        let found = family.get_opt(key(k), &self.options()).map_err(told)?;
        Ok(found.map(|value| value.to_vec()))
    }

    /// Makes one change of a family.
    pub fn write_one(&self, db: &Db, change: &Change) -> Result<(), String> {
        let options = &WriteOptions::default();
        match change {
            Change::Put(k, v) => db.put_opt(key(*k), value(*v), options),
            Change::Delete(k) => db.delete_opt(key(*k), options),
            Change::SingleDelete(k) => db.single_delete_opt(key(*k), options),
            Change::Merge(k, v) => db.merge_opt(key(*k), value(*v), options),
            Change::DeleteRange(from, to) => db.delete_range(key(*from), key(*to)),
            Change::Once(..) | Change::In(..) => unreachable!("it is settled, and of one family"),
        }
        .map_err(told)
    }

    /// Adds a change to a batch, unless its family is not there.
    fn add_to(&self, batch: &mut WriteBatch, change: &Change) -> Result<(), String> {
        match change {
            Change::Put(k, v) => batch.put(key(*k), value(*v)),
            Change::Delete(k) => batch.delete(key(*k)),
            Change::SingleDelete(k) => batch.single_delete(key(*k)),
            Change::Merge(k, v) => batch.merge(key(*k), value(*v)),
            Change::DeleteRange(from, to) => batch.delete_range(key(*from), key(*to)),
            Change::In(family, change) => match self.family(*family)? {
                Some(family) => add_to_family(batch, &family, change),
                None => Ok(()),
            },
            Change::Once(..) => unreachable!("it is settled"),
        }
        .map_err(told)
    }

    /// Marks what a settled change is.
    pub fn note(&mut self, family: FamilyNo, change: &Change) {
        match change {
            Change::In(family, change) => self.note(*family, change),
            Change::SingleDelete(_) => self.marks.hit("a single deletion"),
            Change::Merge(..) => {
                let operator = self.operators[usize::from(family)].name();
                self.marks.hit(&format!("an operand for {operator}"));
            }
            _ => {}
        }
    }

    /// After a write that the client made.
    pub fn wrote(&mut self) -> Result<(), String> {
        self.writes += 1;
        if self.variant.flush_every > 0 && self.writes.is_multiple_of(self.variant.flush_every) {
            self.flush_all()?;
        }
        Ok(())
    }

    fn do_it(&mut self, op: &Op) -> Result<Answer, String> {
        Ok(match op {
            Op::In(family, op) => match self.family(*family)? {
                Some(db) => self.do_in(*family, &db, op)?,
                None => Answer::Nothing,
            },
            Op::Write(changes) => self.write(changes)?,
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
                self.do_in(0, &family, op)?
            }
        })
    }

    /// An operation about one family.
    pub fn do_in(&mut self, family: FamilyNo, db: &Db, op: &Op) -> Result<Answer, String> {
        let options = self.options();
        Ok(match op {
            Op::Transaction(plan) => self.transact(family, db, plan)?,
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
                let of = key(*of);
                let options = options.with_prefix(&of[..of.len().min(*bytes as usize)]);
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

    /// Ends its life, and looks at every byte that is left; what it met.
    ///
    /// # Errors
    /// Whatever is wrong with it.
    pub fn end(mut self) -> Result<Marks, String> {
        self.snapshots.clear();
        self.iterators.clear();
        self.take()?.map_or(Ok(()), Db::close).map_err(told)?;
        let fs: Arc<dyn Fs> = Arc::new(self.fs.clone());
        let report = verify(fs, Path::new(&self.home), None, &mut |_| {}).map_err(told)?;
        if report.is_clean() {
            Ok(self.marks)
        } else {
            Err(format!("verify: {:?}", report.findings))
        }
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

fn due(random: &mut Random, odds: u64) -> bool {
    odds > 0 && random.one_in(odds)
}

fn add_to_family(
    batch: &mut WriteBatch,
    family: &ColumnFamily,
    change: &Change,
) -> lithify::Result<()> {
    match change {
        Change::Put(k, v) => batch.put_cf(family, key(*k), value(*v)),
        Change::Delete(k) => batch.delete_cf(family, key(*k)),
        Change::SingleDelete(k) => batch.single_delete_cf(family, key(*k)),
        Change::Merge(k, v) => batch.merge_cf(family, key(*k), value(*v)),
        Change::DeleteRange(from, to) => batch.delete_range_cf(family, key(*from), key(*to)),
        Change::Once(..) | Change::In(..) => unreachable!("it is settled, and of one family"),
    }
}

fn scan(db: &Db, options: &ReadOptions, backward: bool, most: u32) -> Result<Vec<Entry>, String> {
    entries(db.iter_opt(options).map_err(told)?, backward, most)
}

/// What an iterator shows from one end, at most so many.
pub fn entries(mut iter: DbIter, backward: bool, most: u32) -> Result<Vec<Entry>, String> {
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

pub fn walk(iter: &mut DbIter, moves: &[Move]) -> Result<Vec<Option<Entry>>, String> {
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
