//! Batches: several writes that become visible together or not at all.

use lithify_base::{Error, ErrorKind, Kind, Result};
use lithify_journal::wal::{BatchMark, Op};
use lithify_tree::{Batch, DEFAULT_CF};

use crate::families::ColumnFamily;

/// Writes to apply atomically, in the order they were added; of two writes to one key the later
/// one wins. Reusable: [`clear`](WriteBatch::clear) keeps the memory.
///
/// ```
/// let mut batch = lithify::WriteBatch::new();
/// batch.put(b"apple", b"red")?;
/// batch.delete(b"pear")?;
/// assert_eq!(batch.len(), 2);
/// # Ok::<(), lithify::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct WriteBatch {
    pub(crate) inner: Batch,
    savepoints: Vec<BatchMark>,
}

/// One entry of a [`WriteBatch`]. Families go by their [numbers](ColumnFamily::id).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BatchEntry<'a> {
    /// [`put`](WriteBatch::put), with the family, the key and the value.
    Put(u32, &'a [u8], &'a [u8]),
    /// [`delete`](WriteBatch::delete), with the family and the key.
    Delete(u32, &'a [u8]),
    /// [`single_delete`](WriteBatch::single_delete), with the family and the key.
    SingleDelete(u32, &'a [u8]),
    /// [`merge`](WriteBatch::merge), with the family, the key and the operand.
    Merge(u32, &'a [u8], &'a [u8]),
    /// [`delete_range`](WriteBatch::delete_range), with the family, the first key and the end.
    DeleteRange(u32, &'a [u8], &'a [u8]),
    /// [`log_data`](WriteBatch::log_data).
    LogData(&'a [u8]),
}

impl WriteBatch {
    /// An empty batch.
    pub fn new() -> WriteBatch {
        WriteBatch::default()
    }
    /// Sets `key`, of 0 to 16 MiB, to `value`.
    ///
    /// # Errors
    /// [`LimitExceeded`](crate::ErrorKind::LimitExceeded) if the key, the value or the batch is
    /// too large, or there is no memory; the batch is unchanged.
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.inner.put(DEFAULT_CF, key.as_ref(), value.as_ref())
    }
    /// Deletes `key`; it need not exist.
    ///
    /// # Errors
    /// As [`put`](WriteBatch::put).
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.inner.delete(DEFAULT_CF, key.as_ref())
    }
    /// Deletes `key`, which was put at most once since it was last deleted: see
    /// [`Db::single_delete`](crate::Db::single_delete).
    ///
    /// # Errors
    /// As [`put`](WriteBatch::put).
    pub fn single_delete(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.inner.single_delete(DEFAULT_CF, key.as_ref())
    }
    /// Merges `operand` into the value of `key`: see [`Db::merge`](crate::Db::merge).
    ///
    /// # Errors
    /// As [`put`](WriteBatch::put). That the database has a merge operator is checked when the batch
    /// is written.
    pub fn merge(&mut self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        self.inner.merge(DEFAULT_CF, key.as_ref(), operand.as_ref())
    }
    /// Deletes every key from `from` on that is below `to`.
    ///
    /// # Errors
    /// As [`put`](WriteBatch::put). That `from` is below `to` is checked when the batch is
    /// written, by the database's order.
    pub fn delete_range(&mut self, from: impl AsRef<[u8]>, to: impl AsRef<[u8]>) -> Result<()> {
        self.inner.delete_range(DEFAULT_CF, from.as_ref(), to.as_ref())
    }
    /// Number of writes.
    pub fn len(&self) -> usize {
        self.inner.len()
    }
    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.inner.is_empty()
    }
    /// Removes all writes and savepoints, and keeps the memory.
    pub fn clear(&mut self) {
        self.inner.clear();
        self.savepoints.clear();
    }
    /// Bytes of the encoded form.
    pub fn byte_len(&self) -> usize {
        self.inner.byte_len()
    }
    /// Adds a note that goes into the log with the batch. It is no write: reads do not find it.
    ///
    /// # Errors
    /// As [`put`](WriteBatch::put).
    pub fn log_data(&mut self, note: impl AsRef<[u8]>) -> Result<()> {
        self.inner.log_data(note.as_ref())
    }
    /// The encoded form, byte for byte RocksDB's: eight bytes for a sequence number, which is 0 until the
    /// batch is written, four for the number of writes, and the entries.
    ///
    /// ```
    /// use lithify::{BatchEntry, WriteBatch};
    ///
    /// let mut batch = WriteBatch::new();
    /// batch.put(b"apple", b"red")?;
    /// assert_eq!(batch.encoded()[12..], *b"\x01\x05apple\x03red");
    /// let copy = WriteBatch::from_encoded(batch.encoded())?;
    /// assert!(copy.entries().eq([BatchEntry::Put(0, b"apple", b"red")]));
    /// # Ok::<(), lithify::Error>(())
    /// ```
    pub fn encoded(&self) -> &[u8] {
        self.inner.encoded().as_bytes()
    }
    /// The batch that was written, of a log.
    pub(crate) fn of(inner: Batch) -> WriteBatch {
        WriteBatch { inner, savepoints: Vec::new() }
    }
    /// The batch of an [encoded](WriteBatch::encoded) form. The bytes may come from anywhere: they are
    /// checked whole. Families are checked when the batch is written.
    ///
    /// # Errors
    /// `Corruption` for bytes that are no batch, `Unsupported` for entries that this version lacks,
    /// [`LimitExceeded`](crate::ErrorKind::LimitExceeded) for a key, a value or a batch that is too
    /// large, or without memory for a copy.
    pub fn from_encoded(encoded: impl AsRef<[u8]>) -> Result<WriteBatch> {
        Ok(WriteBatch { inner: Batch::from_encoded(encoded.as_ref())?, savepoints: Vec::new() })
    }
    /// The entries in the order in which they were added, notes included.
    pub fn entries(&self) -> impl Iterator<Item = BatchEntry<'_>> {
        self.inner.view().iter_all().filter_map(|op| match op {
            Op::LogData(note) => Some(BatchEntry::LogData(note)),
            // Marks are the log's.
            Op::Mark(_) => None,
            Op::Write(op) => Some(match op.kind {
                Kind::Delete => BatchEntry::Delete(op.cf.0, op.key),
                Kind::SingleDelete => BatchEntry::SingleDelete(op.cf.0, op.key),
                Kind::Merge => BatchEntry::Merge(op.cf.0, op.key, op.value),
                Kind::RangeDelete => BatchEntry::DeleteRange(op.cf.0, op.key, op.value),
                Kind::Value => BatchEntry::Put(op.cf.0, op.key, op.value),
            }),
        })
    }
    /// Marks a point to which [`rollback_to_savepoint`](WriteBatch::rollback_to_savepoint) returns.
    pub fn set_savepoint(&mut self) {
        self.savepoints.push(self.inner.mark());
    }
    /// Removes what was added since the last savepoint, and that.
    ///
    /// # Errors
    /// `NotFound` if there is no savepoint.
    pub fn rollback_to_savepoint(&mut self) -> Result<()> {
        let mark = self.savepoints.pop().ok_or_else(no_savepoint)?;
        self.inner.truncate(mark);
        Ok(())
    }
    /// Removes the last savepoint and keeps what was added since.
    ///
    /// # Errors
    /// `NotFound` if there is none.
    pub fn pop_savepoint(&mut self) -> Result<()> {
        self.savepoints.pop().map(drop).ok_or_else(no_savepoint)
    }
}

#[cold]
fn no_savepoint() -> Error {
    Error::new(ErrorKind::NotFound, "the batch has no savepoint")
}

impl WriteBatch {
    /// Sets `key` of `family` to `value`.
    ///
    /// # Errors
    /// As [`put`](WriteBatch::put). Whether the family is one of the database's is checked when the
    /// batch is written, by its number: a batch must not mix families of several databases.
    pub fn put_cf(
        &mut self,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.inner.put(family.shell.cf(), key.as_ref(), value.as_ref())
    }
    /// Deletes `key` of `family`; it need not exist.
    ///
    /// # Errors
    /// As [`put_cf`](WriteBatch::put_cf).
    pub fn delete_cf(&mut self, family: &ColumnFamily, key: impl AsRef<[u8]>) -> Result<()> {
        self.inner.delete(family.shell.cf(), key.as_ref())
    }
    /// Deletes `key` of `family`, which was put at most once since it was last deleted: see
    /// [`Db::single_delete`](crate::Db::single_delete).
    ///
    /// # Errors
    /// As [`put_cf`](WriteBatch::put_cf).
    pub fn single_delete_cf(&mut self, family: &ColumnFamily, key: impl AsRef<[u8]>) -> Result<()> {
        self.inner.single_delete(family.shell.cf(), key.as_ref())
    }
    /// Merges `operand` into the value of `key` of `family`: see
    /// [`Db::merge`](crate::Db::merge).
    ///
    /// # Errors
    /// As [`merge`](WriteBatch::merge) and [`put_cf`](WriteBatch::put_cf).
    pub fn merge_cf(
        &mut self,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.inner.merge(family.shell.cf(), key.as_ref(), operand.as_ref())
    }
    /// Deletes every key of `family` from `from` on that is below `to`.
    ///
    /// # Errors
    /// As [`delete_range`](WriteBatch::delete_range) and [`put_cf`](WriteBatch::put_cf).
    pub fn delete_range_cf(
        &mut self,
        family: &ColumnFamily,
        from: impl AsRef<[u8]>,
        to: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.inner.delete_range(family.shell.cf(), from.as_ref(), to.as_ref())
    }
}

#[doc(hidden)] // for the layers
impl AsRef<Batch> for WriteBatch {
    fn as_ref(&self) -> &Batch {
        &self.inner
    }
}
