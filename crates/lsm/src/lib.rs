//! The noun model of the tree: values with cheap clones and no behaviour beyond themselves.
//!
//! A [`FileMeta`] sits at one position `(level, stratum)`. The files of one position are disjoint
//! in user keys and form a [`Run`]; the runs of a level, newest first, are a [`Level`]; seven
//! levels are a [`Version`]. A version is immutable: [`Version::apply`] folds an [`Edit`] into the
//! next one and is the only constructor, so every version that exists has passed [`check`].
//!
//! This room performs no IO, reads no clock and decides nothing: `plan` decides, `store` writes.
#![forbid(unsafe_code)]

pub mod bucket;
pub mod check;
pub mod edit;
pub mod file;
pub mod index;
pub mod level;
pub mod picture;
pub mod run;
pub mod version;

pub use bucket::{BucketMap, BucketStat};
pub use check::Violation;
pub use edit::Edit;
pub use file::{FileMeta, FileRef};
pub use level::Level;
pub use run::Run;
pub use version::Version;

#[cfg(test)]
mod tests;
