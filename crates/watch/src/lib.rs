//! A database looked at from outside, beside the program that writes it: what `lithify top`, `explain` and `picture`
//! read, and the page that `lithify serve` shows.
//!
//! Keeps: nothing is locked, nothing is written and no table is opened. What is read is names and sizes of files,
//! the manifest and the event log; a look reads only what is new in them, so it costs a writer beside it as good
//! as nothing. Foreign bytes (names, keys, requests) become text that acts on no terminal and no page.
//! Leaves to others: what a program knows of its own database (`Db::stats`, `Db::explain`); flags, and printing.
//!
//! Start at [`watch`]: one look, and what is kept of those before it. [`server`] answers requests with it.
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "the roof talks to the world itself")]

pub mod events;
pub mod growth;
pub mod history;
pub mod http;
mod metrics;
mod page;
pub mod server;
mod state;
pub mod tree;
pub mod watch;

pub use watch::Watch;
