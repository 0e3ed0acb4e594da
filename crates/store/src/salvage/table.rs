//! What a damaged table still holds: a cursor that steps over blocks which can't be read.

use std::sync::Arc;

use lithify_base::{
    Comparator, ComparatorRef, Error, InternalKey, Key, Kind, Result, Seq, Tag, memory,
};
use lithify_env::{FileRef, OpenOpts, read_full_at};
use lithify_files::dir::{Allowance, Dir, FileName, OrTyped};
use lithify_format::block::{BlockCheck, BlockIter, TRAILER_LEN};
use lithify_format::checksum::{ChecksumKind, base_context};
use lithify_format::compress::Decoder;
use lithify_format::table::footer::Footer;
use lithify_format::table::handle::BlockHandle;
use lithify_format::table::metaindex::{self, MetaIndex};
use lithify_format::table::range_del;
use lithify_journal::manifest::WireFile;
use lithify_merge::tombstone::{Fragments, RangeTombstone};
use lithify_tables::sst::{Block, BlockAt, Blocks, FullIndex, OpenTable, TableReader};

use super::{Lost, blocks};
use crate::manifest::translate;
use crate::props::footer;

/// Largest table that is searched for blocks, because all of it is held in memory meanwhile.
const SEARCHED_MAX: u64 = 4 << 30;

/// A data block to be read.
struct Piece {
    at: BlockAt,
    /// A key at or above all of its keys, where an index says so.
    separator: Option<Key>,
    entries: Option<u64>,
}

/// A table, as far as it can be read.
pub struct TableSalvage {
    name: FileName,
    order: ComparatorRef,
    blocks: Reading,
    pieces: std::vec::IntoIter<Piece>,
    open: Option<BlockIter<Block>>,
    /// Where the open block lies.
    offset: u64,
    /// The separator before the open block.
    above: Option<Key>,
    separator: Option<Key>,
    /// The number of the entries that are stored without one: of a table that was taken in.
    number: Option<Seq>,
    /// The last entry that was delivered.
    last: Vec<u8>,
    deletions: Fragments,
    /// Whether they are known to end where the bounds of the file do.
    bounded: bool,
    lost: Vec<Lost>,
    blocks_read: u64,
}

/// The table as opened, or only its blocks.
enum Reading {
    Opened(Arc<TableReader>),
    Searched(Box<Blocks>),
}

impl Reading {
    fn blocks(&self) -> &Blocks {
        match self {
            Reading::Opened(table) => table.blocks(),
            Reading::Searched(blocks) => blocks,
        }
    }
}

impl TableSalvage {
    /// Opens table `number`, or searches it for blocks. `stated` is what the manifest says of it.
    pub(super) fn open(
        dir: &Dir,
        number: u64,
        stated: Option<&WireFile>,
        db_id: Option<&str>,
        order: &ComparatorRef,
    ) -> Result<TableSalvage> {
        let (dir, name, file) = dir.open_table_there(number, OpenOpts::read())?;
        let path = dir.path_of(name).display().to_string();
        let spec = OpenTable {
            base_context: stated.map_or(0, |f| f.base_context),
            largest_seq: stated.map(|f| f.largest_seq),
            ..OpenTable::new(file.clone(), path.clone(), order.clone())
        };
        let table = match TableReader::open(spec) {
            Ok(table) => table,
            // A feature that this version lacks is none of our business, unless the footer itself
            // says so: it may be damaged.
            Err(e) if e.is_corruption() || footer(&*file).is_err() => {
                let base = stated.map(|f| f.base_context).filter(|&base| base != 0);
                let base = base.or_else(|| Some(base_context(db_id?, number)));
                // All entries of a table that was taken in have one number, and are stored without it.
                let one = stated.filter(|f| f.smallest_seq == f.largest_seq);
                let number = one.map(|f| f.largest_seq);
                let mut table = searched(name, file, path, (base, number), order, &e)?;
                table.bound(stated, false);
                return Ok(table);
            }
            Err(e) => return Err(e),
        };
        let deletions = table.stored_tombstones().clone();
        // Opened without a cache, so nothing is left to be read.
        let full = FullIndex::of(table)?;
        // Tables of ours count their blocks, and hold no deletion beyond the bounds of the file.
        let ours = full.has_counts();
        let pieces: Vec<Piece> = full
            .block_fences()
            .map(|f| Piece {
                at: f.at,
                separator: Some(f.separator.into()),
                entries: f.counts.map(|c| c.entries),
            })
            .collect();
        let opened = Reading::Opened(full.table().clone());
        let mut table = TableSalvage::new(name, order, opened, pieces, deletions);
        table.number = full.table().global_seq();
        if table.number == Some(0) && stated.is_none() {
            table.lost.push(Lost::file(
                name,
                "no manifest says when this table was taken in; its entries were kept where no other \
                 table or log has the key, and some of them may be newer than what was kept",
            ));
        }
        table.bound(stated, ours);
        Ok(table)
    }

    fn new(
        name: FileName,
        order: &ComparatorRef,
        blocks: Reading,
        pieces: Vec<Piece>,
        deletions: Fragments,
    ) -> TableSalvage {
        TableSalvage {
            name,
            order: order.clone(),
            blocks,
            pieces: pieces.into_iter(),
            open: None,
            offset: 0,
            above: None,
            separator: None,
            number: None,
            last: Vec::new(),
            deletions,
            bounded: false,
            lost: Vec::new(),
            blocks_read: 0,
        }
    }

    /// Clamps the range deletions to the bounds that a manifest states. Without one, those of a table
    /// of `ours` are inside its bounds as they are; of others it stays unknown.
    fn bound(&mut self, stated: Option<&WireFile>, ours: bool) {
        let meta = stated.and_then(|file| translate::file_meta(file, &*self.order).ok());
        if let Some(meta) = &meta {
            self.deletions = self.deletions.clamp(&meta.range, meta.hi_tag.seq(), &*self.order);
        }
        self.bounded = ours || meta.is_some() || self.deletions.is_empty();
        if !self.bounded {
            self.lost.push(Lost::file(
                self.name,
                "no manifest says up to which keys the range deletions of this table count; values \
                 that they cover and that have no sequence number were kept, and some of them may \
                 have been deleted",
            ));
        }
    }

    /// Moves to the next entry that can be read, at first to the first one.
    pub fn advance(&mut self) -> bool {
        loop {
            if let Some(mut entries) = self.open.take() {
                let moved = match entries.valid() {
                    true => entries.next(),
                    false => entries.seek_to_first(),
                };
                match moved.and_then(|more| self.accept(&entries, more)) {
                    Ok(true) => {
                        self.open = Some(entries);
                        return true;
                    }
                    Ok(false) => self.above = self.separator.take(),
                    // Its sum matched, so a broken block was written broken.
                    Err(e) => self.lose(self.offset, 0, None, &e),
                }
            }
            let Some(piece) = self.pieces.next() else { return false };
            let handle = BlockHandle::new(piece.at.offset, u64::from(piece.at.size));
            let block = self.blocks.blocks().read(handle).and_then(BlockIter::new);
            (self.separator, self.offset) = (piece.separator, handle.offset);
            match block {
                Ok(entries) => {
                    self.blocks_read += 1;
                    self.open = Some(entries);
                }
                Err(e) => {
                    let stored = handle.size + TRAILER_LEN as u64;
                    self.lose(handle.offset, stored, piece.entries, &e);
                }
            }
        }
    }

    /// Whether the entry under `entries` may be delivered.
    fn accept(&mut self, entries: &BlockIter<Block>, more: bool) -> Result<bool> {
        if !more {
            return Ok(false);
        }
        let key = entries.internal_key();
        let last = InternalKey::decode(&self.last);
        if last.is_some_and(|last| last.cmp(key, &*self.order).is_ge()) {
            return Err(Error::corruption(format!("entry {key:?} is out of order")));
        }
        if key.tag.kind().is_none_or(|kind| kind == Kind::RangeDelete) {
            return Err(Error::corruption(format!("entry {key:?} is of a wrong kind")));
        }
        self.last.clear();
        key.encode_into(&mut self.last);
        Ok(true)
    }

    fn lose(&mut self, offset: u64, bytes: u64, entries: Option<u64>, e: &Error) {
        let up_to = self.separator.take();
        self.lost.push(Lost {
            offset: Some(offset),
            bytes,
            from: std::mem::replace(&mut self.above, up_to.clone()),
            up_to,
            entries,
            ..Lost::file(self.name, e.to_string())
        });
    }

    /// User key, tag and value of the entry; `None` if the cursor stands on none.
    pub fn entry(&self) -> Option<(&[u8], Tag, &[u8])> {
        let entries = self.open.as_ref().filter(|entries| entries.valid())?;
        let key = entries.internal_key();
        let tag = match self.number {
            Some(number) if key.tag.seq() == 0 => key.tag.with_seq(number),
            _ => key.tag,
        };
        Some((key.user, tag, entries.value()))
    }
    /// The table's number.
    pub fn number(&self) -> u64 {
        self.name.number().unwrap_or(0)
    }
    /// Range deletions that could be read.
    pub fn deletions(&self) -> &Fragments {
        &self.deletions
    }
    /// Whether the range deletions are known to end where the bounds of the file do. If not, they say
    /// nothing of values whose sequence number is 0: those may be newer.
    pub fn is_bounded(&self) -> bool {
        self.bounded
    }
    /// Takes what was lost since the last call.
    pub fn take_lost(&mut self) -> Vec<Lost> {
        std::mem::take(&mut self.lost)
    }
    /// Blocks that were read.
    pub fn blocks_read(&self) -> u64 {
        self.blocks_read
    }
}

/// A table that does not open: its data blocks are searched for.
fn searched(
    name: FileName,
    file: FileRef,
    path: String,
    (base, number): (Option<u32>, Option<Seq>),
    order: &ComparatorRef,
    cause: &Error,
) -> Result<TableSalvage> {
    let len = file.len().or_typed()?;
    if len > SEARCHED_MAX {
        return Err(cause.clone());
    }
    Allowance::DATA.check(&*file, 0, len)?;
    let mut bytes = memory::zeroed(len as usize, "a block")?;
    let count = read_full_at(&*file, &mut bytes, 0).or_typed()?;
    bytes.truncate(count);
    let footer = footer(&*file).ok();
    let xxh3 = |base| BlockCheck { kind: ChecksumKind::Xxh3, base };
    let checks = [footer.map(|f| f.check), base.map(xxh3), Some(xxh3(0))];
    let decoder = Decoder::rocksdb();
    let (check, found) = checks
        .into_iter()
        .flatten()
        .filter(|check| check.kind != ChecksumKind::None)
        .map(|check| (check, blocks::find(&bytes, check, &decoder, &**order)))
        .find(|(_, found)| !found.is_empty())
        .ok_or_else(|| cause.clone())?;
    let end = found.last().map_or(0, |b| b.offset + u64::from(b.size) + TRAILER_LEN as u64);
    let what = format!(
        "the table does not open and was searched for blocks: {} were found before this place; \
         whether one is missing can't be told ({cause})",
        found.len()
    );
    let bytes_behind = bytes.len() as u64 - end;
    let tail = Lost { offset: Some(end), bytes: bytes_behind, ..Lost::file(name, what) };
    let mut lost = vec![tail];
    let version = footer.map_or(6, |f| f.version);
    let metaindex = footer.map(|f| f.metaindex).unwrap_or_default();
    let footer = Footer { version, check, metaindex, index: None };
    let read = Blocks::new(file, path, footer, decoder)?;
    let deletions = match deletions(&read, number, &**order) {
        Ok(deletions) => deletions,
        Err(e) => {
            let what = format!("range deletions of the table, if it had any, are lost: {e}");
            lost.push(Lost::file(name, what));
            Fragments::default()
        }
    };
    let piece = |at| Piece { at, separator: None, entries: None };
    let pieces = found.into_iter().map(piece).collect();
    let mut table =
        TableSalvage::new(name, order, Reading::Searched(Box::new(read)), pieces, deletions);
    (table.lost, table.number) = (lost, number);
    Ok(table)
}

/// The range deletions of a table whose other parts may be damaged.
fn deletions(blocks: &Blocks, number: Option<Seq>, order: &dyn Comparator) -> Result<Fragments> {
    let names = MetaIndex::decode(blocks.read(blocks.footer().metaindex)?.as_ref())?;
    let Some(handle) = names.get(metaindex::RANGE_DEL) else { return Ok(Fragments::default()) };
    let raw = range_del::decode(blocks.read(handle)?.as_ref())?;
    let whole = |t: range_del::RangeTombstone| {
        let (lo, hi) = (t.start.into(), t.end.into());
        RangeTombstone { lo, hi, seq: number.filter(|_| t.seq == 0).unwrap_or(t.seq), run: 0 }
    };
    Fragments::of_table(raw.into_iter().map(whole), order)
}
