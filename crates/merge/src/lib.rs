//! Data kernels of compaction and flush, shared by every engine: clean cut, merge, drop rules,
//! grid cut, encoding, conservation ledger, certification.
//!
//! Keeps: output bytes are a pure function of the recipe and the input entries (rules R1 to R9,
//! `docs/formats/sst.md`).
//! The fast kernel has a naive twin that follows the rules as they are written (`naive`). The cargo feature
//! `testing` brings it, and generated cases for both (`workload`); a build without it has neither.
//! Leaves to others: files, job ids, policies, threads and clocks.
#![forbid(unsafe_code)]

pub mod certify;
mod chain;
pub mod cleancut;
mod copy;
pub mod cut;
mod encode;
mod gc;
pub mod kernel;
pub mod ledger;
pub mod loan;
#[cfg(any(test, feature = "testing"))]
pub mod naive;
pub mod offload;
pub mod products;
pub mod prove;
pub mod recipe;
pub mod set;
pub mod tombstone;
pub mod tree;
pub mod view;
#[cfg(any(test, feature = "testing"))]
pub mod workload;
mod zone;

pub use encode::Carry;
pub use kernel::{Kernel, Work};
pub use ledger::Ledger;
pub use offload::Offload;
pub use products::{BlockMeta, FileCut, Item, Lent, Products, SLICE_BYTES, SetDone};
pub use recipe::{InUse, Recipe, UserFilter};
pub use set::{BlockSet, BlockSlice, Bytes, CleanRange, JobRange, RunSlice};
pub use tombstone::{Fragment, FragmentCursor, Fragments, RangeTombstone, Tomb};
