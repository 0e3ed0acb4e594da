//! The manifest: a log of version edits in RocksDB's wire form, with our few tags.
//!
//! [`edit`] is one edit, [`mod@file`] one added file inside it, [`tags`] the frozen numbers, and
//! [`snapshot`] what a manifest adds up to: replaying edits into it and writing it as the first
//! edits of a new manifest.
//!
//! Keeps: plain values, no tree logic: positions, runs and their invariants are `lsm`'s.
//! Leaves to others: CURRENT, syncing, and checking that the files an edit names exist.

pub mod edit;
pub mod file;
pub mod snapshot;
pub mod tags;

pub use edit::{JobTag, Place, WalAddition, WireEdit};
pub use file::WireFile;
pub use snapshot::{
    FamilyState, ManifestRead, ManifestState, ManifestWriter, read_manifest, read_manifest_over,
};
