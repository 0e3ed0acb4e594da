//! The OPTIONS file: RocksDB's ini text.
//!
//! `[Version]`, `[DBOptions]`, then per column family `[CFOptions "name"]` and
//! `[TableOptions/BlockBasedTable "name"]`, `default` first; `name=value` lines, `#` comments,
//! backslash escapes. Which options are written is the caller's choice; RocksDB's
//! parser takes its defaults for the rest. On reading, only names that decide what bytes mean
//! matter: comparator, merge operator, prefix extractor and the family list.
//!
//! Keeps: the text is a function of the values alone (no clock, no build string). RocksDB's format
//! has no sum, so ours stands in a comment at the end, and [`check_sum`] compares it.
//! Leaves to others: mapping settings to and from these values, and refusing unknown operators.

use std::collections::BTreeMap;
use std::fmt::Write;

use lithify_base::{Error, Result};

use lithify_format::checksum::crc32c;

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

/// Lines of a section, name and value, in the order in which they are written.
pub type Lines = Vec<(&'static str, String)>;

/// What is written of one column family and its tables. Values are text that needs no escapes: no line
/// break and no `#`.
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
    /// The options of the family, by RocksDB's names.
    pub options: Lines,
    /// The options of its tables, by RocksDB's names.
    pub table: Lines,
    /// Settings of ours that only this family has.
    pub own: Lines,
}

/// The text of an OPTIONS file.
///
/// `db` are the options of the database, by RocksDB's names; `own` are settings of ours, of the database.
///
/// # Panics
/// If the first family is not `default`: RocksDB's parser demands that order.
pub fn write(db: &Lines, families: &[FamilyOptions], own: &Lines) -> String {
    assert!(families.first().is_some_and(|f| f.name == "default"), "`default` comes first");
    let mut out = format!("{HEAD}\n\n[Version]\n");
    line(&mut out, "rocksdb_version", ROCKSDB_VERSION);
    line(&mut out, "options_file_version", "1.1");
    out.push_str("\n[DBOptions]\n");
    db.iter().for_each(|(name, value)| line(&mut out, name, value));
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
    let _ = write!(out, "\n[CFOptions \"{name}\"]\n");
    line(out, "comparator", escape(&f.comparator));
    line(out, "merge_operator", nullable(&f.merge_operator));
    line(out, "prefix_extractor", nullable(&f.prefix_extractor));
    f.options.iter().for_each(|(name, value)| line(out, name, value));
    let _ = write!(out, "\n[TableOptions/BlockBasedTable \"{name}\"]\n");
    f.table.iter().for_each(|(name, value)| line(out, name, value));
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
