//! What a written-down client does, for workloads that are the same each time: the operations that
//! the dice choose elsewhere, by name.
//!
//! Keeps: as everywhere, an error is a violation unless storage failed; the script goes on with what
//! it may still do.

use std::ops::Range;
use std::time::Duration;

use lithify::{Durability, TransactionOptions};
use lithify_env::Rt;
use rustix::io::Errno;

use super::families::within;
use super::writes::transaction;
use super::{Held, View, Violation, World, failed, key, value};
use crate::choices::Stream;
use crate::disk::Forgets;
use crate::model::{Change, DEFAULT};
use crate::pump::Order;
use crate::simfs::Fault;

/// How a scripted operation ends.
pub type Told = Result<(), Violation>;

impl World {
    /// Opens the database; where storage fails, it is opened once that works again.
    ///
    /// # Errors
    /// If it does not open though nothing fails.
    pub fn begin(&mut self) -> Told {
        match self.open_home() {
            Ok(db) => self.db = Some(db),
            Err(e) => {
                self.excuse("an open", &e)?;
                self.fs.heal();
                self.open()?;
                self.whole_content("a database opened at last")?;
                self.shaken = false;
            }
        }
        self.no_panics()
    }

    /// Storage fails from now on.
    pub fn arm(&mut self, fault: Fault) {
        self.fs.set_fault(fault);
        (self.shaken, self.only_full, self.disturbed) = (true, false, true);
    }

    /// The sync after `nth` others fails, once, unless something fails already. What it had to
    /// write stays readable.
    pub fn one_sync_fails(&mut self, nth: u64) {
        if !self.shaken || self.fs.has_struck() {
            let (forgets, with) = (Forgets::Keeps, Errno::IO);
            self.arm(Fault::Sync { nth, forgets, with, sticky: false });
        }
    }

    /// The next synced write meets a sync that fails, and a disk that is full since; then there is
    /// space again, unless something fails already.
    pub fn log_lost_on_a_full_disk(&mut self, forgets: Forgets) -> Told {
        // There is a log to lose.
        self.puts(0..1, 300, Durability::Os)?;
        if self.shaken {
            return Ok(());
        }
        self.fs.set_fault(Fault::SyncThenFull { nth: 0, forgets });
        (self.shaken, self.only_full) = (true, true);
        self.puts(0..1, 300, Durability::Sync)?;
        // After another fault the sync that fails may be that of a job which makes up for it.
        match self.shaken && !self.disturbed {
            true => Violation::new("a lost log on a full disk left no write in doubt"),
            false => Ok(()),
        }
    }

    /// Storage works again; the database is closed and opened, and must hold what it may.
    ///
    /// # Errors
    /// If it does not.
    pub fn mend(&mut self) -> Told {
        self.recover()
    }

    /// Puts each of `keys`, with a value of `len` bytes.
    ///
    /// # Errors
    /// What must not happen; here and below.
    pub fn puts(&mut self, keys: Range<u32>, len: usize, durability: Durability) -> Told {
        for n in keys {
            self.next += 1;
            let change = Change::Put(key(n), value(self.next, len));
            self.write_at(vec![change], durability)?;
        }
        self.no_panics()
    }

    /// Puts `keys` in one batch, with values of `len` bytes.
    pub fn batch(&mut self, keys: Range<u32>, len: usize, durability: Durability) -> Told {
        let mut changes = Vec::new();
        for n in keys {
            self.next += 1;
            changes.push(Change::Put(key(n), value(self.next, len)));
        }
        self.write_at(changes, durability)?;
        self.no_panics()
    }

    /// Puts `keys`, five in a transaction of one kind and five in one of the other, and begins one
    /// that is never committed before each.
    pub fn transactions(&mut self, keys: Range<u32>, len: usize, durability: Durability) -> Told {
        let kinds = [TransactionOptions::optimistic(), TransactionOptions::pessimistic()];
        for (from, options) in keys.clone().step_by(5).zip(kinds.into_iter().cycle()) {
            let mut given_up = self.db().begin_transaction(options.clone());
            // Its lock goes with it. Nothing is read or written, so no fault is an excuse.
            let put = given_up.put(key(from), b"given up");
            put.map_err(|e| failed("an uncommitted write", &e))?;
            drop(given_up);
            let mut changes = Vec::new();
            for n in from..(from + 5).min(keys.end) {
                self.next += 1;
                changes.push(Change::Put(key(n), value(self.next, len)));
            }
            self.write_by(changes, durability, |opened, changes, write| {
                transaction(opened.db(), changes, options.with_write(*write))
            })?;
        }
        self.no_panics()
    }

    /// Makes the column family `name`, if it is not there.
    pub fn create(&mut self, name: &str) -> Told {
        if !self.model.has(name) {
            self.create_family(name)?;
        }
        self.no_panics()
    }

    /// Drops the column family `name`, if it is there.
    pub fn drop(&mut self, name: &str) -> Told {
        // Where something failed, it may never have been made.
        if self.model.has(name) {
            self.drop_family(name)?;
        }
        self.no_panics()
    }

    /// Puts each of `keys` into all of `families` that are there, in a batch, with values of `len`
    /// bytes.
    pub fn puts_over(
        &mut self,
        families: &[&str],
        keys: Range<u32>,
        len: usize,
        durability: Durability,
    ) -> Told {
        for n in keys {
            let mut changes = Vec::new();
            let model = self.model.clone();
            for name in families.iter().filter(|name| model.has(name)) {
                self.next += 1;
                changes.push(within(name, Change::Put(key(n), value(self.next, len))));
            }
            self.write_at(changes, durability)?;
        }
        self.no_panics()
    }

    /// Merges into each of `keys` in all of `families` that are there.
    pub fn merges(&mut self, families: &[&str], keys: Range<u32>) -> Told {
        for n in keys {
            for family in families {
                if self.model.has(family) {
                    self.merge_into(family, key(n))?;
                }
            }
        }
        self.no_panics()
    }

    /// Lets so many seconds pass, with nothing done meanwhile.
    pub fn wait(&mut self, seconds: u64) -> Told {
        self.pump.pass(Duration::from_secs(seconds));
        self.tick();
        Ok(())
    }

    /// Holds values against the model that have their times at their ends.
    pub fn look_beneath(&mut self) -> Told {
        self.beneath()
    }

    /// Flushes the column family `name`, if it is there, and waits for it.
    pub fn flush_family(&mut self, name: &str) -> Told {
        match self.model.has(name) {
            true => self.flush_of(name),
            false => Ok(()),
        }
    }

    /// Deletes each of `keys`.
    pub fn deletes(&mut self, keys: Range<u32>) -> Told {
        for n in keys {
            self.write_at(vec![Change::Delete(key(n))], Durability::Os)?;
        }
        Ok(())
    }

    /// Deletes a range of keys at once.
    pub fn delete_range(&mut self, keys: Range<u32>) -> Told {
        let change = Change::DeleteRange(key(keys.start), key(keys.end));
        self.write_at(vec![change], Durability::Os)
    }

    /// Flushes and waits for it.
    pub fn flush_now(&mut self) -> Told {
        self.flush_of(DEFAULT)
    }

    /// Compacts everything and waits for it.
    pub fn compact_all(&mut self) -> Told {
        match self.db().compact_range(None, None) {
            Ok(()) => self.journal.synced(self.fs.position()),
            Err(e) => self.excuse("a compaction", &e)?,
        }
        self.no_panics()
    }

    /// Makes what was written durable.
    pub fn sync_now(&mut self) -> Told {
        self.sync()
    }

    /// Waits until nothing is left to do.
    pub fn settle(&mut self) -> Told {
        match self.db().wait_idle(Some(Duration::from_secs(60))) {
            Ok(true) => {}
            // Nothing more is to be done once faults stop; until then it may never end.
            Ok(false) if self.shaken => {}
            Ok(false) => return Violation::new("the database does not come to rest in 60 s"),
            Err(e) => self.excuse("a wait", &e)?,
        }
        self.no_panics()
    }

    /// Steps background jobs, at most `steps` times.
    pub fn run(&mut self, steps: usize) {
        for _ in 0..steps {
            if !self.pump.step() {
                break;
            }
        }
    }

    /// Jobs go on in this order from now on.
    pub fn in_order(&self, order: Order) {
        self.pump.set_order(order);
    }

    /// Jobs go on in an order that follows from `seed`, from now on.
    pub fn shuffle(&self, seed: u64) {
        self.dice.swap(Stream::seeded(seed, "order"));
        self.pump.set_order(Order::Chosen);
    }

    /// Compactions begin by themselves, or not.
    pub fn pause(&mut self, paused: bool) {
        self.db().set_auto_compaction(!paused);
    }

    /// Holds on to a snapshot, and to an iterator.
    pub fn hold_both(&mut self) -> Told {
        let snapshot = self.db().snapshot();
        let (map, family) = (self.model.map().clone(), DEFAULT.to_owned());
        self.views.push(View { map, family, what: Held::Snapshot(snapshot) });
        self.hold_iterator(DEFAULT.to_owned())
    }

    /// Whatever is held must show what it showed.
    pub fn look_at_all(&mut self) -> Told {
        for _ in 0..2 * self.views.len() {
            self.look()?;
        }
        Ok(())
    }

    /// Lets go of whatever is held.
    pub fn let_go(&mut self) {
        self.views.clear();
    }

    /// Closes the database and opens it again.
    pub fn again(&mut self) -> Told {
        self.reopen()
    }

    /// Makes a copy and looks into it.
    pub fn copy(&mut self) -> Told {
        self.checkpoint()
    }

    /// Takes in a table with these keys, of values of `len` bytes.
    pub fn take_in_table(&mut self, keys: Range<u32>, len: usize) -> Told {
        self.take_in_keys(keys, len)?;
        self.no_panics()
    }

    /// Everything, read and compared.
    pub fn read_all(&mut self) -> Told {
        self.whole_content("the database")
    }

    /// The disk is full for a while: writes must fail and say so, and work again by themselves.
    pub fn full_for_a_while(&mut self) -> Told {
        if self.shaken {
            return Ok(()); // something else fails already
        }
        self.arm(Fault::Full(self.fs.used() + 6000));
        let mut refused = 0;
        for n in 0..400 {
            let before = self.journal.writes();
            self.puts(n % 40..n % 40 + 1, 900, Durability::Os)?;
            refused += usize::from(self.journal.is_refused(before + 1));
            self.run(10);
            if refused > 5 {
                break;
            }
        }
        self.fs.heal();
        if refused == 0 {
            return Violation::new("a full disk refused no write");
        }
        // It may take a pause until the next try.
        let until = self.pump.now() + Duration::from_secs(30);
        loop {
            let before = self.journal.writes();
            self.puts(0..1, 100, Durability::Os)?;
            if !self.journal.is_refused(before + 1) {
                break;
            }
            if until < self.pump.now() {
                return Violation::new("30 s after there was space again writes still fail");
            }
            self.pump.rest(Duration::from_millis(200));
        }
        self.shaken = false;
        self.settle()
    }
}
