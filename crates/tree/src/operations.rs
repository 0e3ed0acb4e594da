//! What the layers above do with one column family: the writes, and what is asked of the tree as a
//! whole. Reads are in [`crate::read`], waiting in `shell::waiting`.

use std::path::Path;

use lithify_base::{
    CfId, Comparator, ComparatorRef, Error, ErrorKind, Key, KeyRange, MergeOperatorRef, Prefixes,
    Result,
};
use lithify_control::Outside;
use lithify_env::Env;
use lithify_env::sync::Arc;
use lithify_env::sync::atomic::Ordering;
use lithify_journal::files::FileName;

use crate::options::WriteOptions;
use crate::settings::Settings;
use crate::shell::Shell;
use crate::write::Own;
use lithify_views::look::ranges::check_order;

use lithify_writes::batch::{Batch, check_key, check_value};

impl Shell {
    /// Its number in the log, the manifest and the tables.
    #[inline]
    pub fn cf(&self) -> CfId {
        self.family.cf
    }
    /// Its name.
    pub fn name(&self) -> &str {
        &self.family.name
    }
    /// The settings in force.
    pub fn settings(&self) -> Settings {
        Settings::clone(&self.family.settings.load())
    }
    /// The order of its keys.
    pub fn order(&self) -> &dyn Comparator {
        &**self.comparator()
    }
    /// Combines its operands; `None` if it was opened without one.
    pub fn operator(&self) -> Option<&MergeOperatorRef> {
        self.context().operator.as_ref()
    }
    /// Prefixes of its keys that filters have.
    pub fn prefixes(&self) -> &Prefixes {
        &self.context().output.prefixes
    }
    /// The world that the database lives in.
    pub fn env(&self) -> &Env {
        &self.shared.resources.env
    }
    /// The open families by number, the default one first.
    pub fn families(&self) -> Vec<Shell> {
        self.shared.families()
    }
    /// The open family with this number.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn family_of(&self, cf: CfId) -> Result<Shell> {
        self.shared.family_of(cf)
    }
    /// The open family with this name.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn family_named(&self, name: &str) -> Result<Shell> {
        self.shared.family_named(name)
    }
    /// The directory.
    pub fn path(&self) -> &Path {
        self.shared.path()
    }
    /// The id that the database was made with.
    pub fn db_id(&self) -> &str {
        &self.shared.resources.maker.db_id
    }
    /// Writes the file that programs know from RocksDB, in place of the one before: what an open was given.
    ///
    /// # Errors
    /// `ReadOnly` for a handle that only reads; `Io`, `NoSpace`.
    pub fn write_info_log(&self, text: &str) -> Result<()> {
        if self.shared.is_read_only_handle() {
            let what = "a handle that only reads writes nothing; open it with `open`";
            return Err(Error::new(ErrorKind::ReadOnly, what));
        }
        let temp = FileName::Temp(self.shared.next_file().0);
        self.shared.resources.dir.replace(FileName::InfoLog, temp, text.as_bytes())
    }
    /// Whether both are column families of one open database.
    pub fn is_of_same_database(&self, other: &Shell) -> bool {
        Arc::ptr_eq(self.shared(), other.shared())
    }

    /// Sets `key` to `value`.
    ///
    /// # Errors
    /// `LimitExceeded` for a key or a value that is too long; else as [`write_batch`](Shell::write_batch).
    #[inline]
    pub fn put(&self, key: &[u8], value: &[u8], options: &WriteOptions) -> Result<()> {
        check_key(key)?;
        check_value(value)?;
        self.write(Own::Put { cf: self.family.cf, key, value }, options)
    }
    /// Deletes `key`; it need not exist.
    ///
    /// # Errors
    /// As [`put`](Shell::put).
    #[inline]
    pub fn delete(&self, key: &[u8], options: &WriteOptions) -> Result<()> {
        check_key(key)?;
        self.write(Own::Delete { cf: self.family.cf, key }, options)
    }
    /// Deletes `key`, which was put at most once since it was last deleted.
    ///
    /// # Errors
    /// As [`put`](Shell::put).
    pub fn single_delete(&self, key: &[u8], options: &WriteOptions) -> Result<()> {
        let mut batch = Batch::default();
        batch.single_delete(self.family.cf, key)?;
        self.write_batch(&batch, options)
    }
    /// Merges `operand` into the value of `key`.
    ///
    /// # Errors
    /// As [`put`](Shell::put); `InvalidArgument` if the family was opened without a merge operator.
    pub fn merge(&self, key: &[u8], operand: &[u8], options: &WriteOptions) -> Result<()> {
        let mut batch = Batch::default();
        batch.merge(self.family.cf, key, operand)?;
        self.write_batch(&batch, options)
    }
    /// Deletes every key from `from` on that is below `to`.
    ///
    /// # Errors
    /// As [`put`](Shell::put); `InvalidArgument` if `from` is above `to`.
    pub fn delete_range(&self, from: &[u8], to: &[u8], options: &WriteOptions) -> Result<()> {
        let mut batch = Batch::default();
        batch.delete_range(self.family.cf, from, to)?;
        self.write_batch(&batch, options)
    }
    /// Applies a batch atomically.
    ///
    /// # Errors
    /// `NotCommitted`, `NoSpace`: the write failed and never becomes visible. `OutcomeUnknown`: it may
    /// be visible after the next open. `ReadOnly`: an earlier error stopped writes. `Fenced`: this
    /// process does not own the database. `InvalidArgument`: called from within user code that the
    /// database waits for, or the batch can't be written by this family. `Stalled` if asked not to
    /// wait.
    pub fn write_batch(&self, batch: &Batch, options: &WriteOptions) -> Result<()> {
        self.write(Own::Batch(batch.encoded()), options)
    }
    /// Writes `batch` if `check` passes when no other write can come between it and the batch.
    ///
    /// # Errors
    /// Those of `check`, then nothing was written; else as [`write_batch`](Shell::write_batch).
    pub fn write_batch_if(
        &self,
        batch: &Batch,
        options: &WriteOptions,
        check: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        self.write_if(batch.encoded(), options, check, || ())
    }

    /// The range between two optional bounds, within that of all keys; `None` if nothing lies there.
    ///
    /// # Errors
    /// `InvalidArgument` if it ends before it starts.
    pub fn clip(&self, from: Option<&[u8]>, to: Option<&[u8]>) -> Result<Option<KeyRange>> {
        let Some(all) = self.super_version().bounds() else {
            return Ok(None);
        };
        let order = self.order();
        if let (Some(from), Some(to)) = (from, to) {
            check_order(order, from, to)?;
        }
        let lo: Key = from.map_or_else(|| all.lo.clone(), Into::into);
        let range = match to {
            // It ends before the first key.
            Some(to) if order.compare(&lo, to).is_gt() => return Ok(None),
            Some(to) => KeyRange::excl(lo, to),
            None => KeyRange { lo, hi: all.hi.clone() },
        };
        Ok(range.clamp(&all, order))
    }

    /// Drops the tables whose keys all lie in one of `ranges`, atomically.
    ///
    /// # Errors
    /// `ReadOnly`; `OutcomeUnknown` if the manifest could not be written.
    pub fn drop_tables(&self, ranges: Vec<KeyRange>) -> Result<()> {
        self.sync_log()?;
        self.outside(Outside::Drop { ranges })
    }

    /// Brings the directory into a form that RocksDB opens once the database is closed.
    ///
    /// # Errors
    /// As of a compaction.
    pub fn settle_all(&self) -> Result<()> {
        self.families().iter().try_for_each(|family| family.settle())?;
        self.shared.life.settled.store(true, Ordering::SeqCst);
        Ok(())
    }

    /// The order of its keys, to be shared.
    pub fn comparator(&self) -> &ComparatorRef {
        &self.family.order
    }
}
