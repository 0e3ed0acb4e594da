//! Directories of the bench.
//!
//! Keeps: the bench only ever empties a directory that it made itself, known by a mark in it.

#![expect(clippy::disallowed_methods, reason = "the bench is a user of the store, not part of it")]

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// File that marks a directory as the bench's own, which it may empty.
const MARK: &str = "LITHIFY-BENCH";
/// The bench's directory: a mark, and the store in `db`.
pub(crate) struct Place {
    /// Where the store lives.
    pub(crate) store: PathBuf,
}

impl Place {
    /// Makes `dir` ready, if it is the bench's or can become so.
    pub(crate) fn prepare(dir: &Path) -> Result<Place> {
        let mark = dir.join(MARK);
        if dir.exists()
            && !mark.exists()
            && dir.read_dir().with_context(|| format!("{dir:?}"))?.next().is_some()
        {
            bail!(
                "{dir:?} is neither empty nor made by the bench; name another directory with --db"
            );
        }
        std::fs::create_dir_all(dir).with_context(|| format!("creating {dir:?}"))?;
        std::fs::write(&mark, "The bench may empty this directory.\n")
            .with_context(|| format!("writing {mark:?}"))?;
        Ok(Place { store: dir.join("db") })
    }

    /// Makes an empty directory for the store.
    pub(crate) fn clear(&self) -> Result<()> {
        if self.store.exists() {
            std::fs::remove_dir_all(&self.store)
                .with_context(|| format!("emptying {:?}", self.store))?;
        }
        std::fs::create_dir(&self.store).with_context(|| format!("creating {:?}", self.store))
    }
}

/// Refuses the `file` of `flag` if it can't be written, before a long run and not behind it. Leaves what is there as it
/// is.
///
/// # Errors
/// That of making it.
pub fn check_can_write(flag: &str, file: &Path) -> Result<()> {
    let there = file.exists();
    // A pipe's reader would take the end of a trial for the end of all.
    if there && !file.is_file() && !file.is_dir() {
        return Ok(());
    }
    let tried = std::fs::OpenOptions::new().append(true).create(true).open(file);
    tried.with_context(|| format!("{flag} {file:?} can't be written"))?;
    if !there {
        // A link may lead to it.
        let made = file.canonicalize();
        made.and_then(std::fs::remove_file).with_context(|| format!("{flag} {file:?}"))?;
    }
    Ok(())
}

/// Removes `dir` and all in it, if the bench made it.
pub(crate) fn remove_own(dir: &Path) -> Result<()> {
    if !dir.exists() {
        return Ok(());
    }
    if !dir.join(MARK).exists() {
        bail!("{dir:?} was not made by the bench; name another directory with --db");
    }
    std::fs::remove_dir_all(dir).with_context(|| format!("removing {dir:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_leaves_links_and_files() {
        let place = tempfile::tempdir().unwrap();
        let (link, target) = (place.path().join("out.json"), place.path().join("today.json"));
        std::os::unix::fs::symlink(&target, &link).unwrap();
        check_can_write("--json", &link).unwrap();
        assert!(link.is_symlink() && !target.exists());
        std::fs::write(&target, "kept").unwrap();
        check_can_write("--json", &link).unwrap();
        assert_eq!(std::fs::read_to_string(&link).unwrap(), "kept");
        let round = place.path().join("round.json");
        std::os::unix::fs::symlink(&round, &round).unwrap();
        check_can_write("--json", &round).unwrap_err();
        assert!(round.is_symlink());
    }
}
