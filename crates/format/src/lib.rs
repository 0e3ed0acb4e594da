//! Bytes and values: tables, write-ahead log, manifest and options in RocksDB's formats.
//!
//! Keeps: decoders take `&[u8]` and return typed errors; no input makes them panic, recurse or
//! allocate without bound. Encoders are deterministic: the same values give the same bytes.
//! Leaves to others: files, caches, keys' meaning, and when anything is written.
#![forbid(unsafe_code)]

pub mod block;
pub mod checksum;
pub mod compress;
pub mod files;
pub mod filter;
pub mod limits;
pub mod manifest;
pub mod options;
pub mod table;
pub mod varint;
pub mod wal;
pub mod weight;
pub mod xxph3;
