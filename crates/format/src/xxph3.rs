//! XXPH3: the preview of XXH3 that RocksDB froze as the hash of its filters. It is **not** the
//! XXH3 of today, and both occur in one table: XXH3 checks blocks, XXPH3 places filter keys.
//!
//! Keeps: the exact 64-bit result of RocksDB's `Hash64` with seed 0, at every length; a changed
//! bit here is a filter that denies keys that exist.
//! Source: the algorithm of Yann Collet's xxHash preview (2019), as fixed by RocksDB's `xxph3.h`,
//! where the empty input hashes a constant instead of 0.
//!
//! Four classes by length: up to 16 bytes (one or two multiplies, the usual key), 17 to 128,
//! 129 to 240, and longer (eight parallel accumulators over 64-byte stripes).

const P32_1: u64 = 0x9E37_79B1;
const P32_2: u64 = 0x85EB_CA77;
const P32_3: u64 = 0xC2B2_AE3D;
const P64_1: u64 = 0x9E37_79B1_85EB_CA87;
const P64_2: u64 = 0xC2B2_AE3D_27D4_EB4F;
const P64_3: u64 = 0x1656_67B1_9E37_79F9;
const P64_4: u64 = 0x85EB_CA77_C2B2_AE63;
const P64_5: u64 = 0x27D4_EB2F_1656_67C5;

/// The fixed pseudorandom secret that keys every step.
const SECRET: [u8; 192] = [
    0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad, 0x1c,
    0xde, 0xd4, 0x6d, 0xe9, 0x83, 0x90, 0x97, 0xdb, 0x72, 0x40, 0xa4, 0xa4, 0xb7, 0xb3, 0x67, 0x1f,
    0xcb, 0x79, 0xe6, 0x4e, 0xcc, 0xc0, 0xe5, 0x78, 0x82, 0x5a, 0xd0, 0x7d, 0xcc, 0xff, 0x72, 0x21,
    0xb8, 0x08, 0x46, 0x74, 0xf7, 0x43, 0x24, 0x8e, 0xe0, 0x35, 0x90, 0xe6, 0x81, 0x3a, 0x26, 0x4c,
    0x3c, 0x28, 0x52, 0xbb, 0x91, 0xc3, 0x00, 0xcb, 0x88, 0xd0, 0x65, 0x8b, 0x1b, 0x53, 0x2e, 0xa3,
    0x71, 0x64, 0x48, 0x97, 0xa2, 0x0d, 0xf9, 0x4e, 0x38, 0x19, 0xef, 0x46, 0xa9, 0xde, 0xac, 0xd8,
    0xa8, 0xfa, 0x76, 0x3f, 0xe3, 0x9c, 0x34, 0x3f, 0xf9, 0xdc, 0xbb, 0xc7, 0xc7, 0x0b, 0x4f, 0x1d,
    0x8a, 0x51, 0xe0, 0x4b, 0xcd, 0xb4, 0x59, 0x31, 0xc8, 0x9f, 0x7e, 0xc9, 0xd9, 0x78, 0x73, 0x64,
    0xea, 0xc5, 0xac, 0x83, 0x34, 0xd3, 0xeb, 0xc3, 0xc5, 0x81, 0xa0, 0xff, 0xfa, 0x13, 0x63, 0xeb,
    0x17, 0x0d, 0xdd, 0x51, 0xb7, 0xf0, 0xda, 0x49, 0xd3, 0x16, 0x55, 0x26, 0x29, 0xd4, 0x68, 0x9e,
    0x2b, 0x16, 0xbe, 0x58, 0x7d, 0x47, 0xa1, 0xfc, 0x8f, 0xf8, 0xb8, 0xd1, 0x7a, 0xd0, 0x31, 0xce,
    0x45, 0xcb, 0x3a, 0x8f, 0x95, 0x16, 0x04, 0x28, 0xaf, 0xd7, 0xfb, 0xca, 0xbb, 0x4b, 0x40, 0x7e,
];

/// Bytes per stripe of the long form.
const STRIPE: usize = 64;
/// Stripes between two scrambles: the secret moves 8 bytes a stripe.
const STRIPES_PER_ROUND: usize = (SECRET.len() - STRIPE) / 8;

/// Hash of a filter key: RocksDB's `Hash64` with seed 0. Takes 2-3 ns for keys up to 24 bytes.
#[inline]
pub fn xxph3_64(input: &[u8]) -> u64 {
    let n = input.len() as u64;
    match input.len() {
        9..=16 => {
            let lo = head64(input, 0) ^ secret64(0);
            let hi = tail64(input, 8) ^ secret64(8);
            avalanche(n.wrapping_add(lo).wrapping_add(hi).wrapping_add(fold(lo, hi)))
        }
        17..=32 => {
            let acc = n.wrapping_mul(P64_1).wrapping_add(mix_head(input, 0, 0));
            avalanche(acc.wrapping_add(mix_tail(input, 16, 16)))
        }
        33..=128 => up_to_128(input),
        0..=8 => up_to_8(input),
        129..=240 => up_to_240(input),
        _ => long(input),
    }
}

fn up_to_8(input: &[u8]) -> u64 {
    let n = input.len();
    match *input {
        [] => fold(secret64(0), P64_2),
        [a] => tiny(a, a, a, 1),
        [a, b] => tiny(a, b, b, 2),
        [a, b, c] => tiny(a, b, c, 3),
        _ => {
            let lo = input.first_chunk::<4>().map_or(0, |c| u32::from_le_bytes(*c));
            let hi = input.last_chunk::<4>().map_or(0, |c| u32::from_le_bytes(*c));
            let keyed = (u64::from(lo) | u64::from(hi) << 32) ^ secret64(0);
            let mixed = (n as u64).wrapping_add((keyed ^ keyed >> 51).wrapping_mul(P32_1));
            avalanche((mixed ^ mixed >> 47).wrapping_mul(P64_2))
        }
    }
}

fn tiny(first: u8, middle: u8, last: u8, n: u8) -> u64 {
    let combined = u32::from_le_bytes([first, middle, last, n]);
    let keyed = u64::from(combined) ^ (secret64(0) & 0xffff_ffff);
    avalanche(keyed.wrapping_mul(P64_1))
}

fn up_to_128(input: &[u8]) -> u64 {
    let n = input.len();
    let mut acc = (n as u64).wrapping_mul(P64_1);
    let mut at = 0;
    // Pairs of 16-byte lanes, from both ends inwards.
    while at == 0 || n > 2 * at {
        acc = acc.wrapping_add(mix_head(input, at, 2 * at));
        acc = acc.wrapping_add(mix_tail(input, at + 16, 2 * at + 16));
        at += 16;
    }
    avalanche(acc)
}

fn up_to_240(input: &[u8]) -> u64 {
    let n = input.len();
    let mut acc = (n as u64).wrapping_mul(P64_1);
    for lane in 0..8 {
        acc = acc.wrapping_add(mix_head(input, 16 * lane, 16 * lane));
    }
    acc = avalanche(acc);
    for lane in 8..n / 16 {
        acc = acc.wrapping_add(mix_head(input, 16 * lane, 16 * (lane - 8) + 3));
    }
    avalanche(acc.wrapping_add(mix_tail(input, 16, 136 - 17)))
}

#[inline(never)]
fn long(input: &[u8]) -> u64 {
    let mut acc = [P32_3, P64_1, P64_2, P64_3, P64_4, P32_2, P64_5, P32_1];
    for round in input.chunks(STRIPE * STRIPES_PER_ROUND) {
        for (i, stripe) in round.chunks_exact(STRIPE).enumerate() {
            accumulate(&mut acc, stripe, 8 * i);
        }
        if round.len() == STRIPE * STRIPES_PER_ROUND {
            scramble(&mut acc);
        }
    }
    // The last stripe ends with the input and may overlap the one before it.
    if !input.len().is_multiple_of(STRIPE)
        && let Some(last) = input.last_chunk::<STRIPE>()
    {
        accumulate(&mut acc, last, SECRET.len() - STRIPE - 7);
    }
    let mut h = (input.len() as u64).wrapping_mul(P64_1);
    for (i, pair) in acc.chunks_exact(2).enumerate() {
        let (a, b) = (pair[0] ^ secret64(11 + 16 * i), pair[1] ^ secret64(19 + 16 * i));
        h = h.wrapping_add(fold(a, b));
    }
    avalanche(h)
}

#[inline]
fn accumulate(acc: &mut [u64; 8], stripe: &[u8], secret_at: usize) {
    for (i, (a, lane)) in acc.iter_mut().zip(stripe.chunks_exact(8)).enumerate() {
        let v = head64(lane, 0);
        let k = v ^ secret64(secret_at + 8 * i);
        *a = a.wrapping_add(v).wrapping_add((k & 0xffff_ffff).wrapping_mul(k >> 32));
    }
}

fn scramble(acc: &mut [u64; 8]) {
    for (i, a) in acc.iter_mut().enumerate() {
        *a = (*a ^ *a >> 47 ^ secret64(SECRET.len() - STRIPE + 8 * i)).wrapping_mul(P32_1);
    }
}

#[inline(always)]
fn mix_head(input: &[u8], at: usize, secret_at: usize) -> u64 {
    fold(head64(input, at) ^ secret64(secret_at), head64(input, at + 8) ^ secret64(secret_at + 8))
}

/// As [`mix_head`], for the 16 bytes that start `back` bytes before the end.
#[inline(always)]
fn mix_tail(input: &[u8], back: usize, secret_at: usize) -> u64 {
    fold(
        tail64(input, back) ^ secret64(secret_at),
        tail64(input, back - 8) ^ secret64(secret_at + 8),
    )
}

#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let p = u128::from(a) * u128::from(b);
    p as u64 ^ (p >> 64) as u64
}

#[inline(always)]
fn avalanche(mut h: u64) -> u64 {
    h ^= h >> 37;
    h = h.wrapping_mul(P64_3);
    h ^ h >> 32
}

/// Eight bytes at `at`. Callers have checked the length by their length class; the fallback
/// only keeps the function total.
#[inline(always)]
fn head64(input: &[u8], at: usize) -> u64 {
    input.get(at..).and_then(|s| s.first_chunk::<8>()).map_or(0, |c| u64::from_le_bytes(*c))
}

/// Eight bytes that start `back` bytes before the end.
#[inline(always)]
fn tail64(input: &[u8], back: usize) -> u64 {
    head64(input, input.len().wrapping_sub(back))
}

#[inline(always)]
fn secret64(at: usize) -> u64 {
    head64(&SECRET, at)
}

#[cfg(test)]
mod tests;
