//! The content weight: one number that says what the point entries of a table hold together.
//!
//! The weight of a table is the wrapping sum over its entries of [`weigh`], a hash of the user key,
//! the sequence number, the kind and the bytes of the value. A sum needs no order, so an engine that merges
//! tables can check that what was read is what the tables hold, and that what was written is what
//! was read less what was dropped.
//!
//! Keeps: the numbers are in files (property [`WEIGHT`]), so this function never changes; another one
//! would take another name. A changed, swapped, shifted, shortened or lengthened value is seen unless
//! two sums of 64 bits meet by chance. It is no defence against a forger, who can choose bytes.
//! Leaves to others: range tombstones, which the properties count.
//!
//! Worked example: `weigh(content(xxph3_64(b"k"), b"v"), put@7)` is the weight of a table with the
//! one entry `k@7 -> v`. If a compaction sets the number to 0, only the outer call is made again.

use lithify_base::Tag;
use lithify_base::zoo::{self, Bug};

/// The property that has a table's content weight, as fixed64. Tables made outside of a database have
/// none, nor have those of RocksDB.
pub const WEIGHT: &str = "lithify.weight";

/// Odd, with bits everywhere: from wyhash, whose folded multiplication this is, too.
const K: [u64; 2] = [0xa076_1d64_78bd_642f, 0xe703_7ed1_a0b4_28db];
/// Values of at least so many bytes go through four lanes.
const LONG: usize = 256;
/// Bytes of a step of one lane.
const STEP: usize = 16;

/// What an entry holds but for its tag: `key_hash` is XXPH3 of the user key.
#[inline]
pub fn content(key_hash: u64, value: &[u8]) -> u64 {
    let start = key_hash ^ value.len() as u64;
    if zoo::on(Bug::WeighedByLength) {
        return start;
    }
    let Some(last) = value.last_chunk::<STEP>() else { return short(start, value) };
    let (mut acc, mut rest) = (start, value);
    if value.len() >= LONG {
        (acc, rest) = long(start, value);
    }
    for step in rest.as_chunks::<STEP>().0 {
        acc = mix(acc, step, K[0]);
    }
    // The last bytes once more, together with some before them, rather than one by one.
    mix(acc, last, K[1])
}

/// A value of less than a step.
fn short(acc: u64, value: &[u8]) -> u64 {
    let half = |bytes: &[u8; 4]| u64::from(u32::from_le_bytes(*bytes));
    let (a, b) = match (value.first_chunk::<8>(), value.last_chunk::<8>()) {
        (Some(a), Some(b)) => (u64::from_le_bytes(*a), u64::from_le_bytes(*b)),
        _ => match (value.first_chunk::<4>(), value.last_chunk::<4>()) {
            (Some(a), Some(b)) => (half(a), half(b)),
            _ => (value.iter().fold(0, |word, &byte| word << 8 | u64::from(byte)), 0),
        },
    };
    fold(acc ^ a, K[1] ^ b)
}

/// The bytes of a long value but for the last ones, in lanes, so that no step waits for the one before.
#[inline(never)]
fn long(acc: u64, value: &[u8]) -> (u64, &[u8]) {
    let (stripes, rest) = value.as_chunks::<{ 4 * STEP }>();
    let mut lanes = [acc, acc ^ K[0], acc ^ K[1], acc ^ K[0] ^ K[1]];
    for stripe in stripes {
        for (lane, step) in lanes.iter_mut().zip(stripe.as_chunks::<STEP>().0) {
            *lane = mix(*lane, step, K[0]);
        }
    }
    let [a, b, c, d] = lanes;
    (fold(a ^ K[0], b) ^ fold(c, d ^ K[1]), rest)
}

/// The weight of an entry from its [`content`] and its tag.
#[inline]
pub fn weigh(content: u64, tag: Tag) -> u64 {
    fold(content ^ tag.0, K[1])
}

#[inline(always)]
fn mix(acc: u64, step: &[u8; STEP], key: u64) -> u64 {
    let word = |at: usize| step[at..].first_chunk::<8>().map_or(0, |w| u64::from_le_bytes(*w));
    fold(acc ^ word(0), key ^ word(8))
}

#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let p = u128::from(a) * u128::from(b);
    p as u64 ^ (p >> 64) as u64
}

#[cfg(test)]
mod tests;
