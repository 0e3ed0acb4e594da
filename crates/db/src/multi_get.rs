//! Several keys at one moment: the memtables key by key, then each run once for all keys that are
//! still open, sorted, so that the keys of one table ask its filter and index together and share what
//! is read of it.
//!
//! Keeps: answers as [`Shell::get`] does for each key.
//! Leaves to others: one key ([`crate::read`]), reading blocks together (`lithify_store::sst`).

use lithify_base::{Result, Seq, Tag, memory};
use lithify_format::filter::key_hash;
use lithify_store::sst::Wanted;

use crate::metrics::Counter;
use crate::read::{Repr, Value, decide};
use crate::shell::Shell;
use crate::snapshot::Snapshot;
use crate::super_version::{RunTables, SuperVersion};

/// A key without an answer.
struct Open<'k> {
    key: &'k [u8],
    hash: u64,
    /// Where its answer goes.
    place: usize,
    /// Newest range deletion over it met so far.
    hidden: Option<Seq>,
}

impl Shell {
    /// Several keys at one moment.
    pub(crate) fn multi_get(
        &self,
        keys: &mut dyn Iterator<Item = &[u8]>,
        at: Option<&Snapshot>,
    ) -> Result<Vec<Option<Value>>> {
        self.check_open()?;
        let sv = self.current.load();
        let at = self.read_at(at)?;
        let mut values: Vec<Option<Value>> = Vec::new();
        let mut open = Vec::new();
        for (place, key) in keys.enumerate() {
            values.push(None);
            let mut asked = Open { key, hash: key_hash(key), place, hidden: None };
            if !self.in_memory(&sv, &mut asked, at, &mut values)? {
                open.push(asked);
            }
        }
        let order = self.order();
        open.sort_by(|a, b| order.compare(a.key, b.key));
        for run in &sv.tree.runs {
            if open.is_empty() {
                break;
            }
            self.in_run(&sv, run, &mut open, at, &mut values)?;
        }
        self.metrics.add(Counter::Gets, values.len() as u64);
        self.metrics.add(Counter::GetHits, values.iter().flatten().count() as u64);
        Ok(values)
    }

    /// Looks into the memtables; whether that decides.
    fn in_memory(
        &self,
        sv: &SuperVersion,
        asked: &mut Open<'_>,
        at: Seq,
        values: &mut [Option<Value>],
    ) -> Result<bool> {
        for mem in &sv.mems {
            let mem = &*mem.table;
            if mem.has_range_tombstones() {
                asked.hidden = asked.hidden.max(mem.covering(asked.key, at));
            }
            if let Some((tag, value)) = mem.get_newest(asked.key, at) {
                self.metrics.add(Counter::MemtableHits, 1);
                let copy = || memory::copied(value, "a value").map(Repr::Copied);
                let merged = || self.merged_value(sv, asked.key, at);
                values[asked.place] = decide(tag, asked.hidden, copy, merged)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Looks into one run for all open keys, which are sorted; those it decides are open no more.
    fn in_run(
        &self,
        sv: &SuperVersion,
        run: &RunTables,
        open: &mut Vec<Open<'_>>,
        at: Seq,
        values: &mut [Option<Value>],
    ) -> Result<()> {
        let order = self.order();
        let mut decided = vec![false; open.len()];
        let mut next = 0;
        while let Some(first) = open.get(next) {
            let Some(slot) = run.find(first.key, order) else {
                next += 1;
                continue;
            };
            let range = &slot.file.range;
            let here = open[next..].iter().take_while(|o| range.contains(o.key, order)).count();
            let batch = &mut open[next..next + here];
            let reader = slot.reader(&self.tables)?;
            if slot.file.range_deletes > 0 {
                let deletions = reader.range_tombstones();
                for asked in batch.iter_mut() {
                    asked.hidden = asked.hidden.max(deletions.covering_seq(asked.key, at, order));
                }
            }
            let wanted: Vec<Wanted<'_>> =
                batch.iter().map(|o| Wanted { key: o.key, hash: o.hash }).collect();
            let mut found: Vec<(usize, Tag, Repr)> = Vec::new();
            reader.get_many(&wanted, at, |i, tag, value| {
                found.push((i, tag, Repr::Pinned(value)));
            })?;
            for (i, tag, value) in found {
                let asked = &batch[i];
                let merged = || self.merged_value(sv, asked.key, at);
                values[asked.place] = decide(tag, asked.hidden, || Ok(value), merged)?;
                decided[next + i] = true;
            }
            next += here;
        }
        let mut decided = decided.into_iter();
        open.retain(|_| !decided.next().unwrap_or(false));
        Ok(())
    }
}
