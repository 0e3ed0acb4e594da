//! Table in, entries out.

use std::borrow::Cow;

use lithify_base::{Comparator, Error, InternalKey, Result};

use crate::block::{BlockIter, IndexIter};
use crate::compress::Decoder;
use crate::filter::{FilterLayout, FilterShape, key_hash};
use crate::limits::plain_max;
use crate::table::blocks_meta::{self, BlockCounts};
use crate::table::footer::{Footer, LEVELDB_VERSION};
use crate::table::handle::BlockHandle;
use crate::table::index::{BlockSource, TableIndexIter, index_form};
use crate::table::metaindex::{self, MetaIndex};
use crate::table::props::TableProps;
use crate::table::range_del::{self, RangeTombstone};

/// An encoded internal key and its value.
pub type Entry = (Vec<u8>, Vec<u8>);

/// A table in memory.
#[derive(Debug)]
pub struct NaiveTableReader<'a> {
    file: &'a [u8],
    footer: Footer,
    names: MetaIndex,
    props: TableProps,
    index: BlockHandle,
    decoder: Decoder,
}

impl<'a> NaiveTableReader<'a> {
    /// Opens the bytes of a whole file.
    ///
    /// # Errors
    /// Corruption if footer, meta-index or properties do not decode; `Unsupported` for features
    /// this version does not read.
    pub fn open(file: &'a [u8]) -> Result<NaiveTableReader<'a>> {
        let footer = Footer::read(file, file.len() as u64)?;
        let decoder = match footer.version {
            LEVELDB_VERSION => Decoder::leveldb(),
            _ => Decoder::rocksdb(),
        };
        let mut table = NaiveTableReader {
            file,
            footer,
            names: MetaIndex::default(),
            props: TableProps::default(),
            index: BlockHandle::default(),
            decoder,
        };
        table.names = MetaIndex::decode(&table.block(footer.metaindex)?)?;
        if let Some(handle) = table.names.get(metaindex::PROPERTIES) {
            table.props = TableProps::decode(&table.block(handle)?)?;
        }
        if let Some(handle) = table.names.get(metaindex::COMPRESSION_DICT) {
            let dictionary = table.block(handle)?.into_owned();
            table.decoder = table.decoder.with_dictionary(&dictionary);
        }
        table.index = footer
            .index
            .or_else(|| table.names.get(metaindex::INDEX))
            .ok_or_else(|| Error::corruption("table names no index"))?;
        Ok(table)
    }

    /// The footer.
    pub fn footer(&self) -> &Footer {
        &self.footer
    }
    /// The properties; default ones for LevelDB tables, which have none.
    pub fn props(&self) -> &TableProps {
        &self.props
    }
    /// The meta-index.
    pub fn names(&self) -> &MetaIndex {
        &self.names
    }

    /// An iterator over the data blocks.
    ///
    /// # Errors
    /// As [`BlockSource::block`].
    pub fn index(&self) -> Result<TableIndexIter<&NaiveTableReader<'a>>> {
        let (form, levels) = index_form(self.footer.version, &self.props)?;
        TableIndexIter::new(self, self.block(self.index)?, form, levels)
    }

    /// All entries in order.
    ///
    /// # Errors
    /// Corruption of any block.
    pub fn entries(&self) -> Result<Vec<Entry>> {
        let mut all = Vec::new();
        let mut index = self.index()?;
        let mut more = index.seek_to_first()?;
        while more {
            let mut block = BlockIter::new(self.block(index.handle())?)?;
            let mut inside = block.seek_to_first()?;
            while inside {
                all.push((block.key().to_vec(), block.value().to_vec()));
                inside = block.next()?;
            }
            more = index.next()?;
        }
        Ok(all)
    }

    /// The first entry at or after `target` that has its user key.
    ///
    /// # Errors
    /// Corruption of a block on the way.
    pub fn get(&self, target: InternalKey<'_>, order: &dyn Comparator) -> Result<Option<Entry>> {
        let mut index = self.index()?;
        let mut more = index.seek(target, order)?;
        while more {
            let mut block = BlockIter::new(self.block(index.handle())?)?;
            if block.seek(target, order)? {
                let same = order.compare(block.internal_key().user, target.user).is_eq();
                return Ok(same.then(|| (block.key().to_vec(), block.value().to_vec())));
            }
            more = index.next()?;
        }
        Ok(None)
    }

    /// False only if the filter says that the table has no entry of this user key.
    ///
    /// # Errors
    /// Corruption of a filter block.
    pub fn may_contain(&self, user_key: &[u8], order: &dyn Comparator) -> Result<bool> {
        let filter = self.names.filter().filter(|_| self.props.filters_whole_keys());
        let Some((layout, mut handle)) = filter else { return Ok(true) };
        if layout == FilterLayout::Partitioned {
            let (form, _) = index_form(self.footer.version, &self.props)?;
            let mut top = IndexIter::new(self.block(handle)?, form)?;
            let target = InternalKey { user: user_key, tag: lithify_base::Tag(u64::MAX) };
            if !top.seek(target, order)? {
                return Ok(false);
            }
            handle = top.handle();
        }
        let block = self.block(handle)?;
        Ok(FilterShape::parse(&block).may_contain(&block, key_hash(user_key)))
    }

    /// All range tombstones as stored.
    ///
    /// # Errors
    /// Corruption of their block.
    pub fn tombstones(&self) -> Result<Vec<RangeTombstone>> {
        match self.names.get(metaindex::RANGE_DEL) {
            Some(handle) => range_del::decode(&self.block(handle)?),
            None => Ok(Vec::new()),
        }
    }

    /// The stored counts per data block; `None` for foreign tables.
    ///
    /// # Errors
    /// Corruption if they disagree with the properties.
    pub fn counts(&self) -> Result<Option<Vec<BlockCounts>>> {
        let Some(handle) = self.names.get(metaindex::BLOCKS) else { return Ok(None) };
        let block = self.block(handle)?;
        blocks_meta::decode(&block, self.props.num_data_blocks, self.props.points()).map(Some)
    }
}

impl<'a> BlockSource for NaiveTableReader<'a> {
    type Bytes = Cow<'a, [u8]>;

    fn block(&self, handle: BlockHandle) -> Result<Cow<'a, [u8]>> {
        let range = usize::try_from(handle.offset).ok().zip(usize::try_from(handle.end()).ok());
        let bytes = range
            .and_then(|(start, end)| self.file.get(start..end))
            .ok_or_else(|| Error::corruption("handle points outside the file"))?;
        let (payload, type_byte) = self.footer.check.verify(bytes, handle.offset)?;
        match type_byte {
            0 => Ok(Cow::Borrowed(payload)),
            _ => self.decoder.decode(type_byte, payload, plain_max(payload.len())).map(Cow::Owned),
        }
    }
}
