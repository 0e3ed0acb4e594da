//! Transactions, by the names that users know.
//!
//! Leaves to others: how they work (`lithify_layers`), with one operation where users have two or three.

use lithify_base::{Kind, Result};
use lithify_layers::TransactionOptions;
use lithify_tree::{DbIter, Entries, KeyBounds, ReadOptions, Snapshot, Value, WriteOptions};

use crate::db::Db;
use crate::families::ColumnFamily;

impl Db {
    /// Begins a transaction. Dropping it rolls it back unless it is prepared. Its reads and writes are of this handle's
    /// column family, and of others with [`get_cf`](Transaction::get_cf),
    /// [`put_cf`](Transaction::put_cf) and their like.
    ///
    /// Writes outside of transactions take no locks: a pessimistic transaction does not keep them
    /// out. Where keys are shared, let each write be a transaction. An optimistic transaction is
    /// told of every write.
    pub fn begin_transaction(&self, options: TransactionOptions) -> Transaction {
        Transaction(lithify_layers::Transaction::begin(self.clone(), options))
    }
    /// The transactions that are [prepared](Transaction::prepare) and that no handle stands for: those that were when
    /// the database was last closed, or its process ended, and those whose handle was dropped. What they would write is
    /// locked from the open on; what they only read for update is not, after a close. Each is handed out once; dropped
    /// again, it can be asked for again.
    ///
    /// # Errors
    /// `LimitExceeded` if there is no memory for what one would write.
    pub fn prepared_transactions(&self) -> Result<Vec<Transaction>> {
        let all = lithify_layers::prepared_transactions(self)?;
        Ok(all.into_iter().map(Transaction).collect())
    }
}

/// Reads and writes that become visible together, by [`commit`](Transaction::commit), or never.
///
/// What it is isolated from depends on how it reads:
///
/// | reads by | without a snapshot | with one |
/// |---|---|---|
/// | [`get`](Transaction::get), [`iter`](Transaction::iter) | what was committed last: it may change from read to read, and be stale by the commit | the database as it was at the snapshot: snapshot isolation. Of two transactions that write one key one is refused; two that each read what the other writes may both commit (write skew) |
/// | [`get_for_update`](Transaction::get_for_update) | no one else writes the key between the read and the commit: if all reads are made so, transactions are serializable | the same, from the snapshot on |
///
/// Ranges cannot be claimed: of keys that were not there when an iterator passed, nothing is known.
///
/// It may read and write several column families, and commits to all of them or none:
/// [`put_cf`](Transaction::put_cf) has an example.
///
/// ```
/// # fn main() -> lithify::Result<()> {
/// # let dir = std::env::temp_dir().join(format!("lithify-txn-doc-{}", std::process::id()));
/// use lithify::{Db, ErrorKind, Settings, TransactionOptions};
///
/// let db = Db::open(&dir, Settings::default())?;
/// db.put(b"stock", b"2")?;
/// loop {
///     let mut txn = db.begin_transaction(TransactionOptions::optimistic());
///     let stock: u32 = match txn.get_for_update(b"stock")? {
///         Some(n) => String::from_utf8_lossy(&n).parse().unwrap_or(0),
///         None => 0,
///     };
///     txn.put(b"stock", (stock - 1).to_string())?;
///     txn.put(b"order-17", b"stone")?;
///     match txn.commit() {
///         Err(e) if e.kind() == ErrorKind::Busy => continue, // another one was quicker
///         done => break done?,
///     }
/// }
/// assert_eq!(db.get(b"stock")?.as_deref(), Some(&b"1"[..]));
/// # db.close()?;
/// # std::fs::remove_dir_all(&dir).ok();
/// # Ok(())
/// # }
/// ```
pub struct Transaction(pub(crate) lithify_layers::Transaction<Db>);

impl Transaction {
    /// Its number, as in errors of transactions that wait for it.
    pub fn id(&self) -> u64 {
        self.0.id()
    }
    /// The snapshot it reads at, if it has one.
    pub fn snapshot(&self) -> Option<&Snapshot> {
        self.0.snapshot()
    }
    /// Takes a snapshot: later reads see the database as it is now, with this transaction's own
    /// writes, and keys that are claimed later must not have been written since.
    pub fn set_snapshot(&mut self) {
        self.0.set_snapshot();
    }
    /// Lets go of the snapshot: later reads see what was committed last.
    pub fn clear_snapshot(&mut self) {
        self.0.clear_snapshot();
    }
    /// Number of writes it has made.
    pub fn len(&self) -> usize {
        self.0.len()
    }
    /// True if it has made none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// The value of `key`: its own, else that of the snapshot, else what was committed last.
    ///
    /// # Errors
    /// As [`Db::get`].
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.0.get(None, key.as_ref())
    }
    /// The same, and the key is claimed: locked until the transaction ends, or to be unchanged
    /// until the commit.
    ///
    /// # Errors
    /// As [`get`](Transaction::get); `Deadlock` and `TimedOut` if a lock is not to be had, `Busy` if a
    /// pessimistic transaction with a snapshot finds that the key was written since,
    /// `LimitExceeded` if it has claimed too many keys. With these the key is not claimed, and the
    /// transaction is as it was; where only the read failed the key is claimed.
    pub fn get_for_update(&mut self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.0.get_for_update(None, key.as_ref())
    }
    /// An iterator over the database with this transaction's writes, as both are now. Keys it passes
    /// are not claimed. It shows nothing that is written later, and may outlive the transaction.
    ///
    /// # Errors
    /// As [`Db::get`].
    pub fn iter(&self) -> Result<DbIter> {
        self.iter_opt(&ReadOptions::default())
    }
    /// [`iter`](Transaction::iter) with options; a snapshot among them goes before the transaction's.
    ///
    /// # Errors
    /// As [`Db::iter_opt`].
    pub fn iter_opt(&self, options: &ReadOptions) -> Result<DbIter> {
        self.0.iter(None, options)
    }
    /// The entries in `range` with this transaction's writes, as both are now, as [`Db::range`] gives them.
    /// Keys it passes are not claimed.
    pub fn range(&self, range: impl KeyBounds) -> Entries {
        Entries::new(&range, &ReadOptions::default(), |options| self.iter_opt(options))
    }
    /// The entries whose keys begin with `prefix`: see [`range`](Transaction::range).
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Entries {
        let options = ReadOptions::default().with_prefix(prefix);
        Entries::new(&.., &options, |options| self.iter_opt(options))
    }
    /// The entries of `family` in `range`: see [`range`](Transaction::range).
    pub fn range_cf(&self, family: &ColumnFamily, range: impl KeyBounds) -> Entries {
        Entries::new(&range, &ReadOptions::default(), |options| self.iter_cf_opt(family, options))
    }
    /// Sets `key` to `value`, once committed. The key is claimed.
    ///
    /// # Errors
    /// As [`get_for_update`](Transaction::get_for_update), and for what is too long
    /// as `WriteBatch::put`. Nothing was written, but the key may be
    /// claimed.
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.0.write(None, Kind::Value, key.as_ref(), value.as_ref())
    }
    /// Deletes `key`, once committed; it need not exist. The key is claimed.
    ///
    /// # Errors
    /// As [`put`](Transaction::put).
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.0.write(None, Kind::Delete, key.as_ref(), &[])
    }
    /// Deletes `key`, which was put at most once since it was last deleted: see
    /// [`Db::single_delete`]. The key is claimed.
    ///
    /// # Errors
    /// As [`put`](Transaction::put).
    pub fn single_delete(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.0.write(None, Kind::SingleDelete, key.as_ref(), &[])
    }
    /// Merges `operand` into the value of `key`, once committed: see [`Db::merge`]. The key is
    /// claimed.
    ///
    /// # Errors
    /// As [`put`](Transaction::put). That the database has a merge operator is checked by reads of
    /// the key and by the commit.
    pub fn merge(&mut self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        self.0.write(None, Kind::Merge, key.as_ref(), operand.as_ref())
    }
    /// Marks a point to which [`rollback_to_savepoint`](Transaction::rollback_to_savepoint) returns.
    pub fn set_savepoint(&mut self) {
        self.0.set_savepoint();
    }
    /// Undoes all that was done since the last savepoint, and removes that. Keys that were first
    /// claimed since are claimed no more: what was read of them counts as not read.
    ///
    /// # Errors
    /// `NotFound` if there is no savepoint; `LimitExceeded` if there is no memory, and nothing
    /// was undone.
    pub fn rollback_to_savepoint(&mut self) -> Result<()> {
        self.0.rollback_to_savepoint()
    }
    /// Removes the last savepoint and keeps what was done since.
    ///
    /// # Errors
    /// `NotFound` if there is none.
    pub fn pop_savepoint(&mut self) -> Result<()> {
        self.0.pop_savepoint()
    }
    /// Prepares a pessimistic transaction under `name`, of 1 to 512 bytes: all that it would write goes into the
    /// log, and from then on it can only be committed or rolled back. It survives this handle, a close and a crash as
    /// a write of its [durability](TransactionOptions::write) does, at least as one that is buffered:
    /// [`Db::prepared_transactions`] has it again. So one decision can be made over several databases: prepare in
    /// each, then commit in all or roll back in all.
    ///
    /// Until it is over its locks are held, no log from its own on is deleted, and a log that fails is not
    /// replaced by tables: the database is read-only then until it is opened again. Copies of the database have what
    /// is prepared as prepared. A commit writes all of it into the log once more.
    ///
    /// ```
    /// # fn main() -> lithify::Result<()> {
    /// # let dir = std::env::temp_dir().join(format!("lithify-prepare-{}", std::process::id()));
    /// use lithify::{Db, Settings, TransactionOptions};
    ///
    /// let db = Db::open(&dir, Settings::default())?;
    /// let mut txn = db.begin_transaction(TransactionOptions::pessimistic());
    /// txn.put(b"stock", b"1")?;
    /// txn.prepare(b"order-17")?;
    /// drop(txn);
    /// db.close()?;
    ///
    /// let db = Db::open(&dir, Settings::default())?;
    /// assert!(db.get(b"stock")?.is_none());
    /// for txn in db.prepared_transactions()? {
    ///     assert_eq!(txn.name(), Some(&b"order-17"[..]));
    ///     txn.commit()?; // as was decided elsewhere
    /// }
    /// assert_eq!(db.get(b"stock")?.as_deref(), Some(&b"1"[..]));
    /// # db.close()?;
    /// # std::fs::remove_dir_all(&dir).ok();
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` if it is optimistic or prepared already, or another one has the name; else as
    /// [`Db::write_opt`]. It is not prepared then.
    pub fn prepare(&mut self, name: impl AsRef<[u8]>) -> Result<()> {
        self.0.prepare(name.as_ref())
    }
    /// Sets the [options](TransactionOptions::write) of the writes to come: of what prepares, commits or rolls it
    /// back. One of [`Db::prepared_transactions`] has the database's.
    pub fn set_write_options(&mut self, options: WriteOptions) {
        self.0.set_write_options(options);
    }
    /// The name that it is prepared under, if it is.
    pub fn name(&self) -> Option<&[u8]> {
        self.0.name()
    }
    /// Undoes everything: writes, claims and savepoints. The snapshot stays, and the transaction can
    /// be used again.
    ///
    /// # Errors
    /// As [`Db::write_opt`] if it is prepared, and it stays so; none else.
    pub fn rollback(&mut self) -> Result<()> {
        self.0.rollback()
    }
    /// Writes all of it at once, to all families. Whatever comes of it, the transaction is over and
    /// its locks are free, but for one that is prepared and could not be written: that stays prepared.
    ///
    /// # Errors
    /// `Busy` if an optimistic transaction relies on a key that was written meanwhile: nothing was
    /// written, run it again. Else as [`Db::write_opt`]; `NotFound` if a family was dropped.
    pub fn commit(self) -> Result<()> {
        self.0.commit()
    }
    /// The value of `key` of `family`: see [`get`](Transaction::get).
    ///
    /// # Errors
    /// As [`get`](Transaction::get); `NotFound` if the family was dropped, `InvalidArgument` if it is
    /// another database's.
    pub fn get_cf(&self, family: &ColumnFamily, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.0.get(Some(family), key.as_ref())
    }
    /// The same, and the key of `family` is claimed: see
    /// [`get_for_update`](Transaction::get_for_update).
    ///
    /// # Errors
    /// As [`get_for_update`](Transaction::get_for_update) and [`get_cf`](Transaction::get_cf).
    pub fn get_for_update_cf(
        &mut self,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<Value>> {
        self.0.get_for_update(Some(family), key.as_ref())
    }
    /// An iterator over `family` with this transaction's writes to it: see
    /// [`iter`](Transaction::iter).
    ///
    /// # Errors
    /// As [`get_cf`](Transaction::get_cf).
    pub fn iter_cf(&self, family: &ColumnFamily) -> Result<DbIter> {
        self.iter_cf_opt(family, &ReadOptions::default())
    }
    /// [`iter_cf`](Transaction::iter_cf) with options; a snapshot among them goes before the
    /// transaction's.
    ///
    /// # Errors
    /// As [`iter_opt`](Transaction::iter_opt) and [`get_cf`](Transaction::get_cf).
    pub fn iter_cf_opt(&self, family: &ColumnFamily, options: &ReadOptions) -> Result<DbIter> {
        self.0.iter(Some(family), options)
    }
    /// Sets `key` of `family` to `value`, once committed. The key is claimed.
    ///
    /// ```
    /// # fn main() -> lithify::Result<()> {
    /// # let dir = std::env::temp_dir().join(format!("lithify-txn-cf-{}", std::process::id()));
    /// use lithify::{ColumnFamilyOptions, Db, Settings, TransactionOptions};
    ///
    /// let db = Db::open(&dir, Settings::default())?;
    /// let by_name = db.create_column_family("by-name", ColumnFamilyOptions::new())?;
    ///
    /// let mut txn = db.begin_transaction(TransactionOptions::pessimistic());
    /// if txn.get_for_update_cf(&by_name, b"pear")?.is_none() {
    ///     txn.put(b"8", b"pear")?;
    ///     txn.put_cf(&by_name, b"pear", b"8")?;
    /// }
    /// txn.commit()?; // both or neither, whatever happens
    /// assert_eq!(by_name.get(b"pear")?.as_deref(), Some(&b"8"[..]));
    /// # db.close()?;
    /// # std::fs::remove_dir_all(&dir).ok();
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`put`](Transaction::put); `InvalidArgument` if the family is another database's. Whether it
    /// was dropped is checked by the commit.
    pub fn put_cf(
        &mut self,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.0.write(Some(family), Kind::Value, key.as_ref(), value.as_ref())
    }
    /// Deletes `key` of `family`, once committed; it need not exist. The key is claimed.
    ///
    /// # Errors
    /// As [`put_cf`](Transaction::put_cf).
    pub fn delete_cf(&mut self, family: &ColumnFamily, key: impl AsRef<[u8]>) -> Result<()> {
        self.0.write(Some(family), Kind::Delete, key.as_ref(), &[])
    }
    /// Deletes `key` of `family`, which was put at most once since it was last deleted: see
    /// [`Db::single_delete`]. The key is claimed.
    ///
    /// # Errors
    /// As [`put_cf`](Transaction::put_cf).
    pub fn single_delete_cf(&mut self, family: &ColumnFamily, key: impl AsRef<[u8]>) -> Result<()> {
        self.0.write(Some(family), Kind::SingleDelete, key.as_ref(), &[])
    }
    /// Merges `operand` into the value of `key` of `family`, once committed: see
    /// [`merge`](Transaction::merge). The key is claimed.
    ///
    /// # Errors
    /// As [`merge`](Transaction::merge) and [`put_cf`](Transaction::put_cf).
    pub fn merge_cf(
        &mut self,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.0.write(Some(family), Kind::Merge, key.as_ref(), operand.as_ref())
    }
}

impl std::fmt::Debug for Transaction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}
