//! A transaction over several column families: what it reads and writes by a family's name, besides
//! the family of the handle that began it.
//!
//! Keeps: only families of the same open database are taken.
//! Leaves to others: all that is the same for any family (`txn`).

use lithify_base::{Error, Kind, Result};
use lithify_tree::{DbIter, ReadOptions, Shell, Value};

use super::Transaction;
use crate::store::Store;

impl<D: Store> Transaction<D> {
    /// The value of `key` of `family`: see [`get`](Transaction::get).
    ///
    /// # Errors
    /// As [`get`](Transaction::get); `NotFound` if the family was dropped, `InvalidArgument` if it is
    /// another database's.
    pub fn get_cf(&self, family: &D::Family, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.read(self.tree_of(family)?, key.as_ref(), self.snapshot.as_ref())
    }
    /// The same, and the key of `family` is claimed: see
    /// [`get_for_update`](Transaction::get_for_update).
    ///
    /// # Errors
    /// As [`get_for_update`](Transaction::get_for_update) and [`get_cf`](Transaction::get_cf).
    pub fn get_for_update_cf(
        &mut self,
        family: &D::Family,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<Value>> {
        let of = self.tree_of(family)?;
        self.read_for_update(of, key.as_ref())
    }
    /// An iterator over `family` with this transaction's writes to it: see
    /// [`iter`](Transaction::iter).
    ///
    /// # Errors
    /// As [`get_cf`](Transaction::get_cf).
    pub fn iter_cf(&self, family: &D::Family) -> Result<DbIter> {
        self.iter_cf_opt(family, &ReadOptions::default())
    }
    /// [`iter_cf`](Transaction::iter_cf) with options; a snapshot among them goes before the
    /// transaction's.
    ///
    /// # Errors
    /// As [`iter_opt`](Transaction::iter_opt) and [`get_cf`](Transaction::get_cf).
    pub fn iter_cf_opt(&self, family: &D::Family, options: &ReadOptions) -> Result<DbIter> {
        self.iter_of(self.tree_of(family)?, options)
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
        family: &D::Family,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        let of = self.tree_of(family)?;
        self.add(of, Kind::Value, key.as_ref(), value.as_ref())
    }
    /// Deletes `key` of `family`, once committed; it need not exist. The key is claimed.
    ///
    /// # Errors
    /// As [`put_cf`](Transaction::put_cf).
    pub fn delete_cf(&mut self, family: &D::Family, key: impl AsRef<[u8]>) -> Result<()> {
        let of = self.tree_of(family)?;
        self.add(of, Kind::Delete, key.as_ref(), &[])
    }
    /// Deletes `key` of `family`, which was put at most once since it was last deleted: see
    /// `Db::single_delete`. The key is claimed.
    ///
    /// # Errors
    /// As [`put_cf`](Transaction::put_cf).
    pub fn single_delete_cf(&mut self, family: &D::Family, key: impl AsRef<[u8]>) -> Result<()> {
        let of = self.tree_of(family)?;
        self.add(of, Kind::SingleDelete, key.as_ref(), &[])
    }
    /// Merges `operand` into the value of `key` of `family`, once committed: see
    /// [`merge`](Transaction::merge). The key is claimed.
    ///
    /// # Errors
    /// As [`merge`](Transaction::merge) and [`put_cf`](Transaction::put_cf).
    pub fn merge_cf(
        &mut self,
        family: &D::Family,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
    ) -> Result<()> {
        let of = self.tree_of(family)?;
        self.add(of, Kind::Merge, key.as_ref(), operand.as_ref())
    }

    /// The tree of a family of the database that the transaction is of.
    fn tree_of<'f>(&self, family: &'f D::Family) -> Result<&'f Shell> {
        match family.tree().is_of_same_database(self.db.tree()) {
            true => Ok(family.tree()),
            false => Err(Error::invalid(format!(
                "column family `{}` is another database's, or of an earlier open of this one; take \
                 the handle of the database that began the transaction",
                family.tree().name()
            ))),
        }
    }
}
