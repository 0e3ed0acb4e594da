//! Values that expire: a database whose values carry the time at which they were written, in the form
//! of RocksDB's `DBWithTTL`, so that either opens the directory of the other.
//!
//! A value is followed by four bytes, the seconds since 1970 at which it was written, little-endian. It
//! has expired once more than the time to live has passed since. Nothing in the directory says that
//! values are of this form; a program that opens it has to know, as with RocksDB.
//!
//! Keeps: reads show no value that has expired (RocksDB's show it until a compaction drops it);
//! compactions drop it; a time is never part of what users, their merge operators and their
//! compaction filters see.
//! Leaves to others: everything else. This is a layer over `Db`, which knows nothing of times.

mod components;
mod families;

use std::time::Duration;

use lithify_base::{Error, Kind, Result, memory};
use lithify_env::sync::Arc;
use lithify_env::sync::atomic::{AtomicU64, Ordering};

use lithify_journal::wal::Op;
use lithify_tree::{
    Batch, DbIter, Entries, KeyBounds, ReadOptions, Value, WriteOptions, check_value,
    in_memory_only,
};

use crate::store::Store;

use families::Lifetimes;
pub use families::open_with_times;

/// Bytes of a time.
const TIME: usize = 4;

/// The first second that a time may show, as in RocksDB: its TTL is younger. A smaller one
/// means that the bytes are no time.
const FIRST_TIME: u32 = 1_368_146_402;

/// Longest time to live that is one; beyond, nothing expires.
const LONGEST_TTL: u64 = 1 << 32;

/// A value and the second at which it was written.
fn split(value: &[u8]) -> Result<(&[u8], u32)> {
    let (value, time) = value.split_last_chunk::<TIME>().ok_or_else(|| {
        Error::corruption(format!(
            "a value has {} bytes, which is too short for the time at its end; was it written \
             without a time to live?",
            value.len()
        ))
    })?;
    let time = u32::from_le_bytes(*time);
    if time < FIRST_TIME {
        return Err(Error::corruption(format!(
            "the last four bytes of a value, {time}, are no time; was it written without a time \
             to live?"
        )));
    }
    Ok((value, time))
}

/// `value`, written at `time`.
fn stamp(value: &[u8], time: u32) -> Result<Vec<u8>> {
    let mut stamped = memory::copied(value, "a value")?;
    stamped.extend_from_slice(&time.to_le_bytes());
    check_value(&stamped)?;
    Ok(stamped)
}

/// The time to live, which may change while the database is open.
#[derive(Clone, Debug)]
struct Lifetime(Arc<AtomicU64>);

impl Lifetime {
    fn new(ttl: Duration) -> Lifetime {
        let lifetime = Lifetime(Arc::new(AtomicU64::new(0)));
        lifetime.set(ttl);
        lifetime
    }
    fn set(&self, ttl: Duration) {
        // What is shorter than a second but not nothing rounds up: zero would be for ever.
        let seconds = ttl.as_secs().saturating_add(u64::from(ttl.subsec_nanos() > 0));
        self.0.store(seconds, Ordering::Relaxed);
    }
    /// True if what was written at `time` has expired at `now`, both in seconds since 1970.
    fn is_over(&self, time: u32, now: u64) -> bool {
        match self.0.load(Ordering::Relaxed) {
            0 | LONGEST_TTL.. => false,
            ttl => u64::from(time) + ttl < now,
        }
    }
}

/// A database whose values expire: see `Builder::open_ttl`. What is not about values (deletions, flushes,
/// closing) is done with the database beneath. The operations by the names that users know, with their docs,
/// are those of the handle in `lithify`.
#[derive(Clone, Debug)]
pub struct TtlDb<D> {
    db: D,
    lifetime: Lifetime,
    lifetimes: Lifetimes,
}

impl<D: Store> TtlDb<D> {
    /// The database beneath. Values have times at their ends there.
    pub fn db(&self) -> &D {
        &self.db
    }
    /// The database beneath, in place of this handle.
    pub fn into_db(self) -> D {
        self.db
    }
    /// Changes the time to live of this column family; zero means for ever.
    pub fn set_ttl(&self, ttl: Duration) {
        self.lifetime.set(ttl);
    }

    fn now(&self) -> u64 {
        self.db.tree().env().rt.wall_seconds()
    }
    /// What a value that is written now carries: no time that none can be, as of a machine without a battery that has
    /// just been switched on. Once its clock is set such a value is as old as can be.
    fn time(&self) -> u32 {
        u32::try_from(self.now()).unwrap_or(u32::MAX).max(FIRST_TIME)
    }

    /// Sets `key` to `value`, from now on.
    ///
    /// # Errors
    /// Those of a put.
    pub fn put(&self, key: &[u8], value: &[u8], options: &WriteOptions) -> Result<()> {
        self.db.tree().put(key, &stamp(value, self.time())?, options)
    }
    /// Merges `operand` into the value of `key`.
    ///
    /// # Errors
    /// Those of a merge.
    pub fn merge(&self, key: &[u8], operand: &[u8], options: &WriteOptions) -> Result<()> {
        self.db.tree().merge(key, &stamp(operand, self.time())?, options)
    }
    /// Applies a batch, all of it at one time. Values of families without a time to live get none.
    ///
    /// # Errors
    /// Those of a write; `LimitExceeded` if the batch has no room for the times.
    pub fn write(&self, batch: &D::Batch, options: &WriteOptions) -> Result<()> {
        let (time, lifetimes) = (self.time(), self.lifetimes.all());
        let mut stamped = Batch::default();
        for op in batch.as_ref().view().iter_all() {
            let op = match op {
                Op::Write(op) => op,
                Op::LogData(note) => {
                    stamped.log_data(note)?;
                    continue;
                }
                // A batch of a user's has none.
                Op::Mark(_) => continue,
            };
            let time = |value| match lifetimes.contains_key(&op.cf) {
                true => stamp(value, time),
                // Of a family that this is no layer over.
                false => memory::copied(value, "a value"),
            };
            match op.kind {
                Kind::Value => stamped.put(op.cf, op.key, &time(op.value)?)?,
                Kind::Merge => stamped.merge(op.cf, op.key, &time(op.value)?)?,
                Kind::Delete => stamped.delete(op.cf, op.key)?,
                Kind::SingleDelete => stamped.single_delete(op.cf, op.key)?,
                Kind::RangeDelete => stamped.delete_range(op.cf, op.key, op.value)?,
            }
        }
        self.db.tree().write_batch(&stamped, options)
    }

    /// The value of `key`, if it has one that has not expired. A snapshot keeps none from expiring.
    ///
    /// # Errors
    /// Those of a get; `Corruption` for a value without a time.
    pub fn get(&self, key: &[u8], options: &ReadOptions) -> Result<Option<Value>> {
        let found = in_memory_only(options.cache_only, || {
            self.db.tree().get(key, options.snapshot.as_ref())
        })?;
        let now = self.now();
        found.map_or(Ok(None), |value| self.alive(value, now))
    }
    /// The values of several keys, all as of one moment, in the order asked for.
    ///
    /// # Errors
    /// As [`get`](TtlDb::get).
    pub fn multi_get<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        options: &ReadOptions,
    ) -> Result<Vec<Option<Value>>> {
        let found = in_memory_only(options.cache_only, || {
            let mut keys = keys.iter().map(AsRef::as_ref);
            self.db.tree().multi_get(&mut keys, options.snapshot.as_ref())
        })?;
        let now = self.now();
        found.into_iter().map(|v| v.map_or(Ok(None), |value| self.alive(value, now))).collect()
    }
    /// The value without its time, unless that has passed.
    fn alive(&self, mut value: Value, now: u64) -> Result<Option<Value>> {
        let (bare, time) = split(&value)?;
        let len = bare.len();
        value.truncate(len);
        Ok((!self.lifetime.is_over(time, now)).then_some(value))
    }

    /// An iterator over what has not expired now.
    ///
    /// # Errors
    /// Those of an iterator over the family.
    pub fn iter(&self, options: &ReadOptions) -> Result<TtlIter> {
        let iter = self.db.tree().iter(options)?;
        Ok(TtlIter { iter, lifetime: self.lifetime.clone(), now: self.now(), error: None })
    }
    /// The entries in `range` that have not expired now.
    pub fn range(&self, range: &(impl KeyBounds + ?Sized), options: &ReadOptions) -> TtlEntries {
        let entries = Entries::new(range, options, |options| self.db.tree().iter(options));
        TtlEntries { entries: Some(entries), lifetime: self.lifetime.clone(), now: self.now() }
    }
}

/// The entries of a range whose values had not expired when it was made, without their times: as
/// [`Entries`], which are beneath.
#[derive(Debug)]
pub struct TtlEntries {
    /// `None` after a value without a time.
    entries: Option<Entries>,
    lifetime: Lifetime,
    now: u64,
}

impl TtlEntries {
    /// The next entry that `go` meets and that is alive.
    fn alive(
        &mut self,
        go: impl Fn(&mut Entries) -> Option<Result<(Value, Value)>>,
    ) -> Option<Result<(Value, Value)>> {
        loop {
            let (key, mut value) = match go(self.entries.as_mut()?)? {
                Ok(entry) => entry,
                Err(e) => return Some(Err(e)),
            };
            match split(&value).map(|(bare, time)| (bare.len(), time)) {
                Ok((_, time)) if self.lifetime.is_over(time, self.now) => {}
                Ok((len, _)) => {
                    value.truncate(len);
                    return Some(Ok((key, value)));
                }
                Err(e) => {
                    self.entries = None;
                    return Some(Err(e));
                }
            }
        }
    }
}

impl Iterator for TtlEntries {
    type Item = Result<(Value, Value)>;
    fn next(&mut self) -> Option<Result<(Value, Value)>> {
        self.alive(Entries::next)
    }
}

impl DoubleEndedIterator for TtlEntries {
    fn next_back(&mut self) -> Option<Result<(Value, Value)>> {
        self.alive(Entries::next_back)
    }
}

impl std::iter::FusedIterator for TtlEntries {}

/// An iterator over keys whose values had not expired when it was made.
#[derive(Debug)]
pub struct TtlIter {
    iter: DbIter,
    lifetime: Lifetime,
    now: u64,
    /// A value without a time was met.
    error: Option<Error>,
}

impl TtlIter {
    /// Moves to the first key at or after `key`.
    pub fn seek(&mut self, key: impl AsRef<[u8]>) {
        self.go(|iter| iter.seek(key), DbIter::next);
    }
    /// Moves to the last key at or before `key`.
    pub fn seek_for_prev(&mut self, key: impl AsRef<[u8]>) {
        self.go(|iter| iter.seek_for_prev(key), DbIter::prev);
    }
    /// Moves to the first key.
    pub fn seek_to_first(&mut self) {
        self.go(DbIter::seek_to_first, DbIter::next);
    }
    /// Moves to the last key.
    pub fn seek_to_last(&mut self) {
        self.go(DbIter::seek_to_last, DbIter::prev);
    }
    /// Moves to the next key; no effect if there is no current one.
    pub fn next(&mut self) {
        if self.valid() {
            self.go(DbIter::next, DbIter::next);
        }
    }
    /// Moves to the previous key; no effect if there is no current one.
    pub fn prev(&mut self) {
        if self.valid() {
            self.go(DbIter::prev, DbIter::prev);
        }
    }
    /// Makes a move, and `on` from there while what is met has expired.
    fn go(&mut self, first: impl FnOnce(&mut DbIter), on: impl Fn(&mut DbIter)) {
        self.error = None;
        first(&mut self.iter);
        while self.iter.valid() {
            match split(self.iter.value()) {
                Ok((_, time)) if self.lifetime.is_over(time, self.now) => on(&mut self.iter),
                Ok(_) => return,
                Err(error) => {
                    self.error = Some(error);
                    return;
                }
            }
        }
    }
    /// True if the iterator is at an entry. False at either end, before the first seek, and
    /// after an error: ask [`status`](TtlIter::status).
    pub fn valid(&self) -> bool {
        self.error.is_none() && self.iter.valid()
    }
    /// The current key; empty if not [`valid`](TtlIter::valid).
    pub fn key(&self) -> &[u8] {
        if self.valid() { self.iter.key() } else { &[] }
    }
    /// The current value; empty if not [`valid`](TtlIter::valid).
    pub fn value(&self) -> &[u8] {
        let value = if self.valid() { self.iter.value() } else { &[] };
        &value[..value.len().saturating_sub(TIME)]
    }
    /// The second since 1970 at which the current value was written; 0 if not
    /// [`valid`](TtlIter::valid).
    pub fn written_at(&self) -> u64 {
        if self.valid() { split(self.iter.value()).map_or(0, |(_, time)| time.into()) } else { 0 }
    }
    /// The error that ended the iteration, if one did. Check it whenever `valid` turns false.
    ///
    /// # Errors
    /// As [`DbIter::status`]; `Corruption` at a value without a time.
    pub fn status(&self) -> Result<()> {
        self.error.clone().map_or_else(|| self.iter.status(), Err)
    }
}
