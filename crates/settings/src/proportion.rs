//! How many column families a database may have: what a directory may ask for before anything of it was
//! read or written, and what may be added to it.

use lithify_base::{Error, ErrorKind, Result, shown_path};
use lithify_files::dir::Dir;

use crate::Settings;

/// Families that are fine in any database, whatever its budget.
const FAMILIES_ALWAYS: u64 = 4096;
/// Memory that a column family takes as long as nothing is written to it, bytes: 3826 were measured once
/// it is open, and opening it takes more.
const FAMILY_BYTES: u64 = 8 << 10;
/// What families may take together whatever else is in the directory, as a part of the memory budget.
const BUDGET_SHARE: u64 = 16;
/// The same in relation to what the directory takes on disk.
const DISK_SHARE: u64 = 2;

/// Families that a database with this memory budget may have, whatever it has on disk.
fn most(memory_budget: u64) -> u64 {
    (memory_budget / BUDGET_SHARE / FAMILY_BYTES).max(FAMILIES_ALWAYS)
}

/// Refuses a directory with so many column families that they would take memory out of all proportion
/// to it: a manifest names one in a few dozen bytes.
///
/// # Errors
/// `LimitExceeded` with the way out; `Io`.
pub fn check(dir: &Dir, families: usize, settings: &Settings) -> Result<()> {
    let Some(too_many) = too_many(families, settings) else { return Ok(()) };
    let wanted = families as u64 * FAMILY_BYTES;
    let mut there = 0;
    for entry in dir.list()? {
        there += entry.file.map_or(Ok(0), |file| dir.bytes_on_disk(file))?;
        if wanted <= there * DISK_SHARE {
            return Ok(());
        }
    }
    let what = format!("{too_many}; all of the directory has {there} bytes on disk");
    Err(Error::new(ErrorKind::LimitExceeded, what).in_file(shown_path(dir.path())))
}

/// Refuses to make so many column families that the next open might refuse them. What there is on disk
/// does not count: it may be less by then.
///
/// # Errors
/// `LimitExceeded` with the way out.
pub fn admit(families: usize, settings: &Settings) -> Result<()> {
    match too_many(families, settings) {
        Some(what) => Err(Error::new(ErrorKind::LimitExceeded, what)),
        None => Ok(()),
    }
}

/// What is wrong with so many families, and the way out; `None` if they are fine.
fn too_many(families: usize, settings: &Settings) -> Option<String> {
    let (families, most) = (families as u64, most(settings.memory_budget));
    let what = || {
        format!(
            "{families} column families would take {} bytes of memory, and with this memory_budget there may \
         be {most}; if all of them are wanted, open the database with memory_budget = {} or more",
            families * FAMILY_BYTES,
            families * FAMILY_BYTES * BUDGET_SHARE
        )
    };
    (families > most).then(what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_raises_the_number_of_families_and_never_lowers_it() {
        assert_eq!(most(0), FAMILIES_ALWAYS);
        assert_eq!(most(4 << 20), FAMILIES_ALWAYS);
        assert_eq!(most(1 << 30), 8192);
        let with = |memory_budget| Settings { memory_budget, ..Settings::default() };
        for budget in [4 << 20, 64 << 20, 1 << 30, 1 << 40] {
            let most = most(budget) as usize;
            admit(most, &with(budget)).unwrap();
            let refused = admit(most + 1, &with(budget)).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::LimitExceeded);
            // The budget that it names is one that does.
            let named = (most as u64 + 1) * FAMILY_BYTES * BUDGET_SHARE;
            assert!(refused.to_string().contains(&format!("memory_budget = {named}")));
            admit(most + 1, &with(named)).unwrap();
        }
    }
}
