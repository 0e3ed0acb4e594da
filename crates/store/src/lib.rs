//! A database on disk as a whole: the manifest and its recovery, which files are needed, and all that
//! goes over whole directories: ingest, checkpoint, backup, verify, salvage, and directories of other engines.
//!
//! Keeps: every byte read from disk is checked before it is believed, and a failed read is an
//! error with file and offset, never a shorter answer. Names become durable in one
//! order: content, directory entry, and only then whatever refers to it.
//! Leaves to others: single files (`files`, `tables`), why a file exists, when anything is written.
#![forbid(unsafe_code)]

pub mod backup;
pub mod checkpoint;
mod copy;
pub mod foreign;
pub mod ingest;
pub mod janitor;
pub mod live_file;
pub mod manifest;
pub mod numbers;
pub mod places;
mod props;
pub mod salvage;
pub mod verify;
