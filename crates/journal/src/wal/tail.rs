//! Where a log ends: the walk over a whole log with its bindings, and the tail rule.
//!
//! A crash may tear the end of a log: unsynced blocks are lost, torn, or persist out of order.
//! Rot may damage any of it. The two look alike, and what tells them apart are *promises*:
//! offsets below which every byte is known to have been synced. A promise comes from a seal
//! later in the log, from the manifest, or from the next log's predecessor record.
//!
//! **The rule.** If the good records end below a promise, that is corruption. If they reach every
//! promise, the rest is a legal torn tail: cut there. "A valid record follows" proves nothing.
//!
//! Keeps: every record counted as good is bound to its place: batches are contiguous in sequence
//! numbers (a seal may skip numbers, never repeat any), seals name their own log and offset. A
//! record in the wrong place, or one that passes its checksum and is none of this log (a malformed
//! batch), is damage like any other: an unsynced block may come back with what a deleted file left
//! in it, and that may be whole records.
//! Leaves to others: finding the promises of other files; replay; cutting.
//!
//! Worked example: records end at 100, 200, 300 and a seal at 300..341 says `synced = 200`.
//! Damage at 120: the good part ends at 100 < 200, corruption at 100. Damage at 250: the good
//! part ends at 200, no promise is broken, the log is cut at 200 and the seal is ignored.

use std::fmt;

use lithify_base::zoo::{self, Bug};
use lithify_base::{Error, Result, Seq};

use super::batch::BatchView;
use super::bytes::LogBytes;
use super::reader::{Found, Record, RecordKind, RecordReader};
use super::record::{HEADER_SIZE, TYPE_SEAL, masked_crc32c};
use super::seal::{Predecessor, Seal};

/// Bytes that are no good record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Offset in the file.
    pub offset: u64,
    /// What is wrong there.
    pub what: What,
}

/// What is wrong with the bytes of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// The file or block ends inside a record.
    CutShort,
    /// The checksum does not match.
    Checksum,
    /// The length runs past the end of the block.
    Length,
    /// Zeros where a record should be.
    Zeros,
    /// Bytes in the last six of a block, where no header fits.
    Trailer,
    /// A later fragment of a record without its first one.
    Orphan,
    /// A record of an earlier life of a recycled file.
    Leftover,
    /// A batch that does not continue the sequence numbers of the one before.
    Sequence,
    /// A seal or predecessor record that belongs elsewhere.
    Misplaced,
    /// A record that passes its checksum and holds nothing that is written to a log.
    Malformed,
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            What::CutShort => "a record is cut short",
            What::Checksum => "a record fails its checksum",
            What::Length => "a record is longer than its block",
            What::Zeros => "zeros where a record should be",
            What::Trailer => "bytes at the end of a block where no record fits",
            What::Orphan => "a part of a record without its beginning",
            What::Leftover => "a record of an earlier log of the same file",
            What::Sequence => "a batch does not continue the sequence numbers before it",
            What::Misplaced => "a record belongs to another log or another place in it",
            What::Malformed => "a record is malformed though its checksum matches",
        })
    }
}

/// What other places say about a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Promise {
    /// Every byte below this offset was synced (from the manifest); 0 if nothing is known.
    pub synced: u64,
    /// The next log's predecessor record: size and last sequence number of this log. Good records
    /// beyond that size were never part of it and are corruption, unless the bytes given to the
    /// walk end there.
    pub end: Option<(u64, Seq)>,
}

/// How a log ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// With a whole record, and zeros behind it at most: a log that is written through a mapping, or into space that was
    /// reserved for it, goes on with them.
    Clean,
    /// With bytes that were never promised: ignore everything from `cut_at` on.
    TornTail {
        /// End of the good part.
        cut_at: u64,
    },
    /// Promised bytes are bad or missing.
    Corruption {
        /// Where the bad bytes begin.
        offset: u64,
        /// What is wrong.
        what: What,
    },
}

impl Verdict {
    /// `Corruption` as an error, everything else as the offset at which the log is to be cut: `len` if not at all.
    pub fn into_result(self, len: u64) -> Result<u64> {
        match self {
            Verdict::Clean => Ok(len),
            Verdict::TornTail { cut_at } => Ok(cut_at),
            Verdict::Corruption { offset, what } => {
                let what = format!("{what}, and the bytes there were promised to be synced");
                Err(Error::corruption(what).at(offset))
            }
        }
    }
}

/// What a reader found in a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Size of the file.
    pub len: u64,
    /// End of the last good record.
    pub good_end: u64,
    /// What stopped the reader, if not the end of the file.
    pub damage: Option<Damage>,
    /// From there on are zeros and nothing else.
    pub ends_in_zeros: bool,
    /// Largest promise of this log's own seals, those behind the damage included.
    pub sealed: u64,
    /// Last sequence number that a batch or seal of the good part names; 0 if none does.
    pub last_seq: Seq,
}

/// The tail rule.
pub fn judge(found: &Findings, promise: &Promise) -> Verdict {
    let end_size = promise.end.map_or(0, |(size, _)| size);
    let promised = promise.synced.max(found.sealed).max(end_size);
    let promised = if zoo::on(Bug::PromiseIgnored) { 0 } else { promised };
    if found.good_end < promised && (found.damage.is_some() || found.len < promised) {
        let missing = Damage { offset: found.len, what: What::CutShort };
        let Damage { offset, what } = found.damage.unwrap_or(missing);
        return Verdict::Corruption { offset, what };
    }
    if let Some((size, last_seq)) = promise.end {
        if last_seq != found.last_seq && found.last_seq != 0 {
            return Verdict::Corruption { offset: found.good_end, what: What::Sequence };
        }
        if found.good_end > size {
            return Verdict::Corruption { offset: size, what: What::Misplaced };
        }
    }
    match found.damage {
        Some(_) if found.ends_in_zeros => Verdict::Clean,
        Some(Damage { offset, what }) if zoo::on(Bug::TornTailIsRot) => {
            Verdict::Corruption { offset, what }
        }
        Some(_) => Verdict::TornTail { cut_at: found.good_end },
        None => Verdict::Clean,
    }
}

/// How sequence numbers of a log's batches follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeqRule {
    /// Each batch starts where the one before ended, or behind the number that a seal between
    /// them names (writes up to there skipped the log): logs of this store.
    Contiguous,
    /// Numbers rise, with gaps: foreign logs, or writes that skipped the log.
    Rising,
}

/// One batch of a log.
#[derive(Clone, Debug)]
pub struct LoggedBatch<'a> {
    /// The record; its payload is a batch that [`BatchView::parse`] accepts.
    pub record: Record<'a>,
    /// First sequence number.
    pub first_seq: Seq,
    /// Number of sequence numbers it takes.
    pub count: u32,
}

impl LoggedBatch<'_> {
    /// The batch.
    pub fn view(&self) -> Result<BatchView<'_>> {
        BatchView::parse(&self.record.payload)
    }
}

/// A walk over the bytes of one log: yields its batches in order and checks what binds them.
///
/// Call [`next_batch`](Self::next_batch) until it gives `None`, then [`verdict`](Self::verdict).
#[derive(Clone, Debug)]
pub struct WalWalk<'a> {
    bytes: LogBytes<'a>,
    reader: RecordReader<'a>,
    log_number: u64,
    rule: SeqRule,
    next_seq: Option<Seq>,
    predecessor: Option<Predecessor>,
    found: Findings,
    closed: bool,
    finished: bool,
}

impl<'a> WalWalk<'a> {
    /// A walk over `bytes`, the whole content of log `log_number`. If a later log names this one
    /// as its predecessor, give only the bytes up to the size it names.
    pub fn new(bytes: &'a [u8], log_number: u64, rule: SeqRule) -> WalWalk<'a> {
        WalWalk::over(LogBytes::whole(bytes), log_number, rule)
    }

    /// The same over bytes with stretches of zeros left out.
    pub fn over(bytes: LogBytes<'a>, log_number: u64, rule: SeqRule) -> WalWalk<'a> {
        WalWalk {
            bytes,
            reader: RecordReader::over(bytes, Some(log_number)),
            log_number,
            rule,
            next_seq: None,
            predecessor: None,
            found: Findings { len: bytes.len(), ..Findings::default() },
            closed: false,
            finished: false,
        }
    }

    /// The next good batch; `None` at the end of the good part.
    ///
    /// Errors: `Unsupported` if a good record needs a feature this version lacks.
    pub fn next_batch(&mut self) -> Result<Option<LoggedBatch<'a>>> {
        while !self.finished {
            let record = match self.reader.next_record() {
                Found::Record(record) => record,
                Found::Refused(e) => return Err(e),
                Found::Damage(damage) => {
                    self.stop_at(damage);
                    break;
                }
                Found::End => {
                    self.finished = true;
                    break;
                }
            };
            let (offset, end) = (record.offset, record.end);
            let outcome = match record.kind {
                RecordKind::Data => self.batch(record)?,
                RecordKind::Predecessor => self.predecessor_record(&record).map(|()| None),
                RecordKind::Seal => self.seal(&record)?.map(|()| None),
                RecordKind::Ignorable(_) => Ok(None),
            };
            match outcome {
                Ok(batch) => {
                    self.found.good_end = end;
                    if batch.is_some() {
                        return Ok(batch);
                    }
                }
                Err(what) => self.stop_at(Damage { offset, what }),
            }
        }
        Ok(None)
    }

    /// The tail rule over what was found, this log's own seals, and `promise`. Call it after
    /// [`next_batch`](Self::next_batch) gave `None`.
    pub fn verdict(&self, promise: &Promise) -> Verdict {
        debug_assert!(self.finished, "the walk has not reached the end of the log");
        judge(&self.found, promise)
    }

    /// What was found so far.
    pub fn findings(&self) -> Findings {
        self.found
    }

    /// The log's record of the log before it, once met.
    pub fn predecessor(&self) -> Option<Predecessor> {
        self.predecessor
    }

    /// Sequence number after the last batch or seal; `None` before the first.
    pub fn next_seq(&self) -> Option<Seq> {
        self.next_seq
    }

    /// True if the last good record is a seal that says the log was closed in order.
    pub fn was_closed(&self) -> bool {
        self.closed
    }

    fn batch(&mut self, record: Record<'a>) -> Result<Result<Option<LoggedBatch<'a>>, What>> {
        self.closed = false;
        let (first_seq, count) = match BatchView::parse(&record.payload) {
            Ok(batch) => (batch.sequence(), batch.count()),
            Err(e) if e.is_corruption() => return Ok(Err(What::Malformed)),
            Err(e) => return Err(e.at(record.offset)),
        };
        let in_order = match (self.next_seq, self.rule) {
            (None, _) => true,
            (Some(next), SeqRule::Contiguous) => first_seq == next,
            (Some(next), SeqRule::Rising) => first_seq >= next,
        };
        if !in_order {
            return Ok(Err(What::Sequence));
        }
        self.next_seq = Some(first_seq + u64::from(count));
        self.found.last_seq = (first_seq + u64::from(count)).saturating_sub(1);
        Ok(Ok(Some(LoggedBatch { record, first_seq, count })))
    }

    fn predecessor_record(&mut self, record: &Record<'_>) -> Result<(), What> {
        let first = self.found.good_end == 0;
        match Predecessor::decode(&record.payload) {
            Err(_) => Err(What::Malformed),
            Ok(p) if !first || p.log_number >= self.log_number => Err(What::Misplaced),
            Ok(p) => {
                self.predecessor = Some(p);
                Ok(())
            }
        }
    }

    fn seal(&mut self, record: &Record<'_>) -> Result<Result<(), What>> {
        let seal = match Seal::decode(&record.payload) {
            Ok(seal) => seal,
            Err(e) if e.is_corruption() => return Ok(Err(What::Malformed)),
            Err(e) => return Err(e.at(record.offset)),
        };
        if !seal.is_of(self.log_number, record.offset, self.bytes.rest_of_block(0)) {
            return Ok(Err(What::Misplaced));
        }
        if seal.last_seq < self.found.last_seq {
            return Ok(Err(What::Sequence));
        }
        // A larger number says that writes up to it skipped the log.
        self.found.last_seq = seal.last_seq;
        self.next_seq = Some(seal.last_seq.saturating_add(1));
        self.closed = seal.reason == super::SealReason::Close;
        self.found.sealed = self.found.sealed.max(seal.synced);
        Ok(Ok(()))
    }

    fn stop_at(&mut self, damage: Damage) {
        self.finished = true;
        self.closed = false;
        self.found.damage = Some(damage);
        self.found.ends_in_zeros = self.bytes.ends_at(damage.offset as usize);
        let later = promise_behind(self.bytes, damage.offset, self.log_number);
        self.found.sealed = self.found.sealed.max(later);
    }
}

/// Largest promise of the seals of log `log_number` at or behind offset `from`, wherever they
/// are: after damage the places of records are unknown, so every offset is tried. A seal names
/// its log and its own offset, so one that lies elsewhere (in a value, say) does not count.
fn promise_behind(bytes: LogBytes<'_>, from: u64, log_number: u64) -> u64 {
    let from = usize::try_from(from).unwrap_or(usize::MAX);
    let promises = bytes.stretches(from).map(|(at, bytes)| promise_in(bytes, at, log_number));
    promises.max().unwrap_or(0)
}

/// The same of `bytes`, which lie at `from`. What a seal says of the log's predecessor record
/// does not matter here: that record may be what is damaged.
fn promise_in(bytes: &[u8], from: usize, log_number: u64) -> u64 {
    let mut promised = 0;
    for (i, header) in bytes.windows(HEADER_SIZE).enumerate() {
        let &[c0, c1, c2, c3, l0, l1, TYPE_SEAL] = header else {
            continue;
        };
        let len = usize::from(u16::from_le_bytes([l0, l1]));
        if ![Seal::ENCODED_LEN, Seal::BARE_LEN].contains(&len) {
            continue;
        }
        // The type byte lies directly before the payload.
        let Some(summed) = bytes.get(i + HEADER_SIZE - 1..i + HEADER_SIZE + len) else {
            continue;
        };
        if masked_crc32c(summed) != u32::from_le_bytes([c0, c1, c2, c3]) {
            continue;
        }
        if let Ok(seal) = Seal::decode(&summed[1..])
            && seal.log_number == log_number
            && seal.offset == (from + i) as u64
        {
            promised = promised.max(seal.synced);
        }
    }
    promised
}

#[cfg(test)]
mod tests;
