//! Where everything lies in a table: every byte belongs to exactly one block or to the footer.
//!
//! Keeps: blocks do not overlap, every meta block passes its sum, and bytes outside all blocks are
//! zeros (foreign tables may align their blocks with them; ours have none, R4). A footer before
//! version 6 has no sum, so its bytes are compared with what its fields encode to, and its version with
//! what the properties say.
//! Leaves to others: what is in the blocks.

use std::ops::RangeInclusive;

use lithify_base::{Error, Result};
use lithify_files::dir::OrTyped;
use lithify_format::block::{IndexForm, IndexIter};
use lithify_format::filter::FilterLayout;
use lithify_format::table::footer::{Footer, LEVELDB_VERSION};
use lithify_format::table::handle::BlockHandle;
use lithify_format::table::index::{Levels, index_form};
use lithify_format::table::metaindex::{self, MetaIndex};

use crate::sst::index::FullIndex;
use crate::sst::open::has_sum;
use crate::sst::reader::TableReader;

/// Bytes between blocks that are read at once.
const CHUNK: u64 = 1 << 20;
/// The probes in the fifth byte from the end of the Bloom filters that format_version 5 replaced. In newer
/// filters another number is there, which names them: 0xff for Bloom, 0xfe for Ribbon, and 0 in one
/// that holds everything.
const OLD_FILTERS: RangeInclusive<u8> = 1..=0x7f;

/// Checks the layout of all of `table`.
///
/// # Errors
/// Corruption with the place, `Io`.
pub(super) fn check(full: &FullIndex) -> Result<()> {
    let table = &**full.table();
    let blocks = &table.blocks;
    let footer = blocks.footer;
    let names = MetaIndex::decode(blocks.read(footer.metaindex)?.as_ref())
        .map_err(|e| e.at(footer.metaindex.offset))?;
    let mut handles = vec![footer.metaindex];
    handles.extend(names.iter().map(|(_, handle)| handle));
    handles.extend(footer.index);
    let index = footer.index.or_else(|| names.get(metaindex::INDEX));
    let (form, levels) = index_form(footer.version, &table.props)?;
    if let (Some(top), Levels::Two) = (index, levels) {
        handles.extend(parts(table, top, form)?);
    }
    if let Some((FilterLayout::Partitioned, top)) = names.filter() {
        handles.extend(parts(table, top, IndexForm { first_keys: false, ..form })?);
    }
    // The filter may be one that this version does not read: its sum counts all the same.
    for &handle in &handles {
        blocks.read_meta(handle)?;
        has_sum(blocks, handle)?;
    }
    version_fits(table, footer, &names)?;
    handles.extend((0..full.fences().len()).map(|i| {
        let at = full.block(i);
        BlockHandle::new(at.offset, u64::from(at.size))
    }));
    let end = blocks.source.size() - footer.len() as u64;
    tiled(full, handles, end)?;
    footer_is_plain(table, footer, end)
}

/// The blocks below the top of an index of two levels.
fn parts(table: &TableReader, top: BlockHandle, form: IndexForm) -> Result<Vec<BlockHandle>> {
    let block = table.blocks.read(top)?;
    let walk = || -> Result<Vec<BlockHandle>> {
        let mut handles = Vec::new();
        let mut entries = IndexIter::new(block, form)?;
        let mut more = entries.seek_to_first()?;
        while more {
            handles.push(entries.handle());
            more = entries.next()?;
        }
        Ok(handles)
    };
    walk().map_err(|e| e.at(top.offset))
}

fn tiled(full: &FullIndex, mut handles: Vec<BlockHandle>, end: u64) -> Result<()> {
    handles.sort_unstable_by_key(|h| (h.offset, h.size));
    // Several names may share a block.
    handles.dedup();
    let mut at = 0;
    for handle in handles {
        if handle.offset < at {
            return Err(Error::corruption("two blocks overlap").at(handle.offset));
        }
        gap(full, at, handle.offset)?;
        at = handle.end();
    }
    gap(full, at, end)
}

/// Checks the bytes from `at` to `end`, which belong to no block.
fn gap(full: &FullIndex, mut at: u64, end: u64) -> Result<()> {
    if at < end && full.has_counts() {
        let what = format!("{} bytes belong to no block", end - at);
        return Err(Error::corruption(what).at(at));
    }
    let source = &full.table().blocks.source;
    while at < end {
        // Holes are zeros, and there may be a great deal of them.
        let Some(data) = source.file().next_data(at).or_typed()? else { break };
        at = at.max(data.start);
        let len = end.min(data.end).saturating_sub(at).min(CHUNK);
        if len == 0 {
            break;
        }
        let bytes = source.read(at, len as usize)?;
        if let Some(i) = bytes.iter().position(|&b| b != 0) {
            let what = "bytes between blocks are not zero, and nothing refers to them";
            return Err(Error::corruption(what).at(at + i as u64));
        }
        at += len;
    }
    Ok(())
}

/// A version that was damaged from 5 to 4 or back reads the same. The properties name it, too, in our
/// tables and in newer ones of RocksDB. In older ones (0 there) an old filter tells: it went with
/// version 4. A new one tells nothing, since RocksDB's Ribbon policy writes Ribbon and the new Bloom
/// filter at every version.
fn version_fits(table: &TableReader, footer: Footer, names: &MetaIndex) -> Result<()> {
    let version = footer.version;
    let what = match table.props.format_version {
        0 if version >= 5 && has_old_filter(table, names)? => {
            format!("format_version {version} has no such filter")
        }
        0 => return Ok(()),
        stated if stated == u64::from(version) => return Ok(()),
        stated => format!("format_version is {version} here and {stated} in the properties"),
    };
    let at = table.blocks.source.size() - footer.len() as u64;
    Err(Error::corruption(format!("{what}: the footer is damaged")).at(at))
}

fn has_old_filter(table: &TableReader, names: &MetaIndex) -> Result<bool> {
    let Some((FilterLayout::Full, handle)) = names.filter() else { return Ok(false) };
    let block = table.blocks.read(handle)?;
    Ok(block.as_ref().iter().nth_back(4).is_some_and(|probes| OLD_FILTERS.contains(probes)))
}

/// Footers before version 6 have no sum. Everything but the padding decides what is read, and
/// the padding is zero.
fn footer_is_plain(table: &TableReader, footer: Footer, at: u64) -> Result<()> {
    let Some(index) = footer.index else { return Ok(()) };
    let bytes = table.blocks.source.read(at, footer.len())?;
    // LevelDB's footer begins with the handles, RocksDB's with the kind of sum.
    let start = usize::from(footer.version != LEVELDB_VERSION);
    let mut expected = bytes.get(..start).unwrap_or_default().to_vec();
    footer.metaindex.encode_into(&mut expected);
    index.encode_into(&mut expected);
    expected.resize(start + 40, 0);
    match bytes.starts_with(&expected) {
        true => Ok(()),
        false => Err(Error::corruption("the footer's padding is not zero").at(at)),
    }
}
