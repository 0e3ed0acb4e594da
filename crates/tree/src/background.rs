//! Background work: jobs, what callers wait for, and upkeep.

pub(crate) mod disk;
pub(crate) mod jobs;
pub(crate) mod keep;
pub(crate) mod pause;
pub(crate) mod settle;
pub(crate) mod upkeep;
pub(crate) mod waiting;
