//! Transactions of a plan: what the client does in one, and what happens beside it meanwhile.
//!
//! Keeps: whether a transaction meets a conflict follows from the plan. A key that is deleted while a
//! transaction relies on its not being there may or may not count as written, because a compaction may have
//! dropped all that happened to it; so another client changes a key once at most, and deletes
//! only what is there.
//! Leaves to others: carrying it out, by the map ([`map`]) and by a database ([`database`]).

pub mod database;
pub mod map;

use crate::plan::{Author, Change, FamilyNo, KeyNo, Move, ONCE, Op};

/// A key of a family.
type Place = (FamilyNo, KeyNo);

/// A transaction of a client, begun with the handle of one family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    pub optimistic: bool,
    /// It has a snapshot from the beginning.
    pub snapshot: bool,
    pub steps: Vec<Step>,
    /// It is committed in the end, and else dropped.
    pub commits: bool,
}

/// A step of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Write(Change),
    Get(KeyNo),
    GetForUpdate(KeyNo),
    /// A new iterator, and where it is after each movement.
    Walk(Vec<Move>),
    /// All it sees, from either end.
    Scan {
        backward: bool,
    },
    SetSavepoint,
    ToSavepoint,
    PopSavepoint,
    RollBack,
    SetSnapshot,
    ClearSnapshot,
    /// Another client changes a key, unless it has changed it before or there is nothing to delete; if
    /// so, in a transaction of the same kind that does not wait.
    Other {
        change: Change,
        in_transaction: bool,
    },
    /// Another client's operation about the family.
    Beside(Box<Op>),
    /// A step about a family that is named; nothing, if that is not there.
    In(FamilyNo, Box<Step>),
}

impl Step {
    /// Whether it is about one family.
    fn is_of_one(&self) -> bool {
        !matches!(
            self,
            Step::SetSavepoint
                | Step::ToSavepoint
                | Step::PopSavepoint
                | Step::RollBack
                | Step::SetSnapshot
                | Step::ClearSnapshot
        )
    }
}

/// The key that a settled change is about; of a range, the first.
fn key_of(change: &Change) -> KeyNo {
    match change {
        Change::Put(k, _)
        | Change::Merge(k, _)
        | Change::Delete(k)
        | Change::SingleDelete(k)
        | Change::DeleteRange(k, _) => *k,
        Change::Once(..) | Change::In(..) => unreachable!("it is settled, and of one family"),
    }
}

/// Whether it does nothing to a key that is not there.
fn is_deletion(change: &Change) -> bool {
    matches!(change, Change::Delete(_) | Change::DeleteRange(..))
}

impl Author {
    /// A transaction in which a few keys come up again and again.
    pub fn transaction(&mut self) -> Transaction {
        let hot = [(); 3].map(|()| self.key());
        let count = 1 + self.below(20);
        Transaction {
            optimistic: self.below(2) == 0,
            snapshot: self.below(3) == 0,
            steps: (0..count).map(|_| self.step_somewhere(&hot)).collect(),
            commits: self.below(6) > 0,
        }
    }

    fn one_of(&mut self, hot: &[KeyNo]) -> KeyNo {
        match self.below(4) {
            0 => self.key(),
            _ => hot[self.below(hot.len() as u64) as usize],
        }
    }

    fn step_somewhere(&mut self, hot: &[KeyNo]) -> Step {
        let step = self.step(hot);
        match self.any_family() {
            Some(family) if step.is_of_one() => Step::In(family, Box::new(step)),
            _ => step,
        }
    }

    fn step(&mut self, hot: &[KeyNo]) -> Step {
        match self.below(100) {
            0..18 => Step::Write(Change::Put(self.one_of(hot), self.value())),
            18..24 => Step::Write(Change::Merge(self.one_of(hot), self.operand())),
            24..28 => Step::Write(Change::Delete(self.one_of(hot))),
            28..34 => Step::Write(Change::Once(self.once(), self.value())),
            34..44 => Step::Get(self.one_of(hot)),
            44..54 => Step::GetForUpdate(self.one_of(hot)),
            54..58 => Step::Walk(self.walk()),
            58..60 => Step::Scan { backward: self.below(2) == 0 },
            60..69 => Step::SetSavepoint,
            69..75 => Step::ToSavepoint,
            75..79 => Step::PopSavepoint,
            79 => Step::RollBack,
            80 => Step::SetSnapshot,
            81 => Step::ClearSnapshot,
            82..92 => self.other(hot),
            92..95 => Step::Beside(Box::new(Op::Get(self.one_of(hot)))),
            95..98 => Step::Beside(Box::new(Op::Flush)),
            _ => Step::Beside(Box::new(Op::Compact(None, None))),
        }
    }

    fn other(&mut self, hot: &[KeyNo]) -> Step {
        let k = self.one_of(hot);
        let change = match self.below(8) {
            0..4 => Change::Put(k, self.value()),
            4 => Change::Merge(k, self.operand()),
            5 | 6 => Change::Delete(k),
            // Of this key alone.
            _ => {
                return Step::Other {
                    change: Change::DeleteRange(k, ONCE + k),
                    in_transaction: false,
                };
            }
        };
        Step::Other { change, in_transaction: self.below(2) == 0 }
    }
}
