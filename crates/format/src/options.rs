//! The OPTIONS file: RocksDB's ini text.
//!
//! `[Version]`, `[DBOptions]`, then per column family `[CFOptions "name"]` and
//! `[TableOptions/BlockBasedTable "name"]`, `default` first; `name=value` lines, `#` comments,
//! backslash escapes. We write the options that our settings have a meaning for; RocksDB's
//! parser takes its defaults for the rest. On reading, only names that decide what bytes mean
//! matter: comparator, merge operator, prefix extractor and the family list.
//!
//! Keeps: the text is a function of the values alone (no clock, no build string). RocksDB's format
//! has no sum, so ours stands in a comment at the end, and [`check_sum`] compares it.
//! Leaves to others: mapping settings to and from these values, and refusing unknown operators.

use std::collections::BTreeMap;
use std::fmt::Write;

use lithify_base::{Error, Result};

use crate::checksum::crc32c;

/// First line of the files written here: says that a sum is to be expected.
const HEAD: &str = "# This is a RocksDB option file; its last line is Lithify's sum of it.";
/// What a line begins with that says a setting of ours, which RocksDB takes for a comment.
const OWN: &str = "# lithify.setting ";
/// The same in the sections of a family, for one that only it has.
const OWN_OF_FAMILY: &str = "  # lithify.family-setting ";
/// What the last line begins with; eight hexadecimal digits follow.
const SUM: &str = "# lithify.crc32c ";
/// RocksDB version that the written options are understood as.
const ROCKSDB_VERSION: &str = "11.8.1";
/// Longest OPTIONS file read, bytes; RocksDB's own have about 8 KiB per family.
const MAX_LEN: usize = 64 << 20;

/// Options of the whole database.
#[derive(Clone, Debug, PartialEq)]
pub struct DbOptions {
    /// Threads for flush and compaction.
    pub max_background_jobs: u32,
    /// Threads that one compaction may use.
    pub max_subcompactions: u32,
    /// Tables kept open; -1 is all.
    pub max_open_files: i64,
    /// Bytes of logs after which the oldest memtable is flushed; 0 is four memtables' worth.
    pub max_total_wal_size: u64,
    /// Bytes of all memtables together; 0 is no limit.
    pub db_write_buffer_size: u64,
    /// Reads bypass the page cache.
    pub use_direct_reads: bool,
    /// Flush and compaction bypass the page cache.
    pub use_direct_io_for_flush_and_compaction: bool,
}

/// Options of one column family and its tables.
#[derive(Clone, Debug, PartialEq)]
pub struct FamilyOptions {
    /// Family name; the first family of a file is `default`.
    pub name: String,
    /// Comparator name.
    pub comparator: String,
    /// Merge operator name.
    pub merge_operator: Option<String>,
    /// Prefix extractor name, for example `rocksdb.FixedPrefix.4`.
    pub prefix_extractor: Option<String>,
    /// Memtable size, bytes.
    pub write_buffer_size: u64,
    /// Memtables, active and frozen.
    pub max_write_buffer_number: u32,
    /// Which file of a level goes down first, for example `kMinOverlappingRatio`.
    pub compaction_pri: String,
    /// Runs in level 0 that start a compaction, slow writes down, and stop them.
    pub level0_triggers: [u32; 3],
    /// Number of levels.
    pub num_levels: u32,
    /// Size of level 1, bytes.
    pub max_bytes_for_level_base: u64,
    /// Size of a level over the one above.
    pub max_bytes_for_level_multiplier: f64,
    /// Level sizes follow the size of the last level.
    pub dynamic_level_bytes: bool,
    /// File size of level 1, bytes.
    pub target_file_size_base: u64,
    /// File size of a level over the one above.
    pub target_file_size_multiplier: u32,
    /// Compaction debt at which writes slow down and stop, bytes.
    pub pending_compaction_limits: [u64; 2],
    /// No automatic compaction.
    pub disable_auto_compactions: bool,
    /// Codec by RocksDB's name, for example `kLZ4Compression`.
    pub compression: String,
    /// Codec of the last level.
    pub bottommost_compression: String,
    /// Data block size, bytes.
    pub block_size: u64,
    /// Entries between restart points of data blocks.
    pub block_restart_interval: u32,
    /// Entries between restart points of index blocks.
    pub index_block_restart_interval: u32,
    /// Bloom filter bits per key; 0 writes no filter.
    pub bloom_bits_per_key: f64,
    /// Whether filters hold whole keys.
    pub whole_key_filtering: bool,
    /// Size of the parts of index and filter, in bytes; 0 = they are not cut.
    pub partition_bytes: u64,
    /// Table format version.
    pub format_version: u32,
    /// Settings of ours that only this family has, name and value; no line break is in any of them.
    pub own: Vec<(&'static str, String)>,
}

/// The text of an OPTIONS file.
///
/// `own` are settings of ours, of the database, as those of the families.
///
/// # Panics
/// If the first family is not `default`: RocksDB's parser demands that order.
pub fn write(db: &DbOptions, families: &[FamilyOptions], own: &[(&str, String)]) -> String {
    assert!(families.first().is_some_and(|f| f.name == "default"), "`default` comes first");
    let mut out = format!("{HEAD}\n\n[Version]\n");
    line(&mut out, "rocksdb_version", ROCKSDB_VERSION);
    line(&mut out, "options_file_version", "1.1");
    out.push_str("\n[DBOptions]\n");
    line(&mut out, "max_background_jobs", db.max_background_jobs);
    line(&mut out, "max_subcompactions", db.max_subcompactions);
    line(&mut out, "max_open_files", db.max_open_files);
    line(&mut out, "max_total_wal_size", db.max_total_wal_size);
    line(&mut out, "db_write_buffer_size", db.db_write_buffer_size);
    line(&mut out, "use_direct_reads", db.use_direct_reads);
    let direct = db.use_direct_io_for_flush_and_compaction;
    line(&mut out, "use_direct_io_for_flush_and_compaction", direct);
    for family in families {
        write_family(&mut out, family);
    }
    if !own.is_empty() {
        out.push('\n');
    }
    for (name, value) in own {
        let _ = writeln!(out, "{OWN}{name}={value}");
    }
    let sum = crc32c(out.as_bytes());
    let _ = writeln!(out, "\n{SUM}{sum:08x}");
    out
}

/// Compares the sum of a file written here with its content; false for a foreign file, which has
/// none. Either end of the file tells that it is ours, so that damage to one does not hide it.
///
/// # Errors
/// Corruption if the sum is missing or another one.
pub fn check_sum(bytes: &[u8]) -> Result<bool> {
    let holds = |text: &str| bytes.windows(text.len()).any(|w| w == text.as_bytes());
    if !holds(HEAD) && !holds(SUM) {
        return Ok(false);
    }
    // A line break, the mark, eight digits, a line break.
    let tail = 1 + SUM.len() + 8 + 1;
    let split = bytes.len().checked_sub(tail).and_then(|at| bytes.split_at_checked(at));
    match split {
        Some((text, end)) if format!("\n{SUM}{:08x}\n", crc32c(text)).as_bytes() == end => Ok(true),
        _ => Err(Error::corruption("the sum in the last line is not that of the text")),
    }
}

fn write_family(out: &mut String, f: &FamilyOptions) {
    let name = escape(&f.name);
    let nullable = |name: &Option<String>| escape(name.as_deref().unwrap_or("nullptr"));
    let [compact, slow_down, stop] = f.level0_triggers;
    let [soft, hard] = f.pending_compaction_limits;
    let _ = write!(out, "\n[CFOptions \"{name}\"]\n");
    line(out, "comparator", escape(&f.comparator));
    line(out, "merge_operator", nullable(&f.merge_operator));
    line(out, "prefix_extractor", nullable(&f.prefix_extractor));
    line(out, "write_buffer_size", f.write_buffer_size);
    line(out, "max_write_buffer_number", f.max_write_buffer_number);
    line(out, "compaction_style", "kCompactionStyleLevel");
    line(out, "compaction_pri", &f.compaction_pri);
    line(out, "level0_file_num_compaction_trigger", compact);
    line(out, "level0_slowdown_writes_trigger", slow_down);
    line(out, "level0_stop_writes_trigger", stop);
    line(out, "num_levels", f.num_levels);
    line(out, "max_bytes_for_level_base", f.max_bytes_for_level_base);
    let multiplier = format_args!("{:.6}", f.max_bytes_for_level_multiplier);
    line(out, "max_bytes_for_level_multiplier", multiplier);
    line(out, "level_compaction_dynamic_level_bytes", f.dynamic_level_bytes);
    line(out, "target_file_size_base", f.target_file_size_base);
    line(out, "target_file_size_multiplier", f.target_file_size_multiplier);
    line(out, "soft_pending_compaction_bytes_limit", soft);
    line(out, "hard_pending_compaction_bytes_limit", hard);
    line(out, "disable_auto_compactions", f.disable_auto_compactions);
    line(out, "compression", escape(&f.compression));
    line(out, "bottommost_compression", escape(&f.bottommost_compression));
    line(out, "table_factory", "BlockBasedTable");
    let _ = write!(out, "\n[TableOptions/BlockBasedTable \"{name}\"]\n");
    line(out, "block_size", f.block_size);
    line(out, "block_restart_interval", f.block_restart_interval);
    line(out, "index_block_restart_interval", f.index_block_restart_interval);
    line(out, "format_version", f.format_version);
    line(out, "checksum", "kXXH3");
    line(out, "whole_key_filtering", f.whole_key_filtering);
    if f.partition_bytes > 0 {
        line(out, "index_type", "kTwoLevelIndexSearch");
        line(out, "partition_filters", f.bloom_bits_per_key > 0.0);
        line(out, "metadata_block_size", f.partition_bytes);
    }
    if f.bloom_bits_per_key > 0.0 {
        let policy = format_args!("bloomfilter:{}:false", f.bloom_bits_per_key);
        line(out, "filter_policy", policy);
    } else {
        line(out, "filter_policy", "nullptr");
    }
    for (name, value) in &f.own {
        let _ = writeln!(out, "{OWN_OF_FAMILY}{name}={value}");
    }
}

fn line(out: &mut String, name: &str, value: impl std::fmt::Display) {
    let _ = writeln!(out, "  {name}={value}"); // writing to a String cannot fail
}

/// An OPTIONS file as read: names and unescaped values, unknown ones included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OptionsFile {
    /// Version of RocksDB that wrote it, as text; empty if absent.
    pub rocksdb_version: String,
    /// Settings of ours, by name; none in a foreign file.
    pub own: BTreeMap<String, String>,
    /// Options of `[DBOptions]`.
    pub db: BTreeMap<String, String>,
    /// Column families in file order, `default` first.
    pub families: Vec<FamilySection>,
}

/// One column family of an OPTIONS file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FamilySection {
    /// Family name.
    pub name: String,
    /// Options of `[CFOptions "name"]`.
    pub options: BTreeMap<String, String>,
    /// Options of `[TableOptions/... "name"]`.
    pub table: BTreeMap<String, String>,
    /// Settings of ours that only this family has, by name.
    pub own: BTreeMap<String, String>,
}

impl FamilySection {
    /// Comparator name, if given.
    pub fn comparator(&self) -> Option<&str> {
        self.object("comparator")
    }
    /// Merge operator name; `None` if there is none.
    pub fn merge_operator(&self) -> Option<&str> {
        self.object("merge_operator")
    }
    /// Prefix extractor name; `None` if there is none.
    pub fn prefix_extractor(&self) -> Option<&str> {
        self.object("prefix_extractor")
    }

    /// Name of a customizable object: plain, or the `id` of `{id=name;option=value;}`.
    fn object(&self, option: &str) -> Option<&str> {
        let value = self.options.get(option)?.as_str();
        let name = match value.strip_prefix('{').and_then(|v| v.strip_suffix('}')) {
            Some(fields) => fields.split(';').find_map(|f| f.trim().strip_prefix("id="))?,
            None => value,
        };
        (!name.is_empty() && name != "nullptr").then_some(name)
    }
}

enum Section {
    Before,
    Version,
    Db,
    Family(usize),
    Table(usize),
}

impl OptionsFile {
    /// Reads the text of an OPTIONS file. Unknown options are kept, not judged.
    ///
    /// Errors: `Corruption`, with the line, for text that RocksDB's parser refuses as malformed.
    pub fn parse(bytes: &[u8]) -> Result<OptionsFile> {
        if bytes.len() > MAX_LEN {
            return Err(Error::corruption("an OPTIONS file of more than 64 MiB"));
        }
        let text = std::str::from_utf8(bytes)
            .map_err(|_| Error::corruption("the OPTIONS file is not UTF-8 text"))?;
        let mut file = OptionsFile::default();
        let mut section = Section::Before;
        let mut has_db = false;
        for (i, raw) in text.lines().enumerate() {
            let bad = |what: &str| Error::corruption(format!("line {}: {what}", i + 1));
            if let Some((name, value)) = raw.strip_prefix(OWN).and_then(|own| own.split_once('=')) {
                file.own.insert(name.to_owned(), value.to_owned());
                continue;
            }
            let of_family = raw.strip_prefix(OWN_OF_FAMILY).and_then(|own| own.split_once('='));
            if let Some((name, value)) = of_family {
                let (Section::Family(n) | Section::Table(n)) = section else {
                    return Err(bad("a family's setting outside of its sections"));
                };
                if let Some(family) = file.families.get_mut(n) {
                    family.own.insert(name.to_owned(), value.to_owned());
                }
                continue;
            }
            let line = strip_comment(raw).trim();
            if line.is_empty() {
                continue;
            }
            if let Some(title) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
                section = file.open_section(title).map_err(bad)?;
                has_db |= matches!(section, Section::Db);
                continue;
            }
            let (name, value) = line.split_once('=').ok_or_else(|| bad("no `name=value`"))?;
            let (name, value) = (name.trim(), unescape(value.trim()));
            let map = match section {
                Section::Before => return Err(bad("an option outside any section")),
                Section::Version if name == "rocksdb_version" => {
                    file.rocksdb_version = value;
                    continue;
                }
                Section::Version => continue,
                Section::Db => Some(&mut file.db),
                Section::Family(n) => file.families.get_mut(n).map(|f| &mut f.options),
                Section::Table(n) => file.families.get_mut(n).map(|f| &mut f.table),
            };
            map.map(|map| map.insert(name.to_owned(), value));
        }
        if !has_db || file.families.is_empty() {
            return Err(Error::corruption("the OPTIONS file lacks a section"));
        }
        Ok(file)
    }

    fn open_section(&mut self, title: &str) -> Result<Section, &'static str> {
        let (kind, name) = match title.split_once('"') {
            Some((kind, name)) => (kind, unescape(name.strip_suffix('"').unwrap_or(name))),
            None => (title, String::new()),
        };
        let known = self.families.iter().position(|f| f.name == name);
        match (kind.trim(), known) {
            ("Version", _) => Ok(Section::Version),
            ("DBOptions", _) => Ok(Section::Db),
            ("CFOptions", Some(_)) => Err("the same column family twice"),
            ("CFOptions", None) => {
                if self.families.is_empty() && name != "default" {
                    return Err("the first column family is not `default`");
                }
                self.families.push(FamilySection { name, ..FamilySection::default() });
                Ok(Section::Family(self.families.len() - 1))
            }
            (kind, Some(n)) if kind.starts_with("TableOptions/") => Ok(Section::Table(n)),
            _ => Err("an unknown section"),
        }
    }
}

/// The line up to an unescaped `#`.
fn strip_comment(line: &str) -> &str {
    let comment = line
        .match_indices('#')
        .find(|&(i, _)| !line.get(..i).is_some_and(|before| before.ends_with('\\')));
    comment.and_then(|(i, _)| line.get(..i)).unwrap_or(line)
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\\' | '#' | ':' => out.extend(['\\', c]),
            _ => out.push(c),
        }
    }
    out
}

fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        out.push(match c {
            '\\' => match chars.next() {
                Some('n') => '\n',
                Some('r') => '\r',
                Some(c) => c,
                None => break,
            },
            c => c,
        });
    }
    out
}

#[cfg(test)]
mod tests;
