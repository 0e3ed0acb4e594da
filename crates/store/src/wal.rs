//! Write-ahead logs as files: [`WalWriter`] appends commit groups, [`replay`] brings them back.

mod reader;
mod writer;

pub use lithify_format::wal::{Predecessor, SealReason};
pub use reader::{Cut, OnRot, Replay, ReplayedLog, replay};
pub use writer::WalWriter;

#[cfg(test)]
mod tests;
