//! User keys, internal keys and their one total order.
//!
//! An internal key is `user key ++ fixed64_le(seq << 8 | kind)`. Order (R7): user key ascending
//! by the comparator, then the packed tag **descending**, so the newest entry of a key is first.

use std::cmp::Ordering;
use std::fmt;

use crate::comparator::Comparator;
use crate::error::Error;

/// An owned user key: cheap to clone, compared bytewise only through a [`Comparator`].
pub type Key = std::sync::Arc<[u8]>;

/// A sequence number: every write of a database gets the next one. At most [`MAX_SEQ`].
pub type Seq = u64;

/// Largest sequence number (56 bits; the low byte of a tag is the kind).
pub const MAX_SEQ: Seq = (1 << 56) - 1;

/// What an entry says about its key. The numbers are on disk and frozen (RocksDB's).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Kind {
    /// The key has no value from here on.
    Delete = 0x0,
    /// The key has this value.
    Value = 0x1,
    /// An operand to combine with what is older.
    Merge = 0x2,
    /// As `Delete`; the caller promises at most one put before it.
    SingleDelete = 0x7,
    /// Start of a deleted range; only in range-deletion blocks, batches and file bounds.
    RangeDelete = 0xF,
}

impl Kind {
    /// The largest kind number: with [`MAX_SEQ`] it makes the tag that sorts before all
    /// others of a user key, as a seek needs it.
    pub const SEEK: u8 = 0xFF;

    /// The kind of an on-disk number, if this version knows it.
    pub fn from_u8(b: u8) -> Option<Kind> {
        Some(match b {
            0x0 => Kind::Delete,
            0x1 => Kind::Value,
            0x2 => Kind::Merge,
            0x7 => Kind::SingleDelete,
            0xF => Kind::RangeDelete,
            _ => return None,
        })
    }
    /// True for the two point deletions.
    pub fn is_delete(self) -> bool {
        matches!(self, Kind::Delete | Kind::SingleDelete)
    }
}

/// Packed `seq << 8 | kind`, as stored. Larger tags are newer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(pub u64);

impl Tag {
    /// Packs a sequence number and a kind.
    pub fn new(seq: Seq, kind: Kind) -> Tag {
        debug_assert!(seq <= MAX_SEQ);
        Tag(seq << 8 | kind as u64)
    }
    /// The tag at which a search for "the newest entry with sequence number <= `seq`" starts.
    pub fn seek(seq: Seq) -> Tag {
        Tag(seq << 8 | u64::from(Kind::SEEK))
    }
    /// The same kind under another sequence number.
    #[must_use]
    pub fn with_seq(self, seq: Seq) -> Tag {
        Tag(seq << 8 | u64::from(self.kind_byte()))
    }
    /// Sequence number.
    pub fn seq(self) -> Seq {
        self.0 >> 8
    }
    /// Kind number, known or not.
    pub fn kind_byte(self) -> u8 {
        self.0 as u8
    }
    /// Kind, if known.
    pub fn kind(self) -> Option<Kind> {
        Kind::from_u8(self.0 as u8)
    }
}

/// The error for an entry whose kind does not belong among point entries: `Unsupported`, naming the
/// feature of RocksDB that writes such entries, or `Corruption`.
pub fn unknown_kind(kind: u8) -> Error {
    match feature_of(kind) {
        Some(feature) => Error::unsupported(format!(
            "an entry (of kind {kind:#x}) uses {feature}, which this version does not read"
        )),
        None => Error::corruption(format!("an entry of kind {kind:#x} among point keys")),
    }
}

/// The feature of RocksDB to which an entry kind belongs that this version lacks.
pub fn feature_of(kind: u8) -> Option<&'static str> {
    match kind {
        0x9..=0xC => Some("two-phase commit"),
        0x12 | 0x13 | 0x15 => Some("two-phase commit that writes before it commits"),
        0x10 | 0x11 => Some("blob files"),
        0x14 | 0x18 | 0x19 => Some("user-defined timestamps or preferred sequence numbers"),
        0x16 | 0x17 => Some("wide columns"),
        _ => None,
    }
}

/// A borrowed internal key, split into its two parts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct InternalKey<'a> {
    /// User key.
    pub user: &'a [u8],
    /// Sequence number and kind.
    pub tag: Tag,
}

impl<'a> InternalKey<'a> {
    /// Splits encoded bytes; `None` if they are shorter than a tag.
    pub fn decode(bytes: &'a [u8]) -> Option<InternalKey<'a>> {
        let (user, tag) = bytes.split_last_chunk::<8>()?;
        Some(InternalKey { user, tag: Tag(u64::from_le_bytes(*tag)) })
    }
    /// Appends the encoded form to `out`.
    pub fn encode_into(self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.user);
        out.extend_from_slice(&self.tag.0.to_le_bytes());
    }
    /// The encoded form.
    pub fn to_vec(self) -> Vec<u8> {
        let mut v = Vec::with_capacity(self.user.len() + 8);
        self.encode_into(&mut v);
        v
    }
    /// The total order: user key ascending, tag descending.
    pub fn cmp(self, other: InternalKey<'_>, order: &dyn Comparator) -> Ordering {
        order.compare(self.user, other.user).then(other.tag.cmp(&self.tag))
    }
}

impl fmt::Debug for InternalKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.user.escape_ascii(), self.tag.seq())?;
        match self.tag.kind() {
            Some(Kind::Value) => Ok(()),
            Some(k) => write!(f, ":{k:?}"),
            None => write!(f, ":{:#x}", self.tag.kind_byte()),
        }
    }
}
