//! What a unit left in an output slot, checked before anything of it is used.
//!
//! Keeps: after [`Tail::read`] and [`Output::check`] every place lies inside of what was read, every beat was
//! summed by the unit and arrived as it was summed, and all of it bears the tag of the set. What goes wrong
//! there is a fault of a link, of memory or of a unit that writes other sets' records, so the same set may
//! well succeed on another slot. After [`Output::check_counts`] what came in is what the host has counted, and after
//! [`check_keys`] all that is new lies in the range of the set; what goes wrong there is a unit's lie.
//! Leaves to others: whether the entries are in order and encoded right (`Made::decode`), and whether the right
//! ones went (the ledger, the certifier, `prove`).

use lithify_base::{Error, ErrorKind, Result};
use lithify_merge::{CleanRange, Recipe};

use crate::area;
use crate::stream::{BEAT, Code, ENDING, F64, RECORD, Record, STATUS, Status, beats, damaged};

/// The last records of an output slot: what tells how much else there is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tail {
    /// The status record.
    pub(crate) status: Status,
    /// The open record; that of another set if the code is not OK.
    pub(crate) open: Record,
}

impl Tail {
    /// Reads the last [`ENDING`] bytes of an output slot of `out_bytes`, for the set with `tag`.
    pub(crate) fn read(bytes: &[u8], tag: u64, out_bytes: usize) -> Result<Tail> {
        let Some((record, status_bytes)) = bytes.split_at_checked(RECORD) else {
            return Err(damaged("the end of an output slot is missing"));
        };
        let status = Status::read(status_bytes)?;
        if status.tag != tag {
            return Err(damaged("a status record is another set's"));
        }
        if status.code != Code::Ok {
            // Nothing but the status is there, and its sum covers no more.
            if !Status::is_summed(status_bytes, std::iter::empty()) {
                return Err(damaged("the sum of a status record is wrong"));
            }
            return Ok(Tail { status, open: Record::default() });
        }
        let records = RECORD as u64 * u64::from(status.blocks);
        let used = u64::from(status.payload_bytes) + records + ENDING as u64;
        let open = Record::read(record).filter(|open| open.open && open.tag == tag);
        let Some(open) = open.filter(|_| used <= out_bytes as u64) else {
            return Err(damaged("an open record is not that of the set"));
        };
        let end = u64::from(open.at) + beats(open.bytes as usize) as u64;
        let aligned = (open.at as usize).is_multiple_of(BEAT);
        if !aligned || end != u64::from(status.payload_bytes) || open.no != status.blocks {
            return Err(damaged("the open block is not the last one"));
        }
        Ok(Tail { status, open })
    }

    /// Where the records of all blocks and the open one are in the slot.
    pub(crate) fn records_at(&self, out_bytes: usize) -> usize {
        out_bytes - ENDING - RECORD * self.status.blocks as usize
    }
    /// Bytes from there to the end of the open record.
    pub(crate) fn records_len(&self) -> usize {
        RECORD * (self.status.blocks as usize + 1)
    }

    /// Compares the sum of the open block with what came back, pads included.
    pub(crate) fn check_open(&self, open: &[u8]) -> Result<()> {
        if open.len() == beats(self.open.bytes as usize) && F64::of(open) == self.open.sum {
            return Ok(());
        }
        Err(damaged("the sum of the open block is wrong"))
    }
}

/// A set's output as it came back.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    /// What the unit says of the set.
    pub(crate) status: Status,
    /// The finished blocks.
    pub(crate) blocks: Vec<Record>,
    /// The open block.
    pub(crate) open: Record,
}

impl Output {
    /// Checks the records, of which `records` are the bytes as they lie in the slot, and `ending` the last
    /// bytes of the slot as they were read before.
    pub(crate) fn read(tail: &Tail, records: &[u8], ending: &[u8]) -> Result<Output> {
        let Tail { status, open } = *tail;
        let rows = records.as_chunks::<RECORD>().0;
        if rows.len() != status.blocks as usize + 1 {
            return Err(damaged("records are missing"));
        }
        let (Some((last, rows)), Some(status_bytes)) = (rows.split_last(), ending.get(RECORD..))
        else {
            return Err(damaged("records are missing"));
        };
        // They lie downwards.
        let in_order = || rows.iter().rev();
        let all = in_order().chain([last]).map(|row| &row[..]);
        if status_bytes.len() != STATUS || !Status::is_summed(status_bytes, all) {
            return Err(damaged("the sum of a set's records is wrong"));
        }
        if Record::read(last) != Some(open) {
            return Err(damaged("the open record came differently the second time"));
        }
        let mut blocks = Vec::with_capacity(rows.len());
        let mut end = 0;
        for (no, row) in in_order().enumerate() {
            let record = Record::read(row).filter(|r| !r.open && r.tag == status.tag);
            let record = record.filter(|r| r.no as usize == no && r.at as usize == end);
            let Some(record) = record else {
                return Err(damaged("a block record is not that of its block"));
            };
            end += beats(record.bytes as usize);
            blocks.push(record);
        }
        if open.at as usize != end {
            return Err(damaged("the open block is not where the blocks end"));
        }
        Ok(Output { status, blocks, open })
    }

    /// What it takes of its part of a slot.
    pub(crate) fn bytes(&self) -> usize {
        self.status.payload_bytes as usize + RECORD * (self.blocks.len() + 1) + ENDING
    }

    /// The payload of `record` among `payloads`, which begin with the slot.
    pub(crate) fn placed<'a>(record: &Record, payloads: &'a [u8]) -> Result<&'a [u8]> {
        let at = record.at as usize;
        let payload = payloads.get(at..).and_then(|rest| rest.get(..record.bytes as usize));
        payload.ok_or_else(|| damaged("a payload is missing"))
    }

    /// Compares the sums of all finished blocks with what came back.
    pub(crate) fn check(&self, payloads: &[u8]) -> Result<()> {
        let padded = |r: &Record| payloads.get(r.at as usize..)?.get(..beats(r.bytes as usize));
        if self.blocks.iter().all(|r| padded(r).is_some_and(|p| F64::of(p) == r.sum)) {
            return Ok(());
        }
        Err(damaged("the sum of a block is wrong"))
    }
}

impl Output {
    /// Holds what the unit says came in against what the host has counted: `entries` by way, and `bytes_in`. How
    /// many numbers were set to 0 the host can't count, as an entry with the number 0 may have had it before:
    /// it is bounded here, and exact in a set that is proven.
    pub(crate) fn check_counts(
        &self,
        recipe: &Recipe,
        entries: &[u64],
        bytes_in: u64,
    ) -> Result<()> {
        let s = &self.status;
        let ways = s.entries_in.iter().map(|&n| u64::from(n));
        let due = entries.iter().copied().chain(std::iter::repeat(0));
        if ways.zip(due).any(|(said, counted)| said != counted) || s.bytes_in != bytes_in {
            return Err(lie("a unit counted other entries or bytes than were sent to it"));
        }
        let all: u64 = entries.iter().sum();
        let left = all.checked_sub(s.hidden).and_then(|left| left.checked_sub(s.elided));
        let zeroes = recipe.drop_tombstones && recipe.zero_seqs;
        let possible = if zeroes { left } else { left.map(|_| 0) };
        if possible.is_none_or(|most| s.zeroed > most) || (s.zeroed == 0 && s.sum_zeroed != 0) {
            return Err(lie("a unit dropped or changed more entries than were sent to it"));
        }
        Ok(())
    }
}

/// Holds the keys of a set's output against its range `(lo, hi]`. They were found to be in order, so the first and the
/// last one speak for all. The output begins with `replay`, whose keys lie below.
pub(crate) fn check_keys(
    range: &CleanRange,
    replay: &[u8],
    payloads: &[&[u8]],
    open: &[u8],
) -> Result<()> {
    let parse = || lie("the keys of a set's output do not parse");
    let first = payloads.first().map_or(Some(open), |payload| entries_of(payload));
    let new = first.and_then(|first| first.get(replay.len()..)).ok_or_else(parse)?;
    let first = match new {
        // Nothing joined the open block: the next block is new, if there is one.
        [] => match payloads.get(1).map_or(Some(open), |payload| entries_of(payload)) {
            _ if payloads.is_empty() => return Ok(()),
            next => next.and_then(|block| area::first_key(block, &[])),
        },
        _ => {
            let before = area::last_entry(replay).map(|(key, _)| key).unwrap_or_default();
            area::first_key(new, &before)
        }
    };
    let last = area::last_entry(open).and_then(|(key, _)| area::user_key(key));
    let (first, last) = (first.ok_or_else(parse)?, last.ok_or_else(parse)?);
    let above = range.lo.as_ref().is_none_or(|lo| first[..] > **lo);
    if above && range.hi.as_ref().is_none_or(|hi| last[..] <= **hi) {
        return Ok(());
    }
    Err(lie("a set's output has keys of other sets"))
}

/// The entries of a plain block, without its restart points and their number.
fn entries_of(payload: &[u8]) -> Option<&[u8]> {
    let (rest, count) = payload.split_last_chunk::<4>()?;
    let points = (u32::from_le_bytes(*count) as usize).checked_mul(4)?;
    rest.get(..rest.len().checked_sub(points)?)
}

#[cold]
fn lie(what: &str) -> Error {
    Error::new(ErrorKind::Internal, what)
}
