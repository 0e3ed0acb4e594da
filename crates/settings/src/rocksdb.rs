//! How the rows of the table stand in OPTIONS files, and RocksDB's options as settings of ours, for a
//! directory that RocksDB was last opened on.
//!
//! Each row names the function here that writes its value and the one that reads it. Writers give `None`
//! where the line is left out. Readers get all options besides the text of their own, because some of
//! RocksDB's mean something only beside another one; `None` leaves the default.
//!
//! Keeps: what shapes the tree and its tables is taken where both mean the same by it; what only
//! says how RocksDB was tuned to its machine (caches, threads but for jobs, direct IO) is not.
//! Leaves to others: whether the result is sound ([`Settings::check`]).

use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;

use lithify_journal::options::FamilySection;

use crate::{CompactionPri, Compression, Policy, ROWS, Settings};

/// RocksDB's names of a setting, and how OPTIONS files have it.
pub(crate) struct Rocks {
    /// Its name there, and others that it has or had.
    pub(crate) names: &'static [&'static str],
    pub(crate) place: Option<Place>,
    pub(crate) write: Option<fn(&Settings) -> Option<String>>,
    pub(crate) read: Option<fn(&mut Settings, &Options, Option<&str>)>,
}

/// A section of an OPTIONS file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Database,
    Family,
    Table,
}

/// The options of a database and of one of its families, as RocksDB wrote them.
pub(crate) struct Options<'a> {
    pub(crate) db: &'a BTreeMap<String, String>,
    pub(crate) family: &'a FamilySection,
}

impl<'a> Options<'a> {
    /// The text of an option. One within another, as `{size_ratio=1;min_merge_width=2;}` has them, has
    /// both names, with a dot between them.
    fn text(&self, place: Place, name: &str) -> Option<&'a str> {
        let options = match place {
            Place::Database => self.db,
            Place::Family => &self.family.options,
            Place::Table => &self.family.table,
        };
        let Some((outer, inner)) = name.split_once('.') else {
            return options.get(name).map(String::as_str);
        };
        let all = options.get(outer)?.trim_matches(['{', '}']);
        let value = |part: &'a str| part.split_once('=').filter(|(n, _)| *n == inner);
        all.split(';').find_map(value).map(|(_, text)| text)
    }

    fn family(&self, name: &str) -> Option<&'a str> {
        self.text(Place::Family, name)
    }
    fn is_universal(&self) -> bool {
        self.family("compaction_style") == Some("kCompactionStyleUniversal")
    }
    fn is_fifo(&self) -> bool {
        self.family("compaction_style") == Some("kCompactionStyleFIFO")
    }
}

/// The settings of a family of a database.
pub(crate) fn settings_of(options: &Options) -> Settings {
    let mut s = Settings::default();
    take(&mut s, options);
    let memtables = s.memtable_bytes.saturating_mul(s.memtable_count.into());
    s.memory_budget = s.memory_budget.max(memtables.saturating_add(64 << 20));
    // Under its own budget once more: a value that is the default one under another would count as not set.
    let mut s = Settings::for_budget(s.budget());
    take(&mut s, options);
    s
}

/// Sets what the options say.
fn take(s: &mut Settings, options: &Options) {
    for row in ROWS {
        let rocks = &row.rocks;
        if let (Some(place), Some(name), Some(read)) =
            (rocks.place, rocks.names.first(), rocks.read)
        {
            read(s, options, options.text(place, name));
        }
    }
}

// ---- What is written.

pub(crate) fn plain(value: &impl Display) -> Option<String> {
    Some(value.to_string())
}

/// What is left to the store is off there.
pub(crate) fn chosen(on: &Option<bool>) -> Option<String> {
    plain(&(*on == Some(true)))
}

pub(crate) fn not(on: &bool) -> Option<String> {
    Some((!on).to_string())
}

pub(crate) fn factor(factor: &u32) -> Option<String> {
    Some(format!("{:.6}", f64::from(*factor)))
}

/// -1 is all of them.
pub(crate) fn files(files: &Option<u32>) -> Option<String> {
    Some(files.map_or("-1".to_owned(), |files| files.to_string()))
}

pub(crate) fn pri(pri: &CompactionPri) -> Option<String> {
    Some(pri.rocksdb_name().to_owned())
}

pub(crate) fn codec(codec: &Compression) -> Option<String> {
    let name = match codec {
        Compression::None => "kNoCompression",
        Compression::Lz4 => "kLZ4Compression",
        Compression::Snappy => "kSnappyCompression",
        Compression::Zlib(_) => "kZlibCompression",
        Compression::Bzip2 => "kBZip2Compression",
        Compression::Zstd(_) => "kZSTD",
    };
    Some(name.to_owned())
}

pub(crate) fn part(bytes: &Option<u32>) -> Option<String> {
    bytes.filter(|&bytes| bytes > 0).map(|bytes| bytes.to_string())
}

pub(crate) fn filter(bits: &u32) -> Option<String> {
    Some(match bits {
        0 => "nullptr".to_owned(),
        bits => format!("bloomfilter:{bits}:false"),
    })
}

// ---- What is read.

/// A hundred years in seconds: RocksDB writes numbers beyond all time where it has a default of its own.
const CENTURY: u64 = 100 * 366 * 24 * 3600;

/// A whole number; `None` for what is absent, negative or too large.
pub(crate) fn number<T: FromStr>(_: &Options, text: Option<&str>) -> Option<T> {
    text?.parse().ok()
}

pub(crate) fn positive(all: &Options, text: Option<&str>) -> Option<u64> {
    number(all, text).filter(|n| *n > 0)
}

/// RocksDB begins to slow writes down with this rate, and notes its default like a choice.
pub(crate) fn chosen_write_rate(all: &Options, text: Option<&str>) -> Option<u64> {
    positive(all, text).filter(|rate| *rate != 16 << 20)
}

pub(crate) fn rounded(all: &Options, text: Option<&str>) -> Option<u32> {
    number(all, text).map(|n: f64| n.round() as u32)
}

pub(crate) fn flag(_: &Options, text: Option<&str>) -> Option<bool> {
    text.map(|text| text == "true")
}

pub(crate) fn not_flag(all: &Options, text: Option<&str>) -> Option<bool> {
    flag(all, text).map(|on| !on)
}

/// Of the jobs one is a flush.
pub(crate) fn jobs(all: &Options, text: Option<&str>) -> Option<u32> {
    number(all, text).map(|jobs: u32| jobs.saturating_sub(1).max(1))
}

/// -1 is all of them.
pub(crate) fn open_files(all: &Options, text: Option<&str>) -> Option<Option<u32>> {
    number(all, text).map(Some)
}

pub(crate) fn style(all: &Options, _: Option<&str>) -> Option<Option<Policy>> {
    match (all.is_universal(), all.is_fifo()) {
        (true, _) => Some(Some(Policy::Universal)),
        (_, true) => Some(Some(Policy::Fifo)),
        _ => None,
    }
}

pub(crate) fn pri_of_leveled(all: &Options, text: Option<&str>) -> Option<CompactionPri> {
    let leveled = !all.is_universal() && !all.is_fifo();
    CompactionPri::ALL.into_iter().find(|pri| leveled && text == Some(pri.rocksdb_name()))
}

pub(crate) fn number_of_universal(all: &Options, text: Option<&str>) -> Option<u32> {
    number(all, text).filter(|_| all.is_universal())
}

pub(crate) fn number_of_fifo(all: &Options, text: Option<&str>) -> Option<u64> {
    number(all, text).filter(|_| all.is_fifo())
}

pub(crate) fn flag_of_fifo(all: &Options, text: Option<&str>) -> Option<bool> {
    flag(all, text).filter(|_| all.is_fifo())
}

pub(crate) fn age_unless_universal(all: &Options, text: Option<&str>) -> Option<u64> {
    number(all, text).filter(|&age| age <= CENTURY && !all.is_universal())
}

pub(crate) fn age_unless_fifo(all: &Options, text: Option<&str>) -> Option<u64> {
    number(all, text).filter(|&age| age <= CENTURY && !all.is_fifo())
}

pub(crate) fn upper(all: &Options, text: Option<&str>) -> Option<Compression> {
    codec_of(all, text?, "compression_opts.level")
}

/// What is said of the deepest level, else what is said of all.
pub(crate) fn lower(all: &Options, text: Option<&str>) -> Option<Compression> {
    let own = text.and_then(|text| codec_of(all, text, "bottommost_compression_opts.level"));
    own.or_else(|| upper(all, all.family("compression")))
}

fn codec_of(all: &Options, name: &str, level: &str) -> Option<Compression> {
    // RocksDB writes a number out of range for a codec's own default.
    let level = |most| number(all, all.family(level)).filter(|n| (1..=most).contains(n));
    Some(match name {
        "kNoCompression" => Compression::None,
        "kSnappyCompression" => Compression::Snappy,
        "kLZ4Compression" | "kLZ4HCCompression" => Compression::Lz4,
        "kZlibCompression" => Compression::Zlib(level(9).unwrap_or(6)),
        "kBZip2Compression" => Compression::Bzip2,
        "kZSTD" if cfg!(feature = "zstd") => Compression::Zstd(level(19).unwrap_or(3)),
        _ => return None,
    })
}

/// Dictionaries are for Zstandard alone.
pub(crate) fn dictionary(all: &Options, text: Option<&str>) -> Option<u32> {
    let codecs =
        [upper(all, all.family("compression")), lower(all, all.family("bottommost_compression"))];
    let bytes = number(all, text).filter(|n: &u32| *n > 0).map(|n| n.clamp(256, 1 << 20));
    bytes.filter(|_| codecs.into_iter().flatten().any(Compression::is_zstd))
}

pub(crate) fn block(all: &Options, text: Option<&str>) -> Option<u32> {
    number(all, text).map(|n: u32| n.clamp(512, 1 << 20).next_power_of_two())
}

pub(crate) fn version(all: &Options, text: Option<&str>) -> Option<u32> {
    number(all, text).map(|n: u32| n.clamp(5, 6))
}

/// `bloomfilter:10:false`, by itself or as the id of an object; `nullptr` for none. Up to RocksDB 6 the name stands there
/// without the bits: then they are the default ones.
pub(crate) fn filter_bits(_: &Options, text: Option<&str>) -> Option<u32> {
    text.filter(|text| !text.contains("rocksdb.BuiltinBloomFilter"))?;
    let bits = text?.split_once("filter:").map(|(_, after)| after.split([':', ';', '}']));
    let bits = bits.and_then(|mut parts| parts.next()?.parse::<f64>().ok());
    Some(bits.map_or(0, |bits| bits.round().clamp(0.0, 50.0) as u32))
}

pub(crate) fn part_of_two_levels(all: &Options, text: Option<&str>) -> Option<Option<u32>> {
    let two = all.text(Place::Table, "index_type") == Some("kTwoLevelIndexSearch");
    number(all, text).filter(|_| two).map(|n: u32| Some(n.clamp(1 << 10, 1 << 20)))
}

#[cfg(test)]
mod tests;
