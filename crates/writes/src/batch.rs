//! Batches: several writes that become visible together or not at all, each to a column family by
//! its number.

use lithify_base::{CfId, Error, Kind, Result, memory};
use lithify_journal::wal::{BatchBuilder, BatchMark, BatchView, Op, Sections};

/// Longest key, bytes.
pub const MAX_KEY_BYTES: usize = 16 << 20;
/// Longest value, bytes.
pub const MAX_VALUE_BYTES: usize = 1 << 30;
/// Largest batch, bytes of its encoded form.
pub const MAX_BATCH_BYTES: usize = 3 << 30;

/// Writes to apply atomically, in the order they were added, within the limits on their sizes.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    inner: BatchBuilder,
}

impl Batch {
    /// Sets `key` of family `cf`.
    ///
    /// # Errors
    /// `LimitExceeded` if the key, the value or the batch is too large, or there is no memory; the
    /// batch is unchanged.
    pub fn put(&mut self, cf: CfId, key: &[u8], value: &[u8]) -> Result<()> {
        check_key(key)?;
        check_value(value)?;
        self.make_room(key.len() + value.len())?;
        self.inner.put(cf, key, value);
        Ok(())
    }
    /// Deletes `key` of family `cf`.
    ///
    /// # Errors
    /// As [`put`](Batch::put).
    pub fn delete(&mut self, cf: CfId, key: &[u8]) -> Result<()> {
        check_key(key)?;
        self.make_room(key.len())?;
        self.inner.delete(cf, key);
        Ok(())
    }
    /// Deletes `key` of family `cf`, which was put at most once since it was last deleted.
    ///
    /// # Errors
    /// As [`put`](Batch::put).
    pub fn single_delete(&mut self, cf: CfId, key: &[u8]) -> Result<()> {
        check_key(key)?;
        self.make_room(key.len())?;
        self.inner.single_delete(cf, key);
        Ok(())
    }
    /// Merges `operand` into the value of `key` of family `cf`.
    ///
    /// # Errors
    /// As [`put`](Batch::put). That the family has a merge operator is checked when the batch is
    /// written.
    pub fn merge(&mut self, cf: CfId, key: &[u8], operand: &[u8]) -> Result<()> {
        check_key(key)?;
        check_value(operand)?;
        self.make_room(key.len() + operand.len())?;
        self.inner.merge(cf, key, operand);
        Ok(())
    }
    /// Deletes every key of family `cf` from `from` on that is below `to`.
    ///
    /// # Errors
    /// As [`put`](Batch::put). The order of the bounds is checked when the batch is written.
    pub fn delete_range(&mut self, cf: CfId, from: &[u8], to: &[u8]) -> Result<()> {
        check_bounds(from, to)?;
        self.make_room(from.len() + to.len())?;
        self.inner.delete_range(cf, from, to);
        Ok(())
    }
    /// Adds a note that goes into the log with the batch and is no write.
    ///
    /// # Errors
    /// As [`put`](Batch::put).
    pub fn log_data(&mut self, note: &[u8]) -> Result<()> {
        check_value(note)?;
        self.make_room(note.len())?;
        self.inner.log_data(note);
        Ok(())
    }
    /// The batch of an encoded form, which is checked whole.
    ///
    /// # Errors
    /// `Corruption` for bytes that are no batch, `Unsupported` for entries that this version lacks,
    /// `LimitExceeded` for a key, a value or a batch that is too large, or without memory for a copy.
    pub fn from_encoded(encoded: &[u8]) -> Result<Batch> {
        check_limit("batch", encoded.len(), MAX_BATCH_BYTES)?;
        for op in BatchView::parse(encoded)?.iter_all() {
            match op {
                Op::Write(op) if op.kind == Kind::RangeDelete => check_bounds(op.key, op.value)?,
                Op::Write(op) => check_key(op.key).and_then(|()| check_value(op.value))?,
                Op::LogData(note) => check_value(note)?,
                Op::Mark(_) => {
                    return Err(Error::unsupported(
                        "marks of two-phase commit are the log's; prepare and commit a transaction",
                    ));
                }
            }
        }
        let bytes = memory::copied(encoded, "a batch")?;
        Ok(Batch { inner: BatchBuilder::from_bytes(bytes)? })
    }
    /// A batch of entries that came out of one, within its limits.
    pub fn of(inner: BatchBuilder) -> Batch {
        Batch { inner }
    }
    /// What takes effect of a batch that a log holds.
    ///
    /// # Errors
    /// As [`from_encoded`](Batch::from_encoded).
    pub fn of_logged(batch: &BatchView<'_>, encoded: &[u8]) -> Result<Batch> {
        match Sections::default().take(batch)? {
            Some(effect) => Ok(Batch::of(effect)),
            None => Batch::from_encoded(encoded),
        }
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
    /// Its encoded form.
    #[inline]
    pub fn encoded(&self) -> &BatchBuilder {
        &self.inner
    }
    /// Its writes, in order.
    pub fn view(&self) -> BatchView<'_> {
        self.inner.view()
    }
    /// Its present end, to come back to.
    pub fn mark(&self) -> BatchMark {
        self.inner.mark()
    }
    /// The writes before `mark`.
    pub fn view_to(&self, mark: BatchMark) -> BatchView<'_> {
        self.inner.view_to(mark)
    }
    /// Removes the writes after `mark`.
    pub fn truncate(&mut self, mark: BatchMark) {
        self.inner.truncate(mark);
    }

    /// Room for one more entry with `bytes` bytes of key and value.
    fn make_room(&mut self, bytes: usize) -> Result<()> {
        check_limit("batch", self.inner.byte_len() + bytes + 32, MAX_BATCH_BYTES)?;
        self.inner.try_reserve(1, bytes)
    }
}

/// Refuses a key that is too long.
///
/// # Errors
/// `LimitExceeded`.
pub fn check_key(key: &[u8]) -> Result<()> {
    check_limit("key", key.len(), MAX_KEY_BYTES)
}

/// Refuses a value that is too long.
///
/// # Errors
/// `LimitExceeded`.
pub fn check_value(value: &[u8]) -> Result<()> {
    check_limit("value", value.len(), MAX_VALUE_BYTES)
}

/// Refuses bounds of a range deletion that are too long.
///
/// # Errors
/// `LimitExceeded`.
pub fn check_bounds(from: &[u8], to: &[u8]) -> Result<()> {
    check_key(from)?;
    check_key(to)
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
