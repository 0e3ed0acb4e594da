//! Tables: RocksDB's block-based files. See each module for one part.

pub mod handle;
