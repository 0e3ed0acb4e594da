//! Entries in, table out.

use lithify_base::{Comparator, InternalKey, Kind, Result};

use crate::block::BlockBuilder;
use crate::compress::{Codec, Compressor};
use crate::filter::key_hash;
use crate::table::handle::BlockHandle;
use crate::table::range_del::RangeTombstone;
use crate::table::tail::{BlockMeta, TableSpec, Tail, TailBuilder};
use crate::weight::{content, weigh};
use crate::xxph3::xxph3_64;

/// Logical bytes of an entry over its key and value (R1): the tag and a share of overhead.
const ENTRY_OVERHEAD: u64 = 8 + 4;

/// Writes one table into memory: the same block cuts with a single counter.
#[derive(Debug)]
pub struct NaiveTableWriter {
    spec: TableSpec,
    block_size: u64,
    compressor: Compressor,
    block: BlockBuilder,
    meta: BlockMeta,
    tail: TailBuilder,
    /// Hash of the last prefix.
    prefix: Option<u64>,
    file: Vec<u8>,
    /// S: logical bytes of all entries before the next one.
    logical: u64,
    /// floor(S / B) of the entry before.
    slot: u64,
}

impl NaiveTableWriter {
    /// A writer of tables of `spec` with blocks of `block_size` logical bytes, uncompressed.
    pub fn new(spec: TableSpec, block_size: u64) -> NaiveTableWriter {
        let compressor = Compressor::new(Codec::None, 0).expect("no codec is always there");
        NaiveTableWriter {
            block: BlockBuilder::new(spec.restart_interval),
            spec,
            block_size,
            compressor,
            meta: BlockMeta::default(),
            tail: TailBuilder::new(),
            prefix: None,
            file: Vec::new(),
            logical: 0,
            slot: 0,
        }
    }

    /// Compresses data blocks from now on.
    pub fn with_codec(mut self, compressor: Compressor) -> NaiveTableWriter {
        self.spec.compression = compressor.codec().name();
        self.compressor = compressor;
        self
    }

    /// Adds the next entry in total order.
    pub fn add(&mut self, key: InternalKey<'_>, value: &[u8]) {
        let slot = self.logical / self.block_size;
        if slot != self.slot {
            self.end_block();
        }
        self.slot = slot;
        self.logical += key.user.len() as u64 + value.len() as u64 + ENTRY_OVERHEAD;

        let meta = &mut self.meta;
        let seq = key.tag.seq();
        if meta.entries == 0 {
            meta.first_key = key.to_vec();
            (meta.min_seq, meta.max_seq) = (seq, seq);
        }
        meta.last_key = key.to_vec();
        meta.entries += 1;
        meta.raw_key_bytes += key.user.len() as u64 + 8;
        meta.raw_value_bytes += value.len() as u64;
        let weight = weigh(content(xxph3_64(key.user), value), key.tag);
        meta.weight = meta.weight.wrapping_add(weight);
        meta.deletes += u64::from(key.tag.kind().is_some_and(Kind::is_delete));
        meta.merges += u64::from(key.tag.kind() == Some(Kind::Merge));
        meta.min_seq = meta.min_seq.min(seq);
        meta.max_seq = meta.max_seq.max(seq);
        if let Some(prefix) = self.spec.prefixes.of(key.user).map(key_hash)
            && self.prefix.replace(prefix) != Some(prefix)
        {
            self.tail.push_hash(prefix);
        }
        if self.spec.whole_keys {
            self.tail.push_hash(key_hash(key.user));
        }
        self.block.add_entry(key, value);
    }

    /// Adds the next range tombstone: fragments, by start and then newest first.
    pub fn add_tombstone(&mut self, tombstone: RangeTombstone) {
        self.tail.push_tombstone(tombstone);
    }

    /// The whole table, and its tail by itself.
    ///
    /// # Errors
    /// As [`TailBuilder::finish`].
    pub fn finish(mut self, order: &dyn Comparator) -> Result<(Vec<u8>, Tail)> {
        self.end_block();
        let tail = self.tail.finish(&self.spec, order)?;
        self.file.extend_from_slice(&tail.bytes);
        Ok((self.file, tail))
    }

    fn end_block(&mut self) {
        if self.block.is_empty() {
            return;
        }
        let offset = self.file.len() as u64;
        let mut payload = Vec::new();
        let type_byte = self.compressor.append(self.block.finish(), &mut payload);
        self.spec.check().append(&mut self.file, &payload, type_byte, offset);
        let mut meta = std::mem::take(&mut self.meta);
        meta.handle = BlockHandle::new(offset, payload.len() as u64);
        self.tail.push_block(meta);
        self.block.clear();
    }
}
