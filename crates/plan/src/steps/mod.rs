//! Steps: kinds of jobs that several policies wish for. Each offers what it finds and says whether
//! that was taken; in which order they are asked, and when, is a policy's.

pub(crate) mod among_l0;
pub(crate) mod buckets;
pub(crate) mod descent;
pub(crate) mod extras;
pub(crate) mod l0;
pub(crate) mod stacking;
