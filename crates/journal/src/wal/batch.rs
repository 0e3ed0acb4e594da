//! Write batches: the payload of a data record, built in place and read without allocation.
//!
//! `fixed64 first sequence, fixed32 count`, then entries: kind byte, `[varint32 family]`, key,
//! `[value]`, keys and values with a varint32 length before them. Entries of family 0 use the
//! short kinds. Log data takes no sequence number; every other entry takes one.
//!
//! Two-phase commit has marks between the entries. A *section* is what a prepared transaction wrote: it lies
//! between a mark that begins it and one that names the transaction, its entries count in the header, and it
//! takes no sequence numbers, as nothing of it is visible. A later mark says what came of it.
//!
//! ```text
//!   5.log  [begin | put a 1 | prepared "pay"]     nothing is visible, whatever happens
//!   5.log  [ended "pay" | put a 1]                how this store commits: the writes once more
//!   5.log  [committed "pay"]                      how RocksDB does: the writes of the section count from here on
//!   5.log  [ended "pay"]                          a rollback, of either
//! ```
//!
//! Keeps: a [`BatchView`] was checked whole when it was made (every length, kind and the count),
//! so iterating over it cannot fail. Kinds of features this version lacks are refused by name.
//! Leaves to others: limits on sizes, assigning sequence numbers, what merging means, which sections are open.

use lithify_base::key::feature_of;
use lithify_base::{CfId, Error, Kind, MAX_SEQ, Result, Seq, memory};

use lithify_format::varint::{self, Reader};

/// Size of the header: first sequence number and count.
pub const BATCH_HEADER: usize = 12;

const LOG_DATA: u8 = 0x3;
const CF_DELETE: u8 = 0x4;
const CF_VALUE: u8 = 0x5;
const CF_MERGE: u8 = 0x6;
const CF_SINGLE_DELETE: u8 = 0x8;
const BEGIN_SECTION: u8 = 0x9;
const PREPARED: u8 = 0xA;
const COMMITTED: u8 = 0xB;
const ENDED: u8 = 0xC;
const NOOP: u8 = 0xD;
const CF_RANGE_DELETE: u8 = 0xE;

/// Builds a batch directly in its stored form. Reusable: [`clear`](Self::clear) keeps the memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchBuilder {
    bytes: Vec<u8>,
    /// Entries that take a sequence number. The header counts those of a section, too.
    count: u32,
    /// An entry names a family other than the default one.
    named: bool,
    /// An entry merges, or deletes a range.
    special: bool,
    /// It has marks of two-phase commit.
    marked: bool,
}

impl Default for BatchBuilder {
    fn default() -> Self {
        BatchBuilder::new()
    }
}

impl BatchBuilder {
    /// An empty batch with sequence number 0.
    pub fn new() -> BatchBuilder {
        BatchBuilder::with_capacity(0)
    }

    /// An empty batch with room for `payload` bytes of entries.
    pub fn with_capacity(payload: usize) -> BatchBuilder {
        let mut bytes = Vec::with_capacity(BATCH_HEADER + payload);
        bytes.resize(BATCH_HEADER, 0);
        BatchBuilder { bytes, count: 0, named: false, special: false, marked: false }
    }

    /// Makes room for `entries` entries with `bytes` bytes of keys and values together, which can
    /// then be added without asking for memory.
    ///
    /// # Errors
    /// `LimitExceeded` if the system has none.
    #[inline]
    pub fn try_reserve(&mut self, entries: usize, bytes: usize) -> Result<()> {
        let room = bytes.saturating_add(entries.saturating_mul(1 + 3 * varint::MAX_LEN_32));
        memory::reserve(&mut self.bytes, room, "a batch")
    }

    /// Stores `value` under `key`.
    #[inline]
    pub fn put(&mut self, cf: CfId, key: &[u8], value: &[u8]) {
        self.entry(Kind::Value as u8, CF_VALUE, cf, key, Some(value));
    }

    /// Deletes `key`.
    #[inline]
    pub fn delete(&mut self, cf: CfId, key: &[u8]) {
        self.entry(Kind::Delete as u8, CF_DELETE, cf, key, None);
    }

    /// Deletes `key`, which was put at most once since it was last deleted.
    pub fn single_delete(&mut self, cf: CfId, key: &[u8]) {
        self.entry(Kind::SingleDelete as u8, CF_SINGLE_DELETE, cf, key, None);
    }

    /// Adds a merge operand to `key`.
    pub fn merge(&mut self, cf: CfId, key: &[u8], operand: &[u8]) {
        self.special = true;
        self.entry(Kind::Merge as u8, CF_MERGE, cf, key, Some(operand));
    }

    /// Deletes every key from `begin`, included, to `end`, excluded.
    pub fn delete_range(&mut self, cf: CfId, begin: &[u8], end: &[u8]) {
        self.special = true;
        self.entry(Kind::RangeDelete as u8, CF_RANGE_DELETE, cf, begin, Some(end));
    }

    /// Adds a note that travels with the log and never reaches a table.
    pub fn log_data(&mut self, note: &[u8]) {
        self.bytes.push(LOG_DATA);
        varint::put_length_prefixed(&mut self.bytes, note);
    }

    /// Says that the transaction prepared as `name` is over: what of it is to stay follows as plain entries.
    pub fn end_prepared(&mut self, name: &[u8]) {
        self.marked = true;
        self.bytes.push(ENDED);
        varint::put_length_prefixed(&mut self.bytes, name);
    }

    /// The entries of `of`, which has no marks, as the section of a transaction that is prepared as `name`.
    ///
    /// # Errors
    /// `LimitExceeded` if there is no memory.
    pub fn section(of: &BatchBuilder, name: &[u8]) -> Result<BatchBuilder> {
        debug_assert!(!of.marked, "sections do not nest");
        let mut section = BatchBuilder::new();
        section.try_reserve(1, of.bytes.len() + name.len())?;
        section.bytes[8..].copy_from_slice(&of.count.to_le_bytes());
        section.bytes.push(BEGIN_SECTION);
        section.bytes.extend_from_slice(&of.bytes[BATCH_HEADER..]);
        section.bytes.push(PREPARED);
        varint::put_length_prefixed(&mut section.bytes, name);
        (section.named, section.special, section.marked) = (of.named, of.special, true);
        Ok(section)
    }

    /// Appends the entries of `other`, for a commit group in one record. A section is never part of one.
    ///
    /// # Panics
    /// If the sum of the counts passes 2^32 - 1: a group is limited far below.
    pub fn append(&mut self, other: &BatchBuilder) {
        self.bytes.extend_from_slice(&other.bytes[BATCH_HEADER..]);
        self.named |= other.named;
        self.special |= other.special;
        self.marked |= other.marked;
        self.set_count(self.count.checked_add(other.count).expect("a group has < 2^32 entries"));
    }

    /// Sets the sequence number of the first entry. At most 2^56 - 1.
    #[inline]
    pub fn set_sequence(&mut self, first: Seq) {
        debug_assert!(first <= MAX_SEQ);
        self.bytes[..8].copy_from_slice(&first.to_le_bytes());
    }

    /// Sequence number of the first entry.
    pub fn sequence(&self) -> Seq {
        u64::from_le_bytes(self.bytes[..8].try_into().expect("8 bytes"))
    }

    /// Number of entries that take a sequence number: all but log data and those of a section.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// True if nothing was added.
    pub fn is_empty(&self) -> bool {
        self.bytes.len() == BATCH_HEADER
    }

    /// True if an entry is for a family other than the default one.
    #[inline]
    pub fn names_families(&self) -> bool {
        self.named
    }

    /// True if every entry puts or deletes one key.
    #[inline]
    pub fn is_plain(&self) -> bool {
        !self.special
    }

    /// Size of the stored form in bytes, header included.
    pub fn byte_len(&self) -> usize {
        self.bytes.len()
    }

    /// Empties the batch and keeps its memory. The sequence number becomes 0.
    pub fn clear(&mut self) {
        self.bytes.truncate(BATCH_HEADER);
        self.bytes.fill(0);
        self.count = 0;
        self.named = false;
        self.special = false;
        self.marked = false;
    }

    /// Where the entries end now.
    pub fn mark(&self) -> BatchMark {
        let BatchBuilder { bytes, count, named, special, marked } = self;
        BatchMark {
            bytes: bytes.len(),
            count: *count,
            named: *named,
            special: *special,
            marked: *marked,
        }
    }

    /// Removes every entry since `mark`, which is of this batch.
    pub fn truncate(&mut self, mark: BatchMark) {
        assert!(mark.bytes <= self.bytes.len(), "a mark behind the end of its batch");
        self.bytes.truncate(mark.bytes);
        self.set_count(mark.count);
        self.named = mark.named;
        self.special = mark.special;
        self.marked = mark.marked;
    }

    /// The entries before `mark`, which is of this batch.
    pub fn view_to(&self, mark: BatchMark) -> BatchView<'_> {
        BatchView {
            sequence: self.sequence(),
            count: mark.count,
            marked: mark.marked,
            entries: &self.bytes[BATCH_HEADER..mark.bytes],
        }
    }

    /// The stored form.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The batch as a checked view. Never walks the entries: the builder made them.
    pub fn view(&self) -> BatchView<'_> {
        BatchView {
            sequence: self.sequence(),
            count: self.count,
            marked: self.marked,
            entries: &self.bytes[BATCH_HEADER..],
        }
    }

    /// An owned batch of stored bytes, checked.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<BatchBuilder> {
        let view = BatchView::parse(&bytes)?;
        let (count, marked) = (view.count, view.marked);
        let writes = || AllOps { rest: view.entries }.filter_map(Op::write);
        let named = writes().any(|op| op.cf.0 != 0);
        let special = writes().any(|op| matches!(op.kind, Kind::Merge | Kind::RangeDelete));
        Ok(BatchBuilder { bytes, count, named, special, marked })
    }

    /// A copy.
    ///
    /// # Errors
    /// `LimitExceeded` if there is no memory.
    pub fn copied(&self) -> Result<BatchBuilder> {
        let bytes = memory::copied(&self.bytes, "a batch")?;
        let BatchBuilder { count, named, special, marked, .. } = *self;
        Ok(BatchBuilder { bytes, count, named, special, marked })
    }

    /// Adds an entry of another batch.
    pub fn add(&mut self, op: &BatchOp<'_>) {
        let BatchOp { cf, kind, key, value } = *op;
        match kind {
            Kind::Value => self.put(cf, key, value),
            Kind::Delete => self.delete(cf, key),
            Kind::SingleDelete => self.single_delete(cf, key),
            Kind::Merge => self.merge(cf, key, value),
            Kind::RangeDelete => self.delete_range(cf, key, value),
        }
    }

    #[inline]
    fn entry(&mut self, plain: u8, with_cf: u8, cf: CfId, key: &[u8], value: Option<&[u8]>) {
        let room = 1 + 3 * varint::MAX_LEN_32 + key.len() + value.map_or(0, <[u8]>::len);
        self.bytes.reserve(room);
        if cf.0 == 0 {
            self.bytes.push(plain);
        } else {
            self.named = true;
            self.bytes.push(with_cf);
            varint::put_u32(&mut self.bytes, cf.0);
        }
        varint::put_length_prefixed(&mut self.bytes, key);
        if let Some(value) = value {
            varint::put_length_prefixed(&mut self.bytes, value);
        }
        self.set_count(self.count.checked_add(1).expect("a batch has < 2^32 entries"));
    }

    #[inline]
    fn set_count(&mut self, count: u32) {
        self.count = count;
        self.bytes[8..BATCH_HEADER].copy_from_slice(&count.to_le_bytes());
    }
}

/// A place between two entries of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchMark {
    bytes: usize,
    count: u32,
    named: bool,
    special: bool,
    marked: bool,
}

/// One entry of a batch that takes a sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchOp<'a> {
    /// Column family.
    pub cf: CfId,
    /// What it does.
    pub kind: Kind,
    /// Key; first key of a range deletion.
    pub key: &'a [u8],
    /// Value or operand; end (excluded) of a range deletion; empty for deletions.
    pub value: &'a [u8],
}

/// One entry of a batch, notes included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op<'a> {
    /// Takes one sequence number.
    Write(BatchOp<'a>),
    /// A note; takes none.
    LogData(&'a [u8]),
    /// Of two-phase commit; takes none.
    Mark(Mark<'a>),
}

impl<'a> Op<'a> {
    /// The entry, if it is one.
    pub fn write(self) -> Option<BatchOp<'a>> {
        match self {
            Op::Write(op) => Some(op),
            _ => None,
        }
    }
}

/// A mark of two-phase commit, most with the name of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark<'a> {
    /// A section begins.
    Begin,
    /// The section ends; it is what this transaction would write.
    Prepared(&'a [u8]),
    /// What the transaction was prepared with takes effect here.
    Committed(&'a [u8]),
    /// The transaction is over. What of it takes effect, if anything, is among the entries here.
    Ended(&'a [u8]),
}

/// A batch whose structure was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchView<'a> {
    sequence: Seq,
    count: u32,
    marked: bool,
    entries: &'a [u8],
}

impl<'a> BatchView<'a> {
    /// Checks the stored form of a batch. Linear in its size, no allocation.
    ///
    /// Errors: `Corruption` if it is malformed, `Unsupported` (naming the feature) if an entry
    /// needs one that this version lacks.
    pub fn parse(bytes: &'a [u8]) -> Result<BatchView<'a>> {
        let mut header = Reader::new(bytes);
        let (sequence, count) = (header.u64()?, header.u32()?);
        // A batch of marks or notes has no entries, and is logged with a number for all that.
        if sequence > MAX_SEQ || sequence + u64::from(count) > MAX_SEQ + 1 {
            return Err(Error::corruption(format!(
                "batch with impossible sequence number {sequence} and count {count}"
            )));
        }
        let entries = header.rest();
        let mut rest = entries;
        let (mut writes, mut inside, mut marked, mut within) = (0u64, 0u64, false, false);
        while !rest.is_empty() {
            let Some((op, after)) = split_op(rest) else {
                return Err(refuse(rest).at((bytes.len() - rest.len()) as u64));
            };
            match op {
                Some(Op::Write(_)) if within => inside += 1,
                Some(Op::Write(_)) => writes += 1,
                Some(Op::Mark(mark)) => {
                    // A section has entries and notes in it, and no marks.
                    if within != matches!(mark, Mark::Prepared(_)) {
                        let at = (bytes.len() - rest.len()) as u64;
                        return Err(Error::corruption("a prepared section is not whole").at(at));
                    }
                    (marked, within) = (true, matches!(mark, Mark::Begin));
                }
                Some(Op::LogData(_)) | None => {}
            }
            rest = after;
        }
        if writes + inside != u64::from(count) {
            return Err(Error::corruption(format!(
                "batch says it has {count} entries and has {}",
                writes + inside
            )));
        }
        if within {
            return Err(Error::corruption("a prepared section has no end"));
        }
        let count = writes as u32; // It is at most what the header says.
        Ok(BatchView { sequence, count, marked, entries })
    }

    /// Sequence number of the first entry; each further entry has the next one.
    pub fn sequence(&self) -> Seq {
        self.sequence
    }

    /// Number of entries that take a sequence number.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Whether it has marks of two-phase commit.
    pub fn is_marked(&self) -> bool {
        self.marked
    }

    /// Bytes of all entries.
    pub fn byte_len(&self) -> usize {
        self.entries.len()
    }

    /// The entries that take a sequence number, in order: none of a section.
    #[inline]
    pub fn iter(&self) -> Ops<'a> {
        Ops { rest: self.entries }
    }

    /// All entries, notes, marks and what is in sections included, in order.
    pub fn iter_all(&self) -> AllOps<'a> {
        AllOps { rest: self.entries }
    }
}

impl<'a> IntoIterator for BatchView<'a> {
    type Item = BatchOp<'a>;
    type IntoIter = Ops<'a>;
    fn into_iter(self) -> Ops<'a> {
        self.iter()
    }
}

/// Iterator over the writes of a batch.
#[derive(Clone, Debug)]
pub struct Ops<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Ops<'a> {
    type Item = BatchOp<'a>;

    #[inline]
    fn next(&mut self) -> Option<BatchOp<'a>> {
        loop {
            let (op, after) = split_op(self.rest)?;
            self.rest = after;
            match op {
                Some(Op::Write(op)) => return Some(op),
                Some(Op::Mark(Mark::Begin)) => self.rest = behind_section(after),
                _ => {}
            }
        }
    }
}

/// Iterator over all entries of a batch.
#[derive(Clone, Debug)]
pub struct AllOps<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for AllOps<'a> {
    type Item = Op<'a>;

    fn next(&mut self) -> Option<Op<'a>> {
        loop {
            let (op, after) = split_op(self.rest)?;
            self.rest = after;
            if op.is_some() {
                return op;
            }
        }
    }
}

/// Splits one entry off the front: `Some((None, _))` for a no-op, `None` if the bytes are empty,
/// malformed or of a refused kind.
#[inline]
fn split_op(bytes: &[u8]) -> Option<(Option<Op<'_>>, &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    let (kind, has_cf) = match tag {
        0x0 => (Kind::Delete, false),
        0x1 => (Kind::Value, false),
        0x2 => (Kind::Merge, false),
        0x7 => (Kind::SingleDelete, false),
        0xF => (Kind::RangeDelete, false),
        CF_DELETE => (Kind::Delete, true),
        CF_VALUE => (Kind::Value, true),
        CF_MERGE => (Kind::Merge, true),
        CF_SINGLE_DELETE => (Kind::SingleDelete, true),
        CF_RANGE_DELETE => (Kind::RangeDelete, true),
        LOG_DATA => {
            let (note, rest) = split_bytes(rest)?;
            return Some((Some(Op::LogData(note)), rest));
        }
        NOOP => return Some((None, rest)),
        BEGIN_SECTION..=ENDED => return split_mark(tag, rest),
        _ => return None,
    };
    let (cf, rest) = if has_cf { varint::get_u32(rest)? } else { (0, rest) };
    let (key, rest) = split_bytes(rest)?;
    let (value, rest) = match kind {
        Kind::Value | Kind::Merge | Kind::RangeDelete => split_bytes(rest)?,
        Kind::Delete | Kind::SingleDelete => (&rest[..0], rest),
    };
    Some((Some(Op::Write(BatchOp { cf: CfId(cf), kind, key, value })), rest))
}

/// The same of a mark, behind its kind.
#[cold]
fn split_mark(tag: u8, rest: &[u8]) -> Option<(Option<Op<'_>>, &[u8])> {
    if tag == BEGIN_SECTION {
        return Some((Some(Op::Mark(Mark::Begin)), rest));
    }
    let (name, rest) = split_bytes(rest)?;
    let mark = match tag {
        PREPARED => Mark::Prepared(name),
        COMMITTED => Mark::Committed(name),
        _ => Mark::Ended(name),
    };
    Some((Some(Op::Mark(mark)), rest))
}

/// What follows the section that begins with `rest`.
#[cold]
fn behind_section(mut rest: &[u8]) -> &[u8] {
    while let Some((op, after)) = split_op(rest) {
        rest = after;
        if matches!(op, Some(Op::Mark(Mark::Prepared(_)))) {
            break;
        }
    }
    rest
}

#[inline]
fn split_bytes(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (n, rest) = varint::get_u32(bytes)?;
    rest.split_at_checked(n as usize)
}

/// Why the entry at the front of `bytes` is no entry.
#[cold]
fn refuse(bytes: &[u8]) -> Error {
    let tag = bytes.first().copied().unwrap_or_default();
    match (feature_of(tag), tag) {
        (_, 0x0..=0xF) => Error::corruption(format!("batch entry of kind {tag:#x} is cut short")),
        (Some(feature), _) => {
            Error::unsupported(format!("batch uses {feature} (entry kind {tag:#x})"))
        }
        (None, _) => Error::corruption(format!("batch entry of unknown kind {tag:#x}")),
    }
}

#[cfg(test)]
mod tests;
