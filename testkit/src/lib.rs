//! What tests of several rooms share. Yard: it may look into every room, and no product code may
//! look back.
#![forbid(unsafe_code)]

pub mod datadriven;
#[cfg(shuttle)]
pub mod schedules;
