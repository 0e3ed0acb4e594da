//! Range tombstones of a table: a block of (internal start key, end user key).

use lithify_base::{Error, InternalKey, Kind, Result, Seq, Tag};

use crate::block::{BlockBuilder, BlockIter};
use crate::limits::Unshared;

/// One fragment: every entry of a key in `[start, end)` older than `seq` is deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeTombstone {
    /// First user key deleted.
    pub start: Vec<u8>,
    /// First user key after `start` that is not deleted.
    pub end: Vec<u8>,
    /// Sequence number of the deletion.
    pub seq: Seq,
}

impl RangeTombstone {
    /// The internal key under which it is stored.
    pub fn key(&self) -> InternalKey<'_> {
        InternalKey { user: &self.start, tag: Tag::new(self.seq, Kind::RangeDelete) }
    }
}

/// Encodes fragments, sorted by start, then newest first.
pub fn encode(tombstones: &[RangeTombstone]) -> Vec<u8> {
    let mut block = BlockBuilder::new(1);
    for t in tombstones {
        block.add_entry(t.key(), &t.end);
    }
    block.finish().to_vec()
}

/// Decodes the block, in stored order. Foreign blocks need not be fragmented or sorted.
///
/// # Errors
/// Corruption if an entry does not decode or is no range deletion.
pub fn decode(block: &[u8]) -> Result<Vec<RangeTombstone>> {
    let mut from = BlockIter::new(block)?;
    let mut found = Vec::new();
    let mut unshared = Unshared::of(block.len());
    let mut more = from.seek_to_first()?;
    while more {
        unshared.take(from.key(), from.value())?;
        let key = from.internal_key();
        if key.tag.kind() != Some(Kind::RangeDelete) {
            return Err(Error::corruption(format!(
                "range-deletion block holds an entry of kind {:#04x}",
                key.tag.kind_byte()
            )));
        }
        found.push(RangeTombstone {
            start: key.user.to_vec(),
            end: from.value().to_vec(),
            seq: key.tag.seq(),
        });
        more = from.next()?;
    }
    Ok(found)
}
