//! The two payloads that bind a log: seals promise what was synced, the predecessor record says
//! how the log before this one ended.
//!
//! Keeps: fixed sizes, fixed fields; a seal names its own log and offset, so a copy of it anywhere
//! else is recognised as foreign, and repeats the checksum of the log's predecessor record, so that one
//! which a deleted log left at the start of a file that was never synced is, too.
//! Leaves to others: when seals are written, and the tail rule (see [`tail`](super::tail)).

use lithify_base::{Error, MAX_SEQ, Result, Seq};

use super::record::{HEADER_SIZE, RecordWriter, TYPE_PREDECESSOR, TYPE_SEAL};
use lithify_format::varint::Reader;

/// With the checksum of the log's predecessor record.
const VERSION: u8 = 2;
/// Without it, as builds before it wrote them.
const BARE: u8 = 1;

/// Why a seal was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum SealReason {
    /// Before a commit group, because the synced offset has advanced.
    Group = 1,
    /// The log was idle.
    Idle = 2,
    /// The log was closed in order.
    Close = 3,
}

/// A promise inside the log: every byte below `synced` was synced before this seal was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seal {
    /// Why it was written.
    pub reason: SealReason,
    /// Number of the log it belongs to.
    pub log_number: u64,
    /// Byte offset of this seal's own header in the log.
    pub offset: u64,
    /// Every byte below this offset is durable. At most `offset`.
    pub synced: u64,
    /// Last sequence number given out below this seal. Above that of the last batch if writes
    /// skipped the log: the next batch then starts behind it.
    pub last_seq: Seq,
    /// Checksum of the predecessor record that the log begins with; 0 if it begins with none.
    /// `None` in a seal of version 1.
    pub head: Option<u32>,
}

impl Seal {
    /// Size of a seal's payload, bytes.
    pub const ENCODED_LEN: usize = Self::BARE_LEN + 4;
    /// Size of the payload of a seal of version 1.
    pub const BARE_LEN: usize = 34;

    /// The payload, in `room`.
    pub fn encode<'a>(&self, room: &'a mut [u8; Self::ENCODED_LEN]) -> &'a [u8] {
        room[0] = self.head.map_or(BARE, |_| VERSION);
        room[1] = self.reason as u8;
        room[2..10].copy_from_slice(&self.log_number.to_le_bytes());
        room[10..18].copy_from_slice(&self.offset.to_le_bytes());
        room[18..26].copy_from_slice(&self.synced.to_le_bytes());
        room[26..34].copy_from_slice(&self.last_seq.to_le_bytes());
        room[34..].copy_from_slice(&self.head.unwrap_or(0).to_le_bytes());
        &room[..self.len()]
    }

    /// Size of this payload, bytes.
    fn len(&self) -> usize {
        self.head.map_or(Self::BARE_LEN, |_| Self::ENCODED_LEN)
    }

    /// Whether the seal was written to log `log_number` at `offset`, behind the predecessor record that
    /// the log has now: it begins with `log`. A seal of version 1 says nothing of that record.
    pub fn is_of(&self, log_number: u64, offset: u64, log: &[u8]) -> bool {
        let in_place = self.log_number == log_number && self.offset == offset;
        in_place && self.head.is_none_or(|head| head == head_of(log))
    }

    /// Reads a payload. Errors: `Corruption` for a wrong size or reason or a promise beyond the
    /// seal itself, `Unsupported` for a version of a later release.
    pub fn decode(payload: &[u8]) -> Result<Seal> {
        let mut r = Reader::new(payload);
        let version = r.u8()?;
        if version > VERSION {
            return Err(Error::unsupported(format!("log seal of version {version}")));
        }
        let reason = match r.u8()? {
            1 => SealReason::Group,
            2 => SealReason::Idle,
            3 => SealReason::Close,
            b => return Err(Error::corruption(format!("log seal with unknown reason {b}"))),
        };
        let seal = Seal {
            reason,
            log_number: r.u64()?,
            offset: r.u64()?,
            synced: r.u64()?,
            last_seq: r.u64()?,
            head: if version == VERSION { Some(r.u32()?) } else { None },
        };
        let impossible = seal.synced > seal.offset || seal.last_seq > MAX_SEQ;
        if version < BARE || !r.is_empty() || impossible {
            return Err(Error::corruption("log seal with impossible fields"));
        }
        Ok(seal)
    }

    /// Appends a seal record to `out`. The seal's `offset` is that of the next byte of the log that `writer`
    /// writes, and becomes that of the seal's own header. Returns the seal as written.
    pub fn append(mut self, writer: &mut RecordWriter, out: &mut Vec<u8>) -> Seal {
        self.offset += writer.fill_before_special(self.len()) as u64;
        assert!(self.synced <= self.offset, "a seal promises only what lies below it");
        writer.append_special(TYPE_SEAL, self.encode(&mut [0; Self::ENCODED_LEN]), out);
        self
    }
}

/// What the seals of a log that begins with `log` say of its predecessor record.
pub fn head_of(log: &[u8]) -> u32 {
    match log.first_chunk::<HEADER_SIZE>() {
        Some(&[c0, c1, c2, c3, _, _, TYPE_PREDECESSOR]) => u32::from_le_bytes([c0, c1, c2, c3]),
        _ => 0,
    }
}

/// First record of a log: how the log before it ended. A missing, short or extra log is noticed
/// by comparing this with what the directory holds. RocksDB writes the same record, and compares it, when
/// its `track_and_verify_wals` is on; its number is the first one of the last record there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Predecessor {
    /// Number of the log before this one.
    pub log_number: u64,
    /// Its size in bytes.
    pub size: u64,
    /// Last sequence number written to it; in logs of RocksDB the first one of its last record.
    pub last_seq: Seq,
}

impl Predecessor {
    /// Size of the payload, bytes.
    pub const ENCODED_LEN: usize = 24;

    /// The payload.
    pub fn encode(&self) -> [u8; Self::ENCODED_LEN] {
        let mut b = [0; Self::ENCODED_LEN];
        b[..8].copy_from_slice(&self.log_number.to_le_bytes());
        b[8..16].copy_from_slice(&self.size.to_le_bytes());
        b[16..].copy_from_slice(&self.last_seq.to_le_bytes());
        b
    }

    /// Reads a payload; `Corruption` if its size is wrong.
    pub fn decode(payload: &[u8]) -> Result<Predecessor> {
        let mut r = Reader::new(payload);
        let p = Predecessor { log_number: r.u64()?, size: r.u64()?, last_seq: r.u64()? };
        if !r.is_empty() {
            return Err(Error::corruption("log predecessor record of a wrong size"));
        }
        Ok(p)
    }

    /// Appends the record to `out`; it belongs at the start of the file.
    pub fn append(&self, writer: &mut RecordWriter, out: &mut Vec<u8>) {
        writer.append_special(TYPE_PREDECESSOR, &self.encode(), out);
    }
}
