//! What a layer needs of the database below it.

use std::ops::Deref;

use lithify_base::Result;
use lithify_tree::{Batch, ColumnFamilyOptions, Shell};

use crate::txn::Locks;

/// A handle on one column family of an open database: something with get, put and iterate. Clones
/// are the same family.
pub trait Store: Clone + 'static {
    /// A handle on a family by its name.
    type Family: Deref<Target = Self>;
    /// What is written at once.
    type Batch: AsRef<Batch>;

    /// The operations: gets, writes, iterators.
    fn tree(&self) -> &Shell;
    /// The locks of all transactions of the database.
    fn locks(&self) -> &Locks;
    /// The family of that name.
    ///
    /// # Errors
    /// `NotFound` if there is none.
    fn family(&self, name: &str) -> Result<Self::Family>;
    /// Makes a family.
    ///
    /// # Errors
    /// Why it was not made, or is not known to be.
    fn create_family(&self, name: &str, options: ColumnFamilyOptions) -> Result<Self::Family>;
}
