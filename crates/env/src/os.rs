//! The real world: the only place that names the operating system.
//!
//! `std::fs`, the clocks, thread creation and raw memory are banned elsewhere; here they are
//! wrapped into the seams of this crate. All `unsafe` code of the crate is in `pages`, `bytes` and `heap`.

#![allow(clippy::disallowed_methods, reason = "this module is what the others are told to use")]

pub(crate) mod bytes;
mod folder;
mod fork;
pub(crate) mod heap;
pub mod holders;
mod lane;
mod lock;
pub(crate) mod pages;
pub mod posix;
mod processors;
pub mod rt;

pub use processors::processors;
