//! What the tables of a foreign manifest hold: RocksDB's does not say, their properties do.
//!
//! Keeps: a file that may hold range deletions is never taken for one without any; readers look
//! for them only where the description says so.
//! Leaves to others: tables that are missing.

use lithify_base::{CfId, ComparatorRef, Result};
use lithify_env::OpenOpts;
use lithify_files::dir::Dir;
use lithify_format::table::props::TableProps;
use lithify_journal::manifest::file::FileCounts;
use lithify_journal::manifest::{ManifestState, WireFile};
use lithify_tables::sst::{OpenTable, TableReader};

use super::recover::check_order;

/// Fills in the counts of a family's files where the manifest gives none, from the tables, and gives
/// its files ends at which range deletions can be cut (see `ends`).
///
/// # Errors
/// What opening such a table gives: corruption, `Unsupported` features, `Io`; as [`family_version`] if
/// the order is another one.
///
/// [`family_version`]: super::family_version
pub fn count_tables(
    dir: &Dir,
    state: &mut ManifestState,
    cf: CfId,
    order: &ComparatorRef,
) -> Result<()> {
    let Some(family) = state.families.get_mut(&cf) else { return Ok(()) };
    check_order(family, order)?;
    for file in family.files.values_mut().filter(|f| f.counts.is_none()) {
        let number = file.backing.unwrap_or(file.number);
        if dir.find_table(number)?.is_some() {
            file.counts = Some(counts_of(&*open(dir, file, order)?));
        }
    }
    super::name_ends(dir, family, order)
}

pub(super) fn open(
    dir: &Dir,
    file: &WireFile,
    order: &ComparatorRef,
) -> Result<std::sync::Arc<TableReader>> {
    let number = file.backing.unwrap_or(file.number);
    let (name, opened) = dir.open_table(number, OpenOpts::read())?;
    let mut spec = OpenTable::new(opened, name.to_string(), order.clone());
    spec.largest_seq = Some(file.largest_seq);
    spec.tail_bytes = file.tail_size;
    TableReader::open(spec)
}

/// Properties count internal keys, and range deletions with the points, bytes included; descriptions count
/// user keys of points. The counts are exact, and so are the bytes of all tables but foreign ones whose
/// range deletions overlap.
pub(crate) fn counts_of(table: &TableReader) -> FileCounts {
    let p: &TableProps = table.properties();
    let stored = table.stored_tombstones();
    let each = || stored.iter().map(|f| (f.tombs.len() as u64, f));
    let starts: u64 = each().map(|(count, f)| count * f.lo.key.len() as u64).sum();
    let ends: u64 = each().map(|(count, f)| count * f.hi.key.len() as u64).sum();
    let tags = p.num_entries.saturating_mul(8);
    FileCounts {
        entries: p.points(),
        deletes: p.deleted_keys.saturating_sub(p.num_range_deletions),
        range_deletes: stored.tombs().max(p.num_range_deletions),
        raw_key_bytes: p.raw_key_size.saturating_sub(tags.saturating_add(starts)),
        raw_value_bytes: p.raw_value_size.saturating_sub(ends),
    }
}
