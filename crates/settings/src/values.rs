//! Values that some settings take: how safe a write is, and how blocks are compressed.

/// How far a write must have travelled before it is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Durability {
    /// No write-ahead log at all: the write survives only once its memtable is flushed.
    NoWal,
    /// In the store's own log buffer: order is kept, but a crash of the process may lose the
    /// last writes.
    Buffered,
    /// Handed to the operating system: survives a crash or kill of the process.
    #[default]
    Os,
    /// On stable storage: survives power loss.
    Sync,
}

impl Durability {
    /// All of them, the least safe first.
    pub(crate) const ALL: [Durability; 4] =
        [Durability::NoWal, Durability::Buffered, Durability::Os, Durability::Sync];

    /// Its place among all, from the least safe on.
    #[doc(hidden)] // how the parts of this crate meet
    pub fn rank(self) -> usize {
        self as usize
    }
    /// That of this place; the safest for one that none has.
    #[doc(hidden)] // how the parts of this crate meet
    #[inline]
    pub fn of_rank(rank: usize) -> Durability {
        Durability::ALL.get(rank).copied().unwrap_or(Durability::Sync)
    }
    /// Its name as text.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Durability::NoWal => "no-wal",
            Durability::Buffered => "buffered",
            Durability::Os => "os",
            Durability::Sync => "sync",
        }
    }
}

/// Block compression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Blocks as they are.
    None,
    /// LZ4 block format.
    Lz4,
    /// Snappy.
    Snappy,
    /// Zlib at this level (1 to 9). Zstandard is both faster and smaller; Zlib is for a RocksDB that was
    /// built without it.
    Zlib(i32),
    /// Bzip2, slower by far than all others; for a RocksDB that has nothing else.
    Bzip2,
    /// Zstandard at this level (1 to 19); needs the cargo feature `zstd`.
    Zstd(i32),
}

impl Compression {
    /// True for Zstandard at any level.
    pub(crate) fn is_zstd(self) -> bool {
        matches!(self, Compression::Zstd(_))
    }
}
