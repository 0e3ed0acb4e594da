//! What is done with a directory that is not simply opened: taking over one that RocksDB or LevelDB
//! wrote ([`mod@import`]), taking out what is readable of a damaged one ([`mod@salvage`]), and checking
//! one ([`mod@verify`]).
#![forbid(unsafe_code)]

pub mod import;
pub mod salvage;
pub mod verify;
