//! The read path: memtables newest first, then runs newest first, at most one table of each; the
//! first entry at or below the sequence number decides, unless a newer range deletion hides it
//! (`docs/internals/read-path.md`). No lock, no allocation but the copy of a memtable's value.

mod conflict;
pub(crate) mod iter;
mod merged;
mod multi_get;
pub(crate) mod operands;
pub(crate) mod ranges;
pub(crate) mod snapshot;
pub(crate) mod super_version;

use std::ops::{ControlFlow, Deref};
use std::time::Duration;

use arc_swap::Guard;
use lithify_base::key::unknown_kind;
use lithify_base::zoo::{self, Bug};
use lithify_base::{Comparator, Kind, Prefixes, Result, Seq, Tag, memory};
use lithify_env::Ticket;
use lithify_env::sync::Arc;
use lithify_env::sync::atomic::Ordering;
use lithify_format::filter::key_hash;
use lithify_memtable::MemIter;
use lithify_tables::cache::PinnedSlice;
use lithify_tables::sst::Scope;

use crate::options::{ReadOptions, common_start};
use crate::read::iter::Cursor;
use crate::read::iter::capped::Capped;
use crate::read::iter::db::DbIter;
use crate::read::iter::merging::Merging;
use crate::read::iter::stratum::Stratum;
use crate::read::iter::tombstones::Tombstones;
use crate::read::iter::user::User;
use crate::read::snapshot::Snapshot;
use crate::read::super_version::SuperVersion;
use crate::report::metrics::Counter;
use crate::shell::Shell;

/// A value that was read: bytes of a cached block, or a copy. Dereferences to the bytes.
pub struct Value(pub(crate) Repr);

pub(crate) enum Repr {
    Copied(Vec<u8>),
    Pinned(PinnedSlice),
}

impl Value {
    /// Cuts it to its first `len` bytes.
    #[doc(hidden)] // a seam to other crates
    pub fn truncate(&mut self, len: usize) {
        match &mut self.0 {
            Repr::Copied(v) => v.truncate(len),
            Repr::Pinned(p) => p.truncate(len),
        }
    }
}

impl Deref for Value {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Repr::Copied(v) => v,
            Repr::Pinned(p) => p.as_ref(),
        }
    }
}

impl AsRef<[u8]> for Value {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl From<Value> for Vec<u8> {
    fn from(v: Value) -> Vec<u8> {
        match v.0 {
            Repr::Copied(v) => v,
            Repr::Pinned(p) => p.as_ref().to_vec(),
        }
    }
}

impl std::fmt::Debug for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "\"{}\"", self.escape_ascii())
    }
}

impl<T: AsRef<[u8]> + ?Sized> PartialEq<T> for Value {
    fn eq(&self, other: &T) -> bool {
        **self == *other.as_ref()
    }
}

/// The internal cursor under every iterator.
pub(crate) type Merged = Merging<Child>;

/// One memtable or one run.
pub(crate) enum Child {
    Mem(MemIter),
    Run(Stratum),
    /// One of them as it was, under newer entries of a transaction.
    Old(Box<Capped<Child>>),
}

macro_rules! each {
    ($self:ident, $c:ident => $e:expr) => {
        match $self {
            Child::Mem($c) => $e,
            Child::Run($c) => $e,
            Child::Old($c) => $e,
        }
    };
}

impl Cursor for Child {
    fn narrow(&mut self, prefix: Option<&[u8]>) {
        match self {
            Child::Mem(_) => {}
            Child::Run(c) => c.narrow(prefix),
            Child::Old(c) => c.narrow(prefix),
        }
    }
    fn seek(&mut self, user: &[u8], tag: Tag) {
        each!(self, c => c.seek(user, tag));
    }
    fn seek_for_prev(&mut self, user: &[u8], tag: Tag) {
        each!(self, c => c.seek_for_prev(user, tag));
    }
    fn seek_to_first(&mut self) {
        each!(self, c => c.seek_to_first());
    }
    fn seek_to_last(&mut self) {
        each!(self, c => c.seek_to_last());
    }
    fn next(&mut self) {
        each!(self, c => c.next());
    }
    fn prev(&mut self) {
        each!(self, c => c.prev());
    }
    fn valid(&self) -> bool {
        each!(self, c => c.valid())
    }
    fn user_key(&self) -> &[u8] {
        each!(self, c => c.user_key())
    }
    fn tag(&self) -> Tag {
        each!(self, c => c.tag())
    }
    fn value(&self) -> &[u8] {
        each!(self, c => c.value())
    }
    fn status(&self) -> Result<()> {
        match self {
            Child::Mem(_) => Ok(()),
            Child::Run(c) => c.status(),
            Child::Old(c) => c.status(),
        }
    }
}

impl Shell {
    /// The newest value of `key` at `at`, or now.
    pub fn get(&self, key: &[u8], at: Option<&Snapshot>) -> Result<Option<Value>> {
        self.check_open()?;
        let _timed = self.shared.metrics.get.sample(&*self.shared.resources.env.rt);
        let (sv, at) = self.pin(at)?;
        let found = self.look_up(&sv, key, at)?;
        self.shared.metrics.add(Counter::Gets, 1);
        if found.is_some() {
            self.shared.metrics.add(Counter::GetHits, 1);
        }
        Ok(found)
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
        self.check_open()?;
        let copy = || memory::copied(value, "a value").map(Repr::Copied);
        decide(tag, None, copy, || {
            let (sv, at) = self.pin(at)?;
            self.merged_under(own(), &sv, key, at)
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

    fn look_up(&self, sv: &SuperVersion, key: &[u8], at: Seq) -> Result<Option<Value>> {
        let order = sv.tree.version.order();
        // Newest range deletion over the key met so far.
        let mut hidden: Option<Seq> = None;
        if let ControlFlow::Break(found) = self.in_memory(sv, key, at, &mut hidden)? {
            return Ok(found);
        }
        let hash = key_hash(key);
        for run in &sv.tree.runs {
            let Some(slot) = run.find(key, order) else { continue };
            let reader = slot.reader(&self.family.tables)?;
            if slot.file.range_deletes > 0 {
                hidden = hidden.max(reader.covering_seq(&slot.file, key, at));
            }
            if let Some((tag, value)) = reader.get(key, hash, at)? {
                let pinned = || Ok(Repr::Pinned(value));
                return decide(tag, hidden, pinned, || self.merged_value(sv, key, at));
            }
        }
        Ok(None)
    }

    /// Looks into the memtables, and breaks with what an entry there decides.
    #[inline]
    pub(crate) fn in_memory(
        &self,
        sv: &SuperVersion,
        key: &[u8],
        at: Seq,
        hidden: &mut Option<Seq>,
    ) -> Result<ControlFlow<Option<Value>>> {
        for mem in &sv.mems {
            let mem = &*mem.table;
            if mem.has_range_tombstones() {
                *hidden = (*hidden).max(mem.covering(key, at));
            }
            if let Some((tag, value)) = mem.get_newest(key, at) {
                self.shared.metrics.add(Counter::MemtableHits, 1);
                let copy = || memory::copied(value, "a value").map(Repr::Copied);
                let found = decide(tag, *hidden, copy, || self.merged_value(sv, key, at))?;
                return Ok(ControlFlow::Break(found));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// An iterator over everything `options` let it see.
    pub fn iter(&self, options: &ReadOptions) -> Result<DbIter> {
        self.iter_under(None, options)
    }

    /// The same, under the uncommitted writes of a transaction: a cursor over them and the number to
    /// read them at.
    pub fn iter_under(&self, own: Option<(MemIter, Seq)>, options: &ReadOptions) -> Result<DbIter> {
        self.check_open()?;
        let (sv, at) = self.pin(options.snapshot.as_ref())?;
        let mut sv = Guard::into_inner(sv);
        if zoo::on(Bug::PinnedLate) {
            self.dawdle();
            sv = self.family.views.current.load_full();
        }
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
            tombstones.add_table(slot.file.clone(), slot.reader(&self.family.tables)?.clone());
        }
        let prefixes = &self.context().output.prefixes;
        let scope = scope(prefixes, options, &*order);
        for run in &sv.tree.runs {
            let fill = !options.skip_cache_fill;
            let (run, tables) = (run.clone(), self.family.tables.clone());
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
        self.shared.metrics.add(Counter::Iterators, 1);
        let bounds = (options.lower_bound.clone(), options.upper_bound.clone());
        let merged = Merging::new(order.clone(), children);
        let operator = self.context().operator.clone();
        let limited = options.prefix_same_as_start.then(|| prefixes.clone());
        let user = User::new(merged, order, read_at, tombstones, bounds, operator, limited);
        Ok(DbIter { user, _pinned: sv })
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

/// What filters can be asked about all that an iterator shows.
fn scope(by: &Prefixes, options: &ReadOptions, order: &dyn Comparator) -> Scope {
    let start = match (&options.lower_bound, &options.upper_bound) {
        (Some(lower), Some(_)) if zoo::on(Bug::PrefixOfBound) => lower,
        (Some(lower), Some(upper)) if order.is_bytewise() => common_start(lower, upper),
        _ => &[],
    };
    Scope { start: start.into(), by: by.clone(), exact: false }
}

/// What the newest visible entry means, given the newest range deletion over its key. `merged` combines
/// operands.
pub(crate) fn decide(
    tag: Tag,
    hidden: Option<Seq>,
    value: impl FnOnce() -> Result<Repr>,
    merged: impl FnOnce() -> Result<Vec<u8>>,
) -> Result<Option<Value>> {
    if hidden.is_some_and(|h| h > tag.seq()) {
        return Ok(None);
    }
    match tag.kind() {
        Some(Kind::Value) => Ok(Some(Value(value()?))),
        Some(Kind::Delete | Kind::SingleDelete) => Ok(None),
        Some(Kind::Merge) => Ok(Some(Value(Repr::Copied(merged()?)))),
        Some(Kind::RangeDelete) | None => Err(unknown_kind(tag.kind_byte())),
    }
}
