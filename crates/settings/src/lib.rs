//! What a user may set, as one table (`table.rs`): a row has a setting's name, unit, range, default, the
//! reason for that, whether an open database can change it, and RocksDB's name. Everything else follows
//! from the rows: the fields of [`Settings`] and their docs, `NAME=VALUE` text, range checks, what
//! `lithify settings` prints, the page `docs/settings.md`, and OPTIONS files in both directions.
//!
//! Keeps: every field of [`Settings`] is one row, but for the directories of tables, which no file of a
//! database may say; what a row shows as text, it reads back as the same value. Two groups of rows ([`Group`]):
//! at most 40 that a user sees first, and those that are there for
//! RocksDB's sake.
//! Leaves to others: what the settings do (the package `lithify`), and components such as comparators and
//! merge operators, which go through its `Builder`.
//!
//! Start reading at the head of `table.rs`, which explains the columns.
#![forbid(unsafe_code)]

mod budget;
mod check;
mod dirs;
mod explain;
mod memory;
mod options;
pub mod proportion;
mod rocksdb;
mod row;
mod stored;
mod table;
mod text;
mod values;

pub use budget::Budget;
pub use explain::EffectiveSetting;
pub use lithify_files::dir::TableDir;
#[doc(inline)]
pub use lithify_plan::{CompactionPri, PolicyKind as Policy};
pub use memory::{buffer_bytes, cache_bytes, jobs};
pub use options::{Described, RESTART_INTERVAL, options_text};
pub use row::{Group, Range, Row, Scope, Unit, row};
pub use table::{ROWS, Settings};
pub use values::{Compression, Durability};
