//! Everything of a table behind its data blocks, from block metadata alone.
//!
//! Keeps: the bytes are a pure function of what is pushed and of the [`TableSpec`]; every engine's
//! tables get their tail here (R8). Parts come in this order: filter, index (partitions first in
//! both), dictionary, `lithify.blocks`, range-del, properties, meta-index, footer; parts that
//! would be empty are left out, and so is `lithify.blocks` at version 5, whose readers may not
//! pass over a name they do not know.
//! Leaves to others: data blocks and their checksums ([`BlockCheck`] from
//! [`TableSpec::check`] says how the assembler stores them).

use std::sync::Arc;

use lithify_base::memory::{LargeBytes, Pieces};
use lithify_base::{Comparator, InternalKey, Prefixes, Result, Seq};

use super::blocks_meta::{self, BlockCounts};
use super::footer::{DEFAULT_VERSION, Footer};
use super::handle::BlockHandle;
use super::index::{Bounds, BuiltIndex, IndexShape, Separators, build_index};
use super::metaindex::{self, MetaIndex};
use super::props::{
    EXTERNAL_NUMBERED, EXTERNAL_VERSION, GLOBAL_SEQ, INDEX_TYPE, ONE_LEVEL, PREFIX_FILTERING,
    TWO_LEVEL, TableProps, WHOLE_KEY_FILTERING,
};
use super::range_del::{self, RangeTombstone};
use crate::block::{BlockBuilder, BlockCheck, IndexKeys};
use crate::checksum::{ChecksumKind, base_context};
use crate::filter::{DEFAULT_MILLIBITS, FILTER_POLICY, build_filter, filter_bytes, key_hash};
use crate::weight::WEIGHT;

/// Which table this is (part of the recipe; R9). Times are seconds since 1970, 0 if unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableIdentity {
    /// Identity of the database that makes the table.
    pub db_id: String,
    /// Which opening of that database, or which other writer, makes it; empty if not recorded.
    pub session: String,
    /// Number of the file.
    pub file_number: u64,
    /// Column family number.
    pub cf_id: u32,
    /// Column family name.
    pub cf_name: String,
    /// When the table's data was first written to a table.
    pub creation_time: u64,
    /// Age of the oldest key.
    pub oldest_key_time: u64,
    /// Age of the newest key.
    pub newest_key_time: u64,
    /// When this file was made.
    pub file_creation_time: u64,
}

/// The part of a recipe that decides how a table is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableSpec {
    /// RocksDB's format_version: 5 or 6.
    pub version: u32,
    /// Entries per restart point of data blocks.
    pub restart_interval: u32,
    /// The index.
    pub index: IndexShape,
    /// Filter size in thousandths of a bit per key; 0 = no filter.
    pub millibits: u32,
    /// Size at which a part of the filter is cut, in bytes; a filter that is not larger, and every
    /// filter if this is 0, is one block.
    pub filter_partition: usize,
    /// Whether the filter holds whole keys.
    pub whole_keys: bool,
    /// The prefixes that it holds.
    pub prefixes: Prefixes,
    /// Name of the codec in the properties.
    pub compression: &'static str,
    /// What data blocks were compressed with, if a dictionary.
    pub dictionary: Option<Arc<[u8]>>,
    /// Name of the merge operator, or `nullptr`.
    pub merge_operator: String,
    /// Made outside of any database: all its entries have the number 0, and the database that takes it in
    /// gives them one.
    pub external: bool,
    /// For tests: without the counts of blocks that RocksDB's tables do not have either.
    pub as_rocksdb: bool,
    /// Which table this is.
    pub identity: TableIdentity,
}

impl Default for TableSpec {
    fn default() -> TableSpec {
        TableSpec {
            version: DEFAULT_VERSION,
            restart_interval: 16,
            index: IndexShape::default(),
            millibits: DEFAULT_MILLIBITS,
            filter_partition: 0,
            whole_keys: true,
            prefixes: Prefixes::default(),
            compression: "NoCompression",
            dictionary: None,
            merge_operator: NO_NAME.to_owned(),
            external: false,
            as_rocksdb: false,
            identity: TableIdentity::default(),
        }
    }
}

/// RocksDB's text for "there is none".
const NO_NAME: &str = "nullptr";

impl TableSpec {
    /// How the blocks of this table are checked.
    pub fn check(&self) -> BlockCheck {
        let base = match self.version {
            ..6 => 0,
            _ => base_context(&self.identity.db_id, self.identity.file_number),
        };
        BlockCheck { kind: ChecksumKind::Xxh3, base }
    }
}

/// What an engine says about one data block, with its place in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockMeta {
    /// Where the block lies. Blocks follow each other without gaps (R4).
    pub handle: BlockHandle,
    /// First internal key.
    pub first_key: Vec<u8>,
    /// Last internal key.
    pub last_key: Vec<u8>,
    /// Entries.
    pub entries: u64,
    /// Sum of the lengths of internal keys, in bytes.
    pub raw_key_bytes: u64,
    /// Sum of the lengths of values, in bytes.
    pub raw_value_bytes: u64,
    /// Content weight of its entries ([`crate::weight`]).
    pub weight: u64,
    /// Deletes and single deletes.
    pub deletes: u64,
    /// Merge operands.
    pub merges: u64,
    /// Smallest sequence number.
    pub min_seq: Seq,
    /// Largest sequence number.
    pub max_seq: Seq,
}

/// A finished tail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tail {
    /// The bytes to write right behind the last data block.
    pub bytes: LargeBytes,
    /// The properties among them.
    pub props: TableProps,
    /// How the table's blocks are checked; the base context goes to the MANIFEST too.
    pub check: BlockCheck,
    /// Size of the whole table, in bytes.
    pub file_size: u64,
}

/// Collects what is known of a table's data blocks and builds the rest.
#[derive(Clone, Debug, Default)]
pub struct TailBuilder {
    blocks: Pieces<BlockMeta>,
    hashes: Pieces<u64>,
    /// How many hashes there are up to the end of each block.
    hash_ends: Pieces<usize>,
    tombstones: Vec<RangeTombstone>,
}

impl TailBuilder {
    /// A builder for one table.
    pub fn new() -> TailBuilder {
        TailBuilder::default()
    }

    /// Adds the next data block; the hashes of its keys were added before.
    ///
    /// # Panics
    /// If it does not lie right behind the one before (the first at 0), holds no entries, or its
    /// keys are no internal keys: our bugs.
    pub fn push_block(&mut self, block: BlockMeta) {
        assert_eq!(block.handle.offset, self.data_end(), "data blocks are adjacent");
        assert!(block.entries > 0, "a data block has entries");
        assert!(block.first_key.len() >= 8 && block.last_key.len() >= 8, "internal keys");
        self.blocks.push(block);
        self.hash_ends.push(self.hashes.len());
    }

    /// Adds the filter hash of the next key or of its prefix, which comes before its own; a hash is not
    /// repeated.
    pub fn push_hash(&mut self, hash: u64) {
        if self.hashes.last() != Some(&hash) {
            self.hashes.push(hash);
        }
    }

    /// The same of several.
    pub fn push_hashes(&mut self, hashes: &[u64]) {
        let Some((first, rest)) = hashes.split_first() else { return };
        self.push_hash(*first);
        match hashes.iter().zip(rest).all(|(a, b)| a != b) {
            true => self.hashes.extend_from_slice(rest),
            false => rest.iter().for_each(|hash| self.push_hash(*hash)),
        }
    }

    /// Adds the next range tombstone: fragments, by start and then newest first.
    pub fn push_tombstone(&mut self, tombstone: RangeTombstone) {
        self.tombstones.push(tombstone);
    }

    /// Has range tombstones that reach the end of `[lo, hi)` on a side reach far beyond it, in byte order:
    /// in RocksDB's tables they may, and do not count there.
    pub fn widen_tombstones(&mut self, lo: &[u8], hi: &[u8]) {
        for t in &mut self.tombstones {
            if t.start == lo {
                t.start.clear();
            }
            if t.end == hi {
                t.end = vec![0xff; hi.len() + 1];
            }
        }
    }

    /// The data blocks added.
    pub fn blocks(&self) -> &Pieces<BlockMeta> {
        &self.blocks
    }

    /// The range tombstones added.
    pub fn tombstones(&self) -> &[RangeTombstone] {
        &self.tombstones
    }

    /// Where the next data block, or else the tail, begins.
    pub fn data_end(&self) -> u64 {
        self.blocks.last().map_or(0, |b| b.handle.end())
    }

    /// Builds the tail.
    ///
    /// # Errors
    /// `InvalidArgument` if there is nothing to write, or `spec` names a version not written.
    pub fn finish(self, spec: &TableSpec, order: &dyn Comparator) -> Result<Tail> {
        if self.blocks.is_empty() && self.tombstones.is_empty() {
            return Err(lithify_base::Error::invalid("a table has entries or range tombstones"));
        }
        if !matches!(spec.version, 5 | 6) {
            return Err(lithify_base::Error::invalid(format!(
                "tables are written with format_version 5 or 6, not {}",
                spec.version
            )));
        }
        let mut parts = Parts::new(self.data_end(), spec.check());
        let mut props = self.count(spec, order);
        let separators = Separators::of(self.blocks.iter().filter_map(bounds), order);
        if spec.millibits > 0 && !self.hashes.is_empty() {
            self.write_filter(&mut parts, &mut props, spec, &separators);
        }
        let index = self.write_index(&mut parts, &mut props, spec, &separators);
        if let Some(dictionary) = &spec.dictionary {
            parts.push_meta(metaindex::COMPRESSION_DICT, dictionary);
        }
        // Version 5 is for old readers, and some of theirs stop at a name they do not know.
        if spec.version >= 6 && !spec.as_rocksdb {
            let counts = self
                .blocks
                .iter()
                .map(|b| BlockCounts { entries: b.entries, raw_key_bytes: b.raw_key_bytes });
            parts.push_meta(metaindex::BLOCKS, &blocks_meta::encode(self.blocks.len(), counts));
        }
        if !self.tombstones.is_empty() {
            parts.push_meta(metaindex::RANGE_DEL, &range_del::encode(&self.tombstones));
        }
        parts.push_meta(metaindex::PROPERTIES, &props.encode());
        if spec.version >= 6 {
            parts.names.insert(metaindex::INDEX, index);
        }
        let names = parts.names.encode();
        let metaindex = parts.push(&names);
        let footer = Footer {
            version: spec.version,
            check: parts.check,
            metaindex,
            index: (spec.version < 6).then_some(index),
        };
        let bytes = footer.encode(parts.at());
        parts.bytes.extend_from_slice(&bytes);
        let file_size = parts.at();
        Ok(Tail { bytes: parts.bytes, props, check: parts.check, file_size })
    }

    fn write_filter(
        &self,
        parts: &mut Parts,
        props: &mut TableProps,
        spec: &TableSpec,
        separators: &Separators,
    ) {
        props.num_filter_entries = self.hashes.len() as u64;
        props.filter_policy = FILTER_POLICY.to_owned();
        let bytes = |hashes: usize| filter_bytes(hashes as u64, spec.millibits);
        if spec.filter_partition == 0 || bytes(self.hashes.len()) <= spec.filter_partition {
            let filter = build_filter(self.hashes.slices(0..self.hashes.len()), spec.millibits);
            props.filter_size = filter.len() as u64;
            parts.push_meta(metaindex::FULL_FILTER, &filter);
            return;
        }
        let start = parts.at();
        let mut top = BlockBuilder::new(spec.index.restart_interval);
        let (mut from, mut first) = (0, 0);
        for (i, &end) in self.hash_ends.iter().enumerate() {
            if bytes(end - from) < spec.filter_partition && i + 1 < self.hash_ends.len() {
                continue;
            }
            // The last key before may have its older versions here; its hash is not repeated.
            let hashes = self.hashes.slices(from.saturating_sub(1)..end);
            // Nor is that of the prefix that it and the first key here may share. A search from between
            // the last key here and the separator leads here, and finds the next key behind it.
            let prefix = |block: Option<&BlockMeta>| {
                let key = InternalKey::decode(&block?.first_key)?;
                spec.prefixes.of(key.user).map(key_hash)
            };
            let shared = [first, i + 1].map(|at| prefix(self.blocks.get(at)));
            let hashes = hashes.chain(shared.iter().map(Option::as_slice));
            let handle = parts.push(&build_filter(hashes, spec.millibits));
            top.add_handle(separators.behind(i), handle);
            (from, first) = (end, i + 1);
        }
        parts.push_meta(metaindex::PARTITIONED_FILTER, top.finish());
        props.filter_size = parts.at() - start;
    }

    fn write_index(
        &self,
        parts: &mut Parts,
        props: &mut TableProps,
        spec: &TableSpec,
        separators: &Separators,
    ) -> BlockHandle {
        let handles = self.blocks.iter().map(|b| b.handle);
        let BuiltIndex { partitions, top, keys } =
            build_index(separators, handles, spec.index, parts.at());
        let start = parts.at();
        for block in &partitions {
            parts.push(block);
        }
        let handle = parts.push(&top);
        props.index_size = parts.at() - start;
        props.index_key_is_user_key = u64::from(keys == IndexKeys::User);
        props.index_value_is_delta_encoded = 1;
        let mut index_type = ONE_LEVEL;
        if !partitions.is_empty() {
            props.index_partitions = partitions.len() as u64;
            props.top_level_index_size = handle.end() - handle.offset;
            index_type = TWO_LEVEL;
        }
        props.other.insert(INDEX_TYPE.into(), index_type.to_le_bytes().to_vec());
        let flag = |on: bool| if on { b"1".to_vec() } else { b"0".to_vec() };
        props.other.insert(WHOLE_KEY_FILTERING.into(), flag(spec.whole_keys));
        let prefixes = spec.prefixes.get().is_some();
        props.other.insert(PREFIX_FILTERING.into(), flag(prefixes));
        if !(spec.external || spec.as_rocksdb) {
            let weight = self.blocks.iter().fold(0u64, |sum, b| sum.wrapping_add(b.weight));
            props.other.insert(WEIGHT.into(), weight.to_le_bytes().to_vec());
        }
        if spec.external {
            let version = EXTERNAL_NUMBERED.to_le_bytes().to_vec();
            props.other.insert(EXTERNAL_VERSION.into(), version);
            props.other.insert(GLOBAL_SEQ.into(), vec![0; 8]);
        }
        handle
    }

    /// The properties that follow from the metadata and the spec.
    fn count(&self, spec: &TableSpec, order: &dyn Comparator) -> TableProps {
        let sum = |of: fn(&BlockMeta) -> u64| self.blocks.iter().map(of).sum::<u64>();
        let ranges = self.tombstones.len() as u64;
        let range_keys: usize = self.tombstones.iter().map(|t| t.start.len() + 8).sum();
        let range_values: usize = self.tombstones.iter().map(|t| t.end.len()).sum();
        let range_seqs = || self.tombstones.iter().map(|t| t.seq);
        let id = &spec.identity;
        TableProps {
            original_file_number: id.file_number,
            raw_key_size: sum(|b| b.raw_key_bytes) + range_keys as u64,
            raw_value_size: sum(|b| b.raw_value_bytes) + range_values as u64,
            data_size: self.data_end(),
            num_entries: sum(|b| b.entries) + ranges,
            deleted_keys: sum(|b| b.deletes) + ranges,
            merge_operands: sum(|b| b.merges),
            num_range_deletions: ranges,
            num_data_blocks: self.blocks.len() as u64,
            format_version: u64::from(spec.version),
            column_family_id: u64::from(id.cf_id),
            creation_time: id.creation_time,
            oldest_key_time: id.oldest_key_time,
            newest_key_time: id.newest_key_time,
            file_creation_time: id.file_creation_time,
            tail_start_offset: self.data_end(),
            key_largest_seqno: self.blocks.iter().map(|b| b.max_seq).chain(range_seqs()).max(),
            key_smallest_seqno: self.blocks.iter().map(|b| b.min_seq).chain(range_seqs()).min(),
            data_block_restart_interval: u64::from(spec.restart_interval),
            index_block_restart_interval: u64::from(spec.index.restart_interval),
            creating_db_identity: id.db_id.clone(),
            creating_session_identity: id.session.clone(),
            comparator: order.name().to_owned(),
            merge_operator: spec.merge_operator.clone(),
            prefix_extractor_name: spec.prefixes.name().unwrap_or(NO_NAME).to_owned(),
            property_collectors: "[]".to_owned(),
            column_family_name: id.cf_name.clone(),
            compression: spec.compression.to_owned(),
            ..TableProps::default()
        }
    }
}

fn bounds(block: &BlockMeta) -> Option<Bounds<'_>> {
    Some((InternalKey::decode(&block.first_key)?, InternalKey::decode(&block.last_key)?))
}

/// The tail so far: blocks appended with their trailers, and the names of those that have one.
struct Parts {
    start: u64,
    bytes: LargeBytes,
    check: BlockCheck,
    names: MetaIndex,
}

impl Parts {
    fn new(start: u64, check: BlockCheck) -> Parts {
        Parts { start, bytes: LargeBytes::new(), check, names: MetaIndex::default() }
    }
    /// Offset in the file of what comes next.
    fn at(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
    fn push(&mut self, payload: &[u8]) -> BlockHandle {
        let handle = BlockHandle::new(self.at(), payload.len() as u64);
        self.bytes.extend_from_slice(payload);
        self.bytes.extend_from_slice(&self.check.trailer(payload, 0, handle.offset));
        handle
    }
    fn push_meta(&mut self, name: &[u8], payload: &[u8]) {
        let handle = self.push(payload);
        self.names.insert(name, handle);
    }
}
