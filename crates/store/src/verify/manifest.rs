//! CURRENT, the manifest and IDENTITY: which one counts, whether every byte of it does, and
//! whether the three agree.

use lithify_base::{Error, ErrorKind, Result};
use lithify_files::dir::FileName;
use lithify_journal::manifest::read_manifest_over;
use lithify_journal::wal::{Found, LogBytes, RecordReader, Verdict};

use super::{Look, no_database};
use crate::manifest::{Recovered, newest_readable, recover};

/// Largest manifest that is looked at.
pub(crate) const MANIFEST_MAX: u64 = 4 << 30;

impl Look<'_> {
    /// The manifest to go by; `None` if none can be read. If CURRENT is damaged the newest one
    /// that reads stands in, so that the rest of the database is checked all the same.
    pub(super) fn manifest(&mut self) -> Result<Option<Recovered>> {
        let found = match recover(self.dir) {
            Ok(Some(found)) => found,
            Ok(None) => return Err(no_database(self.dir)),
            Err(e) if e.kind() == ErrorKind::NotFound => return Err(e),
            Err(e) => {
                self.report.damage(e.in_file(self.dir.path().display()));
                match newest_readable(self.dir)? {
                    Some(found) => found,
                    None => return Ok(None),
                }
            }
        };
        if let Err(e) = self.edits(&found) {
            self.report.damage(e);
        }
        self.identity(&found);
        Ok(Some(found))
    }

    /// Every byte of the manifest takes effect, and its counters are above everything in it.
    fn edits(&mut self, found: &Recovered) -> Result<()> {
        let name = FileName::Manifest(found.manifest);
        let path = self.path(name);
        let Some(bytes) = self.dir.read_sparse(name, MANIFEST_MAX)? else { return Ok(()) };
        let read = read_manifest_over(bytes.bytes(), 0).map_err(|e| e.in_file(&path))?;
        self.report.bytes += bytes.len();
        if read.verdict != Verdict::Clean {
            let left = bytes.len() - read.good_end;
            let what = format!("the last {left} bytes are no whole edit, and are left out");
            let error = Error::corruption(what).at(read.good_end).in_file(&path);
            // Each edit is synced before the next is written.
            match is_followed(bytes.bytes()) {
                true => self.report.damage(error),
                false => self.report.torn(error),
            }
        }
        let wrong = |what: String| Error::corruption(what).in_file(&path);
        let files = || read.state.families.values().flat_map(|f| f.files.values());
        let numbers = files().map(|f| f.number).chain([found.manifest]);
        if let Some(n) = numbers.filter(|&n| n >= read.state.next_file).max() {
            let next = read.state.next_file;
            self.report.damage(wrong(format!("the next file number is {next}, and {n} is used")));
        }
        for f in files().filter(|f| f.largest_seq > read.state.last_seq && f.counts.is_some()) {
            let (number, seq, last) = (f.number, f.largest_seq, read.state.last_seq);
            self.report.damage(wrong(format!(
                "file {number:06} has write {seq}, and the last one is {last}"
            )));
        }
        Ok(())
    }

    fn identity(&mut self, found: &Recovered) {
        let Some(expected) = &found.state.db_id else { return };
        let wrong = match self.dir.read_identity() {
            Ok(Some(id)) if id == *expected => None,
            Ok(Some(_)) => Some(Error::corruption("the id is not the one that the manifest has")),
            Ok(None) => Some(Error::corruption("the file is missing")),
            Err(e) => Some(e),
        };
        if let Some(e) = wrong {
            self.report.damage(e.in_file(self.path(FileName::Identity)));
        }
    }
}

/// Whether a good record lies behind the first damage.
pub(crate) fn is_followed(bytes: LogBytes<'_>) -> bool {
    let mut reader = RecordReader::over(bytes, None);
    let mut damaged = false;
    loop {
        match reader.next_record() {
            Found::Record(_) if damaged => return true,
            Found::Record(_) => {}
            Found::Damage(_) => {
                damaged = true;
                if !reader.resume() {
                    return false;
                }
            }
            Found::Refused(_) | Found::End => return false,
        }
    }
}
