//! What a reader of a database pins, and how it walks it: the memtables and tables of one moment, the
//! snapshots that keep moments readable, and iterators over them.
//!
//! Keeps: nothing here takes a lock on the way of a read, nor changes anything; what a reader holds stays
//! alive and on disk until it lets go.
//! Leaves to others: which moment is the newest, and when an older one may go (`lithify_tree`).
#![forbid(unsafe_code)]

pub mod entries;
pub mod iter;
pub mod look;
pub mod names;
pub mod operands;
pub mod options;
pub mod snapshot;
pub mod super_version;
pub mod value;
