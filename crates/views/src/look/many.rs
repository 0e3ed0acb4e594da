//! Several keys at one moment: the memtables key by key, then each run once for all keys that are
//! still open, sorted, so that the keys of one table ask its filter and index together and share what
//! is read of it.
//!
//! Keeps: answers as looking up each key by itself does.
//! Leaves to others: one key ([`crate::look`]), reading blocks together (`lithify_tables::sst`).

use lithify_base::{Result, Seq};
use lithify_format::filter::key_hash;
use lithify_tables::sst::Wanted;

use super::Look;
use crate::super_version::RunTables;
use crate::value::{Found, Repr, Value, decide};

/// A key without an answer.
struct Open<'k> {
    key: &'k [u8],
    hash: u64,
    /// Where its answer goes.
    place: usize,
    /// Newest range deletion over it met so far.
    hidden: Option<Seq>,
    /// It has its answer after all.
    decided: bool,
}

impl Look<'_> {
    /// Several keys, and how many of them a memtable decided.
    ///
    /// # Errors
    /// `Corruption` or `Io` of a table; those of a merge operator.
    pub fn multi_get(
        &self,
        keys: &mut dyn Iterator<Item = &[u8]>,
    ) -> Result<(Vec<Option<Value>>, u64)> {
        let mut in_memory = 0;
        let mut values: Vec<Option<Value>> = Vec::with_capacity(keys.size_hint().0);
        let mut open = Vec::new();
        for (place, key) in keys.enumerate() {
            let mut hidden = None;
            let found = self.in_memory(key, &mut hidden)?;
            match found.is_continue() {
                true => open.push(Open { key, hash: key_hash(key), place, hidden, decided: false }),
                false => in_memory += 1,
            }
            let found = found.break_value().flatten();
            values.push(found.map(Found::keep).transpose()?);
        }
        let order = self.sv.tree.version.order();
        open.sort_by(|a, b| order.compare(a.key, b.key));
        for run in &self.sv.tree.runs {
            if open.is_empty() {
                break;
            }
            self.in_run(run, &mut open, &mut values)?;
        }
        Ok((values, in_memory))
    }

    /// Looks into one run for all open keys, which are sorted; those it decides are open no more.
    fn in_run(
        &self,
        run: &RunTables,
        open: &mut Vec<Open<'_>>,
        values: &mut [Option<Value>],
    ) -> Result<()> {
        let order = self.sv.tree.version.order();
        let (mut wanted, mut found) = (Vec::new(), Vec::new());
        let mut next = 0;
        while let Some(first) = open.get(next) {
            let Some(slot) = run.find(first.key, order) else {
                next += 1;
                continue;
            };
            let range = &slot.file.range;
            let here = open[next..].iter().take_while(|o| range.contains(o.key, order)).count();
            let batch = &mut open[next..next + here];
            let reader = slot.reader(self.tables)?;
            if slot.file.range_deletes > 0 {
                for asked in batch.iter_mut() {
                    asked.hidden =
                        asked.hidden.max(reader.covering_seq(&slot.file, asked.key, self.at));
                }
            }
            wanted.clear();
            wanted.extend(batch.iter().map(|o| Wanted { key: o.key, hash: o.hash }));
            reader.get_many(&wanted, self.at, |i, tag, value| {
                found.push((i, tag, Repr::Pinned(value)));
            })?;
            for (i, tag, value) in found.drain(..) {
                let asked = &mut batch[i];
                let merged = || self.merged(asked.key);
                values[asked.place] = decide(tag, asked.hidden, || Ok(Value(value)), merged)?;
                asked.decided = true;
            }
            next += here;
        }
        open.retain(|asked| !asked.decided);
        Ok(())
    }
}
