//! Files of the database and of others: imports, ingested tables, OPTIONS, codecs, and what RocksDB's
//! tools say of them.

#[path = "../common/mod.rs"]
mod common;

mod codecs;
mod dictionaries;
mod extreme_numbers;
mod foreign_bounds;
mod golden;
mod import;
mod ingest;
mod ingest_operands;
mod options_file;
mod oracle_tables;
mod partitions;
mod rewrite;
mod settled_for_rocksdb;
mod sparse_copies;
mod table_dirs;
mod targets;
