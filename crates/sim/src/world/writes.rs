//! Writes, and what makes them durable.
//!
//! Keeps: a write is in the journal from before its first byte could reach the disk, and counted
//! as durable from after its acknowledgement on, never earlier.

use std::time::Duration;

use lithify::{Db, Durability, Error, ErrorKind, TransactionOptions, WriteBatch, WriteOptions};
use lithify_env::Rt;

use super::families::{is_about_families, within};
use super::timed::Opened;
use super::{Violation, World, failed, value};
use crate::model::Change;

impl World {
    pub(super) fn put(&mut self, count: u32) -> Result<(), Violation> {
        for _ in 0..count {
            let change = Change::Put(self.any_key(), self.any_value());
            let change = self.somewhere(change);
            self.write(vec![change])?;
        }
        Ok(())
    }

    pub(super) fn write(&mut self, changes: Vec<Change>) -> Result<(), Violation> {
        let durability = self.any_durability();
        self.write_at(changes, durability)
    }

    /// Writes `changes` as one batch.
    pub(super) fn write_at(
        &mut self,
        changes: Vec<Change>,
        durability: Durability,
    ) -> Result<(), Violation> {
        let batch = batch_of(self.db(), &changes).map_err(|e| failed("a batch", &e))?;
        self.write_by(changes, durability, |opened, _, options| opened.write(&batch, options))
    }

    /// Writes `changes`, which `write` makes visible at once or not at all.
    pub(super) fn write_by(
        &mut self,
        changes: Vec<Change>,
        durability: Durability,
        write: impl FnOnce(&Opened, &[Change], &WriteOptions) -> Result<(), Error>,
    ) -> Result<(), Violation> {
        let before = self.model.clone();
        let second = self.second();
        for change in &changes {
            let change = self.stamped(change, second);
            self.model.apply(&change);
        }
        self.journal.begun(self.model.sums(), self.fs.position());
        if let Err(e) = write(self.opened(), &changes, &WriteOptions::at(durability)) {
            self.excuse("a write", &e)?;
            self.model = before;
            if e.kind() != ErrorKind::OutcomeUnknown {
                self.journal.refused(self.fs.position());
                return Ok(());
            }
            // Where only space is missing it is decided once there is some, else by the next open.
            let alone = self.model.others().len() == 0 && !is_about_families(&changes);
            let goes_on = self.only_full && self.fs.is_full() && alone;
            if goes_on && self.dice.choose(2, "room again") == 0 {
                return self.make_room(self.journal.writes());
            }
            return self.recover_in_doubt();
        }
        match durability {
            Durability::Sync => self.journal.synced(self.fs.position()),
            Durability::Os => self.journal.handed_over(self.fs.position()),
            Durability::Buffered | Durability::NoWal => {}
        }
        Ok(())
    }

    /// There is space again: writes go on in the same handle, and then write number `unsure` is
    /// not there and never will be.
    fn make_room(&mut self, unsure: usize) -> Result<(), Violation> {
        if self.dice.choose(2, "refused first") == 1 {
            self.put(1)?;
        }
        self.fs.heal();
        let until = self.pump.now() + Duration::from_secs(30);
        loop {
            let before = self.journal.writes();
            self.put_synced()?;
            if !self.journal.is_refused(before + 1) {
                break;
            }
            if until < self.pump.now() {
                return Violation::new("30 s after there was space again writes still fail");
            }
            self.pump.rest(Duration::from_millis(200));
        }
        self.journal.refused_nth(unsure, self.fs.position());
        (self.shaken, self.only_full) = (false, false);
        self.whole_content("a database that found space again")
    }

    fn put_synced(&mut self) -> Result<(), Violation> {
        let change = Change::Put(self.any_key(), self.any_value());
        self.write_at(vec![change], Durability::Sync)
    }

    /// Puts a key that only this touches, or deletes it as one that was put once.
    pub(super) fn once(&mut self) -> Result<(), Violation> {
        let key = format!("once/{}", self.dice.choose(6, "once")).into_bytes();
        let family = self.any_family();
        let change = match self.model.map_of(&family).contains_key(&key) {
            true => Change::SingleDelete(key),
            false => Change::Put(key, self.any_value()),
        };
        self.write(vec![within(&family, change)])
    }

    /// Merges into any key, a few times.
    pub(super) fn merge(&mut self) -> Result<(), Violation> {
        let (key, family) = (self.any_key(), self.any_family());
        for _ in 0..1 + self.dice.choose(3, "merges") {
            self.merge_into(&family, key.clone())?;
        }
        Ok(())
    }

    /// Merges into a key; where no model could tell what comes of it, the operand is its value.
    pub(super) fn merge_into(&mut self, family: &str, key: Vec<u8>) -> Result<(), Violation> {
        self.next += 1;
        let operand = value(self.next, 16);
        let change = match self.may_merge(family, &key) {
            true => Change::Merge(key, operand),
            false => Change::Put(key, operand),
        };
        self.write(vec![within(family, change)])
    }

    pub(super) fn flush(&mut self) -> Result<(), Violation> {
        let family = self.any_family();
        self.flush_of(&family)
    }

    /// Flushes a family. What was written before to any family is durable then: all of it is in logs
    /// below the one that the flush ends.
    pub(super) fn flush_of(&mut self, family: &str) -> Result<(), Violation> {
        self.touch(family)?;
        match self.tree(family)?.flush() {
            Ok(()) => self.all_flushed(),
            Err(e) => self.excuse("a flush", &e)?,
        }
        Ok(())
    }

    /// Where there are several families, sees to it that a flush of this one has something to flush.
    fn touch(&mut self, family: &str) -> Result<(), Violation> {
        if self.model.others().len() == 0 {
            return Ok(());
        }
        let change = Change::Put(self.any_key(), self.any_value());
        self.write(vec![within(family, change)])
    }

    /// A family was flushed that had something to flush.
    fn all_flushed(&mut self) {
        // Where storage fails, what was to be flushed may have been refused.
        if self.model.others().len() == 0 || !self.shaken {
            self.journal.synced(self.fs.position());
        }
    }

    pub(super) fn compact(&mut self) -> Result<(), Violation> {
        let (mut from, mut to) = (self.any_key(), self.any_key());
        if from > to {
            std::mem::swap(&mut from, &mut to);
        }
        let from = (self.dice.choose(2, "from") == 1).then_some(from.as_slice());
        let to = (self.dice.choose(2, "to") == 1).then_some(to.as_slice());
        let family = self.any_family();
        self.touch(&family)?;
        match self.tree(&family)?.compact_range(from, to) {
            Ok(()) => self.all_flushed(),
            Err(e) => self.excuse("a compaction", &e)?,
        }
        Ok(())
    }

    pub(super) fn sync(&mut self) -> Result<(), Violation> {
        match self.db().sync() {
            Ok(()) if !self.shape.unlogged => self.journal.synced(self.fs.position()),
            Ok(()) => {}
            Err(e) => self.excuse("a sync", &e)?,
        }
        Ok(())
    }
}

pub(super) fn batch_of(db: &Db, changes: &[Change]) -> Result<WriteBatch, Error> {
    let mut batch = WriteBatch::new();
    for change in changes {
        match change {
            Change::Put(key, value) => batch.put(key, value)?,
            Change::Delete(key) => batch.delete(key)?,
            Change::SingleDelete(key) => batch.single_delete(key)?,
            Change::Merge(key, operand) => batch.merge(key, operand)?,
            Change::DeleteRange(from, to) => batch.delete_range(from, to)?,
            Change::In(name, change) => {
                let family = db.column_family(name)?;
                match &**change {
                    Change::Put(key, value) => batch.put_cf(&family, key, value)?,
                    Change::Delete(key) => batch.delete_cf(&family, key)?,
                    Change::SingleDelete(key) => batch.single_delete_cf(&family, key)?,
                    Change::Merge(key, operand) => batch.merge_cf(&family, key, operand)?,
                    Change::DeleteRange(from, to) => batch.delete_range_cf(&family, from, to)?,
                    Change::In(..) | Change::Create(_) | Change::Drop(_) => {
                        unreachable!("a family holds no families")
                    }
                }
            }
            Change::Create(_) | Change::Drop(_) => unreachable!("no batch makes a family"),
        }
    }
    Ok(batch)
}

/// Writes puts and deletions as a transaction, which on the way writes more and takes it back.
pub(super) fn transaction(
    db: &Db,
    changes: &[Change],
    options: TransactionOptions,
) -> Result<(), Error> {
    let mut txn = db.begin_transaction(options);
    for change in changes {
        match change {
            Change::Put(key, value) => {
                txn.get_for_update(key)?;
                txn.put(key, value)?;
            }
            Change::Delete(key) => txn.delete(key)?,
            Change::DeleteRange(..) => unreachable!("a transaction deletes no ranges"),
            Change::SingleDelete(_)
            | Change::Merge(..)
            | Change::In(..)
            | Change::Create(_)
            | Change::Drop(_) => unreachable!("a transaction puts and deletes"),
        }
        txn.set_savepoint();
        txn.put(b"taken back", b"never seen")?;
        txn.rollback_to_savepoint()?;
    }
    txn.commit()
}
