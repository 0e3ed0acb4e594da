//! What the database should hold: a map for each column family, and the sum of all at every write.
//!
//! A state of the database is known by its *sum*: the sum of a 64-bit hash of each entry and of
//! each family's name. It is kept up with each write, so the content after any write is known without
//! keeping it, and what a scan of a recovered database adds up to says after which write it stands. As
//! the sum is over all families, a batch that is there in one family and not in another is no state.

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
    /// The same in a column family other than the default one.
    In(String, Box<Change>),
    /// A column family is made.
    Create(String),
    /// A column family goes, with all it holds.
    Drop(String),
}

/// Name of the family that is always there.
pub const DEFAULT: &str = "default";

/// The hash of an entry.
pub fn entry_sum(key: &[u8], value: &[u8]) -> u64 {
    sum_in(0, key, value)
}

/// The hash of an entry of the family with this seed; that of the default one is 0.
fn sum_in(family: u64, key: &[u8], value: &[u8]) -> u64 {
    xxh3_64_with_seed(value, xxh3_64_with_seed(key, family))
}

/// The seed of a family's entries, and the hash of its being there.
fn seed_of(family: &str) -> u64 {
    xxh3_64(family.as_bytes())
}

/// The maps as they are now.
#[derive(Clone, Debug, Default)]
pub struct Model {
    map: Arc<Map>,
    /// Those of the other families.
    families: BTreeMap<String, Arc<Map>>,
    sum: u64,
}

impl Model {
    /// A model that holds `map` in its default family, and no other.
    pub fn new(map: Map) -> Model {
        Model::of(map, BTreeMap::new())
    }

    /// A model that holds `map` in its default family, and others.
    pub fn of(map: Map, families: BTreeMap<String, Map>) -> Model {
        let sum_of = |seed, map: &Map| {
            map.iter().map(|(k, v)| sum_in(seed, k, v)).fold(seed, u64::wrapping_add)
        };
        let others = families.iter().map(|(name, map)| sum_of(seed_of(name), map));
        let sum = others.fold(sum_of(0, &map), u64::wrapping_add);
        let families = families.into_iter().map(|(name, map)| (name, Arc::new(map))).collect();
        Model { map: Arc::new(map), families, sum }
    }

    /// The default family's map; cheap to hold on to.
    pub fn map(&self) -> &Arc<Map> {
        &self.map
    }

    /// The map of the family with this name; that of one that is not there is empty.
    pub fn map_of(&self, family: &str) -> Arc<Map> {
        match family {
            DEFAULT => self.map.clone(),
            name => self.families.get(name).cloned().unwrap_or_default(),
        }
    }

    /// The same model with another map for one of its families.
    pub fn with_map(&self, family: &str, map: Map) -> Model {
        let mut all: BTreeMap<String, Map> =
            self.families.iter().map(|(name, map)| (name.clone(), Map::clone(map))).collect();
        match family {
            DEFAULT => Model::of(map, all),
            name => {
                all.insert(name.to_owned(), map);
                Model::of(Map::clone(&self.map), all)
            }
        }
    }

    /// The names of the families other than the default one.
    pub fn others(&self) -> impl ExactSizeIterator<Item = &str> {
        self.families.keys().map(String::as_str)
    }

    /// Whether there is a family of this name.
    pub fn has(&self, family: &str) -> bool {
        family == DEFAULT || self.families.contains_key(family)
    }

    /// The entries of all families.
    pub fn entries(&self) -> usize {
        self.map.len() + self.families.values().map(|map| map.len()).sum::<usize>()
    }

    /// The sum over all entries.
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// Does `change`; one in a family that is not there does nothing.
    pub fn apply(&mut self, change: &Change) {
        let grown = match change {
            Change::In(name, change) => {
                let map = self.families.get_mut(name);
                map.map_or(0, |map| change_map(Arc::make_mut(map), seed_of(name), change))
            }
            Change::Create(name) => match self.families.contains_key(name) {
                true => 0,
                false => {
                    self.families.insert(name.clone(), Arc::default());
                    seed_of(name)
                }
            },
            Change::Drop(name) => {
                let seed = seed_of(name);
                let gone = self.families.remove(name).map(|map| {
                    map.iter().map(|(k, v)| sum_in(seed, k, v)).fold(seed, u64::wrapping_add)
                });
                gone.unwrap_or(0).wrapping_neg()
            }
            change => change_map(Arc::make_mut(&mut self.map), 0, change),
        };
        self.sum = self.sum.wrapping_add(grown);
    }
}

/// Does `change` in the map of one family; what its sum grows by.
fn change_map(map: &mut Map, seed: u64, change: &Change) -> u64 {
    match change {
        Change::Put(key, value) => {
            let old = map.insert(key.clone(), value.clone());
            let gone = old.map_or(0, |old| sum_in(seed, key, &old));
            sum_in(seed, key, value).wrapping_sub(gone)
        }
        Change::Delete(key) | Change::SingleDelete(key) => {
            let old = map.remove(key);
            old.map_or(0, |old| sum_in(seed, key, &old).wrapping_neg())
        }
        Change::Merge(key, operand) => {
            let value = match map.get(key) {
                Some(old) => [&**old, b",", &**operand].concat().into(),
                None => operand.clone(),
            };
            change_map(map, seed, &Change::Put(key.clone(), value))
        }
        Change::DeleteRange(from, to) => {
            let gone: Vec<Vec<u8>> =
                map.range(from.clone()..to.clone()).map(|(k, _)| k.clone()).collect();
            let gone = gone.into_iter().map(|key| change_map(map, seed, &Change::Delete(key)));
            gone.fold(0, u64::wrapping_add)
        }
        Change::In(..) | Change::Create(_) | Change::Drop(_) => {
            unreachable!("a family holds no families")
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

    /// The first state from number `from` on that has this sum and was never refused.
    pub fn find_since(&self, from: usize, sum: u64) -> Option<usize> {
        let is = |s: &State| s.sum == sum && s.gone == usize::MAX;
        (from..self.states.len()).find(|&i| is(&self.states[i]))
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
            Change::In("f".to_owned(), Box::new(put("a", "lost"))),
            Change::Create("f".to_owned()),
            Change::Create("g".to_owned()),
            Change::In("f".to_owned(), Box::new(put("a", "1"))),
            Change::In("g".to_owned(), Box::new(put("b", "2"))),
            Change::In("g".to_owned(), Box::new(Change::Merge(b"b".to_vec(), b"7"[..].into()))),
            Change::In("f".to_owned(), Box::new(Change::DeleteRange(b"a".to_vec(), b"b".to_vec()))),
            Change::Create("f".to_owned()),
            Change::Drop("f".to_owned()),
            Change::Drop("f".to_owned()),
        ] {
            model.apply(&change);
            let others = model.others().map(|name| (name.to_owned(), model.map_of(name)));
            let others = others.map(|(name, map)| (name, Map::clone(&map))).collect();
            assert_eq!(model.sum(), Model::of(Map::clone(model.map()), others).sum());
        }
        assert_eq!(model.others().collect::<Vec<_>>(), ["g"]);
        assert_eq!(*model.map_of("g")[&b"b"[..]], b"2,7"[..]);
        assert_eq!((model.map().len(), model.entries()), (2, 3));
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
        assert_eq!(journal.find_since(2, 20), Some(2));
        assert_eq!((journal.find_since(3, 20), journal.find_since(0, 30)), (None, None));
    }
}
