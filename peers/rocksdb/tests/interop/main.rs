//! RocksDB and Lithify read each other's files.
//!
//! [`foreign_tables`]: tables of RocksDB, in every format version it writes and with every option
//! that changes their bytes, read by our reader. [`our_tables`]: tables of ours, ingested by
//! RocksDB. [`outside`]: tables made outside of any database, ingested by the other engine.
//! [`directories`]: whole databases opened by the other engine. [`migration`]: moves from RocksDB
//! and LevelDB to us and back. [`golden`]: the small directories that the plain tests read.
//!
//! `cargo xtask interop` fetches RocksDB's library and LevelDB's Python binding, and runs them.

mod c_api;
mod directories;
mod foreign_tables;
mod golden;
mod history;
mod migration;
mod our_tables;
mod outside;
mod read;
