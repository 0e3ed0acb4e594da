//! What the database should hold: a map, and its sum at every write.
//!
//! A state of the database is known by its *sum*: the sum of a 64-bit hash of each entry. It is
//! kept up with each write, so the content after any write is known without keeping it, and what
//! a scan of a recovered database adds up to says after which write it stands.

use std::collections::BTreeMap;

use lithify_env::sync::Arc;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// Keys and values.
pub type Map = BTreeMap<Vec<u8>, Arc<[u8]>>;

/// One change of the map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A key gets a value.
    Put(Vec<u8>, Arc<[u8]>),
    /// A key goes.
    Delete(Vec<u8>),
    /// A key goes that was put once since it went before.
    SingleDelete(Vec<u8>),
    /// A comma and an operand go to the end of a key's value; without one the operand is the value.
    Merge(Vec<u8>, Arc<[u8]>),
    /// The keys from the first on that are below the second go.
    DeleteRange(Vec<u8>, Vec<u8>),
}

/// The hash of an entry.
pub fn entry_sum(key: &[u8], value: &[u8]) -> u64 {
    xxh3_64_with_seed(value, xxh3_64(key))
}

/// The map as it is now.
#[derive(Clone, Debug, Default)]
pub struct Model {
    map: Arc<Map>,
    sum: u64,
}

impl Model {
    /// A model that holds `map`.
    pub fn new(map: Map) -> Model {
        let sums = map.iter().map(|(k, v)| entry_sum(k, v));
        let sum = sums.fold(0, u64::wrapping_add);
        Model { map: Arc::new(map), sum }
    }

    /// The map; cheap to hold on to.
    pub fn map(&self) -> &Arc<Map> {
        &self.map
    }

    /// The sum over all entries.
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// Does `change`.
    pub fn apply(&mut self, change: &Change) {
        let map = Arc::make_mut(&mut self.map);
        match change {
            Change::Put(key, value) => {
                self.sum = self.sum.wrapping_add(entry_sum(key, value));
                if let Some(old) = map.insert(key.clone(), value.clone()) {
                    self.sum = self.sum.wrapping_sub(entry_sum(key, &old));
                }
            }
            Change::Delete(key) | Change::SingleDelete(key) => {
                if let Some(old) = map.remove(key) {
                    self.sum = self.sum.wrapping_sub(entry_sum(key, &old));
                }
            }
            Change::Merge(key, operand) => {
                let value = match map.get(key) {
                    Some(old) => [&**old, b",", &**operand].concat().into(),
                    None => operand.clone(),
                };
                self.apply(&Change::Put(key.clone(), value));
            }
            Change::DeleteRange(from, to) => {
                let gone: Vec<Vec<u8>> =
                    map.range(from.clone()..to.clone()).map(|(k, _)| k.clone()).collect();
                gone.into_iter().for_each(|key| self.apply(&Change::Delete(key)));
            }
        }
    }
}

/// What happened in the order of writes, and where in the log of the disk: what a crash at any
/// place of that log may leave.
#[derive(Clone, Debug)]
pub struct Journal {
    /// What each write leads to; the first is what was there before.
    states: Vec<State>,
    /// From a position on, everything up to a state survives a power loss.
    durable: Vec<(usize, usize)>,
    /// The same for a kill of the program alone.
    written: Vec<(usize, usize)>,
}

#[derive(Clone, Copy, Debug)]
struct State {
    /// The sum after it.
    sum: u64,
    /// Position at which it was begun.
    begun: usize,
    /// Position from which on it must never be seen: the database said that it is not there.
    gone: usize,
}

impl Journal {
    /// A journal that begins with content of this sum, which is durable.
    pub fn new(sum: u64) -> Journal {
        let first = State { sum, begun: 0, gone: usize::MAX };
        Journal { states: vec![first], durable: vec![(0, 0)], written: vec![(0, 0)] }
    }

    /// A write was begun at `position` that leads to `sum`.
    pub fn begun(&mut self, sum: u64, position: usize) {
        self.states.push(State { sum, begun: position, gone: usize::MAX });
    }

    /// The write begun last is not there, and never will be.
    pub fn refused(&mut self, position: usize) {
        self.refused_nth(self.writes(), position);
    }

    /// The same for write number `n`, counted from 1.
    pub fn refused_nth(&mut self, n: usize, position: usize) {
        if let Some(state) = self.states.get_mut(n) {
            state.gone = position;
        }
    }

    /// Whether write number `n`, counted from 1, was refused.
    pub fn is_refused(&self, n: usize) -> bool {
        self.states.get(n).is_some_and(|s| s.gone != usize::MAX)
    }

    /// At `position`, everything so far is known to survive a power loss.
    pub fn synced(&mut self, position: usize) {
        self.durable.push((position, self.last()));
        self.handed_over(position);
    }

    /// At `position`, everything so far is known to survive a kill of the program.
    pub fn handed_over(&mut self, position: usize) {
        self.written.push((position, self.last()));
    }

    /// At `position`, everything up to write number `state` is known to survive a power loss.
    /// Positions do not fall from call to call.
    pub fn durable_at(&mut self, position: usize, state: usize) {
        note(&mut self.durable, position, state);
        self.written_at(position, state);
    }

    /// The same for a kill of the program.
    pub fn written_at(&mut self, position: usize, state: usize) {
        note(&mut self.written, position, state);
    }

    /// The last write that is there.
    fn last(&self) -> usize {
        self.states.iter().rposition(|s| s.gone == usize::MAX).unwrap_or(0)
    }

    /// Writes begun.
    pub fn writes(&self) -> usize {
        self.states.len() - 1
    }

    /// The oldest and the newest state that a crash at `position` may leave; `kill` if only the
    /// program died.
    pub fn bounds(&self, position: usize, kill: bool) -> (usize, usize) {
        let known = if kill { &self.written } else { &self.durable };
        let least = known.iter().rev().find(|(at, _)| *at <= position);
        let most = self.states.iter().rposition(|s| s.begun <= position);
        (least.map_or(0, |k| k.1), most.unwrap_or(0))
    }

    /// Which of the states that a crash at `position` may leave has this sum, the newest of them.
    pub fn find(&self, position: usize, kill: bool, sum: u64) -> Option<usize> {
        let (least, most) = self.bounds(position, kill);
        let may = |s: &State| s.sum == sum && position <= s.gone;
        (least..=most).rev().find(|&i| may(&self.states[i]))
    }

    /// Which state at all has this sum.
    pub fn find_anywhere(&self, sum: u64) -> Option<usize> {
        self.states.iter().rposition(|s| s.sum == sum)
    }
}

/// What is known at a later position is no less than before.
fn note(known: &mut Vec<(usize, usize)>, position: usize, state: usize) {
    let before = known.last().map_or(0, |k| k.1);
    known.push((position, state.max(before)));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(key: &str, value: &str) -> Change {
        Change::Put(key.into(), value.as_bytes().into())
    }

    #[test]
    fn sums_follow_the_map() {
        let mut model = Model::default();
        for change in [
            put("a", "1"),
            put("b", "2"),
            put("a", "3"),
            Change::Delete(b"x".to_vec()),
            put("c", "4"),
            Change::Merge(b"c".to_vec(), b"5"[..].into()),
            Change::Merge(b"b".to_vec(), b"6"[..].into()),
            Change::DeleteRange(b"a".to_vec(), b"b".to_vec()),
        ] {
            model.apply(&change);
            assert_eq!(model.sum(), Model::new(Map::clone(model.map())).sum());
        }
        assert_eq!(model.map().len(), 2);
        assert_eq!(*model.map()[&b"c"[..]], b"4,5"[..]);
        assert_ne!(entry_sum(b"ab", b"c"), entry_sum(b"a", b"bc"));
    }

    #[test]
    fn a_crash_lies_between_what_is_durable_and_what_was_begun() {
        let mut journal = Journal::new(7);
        journal.begun(10, 3);
        journal.handed_over(5);
        journal.begun(20, 6);
        journal.synced(9);
        assert_eq!(journal.bounds(2, false), (0, 0));
        assert_eq!(journal.bounds(5, false), (0, 1));
        assert_eq!(journal.bounds(5, true), (1, 1));
        assert_eq!(journal.bounds(8, false), (0, 2));
        assert_eq!(journal.bounds(9, false), (2, 2));
        assert_eq!(journal.find(8, false, 10), Some(1));
        assert_eq!(journal.find(9, false, 10), None);
        journal.begun(30, 11);
        journal.refused(14);
        journal.begun(40, 15);
        assert_eq!(journal.find(13, false, 30), Some(3));
        assert_eq!(journal.find(16, false, 30), None);
        assert_eq!(journal.find(16, false, 40), Some(4));
    }
}
