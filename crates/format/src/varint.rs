//! LEB128 integers and a bounds-checked cursor over untrusted bytes.
//!
//! Keeps: no function here panics or allocates on any input. A varint that runs past its width
//! or past the end of the bytes is refused; a longer encoding of a small value (trailing zero
//! groups) is accepted, as RocksDB and LevelDB accept it.
//!
//! Worked example: 300 = `0b10_0101100` is written low seven bits first, the high bit of a byte
//! saying "more follows": `ac 02`.

use lithify_base::{Error, Result};

/// Longest encoding of a 32-bit value, in bytes.
pub const MAX_LEN_32: usize = 5;
/// Longest encoding of a 64-bit value, in bytes.
pub const MAX_LEN_64: usize = 10;

/// Appends `v` to `out`.
#[inline]
pub fn put_u32(out: &mut Vec<u8>, v: u32) {
    put_u64(out, u64::from(v));
}

/// Appends `v` to `out`.
#[inline]
pub fn put_u64(out: &mut Vec<u8>, mut v: u64) {
    while v >= 0x80 {
        out.push(v as u8 | 0x80);
        v >>= 7;
    }
    out.push(v as u8);
}

/// Bytes that [`put_u64`] writes for `v`: 1 to 10.
#[inline]
pub fn len_u64(v: u64) -> usize {
    (64 - (v | 1).leading_zeros() as usize).div_ceil(7)
}

/// Appends `bytes` with their length before them. Lengths are limited to 32 bits by every
/// format that uses this.
#[inline]
pub fn put_length_prefixed(out: &mut Vec<u8>, bytes: &[u8]) {
    put_u64(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Maps signed to unsigned so that small magnitudes stay short: 0, -1, 1, -2 become 0, 1, 2, 3.
#[inline]
pub fn zigzag(v: i64) -> u64 {
    ((v << 1) ^ (v >> 63)) as u64
}

/// Inverse of [`zigzag`].
#[inline]
pub fn unzigzag(v: u64) -> i64 {
    (v >> 1) as i64 ^ -((v & 1) as i64)
}

/// Splits a 32-bit varint off the front; `None` if it is cut short or over 32 bits.
#[inline]
pub fn get_u32(bytes: &[u8]) -> Option<(u32, &[u8])> {
    match bytes.split_first() {
        Some((&b, rest)) if b < 0x80 => Some((u32::from(b), rest)),
        _ => get_u32_long(bytes),
    }
}

fn get_u32_long(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let mut v = 0u64;
    for (i, &b) in bytes.iter().take(MAX_LEN_32).enumerate() {
        v |= u64::from(b & 0x7f) << (7 * i);
        if b < 0x80 {
            return Some((u32::try_from(v).ok()?, bytes.get(i + 1..)?));
        }
    }
    None
}

/// Splits a 64-bit varint off the front; `None` if it is cut short or over 64 bits.
#[inline]
pub fn get_u64(bytes: &[u8]) -> Option<(u64, &[u8])> {
    match bytes.split_first() {
        Some((&b, rest)) if b < 0x80 => Some((u64::from(b), rest)),
        Some((&a, [b, rest @ ..])) if *b < 0x80 => {
            Some((u64::from(a & 0x7f) | u64::from(*b) << 7, rest))
        }
        _ => get_u64_long(bytes),
    }
}

fn get_u64_long(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut v = 0u64;
    for (i, &b) in bytes.iter().take(MAX_LEN_64).enumerate() {
        if i == MAX_LEN_64 - 1 && b > 1 {
            return None;
        }
        v |= u64::from(b & 0x7f) << (7 * i);
        if b < 0x80 {
            return Some((v, bytes.get(i + 1..)?));
        }
    }
    None
}

/// A cursor over untrusted bytes. Every read either succeeds whole or returns a corruption
/// error that names the offset at which it started, and leaves the cursor where it was.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    total: usize,
}

impl<'a> Reader<'a> {
    /// A cursor at the start of `bytes`.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes, total: bytes.len() }
    }
    /// Bytes read so far.
    #[inline]
    pub fn offset(&self) -> usize {
        self.total - self.rest.len()
    }
    /// Bytes left.
    #[inline]
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }
    /// True if nothing is left.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }
    /// What is left, without reading it.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }
    /// One byte.
    #[inline]
    pub fn u8(&mut self) -> Result<u8> {
        Ok(self.array::<1>("byte")?[0])
    }
    /// A little-endian 16-bit integer.
    #[inline]
    pub fn u16(&mut self) -> Result<u16> {
        self.array("16-bit integer").map(u16::from_le_bytes)
    }
    /// A little-endian 32-bit integer.
    #[inline]
    pub fn u32(&mut self) -> Result<u32> {
        self.array("32-bit integer").map(u32::from_le_bytes)
    }
    /// A little-endian 64-bit integer.
    #[inline]
    pub fn u64(&mut self) -> Result<u64> {
        self.array("64-bit integer").map(u64::from_le_bytes)
    }
    /// A 32-bit varint.
    #[inline]
    pub fn var32(&mut self) -> Result<u32> {
        let (v, rest) = get_u32(self.rest).ok_or_else(|| self.bad("32-bit varint"))?;
        self.rest = rest;
        Ok(v)
    }
    /// A 64-bit varint.
    #[inline]
    pub fn var64(&mut self) -> Result<u64> {
        let (v, rest) = get_u64(self.rest).ok_or_else(|| self.bad("64-bit varint"))?;
        self.rest = rest;
        Ok(v)
    }
    /// The next `n` bytes.
    #[inline]
    pub fn bytes(&mut self, n: usize) -> Result<&'a [u8]> {
        let (head, rest) = self.rest.split_at_checked(n).ok_or_else(|| self.bad("byte string"))?;
        self.rest = rest;
        Ok(head)
    }
    /// A byte string with its 32-bit varint length before it.
    #[inline]
    pub fn length_prefixed(&mut self) -> Result<&'a [u8]> {
        let start = *self;
        let n = self.var32()? as usize;
        self.bytes(n).inspect_err(|_| *self = start)
    }
    fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N]> {
        let (head, rest) = self.rest.split_first_chunk::<N>().ok_or_else(|| self.bad(what))?;
        self.rest = rest;
        Ok(*head)
    }
    #[cold]
    fn bad(&self, what: &str) -> Error {
        Error::corruption(format!(
            "bad {what} at offset {} of a record of {} bytes",
            self.offset(),
            self.total
        ))
    }
}

#[cfg(test)]
mod tests;
