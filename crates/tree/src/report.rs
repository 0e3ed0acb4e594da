//! What the database says about itself: statistics, explanations, events.

pub(crate) mod deliver;
pub(crate) mod explain;
pub(crate) mod files;
pub(crate) mod property;
pub(crate) mod stats;
