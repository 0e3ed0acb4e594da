//! The end of a database and of a single family, and whether the directory is still ours.

pub(crate) mod closing;
pub(crate) mod dropping;
pub(crate) mod ending;
pub(crate) mod owner;
