//! Who carries out a plan: a map, which is what the database means, or anything that should answer
//! like one.

use std::collections::BTreeMap;
use std::ops::Bound;

use crate::plan::{Change, KeyNo, Move, Op, key, value};

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
}

impl Answer {
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
        };
        format!("[{}]", parts.join(", "))
    }
}

/// Whoever carries out operations.
pub trait Subject {
    /// Carries out one.
    ///
    /// # Errors
    /// What failed: nothing should.
    fn apply(&mut self, op: &Op) -> Result<Answer, String>;
}

type Content = BTreeMap<Vec<u8>, Vec<u8>>;

/// The database that is nothing but a map.
#[derive(Default)]
pub struct Map {
    now: Content,
    snapshots: Vec<Content>,
    iterators: Vec<(Content, Option<Vec<u8>>)>,
}

/// The view that a number names among so many.
pub fn named(which: u32, count: usize) -> Option<usize> {
    (which as usize).checked_rem(count)
}

impl Subject for Map {
    fn apply(&mut self, op: &Op) -> Result<Answer, String> {
        Ok(match op {
            Op::Write(changes) => {
                changes.iter().for_each(|change| apply(&mut self.now, change));
                Answer::Nothing
            }
            Op::Get(k) => Answer::Values(vec![self.now.get(&key(*k)).cloned()]),
            Op::MultiGet(keys) => {
                Answer::Values(keys.iter().map(|k| self.now.get(&key(*k)).cloned()).collect())
            }
            Op::Scan { from, to, backward, most } => {
                Answer::Entries(scan(&self.now, *from, *to, *backward, *most))
            }
            Op::Walk(moves) => Answer::Places(walk(&self.now, &mut None, moves)),
            Op::Snapshot => {
                self.snapshots.push(self.now.clone());
                Answer::Nothing
            }
            Op::GetAt(which, k) => match named(*which, self.snapshots.len()) {
                Some(at) => Answer::Values(vec![self.snapshots[at].get(&key(*k)).cloned()]),
                None => Answer::Nothing,
            },
            Op::ScanAt(which) => match named(*which, self.snapshots.len()) {
                Some(at) => Answer::Entries(scan(&self.snapshots[at], None, None, false, u32::MAX)),
                None => Answer::Nothing,
            },
            Op::ForgetSnapshot(which) => {
                named(*which, self.snapshots.len()).map(|at| self.snapshots.remove(at));
                Answer::Nothing
            }
            Op::Hold(k) => {
                let mut at = None;
                let place = walk(&self.now, &mut at, &[Move::Seek(*k)]);
                self.iterators.push((self.now.clone(), at));
                Answer::Places(place)
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
                Answer::Entries(scan(&self.now, None, None, false, u32::MAX))
            }
            Op::Reopen => {
                self.snapshots.clear();
                self.iterators.clear();
                Answer::Nothing
            }
            Op::Flush | Op::Compact(..) | Op::Settle | Op::Sync => Answer::Nothing,
        })
    }
}

fn apply(content: &mut Content, change: &Change) {
    match change {
        Change::Put(k, v) => drop(content.insert(key(*k), value(*v))),
        Change::Delete(k) => drop(content.remove(&key(*k))),
        Change::DeleteRange(from, to) => {
            let (from, to) = (key(*from), key(*to));
            content.retain(|k, _| *k < from || *k >= to);
        }
    }
}

fn scan(
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

fn walk(content: &Content, at: &mut Option<Vec<u8>>, moves: &[Move]) -> Vec<Option<Entry>> {
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
