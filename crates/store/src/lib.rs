//! Files as objects: tables, logs, the manifest, the directory and the caches over them.
//!
//! Keeps: every byte read from disk is checked before it is believed, and a failed read is an
//! error with file and offset, never a shorter answer. Names become durable in one
//! order: content, directory entry, and only then whoever refers to it.
//! Leaves to others: why a file exists, which files a version holds, when anything is written.
#![forbid(unsafe_code)]

pub mod backup;
pub mod cache;
pub mod checkpoint;
mod copy;
pub mod dir;
pub mod foreign;
pub mod ingest;
pub mod janitor;
pub mod manifest;
pub mod numbers;
pub mod salvage;
pub mod sst;
pub mod verify;
pub mod wal;

#[cfg(test)]
mod testing;

pub use dir::{Dir, FileName};
