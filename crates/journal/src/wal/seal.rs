//! The two payloads that bind a log: seals promise what was synced, the predecessor record says
//! how the log before this one ended.
//!
//! Keeps: fixed sizes, fixed fields, no optional parts; a seal names its own log and offset, so
//! a copy of it anywhere else is recognised as foreign.
//! Leaves to others: when seals are written, and the tail rule (see [`tail`](super::tail)).

use lithify_base::{Error, MAX_SEQ, Result, Seq};

use super::record::{RecordWriter, TYPE_PREDECESSOR, TYPE_SEAL};
use lithify_format::varint::Reader;

const VERSION: u8 = 1;

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
}

impl Seal {
    /// Size of a seal's payload, bytes.
    pub const ENCODED_LEN: usize = 34;

    /// The payload.
    pub fn encode(&self) -> [u8; Self::ENCODED_LEN] {
        let mut b = [0; Self::ENCODED_LEN];
        b[0] = VERSION;
        b[1] = self.reason as u8;
        b[2..10].copy_from_slice(&self.log_number.to_le_bytes());
        b[10..18].copy_from_slice(&self.offset.to_le_bytes());
        b[18..26].copy_from_slice(&self.synced.to_le_bytes());
        b[26..34].copy_from_slice(&self.last_seq.to_le_bytes());
        b
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
        };
        let impossible = seal.synced > seal.offset || seal.last_seq > MAX_SEQ;
        if version != VERSION || !r.is_empty() || impossible {
            return Err(Error::corruption("log seal with impossible fields"));
        }
        Ok(seal)
    }

    /// Appends a seal record to `out`. `file_offset` is the offset in the log of the next byte
    /// that `writer` writes. Returns the seal as written, with its own offset.
    pub fn append(
        reason: SealReason,
        log_number: u64,
        file_offset: u64,
        synced: u64,
        last_seq: Seq,
        writer: &mut RecordWriter,
        out: &mut Vec<u8>,
    ) -> Seal {
        let offset = file_offset + writer.fill_before_special(Self::ENCODED_LEN) as u64;
        assert!(synced <= offset, "a seal promises only what lies below it");
        let seal = Seal { reason, log_number, offset, synced, last_seq };
        writer.append_special(TYPE_SEAL, &seal.encode(), out);
        seal
    }
}

/// First record of a log: how the log before it ended. A missing, short or extra log is noticed
/// by comparing this with what the directory holds. RocksDB verifies the same record when its
/// `track_and_verify_wals` is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Predecessor {
    /// Number of the log before this one.
    pub log_number: u64,
    /// Its size in bytes.
    pub size: u64,
    /// Last sequence number written to it.
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
