//! The meta-index: a block of names and handles of everything that is not data.

use std::collections::BTreeMap;

use lithify_base::Result;

use super::handle::BlockHandle;
use crate::block::{BlockBuilder, BlockIter};
use crate::filter::FilterLayout;
use crate::limits::Unshared;

/// The index, named here from format_version 6 on.
pub const INDEX: &[u8] = b"rocksdb.index";
/// The properties.
pub const PROPERTIES: &[u8] = b"rocksdb.properties";
/// Range tombstones.
pub const RANGE_DEL: &[u8] = b"rocksdb.range_del";
/// Dictionary of the data blocks' codec.
pub const COMPRESSION_DICT: &[u8] = b"rocksdb.compression_dict";
/// Entry counts per data block: ours, ignored by RocksDB.
pub const BLOCKS: &[u8] = b"lithify.blocks";
/// A filter for the whole table.
pub const FULL_FILTER: &[u8] = b"fullfilter.rocksdb.BuiltinBloomFilter";
/// The top level of a filter in parts.
pub const PARTITIONED_FILTER: &[u8] = b"partitionedfilter.rocksdb.BuiltinBloomFilter";

/// Names and handles of a table's meta blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetaIndex {
    entries: BTreeMap<Vec<u8>, BlockHandle>,
}

impl MetaIndex {
    /// Adds or replaces a name.
    pub fn insert(&mut self, name: &[u8], handle: BlockHandle) {
        self.entries.insert(name.to_vec(), handle);
    }
    /// The block of that name.
    pub fn get(&self, name: &[u8]) -> Option<BlockHandle> {
        self.entries.get(name).copied()
    }
    /// All names in byte order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], BlockHandle)> {
        self.entries.iter().map(|(name, handle)| (&name[..], *handle))
    }
    /// The filter that can be read, if there is one.
    pub fn filter(&self) -> Option<(FilterLayout, BlockHandle)> {
        self.iter().find_map(|(name, handle)| Some((FilterLayout::of_name(name)?, handle)))
    }
    /// The block: names in byte order, a restart point each.
    pub fn encode(&self) -> Vec<u8> {
        let mut block = BlockBuilder::new(1);
        let mut value = Vec::with_capacity(BlockHandle::MAX_LEN);
        for (name, handle) in self.iter() {
            value.clear();
            handle.encode_into(&mut value);
            block.add(name, &value);
        }
        block.finish().to_vec()
    }
    /// Reads the block. Of a name given twice the last counts.
    ///
    /// # Errors
    /// Corruption if an entry does not decode.
    pub fn decode(block: &[u8]) -> Result<MetaIndex> {
        let mut from = BlockIter::named(block)?;
        let mut found = MetaIndex::default();
        let mut unshared = Unshared::of(block.len());
        let mut more = from.seek_to_first()?;
        while more {
            unshared.take(from.key(), from.value())?;
            found.insert(from.key(), BlockHandle::from_bytes(from.value())?);
            more = from.next()?;
        }
        Ok(found)
    }
}
