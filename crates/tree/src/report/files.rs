//! The tables of a database, one by one.

use lithify_base::Key;
use lithify_journal::files::FileName;
use lithify_lsm::FileMeta;

use crate::shell::Shell;

/// A table of a database.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LiveFile {
    /// Its column family.
    pub family: String,
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
    fn new(family: &str, file: &FileMeta) -> LiveFile {
        LiveFile {
            family: family.to_owned(),
            name: FileName::Table(file.backing.unwrap_or(file.id).0).to_string(),
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

impl Shell {
    /// The tables of this family as of now.
    pub fn live_files(&self) -> Vec<LiveFile> {
        let sv = self.super_version();
        let files = sv.tree.version.files();
        files.map(|file| LiveFile::new(self.name(), file)).collect()
    }
}
