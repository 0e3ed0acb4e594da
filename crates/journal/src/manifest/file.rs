//! An added file as it stands in a version edit (NewFile4 and its older forms).
//!
//! `level, number, size, smallest, largest, smallest seq, largest seq`, then custom fields
//! (tag, length, bytes) until tag 1. Fields are written in a fixed order and only where they
//! differ from their default, so equal values give equal bytes.
//!
//! Keeps: bounds are internal keys of at least 8 bytes; features this version lacks (blobs,
//! timestamps) are refused by name, never dropped.
//! Leaves to others: whether the file exists and is what the edit says.

use lithify_base::{Error, InternalKey, Level, MAX_LEVELS, MAX_SEQ, Pos, Result, Seq};

use super::tags::{FILE_BINDING, file as tag};
use lithify_format::varint::{self, Reader};

/// A file added by an edit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WireFile {
    /// Level, below [`MAX_LEVELS`].
    pub level: Level,
    /// File number.
    pub number: u64,
    /// File size, bytes.
    pub size: u64,
    /// Smallest internal key.
    pub smallest: Vec<u8>,
    /// Largest internal key.
    pub largest: Vec<u8>,
    /// Smallest sequence number; 0 if a form without it was read.
    pub smallest_seq: Seq,
    /// Largest sequence number; [`MAX_SEQ`] if a form without it was read.
    pub largest_seq: Seq,
    /// Epoch: order of flushes and ingestions of a family; in level 0 the stratum. 0 means
    /// unknown (old files); RocksDB gives 1 to files ingested behind everything, so ours start
    /// at 2.
    pub epoch: u64,
    /// Stratum at level >= 1; always 0 at level 0, where the epoch is the stratum.
    pub stratum: u32,
    /// For a virtual slice, the number of the file that holds its bytes.
    pub backing: Option<u64>,
    /// Base context of the block checksums; 0 if they have none.
    pub base_context: u32,
    /// Oldest ancestor's creation time, seconds since 1970; 0 if unknown.
    pub oldest_ancestor_time: u64,
    /// Creation time, seconds since 1970; 0 if unknown.
    pub creation_time: u64,
    /// Whole-file checksum and the name of its function, if recorded.
    pub checksum: Option<(Vec<u8>, String)>,
    /// RocksDB's path id: which of its family's table directories it is in; 0 for the first, or the only one.
    pub place: u8,
    /// Someone asked for this file to be compacted.
    pub need_compaction: bool,
    /// RocksDB's storage temperature; 0 if unknown.
    pub temperature: u8,
    /// Low and high half of RocksDB's internal unique id of the table, if recorded.
    pub unique_id: Option<[u64; 2]>,
    /// Bytes of older data that the file's range deletions cover, estimated.
    pub range_deletion_size: u64,
    /// Bytes from the end of the data blocks to the end of the file; 0 if unknown.
    pub tail_size: u64,
    /// Entry counts; `None` in foreign manifests, where the table's properties have them.
    pub counts: Option<FileCounts>,
}

/// What a file holds, by count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileCounts {
    /// Point entries.
    pub entries: u64,
    /// Point deletions among them.
    pub deletes: u64,
    /// Range tombstones.
    pub range_deletes: u64,
    /// Sum of user key lengths over the point entries.
    pub raw_key_bytes: u64,
    /// Sum of value lengths over the point entries.
    pub raw_value_bytes: u64,
}

impl FileCounts {
    fn encode(self) -> Vec<u8> {
        let mut out = Vec::new();
        let FileCounts { entries, deletes, range_deletes, raw_key_bytes, raw_value_bytes } = self;
        for v in [entries, deletes, range_deletes, raw_key_bytes, raw_value_bytes] {
            varint::put_u64(&mut out, v);
        }
        out
    }

    fn decode(r: &mut Reader<'_>) -> Result<FileCounts> {
        Ok(FileCounts {
            entries: r.var64()?,
            deletes: r.var64()?,
            range_deletes: r.var64()?,
            raw_key_bytes: r.var64()?,
            raw_value_bytes: r.var64()?,
        })
    }
}

/// Older forms of an added file, by what they lack.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum OldForm {
    /// No sequence numbers.
    One,
    /// No custom fields.
    Two,
    /// As `Two`, with a path id after the number.
    Three,
}

impl WireFile {
    /// Position in the tree. `Unsupported` if the epoch of a level 0 file passes 32 bits (such
    /// epochs are renumbered on import).
    pub fn pos(&self) -> Result<Pos> {
        if self.level > 0 {
            return Ok(Pos::new(self.level, self.stratum));
        }
        match u32::try_from(self.epoch) {
            Ok(epoch) => Ok(Pos::new(0, epoch)),
            Err(_) => Err(Error::unsupported(format!(
                "file {:06} has epoch {} beyond 32 bits; import the database to renumber it",
                self.number, self.epoch
            ))),
        }
    }

    /// Appends the NewFile4 payload, without the edit tag.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        debug_assert!(self.level > 0 || self.stratum == 0, "strata of level 0 are epochs");
        varint::put_u32(out, u32::from(self.level));
        varint::put_u64(out, self.number);
        varint::put_u64(out, self.size);
        varint::put_length_prefixed(out, &self.smallest);
        varint::put_length_prefixed(out, &self.largest);
        varint::put_u64(out, self.smallest_seq);
        varint::put_u64(out, self.largest_seq);
        put_varint_field(out, tag::OLDEST_ANCESTOR_TIME, self.oldest_ancestor_time);
        put_varint_field(out, tag::CREATION_TIME, self.creation_time);
        put_varint_field(out, tag::EPOCH, self.epoch);
        if let Some((sum, function)) = &self.checksum {
            put_field(out, tag::CHECKSUM, sum);
            put_field(out, tag::CHECKSUM_FUNCTION, function.as_bytes());
        }
        if self.place != 0 {
            put_field(out, tag::PATH_ID, &[self.place]);
        }
        if self.temperature != 0 {
            put_field(out, tag::TEMPERATURE, &[self.temperature]);
        }
        if self.need_compaction {
            put_field(out, tag::NEED_COMPACTION, &[1]);
        }
        if let Some([low, high]) = self.unique_id {
            put_field(out, tag::UNIQUE_ID, &[low.to_le_bytes(), high.to_le_bytes()].concat());
        }
        if self.range_deletion_size != 0 {
            put_varint_field(out, tag::RANGE_DELETION_SIZE, self.range_deletion_size);
        }
        if self.tail_size != 0 {
            put_varint_field(out, tag::TAIL_SIZE, self.tail_size);
        }
        if self.base_context != 0 {
            put_field(out, tag::BASE_CONTEXT, &self.base_context.to_le_bytes());
        }
        if let Some(counts) = self.counts {
            put_field(out, tag::COUNTS, &counts.encode());
        }
        if self.stratum != 0 {
            put_varint_field(out, tag::STRATUM, u64::from(self.stratum));
        }
        if let Some(backing) = self.backing {
            put_varint_field(out, tag::BACKING, backing);
        }
        varint::put_u32(out, tag::END);
    }

    /// Reads a NewFile4 payload. The second part is the log number that old releases of RocksDB
    /// put among a file's fields for want of an edit tag.
    pub(super) fn decode(r: &mut Reader<'_>) -> Result<(WireFile, Option<u64>)> {
        let mut file = WireFile {
            level: level(r)?,
            number: r.var64()?,
            size: r.var64()?,
            smallest: internal_key(r)?,
            largest: internal_key(r)?,
            smallest_seq: seq(r)?,
            largest_seq: seq(r)?,
            ..WireFile::default()
        };
        let mut min_log = None;
        loop {
            let tag = r.var32()?;
            if tag == tag::END {
                break;
            }
            let field = r.length_prefixed()?;
            if tag == tag::MIN_LOG_TO_KEEP {
                min_log = Some(whole(field, |f| f.u64())?);
            } else {
                file.set(tag, field)?;
            }
        }
        if file.level == 0 && file.stratum != 0 {
            return Err(Error::corruption("a file of level 0 has a stratum besides its epoch"));
        }
        Ok((file, min_log))
    }

    /// Reads the payload of an older form.
    pub(super) fn decode_old(r: &mut Reader<'_>, form: OldForm) -> Result<WireFile> {
        let mut file = WireFile { level: level(r)?, number: r.var64()?, ..WireFile::default() };
        if form == OldForm::Three {
            file.place = u8::try_from(r.var32()?)
                .map_err(|_| Error::corruption("a file's path id is over 8 bits"))?;
        }
        file.size = r.var64()?;
        file.smallest = internal_key(r)?;
        file.largest = internal_key(r)?;
        if form == OldForm::One {
            file.largest_seq = MAX_SEQ;
        } else {
            file.smallest_seq = seq(r)?;
            file.largest_seq = seq(r)?;
        }
        Ok(file)
    }

    /// Takes one custom field.
    fn set(&mut self, tag: u32, field: &[u8]) -> Result<()> {
        match tag {
            tag::NEED_COMPACTION => self.need_compaction = whole(field, |f| f.u8())? == 1,
            tag::OLDEST_ANCESTOR_TIME => self.oldest_ancestor_time = var(field)?,
            tag::CREATION_TIME => self.creation_time = var(field)?,
            tag::EPOCH => self.epoch = var(field)?,
            tag::CHECKSUM => {
                self.checksum.get_or_insert_default().0 = field.to_vec();
            }
            tag::CHECKSUM_FUNCTION => {
                self.checksum.get_or_insert_default().1 = text(field, "checksum function")?;
            }
            tag::TEMPERATURE => self.temperature = whole(field, |f| f.u8())?,
            tag::UNIQUE_ID => self.unique_id = Some(whole(field, |f| Ok([f.u64()?, f.u64()?]))?),
            tag::RANGE_DELETION_SIZE => self.range_deletion_size = var(field)?,
            tag::TAIL_SIZE => self.tail_size = var(field)?,
            tag::BASE_CONTEXT => self.base_context = whole(field, |f| f.u32())?,
            tag::COUNTS => self.counts = Some(whole(field, FileCounts::decode)?),
            tag::STRATUM => {
                self.stratum = u32::try_from(var(field)?)
                    .map_err(|_| Error::corruption("a file's stratum is over 32 bits"))?;
            }
            tag::BACKING => self.backing = Some(var(field)?),
            tag::PATH_ID => self.place = whole(field, |f| f.u8())?,
            tag::OLDEST_BLOB_FILE if var(field)? != 0 => return Err(refused("blob files")),
            tag::MIN_TIMESTAMP | tag::MAX_TIMESTAMP if !field.is_empty() => {
                return Err(refused("user-defined timestamps"));
            }
            tag::TIMESTAMPS_PERSISTED if field != [1] => {
                return Err(refused("user-defined timestamps"));
            }
            t if t & FILE_BINDING != 0 => {
                return Err(Error::unsupported(format!(
                    "the manifest describes file {:06} with field {t}, which this version does \
                     not know and may not ignore",
                    self.number
                )));
            }
            _ => {}
        }
        Ok(())
    }
}

/// Reads a level.
pub(super) fn level(r: &mut Reader<'_>) -> Result<Level> {
    let level = r.var32()?;
    match Level::try_from(level) {
        Ok(l) if usize::from(l) < MAX_LEVELS => Ok(l),
        _ => Err(Error::unsupported(format!(
            "the manifest uses level {level}; this version has levels 0 to {}",
            MAX_LEVELS - 1
        ))),
    }
}

/// Reads a sequence number.
pub(super) fn seq(r: &mut Reader<'_>) -> Result<Seq> {
    match r.var64()? {
        seq if seq <= MAX_SEQ => Ok(seq),
        seq => Err(Error::corruption(format!("sequence number {seq} is over 56 bits"))),
    }
}

/// Reads an internal key.
pub(super) fn internal_key(r: &mut Reader<'_>) -> Result<Vec<u8>> {
    let bytes = r.length_prefixed()?;
    match InternalKey::decode(bytes) {
        Some(_) => Ok(bytes.to_vec()),
        None => Err(Error::corruption("a file bound is shorter than an internal key")),
    }
}

/// Reads UTF-8 text.
pub(super) fn text(bytes: &[u8], what: &str) -> Result<String> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.to_owned()),
        Err(_) => Err(Error::corruption(format!("{what} in the manifest is not UTF-8"))),
    }
}

/// Reads `field` to its end.
pub(super) fn whole<'a, T>(
    field: &'a [u8],
    read: impl FnOnce(&mut Reader<'a>) -> Result<T>,
) -> Result<T> {
    let mut r = Reader::new(field);
    let value = read(&mut r)?;
    if r.is_empty() { Ok(value) } else { Err(Error::corruption("manifest field is too long")) }
}

/// The error for a feature this version lacks.
pub(super) fn refused(feature: &str) -> Error {
    Error::unsupported(format!("the database uses {feature}, which this version does not read"))
}

fn var(field: &[u8]) -> Result<u64> {
    whole(field, |f| f.var64())
}

fn put_field(out: &mut Vec<u8>, tag: u32, bytes: &[u8]) {
    varint::put_u32(out, tag);
    varint::put_length_prefixed(out, bytes);
}

fn put_varint_field(out: &mut Vec<u8>, tag: u32, v: u64) {
    varint::put_u32(out, tag);
    varint::put_u64(out, varint::len_u64(v) as u64);
    varint::put_u64(out, v);
}
