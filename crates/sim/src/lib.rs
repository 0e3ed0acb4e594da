//! The simulated world: a disk that can lose power at any moment, time that stands still, jobs
//! whose order is chosen, and a model that knows what must be left.
//!
//! [`explore`](explore::explore) records the life of a database on a [simulated
//! disk](disk::Disk) and then crashes it at every position of its log, in each of the
//! [ways](crash::Kind) that a power loss has; every image is opened and held against the model.
//! Whatever could go one way or another is a [choice](choices), so a failure is a short list of
//! numbers: a [plan](plan::Plan). [`sweep`] leaves nothing to choice: it crashes and disturbs every
//! step of the [canonical workloads](workloads).
//!
//! Leaves to others: threads that run at the same time, real disks, hostile bytes.
#![forbid(unsafe_code)]

pub mod choices;
pub mod crash;
pub mod crew;
pub mod disk;
pub mod explore;
pub mod marks;
pub mod model;
pub mod plan;
pub mod pump;
pub mod shortage;
pub mod shrink;
pub mod simfs;
pub mod sweep;
pub mod workloads;
pub mod world;
