//! The layers of `lithify_layers` over the handles of this crate.

use lithify_base::Result;
use lithify_layers::{Locks, Store};
use lithify_tree::{ColumnFamilyOptions, Shell};

use crate::batch::WriteBatch;
use crate::db::Db;
use crate::families::ColumnFamily;

/// A database whose values carry the time at which they were written; reads show none that has
/// expired. See [`Builder::open_ttl`](crate::Builder::open_ttl).
pub type TtlDb = lithify_layers::TtlDb<Db>;

/// Reads and writes that become visible together, or never. See
/// [`Db::begin_transaction`].
pub type Transaction = lithify_layers::Transaction<Db>;

impl Store for Db {
    type Family = ColumnFamily;
    type Batch = WriteBatch;

    fn tree(&self) -> &Shell {
        &self.shell
    }
    fn locks(&self) -> &Locks {
        &self.owned.locks
    }
    fn family(&self, name: &str) -> Result<ColumnFamily> {
        self.column_family(name)
    }
    fn create_family(&self, name: &str, options: ColumnFamilyOptions) -> Result<ColumnFamily> {
        self.create_column_family(name, options)
    }
    fn close(self) -> Result<()> {
        Db::close(self)
    }
}
