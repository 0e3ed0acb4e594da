//! A database in a simulated world, its client, and the model it is held against.
//!
//! The client works through operations that the dice choose; whatever a read shows is compared
//! with the model at once. Everything happens on one thread: a call of the client that waits
//! steps the jobs of the database (`pump`).
//!
//! Chapters: `shape` is what a run is like, `writes`, `reads`, `prefixes`, `families`, `timed` has values that
//! expire, `crowd` several clients, `services` what is asked beside reads and writes, `faults` is what breaks, `script` has
//! operations by name. Here is the life of a database from its opening to its end.
//! Leaves to others: crashes (`explore`).

mod crowd;
mod engines;
mod families;
mod faults;
mod outside;
mod prefixes;
mod reads;
pub mod script;
mod services;
mod shape;
mod timed;
mod writes;

pub use shape::Shape;

use std::collections::BTreeMap;
use std::path::Path;

use lithify::merge::Append;
use lithify::{Builder, Db, Durability, Error, Snapshot};
use lithify_env::sync::Arc;
use lithify_env::{Env, Fs, Random, Rt};

use crate::choices::Dice;
use crate::disk::Disk;
use crate::marks::Marks;
use crate::model::{Change, DEFAULT, Journal, Map, Model, Seen};
use crate::pump::{Order, Pump};
use crate::simfs::SimFs;
use families::everything_in;
pub use reads::whole;
use services::Following;
use timed::{Opened, Scan};

/// Where the database is.
pub const HOME: &str = "db";

/// How often each operation is chosen. New ones come last: kept plans name operations by number.
const WEIGHTS: [u32; 25] =
    [40, 9, 10, 4, 7, 3, 3, 6, 5, 2, 3, 1, 1, 4, 4, 1, 1, 2, 1, 4, 6, 1, 2, 4, 4];

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
    /// What it reached that no log tells; without what the open database still counts.
    marks: Marks,
    first: Disk,
    shape: Shape,
    dice: Dice,
    db: Option<Opened>,
    views: Vec<View>,
    /// The way in which prefixes of keys are taken; 0 is none.
    prefixes: u32,
    /// The follower of the database, if there is one.
    following: Option<Following>,
    /// Something went wrong since the database was opened: errors are no surprise.
    shaken: bool,
    /// What went wrong is one failed sync, and a disk that is full since.
    only_full: bool,
    /// Storage was made to fail at a moment that the life knows nothing of.
    disturbed: bool,
    /// Faults may still begin.
    fragile: bool,
    /// Number of the next value.
    next: u64,
    checkpoints: u32,
}

/// A snapshot or an iterator, and what it must show.
struct View {
    family: String,
    map: Arc<Map>,
    what: Held,
}

enum Held {
    Snapshot(Snapshot),
    Iterator(Box<Scan>),
}

impl World {
    /// A world around `disk`, in which nothing runs yet. Jobs go on in a calm order until
    /// [`World::stir`].
    pub fn new(disk: Disk, shape: Shape, dice: Dice, seed: u64) -> World {
        let model = Model::of(Map::new(), BTreeMap::new(), &shape.lifetimes);
        let fs = SimFs::new(disk.clone());
        if let Some(seed) = shape.short {
            fs.shorten(seed);
        }
        World {
            fs,
            first: disk,
            pump: Arc::new(Pump::new(dice.clone(), seed, Order::Calm)),
            journal: Journal::new(model.sums()),
            marks: Marks::default(),
            model,
            prefixes: shape.prefixes,
            shape,
            dice,
            db: None,
            views: Vec::new(),
            following: None,
            shaken: false,
            only_full: false,
            disturbed: false,
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
        let operator = Arc::new(Append::default());
        let builder = Builder::new(self.shape.settings.clone()).merge_operator(operator);
        let builder = families::NAMES
            .iter()
            .fold(builder, |builder, name| builder.column_family(name, self.options_of(name)));
        let builder = match self.extractor_of(DEFAULT) {
            Some(by) => builder.prefix_extractor(by),
            None => builder,
        };
        self.with_engines(builder).env(Env { fs, rt })
    }

    /// Opens the database.
    ///
    /// # Errors
    /// If it does not open.
    pub fn open(&mut self) -> Result<(), Violation> {
        self.pump.begin_call();
        match self.open_home() {
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
    /// single reads; it becomes the model. What it adds up to.
    ///
    /// # Errors
    /// If they disagree, or one fails.
    pub fn adopt(&mut self) -> Result<Seen, Violation> {
        let seen = self.take_over()?;
        self.sample()?;
        self.journal = Journal::new(self.model.sums());
        self.tick();
        self.no_panics()?;
        Ok(seen)
    }

    /// What the database shows now becomes the model; what that adds up to.
    fn take_over(&mut self) -> Result<Seen, Violation> {
        let all = || everything_in(self.opened(), &self.shape.lifetimes);
        let (model, second) = self.at_one_second(all);
        self.model = model?;
        Ok(Seen { sum: self.model.sums().at(second), second })
    }

    fn opened(&self) -> &Opened {
        self.db.as_ref().expect("the database is open between operations")
    }

    fn db(&self) -> &Db {
        self.opened().db()
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
        self.pump.begin_call();
        self.background();
        self.operation()?;
        self.tick();
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
        if self.shape.families.is_some() && self.dice.one_in(8, "family") {
            return self.family();
        }
        if self.is_timed() && self.dice.one_in(6, "time") {
            self.doze();
            return Ok(());
        }
        match self.dice.weighted(&WEIGHTS, "operation") {
            0 => self.put(1),
            1 => {
                let change = self.somewhere(Change::Delete(self.any_key()));
                self.write(vec![change])
            }
            2 => {
                let count = 1 + self.dice.choose(12, "batch");
                let changes = (0..count).map(|_| self.any_change()).collect();
                self.write(changes)
            }
            3 => {
                let change = self.somewhere(self.any_range());
                self.write(vec![change])
            }
            4 => {
                let key = self.any_key();
                let family = self.any_family();
                self.get(&family, &key, &self.model.map_of(&family), None)
            }
            5 => self.scan(),
            6 => self.hold(),
            7 => self.look(),
            8 => self.flush(),
            9 => self.compact(),
            10 => self.sync(),
            11 => self.reopen(),
            12 => self.checkpoint(),
            13 => self.put(8 + self.dice.choose(24, "burst")),
            14 => self.crowd(),
            15 => self.paused(),
            16 => {
                // By a clock that is wrong values would expire, and come back.
                match self.is_timed() {
                    true => self.doze(),
                    false => self.jump(),
                }
                Ok(())
            }
            17 => self.ingest(),
            18 => self.drop_files(),
            19 => self.once(),
            20 => self.merge(),
            21 => self.still(),
            22 => self.change_settings(),
            23 if self.is_timed() => self.beneath(),
            23 => self.follow(),
            _ => self.scan_prefix(),
        }
    }

    /// Compactions begin anew only after a few writes.
    fn paused(&mut self) -> Result<(), Violation> {
        self.db().set_auto_compaction(false);
        let written = self.put(1 + self.dice.choose(8, "paused"));
        self.background();
        self.db().set_auto_compaction(true);
        written
    }

    /// The clock on the wall jumps, by ten years or to its beginning, or is right again.
    fn jump(&self) {
        let years = 10 * 366 * 86_400;
        let jumps = [0, years, -years, i64::MIN, -3600];
        self.pump.set_wall_wrong_by(*self.dice.pick(&jumps, "jump"));
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
        let change = match self.dice.weighted(&[6, 2, 1], "change") {
            0 => Change::Put(self.any_key(), self.any_value()),
            1 => Change::Delete(self.any_key()),
            _ => self.any_range(),
        };
        self.somewhere(change)
    }

    fn any_durability(&self) -> Durability {
        if self.shape.unlogged {
            return Durability::NoWal;
        }
        let levels = [Durability::Buffered, Durability::Os, Durability::Sync];
        levels[self.dice.weighted(&[3, 5, 2], "durability")]
    }

    // ---- lives

    /// Closes the database and opens it again. A fault that has not struck yet is still to come: it
    /// may strike here, and behind it.
    fn reopen(&mut self) -> Result<(), Violation> {
        if self.fs.is_troubled() {
            return self.recover();
        }
        self.views.clear();
        self.marks = self.marks();
        let db = self.db.take().expect("the database is open between operations");
        if let Err(e) = db.close() {
            self.excuse("a close", &e)?;
            return self.recover();
        }
        self.journal.synced(self.fs.position());
        self.turn_prefixes();
        self.pump.begin_call();
        match self.open_home() {
            Ok(db) => self.db = Some(db),
            Err(e) => {
                self.excuse("an open", &e)?;
                return self.recover();
            }
        }
        self.no_panics()?;
        self.whole_content("a reopened database")
    }

    /// Everything, held against the model.
    ///
    /// # Errors
    /// If they disagree.
    pub fn whole_content(&self, what: &str) -> Result<(), Violation> {
        self.all_families(self.opened(), what)
    }

    /// Makes a copy, looks into it, and leaves it where it is.
    fn checkpoint(&mut self) -> Result<(), Violation> {
        if self.checkpoints >= 2 {
            return Ok(());
        }
        self.checkpoints += 1;
        // A crash may have left one behind, whole or in part.
        let mut number = 1;
        let path = loop {
            let path = format!("copy-{number}");
            match self.fs.list(Path::new(&path)) {
                Ok(_) => number += 1,
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => break path,
                // The disk was made to fail while we looked, which tells nothing of the name.
                Err(_) => return Ok(()),
            }
        };
        if let Err(e) = self.db().checkpoint(&path) {
            return self.excuse("a checkpoint", &e);
        }
        self.journal.synced(self.fs.position());
        let copy = match self.open_copy(&path) {
            Ok(copy) => copy,
            Err(e) => return self.excuse("opening a checkpoint", &e),
        };
        self.all_families(&copy, "a checkpoint")
    }

    /// Ends the world without a good bye: what runs on finds no disk any more.
    pub fn kill(&mut self) {
        self.fs.kill();
        self.pump.set_order(Order::Calm);
        self.views.clear();
        (self.following, self.db) = (None, None);
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.kill();
            // Jobs that no caller waits for end, too: they hold the runtime that holds them.
            while self.pump.step() {}
            assert_eq!(Arc::strong_count(&self.pump), 1, "a database that is gone is still held");
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
