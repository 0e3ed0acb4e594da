//! Looking keys up: memtables newest first, then runs newest first, at most one table of each; the first
//! entry at or below the sequence number decides, unless a newer range deletion hides it
//! (`docs/internals/read-path.md`). No lock, and no allocation: a memtable's value is shown where it lies.

mod conflict;
mod many;
mod merged;
pub mod ranges;

use std::ops::ControlFlow;

use lithify_base::zoo::{self, Bug};
use lithify_base::{Comparator, Key, MergeOperatorRef, Prefixes, Result, Seq};
use lithify_env::sync::Arc;
use lithify_format::filter::key_hash;
use lithify_memtable::MemIter;
use lithify_tables::cache::TableCache;
use lithify_tables::sst::Scope;

use crate::iter::capped::Capped;
use crate::iter::child::Child;
use crate::iter::db::DbIter;
use crate::iter::merging::Merging;
use crate::iter::stratum::Stratum;
use crate::iter::tombstones::Tombstones;
use crate::iter::user::User;
use crate::options::{ReadOptions, common_start};
use crate::super_version::SuperVersion;
use crate::value::{Found, Repr, Value, decide};

/// A look into the memtables and tables of one moment.
#[derive(Clone, Copy)]
pub struct Look<'a> {
    /// The memtables and the tree.
    pub sv: &'a Arc<SuperVersion>,
    /// Where readers of the tree's tables are opened.
    pub tables: &'a Arc<TableCache>,
    /// What combines operands, if there is something.
    pub operator: Option<&'a MergeOperatorRef>,
    /// Newer entries are not seen.
    pub at: Seq,
}

impl<'a> Look<'a> {
    /// Looks into the memtables, and breaks with what an entry there decides. `hidden` is the newest
    /// range deletion over the key met so far.
    ///
    /// # Errors
    /// Those of [`in_tables`](Look::in_tables) if operands are combined.
    #[inline]
    pub fn in_memory(
        &self,
        key: &[u8],
        hidden: &mut Option<Seq>,
    ) -> Result<ControlFlow<Option<Found<'a>>>> {
        let sv: &'a SuperVersion = self.sv;
        for mem in &sv.mems {
            let mem = &*mem.table;
            if mem.has_range_tombstones() {
                *hidden = (*hidden).max(mem.covering(key, self.at));
            }
            if let Some((tag, value)) = mem.get_newest(key, self.at) {
                let lies = || Ok(Found::Lies(value));
                let found = decide(tag, *hidden, lies, || self.merged(key))?;
                return Ok(ControlFlow::Break(found));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Looks into the tables, for a key that no memtable decides; `hidden` is what those said.
    ///
    /// # Errors
    /// `Corruption` or `Io` of a table; those of a merge operator.
    #[inline]
    pub fn in_tables(&self, key: &[u8], mut hidden: Option<Seq>) -> Result<Option<Value>> {
        let order = self.sv.tree.version.order();
        let hash = key_hash(key);
        for run in &self.sv.tree.runs {
            let Some(slot) = run.find(key, order) else { continue };
            let reader = slot.reader(self.tables)?;
            if slot.file.range_deletes > 0 {
                hidden = hidden.max(reader.covering_seq(&slot.file, key, self.at));
            }
            if let Some((tag, value)) = reader.get(key, hash, self.at)? {
                let pinned = || Ok(Value(Repr::Pinned(value)));
                return decide(tag, hidden, pinned, || self.merged(key));
            }
        }
        Ok(None)
    }

    /// An iterator over everything `options` let it see, whose bounds and flags count here, and not its
    /// snapshot. `own` is a cursor over uncommitted writes above all that, and the number to read them
    /// at.
    ///
    /// # Errors
    /// `Corruption` or `Io` of a table with range deletions.
    pub fn iter(
        &self,
        own: Option<(MemIter, Seq)>,
        prefixes: &Prefixes,
        options: &ReadOptions,
    ) -> Result<DbIter> {
        let (sv, at) = (self.sv, self.at);
        let order = sv.tree.version.comparator().clone();
        let mut tombstones = Tombstones::new(order.clone(), at);
        let mut children = Vec::with_capacity(sv.mems.len() + sv.tree.runs.len());
        for mem in &sv.mems {
            if mem.table.has_range_tombstones() {
                tombstones.add_memory(&mem.table.range_tombstones());
            }
            children.push(Child::Mem(mem.table.iter()));
        }
        for slot in &sv.tree.with_range_deletes {
            tombstones.add_table(slot.file.clone(), slot.reader(self.tables)?.clone());
        }
        let bounds = options.bounds(&*order)?;
        let scope = scope(prefixes, &bounds, &*order);
        for run in &sv.tree.runs {
            let fill = !options.skip_cache_fill;
            let (run, tables) = (run.clone(), self.tables.clone());
            let run = Stratum::new(run, tables, order.clone(), scope.clone(), fill);
            children.push(Child::Run(run));
        }
        let mut read_at = at;
        if let Some((cursor, last)) = own {
            let old = |child| Child::Old(Box::new(Capped::new(child, at)));
            children =
                std::iter::once(Child::Mem(cursor)).chain(children.into_iter().map(old)).collect();
            read_at = last;
        }
        let merged = Merging::new(order.clone(), children);
        let limited = options.prefix_same_as_start.then(|| prefixes.clone());
        let operator = self.operator.cloned();
        let user = User::new(merged, order, read_at, tombstones, bounds, operator, limited);
        Ok(DbIter { user, memory_only: options.cache_only, _pinned: sv.clone() })
    }
}

/// What filters can be asked about all that an iterator shows.
fn scope(by: &Prefixes, bounds: &(Option<Key>, Option<Key>), order: &dyn Comparator) -> Scope {
    let start = match bounds {
        (Some(lower), Some(_)) if zoo::on(Bug::PrefixOfBound) => lower,
        (Some(lower), Some(upper)) if order.is_bytewise() => common_start(lower, upper),
        _ => &[],
    };
    Scope { start: start.into(), by: by.clone(), exact: false }
}
