//! The directory of a database and its write-ahead logs, as files.
//!
//! Keeps: every byte read from disk is checked before it is believed, and a failed read is an
//! error with file and offset, never a shorter answer. Names become durable in one
//! order: content, directory entry, and only then whatever refers to it.
//! Leaves to others: tables (`tables`), the manifest and which files a version holds (`store`), when
//! anything is written.
#![forbid(unsafe_code)]

pub mod dir;
pub mod wal;

#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use dir::{Dir, FileName};
