//! RocksDB's C interface over Lithify: a program that was compiled against RocksDB's header links against
//! this library and runs on a Lithify database.
//!
//! Every exported function has a class, which `symbols.txt` lists: *exact* does what RocksDB documents,
//! *noted* is recorded and has no effect, *refused* makes the next call that can fail say why. What could
//! neither fail nor answer truthfully is not exported, so that the linker names it.
//!
//! Keeps: all unsafe code is in `raw` (pointers in and out, the wall against panics) and in
//! `callbacks` (calls of the program's functions). No allocator is set and no thread is started
//! before a database is opened.
//! Leaves to others: everything that a database does (`lithify`).
#![deny(unsafe_code)]
#![recursion_limit = "256"]

mod backups;
mod batch;
#[allow(unsafe_code, reason = "calls the program's functions")]
mod callbacks;
mod db;
mod face;
mod figures;
mod iter;
mod kept;
mod last;
mod log_file;
mod options;
mod own;
mod perf;
mod places;
mod points;
#[allow(unsafe_code, reason = "pointers in and out")]
mod raw;
mod refused;
mod shared;
mod small;
mod statistics;
mod status;
mod table;
mod text;
mod transactions;
mod updates;
mod users;
