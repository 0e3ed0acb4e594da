//! A transaction of a plan, carried out by a database.

use std::collections::BTreeSet;
use std::time::Duration;

use lithify::{Db, ErrorKind, Transaction as Txn, TransactionOptions};

use super::{Step, Transaction, is_deletion, key_of};
use crate::database::{Database, entries, told, walk};
use crate::plan::{Change, FamilyNo, KeyNo, key, value};
use crate::subject::Answer;

/// Writes one change in a transaction, which claims its key.
fn write(txn: &mut Txn, change: &Change) -> lithify::Result<()> {
    match change {
        Change::Put(k, v) => txn.put(key(*k), value(*v)),
        Change::Delete(k) => txn.delete(key(*k)),
        Change::SingleDelete(k) => txn.single_delete(key(*k)),
        Change::Merge(k, v) => txn.merge(key(*k), value(*v)),
        Change::DeleteRange(..) | Change::Once(..) | Change::In(..) => {
            unreachable!("{change:?} is not for transactions")
        }
    }
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
        // Nobody else would run while somebody waits.
        let options = options.with_lock_timeout(Duration::ZERO);
        let begin = if plan.snapshot { options.clone().with_snapshot() } else { options.clone() };
        let mut txn = db.begin_transaction(begin);
        let mut changed = BTreeSet::new();
        let mut answers = Vec::new();
        for step in &plan.steps {
            self.background()?;
            answers.push(match step {
                Step::Beside(op) => self.do_in(family, db, op)?,
                Step::Other { change, in_transaction } if changed.insert(key_of(change)) => {
                    let options = in_transaction.then_some(&options);
                    let (changes, answer) = self.other(db, change, options)?;
                    if !changes {
                        changed.remove(&key_of(change));
                    }
                    answer
                }
                Step::Other { .. } => Answer::Nothing,
                step => self.step(family, &mut txn, step)?,
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
            if db.stats().memtable_entries == 0 {
                self.marks.hit("a conflict found in a table");
            }
        }
        answers.push(answer);
        Ok(Answer::Steps(answers))
    }

    fn step(&mut self, family: FamilyNo, txn: &mut Txn, step: &Step) -> Result<Answer, String> {
        match step {
            Step::Write(change) => {
                let found = match change.asks(0) {
                    Some((_, k)) => Some(txn.get(key(k)).map_err(told)?.map(|v| v.to_vec())),
                    None => None,
                };
                let change = change.settled(found.as_ref().is_some_and(Option::is_some));
                self.note(family, &change);
                let claimed = write(txn, &change);
                self.met_conflict(claimed.as_ref().err());
                outcome(claimed, |()| Answer::seen(found.into_iter().collect()))
            }
            Step::Get(k) => outcome(txn.get(key(*k)), value_of),
            Step::GetForUpdate(k) => {
                let found = txn.get_for_update(key(*k));
                self.met_conflict(found.as_ref().err());
                outcome(found, value_of)
            }
            Step::Walk(moves) => {
                let mut iter = txn.iter_opt(&self.options()).map_err(told)?;
                Ok(Answer::Places(walk(&mut iter, moves)?))
            }
            Step::Scan { backward } => {
                let iter = txn.iter_opt(&self.options()).map_err(told)?;
                Ok(Answer::Entries(entries(iter, *backward, u32::MAX)?))
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
                txn.rollback();
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
            Step::Other { .. } | Step::Beside(_) => unreachable!("that is another client's"),
        }
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
        db: &Db,
        change: &Change,
        options: Option<&TransactionOptions>,
    ) -> Result<(bool, Answer), String> {
        let k: KeyNo = key_of(change);
        let seen = db.get_opt(key(k), &self.options()).map_err(told)?.map(|value| value.to_vec());
        if seen.is_none() && is_deletion(change) {
            return Ok((false, Answer::Values(vec![None])));
        }
        let written = match options {
            None => {
                self.write_one(db, change)?;
                Ok(())
            }
            Some(options) => {
                let mut txn = db.begin_transaction(options.clone());
                write(&mut txn, change).and_then(|()| txn.commit())
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
