//! The look at a directory before anything is written to it: is it one of ours?
//!
//! RocksDB's backups have folders `shared`, `private` and `meta` as well, so names tell little. What tells
//! is a list that begins as ours do, or LOCK besides all three folders: we make it last, and RocksDB makes
//! none. Without either, the folders may be there, as a first backup that was cut short leaves them, and
//! must be empty.
//!
//! Keeps: nothing is written, not even LOCK; nothing is read but names and the first bytes of lists.
//! Leaves to others: lists that are damaged behind their first line.

use std::path::Path;

use lithify_base::{Error, Result};
use lithify_env::{DirEnt, EntryKind, read_full_at};
use lithify_files::dir::{FileName, OF_A_NEW_DISK, OrTyped};

use super::folder::Folder;
use super::list::OURS;
use super::{BackupDir, META, Meta, PARTS, folder};

/// What only RocksDB makes among its backups.
const OF_ROCKS: &str = "shared_checksum";

/// What a directory is found to be.
#[derive(Default)]
pub(super) struct Survey {
    /// There is a folder for lists.
    pub(super) lists: bool,
    /// There is a list of ours.
    pub(super) ours: bool,
    /// There is a folder of backups, of whichever program.
    pub(super) backups: bool,
    /// What is there that is none of ours: its path below the directory.
    pub(super) foreign: Option<String>,
}

impl BackupDir {
    /// Looks at all of the directory.
    ///
    /// # Errors
    /// Io.
    pub(super) fn survey(&self) -> Result<Survey> {
        let top = folder(&self.dir()?, Path::new("")).entries()?;
        let has = |name: &str| top.iter().any(|entry| entry.name == name);
        let mut survey = Survey {
            lists: has(META),
            backups: has(OF_ROCKS) || PARTS.iter().any(|part| has(part)),
            ..Survey::default()
        };
        if !survey.backups {
            return Ok(survey);
        }
        let is_part = |entry: &&DirEnt| PARTS.contains(&&*entry.name);
        if let Some(part) = top.iter().filter(is_part).find(|entry| entry.kind != EntryKind::Dir) {
            survey.foreign = Some(part.name.clone());
            // Lists elsewhere are none of ours.
            survey.lists = part.name != META;
        }
        if survey.lists {
            self.look_at_lists(&mut survey)?;
        }
        if survey.foreign.is_none() {
            survey.foreign = self.linked()?;
        }
        if has(OF_ROCKS) {
            survey.foreign = Some(OF_ROCKS.to_owned());
        }
        let made = PARTS.iter().all(|part| has(part)) && has(&FileName::Lock.to_string());
        if !survey.ours && !made && survey.foreign.is_none() {
            survey.foreign = self.unlisted(&top)?;
        }
        Ok(survey)
    }

    fn look_at_lists(&self, survey: &mut Survey) -> Result<()> {
        let meta = self.part(META)?;
        for entry in meta.entries()? {
            match Meta::of(&entry.name) {
                Some(Meta::List(_) | Meta::Unmade(_))
                    if entry.kind == EntryKind::File && start(&meta, &entry.name)? == OURS =>
                {
                    survey.ours = true;
                }
                Some(Meta::List(_) | Meta::Unmade(_)) => {
                    survey.foreign.get_or_insert(format!("{META}/{}", entry.name));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// A folder or a file with a name of ours that is neither, but a link or a device.
    fn linked(&self) -> Result<Option<String>> {
        for part in PARTS {
            let entries = self.part(part)?.entries()?;
            let odd = entries.into_iter().find(|entry| entry.kind == EntryKind::Other);
            if let Some(entry) = odd {
                return Ok(Some(format!("{part}/{}", entry.name)));
            }
        }
        Ok(None)
    }

    /// Anything but empty folders.
    fn unlisted(&self, top: &[DirEnt]) -> Result<Option<String>> {
        let ours = |name: &str| PARTS.contains(&name) || name == OF_A_NEW_DISK;
        if let Some(entry) = top.iter().find(|entry| !ours(&entry.name)) {
            return Ok(Some(entry.name.clone()));
        }
        for part in PARTS {
            if let Some(name) = self.part(part)?.names()?.first() {
                return Ok(Some(format!("{part}/{name}")));
            }
        }
        Ok(None)
    }

    /// Refuses a directory with something in it that is not ours.
    ///
    /// # Errors
    /// `InvalidArgument` saying what is there; Io.
    pub(super) fn check_ours(&self) -> Result<Survey> {
        let survey = self.survey()?;
        match &survey.foreign {
            Some(name) => Err(self.foreign(name)),
            None => Ok(survey),
        }
    }

    pub(super) fn foreign(&self, name: &str) -> Error {
        let whose = match name {
            OF_ROCKS => "which only RocksDB's backups have",
            _ => "which is no backup made by Lithify",
        };
        let why = format!(
            "a directory of backups needs a place of its own, and this one has `{}` in it, {whose}; \
             choose another one, or move that away if it is not needed. Nothing was changed",
            name.escape_debug()
        );
        Error::invalid(why).in_file(self.named.path().display())
    }
}

/// The first bytes of a list: as many as tell whose it is.
fn start(meta: &Folder, name: &str) -> Result<Vec<u8>> {
    let Some(file) = meta.open(name)? else { return Ok(Vec::new()) };
    let mut start = vec![0; OURS.len()];
    let count = read_full_at(&*file, &mut start, 0).or_typed()?;
    start.truncate(count);
    Ok(start)
}

/// Whether a file may be a list of ours whose writing was cut short: as far as its first bytes arrived,
/// they are ours.
pub(super) fn begun(meta: &Folder, name: &str) -> Result<bool> {
    let start = start(meta, name)?;
    Ok(start.iter().zip(OURS).all(|(byte, ours)| byte == ours || *byte == 0))
}
