//! What a directory may ask for before anything was read of it or written to it.

use lithify_base::{Error, ErrorKind, Result, shown_path};
use lithify_store::dir::Dir;

use crate::settings::Settings;

/// Memory that a column family takes as long as nothing is written to it, in bytes, generously.
const FAMILY_BYTES: u64 = 8 << 10;
/// What families may take together whatever else is in the directory, as a part of the memory budget.
const BUDGET_SHARE: u64 = 16;
/// The same in relation to what the directory takes on disk.
const DISK_SHARE: u64 = 2;

/// Refuses a directory with so many column families that they would take memory out of all proportion
/// to it: a manifest names one in a few dozen bytes. By default 4096 are always fine.
///
/// # Errors
/// `LimitExceeded` with the way out; `Io`.
pub(crate) fn check(dir: &Dir, families: usize, settings: &Settings) -> Result<()> {
    let wanted = families as u64 * FAMILY_BYTES;
    if wanted <= settings.memory_budget / BUDGET_SHARE {
        return Ok(());
    }
    let mut there = 0;
    for entry in dir.list()? {
        there += entry.file.map_or(Ok(0), |file| dir.bytes_on_disk(file))?;
        if wanted <= there * DISK_SHARE {
            return Ok(());
        }
    }
    let what = format!(
        "its {families} column families would take {wanted} bytes of memory, and all of the directory \
         has {there} bytes on disk; if it is to be trusted, open it with memory_budget = {} or more",
        wanted * BUDGET_SHARE
    );
    Err(Error::new(ErrorKind::LimitExceeded, what).in_file(shown_path(dir.path())))
}
