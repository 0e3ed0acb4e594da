//! RocksDB and Lithify read each other's files.
//!
//! [`foreign_tables`]: tables of RocksDB, in every format version it writes and with every option
//! that changes their bytes, read by our reader. [`our_tables`]: tables of ours, ingested by
//! RocksDB. [`outside`]: tables made outside of any database, ingested by the other engine.
//! [`filters`]: every filter at every version of tables. [`directories`]: whole databases opened by the
//! other engine. [`operands`]: merge operands and single deletions, in tables and directories, both
//! ways. [`refused`]: what is not taken over. [`migration`]: moves from RocksDB and LevelDB to us and
//! back. [`families_killed`]: the same with several column families and kills. [`golden`]: the small
//! directories that the plain tests read.
//! [`lives`]: hundreds of directories by long random lives of RocksDB, which go on here.
//!
//! `cargo xtask interop` fetches RocksDB's library and LevelDB's Python binding, and runs them.

mod c_api;
mod directories;
mod families_killed;
mod filters;
mod foreign_tables;
mod golden;
mod history;
mod lives;
mod migration;
mod operands;
mod our_tables;
mod outside;
mod read;
mod refused;
