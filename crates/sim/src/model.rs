//! What the database should hold: a map for each column family, and the sum of all at every write.
//!
//! A state of the database is known by its *sum*: the sum of a 64-bit hash of each entry and of
//! each family's name. It is kept up with each write, so the content after any write is known without
//! keeping it, and what a scan of a recovered database adds up to says after which write it stands. As
//! the sum is over all families, a batch that is there in one family and not in another is no state.
//!
//! Values of some families expire, so a state has a sum for each second (`sums`).

mod sums;

use std::collections::BTreeMap;

use lithify_env::sync::Arc;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use sums::{LASTS, written_at};
pub use sums::{Lifetimes, Seen, Sums, shows_until};

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
    lifetimes: Arc<Lifetimes>,
    sums: Sums,
}

impl Model {
    /// A model that holds `map` in its default family, and others.
    pub fn of(map: Map, families: BTreeMap<String, Map>, lifetimes: &Arc<Lifetimes>) -> Model {
        let mut sums = Sums::default();
        count_all(&mut sums, 0, &map, lifetimes.get(DEFAULT), |sum| sum);
        for (name, map) in &families {
            sums.add(LASTS, seed_of(name));
            count_all(&mut sums, seed_of(name), map, lifetimes.get(name), |sum| sum);
        }
        let families = families.into_iter().map(|(name, map)| (name, Arc::new(map))).collect();
        Model { map: Arc::new(map), families, lifetimes: lifetimes.clone(), sums }
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
            DEFAULT => Model::of(map, all, &self.lifetimes),
            name => {
                all.insert(name.to_owned(), map);
                Model::of(Map::clone(&self.map), all, &self.lifetimes)
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

    /// The entries of all families, those that have expired included.
    pub fn entries(&self) -> usize {
        self.map.len() + self.families.values().map(|map| map.len()).sum::<usize>()
    }

    /// The sums over all entries.
    pub fn sums(&self) -> &Sums {
        &self.sums
    }

    /// Does `change`; one in a family that is not there does nothing. Values of families with a lifetime
    /// have their times.
    pub fn apply(&mut self, change: &Change) {
        let sums = &mut self.sums;
        match change {
            Change::In(name, change) => {
                let Some(map) = self.families.get_mut(name) else { return };
                let (seed, lifetime) = (seed_of(name), self.lifetimes.get(name).copied());
                Place { map: Arc::make_mut(map), seed, lifetime, sums }.change(change);
            }
            Change::Create(name) => {
                if !self.families.contains_key(name) {
                    self.families.insert(name.clone(), Arc::default());
                    sums.add(LASTS, seed_of(name));
                }
            }
            Change::Drop(name) => {
                let Some(map) = self.families.remove(name) else { return };
                let seed = seed_of(name);
                sums.add(LASTS, seed.wrapping_neg());
                count_all(sums, seed, &map, self.lifetimes.get(name), u64::wrapping_neg);
            }
            change => {
                let (map, lifetime) = (Arc::make_mut(&mut self.map), self.lifetimes.get(DEFAULT));
                Place { map, seed: 0, lifetime: lifetime.copied(), sums }.change(change);
            }
        }
    }
}

/// Adds all of a family's entries, as `sign` makes their sums.
fn count_all(sums: &mut Sums, seed: u64, map: &Map, lifetime: Option<&u64>, sign: fn(u64) -> u64) {
    for (key, value) in map {
        let until = lifetime.map_or(LASTS, |lifetime| shows_until(value, *lifetime));
        sums.add(until, sign(sum_in(seed, key, value)));
    }
}

/// The map of one family, and what it is part of.
struct Place<'a> {
    map: &'a mut Map,
    seed: u64,
    lifetime: Option<u64>,
    sums: &'a mut Sums,
}

impl Place<'_> {
    fn until(&self, value: &[u8]) -> u64 {
        self.lifetime.map_or(LASTS, |lifetime| shows_until(value, lifetime))
    }

    fn remove(&mut self, key: &[u8]) {
        if let Some(old) = self.map.remove(key) {
            let gone = sum_in(self.seed, key, &old).wrapping_neg();
            self.sums.add(self.until(&old), gone);
        }
    }

    fn put(&mut self, key: &[u8], value: &Arc<[u8]>) {
        self.remove(key);
        self.map.insert(key.to_vec(), value.clone());
        self.sums.add(self.until(value), sum_in(self.seed, key, value));
    }

    fn change(&mut self, change: &Change) {
        match change {
            Change::Put(key, value) => self.put(key, value),
            Change::Delete(key) | Change::SingleDelete(key) => self.remove(key),
            Change::Merge(key, operand) => {
                let value = self.merged(self.map.get(key), operand);
                self.put(key, &value);
            }
            Change::DeleteRange(from, to) => {
                let range = self.map.range(from.clone()..to.clone());
                let gone: Vec<Vec<u8>> = range.map(|(k, _)| k.clone()).collect();
                gone.iter().for_each(|key| self.remove(key));
            }
            Change::In(..) | Change::Create(_) | Change::Drop(_) => {
                unreachable!("a family holds no families")
            }
        }
    }

    /// What `operand` makes of `old`, which is nothing if it had expired by then.
    fn merged(&self, old: Option<&Arc<[u8]>>, operand: &Arc<[u8]>) -> Arc<[u8]> {
        let Some(old) = old else { return operand.clone() };
        if self.lifetime.is_none() {
            return [&**old, b",", operand].concat().into();
        }
        if self.until(old) < written_at(operand).into() {
            return operand.clone();
        }
        let time = written_at(old).max(written_at(operand)).to_le_bytes();
        let bare = |value: &Arc<[u8]>| value[..value.len() - time.len()].to_vec();
        [&*bare(old), b",", &*bare(operand), &time].concat().into()
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
    /// The second that a clock showed at a position.
    clock: Vec<(usize, u64)>,
}

/// What is to be expected after a crash; equal, for one life, only if the same states may be left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Expected {
    /// The oldest state.
    pub least: usize,
    /// The newest one.
    pub most: usize,
    /// How many writes are never to be seen any more.
    pub gone: usize,
}

#[derive(Clone, Debug)]
struct State {
    /// The sums after it.
    sums: Sums,
    /// Position at which it was begun.
    begun: usize,
    /// Position from which on it must never be seen: the database said that it is not there.
    gone: usize,
}

impl Journal {
    /// A journal that begins with content of these sums, which is durable.
    pub fn new(sums: &Sums) -> Journal {
        let first = State { sums: sums.clone(), begun: 0, gone: usize::MAX };
        Journal {
            states: vec![first],
            durable: vec![(0, 0)],
            written: vec![(0, 0)],
            clock: Vec::new(),
        }
    }

    /// A write was begun at `position` that leads to `sums`.
    pub fn begun(&mut self, sums: &Sums, position: usize) {
        self.states.push(State { sums: sums.clone(), begun: position, gone: usize::MAX });
    }

    /// At `position`, the clock shows `second`.
    pub fn tick(&mut self, position: usize, second: u64) {
        self.clock.push((position, second));
    }

    /// The second at which a crash at `position` comes, if clocks were looked at: not before anything that
    /// is known of that position, and so, between two looks, that of the later one.
    pub fn second_of(&self, position: usize) -> Option<u64> {
        let next = self.clock.partition_point(|(at, _)| *at <= position);
        let before = next.checked_sub(1).map(|i| self.clock[i]);
        let there = before.filter(|(at, _)| *at == position);
        there.or(self.clock.get(next).copied()).or(before).map(|(_, second)| second)
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
        self.last_of(self.writes())
    }

    /// The last of the first `count` writes that is there.
    pub fn last_of(&self, count: usize) -> usize {
        self.states[..=count].iter().rposition(|s| s.gone == usize::MAX).unwrap_or(0)
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

    /// Which states a crash at `position` may leave: as `bounds` says, and not those that are gone.
    pub fn expected(&self, position: usize, kill: bool) -> Expected {
        let (least, most) = self.bounds(position, kill);
        let gone = self.states.iter().filter(|s| s.gone <= position).count();
        Expected { least, most, gone }
    }

    /// Which of the states that a crash at `position` may leave looks as it was `seen`, the newest of
    /// them.
    pub fn find(&self, position: usize, kill: bool, seen: Seen) -> Option<usize> {
        let (least, most) = self.bounds(position, kill);
        let may = |s: &State| seen.is(&s.sums) && position < s.gone;
        (least..=most).rev().find(|&i| may(&self.states[i]))
    }

    /// The first state from number `from` on that looks like this and was never refused.
    pub fn find_since(&self, from: usize, seen: Seen) -> Option<usize> {
        let is = |s: &State| seen.is(&s.sums) && s.gone == usize::MAX;
        (from..self.states.len()).find(|&i| is(&self.states[i]))
    }

    /// Which state at all looks like this.
    pub fn find_anywhere(&self, seen: Seen) -> Option<usize> {
        self.states.iter().rposition(|s| seen.is(&s.sums))
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

    /// A value of a family that has times.
    fn timed(value: &str, second: u32) -> Arc<[u8]> {
        [value.as_bytes(), &second.to_le_bytes()].concat().into()
    }

    #[test]
    fn sums_follow_the_map() {
        let lifetimes = Arc::new(Lifetimes::from([("t".to_owned(), 10), ("g".to_owned(), 0)]));
        let mut model = Model::of(Map::new(), BTreeMap::new(), &lifetimes);
        let within = |name: &str, change| Change::In(name.to_owned(), Box::new(change));
        for change in [
            put("a", "1"),
            put("b", "2"),
            put("a", "3"),
            Change::Delete(b"x".to_vec()),
            put("c", "4"),
            Change::Merge(b"c".to_vec(), b"5"[..].into()),
            Change::Merge(b"b".to_vec(), b"6"[..].into()),
            Change::DeleteRange(b"a".to_vec(), b"b".to_vec()),
            within("f", put("a", "lost")),
            Change::Create("f".to_owned()),
            Change::Create("g".to_owned()),
            within("f", put("a", "1")),
            within("g", Change::Put(b"b".to_vec(), timed("2", 70))),
            within("g", Change::Merge(b"b".to_vec(), timed("7", 90))),
            Change::Create("t".to_owned()),
            within("t", Change::Put(b"a".to_vec(), timed("1", 20))),
            within("t", Change::Put(b"b".to_vec(), timed("1", 20))),
            within("t", Change::Merge(b"b".to_vec(), timed("2", 30))),
            within("t", Change::Put(b"c".to_vec(), timed("1", 20))),
            within("t", Change::Merge(b"c".to_vec(), timed("2", 31))),
            within("f", Change::DeleteRange(b"a".to_vec(), b"b".to_vec())),
            Change::Create("f".to_owned()),
            Change::Drop("f".to_owned()),
            Change::Drop("f".to_owned()),
        ] {
            model.apply(&change);
            let others = model.others().map(|name| (name.to_owned(), model.map_of(name)));
            let others = others.map(|(name, map)| (name, Map::clone(&map))).collect();
            let again = Model::of(Map::clone(model.map()), others, &lifetimes);
            assert_eq!(model.sums(), again.sums());
        }
        assert_eq!(model.others().collect::<Vec<_>>(), ["g", "t"]);
        assert_eq!(model.map_of("g")[&b"b"[..]], timed("2,7", 90));
        let expiring = model.map_of("t");
        assert_eq!(expiring[&b"b"[..]], timed("1,2", 30));
        assert_eq!(expiring[&b"c"[..]], timed("2", 31));
        assert_eq!((model.map().len(), model.entries()), (2, 6));
        let at = |second| model.sums().at(second);
        assert_eq!(at(0), at(30));
        assert!(at(30) != at(31) && at(31) == at(40) && at(40) != at(41) && at(41) != at(42));
        model.apply(&Change::Drop("t".to_owned()));
        assert_eq!(model.sums().at(0), model.sums().at(99));
        assert_eq!(*model.map()[&b"c"[..]], b"4,5"[..]);
        assert_ne!(entry_sum(b"ab", b"c"), entry_sum(b"a", b"bc"));
    }

    #[test]
    fn a_crash_lies_between_what_is_durable_and_what_was_begun() {
        let sums = |sum| {
            let mut sums = Sums::default();
            sums.add(LASTS, sum);
            sums
        };
        let seen = |sum| Seen { sum, second: 0 };
        let mut journal = Journal::new(&sums(7));
        journal.begun(&sums(10), 3);
        journal.handed_over(5);
        journal.begun(&sums(20), 6);
        journal.synced(9);
        assert_eq!(journal.second_of(3), None);
        for (position, second) in [(0, 49), (0, 50), (4, 52), (8, 53)] {
            journal.tick(position, second);
        }
        assert_eq!([0, 1, 4, 5, 9].map(|at| journal.second_of(at).unwrap()), [50, 52, 52, 53, 53]);
        assert_eq!(journal.bounds(2, false), (0, 0));
        assert_eq!(journal.bounds(5, false), (0, 1));
        assert_eq!(journal.bounds(5, true), (1, 1));
        assert_eq!(journal.bounds(8, false), (0, 2));
        assert_eq!(journal.bounds(9, false), (2, 2));
        assert_eq!(journal.find(8, false, seen(10)), Some(1));
        assert_eq!(journal.find(9, false, seen(10)), None);
        journal.begun(&sums(30), 11);
        journal.refused(14);
        journal.begun(&sums(40), 15);
        assert_eq!(journal.find(13, false, seen(30)), Some(3));
        assert_eq!(journal.find(16, false, seen(30)), None);
        assert_eq!(journal.find(16, false, seen(40)), Some(4));
        assert_eq!(journal.find_since(2, seen(20)), Some(2));
        assert_eq!(
            (journal.find_since(3, seen(20)), journal.find_since(0, seen(30))),
            (None, None)
        );
    }
}
