//! Log records, the writing half: payloads in, 32 KiB blocks out.
//!
//! A record is a 7-byte header (u32 masked CRC32C over type byte and payload, u16 length, u8
//! type) and a payload. One that does not fit its block is cut into FIRST, MIDDLE and LAST
//! fragments; a block tail too short for a header is filled with zeros.
//!
//! Keeps: [`RecordWriter::append`] emits all fragments of a record in one call, so nothing is
//! ever placed between them. Special records (seals, predecessor) are never cut.
//! Leaves to others: where the bytes go and when they are synced.
//!
//! Worked example: a payload of 32,760 bytes at block offset 0 has 32,761 bytes of room after
//! its header and is one FULL record, which leaves 1 byte of the block: the next record starts
//! with 1 zero byte. At block offset 32,761 exactly 7 bytes are left: a header fits, so a FIRST
//! fragment with no payload is written there and the payload follows in the next block.

use lithify_base::zoo::{self, Bug};

use lithify_format::checksum;

/// Size of a log block, bytes.
pub const BLOCK_SIZE: usize = 32 * 1024;
/// Size of a record header: u32 checksum, u16 length, u8 type.
pub const HEADER_SIZE: usize = 7;
/// Size of the header of RocksDB's recyclable records: the same and a u32 log number.
pub const RECYCLABLE_HEADER_SIZE: usize = 11;
/// Bit of a type byte that lets a reader skip a record whose type it does not know.
pub const IGNORABLE: u8 = 0x80;
/// Type byte of a predecessor record (RocksDB's).
pub const TYPE_PREDECESSOR: u8 = 130;
/// Type byte of a seal. Ignorable, so RocksDB skips it.
pub const TYPE_SEAL: u8 = 0xC0;

pub(super) const FULL: u8 = 1;
pub(super) const FIRST: u8 = 2;
pub(super) const MIDDLE: u8 = 3;
pub(super) const LAST: u8 = 4;

/// Longest run of zeros that this writer leaves at the end of a block: one byte less than a seal.
pub(super) const MAX_FILL: usize = HEADER_SIZE + super::seal::Seal::ENCODED_LEN - 1;

/// Checksum of a stored record: CRC32C, rotated and offset so that a CRC of bytes that contain
/// CRCs stays strong (LevelDB's mask).
#[inline]
pub(super) fn masked_crc32c(bytes: &[u8]) -> u32 {
    checksum::mask(checksum::crc32c(bytes))
}

/// Appends payloads as log records to a buffer, keeping track of the place in the block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordWriter {
    /// Bytes of the current block already used, 0 to [`BLOCK_SIZE`].
    block_offset: usize,
}

impl RecordWriter {
    /// A writer at the start of a file.
    pub fn new() -> RecordWriter {
        RecordWriter::default()
    }

    /// A writer that goes on at byte `file_offset` of a file.
    pub fn at(file_offset: u64) -> RecordWriter {
        RecordWriter { block_offset: (file_offset % BLOCK_SIZE as u64) as usize }
    }

    /// Appends `payload` as one record to `out`. The bytes of `out` before the call are never
    /// touched, so several records may be gathered and written at once.
    #[inline]
    pub fn append(&mut self, payload: &[u8], out: &mut Vec<u8>) {
        if self.block_offset + HEADER_SIZE + payload.len() <= BLOCK_SIZE {
            out.reserve(HEADER_SIZE + payload.len());
            self.emit(FULL, payload, out);
        } else {
            self.append_fragments(payload, out);
        }
    }

    /// Appends an unfragmented record of a special type; fills the block with zeros first if it
    /// does not fit.
    ///
    /// # Panics
    /// If `payload` is larger than a block: special payloads have fixed small sizes.
    pub fn append_special(&mut self, type_byte: u8, payload: &[u8], out: &mut Vec<u8>) {
        assert!(payload.len() <= BLOCK_SIZE - HEADER_SIZE, "a special record fits one block");
        self.make_room(HEADER_SIZE + payload.len(), out);
        self.emit(type_byte, payload, out);
    }

    /// Zeros that [`append_special`](Self::append_special) will write before the header of a
    /// special record with `payload_len` bytes. A seal needs it to know its own offset.
    pub fn fill_before_special(&self, payload_len: usize) -> usize {
        let left = BLOCK_SIZE - self.block_offset;
        if left < HEADER_SIZE + payload_len { left } else { 0 }
    }

    /// Bytes of the current block already used.
    pub fn block_offset(&self) -> usize {
        self.block_offset
    }

    /// Upper bound of the bytes that [`append`](Self::append) writes for a payload of
    /// `payload_len` bytes, at any block offset.
    pub fn max_encoded_len(payload_len: usize) -> usize {
        let fragments = payload_len / (BLOCK_SIZE - HEADER_SIZE) + 2;
        payload_len + fragments * HEADER_SIZE + HEADER_SIZE - 1
    }

    #[cold]
    fn append_fragments(&mut self, payload: &[u8], out: &mut Vec<u8>) {
        out.reserve(Self::max_encoded_len(payload.len()));
        let mut rest = payload;
        let mut begun = false;
        loop {
            if zoo::on(Bug::SealInsideRecord) && begun {
                self.append_special(TYPE_SEAL, &[0; super::seal::Seal::ENCODED_LEN], out);
            }
            self.make_room(HEADER_SIZE, out);
            let room = BLOCK_SIZE - self.block_offset - HEADER_SIZE;
            let (piece, after) = rest.split_at(rest.len().min(room));
            let type_byte = match (begun, after.is_empty()) {
                (false, true) => FULL,
                (false, false) => FIRST,
                (true, false) => MIDDLE,
                (true, true) => LAST,
            };
            self.emit(type_byte, piece, out);
            if after.is_empty() {
                return;
            }
            rest = after;
            begun = true;
        }
    }

    /// Starts a new block if fewer than `need` bytes of this one are left.
    fn make_room(&mut self, need: usize, out: &mut Vec<u8>) {
        let left = BLOCK_SIZE - self.block_offset;
        if left < need {
            out.resize(out.len() + left, 0);
            self.block_offset = 0;
        }
    }

    /// Writes one physical record. The type byte lies directly before the payload, so after the
    /// copy the checksum is one pass over contiguous bytes that are still in the cache.
    #[inline]
    fn emit(&mut self, type_byte: u8, payload: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        let len = payload.len() as u16; // fits: payload.len() <= BLOCK_SIZE - HEADER_SIZE
        let [lo, hi] = len.to_le_bytes();
        out.extend_from_slice(&[0, 0, 0, 0, lo, hi, type_byte]);
        out.extend_from_slice(payload);
        let crc = masked_crc32c(&out[start + 6..]);
        out[start..start + 4].copy_from_slice(&crc.to_le_bytes());
        self.block_offset += HEADER_SIZE + payload.len();
    }
}

const _: () = assert!(BLOCK_SIZE - HEADER_SIZE <= u16::MAX as usize);

#[cfg(test)]
mod tests;
