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
/// Bytes of a round of one lane.
const ROUND: usize = 32;

/// What an entry holds but for its tag: `key_hash` is XXPH3 of the user key.
#[inline(always)]
pub fn content(key_hash: u64, value: &[u8]) -> u64 {
    let start = key_hash ^ (value.len() as u64).wrapping_mul(K[1]);
    if zoo::on(Bug::WeighedByLength) {
        return start;
    }
    match value.len() {
        65..=128 => ends::<64>(start, value),
        33..=64 => ends::<32>(start, value),
        16..=32 => ends::<16>(start, value),
        0..16 => short(start, value),
        _ => long(start, value),
    }
}

/// A value of `N` to twice as many bytes: its first and its last `N`, which may have some in common.
#[inline(always)]
fn ends<const N: usize>(start: u64, value: &[u8]) -> u64 {
    let (Some(first), Some(last)) = (value.first_chunk::<N>(), value.last_chunk::<N>()) else {
        return start;
    };
    let (first, last) = (first.as_chunks::<16>().0, last.as_chunks::<16>().0);
    first.iter().zip(last).fold(start, |state, (a, b)| round(state, a, b))
}

/// A value of less than 16 bytes.
#[inline(never)]
fn short(start: u64, value: &[u8]) -> u64 {
    let half = |bytes: &[u8; 4]| u64::from(u32::from_le_bytes(*bytes));
    let (a, b) = match (value.first_chunk::<8>(), value.last_chunk::<8>()) {
        (Some(a), Some(b)) => (u64::from_le_bytes(*a), u64::from_le_bytes(*b)),
        _ => match (value.first_chunk::<4>(), value.last_chunk::<4>()) {
            (Some(a), Some(b)) => (half(a), half(b)),
            _ => (value.iter().fold(0, |word, &byte| word << 8 | u64::from(byte)), 0),
        },
    };
    fold(multiply(start ^ a, K[0] ^ b))
}

/// A value of more than 128 bytes: in lanes, so that no step waits for the one before, then what no
/// longer fills a stripe of all lanes, and the last bytes once more rather than one by one.
#[inline(never)]
fn long(start: u64, value: &[u8]) -> u64 {
    let (mut state, mut rest) = (start, value);
    if value.len() >= LONG {
        let (stripes, after) = value.as_chunks::<{ 4 * ROUND }>();
        let mut lanes = [start, start ^ K[0], start ^ K[1], start ^ K[0] ^ K[1]];
        for stripe in stripes {
            for (lane, bytes) in lanes.iter_mut().zip(stripe.as_chunks::<ROUND>().0) {
                *lane = halves(*lane, bytes);
            }
        }
        let [a, b, c, d] = lanes;
        (state, rest) = (fold(multiply(a ^ K[0], b)) ^ fold(multiply(c, d ^ K[1])), after);
    }
    state = rest.as_chunks::<ROUND>().0.iter().fold(state, halves);
    value.last_chunk::<ROUND>().map_or(state, |last| halves(state, last))
}

/// The weight of an entry from its [`content`] and its tag.
#[inline(always)]
pub fn weigh(content: u64, tag: Tag) -> u64 {
    fold(multiply(content ^ tag.0, K[1]))
}

#[inline(always)]
fn halves(state: u64, bytes: &[u8; ROUND]) -> u64 {
    match bytes.as_chunks::<16>().0 {
        [a, b] => round(state, a, b),
        _ => state,
    }
}

/// Two multiplications for 32 bytes. The first product goes whole into the second one, its halves into one
/// factor each, which spares a folding. It must not go further: from product to product, a value of zeros
/// would lose bits at both ends.
#[inline(always)]
fn round(state: u64, a: &[u8; 16], b: &[u8; 16]) -> u64 {
    let (a, b) = (words(a), words(b));
    let (low, high) = multiply(state ^ a[0], K[0] ^ a[1]);
    fold(multiply(low ^ b[0], high ^ b[1]))
}

#[inline(always)]
fn words(bytes: &[u8; 16]) -> [u64; 2] {
    let word = |at: usize| bytes[at..].first_chunk::<8>().map_or(0, |w| u64::from_le_bytes(*w));
    [word(0), word(8)]
}

/// The low and the high half of the product.
#[inline(always)]
fn multiply(a: u64, b: u64) -> (u64, u64) {
    let product = u128::from(a) * u128::from(b);
    (product as u64, (product >> 64) as u64)
}

#[inline(always)]
fn fold((low, high): (u64, u64)) -> u64 {
    low ^ high
}

#[cfg(test)]
mod tests;
