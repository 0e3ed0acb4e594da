//! How far the counters of a database can have come: file numbers and sequence numbers that a
//! directory states, and what is believed of them.
//!
//! All file numbers come from one counter. The manifest has it as of its last edit, and a crash
//! leaves files that were numbered since then: their numbers are used up. Any other name in the
//! directory may have any number, as anyone can put it there. The two are told apart by distance:
//!
//! ```text
//!   0 ...... known by the manifest | ours, made after its last edit | foreign
//!                                  ^ next file                      ^ next file + AHEAD_MAX
//! ```
//! Keeps: a foreign file never moves the counter, is never read as a log and never overwritten: the
//! counter cannot reach its number. A directory whose own counters are near their ends is refused
//! before anything is written, and can still be read.
//! Leaves to others: what the files hold; which of ours are needed (`janitor`).

use lithify_base::{Error, MAX_SEQ, Result, Seq};
use lithify_files::dir::AHEAD_MAX;
use lithify_files::dir::{Dir, FileName};
use lithify_journal::manifest::ManifestState;

/// Largest next file number with which a database is opened for writing. Three times as
/// many are left to the open handle, which cannot use them up.
pub const NUMBER_MAX: u64 = 1 << 62;

/// Sequence numbers that must be left when a database is opened for writing: 9 years of 10^6 writes a
/// second.
const SEQS_LEFT: u64 = 1 << 48;

/// Sequence numbers that must be left when a memtable becomes active; it cannot hold as many entries.
const SEQS_OF_MEMTABLE: u64 = 1 << 40;

/// What to do about a database whose numbers have come to their end.
const WAY_OUT: &str = "nothing was written; take what it holds into a new database with `lithify \
                       salvage`, or open it for reading only";

/// The number that a database counts on from whose manifest says that `known` is next: above that of
/// every file that a crashed process can have made, so that no number is used twice.
///
/// # Errors
/// Io if the directory cannot be listed.
pub fn next_number(dir: &Dir, known: u64) -> Result<u64> {
    let foreign = known.saturating_add(AHEAD_MAX);
    let mut listed = dir.list()?;
    for place in dir.places() {
        listed.extend(place.list()?);
    }
    // Whatever has the name: a link, too, is in the way of a file.
    let numbers = listed.iter().filter_map(|entry| FileName::parse(&entry.name)?.number());
    let used = numbers.filter(|&n| n < foreign).max();
    Ok(used.map_or(known, |n| known.max(n + 1)).max(1))
}

/// The smallest number above all that `state` names or counts.
pub(crate) fn known(state: &ManifestState) -> u64 {
    let families = || state.families.values();
    let files = families().flat_map(|f| f.files.values());
    let tables = files.flat_map(|f| [Some(f.number), f.backing]).flatten();
    let logs = families().map(|f| f.log_number).chain(state.wals.keys().copied());
    let named = tables.chain(logs).chain([state.min_log_to_keep]).max().unwrap_or(0);
    state.next_file.max(named.saturating_add(1))
}

/// Whether a database in this state can be written to: its counters have room.
///
/// # Errors
/// Corruption, with what to do: no counter gets that far by being counted up.
pub fn check_room(state: &ManifestState) -> Result<()> {
    if state.next_file > NUMBER_MAX {
        let what = format!(
            "it counts or names file numbers up to {}, which no counter has reached",
            state.next_file - 1
        );
        return Err(Error::corruption(format!("{what}; {WAY_OUT}")));
    }
    check_seqs(state.last_seq)
}

/// Whether a database whose last write had number `last` can be written to.
///
/// # Errors
/// As [`check_room`].
pub fn check_seqs(last: Seq) -> Result<()> {
    if last > MAX_SEQ - SEQS_LEFT {
        let what = format!("its last write has number {last}, and the largest is {MAX_SEQ}");
        return Err(Error::corruption(format!("{what}; {WAY_OUT}")));
    }
    Ok(())
}

/// Whether the numbers from `next` on are enough for the entries of a memtable.
pub fn fits_memtable(next: Seq) -> bool {
    next <= MAX_SEQ - SEQS_OF_MEMTABLE
}

#[cfg(test)]
mod tests;
