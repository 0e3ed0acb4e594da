//! The writes of an open database once more, by the names that users know.
//!
//! Leaves to others: reading logs (`lithify_tree`).

use lithify_base::Result;

use crate::batch::WriteBatch;
use crate::db::Db;

/// The writes from a number on: see [`Db::updates_since`].
#[derive(Debug)]
pub struct Updates(lithify_tree::Updates);

impl Db {
    /// The writes of all column families from number `since` on, in the order in which they became visible,
    /// out of the logs: for copies of the database elsewhere. Each write has a number; a batch takes as many
    /// as it has entries. The first batch is the one that has `since` in it.
    ///
    /// The logs go back to the oldest write that is in no table yet. What was flushed, or skipped the log,
    /// is missing there, and that is an error, never a gap: take a checkpoint then, and begin behind its
    /// [last number](crate::Stats::last_sequence). Writers that wrote at the same time may be in one batch.
    ///
    /// ```
    /// # fn main() -> lithify::Result<()> {
    /// # let dir = std::env::temp_dir().join(format!("lithify-updates-{}", std::process::id()));
    /// # let db = lithify::Db::open(&dir, lithify::Settings::default())?;
    /// use lithify::BatchEntry;
    ///
    /// let seen = db.snapshot().sequence();
    /// db.put(b"apple", b"red")?;
    /// let mut updates = db.updates_since(seen + 1)?;
    /// let (number, batch) = updates.next().unwrap()?;
    /// assert_eq!(number, seen + 1);
    /// assert!(batch.entries().eq([BatchEntry::Put(0, b"apple", b"red")]));
    /// assert!(updates.next().is_none()); // until there is more:
    /// db.delete(b"apple")?;
    /// assert_eq!(updates.next().unwrap()?.0, seen + 2);
    /// # db.close()?;
    /// # std::fs::remove_dir_all(&dir).ok();
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `NotFound` if there is no such write yet, or not in the logs any more; `ReadOnly` for a handle that
    /// only reads; `Stalled` while a log that was lost is replaced; `Io`, `Corruption`.
    pub fn updates_since(&self, since: u64) -> Result<Updates> {
        self.shell.updates(since).map(Updates)
    }
}

impl Iterator for Updates {
    /// The number of the first write of a batch, and the batch.
    type Item = Result<(u64, WriteBatch)>;

    /// The next batch; `None` if there is none yet. After an error, which ends it, there is none.
    fn next(&mut self) -> Option<Result<(u64, WriteBatch)>> {
        Some(self.0.next()?.map(|(first, batch)| (first, WriteBatch::of(batch))))
    }
}
