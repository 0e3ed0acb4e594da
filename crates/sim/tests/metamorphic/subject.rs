//! Who carries out a plan: a map, which is what the database means, or anything that should answer
//! like one.

use std::collections::BTreeMap;
use std::ops::Bound;

use crate::operator::Operator;
use crate::plan::{Change, FamilyNo, KeyNo, Move, Op, Operators, key, value};

/// A key and its value.
pub type Entry = (Vec<u8>, Vec<u8>);

/// What an operation answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It has none, or the view it asks does not exist.
    Nothing,
    Values(Vec<Option<Vec<u8>>>),
    Entries(Vec<Entry>),
    /// Where an iterator was after each movement.
    Places(Vec<Option<Entry>>),
    /// An error of this kind, as it should be.
    Refused(String),
    /// Of each step.
    Steps(Vec<Answer>),
}

impl Answer {
    /// What a client saw before it wrote, if it looked.
    pub fn seen(values: Vec<Option<Vec<u8>>>) -> Answer {
        if values.is_empty() { Answer::Nothing } else { Answer::Values(values) }
    }

    /// For people: keys in full, values by their length and first bytes.
    pub fn brief(&self) -> String {
        let short = |v: &[u8]| format!("{} bytes {:02x?}", v.len(), &v[..v.len().min(4)]);
        let entry = |(k, v): &Entry| format!("{} = {}", k.escape_ascii(), short(v));
        let parts: Vec<String> = match self {
            Answer::Nothing => vec!["nothing".to_owned()],
            Answer::Values(values) => {
                values.iter().map(|v| v.as_ref().map_or("none".to_owned(), |v| short(v))).collect()
            }
            Answer::Entries(entries) => entries.iter().map(entry).collect(),
            Answer::Places(places) => {
                places.iter().map(|p| p.as_ref().map_or("nowhere".to_owned(), entry)).collect()
            }
            Answer::Refused(kind) => vec![kind.clone()],
            Answer::Steps(steps) => steps.iter().map(Answer::brief).collect(),
        };
        format!("[{}]", parts.join(", "))
    }
}

/// What carries out operations.
pub trait Subject {
    /// Carries out one.
    ///
    /// # Errors
    /// What failed: nothing should.
    fn apply(&mut self, op: &Op) -> Result<Answer, String>;
}

/// What a family holds.
pub type Content = BTreeMap<Vec<u8>, Vec<u8>>;

/// What each family holds.
pub type Families = BTreeMap<FamilyNo, Content>;

/// The database that is nothing but a few maps.
pub struct Map {
    pub operators: Operators,
    pub now: Families,
    snapshots: Vec<Families>,
    iterators: Vec<(Content, Option<Vec<u8>>)>,
}

impl Map {
    /// An empty one.
    pub fn new(operators: Operators) -> Map {
        let now = Families::from([(0, Content::new())]);
        Map { operators, now, snapshots: Vec::new(), iterators: Vec::new() }
    }

    fn operator_of(&self, family: FamilyNo) -> Operator {
        self.operators[usize::from(family)]
    }
}

/// The view that a number names among so many.
pub fn named(which: u32, count: usize) -> Option<usize> {
    (which as usize).checked_rem(count)
}

impl Subject for Map {
    fn apply(&mut self, op: &Op) -> Result<Answer, String> {
        let all = |content: &Content| scan(content, None, None, false, u32::MAX);
        Ok(match op {
            Op::In(family, op) => match self.now.contains_key(family) {
                true => self.apply_in(*family, op),
                false => Answer::Nothing,
            },
            Op::Write(changes) => self.write(changes),
            Op::Snapshot => {
                self.snapshots.push(self.now.clone());
                Answer::Nothing
            }
            Op::ForgetSnapshot(which) => {
                named(*which, self.snapshots.len()).map(|at| self.snapshots.remove(at));
                Answer::Nothing
            }
            Op::WalkHeld(which, moves) => match named(*which, self.iterators.len()) {
                Some(at) => {
                    let (content, at) = &mut self.iterators[at];
                    Answer::Places(walk(content, at, moves))
                }
                None => Answer::Nothing,
            },
            Op::LetGo(which) => {
                named(*which, self.iterators.len()).map(|at| self.iterators.remove(at));
                Answer::Nothing
            }
            Op::Checkpoint | Op::ReadOnly => {
                Answer::Entries(self.now.values().flat_map(all).collect())
            }
            Op::Reopen => {
                self.snapshots.clear();
                self.iterators.clear();
                Answer::Nothing
            }
            Op::Create(family) => {
                self.now.entry(*family).or_default();
                Answer::Nothing
            }
            Op::Drop(family) => {
                for families in self.snapshots.iter_mut().chain([&mut self.now]) {
                    families.remove(family);
                }
                Answer::Nothing
            }
            Op::Settle | Op::Sync => Answer::Nothing,
            op => self.apply_in(0, op),
        })
    }
}

impl Map {
    fn write(&mut self, changes: &[Change]) -> Answer {
        let mut seen = Vec::new();
        let mut settled = Vec::new();
        for change in changes {
            let found =
                change.asks(0).map(|(family, k)| self.now.get(&family)?.get(&key(k)).cloned());
            settled.push(change.settled(found.as_ref().is_some_and(Option::is_some)));
            seen.extend(found);
        }
        settled.iter().for_each(|change| self.change(0, change));
        Answer::seen(seen)
    }

    fn change(&mut self, family: FamilyNo, change: &Change) {
        if let Change::In(family, change) = change {
            return self.change(*family, change);
        }
        let operator = self.operator_of(family);
        if let Some(content) = self.now.get_mut(&family) {
            change_content(content, operator, change);
        }
    }

    /// Carries out an operation about one family, which is there.
    fn apply_in(&mut self, family: FamilyNo, op: &Op) -> Answer {
        let now = &self.now[&family];
        match op {
            Op::Transaction(plan) => self.transact(family, plan),
            Op::Hold(k) => {
                let mut at = None;
                let place = walk(now, &mut at, &[Move::Seek(*k)]);
                self.iterators.push((now.clone(), at));
                Answer::Places(place)
            }
            op => self.look(family, now, op),
        }
    }

    /// Carries out an operation that changes nothing, about a family that holds `now`.
    pub fn look(&self, family: FamilyNo, now: &Content, op: &Op) -> Answer {
        let nothing = Content::new();
        // A snapshot from before the family was made shows it empty.
        let at_snapshot = |which: u32| {
            let at = named(which, self.snapshots.len())?;
            Some(self.snapshots[at].get(&family).unwrap_or(&nothing))
        };
        match op {
            Op::Get(k) => Answer::Values(vec![now.get(&key(*k)).cloned()]),
            Op::MultiGet(keys) => {
                Answer::Values(keys.iter().map(|k| now.get(&key(*k)).cloned()).collect())
            }
            Op::Scan { from, to, backward, most } => {
                Answer::Entries(scan(now, *from, *to, *backward, *most))
            }
            Op::Prefix { of, bytes, backward } => {
                let of = key(*of);
                let start = &of[..of.len().min(*bytes as usize)];
                let mut entries = scan(now, None, None, *backward, u32::MAX);
                entries.retain(|(k, _)| k.starts_with(start));
                Answer::Entries(entries)
            }
            Op::Walk(moves) => Answer::Places(walk(now, &mut None, moves)),
            Op::GetAt(which, k) => match at_snapshot(*which) {
                Some(content) => Answer::Values(vec![content.get(&key(*k)).cloned()]),
                None => Answer::Nothing,
            },
            Op::ScanAt(which) => match at_snapshot(*which) {
                Some(content) => Answer::Entries(scan(content, None, None, false, u32::MAX)),
                None => Answer::Nothing,
            },
            Op::Flush | Op::Compact(..) => Answer::Nothing,
            op => unreachable!("{op:?} is no look at one family"),
        }
    }
}

/// Does a settled change of one family.
pub fn change_content(content: &mut Content, operator: Operator, change: &Change) {
    match change {
        Change::Put(k, v) => drop(content.insert(key(*k), value(*v))),
        Change::Delete(k) | Change::SingleDelete(k) => drop(content.remove(&key(*k))),
        Change::DeleteRange(from, to) => {
            let (from, to) = (key(*from), key(*to));
            content.retain(|k, _| *k < from || *k >= to);
        }
        Change::Merge(k, operand) => {
            let k = key(*k);
            let merged = operator.after(&k, content.get(&k).map(Vec::as_slice), &value(*operand));
            content.insert(k, merged);
        }
        Change::Once(..) | Change::In(..) => unreachable!("a family gets what its client settled"),
    }
}

pub fn scan(
    content: &Content,
    from: Option<KeyNo>,
    to: Option<KeyNo>,
    backward: bool,
    most: u32,
) -> Vec<Entry> {
    let inside = |k: &[u8]| {
        from.is_none_or(|from| k >= &key(from)[..]) && to.is_none_or(|to| k < &key(to)[..])
    };
    let mut entries: Vec<Entry> =
        content.iter().filter(|(k, _)| inside(k)).map(|(k, v)| (k.clone(), v.clone())).collect();
    if backward {
        entries.reverse();
    }
    entries.truncate(most as usize);
    entries
}

pub fn walk(content: &Content, at: &mut Option<Vec<u8>>, moves: &[Move]) -> Vec<Option<Entry>> {
    let mut places = Vec::new();
    for step in moves {
        let key_of = |found: Option<(&Vec<u8>, &Vec<u8>)>| found.map(|(k, _)| k.clone());
        *at = match (step, &*at) {
            (Move::First, _) => key_of(content.first_key_value()),
            (Move::Last, _) => key_of(content.last_key_value()),
            (Move::Seek(k), _) => key_of(content.range(key(*k)..).next()),
            (Move::SeekForPrev(k), _) => key_of(content.range(..=key(*k)).next_back()),
            (_, None) => None,
            (Move::Next, Some(k)) => {
                key_of(content.range((Bound::Excluded(k.clone()), Bound::Unbounded)).next())
            }
            (Move::Prev, Some(k)) => key_of(content.range(..k.clone()).next_back()),
        };
        places.push(at.as_ref().map(|k| (k.clone(), content[k].clone())));
    }
    places
}
