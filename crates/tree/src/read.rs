//! Reads of an open database: what is pinned for them, and what is counted. The look itself is
//! `lithify_views`'.

use std::ops::ControlFlow;
use std::time::Duration;

use arc_swap::Guard;
use lithify_base::zoo::{self, Bug};
use lithify_base::{MAX_SEQ, Result, Seq, Tag};
use lithify_env::Ticket;
use lithify_env::sync::Arc;
use lithify_env::sync::atomic::Ordering;
use lithify_memtable::MemIter;
use lithify_tables::cache::in_memory_only;
use lithify_views::iter::db::DbIter;
use lithify_views::look::Look;
use lithify_views::look::ranges::SizeOptions;
use lithify_views::options::ReadOptions;
use lithify_views::snapshot::Snapshot;
use lithify_views::super_version::SuperVersion;
use lithify_views::value::{Found, Value, own as own_value};

use crate::shell::Shell;
use lithify_reports::metrics::Counter;

impl Shell {
    /// The newest value of `key` at `at`, or now.
    pub fn get(&self, key: &[u8], at: Option<&Snapshot>) -> Result<Option<Value>> {
        self.find(key, at, |found| found.keep())
    }

    /// The same for a look at the value where it lies.
    ///
    /// # Errors
    /// As [`get`](Shell::get).
    pub fn get_with<T>(
        &self,
        key: &[u8],
        at: Option<&Snapshot>,
        take: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>> {
        self.find(key, at, |found| Ok(take(&found)))
    }

    /// Gives the newest value of `key` at `at`, or now, to `take`. What it lies in is pinned meanwhile.
    #[inline]
    fn find<T>(
        &self,
        key: &[u8],
        at: Option<&Snapshot>,
        take: impl FnOnce(Found<'_>) -> Result<T>,
    ) -> Result<Option<T>> {
        self.check_readable()?;
        let read = self.shared.metrics.read(&*self.shared.resources.env.rt);
        let (sv, at) = self.pin(at)?;
        let look = self.look(&sv, at);
        let mut hidden = None;
        let (found, in_memory) = match look.in_memory(key, &mut hidden)? {
            ControlFlow::Break(found) => (found, true),
            ControlFlow::Continue(()) => (look.in_tables(key, hidden)?.map(Found::from), false),
        };
        read.count([
            (Counter::MemtableHits, u64::from(in_memory)),
            (Counter::Gets, 1),
            (Counter::GetHits, u64::from(found.is_some())),
        ]);
        // What the caller does with the value is no part of the read.
        drop(read);
        found.map(take).transpose()
    }

    /// The same under entries of the key that are not in the database, newest first: a transaction's own
    /// writes.
    ///
    /// # Errors
    /// As [`get`](Shell::get).
    pub fn get_under<'o, I: Iterator<Item = (Tag, &'o [u8])>>(
        &self,
        own: impl Fn() -> I,
        key: &[u8],
        at: Option<&Snapshot>,
    ) -> Result<Option<Value>> {
        let Some((tag, value)) = own().next() else {
            return self.get(key, at);
        };
        self.check_readable()?;
        own_value(tag, value, || {
            let (sv, at) = self.pin(at)?;
            self.look(&sv, at).merged_under(own(), key)
        })
    }

    /// The tree to read, and the number to read at.
    pub(crate) fn pin(
        &self,
        snapshot: Option<&Snapshot>,
    ) -> Result<(Guard<Arc<SuperVersion>>, Seq)> {
        // The tree is pinned before the number is read: a number read first could be older than
        // what a compaction has meanwhile dropped.
        let sv = self.family.views.current.load();
        let at = self
            .shared
            .snapshots
            .read_at(snapshot, || self.shared.writes.published.load(Ordering::Acquire))?;
        let own = snapshot.and_then(|snapshot| snapshot.tree(self.family.cf));
        Ok((own.map_or(sv, Guard::from_inner), at))
    }

    /// The look at `at` into what is pinned.
    #[inline]
    fn look<'a>(&'a self, sv: &'a Arc<SuperVersion>, at: Seq) -> Look<'a> {
        Look { sv, tables: &self.family.tables, operator: self.context().operator.as_ref(), at }
    }

    /// Several keys at one moment.
    pub fn multi_get(
        &self,
        keys: &mut dyn Iterator<Item = &[u8]>,
        at: Option<&Snapshot>,
    ) -> Result<Vec<Option<Value>>> {
        self.check_readable()?;
        let (sv, at) = self.pin(at)?;
        let (values, in_memory) = self.look(&sv, at).multi_get(keys)?;
        self.shared.metrics.add(Counter::MemtableHits, in_memory);
        self.shared.metrics.add(Counter::Gets, values.len() as u64);
        self.shared.metrics.add(Counter::GetHits, values.iter().flatten().count() as u64);
        Ok(values)
    }

    /// The newest number that every reader may see.
    pub fn published(&self) -> Seq {
        self.shared.writes.published.load(Ordering::Acquire)
    }

    /// Whether `key` was written after number `since`, of which a snapshot is held.
    ///
    /// # Errors
    /// `Corruption` or `Io` of a table.
    pub fn is_newer(&self, sv: &Arc<SuperVersion>, key: &[u8], since: Seq) -> Result<bool> {
        self.look(sv, since).is_newer(key)
    }

    /// About how many bytes the keys of each range take, from its first key on below its second.
    ///
    /// # Errors
    /// `InvalidArgument` for a range that ends before it starts; `Corruption` or `Io` if the index of
    /// a table can't be read.
    pub fn approximate_sizes<'k>(
        &self,
        ranges: impl Iterator<Item = (&'k [u8], &'k [u8])>,
        options: &SizeOptions,
    ) -> Result<Vec<u64>> {
        self.check_readable()?;
        let sv = self.super_version();
        let look = self.look(&sv, MAX_SEQ);
        ranges.map(|(from, to)| look.size(from, to, options)).collect()
    }

    /// An iterator over everything `options` let it see.
    pub fn iter(&self, options: &ReadOptions) -> Result<DbIter> {
        self.iter_under(None, options)
    }

    /// The same, under the uncommitted writes of a transaction: a cursor over them and the number to
    /// read them at.
    pub fn iter_under(&self, own: Option<(MemIter, Seq)>, options: &ReadOptions) -> Result<DbIter> {
        self.check_readable()?;
        let (sv, at) = self.pin(options.snapshot.as_ref())?;
        let mut sv = Guard::into_inner(sv);
        if zoo::on(Bug::PinnedLate) {
            self.dawdle();
            sv = self.family.views.current.load_full();
        }
        let prefixes = &self.context().output.prefixes;
        let made =
            in_memory_only(options.cache_only, || self.look(&sv, at).iter(own, prefixes, options))?;
        self.shared.metrics.add(Counter::Iterators, 1);
        Ok(made)
    }

    /// Registers a snapshot of now.
    pub fn snapshot(&self) -> Snapshot {
        let now = || self.shared.writes.published.load(Ordering::Acquire);
        if zoo::on(Bug::RegisteredLate) {
            let seq = now();
            self.dawdle();
            return self.shared.snapshots.take(|| seq);
        }
        self.shared.snapshots.take(now)
    }

    /// Lets others go on for a moment, where a bug of the zoo leaves a gap.
    pub fn dawdle(&self) {
        let rt = &self.shared.resources.env.rt;
        rt.park(&Ticket::new(), Some(rt.now() + Duration::from_millis(2)));
    }

    /// What readers see now.
    pub fn super_version(&self) -> Arc<SuperVersion> {
        self.family.views.current.load_full()
    }
}
