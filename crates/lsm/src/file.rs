//! What the tree knows about one table file. Facts only: they are written once, when the file is
//! installed, and a file that moves is described anew at its new position.

use std::sync::Arc;

use lithify_base::{FileId, KeyRange, MAX_SEQ, Pos, Seq, Tag, key::Kind};

/// A shared, immutable file description.
pub type FileRef = Arc<FileMeta>;

/// One table file at one position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileMeta {
    /// Number in the database directory.
    pub id: FileId,
    /// Where it sits in the tree.
    pub pos: Pos,
    /// User keys it may hold: point keys and range tombstones. Exclusive at the end if the last
    /// thing in the file is a range tombstone.
    pub range: KeyRange,
    /// Tag of the smallest internal key.
    pub lo_tag: Tag,
    /// Tag of the largest internal key. An exclusive end has [`FileMeta::EXCLUSIVE_END`].
    pub hi_tag: Tag,
    /// Size on disk, in bytes.
    pub bytes: u64,
    /// Point entries.
    pub entries: u64,
    /// Point deletions among `entries`.
    pub deletes: u64,
    /// Range tombstones.
    pub range_deletes: u64,
    /// Sum of user key lengths over `entries`, before compression.
    pub raw_key_bytes: u64,
    /// Sum of value lengths over `entries`, before compression.
    pub raw_value_bytes: u64,
    /// Smallest and largest sequence number inside.
    pub seqs: (Seq, Seq),
    /// RocksDB's epoch number: age among level 0 files for an engine without strata.
    pub epoch: u64,
    /// Base of the per-block checksum context (format version 6), 0 if the file has none.
    pub base_context: u32,
    /// Bytes after the last data block: index, filter, properties, footer. 0 if not known.
    pub tail_bytes: u64,
    /// Creation time, in seconds since 1970.
    pub created: u64,
    /// Creation time of the oldest file whose entries ended here, in seconds since 1970.
    pub oldest_ancestor: u64,
    /// It should be compacted soon: it had many deletions when it was made.
    pub marked: bool,
    /// Which of its family's table directories it is in: RocksDB's path id.
    pub place: u8,
    /// The physical file, if this one is a slice of it.
    pub backing: Option<FileId>,
}

impl FileMeta {
    /// The tag that marks an exclusive end: it sorts before every entry of the end key.
    pub const EXCLUSIVE_END: Tag = Tag(MAX_SEQ << 8 | Kind::RangeDelete as u64);

    /// A file description with all counts zero.
    pub fn new(id: FileId, pos: Pos, range: KeyRange) -> FileMeta {
        let hi_tag =
            if range.hi.inclusive { Tag::new(0, Kind::Value) } else { FileMeta::EXCLUSIVE_END };
        FileMeta {
            id,
            pos,
            range,
            lo_tag: Tag::new(0, Kind::Value),
            hi_tag,
            bytes: 0,
            entries: 0,
            deletes: 0,
            range_deletes: 0,
            raw_key_bytes: 0,
            raw_value_bytes: 0,
            seqs: (0, 0),
            epoch: 0,
            base_context: 0,
            tail_bytes: 0,
            created: 0,
            oldest_ancestor: 0,
            marked: false,
            place: 0,
            backing: None,
        }
    }

    /// The same file at another position, as a trivial move installs it.
    pub fn moved(&self, pos: Pos) -> FileMeta {
        FileMeta { pos, ..self.clone() }
    }

    /// Size with deletions weighted up, so that files full of them are compacted early.
    ///
    /// RocksDB's rule (`ComputeCompensatedSizes`): once deletions are at least half of the
    /// entries, each surplus one counts as twice the average value it will free.
    pub fn compensated_bytes(&self) -> u64 {
        let puts = self.entries.saturating_sub(self.deletes);
        let twice = self.deletes.saturating_mul(2);
        if puts == 0 || twice < self.entries {
            return self.bytes;
        }
        let surplus = twice - self.entries;
        let value = self.raw_value_bytes / puts;
        self.bytes.saturating_add(surplus.saturating_mul(value).saturating_mul(2))
    }
}
