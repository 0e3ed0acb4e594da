//! The manifest as a file: [`ManifestLog`] appends edits and starts new manifests, [`recover()`]
//! reads the live one, [`count_tables`] asks the tables of a foreign one what they hold, and
//! [`translate`] maps between the tree's nouns and the wire form.

mod count;
mod ends;
mod log;
mod recover;
mod state;
pub mod translate;

pub use count::count_tables;
pub(crate) use count::counts_of;
pub(crate) use ends::name_ends;
pub use log::ManifestLog;
pub(crate) use recover::timestamps;
pub use recover::{
    Orders, Recovered, check_empty, family_version, known_order, newest_readable, recover,
};
pub use state::manifest_state;

#[cfg(test)]
mod tests;
