//! Caps on what bytes may make us do. Untrusted lengths meet one of these before any
//! allocation.

use lithify_base::{Error, ErrorKind, Result};

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

/// What the entries of such a block may take, each by itself: keys that share what they begin with are stored without
/// it, so a block of 1 MiB could name 34 GiB. Real ones become a few times as large.
#[derive(Debug)]
pub struct Unshared {
    left: usize,
}

impl Unshared {
    /// Of a block of so many bytes, as it is after decompression.
    pub fn of(block: usize) -> Unshared {
        Unshared { left: MAX_META.max(block.saturating_mul(16)) }
    }
    /// Counts an entry, before it is copied.
    ///
    /// # Errors
    /// `LimitExceeded` if the block would take too much with it.
    pub fn take(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let what = "the entries of this block grow out of all proportion to it when they are read";
        let left = self.left.checked_sub(key.len()).and_then(|left| left.checked_sub(value.len()));
        self.left = left.ok_or_else(|| Error::new(ErrorKind::LimitExceeded, what))?;
        Ok(())
    }
}

/// Largest capacity reserved on the word of a length that was not yet matched by real bytes.
pub const MAX_RESERVE: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::BlockBuilder;
    use crate::table::metaindex::MetaIndex;
    use crate::table::props::TableProps;
    use crate::table::range_del;
    use lithify_base::{InternalKey, Kind, Tag};

    /// Names that share all but the last bytes are 8 bytes each in a block, and 64 KiB each once they are read.
    #[test]
    fn entries_that_share_their_keys_do_not_take_all_memory() {
        let mut name = vec![b'n'; 64 << 10];
        let (mut names, mut deletions) = (BlockBuilder::new(u32::MAX), BlockBuilder::new(u32::MAX));
        for n in 0..10_000u16 {
            let at = name.len() - 2;
            name[at..].copy_from_slice(&n.to_be_bytes());
            names.add(&name, &[1, 1]);
            let tag = Tag::new(9, Kind::RangeDelete);
            deletions.add_entry(InternalKey { user: &name, tag }, b"o");
        }
        let names = names.finish().to_vec();
        assert!(names.len() < 1 << 20);
        let kinds = [
            MetaIndex::decode(&names).unwrap_err().kind(),
            TableProps::decode(&names).unwrap_err().kind(),
            range_del::decode(deletions.finish()).unwrap_err().kind(),
        ];
        assert_eq!(kinds, [ErrorKind::LimitExceeded; 3]);
    }
}
