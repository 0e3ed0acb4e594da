//! Reading an index of one or two levels through a source of blocks.

use lithify_base::{Comparator, Error, InternalKey, Result};

use crate::block::{IndexForm, IndexIter, IndexKeys};
use crate::table::footer::LEVELDB_VERSION;
use crate::table::handle::BlockHandle;
use crate::table::props::{self, TableProps};

/// Where an index or filter iterator gets blocks from: verified, decompressed, perhaps cached.
pub trait BlockSource {
    /// A block's bytes, held as long as needed.
    type Bytes: AsRef<[u8]>;
    /// The block at `handle`.
    ///
    /// # Errors
    /// What reading, checking and decompressing it may give.
    fn block(&self, handle: BlockHandle) -> Result<Self::Bytes>;
}

impl<S: BlockSource + ?Sized> BlockSource for &S {
    type Bytes = S::Bytes;
    fn block(&self, handle: BlockHandle) -> Result<S::Bytes> {
        (**self).block(handle)
    }
}

/// Levels of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Levels {
    /// One block.
    One,
    /// A block of handles of blocks of handles.
    Two,
}

/// How the index of a table is encoded, by its version and properties.
///
/// # Errors
/// `Unsupported` for an index type this version does not read.
pub fn index_form(version: u32, of: &TableProps) -> Result<(IndexForm, Levels)> {
    if version == LEVELDB_VERSION {
        return Ok((IndexForm::plain(), Levels::One));
    }
    let user = of.index_key_is_user_key != 0;
    let form = IndexForm {
        keys: if user { IndexKeys::User } else { IndexKeys::Internal },
        delta_handles: of.index_value_is_delta_encoded != 0,
        first_keys: false,
    };
    match of.index_type() {
        props::ONE_LEVEL | props::HASH => Ok((form, Levels::One)),
        props::TWO_LEVEL => Ok((form, Levels::Two)),
        props::FIRST_KEYS => Ok((IndexForm { first_keys: true, ..form }, Levels::One)),
        other => Err(Error::unsupported(format!("table has an index of unknown type {other}"))),
    }
}

/// Iterator over the data blocks of a table: handles in key order, whatever the levels.
#[derive(Debug)]
pub struct TableIndexIter<S: BlockSource> {
    source: S,
    top: IndexIter<S::Bytes>,
    /// The partition under `top`'s entry; `None` for one level, or if nothing was sought yet.
    part: Option<IndexIter<S::Bytes>>,
    levels: Levels,
}

impl<S: BlockSource> TableIndexIter<S> {
    /// Over the index block `top`; partitions come from `source`.
    ///
    /// # Errors
    /// Corruption if the block's tail does not fit it.
    pub fn new(
        source: S,
        top: S::Bytes,
        form: IndexForm,
        levels: Levels,
    ) -> Result<TableIndexIter<S>> {
        Ok(TableIndexIter { source, top: IndexIter::new(top, form)?, part: None, levels })
    }

    fn leaf(&self) -> &IndexIter<S::Bytes> {
        self.part.as_ref().unwrap_or(&self.top)
    }
    /// True if the iterator stands on a data block.
    pub fn valid(&self) -> bool {
        self.leaf().valid() && (self.levels == Levels::One || self.part.is_some())
    }
    /// Handle of the data block.
    pub fn handle(&self) -> BlockHandle {
        self.leaf().handle()
    }
    /// Its separator as stored; see [`IndexIter::separator`].
    pub fn separator(&self) -> &[u8] {
        self.leaf().separator()
    }
    /// The user-key part of its separator.
    pub fn separator_user_key(&self) -> &[u8] {
        self.leaf().separator_user_key()
    }
    /// Moves to the block that holds `target`, if any does.
    ///
    /// # Errors
    /// Corruption in the index, or what the source gives; so for all moves.
    pub fn seek(&mut self, target: InternalKey<'_>, order: &dyn Comparator) -> Result<bool> {
        let found = self.top.seek(target, order)?;
        if self.levels == Levels::One || !found {
            return Ok(self.ended(found));
        }
        // A partition's last separator is its own in the top level, so the target is inside.
        let found = self.descend()?.seek(target, order)?;
        if found { Ok(true) } else { self.forward() }
    }
    /// Moves to the first block.
    ///
    /// # Errors
    /// As [`seek`](TableIndexIter::seek).
    pub fn seek_to_first(&mut self) -> Result<bool> {
        let found = self.top.seek_to_first()?;
        if self.levels == Levels::One || !found {
            return Ok(self.ended(found));
        }
        let found = self.descend()?.seek_to_first()?;
        if found { Ok(true) } else { self.forward() }
    }
    /// Moves to the last block.
    ///
    /// # Errors
    /// As [`seek`](TableIndexIter::seek).
    pub fn seek_to_last(&mut self) -> Result<bool> {
        let found = self.top.seek_to_last()?;
        if self.levels == Levels::One || !found {
            return Ok(self.ended(found));
        }
        let found = self.descend()?.seek_to_last()?;
        if found { Ok(true) } else { self.backward() }
    }
    /// Moves to the next block.
    ///
    /// # Errors
    /// As [`seek`](TableIndexIter::seek).
    #[expect(clippy::should_implement_trait, reason = "a fallible move, not an Iterator")]
    pub fn next(&mut self) -> Result<bool> {
        let found = match &mut self.part {
            Some(part) => part.next()?,
            None if self.levels == Levels::One => return self.top.next(),
            None => return Ok(false),
        };
        if found { Ok(true) } else { self.forward() }
    }
    /// Moves to the previous block; from past the end, to the last one.
    ///
    /// # Errors
    /// As [`seek`](TableIndexIter::seek).
    pub fn prev(&mut self) -> Result<bool> {
        let found = match &mut self.part {
            Some(part) => part.prev()?,
            None if self.levels == Levels::One => return self.top.prev(),
            None => return self.seek_to_last(),
        };
        if found { Ok(true) } else { self.backward() }
    }

    /// Drops the partition if the top level stands on nothing.
    fn ended(&mut self, found: bool) -> bool {
        self.part = None;
        found
    }
    fn descend(&mut self) -> Result<&mut IndexIter<S::Bytes>> {
        // Taken, so that an error leaves the iterator standing on nothing.
        let old = self.part.take();
        let bytes = self.source.block(self.top.handle())?;
        let part = match old {
            Some(mut part) => {
                part.replace(bytes)?;
                part
            }
            None => IndexIter::new(bytes, self.top.form())?,
        };
        Ok(self.part.insert(part))
    }
    /// To the first entry of the next partition that has one.
    fn forward(&mut self) -> Result<bool> {
        while self.top.next()? {
            if self.descend()?.seek_to_first()? {
                return Ok(true);
            }
        }
        Ok(self.ended(false))
    }
    /// To the last entry of the previous partition that has one.
    fn backward(&mut self) -> Result<bool> {
        while self.top.prev()? {
            if self.descend()?.seek_to_last()? {
                return Ok(true);
            }
        }
        Ok(self.ended(false))
    }
}
