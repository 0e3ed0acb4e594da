//! Column families: making and dropping them, and which of them an operation is about.
//!
//! A family that is made or dropped is an edit of the manifest, at once durable, while writes before it
//! may still be on their way. The journal has all of it in one order, so what was written before is made
//! durable first.
//!
//! Keeps: where a shape has no families, no choice is made about them.

use std::collections::BTreeMap;

use std::time::Duration;

use lithify::{ColumnFamily, ColumnFamilyOptions, Durability, ReadOptions};
use lithify_env::sync::Arc;

use super::reads::{compare, whole_tree};
use super::timed::{Opened, Tree};
use super::{Held, Violation, World, failed};
use crate::model::{Change, DEFAULT, Lifetimes, Map, Model};

/// Names of families that come and go.
pub(super) const NAMES: [&str; 3] = ["plain", "small", "other"];

impl World {
    /// The family of this name, for all but reads and writes: values that expire have times here.
    pub(super) fn tree(&self, family: &str) -> Result<ColumnFamily, Violation> {
        self.db().column_family(family).map_err(|e| failed("a look for a family", &e))
    }

    /// The family of this name, for reads.
    pub(super) fn reader(&self, family: &str) -> Result<Tree, Violation> {
        self.opened().tree(family).map_err(|e| failed("a look for a family", &e))
    }

    /// What the family of this name is opened with.
    pub(super) fn options_of(&self, name: &str) -> ColumnFamilyOptions {
        let options = self.shape.family_options(name);
        let options = match self.shape.lifetimes.get(name) {
            Some(&seconds) => options.ttl(Duration::from_secs(seconds)),
            None => options,
        };
        match self.extractor_of(name) {
            Some(by) => options.prefix_extractor(by),
            None => options,
        }
    }

    /// One of the families that are there.
    pub(super) fn any_family(&self) -> String {
        let others = self.model.others().len() as u32;
        let at = match others {
            0 => 0,
            _ => self.dice.choose(others + 1, "which family") as usize,
        };
        [DEFAULT].into_iter().chain(self.model.others()).nth(at).unwrap_or(DEFAULT).to_owned()
    }

    /// `change` in any of the families.
    pub(super) fn somewhere(&self, change: Change) -> Change {
        within(&self.any_family(), change)
    }

    /// Makes or drops a family, or flushes all.
    pub(super) fn family(&mut self) -> Result<(), Violation> {
        let there: Vec<String> = self.model.others().map(str::to_owned).collect();
        let absent: Vec<&str> =
            NAMES.into_iter().filter(|name| !there.iter().any(|other| other == name)).collect();
        match self.dice.weighted(&[5, 3, 2], "family") {
            0 if !absent.is_empty() => {
                let name = *self.dice.pick(&absent, "name");
                self.create_family(name)
            }
            1 if !there.is_empty() => {
                let name = self.dice.pick(&there, "name").clone();
                self.drop_family(&name)
            }
            _ => {
                for name in there {
                    // What failed before may have ended with a family less.
                    if self.model.has(&name) {
                        self.flush_of(&name)?;
                    }
                }
                self.flush_of(DEFAULT)
            }
        }
    }

    pub(super) fn create_family(&mut self, name: &str) -> Result<(), Violation> {
        if !self.nothing_on_its_way()? {
            return Ok(());
        }
        let options = self.options_of(name);
        let change = Change::Create(name.to_owned());
        self.write_by(vec![change], Durability::Sync, |opened, _, _| opened.create(name, options))
    }

    pub(super) fn drop_family(&mut self, name: &str) -> Result<(), Violation> {
        if !self.nothing_on_its_way()? {
            return Ok(());
        }
        // A snapshot shows nothing of a family that is gone; an iterator goes on.
        let stays =
            |view: &super::View| view.family != name || matches!(view.what, Held::Iterator(_));
        self.views.retain(stays);
        let change = Change::Drop(name.to_owned());
        self.write_by(vec![change], Durability::Sync, |opened, _, _| {
            opened.db().drop_column_family(name)
        })
    }

    /// Makes all writes durable; true if they are.
    fn nothing_on_its_way(&mut self) -> Result<bool, Violation> {
        match self.db().sync() {
            Ok(()) => {
                self.journal.synced(self.fs.position());
                Ok(true)
            }
            Err(e) => self.excuse("a sync", &e).map(|()| false),
        }
    }

    /// Holds all families of `opened` against the model.
    pub(super) fn all_families(&self, opened: &Opened, what: &str) -> Result<(), Violation> {
        let mut names = opened.db().column_families();
        names.sort_unstable();
        let mut expected: Vec<&str> = [DEFAULT].into_iter().chain(self.model.others()).collect();
        expected.sort_unstable();
        if names != expected {
            return Violation::new(format!(
                "{what} has the families {names:?}, and should have {expected:?}"
            ));
        }
        for name in expected {
            let tree = opened.tree(name).map_err(|e| failed("a look for a family", &e))?;
            let map: Arc<Map> = self.model.map_of(name);
            let (scan, second) = self.at_one_second(|| tree.scan(&ReadOptions::default()));
            match scan {
                Ok(mut scan) => {
                    let map = self.showing(name, &map, second);
                    self.excused(compare(&mut scan, &map, &format!("{what}, {name}")))?
                }
                Err(e) => self.excuse(what, &e)?,
            }
        }
        Ok(())
    }
}

/// All that shows in a database, in all its families, by scans from the front and from the back.
pub(super) fn everything_in(
    opened: &Opened,
    lifetimes: &Arc<Lifetimes>,
) -> Result<Model, Violation> {
    let mut families = BTreeMap::new();
    for name in opened.db().column_families() {
        let tree = opened.tree(&name).map_err(|e| failed("a look for a family", &e))?;
        families.insert(name, whole_tree(&tree)?);
    }
    let map = families.remove(DEFAULT).unwrap_or_default();
    Ok(Model::of(map, families, lifetimes))
}

/// `change` in the family of this name.
pub(super) fn within(family: &str, change: Change) -> Change {
    match family {
        DEFAULT => change,
        name => Change::In(name.to_owned(), Box::new(change)),
    }
}

/// Whether families come or go.
pub(super) fn is_about_families(changes: &[Change]) -> bool {
    changes.iter().any(|change| matches!(change, Change::Create(_) | Change::Drop(_)))
}
