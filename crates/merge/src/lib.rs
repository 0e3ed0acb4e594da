//! Data kernels of compaction and flush, shared by every engine: clean cut, merge, drop rules,
//! grid cut, encoding, conservation ledger, certification.
//!
//! Keeps: output bytes are a pure function of the recipe and the input entries (rules R1 to R9,
//! `docs/formats/sst.md`).
//! The fast kernel has a [`naive`] twin that follows the rules as they are written.
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
pub mod naive;
pub mod offload;
pub mod products;
pub mod prove;
pub mod recipe;
pub mod set;
pub mod tombstone;
pub mod tree;
pub mod view;
pub mod workload;
mod zone;

pub use encode::Carry;
pub use kernel::{Kernel, Work};
pub use ledger::Ledger;
pub use offload::Offload;
pub use products::{BlockMeta, FileCut, Item, Lent, Products, SetDone};
pub use recipe::{InUse, Recipe, UserFilter};
pub use set::{BlockSet, BlockSlice, Bytes, CleanRange, JobRange, RunSlice};
pub use tombstone::{Fragment, FragmentCursor, Fragments, RangeTombstone, Tomb};
