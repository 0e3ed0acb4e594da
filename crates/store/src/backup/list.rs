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
//! The list of a backup that is being made has `making 000012.sst` for each file whose content is not
//! known yet.
//!
//! Keeps: what is parsed is what was written, whole: letter by letter, tables in the order of their
//! numbers, each once.
//! Leaves to others: whether the files are there.

use std::fmt::{self, Write as _};

use lithify_base::{Error, Result};
use lithify_journal::files::FileName;
use xxhash_rust::xxh3::xxh3_64;

/// First line.
const HEAD: &str = "lithify backup 1";
/// How the first line of every version begins.
pub(super) const OURS: &[u8] = b"lithify backup ";

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
        let (number, sum, bytes) = self.key();
        format!("{number:06}_{sum:016x}_{bytes}.sst")
    }
    /// What tells it from the other shared files.
    pub(super) fn key(&self) -> Key {
        (self.name.number().unwrap_or_default(), self.sum, self.bytes)
    }
}

/// Number, sum and length of a table.
pub(super) type Key = (u64, u64, u64);

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
    /// Its tables, by number.
    pub tables: Vec<BackedUp>,
    /// Its other files.
    pub small: Vec<BackedUp>,
}

/// A list of a backup that does not exist: not yet, or not any more.
pub(super) struct Unmade {
    /// What is known of it.
    pub(super) backup: Backup,
    /// Files whose content was not known when the list was written.
    pub(super) making: Vec<FileName>,
}

impl AsRef<Backup> for Backup {
    fn as_ref(&self) -> &Backup {
        self
    }
}

impl AsRef<Backup> for Unmade {
    fn as_ref(&self) -> &Backup {
        &self.backup
    }
}

impl Backup {
    /// Bytes of all its files; what [`parse`](Backup::parse) gives adds up.
    pub fn bytes(&self) -> u64 {
        let all = self.tables.iter().chain(&self.small);
        all.fold(0, |bytes, file| bytes.saturating_add(file.bytes))
    }

    pub(super) fn text(&self) -> String {
        self.text_with(&[])
    }

    /// The list with files whose content is not known yet.
    pub(super) fn text_with(&self, making: &[FileName]) -> String {
        let mut text = String::new();
        let _ = self.write_body(making, &mut text);
        let sum = xxh3_64(text.as_bytes());
        let _ = writeln!(text, "sum {sum:016x}");
        text
    }

    /// All lines but the sum.
    fn write_body(&self, making: &[FileName], to: &mut impl fmt::Write) -> fmt::Result {
        writeln!(to, "{HEAD}")?;
        let figures = [self.id, self.unix_seconds, self.last_seq, self.manifest];
        for (name, n) in ["id", "unix_seconds", "last_seq", "manifest"].iter().zip(figures) {
            writeln!(to, "{name} {n}")?;
        }
        for (what, files) in [("table", &self.tables), ("small", &self.small)] {
            for BackedUp { name, bytes, sum } in files {
                writeln!(to, "{what} {name} {bytes} {sum:016x}")?;
            }
        }
        making.iter().try_for_each(|name| writeln!(to, "making {name}"))
    }

    /// Reads a meta file.
    ///
    /// # Errors
    /// Corruption if it is not one that was written here, whole.
    pub fn parse(bytes: &[u8]) -> Result<Backup> {
        let Unmade { backup, making } = Unmade::parse(bytes)?;
        if !making.is_empty() {
            return Err(bad("is of a backup that was not complete yet"));
        }
        let manifest = FileName::Manifest(backup.manifest);
        match backup.small.iter().any(|file| file.name == manifest) {
            true => Ok(backup),
            false => Err(bad("does not have its manifest")),
        }
    }
}

impl Unmade {
    /// Reads the list of a backup that need not be complete.
    ///
    /// # Errors
    /// As [`Backup::parse`].
    pub(super) fn parse(bytes: &[u8]) -> Result<Unmade> {
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
        let backup = Backup {
            id: figure("id")?,
            unix_seconds: figure("unix_seconds")?,
            last_seq: figure("last_seq")?,
            manifest: figure("manifest")?,
            tables: Vec::new(),
            small: Vec::new(),
        };
        let mut read = Unmade { backup, making: Vec::new() };
        for line in lines {
            read.add(line).ok_or_else(|| bad("has an odd line"))?;
        }
        read.check()?;
        // A number has one spelling, and a line one place.
        let mut left = Expected(body);
        match read.backup.write_body(&read.making, &mut left) {
            Ok(()) if left.0.is_empty() => Ok(read),
            _ => Err(bad("has an odd line")),
        }
    }

    /// Takes in the line of a file; `None` if it is none.
    fn add(&mut self, line: &str) -> Option<()> {
        let mut words = line.split(' ');
        let (what, name) = (words.next()?, FileName::parse(words.next()?)?);
        if !is_table(name) && !is_small(name) {
            return None;
        }
        if what == "making" {
            self.making.push(name);
            return words.next().is_none().then_some(());
        }
        let bytes = words.next()?.parse().ok()?;
        let sum = u64::from_str_radix(words.next()?, 16).ok()?;
        let file = BackedUp { name, bytes, sum };
        match (what, is_table(name)) {
            ("table", true) => self.backup.tables.push(file),
            ("small", false) => self.backup.small.push(file),
            _ => return None,
        }
        words.next().is_none().then_some(())
    }

    /// What holds of the whole list.
    fn check(&self) -> Result<()> {
        let Backup { tables, small, .. } = &self.backup;
        if tables.windows(2).any(|pair| pair[0].name.number() >= pair[1].name.number()) {
            return Err(bad("has a table twice, or out of order"));
        }
        // There are four kinds of them.
        let twice = |(n, file): (usize, &BackedUp)| small[..n].iter().any(|f| f.name == file.name);
        if small.len() > 4 || small.iter().enumerate().any(twice) {
            return Err(bad("has a file twice"));
        }
        if small.iter().filter(|file| matches!(file.name, FileName::Wal(_))).count() > 1 {
            return Err(bad("has two logs"));
        }
        let mut lengths = tables.iter().chain(small).map(|file| file.bytes);
        match lengths.try_fold(0u64, |all, bytes| all.checked_add(bytes)) {
            Some(_) => Ok(()),
            None => Err(bad("has more bytes than there can be")),
        }
    }
}

/// What is still to be written; anything else is an error.
struct Expected<'a>(&'a str);

impl fmt::Write for Expected<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 = self.0.strip_prefix(text).ok_or(fmt::Error)?;
        Ok(())
    }
}

pub(super) fn is_table(name: FileName) -> bool {
    matches!(name, FileName::Table(_) | FileName::LevelDbTable(_))
}

fn is_small(name: FileName) -> bool {
    use FileName::{Identity, Manifest, Options, Wal};
    matches!(name, Manifest(_) | Identity | Options(_) | Wal(_))
}

fn bad(what: &str) -> Error {
    Error::corruption(format!("the backup's list {what}"))
}
