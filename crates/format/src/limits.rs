//! Caps on what bytes may make us do. Untrusted lengths meet one of these before any
//! allocation.

/// Most bytes that a compressed block may decompress to, whatever its length. RocksDB's own limit is
/// 4 GiB; real blocks are 4 KiB to a few MiB, index and filter blocks some tens of MiB.
pub const MAX_BLOCK: usize = 256 << 20;

/// Bytes that a byte of an LZ4 block becomes at most: one more of a match's length.
pub const LZ4_RATIO: usize = 255;

/// Most bytes that a compressed block of `stored` bytes may decompress to: [`MAX_BLOCK`], and more
/// only in proportion to what is there. LZ4 reaches 255 times its length; blocks that another codec
/// makes smaller still are stored as they are. Below 4 GiB.
pub fn plain_max(stored: usize) -> usize {
    MAX_BLOCK.max(stored.saturating_mul(256)).min(u32::MAX as usize)
}

/// Most bytes that a compressed block which readers keep (of an index or a filter, properties, range
/// deletions) may decompress to, if it is smaller than its 64th part: room for the index of a sound
/// table, which repeats itself where keys share much (RocksDB's without restart intervals). Worst case:
/// so much for each such block of a table, of the 100 KiB that may be on disk.
pub const MAX_META: usize = 32 << 20;

/// The same as [`plain_max`] for such a block of `stored` bytes.
pub fn meta_plain_max(stored: usize) -> usize {
    MAX_META.max(stored.saturating_mul(64)).min(u32::MAX as usize)
}

/// Most bytes of a user key when written (8 MiB): far above any sensible key, far below what would
/// make an index entry unreadable.
pub const MAX_KEY: usize = 8 << 20;

/// Most bytes of a value when written: just under 4 GiB, the width of every length field.
pub const MAX_VALUE: usize = (1 << 32) - (1 << 20);

/// Largest capacity reserved on the word of a length that was not yet matched by real bytes.
pub const MAX_RESERVE: usize = 64 << 10;
