//! What a database is opened with: settings, functions of the program's, the world, and what stands between the
//! database and its file system.
//!
//! Keeps: nothing is opened or written here but by the callers of [`OpenOptions::hold`].
//! Leaves to others: the opening itself (`lithify_tree`), the settings (`lithify_settings`).
#![forbid(unsafe_code)]

mod family;
mod files;
mod options;

pub use family::{ColumnFamilyOptions, Components};
pub use files::{Files, Handle, follower_fs, layered};
pub use options::{Making, OpenOptions, denied_by, machine};
