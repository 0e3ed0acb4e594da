//! Caches over table files: uncompressed blocks ([`BlockCache`]) and open readers
//! ([`TableCache`]).

mod block;
mod table;

pub(crate) use block::check_may_read;
pub use block::{BlockCache, CacheCounts, CachedFile, in_memory_only, thread_hits};
pub use table::{TableCache, TableOptions};

pub use crate::sst::PinnedSlice;
