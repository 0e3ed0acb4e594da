//! Batches: several writes that become visible together or not at all.

use lithify_base::Result;
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
    /// Removes all writes and keeps the memory.
    pub fn clear(&mut self) {
        self.inner.clear();
    }
    /// Bytes of the encoded form.
    pub fn byte_len(&self) -> usize {
        self.inner.byte_len()
    }
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
