//! What a table says of itself, read without the rest of it.
//!
//! Keeps: nothing but its footer, its list of blocks and its properties is looked at, so its keys may be in any
//! order, and everything else of it may be damaged.
//! Leaves to others: reading entries (`lithify_tables`).

use lithify_base::Result;
use lithify_env::{File, OpenOpts, read_full_at};
use lithify_files::dir::{Dir, OrTyped};
use lithify_format::compress::Decoder;
use lithify_format::table::footer::{FOOTER_LEN, Footer};
use lithify_format::table::metaindex::{self, MetaIndex};
use lithify_format::table::props::TableProps;
use lithify_tables::sst::Blocks;

/// The properties of table `number`; none are set if it has none, as those of LevelDB.
///
/// # Errors
/// Corruption, `Unsupported` and Io as reading these parts gives them.
pub(crate) fn properties(dir: &Dir, number: u64) -> Result<TableProps> {
    let (dir, name, file) = dir.open_table_there(number, OpenOpts::read())?;
    let footer = footer(&*file)?;
    let path = dir.path_of(name).display().to_string();
    let blocks = Blocks::new(file, path, footer, Decoder::rocksdb())?;
    let names = MetaIndex::decode(blocks.read(footer.metaindex)?.as_ref())?;
    let Some(handle) = names.get(metaindex::PROPERTIES) else { return Ok(TableProps::default()) };
    TableProps::decode(blocks.read(handle)?.as_ref())
}

/// The footer of a table.
pub(crate) fn footer(file: &dyn File) -> Result<Footer> {
    let len = file.len().or_typed()?;
    let mut tail = [0; FOOTER_LEN];
    let count = read_full_at(file, &mut tail, len.saturating_sub(FOOTER_LEN as u64)).or_typed()?;
    Footer::read(&tail[..count], len)
}
