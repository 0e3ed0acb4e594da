//! Column families: their lives, copies, many of them, and changes from outside.

#[path = "../common/mod.rs"]
mod common;

mod copies;
mod from_outside;
mod lives;
mod many;
mod told_again;
