//! What the database says about itself: statistics, explanations, events.

pub(crate) mod deliver;
pub(crate) mod events;
pub(crate) mod explain;
pub(crate) mod field;
pub(crate) mod listener;
pub(crate) mod metrics;
pub(crate) mod property;
pub(crate) mod stats;
