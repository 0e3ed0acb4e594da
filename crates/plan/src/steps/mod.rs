//! Steps: kinds of jobs that several policies wish for. Each step looks for the best job of its kind,
//! offers it and says whether it was taken. A policy chooses its steps and their order.

pub(crate) mod among_l0;
pub(crate) mod buckets;
pub(crate) mod descent;
pub(crate) mod extras;
pub(crate) mod gather;
pub(crate) mod l0;
pub(crate) mod rest;
pub(crate) mod stacking;
