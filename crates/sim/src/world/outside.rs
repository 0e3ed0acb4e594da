//! Tables from outside, and tables that are dropped.
//!
//! Keeps: an ingestion is one write of the journal, durable once it is acknowledged, and everything
//! before it with it. What a drop of tables may leave is known only when it has been done: keys of its
//! range are gone or as they were.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lithify::{Error, ErrorKind, IngestOptions, Transfer};
use lithify_env::Fs;
use lithify_env::sync::Arc;

use super::families::within;
use super::reads::whole_tree;
use super::{Held, Violation, World, failed, key};
use crate::model::Change;

impl World {
    /// Takes in one or two tables that the dice write.
    pub(super) fn ingest(&mut self) -> Result<(), Violation> {
        let count = self.dice.choose(12, "outside");
        let mut points: BTreeMap<Vec<u8>, Change> = BTreeMap::new();
        for _ in 0..=count {
            let change = match self.dice.weighted(&[4, 1], "change") {
                0 => Change::Put(self.any_key(), self.any_value()),
                _ => Change::Delete(self.any_key()),
            };
            let (Change::Put(key, _) | Change::Delete(key)) = &change else { continue };
            points.insert(key.clone(), change);
        }
        let mut points: Vec<Change> = points.into_values().collect();
        let ways = [Transfer::Copy, Transfer::Link, Transfer::Move];
        let transfer = *self.dice.pick(&ways, "transfer");
        let range = (self.dice.choose(4, "range") == 0).then(|| self.any_range());
        let range = range.filter(|r| matches!(r, Change::DeleteRange(from, to) if from < to));
        let second = match range.is_none() && self.dice.choose(3, "two") == 0 {
            true => points.split_off(points.len() / 2),
            false => Vec::new(),
        };
        let mut tables = vec![(range, points)];
        tables.extend((!second.is_empty()).then_some((None, second)));
        tables.retain(|(range, points)| range.is_some() || !points.is_empty());
        self.take_in(tables, transfer)
    }

    /// Takes in a table with `keys`, of values of `len` bytes.
    pub(super) fn take_in_keys(
        &mut self,
        keys: std::ops::Range<u32>,
        len: usize,
    ) -> Result<(), Violation> {
        let mut points = Vec::new();
        for n in keys {
            self.next += 1;
            points.push(Change::Put(key(n), super::value(self.next, len)));
        }
        self.take_in(vec![(None, points)], Transfer::Move)
    }

    fn take_in(
        &mut self,
        tables: Vec<(Option<Change>, Vec<Change>)>,
        transfer: Transfer,
    ) -> Result<(), Violation> {
        // Tables from outside have what is beneath.
        let second = self.second();
        let stamped = |change: &Change| self.stamped(change, second);
        let tables: Vec<(Option<Change>, Vec<Change>)> = tables
            .into_iter()
            .map(|(range, points)| (range, points.iter().map(stamped).collect()))
            .collect();
        let paths = match self.write_tables(&tables) {
            Ok(paths) => paths,
            Err(e) => return self.excuse("writing a table", &e),
        };
        let before = self.model.clone();
        let family = self.any_family();
        // Deletions of ranges hide none of the table's own entries.
        let ranges = tables.iter().flat_map(|t| &t.0);
        for change in ranges.chain(tables.iter().flat_map(|t| &t.1)) {
            self.model.apply(&within(&family, change.clone()));
        }
        self.journal.begun(self.model.sums(), self.fs.position());
        let done = self.tree(&family)?.ingest(&paths, &IngestOptions { transfer });
        paths.iter().for_each(|path| drop(self.fs.unlink(path)));
        let Err(e) = done else {
            self.journal.synced(self.fs.position());
            return Ok(());
        };
        self.excuse("an ingestion", &e)?;
        self.model = before;
        if e.kind() != ErrorKind::OutcomeUnknown {
            self.journal.refused(self.fs.position());
            return Ok(());
        }
        self.recover_in_doubt()
    }

    fn write_tables(
        &mut self,
        tables: &[(Option<Change>, Vec<Change>)],
    ) -> Result<Vec<PathBuf>, Error> {
        let mut paths = Vec::new();
        for (range, points) in tables {
            self.next += 1;
            let path = PathBuf::from(format!("outside-{}.sst", self.next));
            // A crash may have left one of that name.
            drop(self.fs.unlink(Path::new(&path)));
            let mut table = self.builder().table(&path)?;
            if let Some(Change::DeleteRange(from, to)) = range {
                table.delete_range(from, to)?;
            }
            for change in points {
                match change {
                    Change::Put(key, value) => table.put(key, value)?,
                    Change::Delete(key) => table.delete(key)?,
                    _ => {}
                }
            }
            table.finish()?;
            paths.push(path);
        }
        Ok(paths)
    }

    /// Drops the tables of a range.
    pub(super) fn drop_files(&mut self) -> Result<(), Violation> {
        // What comes of one that fails, or of writes that no log holds, no model could tell.
        if self.shaken || self.fragile || self.shape.unlogged {
            return Ok(());
        }
        let Change::DeleteRange(mut from, mut to) = self.any_range() else { return Ok(()) };
        // Only what lies wholly in the range goes, and few tables are narrow.
        match self.dice.choose(4, "how wide") {
            0 => {}
            1 => to = key(self.shape.keys),
            2 => from = key(0),
            _ => (from, to) = (key(0), key(self.shape.keys)),
        }
        self.views.retain(|view| matches!(view.what, Held::Iterator(_)));
        let begun = self.fs.position();
        let family = self.any_family();
        let tree = self.tree(&family)?;
        tree.delete_files_in_range(Some(&from), Some(&to))
            .map_err(|e| failed("dropping tables", &e))?;
        let reader = self.reader(&family)?;
        let (left, second) = self.at_one_second(|| whole_tree(&reader));
        let left = left?;
        let map: Arc<_> = self.model.map_of(&family);
        let map = self.showing(&family, &map, second);
        // Where only operands are left, the value is their end of what it was.
        let end = |old: &[u8], now: &[u8]| {
            old.strip_suffix(now).is_some_and(|dropped| dropped.ends_with(b","))
        };
        let kept = |(k, v): (&Vec<u8>, &Arc<[u8]>)| match left.get(k) {
            Some(now) => now == v || (&from..&to).contains(&k) && end(v, now),
            None => (&from..&to).contains(&k),
        };
        if !map.iter().all(kept) || !left.keys().all(|k| map.contains_key(k)) {
            return Violation::new("dropping tables brought something back, or took too much");
        }
        self.model = self.model.with_map(&family, left);
        self.journal.begun(self.model.sums(), begun);
        self.journal.synced(self.fs.position());
        Ok(())
    }
}
