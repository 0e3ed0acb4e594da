//! Log records, the reading half: the bytes of a whole file in, records out, up to the first
//! damage.
//!
//! Keeps: a record is yielded only if every fragment of it is in place and passes its checksum.
//! Reading stops for good at the first damage; [`good_end`](RecordReader::good_end) then says
//! where the last good record ended. Fragments are joined in memory bounded by the file's size.
//! Leaves to others: whether the damage is a legal torn tail (see [`tail`](super::tail)).
//!
//! Zeros. A block may end in zeros: fewer than 7 anywhere, or up to 44 where a seal or a
//! predecessor record did not fit. Longer runs were never written by anyone and are damage; at
//! the end of a file they are how a filesystem shows space that was allocated but not written.

use std::borrow::Cow;

use lithify_base::Error;

use super::bytes::LogBytes;
use super::record::{
    BLOCK_SIZE, FIRST, FULL, HEADER_SIZE, IGNORABLE, LAST, MAX_FILL, MIDDLE,
    RECYCLABLE_HEADER_SIZE, TYPE_PREDECESSOR, TYPE_SEAL, masked_crc32c,
};
use super::tail::{Damage, What};

const RECYCLABLE_FULL: u8 = 5;
const RECYCLABLE_LAST: u8 = 8;
const COMPRESSION: u8 = 9;
const TIMESTAMP_SIZES: u8 = 10;
const RECYCLABLE_TIMESTAMP_SIZES: u8 = 11;
const RECYCLABLE_PREDECESSOR: u8 = 131;

/// What a record is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordKind {
    /// A payload given to [`append`](super::RecordWriter::append): a batch or a version edit.
    Data,
    /// How the log before this one ended.
    Predecessor,
    /// A promise of what was synced.
    Seal,
    /// A type this version does not know and may skip.
    Ignorable(u8),
}

/// One whole record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// What it is for.
    pub kind: RecordKind,
    /// Its payload: borrowed from the file, or joined from fragments.
    pub payload: Cow<'a, [u8]>,
    /// Offset of its first header.
    pub offset: u64,
    /// Offset just behind it.
    pub end: u64,
}

/// The next thing found in a log.
#[derive(Clone, Debug)]
pub enum Found<'a> {
    /// A good record.
    Record(Record<'a>),
    /// Bytes that are no record. Nothing after them is read.
    Damage(Damage),
    /// A good record that needs a feature this version lacks; the error names it.
    Refused(Error),
    /// The end of the file, directly behind a record (or its block's zeros).
    End,
}

/// Reads records from the bytes of a whole log.
#[derive(Clone, Debug)]
pub struct RecordReader<'a> {
    bytes: LogBytes<'a>,
    /// Low half of the log's number: a recyclable record with another one is a leftover.
    log_number: Option<u32>,
    at: usize,
    good_end: usize,
    stopped: Option<Damage>,
}

/// One physical record, checksum verified.
struct Fragment<'a> {
    type_byte: u8,
    payload: &'a [u8],
    offset: usize,
}

enum Piece<'a> {
    Fragment(Fragment<'a>),
    Damage(Damage),
    End,
}

impl<'a> RecordReader<'a> {
    /// A reader of `bytes`, the content of a log from its first byte. `log_number` lets it tell
    /// recyclable records of an earlier life of the file; `None` for a manifest.
    pub fn new(bytes: &'a [u8], log_number: Option<u64>) -> RecordReader<'a> {
        RecordReader::over(LogBytes::whole(bytes), log_number)
    }

    /// The same over bytes with stretches of zeros left out.
    pub fn over(bytes: LogBytes<'a>, log_number: Option<u64>) -> RecordReader<'a> {
        let log_number = log_number.map(|n| n as u32);
        RecordReader { bytes, log_number, at: 0, good_end: 0, stopped: None }
    }

    /// Offset behind the last good record.
    pub fn good_end(&self) -> u64 {
        self.good_end as u64
    }

    /// The next record, or why there is none. After damage it repeats the same answer.
    pub fn next_record(&mut self) -> Found<'a> {
        if let Some(damage) = self.stopped {
            return Found::Damage(damage);
        }
        let found = self.join();
        match &found {
            Found::Record(record) => self.good_end = record.end as usize,
            Found::Damage(damage) => self.stopped = Some(*damage),
            Found::Refused(_) | Found::End => {}
        }
        found
    }

    /// Goes on behind damage, at the next place where a record can be found: where the damaged one
    /// ends by its own length, if one follows there, else at the next block. False at the end of
    /// the file, or if there was no damage. What is read from now on is good in itself, and may
    /// still have been meant to follow what was lost: only for salvage and for naming damage.
    pub fn resume(&mut self) -> bool {
        if self.stopped.take().is_none() {
            return false;
        }
        if !self.stands_on_record(self.at) {
            let block_end = (self.at / BLOCK_SIZE + 1) * BLOCK_SIZE;
            let by_length = self.named_end().filter(|&end| self.stands_on_record(end));
            self.at = by_length.unwrap_or_else(|| self.bytes.next_stretch(block_end));
        }
        (self.at as u64) < self.bytes.len()
    }

    fn stands_on_record(&self, at: usize) -> bool {
        let mut there = RecordReader { at, stopped: None, ..self.clone() };
        matches!(there.piece(), Piece::Fragment(_))
    }

    /// Where the physical record here ends by its own length, whatever its sum.
    fn named_end(&self) -> Option<usize> {
        let header = self.bytes.rest_of_block(self.at).first_chunk::<HEADER_SIZE>()?;
        let [.., l0, l1, type_byte] = *header;
        let extra = if is_recyclable(type_byte) { RECYCLABLE_HEADER_SIZE - HEADER_SIZE } else { 0 };
        Some(self.at + HEADER_SIZE + extra + usize::from(u16::from_le_bytes([l0, l1])))
    }

    fn join(&mut self) -> Found<'a> {
        let mut open: Option<(usize, Vec<u8>)> = None;
        loop {
            let fragment = match self.piece() {
                Piece::Fragment(fragment) => fragment,
                Piece::Damage(damage) => return Found::Damage(damage),
                Piece::End => {
                    return match open {
                        Some((start, _)) => damage(start, What::CutShort),
                        None => Found::End,
                    };
                }
            };
            let plain = match fragment.type_byte {
                t @ RECYCLABLE_FULL..=RECYCLABLE_LAST => t - 4,
                t => t,
            };
            match (plain, &mut open) {
                (FULL, None) => return self.whole(RecordKind::Data, &fragment),
                (FIRST, None) => open = Some((fragment.offset, fragment.payload.to_vec())),
                (MIDDLE, Some((_, joined))) => joined.extend_from_slice(fragment.payload),
                (LAST, Some((start, joined))) => {
                    joined.extend_from_slice(fragment.payload);
                    return Found::Record(Record {
                        kind: RecordKind::Data,
                        payload: Cow::Owned(std::mem::take(joined)),
                        offset: *start as u64,
                        end: self.at as u64,
                    });
                }
                (MIDDLE | LAST, None) => return damage(fragment.offset, What::Orphan),
                (_, Some((start, _))) => {
                    // This one may be good: it is met again when reading goes on.
                    self.at = fragment.offset;
                    return damage(*start, What::CutShort);
                }
                (_, None) => {
                    if let Some(found) = self.special(&fragment) {
                        return found;
                    }
                }
            }
        }
    }

    /// A record of a type that is never fragmented; `None` if it says nothing.
    fn special(&self, fragment: &Fragment<'a>) -> Option<Found<'a>> {
        let refuse = |what: &str| {
            let e = Error::unsupported(format!("{what}, which this version does not read"));
            Some(Found::Refused(e.at(fragment.offset as u64)))
        };
        match fragment.type_byte {
            COMPRESSION => refuse("the log is compressed (`wal_compression`)"),
            TIMESTAMP_SIZES | RECYCLABLE_TIMESTAMP_SIZES if fragment.payload.is_empty() => None,
            TIMESTAMP_SIZES | RECYCLABLE_TIMESTAMP_SIZES => {
                refuse("the log holds keys with user-defined timestamps")
            }
            TYPE_PREDECESSOR | RECYCLABLE_PREDECESSOR => {
                Some(self.whole(RecordKind::Predecessor, fragment))
            }
            TYPE_SEAL => Some(self.whole(RecordKind::Seal, fragment)),
            t if t & IGNORABLE != 0 => Some(self.whole(RecordKind::Ignorable(t), fragment)),
            t => refuse(&format!("the log has a record of unknown type {t}")),
        }
    }

    fn whole(&self, kind: RecordKind, fragment: &Fragment<'a>) -> Found<'a> {
        Found::Record(Record {
            kind,
            payload: Cow::Borrowed(fragment.payload),
            offset: fragment.offset as u64,
            end: self.at as u64,
        })
    }

    /// The next physical record.
    fn piece(&mut self) -> Piece<'a> {
        loop {
            let offset = self.at;
            let block_end = (offset / BLOCK_SIZE + 1) * BLOCK_SIZE;
            let rest = self.bytes.rest_of_block(offset);
            if rest.is_empty() {
                return Piece::End;
            }
            let whole_block = rest.len() == block_end - offset;
            let at_fill = block_end - offset <= MAX_FILL && rest.iter().all(|&b| b == 0);
            if at_fill && (whole_block || block_end - offset < HEADER_SIZE) {
                self.at = offset + rest.len();
                continue;
            }
            return match self.fragment(rest, offset) {
                Ok(fragment) => Piece::Fragment(fragment),
                Err(what) => Piece::Damage(Damage { offset: offset as u64, what }),
            };
        }
    }

    /// Parses and checks the physical record at the start of `rest`, the rest of its block.
    fn fragment(&mut self, rest: &'a [u8], offset: usize) -> Result<Fragment<'a>, What> {
        let Some((&header, after)) = rest.split_first_chunk::<HEADER_SIZE>() else {
            let in_block = BLOCK_SIZE - offset % BLOCK_SIZE;
            return Err(if in_block < HEADER_SIZE { What::Trailer } else { What::CutShort });
        };
        let [c0, c1, c2, c3, l0, l1, type_byte] = header;
        if header == [0; HEADER_SIZE] {
            return Err(What::Zeros);
        }
        let len = usize::from(u16::from_le_bytes([l0, l1]));
        let extra = if is_recyclable(type_byte) { RECYCLABLE_HEADER_SIZE - HEADER_SIZE } else { 0 };
        let body_len = extra + len;
        if offset % BLOCK_SIZE + HEADER_SIZE + body_len > BLOCK_SIZE {
            return Err(What::Length);
        }
        let body = after.get(..body_len).ok_or(What::CutShort)?;
        // The type byte lies directly before the body: one pass over contiguous bytes.
        let summed = rest.get(HEADER_SIZE - 1..HEADER_SIZE + body_len).ok_or(What::CutShort)?;
        if masked_crc32c(summed) != u32::from_le_bytes([c0, c1, c2, c3]) {
            return Err(What::Checksum);
        }
        let (number, payload) = body.split_at(extra);
        if let (&[a, b, c, d], Some(expected)) = (number, self.log_number)
            && u32::from_le_bytes([a, b, c, d]) != expected
        {
            return Err(What::Leftover);
        }
        self.at = offset + HEADER_SIZE + body_len;
        Ok(Fragment { type_byte, payload, offset })
    }
}

fn is_recyclable(type_byte: u8) -> bool {
    matches!(
        type_byte,
        RECYCLABLE_FULL..=RECYCLABLE_LAST | RECYCLABLE_TIMESTAMP_SIZES | RECYCLABLE_PREDECESSOR
    )
}

fn damage<'a>(offset: usize, what: What) -> Found<'a> {
    Found::Damage(Damage { offset: offset as u64, what })
}

#[cfg(test)]
mod tests;
