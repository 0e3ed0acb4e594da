//! The settings, which a room of their own keeps (`crates/settings`), under the names that users have for
//! them, and what the rooms below make of them.

pub(crate) mod translate;

#[doc(inline)]
pub use lithify_settings::{
    Budget, CompactionPri, Compression, Durability, EffectiveSetting, Policy, Settings,
};
