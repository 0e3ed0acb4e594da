//! A database in a simulated world, its client, and the model it is held against.
//!
//! The client works through operations that the dice choose; whatever a read shows is compared
//! with the model at once. Everything happens on one thread: a call of the client that waits
//! steps the jobs of the database (`pump`).
//!
//! Keeps: a write is in the journal from before its first byte could reach the disk, and counted
//! as durable from after its acknowledgement on, never earlier.
//! Leaves to others: crashes (`explore`).

use std::path::Path;

use lithify::{
    Builder, Compression, Db, DbIter, Durability, Error, ErrorKind, Policy, ReadOptions, Settings,
    Snapshot, WriteBatch, WriteOptions,
};
use lithify_env::sync::Arc;
use lithify_env::{Env, Fs, Random, Rt};
use lithify_plan::{BucketOptions, CommitOrder, DfWhen, PlanOptions};

use crate::choices::Dice;
use crate::disk::{Disk, Forgets};
use crate::model::{Change, Journal, Map, Model, entry_sum};
use crate::pump::{Order, Pump};
use crate::simfs::{Fault, SimFs};

/// Where the database is.
pub const HOME: &str = "db";

/// Something that must not happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation(pub String);

impl Violation {
    fn new<T>(what: impl Into<String>) -> Result<T, Violation> {
        Err(Violation(what.into()))
    }
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// What one run is like.
#[derive(Clone, Debug)]
pub struct Shape {
    /// How the database is set.
    pub settings: Settings,
    /// Keys there are.
    pub keys: u32,
    /// The longest value, bytes.
    pub value_max: u32,
    /// Writes skip the log.
    pub unlogged: bool,
    /// Weights of background work between operations: none, little, some, all there is.
    pub pump: [u32; 4],
    /// Storage fails now and then.
    pub faults: bool,
    /// Seed of transfers that are cut short, if they are.
    pub short: Option<u64>,
}

impl Shape {
    /// A shape that the dice choose; the policy is their first choice.
    pub fn choose(dice: &Dice) -> Shape {
        let mut s = Settings::default();
        s.policy = *dice.pick(&Policy::ALL, "policy");
        s.memtable_bytes = 64 << 10;
        s.memtable_count = 2 + dice.choose(3, "memtables");
        s.memory_budget = 4 << 20;
        s.level_base_bytes = 64 << 10;
        s.level_multiplier = 2 + dice.choose(3, "multiplier");
        s.file_bytes = *dice.pick(&[16 << 10, 24 << 10, 64 << 10], "file");
        s.block_bytes = *dice.pick(&[512, 1024, 4096], "block");
        s.l0_trigger = 1 + dice.choose(3, "l0 trigger");
        s.l0_slowdown = s.l0_trigger + 1 + dice.choose(4, "l0 slowdown");
        s.l0_stop = s.l0_slowdown + 1 + dice.choose(4, "l0 stop");
        s.compaction_threads = 1 + dice.choose(4, "compactions");
        s.flush_threads = 1 + dice.choose(2, "flushes");
        s.dynamic_levels = dice.choose(2, "dynamic") == 0;
        s.format_version = 6 - dice.choose(2, "format");
        let codecs = [Compression::None, Compression::Lz4, Compression::Snappy];
        s.compression_upper = *dice.pick(&codecs, "upper");
        s.compression_lower = *dice.pick(&codecs, "lower");
        s.bloom_bits = *dice.pick(&[10, 0], "bloom");
        s.event_log = true;
        if dice.choose(2, "eager") == 1 {
            s.plan = Some(Box::new(eager(dice)));
        }
        Shape {
            settings: s,
            keys: *dice.pick(&[40, 8, 150], "keys"),
            value_max: *dice.pick(&[2000, 40, 6000], "value"),
            unlogged: dice.one_in(12, "unlogged"),
            pump: *dice.pick(&[[6, 3, 2, 1], [12, 6, 1, 0], [2, 8, 1, 0]], "pump"),
            faults: dice.one_in(4, "faults"),
            short: dice.one_in(6, "short").then(|| u64::from(dice.choose(1 << 16, "short"))),
        }
    }
}

/// Options of the planner under which all that a policy can do is due soon.
fn eager(dice: &Dice) -> PlanOptions {
    let buckets = BucketOptions {
        initial: 3 + dice.choose(6, "buckets"),
        window: 3,
        split_percent: 150,
        merge_percent: 60,
        min_file_bytes: 1 << 10,
        only_when_empty: dice.one_in(6, "empty"),
        by_bytes: dice.choose(2, "by bytes") == 0,
        ..BucketOptions::default()
    };
    let issue = dice.one_in(5, "commit order");
    PlanOptions {
        df_when: DfWhen::Always,
        df_max_depth: 2 + dice.choose(5, "depth"),
        df_extra_percent: u32::MAX,
        tiered_runs: 2 + dice.choose(2, "runs"),
        commit_order: if issue { CommitOrder::Issue } else { CommitOrder::Dependency },
        buckets,
        ..PlanOptions::default()
    }
}

/// A database at work in its world.
pub struct World {
    /// Its file system.
    pub fs: SimFs,
    /// Its runtime.
    pub pump: Arc<Pump>,
    /// What it should hold.
    pub model: Model,
    /// What a crash may leave of it.
    pub journal: Journal,
    first: Disk,
    shape: Shape,
    dice: Dice,
    db: Option<Db>,
    views: Vec<View>,
    /// Something went wrong since the database was opened: errors are no surprise.
    shaken: bool,
    /// Faults may still begin.
    fragile: bool,
    /// Number of the next value.
    next: u64,
    checkpoints: u32,
}

/// A snapshot or an iterator, and what it must show.
struct View {
    map: Arc<Map>,
    what: Held,
}

enum Held {
    Snapshot(Snapshot),
    Iterator(Box<DbIter>),
}

impl World {
    /// A world around `disk`, in which nothing runs yet. Jobs go on in a calm order until
    /// [`World::stir`].
    pub fn new(disk: Disk, shape: Shape, dice: Dice, seed: u64) -> World {
        let model = Model::default();
        let fs = SimFs::new(disk.clone());
        if let Some(seed) = shape.short {
            fs.shorten(seed);
        }
        World {
            fs,
            first: disk,
            pump: Arc::new(Pump::new(dice.clone(), seed, Order::Calm)),
            journal: Journal::new(model.sum()),
            model,
            shape,
            dice,
            db: None,
            views: Vec::new(),
            shaken: false,
            fragile: false,
            next: seed << 20,
            checkpoints: 0,
        }
    }

    /// Storage may begin to fail from now on, if the shape says so.
    pub fn expose(&mut self) {
        self.fragile = self.shape.faults;
    }

    /// The dice decide which job goes on, from now on.
    pub fn stir(&self) {
        self.pump.set_order(Order::Chosen);
    }

    fn builder(&self) -> Builder {
        let fs: Arc<dyn Fs> = Arc::new(self.fs.clone());
        let rt: Arc<dyn Rt> = self.pump.clone();
        Builder::new(self.shape.settings.clone()).env(Env { fs, rt })
    }

    /// Opens the database.
    ///
    /// # Errors
    /// If it does not open.
    pub fn open(&mut self) -> Result<(), Violation> {
        match self.builder().open(HOME) {
            Ok(db) => self.db = Some(db),
            Err(e) => return Violation::new(format!("the database does not open: {e:?}")),
        }
        self.no_panics()
    }

    /// What this run is like.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The disk as it was when the world began.
    pub fn first_disk(&self) -> Disk {
        self.first.clone()
    }

    /// What the database holds now, by a scan that is held against one from the back and against
    /// single reads; it becomes the model.
    ///
    /// # Errors
    /// If they disagree, or one fails.
    pub fn adopt(&mut self) -> Result<(), Violation> {
        let map = whole(self.db())?;
        self.sample(&map)?;
        self.model = Model::new(map);
        self.journal = Journal::new(self.model.sum());
        self.no_panics()
    }

    /// Single reads of a few keys, found or not.
    fn sample(&self, map: &Map) -> Result<(), Violation> {
        let mut random = Random::from_seed(map.len() as u64);
        for _ in 0..6 {
            let key = key(random.below(u64::from(self.shape.keys)) as u32);
            self.get(&key, map, None)?;
        }
        Ok(())
    }

    fn get(&self, key: &[u8], map: &Map, at: Option<&Snapshot>) -> Result<(), Violation> {
        let options = at.map_or_else(ReadOptions::default, ReadOptions::at);
        let found = match self.db().get_opt(key, &options) {
            Ok(found) => found,
            Err(e) => return self.excuse("a read", &e),
        };
        let expected = map.get(key);
        if found.as_deref() != expected.map(|v| &**v) {
            return Violation::new(format!(
                "{} reads {}, and should read {}",
                key.escape_ascii(),
                brief(found.as_deref()),
                brief(expected.map(|v| &**v))
            ));
        }
        Ok(())
    }

    fn db(&self) -> &Db {
        self.db.as_ref().expect("the database is open between operations")
    }

    fn no_panics(&self) -> Result<(), Violation> {
        match self.pump.panics().first() {
            None => Ok(()),
            Some(message) => Violation::new(format!("a job panicked: {message}")),
        }
    }

    /// Does one operation, after a while of background work.
    ///
    /// # Errors
    /// What must not happen.
    pub fn step(&mut self) -> Result<(), Violation> {
        self.background();
        self.operation()?;
        self.no_panics()
    }

    /// Lets the jobs go on for a while.
    fn background(&self) {
        let steps = match self.dice.weighted(&self.shape.pump, "pump") {
            0 => 0,
            1 => 1 + self.dice.choose(6, "steps"),
            2 => 20 + self.dice.choose(100, "steps"),
            _ => 1000,
        };
        for _ in 0..steps {
            if !self.pump.step() {
                break;
            }
        }
    }

    fn operation(&mut self) -> Result<(), Violation> {
        if self.fragile && self.dice.one_in(10, "fault") {
            self.break_something();
        }
        match self.dice.weighted(&[40, 9, 10, 4, 7, 3, 3, 6, 5, 2, 3, 1, 1, 4], "operation") {
            0 => self.put(1),
            1 => {
                let change = Change::Delete(self.any_key());
                self.write(vec![change])
            }
            2 => {
                let count = 1 + self.dice.choose(12, "batch");
                let changes = (0..count).map(|_| self.any_change()).collect();
                self.write(changes)
            }
            3 => {
                let change = self.any_range();
                self.write(vec![change])
            }
            4 => {
                let key = self.any_key();
                self.get(&key, self.model.map(), None)
            }
            5 => self.scan(),
            6 => self.hold(),
            7 => self.look(),
            8 => self.flush(),
            9 => self.compact(),
            10 => self.sync(),
            11 => self.reopen(),
            12 => self.checkpoint(),
            _ => self.put(8 + self.dice.choose(24, "burst")),
        }
    }

    // ---- faults

    /// Storage fails from now on, or soon, once or for good.
    fn break_something(&mut self) {
        let sticky = self.dice.choose(2, "sticky") == 1;
        let fault = match self.dice.choose(3, "what breaks") {
            0 => {
                let ways = [Forgets::Keeps, Forgets::Reverts];
                let forgets = *self.dice.pick(&ways, "forgets");
                Fault::Sync { nth: u64::from(self.dice.choose(6, "sync")), forgets, sticky }
            }
            1 => Fault::Call { nth: u64::from(self.dice.choose(40, "call")), sticky },
            _ => {
                let more = u64::from(self.dice.choose(60, "room")) << 10;
                Fault::Full(self.fs.used() + more)
            }
        };
        self.fs.set_fault(fault);
        self.shaken = true;
    }

    /// What an error means: a violation, unless storage failed and the error is one that says so
    /// honestly.
    fn excuse(&self, what: &str, error: &Error) -> Result<(), Violation> {
        let honest = matches!(
            error.kind(),
            ErrorKind::Io
                | ErrorKind::NoSpace
                | ErrorKind::NotCommitted
                | ErrorKind::OutcomeUnknown
                | ErrorKind::ReadOnly
                | ErrorKind::Stalled
        );
        if self.shaken && honest { Ok(()) } else { Err(failed(what, error)) }
    }

    /// Storage works again, and the database is opened anew. What it holds is a state it may
    /// hold: everything durable, whatever was refused not.
    fn recover(&mut self) -> Result<(), Violation> {
        self.views.clear();
        if let Some(db) = self.db.take()
            && let Err(e) = db.close()
        {
            self.excuse("a close", &e)?;
        }
        let begun = self.fs.position();
        if let Err(e) = self.builder().open(HOME).map(|db| self.db = Some(db)) {
            self.excuse("an open", &e)?;
            self.fs.heal();
            self.open()?;
        }
        self.fs.heal();
        self.shaken = false;
        let map = whole(self.db())?;
        self.model = Model::new(map);
        let sum = self.model.sum();
        if self.journal.find(begun, false, sum).is_none() {
            let (least, most) = self.journal.bounds(begun, false);
            return Violation::new(format!(
                "opened again after storage failed, it holds state {:?}, where {least} to {most} \
                 may be the last",
                self.journal.find_anywhere(sum)
            ));
        }
        self.journal.begun(sum, begun);
        self.journal.synced(self.fs.position());
        self.no_panics()
    }

    // ---- choices

    fn any_key(&self) -> Vec<u8> {
        key(self.dice.choose(self.shape.keys, "key"))
    }

    fn any_value(&mut self) -> Arc<[u8]> {
        let most = self.shape.value_max;
        let len = match self.dice.weighted(&[6, 1, 1], "length") {
            0 => self.dice.choose(most, "bytes"),
            1 => 0,
            _ => most,
        };
        self.next += 1;
        value(self.next, len as usize)
    }

    fn any_range(&self) -> Change {
        let from = self.dice.choose(self.shape.keys, "from");
        let most = (self.shape.keys - from).min(1 + self.shape.keys / 4);
        let to = from + self.dice.choose(most + 1, "to");
        Change::DeleteRange(key(from), key(to))
    }

    fn any_change(&mut self) -> Change {
        match self.dice.weighted(&[6, 2, 1], "change") {
            0 => Change::Put(self.any_key(), self.any_value()),
            1 => Change::Delete(self.any_key()),
            _ => self.any_range(),
        }
    }

    fn any_durability(&self) -> Durability {
        if self.shape.unlogged {
            return Durability::NoWal;
        }
        let levels = [Durability::Buffered, Durability::Os, Durability::Sync];
        levels[self.dice.weighted(&[3, 5, 2], "durability")]
    }

    // ---- writes

    fn put(&mut self, count: u32) -> Result<(), Violation> {
        for _ in 0..count {
            let change = Change::Put(self.any_key(), self.any_value());
            self.write(vec![change])?;
        }
        Ok(())
    }

    fn write(&mut self, changes: Vec<Change>) -> Result<(), Violation> {
        let durability = self.any_durability();
        let mut batch = WriteBatch::new();
        for change in &changes {
            let added = match change {
                Change::Put(key, value) => batch.put(key, value),
                Change::Delete(key) => batch.delete(key),
                Change::DeleteRange(from, to) => batch.delete_range(from, to),
            };
            added.map_err(|e| failed("a batch", &e))?;
        }
        let before = self.model.clone();
        changes.iter().for_each(|change| self.model.apply(change));
        self.journal.begun(self.model.sum(), self.fs.position());
        if let Err(e) = self.db().write_opt(&batch, &WriteOptions::at(durability)) {
            self.excuse("a write", &e)?;
            self.model = before;
            if e.kind() != ErrorKind::OutcomeUnknown {
                self.journal.refused(self.fs.position());
                return Ok(());
            }
            // Its fate is decided by the next open.
            return self.recover();
        }
        match durability {
            Durability::Sync => self.journal.synced(self.fs.position()),
            Durability::Os => self.journal.handed_over(self.fs.position()),
            Durability::Buffered | Durability::NoWal => {}
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Violation> {
        match self.db().flush() {
            Ok(()) => self.journal.synced(self.fs.position()),
            Err(e) => self.excuse("a flush", &e)?,
        }
        Ok(())
    }

    fn compact(&mut self) -> Result<(), Violation> {
        let (mut from, mut to) = (self.any_key(), self.any_key());
        if from > to {
            std::mem::swap(&mut from, &mut to);
        }
        let from = (self.dice.choose(2, "from") == 1).then_some(from.as_slice());
        let to = (self.dice.choose(2, "to") == 1).then_some(to.as_slice());
        match self.db().compact_range(from, to) {
            Ok(()) => self.journal.synced(self.fs.position()),
            Err(e) => self.excuse("a compaction", &e)?,
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<(), Violation> {
        match self.db().sync() {
            Ok(()) if !self.shape.unlogged => self.journal.synced(self.fs.position()),
            Ok(()) => {}
            Err(e) => self.excuse("a sync", &e)?,
        }
        Ok(())
    }

    // ---- reads

    fn scan(&mut self) -> Result<(), Violation> {
        let change = self.any_range();
        let Change::DeleteRange(from, to) = change else { unreachable!("a range") };
        let options = ReadOptions::default().with_bounds(Some(&from), Some(&to));
        let expected: Map =
            self.model.map().range(from..to).map(|(k, v)| (k.clone(), v.clone())).collect();
        self.view(&options, &expected, "a scan")
    }

    /// Scans what `options` show.
    fn view(&self, options: &ReadOptions, map: &Map, what: &str) -> Result<(), Violation> {
        match self.db().iter_opt(options) {
            Ok(mut iter) => self.excused(compare(&mut iter, map, what)),
            Err(e) => self.excuse(what, &e),
        }
    }

    /// A scan that ended with an error.
    fn excused(&self, scan: Result<(), Wrong>) -> Result<(), Violation> {
        match scan {
            Ok(()) => Ok(()),
            Err(Wrong::Shows(what)) => Violation::new(what),
            Err(Wrong::Fails(what, e)) => self.excuse(&what, &e),
        }
    }

    /// Takes a snapshot or an iterator, or lets one go.
    fn hold(&mut self) -> Result<(), Violation> {
        if self.views.len() >= 4 || (!self.views.is_empty() && self.dice.choose(3, "hold") == 2) {
            let at = self.dice.choose(self.views.len() as u32, "let go") as usize;
            drop(self.views.remove(at));
            return Ok(());
        }
        let what = match self.dice.choose(3, "what") {
            2 => match self.db().iter() {
                Ok(iter) => Held::Iterator(Box::new(iter)),
                Err(e) => return self.excuse("an iterator", &e),
            },
            _ => Held::Snapshot(self.db().snapshot()),
        };
        self.views.push(View { map: self.model.map().clone(), what });
        Ok(())
    }

    /// Looks through what is held: it must show what it showed.
    fn look(&mut self) -> Result<(), Violation> {
        if self.views.is_empty() {
            return self.hold();
        }
        let at = self.dice.choose(self.views.len() as u32, "view") as usize;
        let mut view = self.views.swap_remove(at);
        let seen = match &mut view.what {
            Held::Iterator(iter) => self.excused(compare(iter, &view.map, "a held iterator")),
            Held::Snapshot(snapshot) if self.dice.choose(2, "how") == 0 => {
                self.get(&self.any_key(), &view.map, Some(snapshot))
            }
            Held::Snapshot(snapshot) => {
                self.view(&ReadOptions::at(snapshot), &view.map, "a scan at a snapshot")
            }
        };
        self.views.push(view);
        seen
    }

    // ---- lives

    fn reopen(&mut self) -> Result<(), Violation> {
        if self.shaken {
            return self.recover();
        }
        self.views.clear();
        let db = self.db.take().expect("the database is open between operations");
        db.close().map_err(|e| failed("a close", &e))?;
        self.journal.synced(self.fs.position());
        self.open()?;
        self.whole_content("a reopened database")
    }

    /// Everything, held against the model.
    ///
    /// # Errors
    /// If they disagree.
    pub fn whole_content(&self, what: &str) -> Result<(), Violation> {
        self.view(&ReadOptions::default(), self.model.map(), what)
    }

    /// Makes a copy, looks into it, and leaves it where it is.
    fn checkpoint(&mut self) -> Result<(), Violation> {
        if self.checkpoints >= 2 {
            return Ok(());
        }
        self.checkpoints += 1;
        // A crash may have left one behind, whole or in part.
        let is_free = |path: &String| self.fs.list(Path::new(path)).is_err();
        let path = (1..).map(|n| format!("copy-{n}")).find(is_free).expect("a name is free");
        if let Err(e) = self.db().checkpoint(&path) {
            return self.excuse("a checkpoint", &e);
        }
        self.journal.synced(self.fs.position());
        let copy = match self.builder().open_read_only(&path) {
            Ok(copy) => copy,
            Err(e) => return self.excuse("opening a checkpoint", &e),
        };
        match copy.iter() {
            Ok(mut iter) => self.excused(compare(&mut iter, self.model.map(), "a checkpoint")),
            Err(e) => self.excuse("an iterator", &e),
        }
    }

    /// Ends the world without a good bye: what runs on finds no disk any more.
    pub fn kill(&mut self) {
        self.fs.kill();
        self.pump.set_order(Order::Calm);
        self.views.clear();
        self.db = None;
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.kill();
        }
    }
}

fn key(n: u32) -> Vec<u8> {
    format!("{n:03}/key").into_bytes()
}

/// A value that no other write wrote, half of it compressible.
fn value(number: u64, len: usize) -> Arc<[u8]> {
    let mut bytes = vec![0; len];
    let half = len / 2;
    Random::from_seed(number).fill(&mut bytes[..half]);
    let name = number.to_le_bytes();
    let front = len.min(name.len());
    bytes[..front].copy_from_slice(&name[..front]);
    bytes.into()
}

fn failed(what: &str, error: &Error) -> Violation {
    Violation(format!("{what} fails: {error:?}"))
}

fn brief(value: Option<&[u8]>) -> String {
    match value {
        None => "nothing".to_owned(),
        Some(v) => format!("{} bytes (sum {:016x})", v.len(), entry_sum(b"", v)),
    }
}

/// Why a scan is not what it should be.
enum Wrong {
    /// It shows something else.
    Shows(String),
    /// It ended with an error.
    Fails(String, Error),
}

/// Everything in `db`, read from the front and from the back.
fn whole(db: &Db) -> Result<Map, Violation> {
    let strict = |wrong| match wrong {
        Wrong::Shows(what) => Violation(what),
        Wrong::Fails(what, e) => failed(&what, &e),
    };
    let mut iter = db.iter().map_err(|e| failed("an iterator", &e))?;
    let mut map = Map::new();
    iter.seek_to_first();
    while iter.valid() {
        if map.last_key_value().is_some_and(|(last, _)| last.as_slice() >= iter.key()) {
            return Violation::new(format!("{} is out of order", iter.key().escape_ascii()));
        }
        map.insert(iter.key().to_vec(), iter.value().into());
        iter.next();
    }
    iter.status().map_err(|e| failed("a scan", &e))?;
    backward(&mut iter, &map, "a scan").map_err(strict)?;
    Ok(map)
}

/// Holds `iter` against `map`, from the front and from the back.
fn compare(iter: &mut DbIter, map: &Map, what: &str) -> Result<(), Wrong> {
    iter.seek_to_first();
    for expected in map.iter().map(Some).chain([None]) {
        meet(iter, expected, what)?;
        iter.next();
    }
    backward(iter, map, what)
}

fn backward(iter: &mut DbIter, map: &Map, what: &str) -> Result<(), Wrong> {
    iter.seek_to_last();
    for expected in map.iter().rev().map(Some).chain([None]) {
        meet(iter, expected, what)?;
        iter.prev();
    }
    Ok(())
}

/// Holds where `iter` is against where it should be.
fn meet(iter: &DbIter, expected: Option<(&Vec<u8>, &Arc<[u8]>)>, what: &str) -> Result<(), Wrong> {
    let found = iter.valid().then(|| (iter.key(), iter.value()));
    let expected = expected.map(|(k, v)| (k.as_slice(), &**v));
    // An end may be an error, and says so.
    if found.is_none()
        && let Err(e) = iter.status()
    {
        return Err(Wrong::Fails(what.to_owned(), e));
    }
    if found == expected {
        return Ok(());
    }
    let (found, expected) = (entry(found), entry(expected));
    Err(Wrong::Shows(format!("{what} shows {found}, and should show {expected}")))
}

fn entry(found: Option<(&[u8], &[u8])>) -> String {
    found.map_or_else(
        || "the end".to_owned(),
        |(key, value)| format!("{} with {}", key.escape_ascii(), brief(Some(value))),
    )
}

/// Names of the files in the home directory.
pub fn files(fs: &SimFs) -> Vec<String> {
    let listed = fs.list(Path::new(HOME)).unwrap_or_default();
    listed.into_iter().map(|entry| entry.name).collect()
}
