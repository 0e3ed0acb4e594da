//! Tables: RocksDB's block-based files, one part per module.
//!
//! ```text
//! data block*                                            from engines
//! filter, index partition*, index, dictionary,           the tail
//!   lithify.blocks, range-del, properties, meta-index, footer
//! ```
//!
//! Keeps: data blocks come from engines; everything behind them is built by [`tail`] from block
//! metadata alone, the same code for every engine (R8), without padding (R4).
//! Leaves to others: reading and writing files, caching blocks, deciding what a table holds.

pub mod blocks_meta;
pub mod footer;
pub mod handle;
pub mod index;
pub mod metaindex;
#[cfg(any(test, feature = "testing"))]
pub mod naive;
pub mod props;
pub mod range_del;
pub mod tail;
