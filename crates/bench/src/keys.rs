//! Keys: db_bench's encoding of key numbers, and orders that visit them.
//!
//! Encoding (db_bench's): the number, big-endian, in the first 8 bytes, then `'0'` up to the key
//! size; shorter keys keep the low bytes. Key 258 at 10 bytes: `00 00 00 00 00 00 01 02 '0' '0'`.

/// Writes key `number` into `key`, whose length is the key size.
#[inline]
pub(crate) fn encode_key(number: u64, key: &mut [u8]) {
    let n = key.len().min(8);
    key[..n].copy_from_slice(&number.to_be_bytes()[8 - n..]);
    key[n..].fill(b'0');
}

/// The number in `key`, or `None` if this is no key of the bench.
#[inline]
pub(crate) fn decode_key(key: &[u8]) -> Option<u64> {
    let n = key.len().min(8);
    let mut bytes = [0; 8];
    bytes[8 - n..].copy_from_slice(&key[..n]);
    key[n..].iter().all(|&b| b == b'0').then(|| u64::from_be_bytes(bytes))
}

/// How many different keys a key size can tell apart.
pub(crate) fn distinct_keys(key_size: usize) -> u64 {
    if key_size >= 8 { u64::MAX } else { 1 << (8 * key_size) }
}

/// A seeded permutation of `0..n` without a table: a four-round Feistel network on the smallest
/// even number of bits that holds `n`, repeated while its result is outside (cycle walking, so
/// the result is a permutation of `0..n` itself; fewer than four rounds on average).
#[derive(Clone, Debug)]
pub(crate) struct Permutation {
    n: u64,
    half_bits: u32,
    seed: u64,
}

impl Permutation {
    /// The permutation of `0..n` named by `seed`. `n` is at most 2^62.
    pub(crate) fn new(n: u64, seed: u64) -> Permutation {
        assert!(n <= 1 << 62, "a permutation covers at most 2^62 numbers");
        let bits = 64 - n.saturating_sub(1).leading_zeros();
        Permutation { n, half_bits: bits.div_ceil(2).max(1), seed }
    }

    /// Where `i` goes.
    #[inline]
    pub(crate) fn at(&self, i: u64) -> u64 {
        assert!(i < self.n, "{i} is outside the permutation of {} numbers", self.n);
        let mut x = self.shuffle(i);
        while x >= self.n {
            x = self.shuffle(x);
        }
        x
    }

    fn shuffle(&self, x: u64) -> u64 {
        let mask = (1 << self.half_bits) - 1;
        let (mut left, mut right) = (x >> self.half_bits, x & mask);
        for round in 0..4 {
            let mixed = mix(right ^ self.seed.wrapping_add(round << 56)) & mask;
            (left, right) = (right, left ^ mixed);
        }
        left << self.half_bits | right
    }
}

/// A 64-bit mixing function (the finisher of SplitMix64).
#[inline]
pub(crate) fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_db_bench_keys() {
        let mut key = [0; 10];
        encode_key(258, &mut key);
        assert_eq!(&key, b"\0\0\0\0\0\0\x01\x0200");
        assert_eq!(decode_key(&key), Some(258));
        let mut short = [0; 3];
        encode_key(258, &mut short);
        assert_eq!(short, [0, 1, 2]);
        assert_eq!(decode_key(&short), Some(258));
        assert_eq!(decode_key(b"\0\0\0\0\0\0\x01\x020x"), None);
    }

    #[test]
    fn a_permutation_visits_every_number_once() {
        for n in [1, 2, 3, 7, 64, 1000, 4097, 65_537] {
            let order = Permutation::new(n, 42);
            let mut seen = vec![false; n as usize];
            for i in 0..n {
                let slot = &mut seen[order.at(i) as usize];
                assert!(!*slot, "{n}: {i} collides");
                *slot = true;
            }
        }
    }

    #[test]
    fn a_permutation_is_shuffled_and_seeded() {
        let (a, b) = (Permutation::new(10_000, 1), Permutation::new(10_000, 2));
        let fixed = (0..10_000).filter(|&i| a.at(i) == i).count();
        let same = (0..10_000).filter(|&i| a.at(i) == b.at(i)).count();
        let rising = (1..10_000).filter(|&i| a.at(i) > a.at(i - 1)).count();
        assert!(fixed < 20 && same < 20, "{fixed} fixed points, {same} in common");
        assert!((4_500..5_500).contains(&rising), "{rising} of 9999 steps rise");
    }
}
