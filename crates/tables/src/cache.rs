//! Caches over table files: uncompressed blocks ([`BlockCache`]) and open readers
//! ([`TableCache`]).

mod block;
mod table;

pub use block::{BlockCache, CacheCounts, CachedFile};
pub use table::{TableCache, TableOptions};

pub use crate::sst::PinnedSlice;
