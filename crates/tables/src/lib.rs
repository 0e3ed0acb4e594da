//! Tables as files: written, read and checked ([`sst`]), and kept open and in memory ([`cache`]).
//!
//! Keeps: every block read from disk is checked before it is believed, and a failed read is an
//! error with file and offset, never a shorter answer.
//! Leaves to others: names and the directory (`files`), why a table exists and which version holds it.
#![forbid(unsafe_code)]

pub mod cache;
pub mod sst;

#[cfg(any(test, feature = "testing"))]
pub mod testing;
