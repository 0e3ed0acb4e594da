//! Settings as the text of an OPTIONS file: RocksDB's options, for its tools, and every setting of ours
//! as a comment, for the next open.
//!
//! Keeps: the same settings give the same bytes. Which lines a file has, and in which order, is [`DATABASE`],
//! [`FAMILY`] and [`TABLE`]; what stands in a line of a setting is its row's affair.
//! Leaves to others: the form of the file (`format::options`).

use lithify_base::MAX_LEVELS;
use lithify_journal::options::{self, FamilyOptions, Lines};

use crate::{ROWS, Settings};

/// Entries per restart point of data blocks, which is no setting.
pub const RESTART_INTERVAL: u16 = 16;

/// One line of a section.
enum Line {
    /// The setting that RocksDB calls so.
    Of(&'static str),
    /// What is the same for all.
    Same(&'static str, &'static str),
    /// What follows from several settings, or from a constant; `None` leaves it out.
    From(&'static str, fn(&Settings) -> Option<String>),
}
use Line::{From, Of, Same};

const DATABASE: &[Line] = &[
    From("max_background_jobs", |s| Some((s.compaction_threads + s.flush_threads).to_string())),
    Of("max_subcompactions"),
    Of("max_open_files"),
    Of("max_total_wal_size"),
    Same("db_write_buffer_size", "0"),
    Of("use_direct_reads"),
    Of("allow_mmap_reads"),
    Of("use_direct_io_for_flush_and_compaction"),
];

/// What follows the names of the comparator, the merge operator and the prefix extractor.
const FAMILY: &[Line] = &[
    Of("write_buffer_size"),
    Of("max_write_buffer_number"),
    // RocksDB opens what any policy leaves, once it is settled, as leveled.
    Same("compaction_style", "kCompactionStyleLevel"),
    Of("compaction_pri"),
    Of("level0_file_num_compaction_trigger"),
    Of("level0_slowdown_writes_trigger"),
    Of("level0_stop_writes_trigger"),
    From("num_levels", |_| Some(MAX_LEVELS.to_string())),
    Of("max_bytes_for_level_base"),
    Of("max_bytes_for_level_multiplier"),
    Of("level_compaction_dynamic_level_bytes"),
    Of("target_file_size_base"),
    Same("target_file_size_multiplier", "1"),
    Of("soft_pending_compaction_bytes_limit"),
    Of("hard_pending_compaction_bytes_limit"),
    Of("disable_auto_compactions"),
    Of("compression"),
    Of("bottommost_compression"),
    Same("table_factory", "BlockBasedTable"),
];

const TABLE: &[Line] = &[
    Of("block_size"),
    From("block_restart_interval", |_| Some(RESTART_INTERVAL.to_string())),
    From("index_block_restart_interval", |_| Some(RESTART_INTERVAL.to_string())),
    Of("format_version"),
    Same("checksum", "kXXH3"),
    Of("whole_key_filtering"),
    From("index_type", |s| {
        (s.partition_bytes > Some(0)).then(|| "kTwoLevelIndexSearch".to_owned())
    }),
    From("partition_filters", |s| {
        (s.partition_bytes > Some(0)).then(|| (s.bloom_bits > 0).to_string())
    }),
    Of("metadata_block_size"),
    Of("filter_policy"),
];

/// What is written down of a column family.
pub struct Described {
    /// Its name; `default` for the first one.
    pub name: String,
    /// Its settings.
    pub settings: Settings,
    /// The name of its comparator.
    pub comparator: String,
    /// The name of its merge operator, if it has one.
    pub merge_operator: Option<String>,
    /// The name of its prefix extractor, if it has one.
    pub prefix_extractor: Option<String>,
}

/// The text of an OPTIONS file, for tools and for a later open.
///
/// # Panics
/// If `families` does not begin with `default`.
pub fn options_text(families: &[Described]) -> String {
    let db = &families[0].settings;
    let own: Lines = ROWS.iter().map(|row| (row.name, (row.show)(db))).collect();
    let families: Vec<_> = families.iter().map(|family| family_options(family, db)).collect();
    options::write(&lines(DATABASE, db), &families, &own)
}

/// The options of a family of a database with settings `db`.
fn family_options(family: &Described, db: &Settings) -> FamilyOptions {
    let s = &family.settings;
    let own = ROWS.iter().map(|row| (row.name, (row.show)(s), (row.show)(db)));
    FamilyOptions {
        name: family.name.clone(),
        comparator: family.comparator.clone(),
        merge_operator: family.merge_operator.clone(),
        prefix_extractor: family.prefix_extractor.clone(),
        options: lines(FAMILY, s),
        table: lines(TABLE, s),
        own: own.filter(|(_, own, of_db)| own != of_db).map(|(name, own, _)| (name, own)).collect(),
    }
}

fn lines(section: &[Line], s: &Settings) -> Lines {
    let line = |line: &Line| match line {
        Of(name) => Some((*name, of_row(name, s)?)),
        Same(name, text) => Some((*name, (*text).to_owned())),
        From(name, text) => Some((*name, text(s)?)),
    };
    section.iter().filter_map(line).collect()
}

fn of_row(name: &str, s: &Settings) -> Option<String> {
    let row = ROWS.iter().find(|row| row.rocks.names.first() == Some(&name))?;
    row.rocks.write?(s)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rocksdb::Place;

    #[test]
    fn every_row_that_is_written_has_one_line_in_its_section() {
        for row in ROWS {
            let name = row.rocksdb().unwrap_or_default();
            let places =
                [(Place::Database, DATABASE), (Place::Family, FAMILY), (Place::Table, TABLE)];
            let of = |section: &[Line]| {
                section.iter().filter(|l| matches!(l, Of(n) if *n == name)).count()
            };
            for (place, section) in places {
                let written = row.rocks.write.is_some() && row.rocks.place == Some(place);
                assert_eq!(of(section), usize::from(written), "{name} in {place:?}");
            }
        }
    }

    #[test]
    fn every_line_of_a_setting_has_a_row() {
        for line in [DATABASE, FAMILY, TABLE].into_iter().flatten() {
            let Of(name) = line else { continue };
            let rows = ROWS.iter().filter(|row| row.rocksdb() == Some(name));
            assert_eq!(rows.filter(|row| row.rocks.write.is_some()).count(), 1, "{name}");
        }
    }
}
