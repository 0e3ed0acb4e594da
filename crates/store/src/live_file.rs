//! A table of a database as its users are told of it.

use std::path::PathBuf;

use lithify_base::Key;
use lithify_files::dir::{Dir, FileName};
use lithify_lsm::FileMeta;

/// A table of a database.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LiveFile {
    /// Its column family.
    pub family: String,
    /// The directory that it is in: the database's own, or one of its directories for tables.
    pub directory: PathBuf,
    /// Its name in the directory, as `000012.sst`.
    pub name: String,
    /// Its level.
    pub level: u8,
    /// Bytes on disk.
    pub bytes: u64,
    /// The smallest key that it may hold.
    pub smallest: Key,
    /// The largest key that it may hold, or that the last range deletion in it ends at.
    pub largest: Key,
    /// Entries, deletions included.
    pub entries: u64,
    /// Deletions among them.
    pub deletions: u64,
    /// The smallest and the largest number of its writes.
    pub numbers: (u64, u64),
}

impl LiveFile {
    /// A table of `family` of the database in `home`.
    pub fn new(home: &Dir, family: &str, file: &FileMeta) -> LiveFile {
        let number = file.backing.unwrap_or(file.id).0;
        // With one directory there is nothing to look for.
        let elsewhere = || home.find_table(number).ok().flatten();
        let found = if home.places().is_empty() { None } else { elsewhere() };
        LiveFile {
            family: family.to_owned(),
            directory: found.map_or_else(|| home.path().to_owned(), |f| f.dir.path().to_owned()),
            name: FileName::Table(number).to_string(),
            level: file.pos.level,
            bytes: file.bytes,
            smallest: file.range.lo.clone(),
            largest: file.range.hi.key.clone(),
            entries: file.entries + file.range_deletes,
            deletions: file.deletes + file.range_deletes,
            numbers: file.seqs,
        }
    }
}
