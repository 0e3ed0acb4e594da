//! A transaction of a plan, carried out by a database.

use std::collections::BTreeSet;
use std::time::Duration;

use lithify::{ColumnFamily, Db, DbIter, ErrorKind, Transaction as Txn, TransactionOptions};

use super::{Place, Step, Transaction, is_deletion, key_of};
use crate::database::{Database, entries, told, walk};
use crate::plan::{Change, FamilyNo, KeyNo, key, value};
use crate::subject::Answer;

/// What a step is about: the family of the handle that began the transaction, or one that is named.
#[derive(Clone, Copy)]
struct Of<'a> {
    number: FamilyNo,
    db: &'a Db,
    named: Option<&'a ColumnFamily>,
}

/// Writes one change in a transaction, which claims its key.
fn write(txn: &mut Txn, named: Option<&ColumnFamily>, change: &Change) -> lithify::Result<()> {
    match (change, named) {
        (Change::Put(k, v), None) => txn.put(key(*k), value(*v)),
        (Change::Put(k, v), Some(of)) => txn.put_cf(of, key(*k), value(*v)),
        (Change::Delete(k), None) => txn.delete(key(*k)),
        (Change::Delete(k), Some(of)) => txn.delete_cf(of, key(*k)),
        (Change::SingleDelete(k), None) => txn.single_delete(key(*k)),
        (Change::SingleDelete(k), Some(of)) => txn.single_delete_cf(of, key(*k)),
        (Change::Merge(k, v), None) => txn.merge(key(*k), value(*v)),
        (Change::Merge(k, v), Some(of)) => txn.merge_cf(of, key(*k), value(*v)),
        (Change::DeleteRange(..) | Change::Once(..) | Change::In(..), _) => {
            unreachable!("{change:?} is not for transactions")
        }
    }
}

fn read(
    txn: &Txn,
    named: Option<&ColumnFamily>,
    k: KeyNo,
) -> lithify::Result<Option<lithify::Value>> {
    named.map_or_else(|| txn.get(key(k)), |of| txn.get_cf(of, key(k)))
}

/// The answer, or the kind of an error that a transaction may meet.
fn outcome<T>(
    result: lithify::Result<T>,
    answer: impl FnOnce(T) -> Answer,
) -> Result<Answer, String> {
    match result {
        Ok(done) => Ok(answer(done)),
        Err(e) if is_refusal(e.kind()) => Ok(Answer::Refused(format!("{:?}", e.kind()))),
        Err(e) => Err(told(e)),
    }
}

fn is_refusal(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Busy | ErrorKind::TimedOut | ErrorKind::NotFound)
}

fn nothing((): ()) -> Answer {
    Answer::Nothing
}

fn value_of(found: Option<lithify::Value>) -> Answer {
    Answer::Values(vec![found.map(|value| value.to_vec())])
}

impl Database {
    /// Carries out a transaction over a family.
    pub fn transact(
        &mut self,
        family: FamilyNo,
        db: &Db,
        plan: &Transaction,
    ) -> Result<Answer, String> {
        let kind = if plan.optimistic { "an optimistic" } else { "a pessimistic" };
        let options = match plan.optimistic {
            true => TransactionOptions::optimistic(),
            false => TransactionOptions::pessimistic(),
        };
        // No other thread would run while one waits.
        let options = options.with_lock_timeout(Duration::ZERO);
        let begin = if plan.snapshot { options.clone().with_snapshot() } else { options.clone() };
        let mut txn = db.begin_transaction(begin);
        let mut changed = BTreeSet::new();
        let mut answers = Vec::new();
        let own = Of { number: family, db, named: None };
        for step in &plan.steps {
            self.background()?;
            answers.push(match step {
                Step::In(number, step) => match self.family(*number)? {
                    Some(named) => {
                        let of = Of { number: *number, db: &named, named: Some(&named) };
                        self.step(of, &mut txn, &options, &mut changed, step)?
                    }
                    None => Answer::Nothing,
                },
                step => self.step(own, &mut txn, &options, &mut changed, step)?,
            });
        }
        if !plan.commits {
            self.marks.hit("a transaction rolled back");
            return Ok(Answer::Steps(answers));
        }
        let writes = txn.len();
        self.background()?;
        let answer = outcome(txn.commit(), nothing)?;
        if answer == Answer::Nothing {
            if writes > 0 {
                self.marks.hit(&format!("{kind} transaction committed"));
                self.wrote()?;
            }
        } else {
            self.marks.hit("a conflict at a commit");
            if self.families()?.iter().all(|family| family.stats().memtable_entries == 0) {
                self.marks.hit("a conflict found in a table");
            }
        }
        answers.push(answer);
        Ok(Answer::Steps(answers))
    }

    fn step(
        &mut self,
        of: Of<'_>,
        txn: &mut Txn,
        options: &TransactionOptions,
        changed: &mut BTreeSet<Place>,
        step: &Step,
    ) -> Result<Answer, String> {
        match step {
            Step::Write(change) => {
                let found = match change.asks(of.number) {
                    Some((_, k)) => Some(read(txn, of.named, k).map_err(told)?.map(|v| v.to_vec())),
                    None => None,
                };
                let change = change.settled(found.as_ref().is_some_and(Option::is_some));
                self.note(of.number, &change);
                let claimed = write(txn, of.named, &change);
                if of.named.is_some() && claimed.is_ok() {
                    self.marks.hit("a transaction that wrote to a named family");
                }
                self.met_conflict(claimed.as_ref().err());
                outcome(claimed, |()| Answer::seen(found.into_iter().collect()))
            }
            Step::Get(k) => outcome(read(txn, of.named, *k), value_of),
            Step::GetForUpdate(k) => {
                let found = match of.named {
                    None => txn.get_for_update(key(*k)),
                    Some(of) => txn.get_for_update_cf(of, key(*k)),
                };
                self.met_conflict(found.as_ref().err());
                outcome(found, value_of)
            }
            Step::Walk(moves) => Ok(Answer::Places(walk(&mut self.iter(txn, of)?, moves)?)),
            Step::Scan { backward } => {
                Ok(Answer::Entries(entries(self.iter(txn, of)?, *backward, u32::MAX)?))
            }
            Step::SetSavepoint => {
                txn.set_savepoint();
                Ok(Answer::Nothing)
            }
            Step::ToSavepoint => {
                let before = txn.len();
                let done = txn.rollback_to_savepoint();
                if txn.len() < before {
                    self.marks.hit("writes taken back to a savepoint");
                }
                outcome(done, nothing)
            }
            Step::PopSavepoint => outcome(txn.pop_savepoint(), nothing),
            Step::RollBack => {
                txn.rollback().unwrap();
                Ok(Answer::Nothing)
            }
            Step::SetSnapshot => {
                txn.set_snapshot();
                Ok(Answer::Nothing)
            }
            Step::ClearSnapshot => {
                txn.clear_snapshot();
                Ok(Answer::Nothing)
            }
            Step::Beside(op) => self.do_in(of.number, of.db, op),
            Step::Other { change, in_transaction } => {
                let place = (of.number, key_of(change));
                if changed.contains(&place) {
                    return Ok(Answer::Nothing);
                }
                let (changes, answer) =
                    self.other(of, change, in_transaction.then_some(options))?;
                if changes {
                    changed.insert(place);
                }
                Ok(answer)
            }
            Step::In(..) => unreachable!("a family holds no families"),
        }
    }

    fn iter(&self, txn: &Txn, of: Of<'_>) -> Result<DbIter, String> {
        let options = self.options();
        match of.named {
            None => txn.iter_opt(&options),
            Some(of) => txn.iter_cf_opt(of, &options),
        }
        .map_err(told)
    }

    fn met_conflict(&mut self, error: Option<&lithify::Error>) {
        if error.is_some_and(|e| e.kind() == ErrorKind::Busy) {
            self.marks.hit("a conflict with a snapshot");
        }
    }

    /// Another client's change, in a transaction of its own if it has options for one; whether it
    /// changed anything, and the answer.
    fn other(
        &mut self,
        of: Of<'_>,
        change: &Change,
        options: Option<&TransactionOptions>,
    ) -> Result<(bool, Answer), String> {
        let k = key_of(change);
        let seen =
            of.db.get_opt(key(k), &self.options()).map_err(told)?.map(|value| value.to_vec());
        if seen.is_none() && is_deletion(change) {
            return Ok((false, Answer::Values(vec![None])));
        }
        let written = match options {
            None => {
                self.write_one(of.db, change)?;
                Ok(())
            }
            Some(options) => {
                let mut txn = of.db.begin_transaction(options.clone());
                write(&mut txn, None, change).and_then(|()| txn.commit())
            }
        };
        if written.as_ref().is_err_and(|e| e.kind() == ErrorKind::TimedOut) {
            self.marks.hit("a lock in the way");
        }
        let answer = outcome(written, |()| Answer::Values(vec![seen]))?;
        let changes = matches!(answer, Answer::Values(_));
        if changes {
            self.wrote()?;
        }
        Ok((changes, answer))
    }
}
