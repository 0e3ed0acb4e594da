//! Opening a table: from its last bytes to a [`TableReader`].
//!
//! One read of the tail usually brings footer, meta-index, properties, index and filter at once;
//! what lies before it is read block by block. Everything is checked before it is believed.

use std::sync::Arc;

use lithify_base::{
    Bytewise, ComparatorRef, Error, ErrorKind, Prefixes, Result, ReverseBytewise, Seq,
};
use lithify_env::sync::Mutex;
use lithify_env::{FileRef, OpenOpts, SharedBytes};
use lithify_files::dir::{Allowance, Dir};
use lithify_format::block::{IndexForm, TRAILER_LEN};
use lithify_format::checksum::ChecksumKind;
use lithify_format::compress::Decoder;
use lithify_format::filter::{Filter, FilterLayout};
use lithify_format::limits::{meta_plain_max, plain_max};
use lithify_format::table::footer::{FOOTER_LEN, Footer, LEVELDB_VERSION};
use lithify_format::table::handle::BlockHandle;
use lithify_format::table::index::{BlockSource, Levels, index_form};
use lithify_format::table::metaindex::{self, MetaIndex};
use lithify_format::table::props::TableProps;
use lithify_format::table::range_del;
use lithify_merge::tombstone::{Fragments, RangeTombstone};

use super::block::Block;
use super::filter::TableFilter;
use super::index::{Index, end_of_data, enough, fences_in, flat};
use super::point::SKETCH;
use super::reader::TableReader;
use super::source::Source;
use crate::cache::BlockCache;

/// Bytes of the tail that are read at once if its size is not known.
const TAIL_GUESS: u64 = 64 << 10;
/// Most bytes of the tail that are read at once; larger parts are read by themselves.
const TAIL_MAX: u64 = 32 << 20;

/// Whether blocks read from disk are checked against their sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verify {
    /// Every block on every read from disk.
    #[default]
    Always,
    /// Only what is read at open. For measurements.
    Never,
}

/// How to open a table.
pub struct OpenTable {
    /// The file, opened for reading.
    pub file: FileRef,
    /// Its name in errors.
    pub name: String,
    /// Order of user keys.
    pub order: ComparatorRef,
    /// Length in bytes the manifest gives, if any.
    pub bytes: Option<u64>,
    /// Base context the manifest gives; 0 if it gives none.
    pub base_context: u32,
    /// Largest sequence number the manifest gives, if any.
    pub largest_seq: Option<Seq>,
    /// Bytes from the end of the data blocks to the end of the file, or 0: how much to read at
    /// once.
    pub tail_bytes: u64,
    /// How the database takes prefixes of keys.
    pub prefixes: Prefixes,
    /// Where blocks are kept.
    pub cache: Option<Arc<BlockCache>>,
    /// Whether blocks are checked.
    pub verify: Verify,
}

impl OpenTable {
    /// A table about which nothing is known yet, without a cache.
    pub fn new(file: FileRef, name: impl Into<String>, order: ComparatorRef) -> OpenTable {
        OpenTable {
            file,
            name: name.into(),
            order,
            bytes: None,
            base_context: 0,
            largest_seq: None,
            tail_bytes: 0,
            prefixes: Prefixes::default(),
            cache: None,
            verify: Verify::Always,
        }
    }
}

/// A table's file and how its blocks read: enough to fetch a block by its handle.
pub struct Blocks {
    pub(crate) source: Source,
    pub(crate) footer: Footer,
    pub(crate) decoder: Arc<Decoder>,
    pub(crate) verify: Verify,
}

impl Blocks {
    /// The blocks of a file whose `footer` and `decoder` are known, each checked when it is read, whatever
    /// else of the table is damaged. `name` is the file's in errors.
    ///
    /// # Errors
    /// Io.
    pub fn new(
        file: FileRef,
        name: impl Into<String>,
        footer: Footer,
        decoder: Decoder,
    ) -> Result<Blocks> {
        let (source, decoder) = (Source::new(file, name.into(), None)?, Arc::new(decoder));
        Ok(Blocks { source, footer, decoder, verify: Verify::Always })
    }

    /// Where the parts of the table lie, and how its blocks are checked.
    pub fn footer(&self) -> &Footer {
        &self.footer
    }

    /// Reads, checks and uncompresses the block at `handle`.
    ///
    /// # Errors
    /// Corruption if it lies outside the file or fails its check; `Unsupported` for a codec that is not
    /// built in; Io.
    pub fn read(&self, handle: BlockHandle) -> Result<Block> {
        let stored = self.stored_len(handle)?;
        let bytes = self.source.read(handle.offset, stored)?;
        self.decode(bytes, 0, handle)
    }

    /// The same for a block of the index or the filter, which is checked whatever `verify` says:
    /// those decide where data is looked for.
    pub(crate) fn read_meta(&self, handle: BlockHandle) -> Result<Block> {
        let stored = self.stored_len(handle)?;
        self.source.check_read(Allowance::META, handle.offset, stored)?;
        let bytes = self.source.read(handle.offset, stored)?;
        let sound = self.footer.check.verify(&bytes, handle.offset);
        sound.map_err(|e| self.source.blame(e.at(handle.offset)))?;
        self.decode_meta(bytes, 0, handle)
    }

    /// Data and index blocks lie before here.
    pub(crate) fn limit(&self) -> u64 {
        self.source.size() - self.footer.len() as u64
    }

    /// Reads, checks and uncompresses the data block at `handle`, with a sketch in front of it if
    /// its keys are in byte order.
    pub(crate) fn read_data(&self, handle: BlockHandle, bytewise: bool) -> Result<Block> {
        let stored = self.stored_len(handle)?;
        let bytes = self.source.read_behind(SKETCH, handle.offset, stored)?;
        self.with_sketch(bytes, handle, bytewise)
    }

    /// The same from stored bytes that were read already.
    pub(crate) fn data_of(
        &self,
        stored: &[u8],
        handle: BlockHandle,
        bytewise: bool,
    ) -> Result<Block> {
        self.with_sketch(self.behind_sketch(stored)?, handle, bytewise)
    }

    /// The block whose stored bytes lie behind room for a sketch.
    fn with_sketch(
        &self,
        bytes: SharedBytes,
        handle: BlockHandle,
        bytewise: bool,
    ) -> Result<Block> {
        let (payload, type_byte) = self.check(&bytes[SKETCH..], handle)?;
        if type_byte == 0 {
            let len = payload.len();
            return Ok(Block::with_sketch(bytes, len, bytewise));
        }
        let plain = self.uncompress(type_byte, payload, handle, plain_max(payload.len()))?;
        let bytes = self.behind_sketch(&plain).map_err(|e| e.at(handle.offset))?;
        Ok(Block::with_sketch(bytes, plain.len(), bytewise))
    }

    /// `bytes` behind room for a sketch.
    fn behind_sketch(&self, bytes: &[u8]) -> Result<SharedBytes> {
        self.copied(SKETCH, bytes)
    }

    /// `bytes` behind `front` others.
    fn copied(&self, front: usize, bytes: &[u8]) -> Result<SharedBytes> {
        let memory = self.source.memory(front + bytes.len());
        let mut all = memory.map_err(|e| self.source.blame(e))?;
        all.get_mut().expect("not shared yet")[front..].copy_from_slice(bytes);
        Ok(all)
    }

    /// Splits stored bytes into payload and type byte, and checks them unless told not to.
    fn check<'a>(&self, stored: &'a [u8], handle: BlockHandle) -> Result<(&'a [u8], u8)> {
        let checked = match self.verify {
            Verify::Always => self.footer.check.verify(stored, handle.offset),
            Verify::Never => lithify_format::block::split_trailer(stored).map(|(p, t, _)| (p, t)),
        };
        checked.map_err(|e| self.source.blame(e.at(handle.offset)))
    }

    fn uncompress(
        &self,
        type_byte: u8,
        payload: &[u8],
        handle: BlockHandle,
        most: usize,
    ) -> Result<Vec<u8>> {
        let plain = self.decoder.decode(type_byte, payload, most);
        plain.map_err(|e| self.source.blame(e.at(handle.offset)))
    }

    /// Bytes of a block with its trailer, if it can lie in this file.
    pub(crate) fn stored_len(&self, handle: BlockHandle) -> Result<usize> {
        if handle.end() > self.source.size() {
            let e = Error::corruption("a handle names a block outside the file");
            return Err(self.source.blame(e.at(handle.offset)));
        }
        let stored = handle.size as usize + TRAILER_LEN;
        match u32::try_from(stored) {
            Ok(_) => Ok(stored),
            Err(_) => {
                let e = Error::unsupported("block of 4 GiB or more");
                Err(self.source.blame(e.at(handle.offset)))
            }
        }
    }

    /// The block at `handle`, whose stored bytes start at `at` of `bytes`.
    pub(crate) fn decode(
        &self,
        bytes: SharedBytes,
        at: usize,
        handle: BlockHandle,
    ) -> Result<Block> {
        self.decode_up_to(bytes, at, handle, plain_max)
    }

    /// The same for a block of the index, the filter, or another one that is held as long as the table
    /// is open: it grows less.
    fn decode_meta(&self, bytes: SharedBytes, at: usize, handle: BlockHandle) -> Result<Block> {
        self.decode_up_to(bytes, at, handle, meta_plain_max)
    }

    fn decode_up_to(
        &self,
        bytes: SharedBytes,
        at: usize,
        handle: BlockHandle,
        most: fn(usize) -> usize,
    ) -> Result<Block> {
        let end = at + handle.size as usize + TRAILER_LEN;
        let Some(stored) = bytes.get(at..end) else {
            let e = Error::corruption("the file ends inside a block");
            return Err(self.source.blame(e.at(handle.offset)));
        };
        let (payload, type_byte) = self.check(stored, handle)?;
        if type_byte == 0 {
            return Ok(Block::new(bytes, at, end - TRAILER_LEN));
        }
        let plain = self.uncompress(type_byte, payload, handle, most(payload.len()))?;
        Ok(Block::new(self.copied(0, &plain)?, 0, plain.len()))
    }
}

/// Blocks served from the tail that was read at once, else from the file.
struct Tail<'a> {
    blocks: &'a Blocks,
    start: u64,
    bytes: &'a SharedBytes,
}

impl BlockSource for Tail<'_> {
    type Bytes = Block;
    fn block(&self, handle: BlockHandle) -> Result<Block> {
        let stored = self.blocks.stored_len(handle)?;
        match handle.offset.checked_sub(self.start) {
            Some(at) if at as usize + stored <= self.bytes.len() => {
                self.blocks.decode_meta(self.bytes.clone(), at as usize, handle)
            }
            _ => self.blocks.read_meta(handle),
        }
    }
}

impl TableReader {
    /// Opens a table and reads everything but its data blocks.
    ///
    /// # Errors
    /// Corruption if a part fails its check, parts disagree, or the file is not the one the
    /// manifest describes; `Unsupported` for features or comparators this reader lacks; `Io`.
    pub fn open(spec: OpenTable) -> Result<Arc<TableReader>> {
        let memory = spec.cache.as_ref().map(|cache| cache.memory().clone());
        let source = Source::new(spec.file.clone(), spec.name.clone(), memory)?;
        let name = spec.name.clone();
        open(source, spec).map(Arc::new).map_err(|e| e.in_file(name))
    }
}

/// Opens table `number` of `dir` about which nothing is known, in whichever of our own orders or of
/// `orders` it says.
///
/// # Errors
/// As [`TableReader::open`].
pub fn open_alone(dir: &Dir, number: u64, orders: &[ComparatorRef]) -> Result<Arc<TableReader>> {
    let (dir, name, file) = dir.open_table_there(number, OpenOpts::read())?;
    let path = dir.path_of(name).display().to_string();
    let in_order =
        |order: ComparatorRef| TableReader::open(OpenTable::new(file.clone(), path.clone(), order));
    let ours: [ComparatorRef; 2] = [Arc::new(Bytewise), Arc::new(ReverseBytewise)];
    let mut opened = orders.iter().chain(&ours).map(|order| in_order(order.clone()));
    let is_other = |e: &Error| e.kind() == ErrorKind::Unsupported;
    // If it is none of them, each answer names the one that it says.
    let first = opened.next().expect("two orders are ours");
    opened.fold(first, |found, next| if found.as_ref().is_err_and(is_other) { next } else { found })
}

/// The end of the file, as much of it as is thought to hold everything but data, and where it starts.
fn read_tail(source: &Source, spec: &OpenTable) -> Result<(u64, SharedBytes)> {
    let wanted = match spec.tail_bytes {
        0 => TAIL_GUESS,
        n => n.min(TAIL_MAX),
    };
    let len = wanted.max(FOOTER_LEN as u64).min(source.size());
    let start = source.size() - len;
    Ok((start, source.read(start, len as usize)?))
}

/// Refuses a table that is not the one that the manifest names.
fn check_identity(footer: &Footer, spec: &OpenTable) -> Result<()> {
    if spec.base_context == 0 || spec.base_context == footer.check.base {
        return Ok(());
    }
    Err(Error::corruption(format!(
        "another table lies under this name: its base context is {:#010x}, the manifest says \
         {:#010x}",
        footer.check.base, spec.base_context
    )))
}

fn open(source: Source, spec: OpenTable) -> Result<TableReader> {
    let size = source.size();
    if let Some(wanted) = spec.bytes.filter(|bytes| *bytes != size) {
        return Err(Error::corruption(format!(
            "the file has {size} bytes, the manifest says {wanted}"
        )));
    }
    let (start, bytes) = read_tail(&source, &spec)?;
    let footer = Footer::read(&bytes, size)?;
    check_identity(&footer, &spec)?;
    let decoder = match footer.version {
        LEVELDB_VERSION => Decoder::leveldb(),
        _ => Decoder::rocksdb(),
    };
    // Meta blocks are checked at open whatever `verify` says.
    let mut blocks = Blocks { source, footer, decoder: Arc::new(decoder), verify: Verify::Always };
    has_sum(&blocks, footer.metaindex)?;
    let names = MetaIndex::decode(tail(&blocks, start, &bytes).block(footer.metaindex)?.as_ref())
        .map_err(|e| e.at(footer.metaindex.offset))?;
    if let Some(handle) = names.get(metaindex::COMPRESSION_DICT) {
        let dictionary = tail(&blocks, start, &bytes).block(handle)?;
        blocks.decoder = Arc::new(Decoder::rocksdb().with_dictionary(dictionary.as_ref()));
    }
    let parts = Parts { tail: tail(&blocks, start, &bytes), names: &names, spec: &spec };
    let props = parts.props()?;
    let (index, data_end) = parts.index(&props)?;
    let (whole_keys, prefixes) = filtered(&props, &spec);
    let asked = whole_keys || prefixes.get().is_some();
    let filter = match asked && spec.order.equal_is_identical() {
        true => parts.filter(&props)?,
        // It says nothing that could be asked for here; bytes that differ may be one key.
        false => TableFilter::None,
    };
    let global_seq = props.global_seq(spec.largest_seq)?;
    let tombstones = parts.tombstones(global_seq)?;
    blocks.verify = spec.verify;
    let mut table = TableReader {
        blocks,
        order: spec.order,
        cache: spec.cache.map(|cache| cache.open_file()),
        props,
        index,
        counts: names.get(metaindex::BLOCKS),
        filter,
        whole_keys,
        prefixes,
        tombstones,
        global_seq,
        data_end,
    };
    let resident = table.memory() as u64;
    if let Some(cache) = &mut table.cache {
        let whole = table.props.index_size.saturating_add(table.props.filter_size);
        cache.weigh(resident, whole.min(size).max(resident));
    }
    Ok(table)
}

/// Whether the table's filter has whole keys, and which prefixes.
fn filtered(props: &TableProps, spec: &OpenTable) -> (bool, Prefixes) {
    let prefixes = match props.filters_prefixes() {
        true => spec.prefixes.named(&props.prefix_extractor_name),
        false => Prefixes::default(),
    };
    (props.filters_whole_keys(), prefixes)
}

/// Where a table says that its blocks have no sums they are zero. A footer before version 6 could
/// say so because of one damaged bit, and nothing of the table would be checked.
pub(crate) fn has_sum(blocks: &Blocks, handle: BlockHandle) -> Result<()> {
    // From version 6 on the footer has a sum, and blocks without one what stands for their place.
    if blocks.footer.check.kind != ChecksumKind::None || blocks.footer.version >= 6 {
        return Ok(());
    }
    let at = handle.offset.checked_add(handle.size).and_then(|end| end.checked_add(1));
    let Some(at) = at.filter(|at| at.saturating_add(4) <= blocks.source.size()) else {
        return Err(Error::corruption("a block ends beyond the file").at(handle.offset));
    };
    let sum = blocks.source.read(at, 4)?;
    match sum.iter().all(|&b| b == 0) {
        true => Ok(()),
        false => {
            Err(Error::corruption("the footer says that blocks have no sums, and this one has one")
                .at(handle.offset))
        }
    }
}

fn tail<'a>(blocks: &'a Blocks, start: u64, bytes: &'a SharedBytes) -> Tail<'a> {
    Tail { blocks, start, bytes }
}

/// The parts of a table behind its data blocks.
struct Parts<'a> {
    tail: Tail<'a>,
    names: &'a MetaIndex,
    spec: &'a OpenTable,
}

impl Parts<'_> {
    fn version(&self) -> u32 {
        self.tail.blocks.footer.version
    }

    fn props(&self) -> Result<TableProps> {
        let Some(handle) = self.names.get(metaindex::PROPERTIES) else {
            // LevelDB's tables have none; RocksDB's always do.
            return match self.version() {
                LEVELDB_VERSION => Ok(TableProps::default()),
                _ => Err(Error::corruption("table has no properties")),
            };
        };
        let block = self.tail.block(handle)?;
        let props = TableProps::decode(block.as_ref()).map_err(|e| e.at(handle.offset))?;
        let order = self.spec.order.name();
        if !props.comparator.is_empty() && props.comparator != order {
            return Err(Error::unsupported(format!(
                "table is ordered by comparator `{}`, the database by `{order}`",
                props.comparator
            )));
        }
        Ok(props)
    }

    /// The index, and where data blocks end: flat, whatever its levels, unless there is a cache to keep
    /// the parts of one with two levels in.
    fn index(&self, props: &TableProps) -> Result<(Index, u64)> {
        let (blocks, order) = (self.tail.blocks, &*self.spec.order);
        let handle = match blocks.footer.index.or_else(|| self.names.get(metaindex::INDEX)) {
            Some(handle) => handle,
            None => return Err(Error::corruption("table has no index")),
        };
        let (form, levels) = index_form(self.version(), props)?;
        let top = self.tail.block(handle)?;
        let read = || -> Result<(Index, u64)> {
            let top = fences_in(top, form, blocks, order)?;
            let fences = match levels {
                Levels::One => top,
                Levels::Two if self.spec.cache.is_some() => {
                    let end = end_of_data(&self.tail, blocks, &top, form, order)?;
                    return Ok((Index::Parts { top, form }, end));
                }
                Levels::Two => flat(&self.tail, blocks, &top, form, order)?,
            };
            enough(&fences, props)?;
            let end = fences.end();
            Ok((Index::Whole(fences), end))
        };
        read().map_err(|e| e.at(handle.offset))
    }

    fn filter(&self, props: &TableProps) -> Result<TableFilter> {
        let Some((layout, handle)) = self.names.filter() else { return Ok(TableFilter::None) };
        let top = self.tail.block(handle)?;
        match layout {
            // A copy of its own, so that the rest of the tail's memory can go.
            FilterLayout::Full => {
                let own = self.tail.blocks.copied(0, top.as_ref());
                let own = own.map_err(|e| e.at(handle.offset))?;
                Ok(TableFilter::Full(Filter::new(own)))
            }
            FilterLayout::Partitioned => {
                let (form, _) = index_form(self.version(), props)?;
                let form = IndexForm { first_keys: false, ..form };
                self.filter_parts(top, form).map_err(|e| e.at(handle.offset))
            }
        }
    }

    fn filter_parts(&self, top: Block, form: IndexForm) -> Result<TableFilter> {
        let fences = fences_in(top, form, self.tail.blocks, &*self.spec.order)?;
        let held = self.spec.cache.is_none().then(Mutex::default);
        Ok(TableFilter::Parts { fences, held })
    }

    fn tombstones(&self, global_seq: Option<Seq>) -> Result<Fragments> {
        let Some(handle) = self.names.get(metaindex::RANGE_DEL) else {
            return Ok(Fragments::default());
        };
        let block = self.tail.block(handle)?;
        let raw = range_del::decode(block.as_ref()).map_err(|e| e.at(handle.offset))?;
        let raw = raw.into_iter().map(|t| RangeTombstone {
            lo: t.start.into(),
            hi: t.end.into(),
            seq: global_seq.unwrap_or(t.seq),
            run: 0,
        });
        Fragments::of_table(raw, &*self.spec.order).map_err(|e| e.at(handle.offset))
    }
}

#[cfg(test)]
mod tests;
