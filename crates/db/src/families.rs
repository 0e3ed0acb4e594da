//! Column families: several trees in one database, each with an order of keys, settings and stalls of
//! its own; one log, so a batch over several families is atomic.
//!
//! Leaves to others: what families share and how they come and go (`lithify_tree`).

use std::ops::Deref;
use std::path::Path;

use lithify_base::{ErrorKind, Result};
use lithify_tree::{ColumnFamilyOptions, KeptReads, Settings, Shell};

use crate::builder::Builder;
use crate::db::Db;

/// A column family of an open database. It dereferences to a handle whose keys are this family's:
/// [`put`](Db::put), [`get`](Db::get), [`iter`](Db::iter), [`flush`](Db::flush) and whatever else is
/// about keys or their tree works on the family, the rest on the database. Clones are the same family.
///
/// ```
/// # fn main() -> lithify::Result<()> {
/// # let dir = std::env::temp_dir().join(format!("lithify-families-{}", std::process::id()));
/// use lithify::{ColumnFamilyOptions, Db, Settings, WriteBatch};
///
/// let db = Db::open(&dir, Settings::default())?;
/// let by_name = db.create_column_family("by-name", ColumnFamilyOptions::new())?;
/// by_name.put(b"apple", b"7")?;
/// assert_eq!(db.get(b"apple")?, None);
///
/// let mut both = WriteBatch::new();
/// both.put(b"8", b"pear")?;
/// both.put_cf(&by_name, b"pear", b"8")?;
/// db.write(&both)?; // both or neither, whatever happens
/// assert_eq!(by_name.get(b"pear")?.as_deref(), Some(&b"8"[..]));
/// db.close()?;
/// assert_eq!(Db::list_column_families(&dir)?, ["default", "by-name"]);
/// # std::fs::remove_dir_all(&dir).ok();
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ColumnFamily {
    db: Db,
}

impl ColumnFamily {
    /// Its name.
    pub fn name(&self) -> &str {
        self.db.shell.name()
    }
    /// From now on the family may be read after it was dropped, as it was then, until the guard is dropped or the
    /// database closed. Its memtables and tables stay until then. Such guards nest.
    ///
    /// # Errors
    /// `NotFound` if it was dropped already, `ShuttingDown` if the database is closed.
    pub fn keep_reads(&self) -> Result<KeptReads> {
        self.db.shell.keep_reads()
    }
    /// Its number in the log, the manifest and the tables. The default family's is 0; no number is
    /// used twice.
    pub fn id(&self) -> u32 {
        self.db.shell.cf().0
    }
}

impl Deref for ColumnFamily {
    type Target = Db;
    fn deref(&self) -> &Db {
        &self.db
    }
}

/// What `find` finds, or else what `make` makes, unless another thread was quicker.
pub(crate) fn found_or_made<T>(
    find: impl Fn() -> Result<T>,
    make: impl FnOnce() -> Result<T>,
) -> Result<T> {
    match find() {
        Err(e) if e.kind() == ErrorKind::NotFound => make().or_else(|e| find().map_err(|_| e)),
        found => found,
    }
}

impl std::fmt::Debug for ColumnFamily {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ColumnFamily({} of {:?})", self.name(), self.db)
    }
}

impl Db {
    /// Makes a column family. It is there once this returns, whatever happens then.
    ///
    /// # Errors
    /// `InvalidArgument` if there is one of that name, the name is empty or longer than 1024 bytes, or
    /// the settings contradict each other; `LimitExceeded`, and nothing was written, beyond 4096 families
    /// or one for each 128 KiB of `memory_budget`, whichever are more; `NoSpace` if it was not made;
    /// `OutcomeUnknown` if only the next open shows whether it was, and the database is read-only until
    /// then; `ReadOnly`.
    pub fn create_column_family(
        &self,
        name: &str,
        options: ColumnFamilyOptions,
    ) -> Result<ColumnFamily> {
        let shell = self.shell.create_family(name, &options)?;
        Ok(self.of(shell))
    }
    /// The column family of that name, made with `options` if there is none. One that is there stays as it
    /// was opened: name its options at the open ([`Builder::column_family`], or
    /// [`Builder::create_missing_column_families`], which makes this call needless).
    ///
    /// # Errors
    /// As [`create_column_family`](Db::create_column_family).
    pub fn open_column_family(
        &self,
        name: &str,
        options: ColumnFamilyOptions,
    ) -> Result<ColumnFamily> {
        found_or_made(|| self.column_family(name), || self.create_column_family(name, options))
    }
    /// Drops a column family with all it holds. Its handles refuse everything from now on; iterators
    /// show what they showed, and its files go with the last of them.
    ///
    /// # Errors
    /// `NotFound` if there is none of that name; `InvalidArgument` for the default family; else as
    /// [`create_column_family`](Db::create_column_family).
    pub fn drop_column_family(&self, name: &str) -> Result<()> {
        self.shell.drop_family(name)
    }
    /// The column family of that name; `default` is the one that the database itself shows.
    ///
    /// # Errors
    /// `NotFound` if there is none.
    pub fn column_family(&self, name: &str) -> Result<ColumnFamily> {
        self.shell.family_named(name).map(|shell| self.of(shell))
    }
    /// The names of the column families of the database in `path`, which need not be open.
    ///
    /// # Errors
    /// As [`Builder::list_column_families`].
    pub fn list_column_families(path: impl AsRef<Path>) -> Result<Vec<String>> {
        Builder::new(Settings::default()).list_column_families(path)
    }
    /// The names of all column families, `default` first, the others by age. Empty once the database
    /// is closed.
    pub fn column_families(&self) -> Vec<String> {
        self.shell.families().iter().map(|family| family.name().to_owned()).collect()
    }

    fn of(&self, shell: Shell) -> ColumnFamily {
        ColumnFamily { db: Db { shell, owned: self.owned.clone() } }
    }
}
