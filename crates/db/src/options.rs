//! Options of a single read or write.

use lithify_base::Key;

use crate::cancel::CancelToken;
use crate::settings::Durability;
use crate::snapshot::Snapshot;

/// Options of one write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// How far the write must have travelled before it is acknowledged; `None` takes the
    /// database's setting.
    pub durability: Option<Durability>,
    /// Fail with [`ErrorKind::Stalled`](crate::ErrorKind::Stalled) instead of waiting while
    /// writes are held back.
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
    /// Calls it off, from any thread; `None` if nobody will.
    pub cancel: Option<CancelToken>,
}

/// Options of one read or iterator.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// Read the database as of this snapshot; `None` reads what is there now.
    pub snapshot: Option<Snapshot>,
    /// An iterator shows no key below this one.
    pub lower_bound: Option<Key>,
    /// An iterator shows no key from this one on.
    pub upper_bound: Option<Key>,
    /// An iterator leaves the blocks it fetches out of the cache: right for one-off scans. Reads of
    /// single keys always cache what they fetch.
    pub skip_cache_fill: bool,
}

impl ReadOptions {
    /// At a snapshot.
    pub fn at(snapshot: &Snapshot) -> ReadOptions {
        ReadOptions { snapshot: Some(snapshot.clone()), ..ReadOptions::default() }
    }
    /// Only keys that start with `prefix` (in byte order).
    #[must_use]
    pub fn with_prefix(mut self, prefix: impl AsRef<[u8]>) -> ReadOptions {
        let prefix = prefix.as_ref();
        self.lower_bound = Some(prefix.into());
        // The end: the prefix with its last byte below 0xff raised, and cut there.
        self.upper_bound = prefix.iter().rposition(|&b| b != 0xff).map(|i| {
            let mut end = prefix[..=i].to_vec();
            end[i] += 1;
            end.into()
        });
        self
    }
    /// Only keys from `lower` on and below `upper`.
    #[must_use]
    pub fn with_bounds(
        mut self,
        lower: Option<impl AsRef<[u8]>>,
        upper: Option<impl AsRef<[u8]>>,
    ) -> ReadOptions {
        self.lower_bound = lower.map(|k| k.as_ref().into());
        self.upper_bound = upper.map(|k| k.as_ref().into());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_where_its_successor_starts() {
        let end = |p: &[u8]| ReadOptions::default().with_prefix(p).upper_bound.map(|k| k.to_vec());
        assert_eq!(end(b"ab"), Some(b"ac".to_vec()));
        assert_eq!(end(b"a\xff\xff"), Some(b"b".to_vec()));
        assert_eq!(end(b"\xff"), None);
        assert_eq!(end(b""), None);
    }
}
