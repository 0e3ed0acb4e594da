//! The five orders in which the files of a level may be considered for compaction. How each one
//! sorts files is in `measures::seed`.

/// Which file of a level over its target goes down first. Names and rules are RocksDB's
/// (`compaction_pri`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum CompactionPri {
    /// The fewest bytes of the next level per own byte: the least rewriting for most loads.
    #[default]
    MinOverlappingRatio,
    /// The largest, where deletions count double: space is freed soon.
    ByCompensatedSize,
    /// The one whose newest entry is oldest: keys that are written often stay up.
    OldestLargestSeqFirst,
    /// The one whose oldest entry is oldest: what has not been compacted for long.
    OldestSmallestSeqFirst,
    /// One after the other in key order, several at a time, from where the last compaction of the
    /// level ended; the manifest remembers where.
    RoundRobin,
}

impl CompactionPri {
    /// Every priority, the default first.
    pub const ALL: [CompactionPri; 5] = [
        CompactionPri::MinOverlappingRatio,
        CompactionPri::ByCompensatedSize,
        CompactionPri::OldestLargestSeqFirst,
        CompactionPri::OldestSmallestSeqFirst,
        CompactionPri::RoundRobin,
    ];

    /// Its name on command lines and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            CompactionPri::MinOverlappingRatio => "min-overlapping-ratio",
            CompactionPri::ByCompensatedSize => "by-compensated-size",
            CompactionPri::OldestLargestSeqFirst => "oldest-largest-seq-first",
            CompactionPri::OldestSmallestSeqFirst => "oldest-smallest-seq-first",
            CompactionPri::RoundRobin => "round-robin",
        }
    }

    /// The priority of that name.
    pub fn from_name(name: &str) -> Option<CompactionPri> {
        CompactionPri::ALL.into_iter().find(|p| p.name() == name)
    }

    /// As RocksDB's OPTIONS files have it.
    pub const fn rocksdb_name(self) -> &'static str {
        match self {
            CompactionPri::MinOverlappingRatio => "kMinOverlappingRatio",
            CompactionPri::ByCompensatedSize => "kByCompensatedSize",
            CompactionPri::OldestLargestSeqFirst => "kOldestLargestSeqFirst",
            CompactionPri::OldestSmallestSeqFirst => "kOldestSmallestSeqFirst",
            CompactionPri::RoundRobin => "kRoundRobin",
        }
    }
}
