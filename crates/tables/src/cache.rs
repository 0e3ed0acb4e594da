//! Caches over table files: uncompressed blocks ([`BlockCache`], of one database or of several) and open
//! readers ([`TableCache`]).

mod block;
mod missed;
mod shared;
mod table;

pub(crate) use block::check_may_read;
pub use block::{BlockCache, CacheCounts, CachedFile, in_memory_only, thread_hits};
pub use shared::{BLOCKS_LEAST, SharedCache};
pub use table::{TableCache, TableOptions};

pub use crate::sst::PinnedSlice;
