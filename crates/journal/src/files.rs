//! Names of the files in a database directory (RocksDB's), parsed and printed.
//!
//! Keeps: only the one name that this module prints for a value is parsed as that value
//! (`5.log` is no file of a database, `000005.log` is a log), so a file is never taken for another and a
//! foreign file is never deleted.
//! Leaves to others: directories, renames, and who may delete what.

use std::fmt;

use lithify_base::{Error, Result};

/// A file of a database directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileName {
    /// `CURRENT`: names the manifest.
    Current,
    /// `CURRENT.unfinished`: the same of a copy that is being made; it gets the name CURRENT when all is there.
    Unfinished,
    /// `IDENTITY`: the database id.
    Identity,
    /// `LOCK`: held by the one opener.
    Lock,
    /// `EVENTS`: what the database did, for people.
    Events,
    /// `EVENTS.old`: the same before `EVENTS` was begun anew.
    OldEvents,
    /// `LOG`: what a program that speaks RocksDB's C interface opened the database with, for people.
    InfoLog,
    /// `DEED`: what the directories that hold tables for this database know it by.
    Deed,
    /// `OWNER`: in a directory that holds tables for a database elsewhere; which one that is.
    Owner,
    /// `MANIFEST-000005`.
    Manifest(u64),
    /// `000005.log`: a write-ahead log.
    Wal(u64),
    /// `000005.sst`: a table.
    Table(u64),
    /// `000005.ldb`: a table as LevelDB names it; read only.
    LevelDbTable(u64),
    /// `OPTIONS-000005`.
    Options(u64),
    /// `000005.dbtmp`: not yet renamed to its real name.
    Temp(u64),
    /// `OPTIONS-000005.dbtmp`.
    OptionsTemp(u64),
}

impl FileName {
    /// The file with this name; `None` for names that are none of ours.
    pub fn parse(name: &str) -> Option<FileName> {
        let file = match name {
            "CURRENT" => FileName::Current,
            "CURRENT.unfinished" => FileName::Unfinished,
            "IDENTITY" => FileName::Identity,
            "LOCK" => FileName::Lock,
            "EVENTS" => FileName::Events,
            "EVENTS.old" => FileName::OldEvents,
            "LOG" => FileName::InfoLog,
            "DEED" => FileName::Deed,
            "OWNER" => FileName::Owner,
            _ => FileName::parse_numbered(name)?,
        };
        (file.to_string() == name).then_some(file)
    }

    fn parse_numbered(name: &str) -> Option<FileName> {
        if let Some(number) = name.strip_prefix("MANIFEST-") {
            return number.parse().ok().map(FileName::Manifest);
        }
        if let Some(rest) = name.strip_prefix("OPTIONS-") {
            return match rest.strip_suffix(".dbtmp") {
                Some(number) => number.parse().ok().map(FileName::OptionsTemp),
                None => rest.parse().ok().map(FileName::Options),
            };
        }
        let (number, extension) = name.split_once('.')?;
        let number = number.parse().ok()?;
        Some(match extension {
            "log" => FileName::Wal(number),
            "sst" => FileName::Table(number),
            "ldb" => FileName::LevelDbTable(number),
            "dbtmp" => FileName::Temp(number),
            _ => return None,
        })
    }

    /// Its number, if its name has one. All numbers come from one counter.
    pub fn number(self) -> Option<u64> {
        match self {
            FileName::Current
            | FileName::Unfinished
            | FileName::Identity
            | FileName::Lock
            | FileName::Events
            | FileName::OldEvents
            | FileName::InfoLog
            | FileName::Deed
            | FileName::Owner => None,
            FileName::Manifest(n)
            | FileName::Wal(n)
            | FileName::Table(n)
            | FileName::LevelDbTable(n)
            | FileName::Options(n)
            | FileName::Temp(n)
            | FileName::OptionsTemp(n) => Some(n),
        }
    }
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileName::Current => f.write_str("CURRENT"),
            FileName::Unfinished => f.write_str("CURRENT.unfinished"),
            FileName::Identity => f.write_str("IDENTITY"),
            FileName::Lock => f.write_str("LOCK"),
            FileName::Events => f.write_str("EVENTS"),
            FileName::OldEvents => f.write_str("EVENTS.old"),
            FileName::InfoLog => f.write_str("LOG"),
            FileName::Deed => f.write_str("DEED"),
            FileName::Owner => f.write_str("OWNER"),
            FileName::Manifest(n) => write!(f, "MANIFEST-{n:06}"),
            FileName::Wal(n) => write!(f, "{n:06}.log"),
            FileName::Table(n) => write!(f, "{n:06}.sst"),
            FileName::LevelDbTable(n) => write!(f, "{n:06}.ldb"),
            FileName::Options(n) => write!(f, "OPTIONS-{n:06}"),
            FileName::Temp(n) => write!(f, "{n:06}.dbtmp"),
            FileName::OptionsTemp(n) => write!(f, "OPTIONS-{n:06}.dbtmp"),
        }
    }
}

/// Content of `CURRENT` for manifest `number`.
pub fn current_content(number: u64) -> String {
    format!("{}\n", FileName::Manifest(number))
}

/// Manifest number in the content of `CURRENT`. `Corruption` if it names none.
pub fn parse_current(content: &[u8]) -> Result<u64> {
    let name = content.strip_suffix(b"\n").and_then(|name| std::str::from_utf8(name).ok());
    match name.and_then(FileName::parse) {
        Some(FileName::Manifest(number)) => Ok(number),
        _ => Err(Error::corruption(format!(
            "it should name a manifest and holds `{}`",
            content.get(..content.len().min(64)).unwrap_or_default().escape_ascii()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for name in [
            "CURRENT",
            "CURRENT.unfinished",
            "IDENTITY",
            "LOCK",
            "EVENTS",
            "EVENTS.old",
            "LOG",
            "DEED",
            "OWNER",
            "MANIFEST-000005",
            "000012.log",
            "000012.sst",
            "1234567.ldb",
            "OPTIONS-000007",
            "000001.dbtmp",
            "OPTIONS-000007.dbtmp",
            "18446744073709551615.sst",
        ] {
            let file = FileName::parse(name).unwrap_or_else(|| panic!("{name}"));
            assert_eq!(file.to_string(), name);
        }
        assert_eq!(FileName::parse("000012.sst"), Some(FileName::Table(12)));
        assert_eq!(FileName::Options(7).number(), Some(7));
    }

    #[test]
    fn other_names_are_foreign() {
        for name in [
            "",
            ".",
            "5.log",
            "0000005.log",
            "+00005.log",
            "000005.LOG",
            "000005.log.bak",
            "000005",
            "MANIFEST-",
            "MANIFEST-5",
            "MANIFEST-000005.dbtmp",
            "CURRENT ",
            "LOG.old.1754041200000000",
            "18446744073709551616.sst",
            "000005.blob",
        ] {
            assert_eq!(FileName::parse(name), None, "{name}");
        }
    }

    #[test]
    fn current_names_a_manifest() {
        assert_eq!(parse_current(current_content(5).as_bytes()).unwrap(), 5);
        for bad in
            [&b""[..], b"MANIFEST-000005", b"000005.log\n", b"MANIFEST-000005\n\n", b"\xff\n"]
        {
            assert!(parse_current(bad).unwrap_err().is_corruption());
        }
    }
}
