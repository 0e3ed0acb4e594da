//! A whole database under chosen schedules: every lock and every atomic of the engine is a place at
//! which another thread may go on. Run by `cargo xtask shuttle`; without the checker there is nothing
//! here.
//!
//! [`writes`] writers, memtables and groups; [`views`] readers and what they pin; [`ends`] closes,
//! failures and callers that wait.
#![cfg(shuttle)]
#![allow(unreachable_pub, reason = "modules of a test")]

mod ends;
mod views;
mod world;
mod writes;
