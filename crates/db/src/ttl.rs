//! Databases whose values expire, by the names that users know.
//!
//! Leaves to others: times and what has expired (`lithify_layers`), with one operation where users have two.

use std::time::Duration;

use lithify_base::Result;
use lithify_layers::{TtlEntries, TtlIter};
use lithify_tree::{ColumnFamilyOptions, KeyBounds, ReadOptions, Value, WriteOptions};

use crate::batch::WriteBatch;
use crate::db::Db;
use crate::families::found_or_made;

/// A database whose values carry the time at which they were written; reads show none that has
/// expired. See [`Builder::open_ttl`](crate::Builder::open_ttl).
#[derive(Clone)]
pub struct TtlDb(pub(crate) lithify_layers::TtlDb<Db>);

impl TtlDb {
    /// The database beneath, for all that is not about values: flushes and compactions, snapshots,
    /// checkpoints, statistics, settings. Values have times at their ends there.
    pub fn db(&self) -> &Db {
        self.0.db()
    }
    /// Changes the time to live of this column family, also of what is there already; zero means for
    /// ever.
    pub fn set_ttl(&self, ttl: Duration) {
        self.0.set_ttl(ttl);
    }
    /// [`Db::close`].
    ///
    /// # Errors
    /// As that.
    pub fn close(self) -> Result<()> {
        self.0.into_db().close()
    }
    /// Sets `key` to `value`, from now on.
    ///
    /// # Errors
    /// As [`Db::put`].
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.put_opt(key, value, &WriteOptions::default())
    }
    /// [`put`](TtlDb::put) with options.
    ///
    /// # Errors
    /// As [`Db::put_opt`].
    pub fn put_opt(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        options: &WriteOptions,
    ) -> Result<()> {
        self.0.put(key.as_ref(), value.as_ref(), options)
    }
    /// Merges `operand` into the value of `key`.
    ///
    /// # Errors
    /// As [`Db::merge`].
    pub fn merge(&self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        self.merge_opt(key, operand, &WriteOptions::default())
    }
    /// [`merge`](TtlDb::merge) with options.
    ///
    /// # Errors
    /// As [`Db::merge_opt`].
    pub fn merge_opt(
        &self,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
        options: &WriteOptions,
    ) -> Result<()> {
        self.0.merge(key.as_ref(), operand.as_ref(), options)
    }
    /// Deletes `key`; it need not exist.
    ///
    /// # Errors
    /// As [`Db::delete`].
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.db().delete(key)
    }
    /// Deletes every key from `from` on that is below `to`.
    ///
    /// # Errors
    /// As [`Db::delete_range`].
    pub fn delete_range(&self, from: impl AsRef<[u8]>, to: impl AsRef<[u8]>) -> Result<()> {
        self.db().delete_range(from, to)
    }
    /// Applies a batch atomically; all of it is written at the same time. Values of column families
    /// without a time to live get no time. To name a family in a batch, ask [`db`](TtlDb::db) for its handle.
    ///
    /// # Errors
    /// As [`Db::write`].
    pub fn write(&self, batch: &WriteBatch) -> Result<()> {
        self.write_opt(batch, &WriteOptions::default())
    }
    /// [`write`](TtlDb::write) with options.
    ///
    /// # Errors
    /// As [`Db::write_opt`]; `LimitExceeded` if the batch has no room for the times.
    pub fn write_opt(&self, batch: &WriteBatch, options: &WriteOptions) -> Result<()> {
        self.0.write(batch, options)
    }
    /// The value of `key`, if it has one that has not expired.
    ///
    /// # Errors
    /// As [`Db::get`]; `Corruption` for a value without a time.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.get_opt(key, &ReadOptions::default())
    }
    /// [`get`](TtlDb::get) with options. A snapshot does not keep a value from expiring.
    ///
    /// # Errors
    /// As [`Db::get_opt`], and as [`get`](TtlDb::get).
    pub fn get_opt(&self, key: impl AsRef<[u8]>, options: &ReadOptions) -> Result<Option<Value>> {
        self.0.get(key.as_ref(), options)
    }
    /// The values of several keys, all as of one moment, in the order asked for.
    ///
    /// # Errors
    /// As [`get`](TtlDb::get).
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Value>>> {
        self.multi_get_opt(keys, &ReadOptions::default())
    }
    /// [`multi_get`](TtlDb::multi_get) with options.
    ///
    /// # Errors
    /// As [`get`](TtlDb::get).
    pub fn multi_get_opt<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        options: &ReadOptions,
    ) -> Result<Vec<Option<Value>>> {
        self.0.multi_get(keys, options)
    }
    /// An iterator over what has not expired now. It starts at no entry: seek first.
    ///
    /// # Errors
    /// As [`Db::iter`].
    pub fn iter(&self) -> Result<TtlIter> {
        self.iter_opt(&ReadOptions::default())
    }
    /// [`iter`](TtlDb::iter) with options.
    ///
    /// # Errors
    /// As [`Db::iter_opt`].
    pub fn iter_opt(&self, options: &ReadOptions) -> Result<TtlIter> {
        self.0.iter(options)
    }
    /// The entries in `range` that have not expired now: see [`Db::range`].
    pub fn range(&self, range: impl KeyBounds) -> TtlEntries {
        self.range_opt(range, &ReadOptions::default())
    }
    /// [`range`](TtlDb::range) with options, as for [`Db::range_opt`].
    pub fn range_opt(&self, range: impl KeyBounds, options: &ReadOptions) -> TtlEntries {
        self.0.range(&range, options)
    }
    /// The entries that have not expired now and whose keys begin with `prefix`.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> TtlEntries {
        self.range_opt(.., &ReadOptions::default().with_prefix(prefix))
    }
    /// The column family of that name, as a handle whose keys are the family's and whose values expire
    /// after the family's own time to live.
    ///
    /// # Errors
    /// `NotFound` if there is none; `InvalidArgument` if it was opened without a time to live: then
    /// its values have no times, and [`db`](TtlDb::db) has a handle that shows them.
    pub fn column_family(&self, name: &str) -> Result<TtlDb> {
        self.0.column_family(name).map(TtlDb)
    }
    /// Makes a column family whose values expire: `options` have a
    /// [time to live](ColumnFamilyOptions::ttl), which it needs at each open.
    ///
    /// # Errors
    /// As [`Db::create_column_family`]; `InvalidArgument` if `options` have no time to live.
    pub fn create_column_family(&self, name: &str, options: ColumnFamilyOptions) -> Result<TtlDb> {
        self.0.create_column_family(name, options).map(TtlDb)
    }
    /// The column family of that name, made with `options` if there is none: see
    /// [`Db::open_column_family`].
    ///
    /// # Errors
    /// As [`column_family`](TtlDb::column_family) and [`create_column_family`](TtlDb::create_column_family).
    pub fn open_column_family(&self, name: &str, options: ColumnFamilyOptions) -> Result<TtlDb> {
        found_or_made(|| self.column_family(name), || self.create_column_family(name, options))
    }
}

impl std::fmt::Debug for TtlDb {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}
