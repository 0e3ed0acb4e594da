//! Values that expire: how a database is open that has them, and the clock that moves.
//!
//! A value shows up to the last second of its time to live and never after, whatever compactions have
//! done; beneath, where values have their times at their ends, it is there as long as it shows, and after
//! that until a compaction drops it. The model has values as they are beneath, so that the time of each
//! write is held against the model, too.
//!
//! Keeps: the clock on the wall never goes back in a world whose values expire, over a crash neither, so
//! what has expired never comes back. An operand is merged into a value that shows only if both
//! expire together: else a compaction may drop the value from below the operand or not. Where a
//! shape has no lifetimes, no choice is made about them and the clock is what it was.
//! Leaves to others: followers, which know of no times.

use std::borrow::Cow;
use std::time::Duration;

use lithify::{
    ColumnFamily, ColumnFamilyOptions, Db, DbIter, Error, ReadOptions, TtlDb, TtlIter, Value,
    WriteBatch, WriteOptions,
};
use lithify_env::Rt;
use lithify_env::sync::Arc;

use super::reads::whole;
use super::{HOME, Violation, World, families};
use crate::model::{Change, DEFAULT, Lifetimes, Map, shows_until};

/// A database that is open.
#[derive(Clone)]
pub(super) enum Opened {
    /// Its values stay.
    Plain(Db),
    /// Those of some families expire.
    Timed(TtlDb, Arc<Lifetimes>),
}

/// A family as its reader sees it.
pub(super) enum Tree {
    Plain(ColumnFamily),
    Timed(TtlDb),
}

/// An iterator. Values that expire have their times at their ends.
pub(super) enum Scan {
    Plain(DbIter),
    Timed(TtlIter),
}

impl Opened {
    pub(super) fn db(&self) -> &Db {
        match self {
            Opened::Plain(db) => db,
            Opened::Timed(db, _) => db.db(),
        }
    }
    pub(super) fn close(self) -> Result<(), Error> {
        match self {
            Opened::Plain(db) => db.close(),
            Opened::Timed(db, _) => db.close(),
        }
    }
    /// Writes values as they are without their times.
    pub(super) fn write(&self, batch: &WriteBatch, options: &WriteOptions) -> Result<(), Error> {
        match self {
            Opened::Plain(db) => db.write_opt(batch, options),
            Opened::Timed(db, _) => db.write_opt(batch, options),
        }
    }
    pub(super) fn create(&self, name: &str, options: ColumnFamilyOptions) -> Result<(), Error> {
        match self {
            Opened::Timed(db, all) if all.contains_key(name) => {
                db.create_column_family(name, options).map(drop)
            }
            _ => self.db().create_column_family(name, options).map(drop),
        }
    }
    pub(super) fn tree(&self, family: &str) -> Result<Tree, Error> {
        match self {
            Opened::Timed(db, all) if all.contains_key(family) => {
                db.column_family(family).map(Tree::Timed)
            }
            _ => self.db().column_family(family).map(Tree::Plain),
        }
    }
}

impl Tree {
    /// The value of `key`, without its time.
    pub(super) fn get(&self, key: &[u8], options: &ReadOptions) -> Result<Option<Value>, Error> {
        match self {
            Tree::Plain(tree) => tree.get_opt(key, options),
            Tree::Timed(tree) => tree.get_opt(key, options),
        }
    }
    pub(super) fn scan(&self, options: &ReadOptions) -> Result<Scan, Error> {
        Ok(match self {
            Tree::Plain(tree) => Scan::Plain(tree.iter_opt(options)?),
            Tree::Timed(tree) => Scan::Timed(tree.iter_opt(options)?),
        })
    }
}

/// A method that both iterators have.
macro_rules! of_both {
    ($($name:ident(&mut self $(, $key:ident)?);)*) => {
        $(pub(super) fn $name(&mut self $(, $key: &[u8])?) {
            match self {
                Scan::Plain(iter) => iter.$name($($key)?),
                Scan::Timed(iter) => iter.$name($($key)?),
            }
        })*
    };
}

impl Scan {
    of_both! {
        seek_to_first(&mut self);
        seek_to_last(&mut self);
        seek(&mut self, key);
        seek_for_prev(&mut self, key);
        next(&mut self);
        prev(&mut self);
    }
    pub(super) fn valid(&self) -> bool {
        match self {
            Scan::Plain(iter) => iter.valid(),
            Scan::Timed(iter) => iter.valid(),
        }
    }
    pub(super) fn key(&self) -> &[u8] {
        match self {
            Scan::Plain(iter) => iter.key(),
            Scan::Timed(iter) => iter.key(),
        }
    }
    pub(super) fn value(&self) -> Cow<'_, [u8]> {
        match self {
            Scan::Plain(iter) => Cow::Borrowed(iter.value()),
            Scan::Timed(iter) => {
                let time = iter.written_at() as u32;
                Cow::Owned([iter.value(), &time.to_le_bytes()].concat())
            }
        }
    }
    pub(super) fn status(&self) -> Result<(), Error> {
        match self {
            Scan::Plain(iter) => iter.status(),
            Scan::Timed(iter) => iter.status(),
        }
    }
}

impl World {
    /// Opens what is in [`HOME`].
    pub(super) fn open_home(&self) -> Result<Opened, Error> {
        match self.shape.lifetimes.get(DEFAULT) {
            None => self.builder().open(HOME).map(Opened::Plain),
            Some(&seconds) => {
                let db = self.builder().open_ttl(HOME, Duration::from_secs(seconds))?;
                Ok(Opened::Timed(db, self.shape.lifetimes.clone()))
            }
        }
    }

    /// Opens a copy, for reading only.
    pub(super) fn open_copy(&self, path: &str) -> Result<Opened, Error> {
        match self.shape.lifetimes.get(DEFAULT) {
            None => self.builder().open_read_only(path).map(Opened::Plain),
            Some(&seconds) => {
                let lifetime = Duration::from_secs(seconds);
                let db = self.builder().open_ttl_read_only(path, lifetime)?;
                Ok(Opened::Timed(db, self.shape.lifetimes.clone()))
            }
        }
    }

    /// Whether values expire.
    pub(super) fn is_timed(&self) -> bool {
        !self.shape.lifetimes.is_empty()
    }

    /// The clock on the wall.
    pub(super) fn second(&self) -> u64 {
        self.pump.wall_seconds()
    }

    /// What `read` reads, and the second at which it did.
    pub(super) fn at_one_second<T>(&self, mut read: impl FnMut() -> T) -> (T, u64) {
        loop {
            let second = self.second();
            let seen = read();
            if self.second() == second {
                return (seen, second);
            }
        }
    }

    /// An iterator over a family, and the second at which it began.
    pub(super) fn scan_of(
        &self,
        family: &str,
        options: &ReadOptions,
    ) -> Result<(Scan, u64), Error> {
        let tree = self.opened().tree(family)?;
        let (scan, second) = self.at_one_second(|| tree.scan(options));
        scan.map(|scan| (scan, second))
    }

    /// What of `map` shows at this second.
    pub(super) fn showing<'a>(&self, family: &str, map: &'a Map, second: u64) -> Cow<'a, Map> {
        if !self.shape.lifetimes.contains_key(family) {
            return Cow::Borrowed(map);
        }
        let shown = |(key, value): (&Vec<u8>, _)| {
            self.shows(family, Some(value), second).map(|value| (key.clone(), value.clone()))
        };
        Cow::Owned(map.iter().filter_map(shown).collect())
    }

    /// A value of a family, if it shows at this second.
    pub(super) fn shows<'a>(
        &self,
        family: &str,
        value: Option<&'a Arc<[u8]>>,
        second: u64,
    ) -> Option<&'a Arc<[u8]>> {
        let lifetime = self.shape.lifetimes.get(family);
        value.filter(|v| lifetime.is_none_or(|lifetime| second <= shows_until(v, *lifetime)))
    }

    /// What a reader of this family's values is told, who sees no times.
    pub(super) fn without_time<'a>(&self, family: &str, value: &'a [u8]) -> &'a [u8] {
        match self.shape.lifetimes.contains_key(family) {
            true => &value[..value.len() - 4],
            false => value,
        }
    }

    /// `change` as it is beneath when it is made at this second.
    pub(super) fn stamped(&self, change: &Change, second: u64) -> Change {
        match change {
            Change::In(name, change) => {
                families::within(name, self.stamped_in(name, change, second))
            }
            change => self.stamped_in(DEFAULT, change, second),
        }
    }

    fn stamped_in(&self, family: &str, change: &Change, second: u64) -> Change {
        if !self.shape.lifetimes.contains_key(family) {
            return change.clone();
        }
        let time = (second as u32).to_le_bytes();
        let stamp = |value: &[u8]| [value, &time].concat().into();
        match change {
            Change::Put(key, value) => Change::Put(key.clone(), stamp(value)),
            Change::Merge(key, operand) => Change::Merge(key.clone(), stamp(operand)),
            change => change.clone(),
        }
    }

    /// Whether what a merge into `key` leads to follows from the clock alone.
    pub(super) fn may_merge(&self, family: &str, key: &[u8]) -> bool {
        let Some(&lifetime) = self.shape.lifetimes.get(family) else { return true };
        let (map, second) = (self.model.map_of(family), self.second());
        let Some(old) = map.get(key) else { return true };
        let until = shows_until(old, lifetime);
        lifetime == 0 || until < second || until == second + lifetime
    }

    /// Notes the time, for the world after a crash.
    pub(super) fn tick(&mut self) {
        if self.is_timed() {
            self.journal.tick(self.fs.position(), self.second());
        }
    }

    /// Goes on at `second` or later, if values expire; how much later follows from `n`.
    pub fn wake_at(&self, second: Option<u64>, n: usize) {
        if let (true, Some(second)) = (self.is_timed(), second) {
            self.pump.set_wall(second + [0, 1, 0, 3, 60][n % 5]);
        }
    }

    /// Time passes, and nothing else happens.
    pub(super) fn doze(&mut self) {
        let lengths = [300, 1000, 2000, 4000, 20_000];
        self.pump.pass(Duration::from_millis(*self.dice.pick(&lengths, "doze")));
        self.tick();
    }

    /// Looks at what is beneath, the times at the ends of values.
    pub(super) fn beneath(&mut self) -> Result<(), Violation> {
        if self.shaken {
            return Ok(());
        }
        let (lifetimes, model) = (self.shape.lifetimes.clone(), self.model.clone());
        for (family, &lifetime) in lifetimes.iter().filter(|(family, _)| model.has(family)) {
            let tree = self.tree(family)?;
            let (found, second) = self.at_one_second(|| whole(&tree));
            let (found, map) = (found?, model.map_of(family));
            let wrong = |key: &[u8], what: &str| {
                Violation::new(format!("beneath, {} {what}", key.escape_ascii()))
            };
            let is_over = |value: &[u8]| shows_until(value, lifetime) < second;
            for (key, value) in &found {
                match map.get(key).filter(|own| !is_over(own)) {
                    Some(own) if own != value => return wrong(key, "has another value"),
                    Some(_) => {}
                    // Perhaps an operand whose value was dropped, or what the model forgot when the
                    // database was opened again.
                    None if is_over(value) => self.marks.hit("expired, and there"),
                    None => return wrong(key, "is there, and should not be"),
                }
            }
            for (key, value) in map.iter().filter(|(key, _)| !found.contains_key(*key)) {
                match is_over(value) {
                    true => self.marks.hit("expired, and dropped"),
                    false => return wrong(key, "is not there, and has not expired"),
                }
            }
        }
        Ok(())
    }
}
