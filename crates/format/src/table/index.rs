//! The index: for each data block a separator (at or above its last key, below the next block's
//! first) and its handle.
//!
//! Keeps: the first separator at or above a key names the only block that can hold it. Separators
//! are user keys, shortened between blocks, unless some user key spans two blocks: then *all*
//! are internal keys, since one property says which for the whole table.
//! Leaves to others: writing the blocks; a two-level index needs its partitions' offsets, so the
//! builder is told where they start.
//!
//! Worked example: blocks `[apple .. banana]`, `[cherry .. date]` get separators `c` and `date`.

mod read;

pub use read::{BlockSource, Levels, TableIndexIter, index_form};

use lithify_base::memory::Pieces;
use lithify_base::{Comparator, InternalKey, Kind, MAX_SEQ, Tag};

use super::handle::BlockHandle;
use crate::block::{BlockBuilder, IndexKeys, TRAILER_LEN};

/// Index settings of a recipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexShape {
    /// Entries per restart point. RocksDB's default is 1; ours is 16.
    pub restart_interval: u32,
    /// Largest one-level index, in bytes of its block; above it the index gets two levels.
    pub cap: usize,
    /// Size at which a partition of a two-level index is cut, in bytes.
    pub partition: usize,
}

impl Default for IndexShape {
    fn default() -> IndexShape {
        IndexShape { restart_interval: 16, cap: 1 << 20, partition: 4 << 10 }
    }
}

/// First and last internal key of one data block.
pub type Bounds<'a> = (InternalKey<'a>, InternalKey<'a>);

/// A built index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuiltIndex {
    /// Second-level blocks, to be written next to each other from the offset given; empty for a
    /// one-level index.
    pub partitions: Vec<Vec<u8>>,
    /// The index block itself, or the top level.
    pub top: Vec<u8>,
    /// What its keys are.
    pub keys: IndexKeys,
}

/// The separators behind the data blocks of a table, which index and partitioned filter share.
#[derive(Clone, Debug)]
pub struct Separators {
    list: Pieces<Vec<u8>>,
    keys: IndexKeys,
}

impl Separators {
    /// One for each of `blocks`.
    pub fn of<'a>(
        blocks: impl Iterator<Item = Bounds<'a>> + Clone,
        order: &dyn Comparator,
    ) -> Separators {
        let nexts = || blocks.clone().skip(1).map(Some).chain([None]);
        let spans = blocks.clone().zip(nexts()).any(|((_, last), next)| {
            next.is_some_and(|(first, _)| order.compare(last.user, first.user).is_eq())
        });
        let keys = if spans { IndexKeys::Internal } else { IndexKeys::User };
        let pairs = blocks.clone().zip(nexts());
        let list = pairs
            .map(|((_, last), next)| separator(last, next.map(|(first, _)| first), order, keys))
            .collect();
        Separators { list, keys }
    }
    /// The one behind block `i`; empty if there is no such block.
    pub fn behind(&self, i: usize) -> &[u8] {
        self.list.get(i).map_or(&[], Vec::as_slice)
    }
}

/// Builds the index of the data blocks at `handles`, whose blocks will be written from offset `start`
/// of the file.
pub fn build_index(
    separators: &Separators,
    handles: impl Iterator<Item = BlockHandle> + Clone,
    shape: IndexShape,
    start: u64,
) -> BuiltIndex {
    let Separators { list, keys } = separators;
    let mut one = BlockBuilder::new(shape.restart_interval);
    for (separator, handle) in list.iter().zip(handles.clone()) {
        one.add_handle(separator, handle);
    }
    let top = one.finish().to_vec();
    if top.len() <= shape.cap {
        return BuiltIndex { partitions: Vec::new(), top, keys: *keys };
    }
    two_levels(list.iter().zip(handles), shape, start, *keys)
}

fn two_levels<'a>(
    entries: impl Iterator<Item = (&'a Vec<u8>, BlockHandle)>,
    shape: IndexShape,
    start: u64,
    keys: IndexKeys,
) -> BuiltIndex {
    let mut top = BlockBuilder::new(shape.restart_interval);
    let mut part = BlockBuilder::new(shape.restart_interval);
    let mut partitions = Vec::new();
    let mut at = start;
    let mut entries = entries.peekable();
    while let Some((separator, handle)) = entries.next() {
        part.add_handle(separator, handle);
        if part.size() >= shape.partition || entries.peek().is_none() {
            let block = part.finish().to_vec();
            top.add_handle(separator, BlockHandle::new(at, block.len() as u64));
            at += (block.len() + TRAILER_LEN) as u64;
            partitions.push(block);
            part.clear();
        }
    }
    BuiltIndex { partitions, top: top.finish().to_vec(), keys }
}

/// The separator between the last key of a block and the first one of the next: short, or whole behind the last block.
fn separator(
    last: InternalKey<'_>,
    next: Option<InternalKey<'_>>,
    order: &dyn Comparator,
    keys: IndexKeys,
) -> Vec<u8> {
    let short = next.map(|next| order.separator(last.user, next.user));
    let user = short.unwrap_or_else(|| last.user.to_vec());
    let shortened = order.compare(last.user, &user).is_lt();
    match keys {
        IndexKeys::User => user,
        IndexKeys::Internal if !shortened => last.to_vec(),
        // Above every version of the last key, since the user key is above it; the newest tag
        // puts it before every entry of its own user key, of which there are none.
        IndexKeys::Internal => {
            InternalKey { user: &user, tag: Tag::new(MAX_SEQ, Kind::Value) }.to_vec()
        }
    }
}
