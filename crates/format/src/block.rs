//! Restart-point blocks: sorted entries with prefix compression, the unit of every table.
//!
//! ```text
//! entry  = varint32 shared, varint32 unshared, varint32 value length, key tail, value
//! block  = entry* , u32 restart offset* , u32 footer word (restart count, flags above bit 27)
//! ```
//!
//! Keeps: `shared` counts bytes in common with the key before it and is 0 at restart points, so a
//! reader can start at any of them; keys of data blocks are whole *internal* keys (R2).
//! Leaves to others: checksums and compression (the trailer), and what keys mean.
//!
//! Worked example with restart interval 2: keys `apple`, `apply`, `bee` become
//! `0 5 . apple`, `4 1 . y`, `0 3 . bee`; restart offsets point at the first and the third.

mod build;
mod cursor;
mod iter;
mod layout;
mod trailer;
mod walk;

pub use build::{BlockBuilder, common_prefix};
pub use iter::{BlockIter, IndexForm, IndexIter, IndexKeys};
pub use layout::Layout;
pub use trailer::{BlockCheck, TRAILER_LEN, split as split_trailer};
pub use walk::BlockEntry;

#[cfg(test)]
mod tests;
