//! Table properties: names and numbers about a table, in a block with one restart point.
//!
//! Keeps: `encode(decode(b)) = b` for every block we wrote; properties that this version does
//! not know are kept as bytes. Leaves to others: computing them ([`super::tail`]).

use std::collections::BTreeMap;

use lithify_base::{Error, MAX_SEQ, Result, Seq};

use crate::block::{BlockBuilder, BlockIter};
use crate::limits::Unshared;
use crate::varint::{self, Reader};
use crate::weight::WEIGHT;

/// The kind of index, as fixed32. RocksDB 11 refuses tables without it.
pub const INDEX_TYPE: &str = "rocksdb.block.based.table.index.type";
/// Index type: one level.
pub const ONE_LEVEL: u32 = 0;
/// Index type: one level, made for look-ups by hash of a prefix; reads as one level.
pub const HASH: u32 = 1;
/// Index type: two levels.
pub const TWO_LEVEL: u32 = 2;
/// Index type: one level, with the first key of each block.
pub const FIRST_KEYS: u32 = 3;
/// Whether the filter holds whole keys: `1` or `0`.
pub const WHOLE_KEY_FILTERING: &str = "rocksdb.block.based.table.whole.key.filtering";
/// Whether the filter holds key prefixes: `1` or `0`. Without it a reader with a prefix extractor
/// could take "prefix not in the filter" for "no such key".
pub const PREFIX_FILTERING: &str = "rocksdb.block.based.table.prefix.filtering";

/// Version of the external form, as fixed32: a table that was made outside of any database.
pub const EXTERNAL_VERSION: &str = "rocksdb.external_sst_file.version";
/// The version from which on one number may stand for those of all entries.
pub const EXTERNAL_NUMBERED: u32 = 2;
/// The one sequence number of all entries of an external table, as fixed64; 0 leaves it to the database that
/// took the table in.
pub const GLOBAL_SEQ: &str = "rocksdb.external_sst_file.global_seqno";

/// The properties that every table of ours has, by the names on disk without `rocksdb.`. Times are
/// seconds since 1970, 0 where unknown; sizes are bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "each field is named as on disk, and means what RocksDB's means")]
pub struct TableProps {
    pub original_file_number: u64,
    pub raw_key_size: u64,
    pub raw_value_size: u64,
    pub data_size: u64,
    pub index_size: u64,
    /// Second-level index blocks; 0 for a one-level index.
    pub index_partitions: u64,
    pub top_level_index_size: u64,
    /// 1 if index keys are user keys.
    pub index_key_is_user_key: u64,
    /// 1 if index handles are deltas.
    pub index_value_is_delta_encoded: u64,
    /// Point entries and range tombstones.
    pub num_entries: u64,
    pub num_filter_entries: u64,
    /// Deletes, single deletes and range tombstones.
    pub deleted_keys: u64,
    pub merge_operands: u64,
    pub num_range_deletions: u64,
    pub num_data_blocks: u64,
    pub filter_size: u64,
    /// That of the footer; 0 in tables of older versions of RocksDB, and in early ones of ours.
    pub format_version: u64,
    /// 0: keys of any length.
    pub fixed_key_length: u64,
    pub column_family_id: u64,
    pub creation_time: u64,
    pub oldest_key_time: u64,
    pub newest_key_time: u64,
    pub file_creation_time: u64,
    /// Where data blocks end.
    pub tail_start_offset: u64,
    /// Largest sequence number; `None` if not recorded.
    pub key_largest_seqno: Option<u64>,
    /// Smallest sequence number; `None` if not recorded.
    pub key_smallest_seqno: Option<u64>,
    pub data_block_restart_interval: u64,
    pub index_block_restart_interval: u64,
    pub creating_db_identity: String,
    /// RocksDB tells the cached blocks of tables apart by it, the database's identity and the number.
    pub creating_session_identity: String,
    pub filter_policy: String,
    pub comparator: String,
    pub merge_operator: String,
    pub prefix_extractor_name: String,
    pub property_collectors: String,
    pub column_family_name: String,
    pub compression: String,
    pub compression_options: String,
    /// Everything else, by its whole name.
    pub other: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// When a number is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    Always,
    NotZero,
}

impl TableProps {
    fn numbers(&mut self) -> [(&'static str, &mut u64, When); 26] {
        use When::{Always, NotZero};
        [
            ("rocksdb.original.file.number", &mut self.original_file_number, Always),
            ("rocksdb.raw.key.size", &mut self.raw_key_size, Always),
            ("rocksdb.raw.value.size", &mut self.raw_value_size, Always),
            ("rocksdb.data.size", &mut self.data_size, Always),
            ("rocksdb.index.size", &mut self.index_size, Always),
            ("rocksdb.index.partitions", &mut self.index_partitions, NotZero),
            ("rocksdb.top-level.index.size", &mut self.top_level_index_size, NotZero),
            ("rocksdb.index.key.is.user.key", &mut self.index_key_is_user_key, Always),
            (
                "rocksdb.index.value.is.delta.encoded",
                &mut self.index_value_is_delta_encoded,
                Always,
            ),
            ("rocksdb.num.entries", &mut self.num_entries, Always),
            ("rocksdb.num.filter_entries", &mut self.num_filter_entries, Always),
            ("rocksdb.deleted.keys", &mut self.deleted_keys, Always),
            ("rocksdb.merge.operands", &mut self.merge_operands, Always),
            ("rocksdb.num.range-deletions", &mut self.num_range_deletions, Always),
            ("rocksdb.num.data.blocks", &mut self.num_data_blocks, Always),
            ("rocksdb.filter.size", &mut self.filter_size, Always),
            ("rocksdb.format.version", &mut self.format_version, Always),
            ("rocksdb.fixed.key.length", &mut self.fixed_key_length, Always),
            ("rocksdb.column.family.id", &mut self.column_family_id, Always),
            ("rocksdb.creation.time", &mut self.creation_time, Always),
            ("rocksdb.oldest.key.time", &mut self.oldest_key_time, Always),
            ("rocksdb.newest.key.time", &mut self.newest_key_time, Always),
            ("rocksdb.file.creation.time", &mut self.file_creation_time, NotZero),
            ("rocksdb.tail.start.offset", &mut self.tail_start_offset, Always),
            ("rocksdb.data.block.restart.interval", &mut self.data_block_restart_interval, NotZero),
            (
                "rocksdb.index.block.restart.interval",
                &mut self.index_block_restart_interval,
                NotZero,
            ),
        ]
    }

    fn optional(&mut self) -> [(&'static str, &mut Option<u64>); 2] {
        [
            ("rocksdb.key.largest.seqno", &mut self.key_largest_seqno),
            ("rocksdb.key.smallest.seqno", &mut self.key_smallest_seqno),
        ]
    }

    fn strings(&mut self) -> [(&'static str, &mut String); 10] {
        [
            ("rocksdb.creating.db.identity", &mut self.creating_db_identity),
            ("rocksdb.creating.session.identity", &mut self.creating_session_identity),
            ("rocksdb.filter.policy", &mut self.filter_policy),
            ("rocksdb.comparator", &mut self.comparator),
            ("rocksdb.merge.operator", &mut self.merge_operator),
            ("rocksdb.prefix.extractor.name", &mut self.prefix_extractor_name),
            ("rocksdb.property.collectors", &mut self.property_collectors),
            ("rocksdb.column.family.name", &mut self.column_family_name),
            ("rocksdb.compression", &mut self.compression),
            ("rocksdb.compression_options", &mut self.compression_options),
        ]
    }

    /// The block: names in byte order, one restart point.
    pub fn encode(&self) -> Vec<u8> {
        let mut props = self.clone();
        let mut all = std::mem::take(&mut props.other);
        let varint = |v: u64| {
            let mut out = Vec::new();
            varint::put_u64(&mut out, v);
            out
        };
        for (name, value, when) in props.numbers() {
            if when == When::Always || *value != 0 {
                all.insert(name.into(), varint(*value));
            }
        }
        for (name, value) in props.optional() {
            if let Some(value) = *value {
                all.insert(name.into(), varint(value));
            }
        }
        for (name, value) in props.strings() {
            if !value.is_empty() {
                all.insert(name.into(), value.clone().into_bytes());
            }
        }
        let mut block = BlockBuilder::new(u32::MAX);
        for (name, value) in &all {
            block.add(name, value);
        }
        block.finish().to_vec()
    }

    /// Reads the block.
    ///
    /// # Errors
    /// Corruption if an entry, or a number among the known ones, does not decode.
    pub fn decode(block: &[u8]) -> Result<TableProps> {
        let mut props = TableProps::default();
        let mut from = BlockIter::named(block)?;
        let mut unshared = Unshared::of(block.len());
        let mut more = from.seek_to_first()?;
        while more {
            unshared.take(from.key(), from.value())?;
            props.take(from.key(), from.value())?;
            more = from.next()?;
        }
        Ok(props)
    }

    fn take(&mut self, name: &[u8], value: &[u8]) -> Result<()> {
        let number = || {
            Reader::new(value).var64().map_err(|_| {
                Error::corruption(format!("table property {} is no number", name.escape_ascii()))
            })
        };
        if let Some((_, slot, _)) = self.numbers().into_iter().find(|n| n.0.as_bytes() == name) {
            *slot = number()?;
        } else if let Some((_, slot)) = self.optional().into_iter().find(|n| n.0.as_bytes() == name)
        {
            *slot = Some(number()?);
        } else {
            let slot = self.strings().into_iter().find(|n| n.0.as_bytes() == name);
            // Of a name that is there twice, the last one counts, whatever is in it.
            match (slot, std::str::from_utf8(value)) {
                (Some((_, slot)), Ok(text)) => {
                    text.clone_into(slot);
                    self.other.remove(name);
                }
                (slot, _) => {
                    slot.into_iter().for_each(|(_, slot)| slot.clear());
                    self.other.insert(name.to_vec(), value.to_vec());
                }
            }
        }
        Ok(())
    }

    /// Point entries: all but the range tombstones.
    pub fn points(&self) -> u64 {
        self.num_entries.saturating_sub(self.num_range_deletions)
    }

    /// True if the filter, if any, holds whole keys, so that it may be asked for one.
    pub fn filters_whole_keys(&self) -> bool {
        self.other.get(WHOLE_KEY_FILTERING.as_bytes()).is_none_or(|v| v != b"0")
    }

    /// True if the filter, if any, holds the prefixes of keys, as the extractor takes them that the
    /// table names.
    pub fn filters_prefixes(&self) -> bool {
        self.other.get(PREFIX_FILTERING.as_bytes()).is_some_and(|v| v == b"1")
    }

    /// True if the table is in the external form: all its entries have the number 0, and a database
    /// that takes it in gives them one number.
    pub fn is_external(&self) -> bool {
        let version = self.other.get(EXTERNAL_VERSION.as_bytes());
        let version = version.and_then(|v| v.first_chunk::<4>()).map(|v| u32::from_le_bytes(*v));
        version.is_some_and(|v| v >= EXTERNAL_NUMBERED)
    }

    /// The one sequence number of all entries, if they do not have their own: the one that the
    /// database gave the table (`given`, the largest number its manifest names), or the one the
    /// table says itself.
    ///
    /// # Errors
    /// Corruption if the two differ, or either is no number.
    pub fn global_seq(&self, given: Option<Seq>) -> Result<Option<Seq>> {
        let stated = match self.other.get(GLOBAL_SEQ.as_bytes()) {
            None => 0,
            Some(_) if !self.is_external() => {
                return Err(Error::corruption("table has one number for all, and is not external"));
            }
            Some(v) => match v.first_chunk::<8>() {
                Some(v) => u64::from_le_bytes(*v),
                None => return Err(Error::corruption("the table's one number is no number")),
            },
        };
        if !self.is_external() {
            return Ok(None);
        }
        match given {
            Some(given) if stated != 0 && stated != given => Err(Error::corruption(format!(
                "the table was given the number {given} and says that it has {stated}"
            ))),
            Some(given) => Ok(Some(given)),
            None if stated > MAX_SEQ => Err(Error::corruption("the table's number is too large")),
            None => Ok(Some(stated)),
        }
    }

    /// Content weight of the point entries with the tags they are stored with
    /// ([`crate::weight`]); `None` if the table does not say.
    pub fn weight(&self) -> Option<u64> {
        let stated = self.other.get(WEIGHT.as_bytes())?;
        stated.as_slice().try_into().ok().map(u64::from_le_bytes)
    }

    /// The kind of index; [`ONE_LEVEL`] where the table does not say.
    pub fn index_type(&self) -> u32 {
        let value = self.other.get(INDEX_TYPE.as_bytes());
        value.and_then(|v| v.first_chunk::<4>()).map_or(ONE_LEVEL, |v| u32::from_le_bytes(*v))
    }
}
