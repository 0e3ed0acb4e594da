//! The manifest as a file: [`ManifestLog`] appends edits and starts new manifests, [`recover()`]
//! reads the live one, and [`translate`] maps between the tree's nouns and the wire form.

mod log;
mod recover;
pub mod translate;

pub use log::ManifestLog;
pub use recover::{Recovered, family_version, recover};

#[cfg(test)]
mod tests;
