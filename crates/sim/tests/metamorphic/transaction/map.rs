//! What a transaction means: a list of changes over a map, which all others see at once when it
//! commits, and keys that it relies on since a moment.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::{Step, Transaction, is_deletion, key_of};
use crate::operator::Operator;
use crate::plan::{Change, FamilyNo, KeyNo, key};
use crate::subject::{Answer, Content, Map, change_content, scan, walk};

/// A family at some time.
#[derive(Clone)]
struct Moment {
    content: Rc<Content>,
    /// Changes that others had made.
    at: usize,
}

/// A transaction at work.
struct Open<'a> {
    plan: &'a Transaction,
    operator: Operator,
    now: Moment,
    /// Keys that others changed, and their how-many-th change it was.
    changed: BTreeMap<KeyNo, usize>,
    snapshot: Option<Moment>,
    writes: Vec<Change>,
    /// Since when each key is relied on.
    claims: BTreeMap<KeyNo, Moment>,
    /// Where the writes ended, and what was claimed since.
    savepoints: Vec<(usize, Vec<KeyNo>)>,
}

fn refused(kind: &str) -> Answer {
    Answer::Refused(kind.to_owned())
}

impl Map {
    /// Carries out a transaction over a family; what it answered, and what the family holds then.
    pub fn transact(
        &self,
        family: FamilyNo,
        content: &Content,
        plan: &Transaction,
    ) -> (Answer, Content) {
        let now = Moment { content: Rc::new(content.clone()), at: 0 };
        let mut open = Open {
            plan,
            operator: self.operator_of(family),
            snapshot: plan.snapshot.then(|| now.clone()),
            now,
            changed: BTreeMap::new(),
            writes: Vec::new(),
            claims: BTreeMap::new(),
            savepoints: Vec::new(),
        };
        let mut answers = Vec::new();
        for step in &plan.steps {
            let answer = match step {
                Step::Beside(op) => self.look(family, &open.now.content, op),
                step => open.step(step),
            };
            answers.push(answer);
        }
        if plan.commits {
            answers.push(open.commit());
        }
        (Answer::Steps(answers), Rc::unwrap_or_clone(open.now.content))
    }
}

impl Open<'_> {
    fn step(&mut self, step: &Step) -> Answer {
        match step {
            Step::Write(change) => {
                let found = change.asks(0).map(|(_, k)| self.see(k, self.reads_at()));
                let change = change.settled(found.as_ref().is_some_and(Option::is_some));
                if let Err(answer) = self.claim(key_of(&change)) {
                    return answer;
                }
                self.writes.push(change);
                Answer::seen(found.into_iter().collect())
            }
            Step::Get(k) => Answer::Values(vec![self.see(*k, self.reads_at())]),
            Step::GetForUpdate(k) => match self.claim(*k) {
                Ok(since) if self.plan.optimistic => {
                    Answer::Values(vec![self.see(*k, &since.content)])
                }
                Ok(_) => Answer::Values(vec![self.see(*k, self.reads_at())]),
                Err(answer) => answer,
            },
            Step::Walk(moves) => Answer::Places(walk(&self.whole(), &mut None, moves)),
            Step::Scan { backward } => {
                Answer::Entries(scan(&self.whole(), None, None, *backward, u32::MAX))
            }
            Step::SetSavepoint => {
                self.savepoints.push((self.writes.len(), Vec::new()));
                Answer::Nothing
            }
            Step::ToSavepoint => match self.savepoints.pop() {
                Some((end, claimed)) => {
                    self.writes.truncate(end);
                    self.claims.retain(|k, _| !claimed.contains(k));
                    Answer::Nothing
                }
                None => refused("NotFound"),
            },
            Step::PopSavepoint => match self.savepoints.pop() {
                Some((_, claimed)) => {
                    if let Some((_, before)) = self.savepoints.last_mut() {
                        before.extend(claimed);
                    }
                    Answer::Nothing
                }
                None => refused("NotFound"),
            },
            Step::RollBack => {
                self.writes.clear();
                self.savepoints.clear();
                self.claims.clear();
                Answer::Nothing
            }
            Step::SetSnapshot => {
                self.snapshot = Some(self.now.clone());
                Answer::Nothing
            }
            Step::ClearSnapshot => {
                self.snapshot = None;
                Answer::Nothing
            }
            Step::Other { change, in_transaction } => self.other(change, *in_transaction),
            Step::Beside(_) => unreachable!("the map itself does that"),
        }
    }

    fn reads_at(&self) -> &Content {
        &self.snapshot.as_ref().unwrap_or(&self.now).content
    }

    /// The value of a key over `content`.
    fn see(&self, k: KeyNo, content: &Content) -> Option<Vec<u8>> {
        let bytes = key(k);
        let below = content.get(&bytes).map(|value| (bytes.clone(), value.clone()));
        let mut one: Content = below.into_iter().collect();
        for change in self.writes.iter().filter(|change| key_of(change) == k) {
            change_content(&mut one, self.operator, change);
        }
        one.remove(&bytes)
    }

    /// All that it sees.
    fn whole(&self) -> Content {
        let mut content = self.reads_at().clone();
        self.writes.iter().for_each(|change| change_content(&mut content, self.operator, change));
        content
    }

    /// Relies on a key from now on, if it does not yet; since when it does.
    fn claim(&mut self, k: KeyNo) -> Result<Moment, Answer> {
        if let Some(since) = self.claims.get(&k) {
            return Ok(since.clone());
        }
        let since = self.snapshot.as_ref().unwrap_or(&self.now).clone();
        if !self.plan.optimistic && self.was_changed_after(k, &since) {
            return Err(refused("Busy"));
        }
        self.claims.insert(k, since.clone());
        if let Some((_, claimed)) = self.savepoints.last_mut() {
            claimed.push(k);
        }
        Ok(since)
    }

    fn was_changed_after(&self, k: KeyNo, moment: &Moment) -> bool {
        self.changed.get(&k).is_some_and(|at| *at > moment.at)
    }

    fn other(&mut self, change: &Change, in_transaction: bool) -> Answer {
        let k = key_of(change);
        if self.changed.contains_key(&k) {
            return Answer::Nothing;
        }
        let seen = self.now.content.get(&key(k)).cloned();
        if seen.is_none() && is_deletion(change) {
            return Answer::Values(vec![None]);
        }
        if in_transaction && !self.plan.optimistic && self.claims.contains_key(&k) {
            return refused("TimedOut");
        }
        change_content(Rc::make_mut(&mut self.now.content), self.operator, change);
        self.now.at += 1;
        self.changed.insert(k, self.now.at);
        Answer::Values(vec![seen])
    }

    fn commit(&mut self) -> Answer {
        let refuses = |(k, since): (&KeyNo, &Moment)| self.was_changed_after(*k, since);
        if self.plan.optimistic && self.claims.iter().any(refuses) {
            return refused("Busy");
        }
        let content = Rc::make_mut(&mut self.now.content);
        self.writes.iter().for_each(|change| change_content(content, self.operator, change));
        Answer::Nothing
    }
}
