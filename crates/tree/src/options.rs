//! Options of a single write or manual compaction.

use crate::settings::Durability;
use lithify_reports::cancel::CancelToken;

/// Options of one write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// How far the write must have travelled before it is acknowledged; `None` takes the
    /// database's setting.
    pub durability: Option<Durability>,
    /// Fail with [`ErrorKind::Stalled`](lithify_base::ErrorKind::Stalled) instead of waiting while
    /// writes are stopped, or slowed down and this one is not due yet.
    pub no_wait: bool,
}

impl WriteOptions {
    /// Acknowledged once on stable storage.
    pub fn sync() -> WriteOptions {
        WriteOptions { durability: Some(Durability::Sync), no_wait: false }
    }
    /// Acknowledged at `durability`.
    pub fn at(durability: Durability) -> WriteOptions {
        WriteOptions { durability: Some(durability), no_wait: false }
    }
}

/// Options of one manual compaction.
#[derive(Clone, Debug, Default)]
pub struct CompactOptions {
    /// Calls it off, from any thread; `None` if it is not to be called off.
    pub cancel: Option<CancelToken>,
    /// Rewrite tables that are where they should be already, too: a new codec, filters of another size
    /// and a compaction filter take effect on all keys, and expired values go. Else only what
    /// lies in several runs is merged. RocksDB's `bottommost_level_compaction` at `kForce`, which
    /// it does by itself if there is a compaction filter. Default: false.
    pub rewrite: bool,
}
