//! The list of a backup, its meta file: lines of text, the last one their sum.
//!
//! ```text
//!   lithify backup 1
//!   id 3
//!   unix_seconds 1760000000
//!   last_seq 81234
//!   manifest 40
//!   table 000012.sst 67108864 9f86d081884c7d65      name, bytes, XXH3-64 of the content
//!   small MANIFEST-000040 812 1b4f0e9851971998
//!   sum 60303ae22b998861                            XXH3-64 of all text above
//! ```
//!
//! Keeps: what is parsed is what was written, whole.
//! Leaves to others: whether the files are there.

use std::fmt::Write as _;

use lithify_base::{Error, Result};
use lithify_format::files::FileName;
use xxhash_rust::xxh3::xxh3_64;

/// First line.
const HEAD: &str = "lithify backup 1";

/// A file of a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackedUp {
    /// Its name in a database.
    pub name: FileName,
    /// Length in bytes.
    pub bytes: u64,
    /// XXH3-64 of its content.
    pub sum: u64,
}

impl BackedUp {
    /// Its name among the shared files, if it is a table.
    pub(super) fn shared_name(&self) -> String {
        let number = self.name.number().unwrap_or_default();
        format!("{number:06}_{:016x}_{}.sst", self.sum, self.bytes)
    }
}

/// One backup, as its meta file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backup {
    /// Its number.
    pub id: u64,
    /// When it was made, seconds since 1970.
    pub unix_seconds: u64,
    /// The last sequence number in it.
    pub last_seq: u64,
    /// Number of its manifest.
    pub manifest: u64,
    /// Its tables.
    pub tables: Vec<BackedUp>,
    /// Its other files.
    pub small: Vec<BackedUp>,
}

impl Backup {
    /// Bytes of all its files.
    pub fn bytes(&self) -> u64 {
        self.tables.iter().chain(&self.small).map(|file| file.bytes).sum()
    }

    pub(super) fn text(&self) -> String {
        let mut text = format!("{HEAD}\n");
        let figures = [self.id, self.unix_seconds, self.last_seq, self.manifest];
        for (name, n) in ["id", "unix_seconds", "last_seq", "manifest"].iter().zip(figures) {
            let _ = writeln!(text, "{name} {n}");
        }
        for (what, files) in [("table", &self.tables), ("small", &self.small)] {
            for BackedUp { name, bytes, sum } in files {
                let _ = writeln!(text, "{what} {name} {bytes} {sum:016x}");
            }
        }
        let sum = xxh3_64(text.as_bytes());
        let _ = writeln!(text, "sum {sum:016x}");
        text
    }

    /// Reads a meta file.
    ///
    /// # Errors
    /// Corruption if it is not one that was written here, whole.
    pub fn parse(bytes: &[u8]) -> Result<Backup> {
        let bad = |what: &str| Error::corruption(format!("the backup's list {what}"));
        let text = std::str::from_utf8(bytes).map_err(|_| bad("is no text"))?;
        let body = text.rfind("sum ").map(|at| text.split_at(at));
        let (body, sum) = body.ok_or_else(|| bad("has no sum"))?;
        if sum != format!("sum {:016x}\n", xxh3_64(body.as_bytes())) {
            return Err(bad("does not have the sum in its last line"));
        }
        let mut lines = body.lines();
        if lines.next() != Some(HEAD) {
            return Err(bad("is of a version that this one does not read"));
        }
        let mut figure = |name: &str| -> Result<u64> {
            let line = lines.next().and_then(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line.and_then(|n| n.parse().ok()).ok_or_else(|| bad(&format!("lacks its {name}")))
        };
        let mut backup = Backup {
            id: figure("id")?,
            unix_seconds: figure("unix_seconds")?,
            last_seq: figure("last_seq")?,
            manifest: figure("manifest")?,
            tables: Vec::new(),
            small: Vec::new(),
        };
        for line in lines {
            let words: Vec<&str> = line.split(' ').collect();
            let [what, name, bytes, sum] = words[..] else { return Err(bad("has an odd line")) };
            let file = FileName::parse(name)
                .zip(bytes.parse().ok())
                .zip(u64::from_str_radix(sum, 16).ok())
                .map(|((name, bytes), sum)| BackedUp { name, bytes, sum });
            let file = file.ok_or_else(|| bad("has an odd line"))?;
            let table = matches!(file.name, FileName::Table(_) | FileName::LevelDbTable(_));
            match what {
                "table" if table => backup.tables.push(file),
                "small" if !table => backup.small.push(file),
                _ => return Err(bad("has an odd line")),
            }
        }
        Ok(backup)
    }
}
