//! Write-ahead logs as files: one is written ([`WalWriter`]), many are replayed ([`replay`]).
//!
//! Keeps: what a log promises is true. A seal with a synced offset above zero is written only
//! when every earlier log is durable as well, so one good seal vouches for all that lies before
//! it, across files. Records of one log, and logs among each other, carry contiguous sequence
//! numbers; a jump (writes that skipped the log) is announced by a seal.
//! Leaves to others: group commit, memtables, when a log is replaced, and deleting it.
//!
//! Worked example, three logs of one database:
//! ```text
//!   000005.log  start 0 | 1..4 | 5..9 | close 9          closed and synced
//!   000008.log  after 000005 (9) | 10..12 | close 12     its close is still under way
//!   000011.log  after 000008 (12) | 13 | 14..20          acknowledged to the OS only
//! ```
//! After a kill everything up to 20 is there: the closing seal of 000008 may be missing, but its
//! last number is the one that 000011 names. After a power loss 000008 may end at 10: no seal of
//! 000011 promises anything, so the database goes back to 10 and 000011 is ignored. Had 000011 a
//! seal that promises, the short 000008 would be rot, and an error.

mod chain;
mod content;
mod prepared;
mod reader;
mod writer;

pub use chain::WalEnd;
pub use content::{end_of_log, read_log};
pub use prepared::{Prepared, Section};
pub use reader::{Cut, LOG_END, OnRot, Replay, ReplayedLog, bytes_logged, log_numbers, replay};
pub use writer::{NewLog, WalWriter};

#[cfg(test)]
mod tests;
