//! Batches: several writes that become visible together or not at all.

use lithify_base::{CfId, Comparator, Error, Result};
use lithify_format::wal::BatchBuilder;

use crate::open::DEFAULT_CF;

/// Longest key, bytes.
pub const MAX_KEY_BYTES: usize = 16 << 20;
/// Longest value, bytes.
pub const MAX_VALUE_BYTES: usize = 1 << 30;
/// Largest batch, bytes of its encoded form.
pub const MAX_BATCH_BYTES: usize = 3 << 30;

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
    pub(crate) inner: BatchBuilder,
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
        self.put_to(DEFAULT_CF, key.as_ref(), value.as_ref())
    }
    pub(crate) fn put_to(&mut self, cf: CfId, key: &[u8], value: &[u8]) -> Result<()> {
        check_key(key)?;
        check_value(value)?;
        self.make_room(key.len() + value.len())?;
        self.inner.put(cf, key, value);
        Ok(())
    }
    /// Deletes `key`; it need not exist.
    ///
    /// # Errors
    /// As [`put`](WriteBatch::put).
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.delete_to(DEFAULT_CF, key.as_ref())
    }
    pub(crate) fn delete_to(&mut self, cf: CfId, key: &[u8]) -> Result<()> {
        check_key(key)?;
        self.make_room(key.len())?;
        self.inner.delete(cf, key);
        Ok(())
    }
    /// Deletes `key`, which was put at most once since it was last deleted: see
    /// [`Db::single_delete`](crate::Db::single_delete).
    ///
    /// # Errors
    /// As [`put`](WriteBatch::put).
    pub fn single_delete(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.single_delete_to(DEFAULT_CF, key.as_ref())
    }
    pub(crate) fn single_delete_to(&mut self, cf: CfId, key: &[u8]) -> Result<()> {
        check_key(key)?;
        self.make_room(key.len())?;
        self.inner.single_delete(cf, key);
        Ok(())
    }
    /// Merges `operand` into the value of `key`: see [`Db::merge`](crate::Db::merge).
    ///
    /// # Errors
    /// As [`put`](WriteBatch::put). That the database has a merge operator is checked when the batch
    /// is written.
    pub fn merge(&mut self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        self.merge_to(DEFAULT_CF, key.as_ref(), operand.as_ref())
    }
    pub(crate) fn merge_to(&mut self, cf: CfId, key: &[u8], operand: &[u8]) -> Result<()> {
        check_key(key)?;
        check_value(operand)?;
        self.make_room(key.len() + operand.len())?;
        self.inner.merge(cf, key, operand);
        Ok(())
    }
    /// Deletes every key from `from` on that is below `to`.
    ///
    /// # Errors
    /// As [`put`](WriteBatch::put). That `from` is below `to` is checked when the batch is
    /// written, by the database's order.
    pub fn delete_range(&mut self, from: impl AsRef<[u8]>, to: impl AsRef<[u8]>) -> Result<()> {
        self.delete_range_of(DEFAULT_CF, from.as_ref(), to.as_ref())
    }
    pub(crate) fn delete_range_of(&mut self, cf: CfId, from: &[u8], to: &[u8]) -> Result<()> {
        check_bounds(from, to)?;
        self.make_room(from.len() + to.len())?;
        self.inner.delete_range(cf, from, to);
        Ok(())
    }
    /// Number of writes.
    pub fn len(&self) -> usize {
        self.inner.count() as usize
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

    /// Room for one more entry with `bytes` bytes of key and value.
    pub(crate) fn make_room(&mut self, bytes: usize) -> Result<()> {
        check_limit("batch", self.inner.byte_len() + bytes + 32, MAX_BATCH_BYTES)?;
        self.inner.try_reserve(1, bytes)
    }
}

pub(crate) fn check_key(key: &[u8]) -> Result<()> {
    check_limit("key", key.len(), MAX_KEY_BYTES)
}

pub(crate) fn check_value(value: &[u8]) -> Result<()> {
    check_limit("value", value.len(), MAX_VALUE_BYTES)
}

/// The bounds of a range deletion.
pub(crate) fn check_bounds(from: &[u8], to: &[u8]) -> Result<()> {
    check_key(from)?;
    check_key(to)
}

/// A range does not end before it starts; an empty one is no error.
pub(crate) fn check_order(order: &dyn Comparator, from: &[u8], to: &[u8]) -> Result<()> {
    match order.compare(from, to).is_gt() {
        true => Err(Error::invalid("the range ends before it starts; swap its bounds")),
        false => Ok(()),
    }
}

fn check_limit(what: &str, len: usize, limit: usize) -> Result<()> {
    if len <= limit {
        return Ok(());
    }
    Err(Error::new(
        lithify_base::ErrorKind::LimitExceeded,
        format!("the {what} has {len} bytes; the limit is {limit}; nothing was written"),
    ))
}
