//! The layers of `lithify_layers` over the handles of this crate.

use lithify_base::Result;
use lithify_layers::{Locks, Store};
use lithify_tree::{ColumnFamilyOptions, Shell};

use crate::batch::WriteBatch;
use crate::db::Db;
use crate::families::ColumnFamily;

#[doc(hidden)] // for the layers
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
}
