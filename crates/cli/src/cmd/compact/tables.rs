//! What the tables of a closed database are: which format, and so which releases of RocksDB open them, and which
//! codec. The manifest names them, and each says it of itself.

use std::fmt;

use anyhow::Result;
use lithify::Compression;
use lithify_files::Dir;
use lithify_lsm::FileMeta;
use lithify_tables::sst::TableReader;

use crate::cmd::table::open;
use lithify_watch::tree::{Trees, read};

/// Levels from here on have the codec `compression_lower`.
const LOWER: u8 = 3;

/// A release of RocksDB, major and minor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Release(u32, u32);

/// The first release that reads each format of tables, the oldest first.
const READS: [(Release, u32); 3] = [(Release(6, 6), 5), (Release(8, 6), 6), (Release(10, 4), 7)];

impl Release {
    /// The youngest format of ours that it reads.
    pub(crate) fn format(self) -> u32 {
        let read = READS.iter().filter(|(first, format)| *first <= self && *format <= 6);
        read.map(|(_, format)| *format).max().unwrap_or(5)
    }
    /// The first one that reads `format`.
    pub(crate) fn that_opens(format: u32) -> Release {
        READS.iter().find(|(_, known)| format <= *known).map_or(READS[2].0, |(first, _)| *first)
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RocksDB {}.{}", self.0, self.1)
    }
}

/// A release as `--for` takes it: `rocksdb-7`, `rocksdb-8.5`.
pub(crate) fn release(text: &str) -> Result<Release, String> {
    let numbers = text.strip_prefix("rocksdb-").and_then(|text| {
        let (major, minor) = text.split_once('.').unwrap_or((text, "0"));
        Some(Release(major.parse().ok()?, minor.parse().ok()?))
    });
    match numbers {
        None => Err("write rocksdb- and a release, such as rocksdb-7 or rocksdb-8.5".to_owned()),
        // A major release without a minor one means any of it, of RocksDB 6 the last ones.
        Some(Release(6, 0)) => Ok(READS[0].0),
        Some(old) if old < READS[0].0 => {
            Err(format!("{} is the oldest that opens what is written here", READS[0].0))
        }
        Some(release) => Ok(release),
    }
}

/// The names of the families with tables of a younger format than `format`.
pub(crate) fn younger(dir: &Dir, format: u32) -> Result<Vec<String>> {
    let mut names: Vec<String> = Vec::new();
    each(dir, |family, _, table| {
        if table.format_version() > format && names.last().is_none_or(|last| last != family) {
            names.push(family.to_owned());
        }
    })?;
    Ok(names)
}

/// The youngest format of all tables; that of the oldest release where there is none.
pub(crate) fn newest_format(dir: &Dir) -> Result<u32> {
    let mut newest = READS[0].1;
    each(dir, |_, _, table| newest = newest.max(table.format_version()))?;
    Ok(newest)
}

/// Tables in deeper levels that are not compressed although that is asked for.
pub(crate) struct OtherCodec {
    pub(crate) tables: u64,
    pub(crate) bytes: u64,
    /// What is asked for, as the setting has it.
    pub(crate) wanted: String,
}

/// Those of `family` that are not compressed, where `wanted` is a codec.
pub(crate) fn of_another_codec(dir: &Dir, family: &str, wanted: Compression) -> Result<OtherCodec> {
    let shown = lithify::Settings::default().compression_lower(wanted).get("compression_lower")?;
    let mut other = OtherCodec { tables: 0, bytes: 0, wanted: shown };
    if wanted == Compression::None {
        return Ok(other);
    }
    each(dir, |name, file, table| {
        let bare = table.properties().compression == "NoCompression";
        if name == family && bare && file.pos.level >= LOWER {
            other.tables += 1;
            other.bytes += file.bytes;
        }
    })?;
    Ok(other)
}

/// Shows every table of the closed database in `dir` with the name of its family.
fn each(dir: &Dir, mut show: impl FnMut(&str, &FileMeta, &TableReader)) -> Result<()> {
    let found = read(dir.path())?;
    Trees(&found.state).each(|_, name, version| {
        for file in version.files() {
            let number = file.backing.unwrap_or(file.id).0;
            let table = dir.find_table(number)?.ok_or_else(|| dir.lost(number))?;
            show(name, file, &*open(&table.dir.path_of(table.name))?);
        }
        Ok(())
    })
}
