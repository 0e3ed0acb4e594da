//! Identities and positions. Newtypes, so that a file number is never taken for a job number.

use std::fmt;

/// A level of the tree: 0 is the newest data, [`MAX_LEVELS`]` - 1` the oldest.
pub type Level = u8;

/// Number of levels a database may use (as RocksDB's default).
pub const MAX_LEVELS: usize = 7;

/// Number of a file in its database directory. From one counter, never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FileId(pub u64);

/// Number of a compaction or flush job. Never reused while the database is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct JobId(pub u64);

/// Column family number, as written in batches and manifest edits. 0 is `default`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct CfId(pub u32);

/// Age of a run inside its level: the base run is 0, newer runs stack above it.
/// In level 0 a stratum is the number of the flush that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Stratum(pub u32);

impl Stratum {
    /// The base run of a level.
    pub const BASE: Stratum = Stratum(0);
}

/// Position of a run in the tree. Files at one position are disjoint in user keys.
///
/// Ordered by age, **newest first**: `p < q` means every sequence number of a user key at `p`
/// is larger than every one at `q` (the recency invariant R).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pos {
    /// Level; smaller is newer.
    pub level: Level,
    /// Stratum inside the level; larger is newer.
    pub stratum: Stratum,
}

impl Pos {
    /// Position of `stratum` at `level`.
    pub const fn new(level: Level, stratum: u32) -> Pos {
        Pos { level, stratum: Stratum(stratum) }
    }
    /// The base run of `level`.
    pub const fn base(level: Level) -> Pos {
        Pos::new(level, 0)
    }
    /// True if data here is older than data at `other`.
    pub fn is_older_than(self, other: Pos) -> bool {
        self > other
    }
    /// True if data here is newer than data at `other`.
    pub fn is_newer_than(self, other: Pos) -> bool {
        self < other
    }
}

impl PartialOrd for Pos {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Pos {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.level.cmp(&other.level).then(other.stratum.cmp(&self.stratum))
    }
}

impl fmt::Display for Pos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "L{}.{}", self.level, self.stratum.0)
    }
}

impl fmt::Display for FileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:06}", self.0)
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
