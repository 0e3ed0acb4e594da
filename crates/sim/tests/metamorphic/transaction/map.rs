//! What a transaction means: a list of changes over a map, which all others see at once when it
//! commits, and keys that it relies on since a moment.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::{Place, Step, Transaction, is_deletion, key_of};
use crate::plan::{Change, FamilyNo, Operators, key};
use crate::subject::{Answer, Content, Map, change_content, scan, walk};

/// The families at some time.
#[derive(Clone)]
struct Moment {
    families: BTreeMap<FamilyNo, Rc<Content>>,
    /// Changes that others had made.
    at: usize,
}

/// A transaction at work.
struct Open<'a> {
    plan: &'a Transaction,
    operators: Operators,
    now: Moment,
    /// Keys that others changed, and their how-many-th change it was.
    changed: BTreeMap<Place, usize>,
    snapshot: Option<Moment>,
    writes: Vec<(FamilyNo, Change)>,
    /// Since when each key is relied on.
    claims: BTreeMap<Place, Moment>,
    /// Where the writes ended, and what was claimed since.
    savepoints: Vec<(usize, Vec<Place>)>,
}

fn refused(kind: &str) -> Answer {
    Answer::Refused(kind.to_owned())
}

impl Map {
    /// Carries out a transaction that a family's handle begins.
    pub fn transact(&mut self, family: FamilyNo, plan: &Transaction) -> Answer {
        let families = std::mem::take(&mut self.now).into_iter();
        let now = Moment { families: families.map(|(no, c)| (no, Rc::new(c))).collect(), at: 0 };
        let mut open = Open {
            plan,
            operators: self.operators,
            snapshot: plan.snapshot.then(|| now.clone()),
            now,
            changed: BTreeMap::new(),
            writes: Vec::new(),
            claims: BTreeMap::new(),
            savepoints: Vec::new(),
        };
        let mut answers: Vec<Answer> =
            plan.steps.iter().map(|step| open.step(self, family, step)).collect();
        if plan.commits {
            answers.push(open.commit());
        }
        let families = open.now.families.into_iter();
        self.now = families.map(|(no, content)| (no, Rc::unwrap_or_clone(content))).collect();
        Answer::Steps(answers)
    }
}

impl Open<'_> {
    fn step(&mut self, map: &Map, family: FamilyNo, step: &Step) -> Answer {
        match step {
            Step::In(family, step) => match self.now.families.contains_key(family) {
                true => self.step(map, *family, step),
                false => Answer::Nothing,
            },
            Step::Beside(op) => map.look(family, &self.now.families[&family], op),
            Step::Write(change) => {
                let found = change.asks(family).map(|place| self.see(place, self.reads_at()));
                let change = change.settled(found.as_ref().is_some_and(Option::is_some));
                if let Err(answer) = self.claim((family, key_of(&change))) {
                    return answer;
                }
                self.writes.push((family, change));
                Answer::seen(found.into_iter().collect())
            }
            Step::Get(k) => Answer::Values(vec![self.see((family, *k), self.reads_at())]),
            Step::GetForUpdate(k) => match self.claim((family, *k)) {
                Ok(since) => {
                    let at = if self.plan.optimistic { &since } else { self.reads_at() };
                    Answer::Values(vec![self.see((family, *k), at)])
                }
                Err(answer) => answer,
            },
            Step::Walk(moves) => Answer::Places(walk(&self.whole(family), &mut None, moves)),
            Step::Scan { backward } => {
                Answer::Entries(scan(&self.whole(family), None, None, *backward, u32::MAX))
            }
            Step::SetSavepoint => {
                self.savepoints.push((self.writes.len(), Vec::new()));
                Answer::Nothing
            }
            Step::ToSavepoint => match self.savepoints.pop() {
                Some((end, claimed)) => {
                    self.writes.truncate(end);
                    self.claims.retain(|place, _| !claimed.contains(place));
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
            Step::Other { change, in_transaction } => self.other(family, change, *in_transaction),
        }
    }

    fn reads_at(&self) -> &Moment {
        self.snapshot.as_ref().unwrap_or(&self.now)
    }

    /// The value of a key at `moment`, under its own writes.
    fn see(&self, (family, k): Place, moment: &Moment) -> Option<Vec<u8>> {
        let bytes = key(k);
        let below =
            moment.families[&family].get(&bytes).map(|value| (bytes.clone(), value.clone()));
        let mut one: Content = below.into_iter().collect();
        for change in self.of(family).filter(|change| key_of(change) == k) {
            change_content(&mut one, self.operators[usize::from(family)], change);
        }
        one.remove(&bytes)
    }

    /// Its writes to a family.
    fn of(&self, family: FamilyNo) -> impl Iterator<Item = &Change> {
        self.writes.iter().filter(move |(of, _)| *of == family).map(|(_, change)| change)
    }

    /// All that it sees of a family.
    fn whole(&self, family: FamilyNo) -> Content {
        let mut content = Content::clone(&self.reads_at().families[&family]);
        let operator = self.operators[usize::from(family)];
        self.of(family).for_each(|change| change_content(&mut content, operator, change));
        content
    }

    /// Relies on a key from now on, if it does not yet; since when it does.
    fn claim(&mut self, place: Place) -> Result<Moment, Answer> {
        if let Some(since) = self.claims.get(&place) {
            return Ok(since.clone());
        }
        let since = self.reads_at().clone();
        if !self.plan.optimistic && self.was_changed_after(place, &since) {
            return Err(refused("Busy"));
        }
        self.claims.insert(place, since.clone());
        if let Some((_, claimed)) = self.savepoints.last_mut() {
            claimed.push(place);
        }
        Ok(since)
    }

    fn was_changed_after(&self, place: Place, moment: &Moment) -> bool {
        self.changed.get(&place).is_some_and(|at| *at > moment.at)
    }

    fn other(&mut self, family: FamilyNo, change: &Change, in_transaction: bool) -> Answer {
        let place = (family, key_of(change));
        if self.changed.contains_key(&place) {
            return Answer::Nothing;
        }
        let seen = self.now.families[&family].get(&key(place.1)).cloned();
        if seen.is_none() && is_deletion(change) {
            return Answer::Values(vec![None]);
        }
        if in_transaction && !self.plan.optimistic && self.claims.contains_key(&place) {
            return refused("TimedOut");
        }
        self.change(family, change);
        self.now.at += 1;
        self.changed.insert(place, self.now.at);
        Answer::Values(vec![seen])
    }

    fn change(&mut self, family: FamilyNo, change: &Change) {
        let content = self.now.families.get_mut(&family).expect("a family that was there");
        change_content(Rc::make_mut(content), self.operators[usize::from(family)], change);
    }

    fn commit(&mut self) -> Answer {
        let refuses = |(place, since): (&Place, &Moment)| self.was_changed_after(*place, since);
        if self.plan.optimistic && self.claims.iter().any(refuses) {
            return refused("Busy");
        }
        for (family, change) in std::mem::take(&mut self.writes) {
            self.change(family, &change);
        }
        Answer::Nothing
    }
}
