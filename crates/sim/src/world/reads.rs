//! Reads of every kind, each held against a map.
//!
//! Keeps: a scan is looked at from the front and from the back; where it ends, it says whether an
//! error ended it.

use std::borrow::Cow;

use lithify::{Db, Error, ReadOptions, Snapshot};
use lithify_env::Random;
use lithify_env::sync::Arc;

use super::timed::{Scan, Tree};
use super::{Held, View, Violation, World, failed, key};
use crate::model::{Change, DEFAULT, Map, entry_sum};

impl World {
    /// Single reads of a few keys of each family, found or not.
    pub(super) fn sample(&self) -> Result<(), Violation> {
        for family in [DEFAULT].into_iter().chain(self.model.others()) {
            let map = self.model.map_of(family);
            let mut random = Random::from_seed(map.len() as u64);
            for _ in 0..6 {
                let key = key(random.below(u64::from(self.shape.keys)) as u32);
                self.get(family, &key, &map, None)?;
            }
        }
        Ok(())
    }

    pub(super) fn get(
        &self,
        family: &str,
        key: &[u8],
        map: &Map,
        at: Option<&Snapshot>,
    ) -> Result<(), Violation> {
        let options = at.map_or_else(ReadOptions::default, ReadOptions::at);
        let tree = self.reader(family)?;
        let (found, second) = self.at_one_second(|| tree.get(key, &options));
        let found = match found {
            Ok(found) => found,
            Err(e) => return self.excuse("a read", &e),
        };
        let shows = self.shows(family, map.get(key), second);
        let expected = shows.map(|value| self.without_time(family, value));
        if found.as_deref() != expected {
            return Violation::new(format!(
                "{} reads {}, and should read {}",
                key.escape_ascii(),
                brief(found.as_deref()),
                brief(expected)
            ));
        }
        Ok(())
    }

    pub(super) fn scan(&mut self) -> Result<(), Violation> {
        let change = self.any_range();
        let Change::DeleteRange(from, to) = change else { unreachable!("a range") };
        let options = ReadOptions::default().with_bounds(Some(&from), Some(&to));
        let family = self.any_family();
        let map = self.model.map_of(&family);
        let expected: Map = map.range(from..to).map(|(k, v)| (k.clone(), v.clone())).collect();
        self.view(&family, &options, &expected, "a scan")
    }

    /// Scans what `options` show of a family.
    pub(super) fn view(
        &self,
        family: &str,
        options: &ReadOptions,
        map: &Map,
        what: &str,
    ) -> Result<(), Violation> {
        match self.scan_of(family, options) {
            Ok((mut scan, second)) => {
                let map = self.showing(family, map, second);
                self.excused(compare(&mut scan, &map, what))
            }
            Err(e) => self.excuse(what, &e),
        }
    }

    /// A scan that ended with an error.
    pub(super) fn excused(&self, scan: Result<(), Wrong>) -> Result<(), Violation> {
        match scan {
            Ok(()) => Ok(()),
            Err(Wrong::Shows(what)) => Violation::new(what),
            Err(Wrong::Fails(what, e)) => self.excuse(&what, &e),
        }
    }

    /// Takes a snapshot or an iterator, or lets one go.
    pub(super) fn hold(&mut self) -> Result<(), Violation> {
        if self.views.len() >= 4 || (!self.views.is_empty() && self.dice.choose(3, "hold") == 2) {
            let at = self.dice.choose(self.views.len() as u32, "let go") as usize;
            drop(self.views.remove(at));
            return Ok(());
        }
        let family = self.any_family();
        match self.dice.choose(3, "what") {
            2 => self.hold_iterator(family),
            _ => {
                let what = Held::Snapshot(self.db().snapshot());
                self.views.push(View { map: self.model.map_of(&family), family, what });
                Ok(())
            }
        }
    }

    /// Holds on to an iterator, which shows what showed when it was made.
    pub(super) fn hold_iterator(&mut self, family: String) -> Result<(), Violation> {
        let (scan, second) = match self.scan_of(&family, &ReadOptions::default()) {
            Ok(scan) => scan,
            Err(e) => return self.excuse("an iterator", &e),
        };
        let all = self.model.map_of(&family);
        let map = match self.showing(&family, &all, second) {
            Cow::Borrowed(_) => all.clone(),
            Cow::Owned(showing) => Arc::new(showing),
        };
        self.views.push(View { map, family, what: Held::Iterator(Box::new(scan)) });
        Ok(())
    }

    /// Looks through what is held: it must show what it showed.
    pub(super) fn look(&mut self) -> Result<(), Violation> {
        if self.views.is_empty() {
            return self.hold();
        }
        let at = self.dice.choose(self.views.len() as u32, "view") as usize;
        let mut view = self.views.swap_remove(at);
        let seen = match &mut view.what {
            Held::Iterator(iter) => self.excused(compare(iter, &view.map, "a held iterator")),
            Held::Snapshot(snapshot) if self.dice.choose(2, "how") == 0 => {
                self.get(&view.family, &self.any_key(), &view.map, Some(snapshot))
            }
            Held::Snapshot(snapshot) => {
                let options = ReadOptions::at(snapshot);
                self.view(&view.family, &options, &view.map, "a scan at a snapshot")
            }
        };
        self.views.push(view);
        seen
    }
}

fn brief(value: Option<&[u8]>) -> String {
    match value {
        None => "nothing".to_owned(),
        Some(v) => format!("{} bytes (sum {:016x})", v.len(), entry_sum(b"", v)),
    }
}

/// Why a scan is not what it should be.
pub(super) enum Wrong {
    /// It shows something else.
    Shows(String),
    /// It ended with an error.
    Fails(String, Error),
}

/// Everything in `db`, read from the front and from the back.
///
/// # Errors
/// A read that fails, keys out of order, or two ways that differ.
pub fn whole(db: &Db) -> Result<Map, Violation> {
    db.iter().map_err(|e| failed("an iterator", &e)).and_then(|iter| through(Scan::Plain(iter)))
}

/// The same of a family as its reader sees it.
pub(super) fn whole_tree(tree: &Tree) -> Result<Map, Violation> {
    tree.scan(&ReadOptions::default()).map_err(|e| failed("an iterator", &e)).and_then(through)
}

fn through(mut iter: Scan) -> Result<Map, Violation> {
    let strict = |wrong| match wrong {
        Wrong::Shows(what) => Violation(what),
        Wrong::Fails(what, e) => failed(&what, &e),
    };
    let mut map = Map::new();
    iter.seek_to_first();
    while iter.valid() {
        if map.last_key_value().is_some_and(|(last, _)| last.as_slice() >= iter.key()) {
            return Violation::new(format!("{} is out of order", iter.key().escape_ascii()));
        }
        map.insert(iter.key().to_vec(), (&*iter.value()).into());
        iter.next();
    }
    iter.status().map_err(|e| failed("a scan", &e))?;
    backward(&mut iter, &map, "a scan").map_err(strict)?;
    Ok(map)
}

/// Holds `iter` against `map`, from the front and from the back.
pub(super) fn compare(iter: &mut Scan, map: &Map, what: &str) -> Result<(), Wrong> {
    iter.seek_to_first();
    for expected in map.iter().map(Some).chain([None]) {
        meet(iter, expected, what)?;
        iter.next();
    }
    backward(iter, map, what)
}

fn backward(iter: &mut Scan, map: &Map, what: &str) -> Result<(), Wrong> {
    iter.seek_to_last();
    for expected in map.iter().rev().map(Some).chain([None]) {
        meet(iter, expected, what)?;
        iter.prev();
    }
    Ok(())
}

/// Holds where `iter` is against where it should be.
pub(super) fn meet(
    iter: &Scan,
    expected: Option<(&Vec<u8>, &Arc<[u8]>)>,
    what: &str,
) -> Result<(), Wrong> {
    let value = iter.value();
    let found = iter.valid().then_some((iter.key(), &*value));
    let expected = expected.map(|(k, v)| (k.as_slice(), &**v));
    // An end may be an error, and says so.
    if found.is_none()
        && let Err(e) = iter.status()
    {
        return Err(Wrong::Fails(what.to_owned(), e));
    }
    if found == expected {
        return Ok(());
    }
    let (found, expected) = (entry(found), entry(expected));
    Err(Wrong::Shows(format!("{what} shows {found}, and should show {expected}")))
}

fn entry(found: Option<(&[u8], &[u8])>) -> String {
    found.map_or_else(
        || "the end".to_owned(),
        |(key, value)| format!("{} with {}", key.escape_ascii(), brief(Some(value))),
    )
}
