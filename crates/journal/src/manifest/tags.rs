//! Tag numbers of version edits. On disk and frozen.
//!
//! An edit tag with bit 13 set may be skipped by a reader that does not know it; its payload has
//! its length before it. A custom tag of an added file may be skipped unless bit 6 is set.

/// Edit tags with this bit may be skipped.
pub const EDIT_IGNORABLE: u32 = 1 << 13;
/// Custom tags of added files with this bit must be understood.
pub const FILE_BINDING: u32 = 1 << 6;

/// Tags of an edit.
pub(super) mod edit {
    pub(crate) const COMPARATOR: u32 = 1;
    pub(crate) const LOG_NUMBER: u32 = 2;
    pub(crate) const NEXT_FILE: u32 = 3;
    pub(crate) const LAST_SEQ: u32 = 4;
    pub(crate) const COMPACT_CURSOR: u32 = 5;
    pub(crate) const DELETED_FILE: u32 = 6;
    pub(crate) const NEW_FILE: u32 = 7;
    pub(crate) const PREV_LOG: u32 = 9;
    pub(crate) const MIN_LOG_TO_KEEP: u32 = 10;
    pub(crate) const NEW_FILE_2: u32 = 100;
    pub(crate) const NEW_FILE_3: u32 = 102;
    pub(crate) const NEW_FILE_4: u32 = 103;
    pub(crate) const COLUMN_FAMILY: u32 = 200;
    pub(crate) const COLUMN_FAMILY_ADD: u32 = 201;
    pub(crate) const COLUMN_FAMILY_DROP: u32 = 202;
    pub(crate) const MAX_COLUMN_FAMILY: u32 = 203;
    pub(crate) const ATOMIC_GROUP: u32 = 300;
    pub(crate) const BLOB_ADDITION: u32 = 400;
    pub(crate) const BLOB_GARBAGE: u32 = 401;
    pub(crate) const DB_ID: u32 = 8193;
    pub(crate) const BLOB_ADDITION_OLD: u32 = 8194;
    pub(crate) const BLOB_GARBAGE_OLD: u32 = 8195;
    /// The first forms of the WAL tags have no length before their payload.
    pub(crate) const WAL_ADDITION_OLD: u32 = 8196;
    pub(crate) const WAL_DELETION_OLD: u32 = 8197;
    pub(crate) const FULL_HISTORY_TS_LOW: u32 = 8198;
    pub(crate) const WAL_ADDITION: u32 = 8199;
    pub(crate) const WAL_DELETION: u32 = 8200;
    pub(crate) const PERSIST_TIMESTAMPS: u32 = 8201;
    /// Ours: the bucket map, a hint.
    pub(crate) const BUCKET_HINT: u32 = 0x6C69;
    /// Ours: job and attempt that made the edit, for audit.
    pub(crate) const JOB: u32 = 0x6C6A;
    /// Ours: which manifest the edit was written for, and which edit of it this is.
    pub(crate) const PLACE: u32 = 0x6C6B;
    /// Ours: the first log with a section of a prepared transaction that counts; 0 if there is none.
    pub(crate) const SECTIONS_FROM: u32 = 0x6C6C;
    const _: () = assert!(BUCKET_HINT & JOB & PLACE & SECTIONS_FROM & super::EDIT_IGNORABLE != 0);
}

/// Fields of a WAL addition.
pub(super) mod wal {
    pub(crate) const END: u32 = 1;
    pub(crate) const SYNCED_SIZE: u32 = 2;
}

/// Custom tags of an added file.
pub(super) mod file {
    pub(crate) const END: u32 = 1;
    pub(crate) const NEED_COMPACTION: u32 = 2;
    pub(crate) const MIN_LOG_TO_KEEP: u32 = 3;
    pub(crate) const OLDEST_BLOB_FILE: u32 = 4;
    pub(crate) const OLDEST_ANCESTOR_TIME: u32 = 5;
    pub(crate) const CREATION_TIME: u32 = 6;
    pub(crate) const CHECKSUM: u32 = 7;
    pub(crate) const CHECKSUM_FUNCTION: u32 = 8;
    pub(crate) const TEMPERATURE: u32 = 9;
    pub(crate) const MIN_TIMESTAMP: u32 = 10;
    pub(crate) const MAX_TIMESTAMP: u32 = 11;
    pub(crate) const UNIQUE_ID: u32 = 12;
    pub(crate) const EPOCH: u32 = 13;
    pub(crate) const RANGE_DELETION_SIZE: u32 = 14;
    pub(crate) const TAIL_SIZE: u32 = 15;
    pub(crate) const TIMESTAMPS_PERSISTED: u32 = 16;
    pub(crate) const PATH_ID: u32 = 65;
    /// Ours: stratum inside a level below 0. Binding: RocksDB refuses instead of misreading.
    pub(crate) const STRATUM: u32 = 0x4C40;
    /// Ours: the file whose bytes a virtual slice uses. Binding.
    pub(crate) const BACKING: u32 = 0x4C41;
    /// Ours: base context of the file's block checksums. Ignorable.
    pub(crate) const BASE_CONTEXT: u32 = 0x4C01;
    /// Ours: entry counts, so that opening a database reads no table. Ignorable.
    pub(crate) const COUNTS: u32 = 0x4C02;
    const _: () = assert!(STRATUM & BACKING & super::FILE_BINDING != 0);
    const _: () = assert!((BASE_CONTEXT | COUNTS) & super::FILE_BINDING == 0);
}
