//! Bytes and values: tables in RocksDB's formats, their blocks and codecs, sums and varints.
//!
//! Keeps: decoders take `&[u8]` and return typed errors; no input makes them panic, recurse or
//! allocate without bound. Encoders are deterministic: the same values give the same bytes.
//! Leaves to others: logs, the manifest and options (`journal`), files, caches, keys' meaning, and when
//! anything is written.
#![forbid(unsafe_code)]

pub mod block;
pub mod checksum;
pub mod compress;
pub mod filter;
pub mod limits;
pub mod table;
pub mod varint;
pub mod weight;
pub mod xxph3;
