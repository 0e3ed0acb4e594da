//! What a database writes about itself, as bytes and values: names of files, the write-ahead log, the
//! manifest and options in RocksDB's formats.
//!
//! Keeps: decoders take `&[u8]` and return typed errors; no input makes them panic, recurse or
//! allocate without bound. Encoders are deterministic: the same values give the same bytes.
//! Leaves to others: tables and sums (`format`), files, and when anything is written.
#![forbid(unsafe_code)]

pub mod files;
pub mod manifest;
pub mod options;
pub mod wal;

#[cfg(test)]
mod tests;
