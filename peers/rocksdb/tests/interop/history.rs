//! What was written, entry by entry, and what a reader must therefore see at any moment.

use std::collections::BTreeMap;

use lithify_base::{Kind, Seq};

/// One write of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub key: Vec<u8>,
    pub seq: Seq,
    pub kind: Kind,
    pub value: Vec<u8>,
}

/// One deletion of the keys from `lo` on below `hi`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    pub lo: Vec<u8>,
    pub hi: Vec<u8>,
    pub seq: Seq,
}

/// Everything that was written, in any order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    pub entries: Vec<Entry>,
    pub ranges: Vec<Range>,
}

impl History {
    /// Puts the entries into the order of a table: by key, newest first.
    pub fn sort(&mut self) {
        self.entries.sort_by(|a, b| a.key.cmp(&b.key).then(b.seq.cmp(&a.seq)));
    }

    /// Newest deletion of a range over `key` at or below `at`.
    pub fn covering(&self, key: &[u8], at: Seq) -> Option<Seq> {
        let over = |r: &&Range| r.seq <= at && r.lo.as_slice() <= key && key < r.hi.as_slice();
        self.ranges.iter().filter(over).map(|r| r.seq).max()
    }

    /// What a reader sees at `at`. Needs [`sort`](History::sort) before. Operands are joined by
    /// commas, as [`join_operands`] has RocksDB do it.
    pub fn view(&self, at: Seq) -> BTreeMap<Vec<u8>, Vec<u8>> {
        let versions = self.entries.chunk_by(|a, b| a.key == b.key);
        versions.filter_map(|v| Some((v[0].key.clone(), self.value_of(v, at)?))).collect()
    }

    fn value_of(&self, versions: &[Entry], at: Seq) -> Option<Vec<u8>> {
        let hidden = self.covering(&versions[0].key, at);
        let mut parts: Vec<&[u8]> = Vec::new();
        for entry in versions.iter().filter(|e| e.seq <= at) {
            if hidden.is_some_and(|h| h > entry.seq) || entry.kind.is_delete() {
                break;
            }
            parts.push(&entry.value);
            if entry.kind == Kind::Value {
                break;
            }
        }
        parts.reverse();
        (!parts.is_empty()).then(|| parts.join(&b","[..]))
    }
}

/// The merge operator of these tests: what is there, then the operands, with commas between.
pub fn join_operands(
    _key: &[u8],
    there: Option<&[u8]>,
    operands: &rocksdb::MergeOperands,
) -> Option<Vec<u8>> {
    let parts: Vec<&[u8]> = there.into_iter().chain(operands).collect();
    Some(parts.join(&b","[..]))
}
