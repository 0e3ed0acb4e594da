//! Values that prove themselves: a function of key number, version and seed, cheap to make and
//! to check (one copy or one comparison).
//!
//! Layout of a value of 16 bytes or more, little-endian, all words masked so that they look random:
//! `key number (8) | version (4) | check word (4) | a slice of the random pool`; the check word
//! and the slice's offset derive from key, version and seed. Shorter values hold a hash of key and
//! seed and carry no version. So a flipped bit, another key's value, or an older version of the
//! same key is seen.
//!
//! Leaves to others: which version is due ([`crate::model`]).

use crate::keys::mix;

const HEADER: usize = 16;
const POOL_BYTES: usize = 1 << 18;

/// What is wrong with a value that was read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    Length { got: usize, want: usize },
    ForeignKey { found: u64 },
    Version { found: u32, due: u32 },
    Bytes { at: usize },
}

impl std::fmt::Display for Flaw {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Flaw::Length { got, want } => write!(f, "it has {got} bytes instead of {want}"),
            Flaw::ForeignKey { found } => write!(f, "it belongs to key {found}"),
            Flaw::Version { found, due } => {
                write!(f, "it is version {found} where version {due} is due")
            }
            Flaw::Bytes { at } => write!(f, "byte {at} differs"),
        }
    }
}

/// Makes and checks the values of one run.
pub(crate) struct Values {
    pool: Vec<u8>,
    size: usize,
    seed: u64,
}

impl Values {
    /// Values of `size` bytes that compress to about `ratio` of their size (1 = not at all).
    pub(crate) fn new(size: usize, ratio: f64, seed: u64) -> Values {
        let mut pool = vec![0; POOL_BYTES + size];
        let mut rng = fastrand::Rng::with_seed(mix(seed));
        if ratio >= 1.0 {
            rng.fill(&mut pool);
        } else {
            // As db_bench does: pieces of 100 bytes whose first part is random and then repeats.
            let fresh = ((100.0 * ratio) as usize).max(1);
            for piece in pool.chunks_mut(100) {
                let first = fresh.min(piece.len());
                rng.fill(&mut piece[..first]);
                for i in first..piece.len() {
                    piece[i] = piece[i - first];
                }
            }
        }
        Values { pool, size, seed: mix(seed ^ 0x76616c) }
    }

    /// Bytes of each value.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// Writes the value of `key` at `version` into `value`.
    #[inline]
    pub(crate) fn make(&self, key: u64, version: u32, value: &mut Vec<u8>) {
        value.clear();
        if self.size < HEADER {
            let hash = mix(key ^ self.seed).to_le_bytes();
            value.extend(hash.iter().cycle().take(self.size));
            return;
        }
        let (word, check, body) = self.parts(key, version);
        value.extend_from_slice(&word.to_le_bytes());
        value.extend_from_slice(&(version ^ self.version_mask()).to_le_bytes());
        value.extend_from_slice(&check.to_le_bytes());
        value.extend_from_slice(body);
    }

    /// Checks `value` read for `key`: its length, owner and check word, and all bytes if `deep`.
    /// Returns its version, or 0 for values too short to carry one.
    #[inline]
    pub(crate) fn check(&self, key: u64, value: &[u8], deep: bool) -> Result<u32, Flaw> {
        if value.len() != self.size {
            return Err(Flaw::Length { got: value.len(), want: self.size });
        }
        if self.size < HEADER {
            let hash = mix(key ^ self.seed).to_le_bytes();
            return match value.iter().zip(hash.iter().cycle()).position(|(a, b)| a != b) {
                None => Ok(0),
                Some(at) => Err(Flaw::Bytes { at }),
            };
        }
        let version = read_u32(value, 8) ^ self.version_mask();
        let (word, check, body) = self.parts(key, version);
        if value[..8] != word.to_le_bytes() {
            let found = read_u64(value, 0) ^ self.key_mask(version);
            return Err(Flaw::ForeignKey { found });
        }
        if read_u32(value, 12) != check {
            return Err(Flaw::Bytes { at: 12 });
        }
        if deep && value[HEADER..] != *body {
            let at = value[HEADER..].iter().zip(body).position(|(a, b)| a != b).unwrap_or(0);
            return Err(Flaw::Bytes { at: HEADER + at });
        }
        Ok(version)
    }

    /// First word, check word and body of a value.
    #[inline]
    fn parts(&self, key: u64, version: u32) -> (u64, u32, &[u8]) {
        let mixed = mix(key ^ self.seed ^ (u64::from(version) << 32));
        let offset = (mixed >> 32) as usize % POOL_BYTES;
        let body = &self.pool[offset..offset + self.size - HEADER];
        (key ^ self.key_mask(version), mixed as u32, body)
    }

    fn key_mask(&self, version: u32) -> u64 {
        mix(self.seed.wrapping_add(u64::from(version)))
    }

    fn version_mask(&self) -> u32 {
        (self.seed >> 16) as u32
    }
}

fn read_u32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn read_u64(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wrong_byte_is_seen() {
        for size in [1, 7, 8, 15, 16, 17, 32, 100, 1024] {
            let values = Values::new(size, 1.0, 7);
            let mut value = Vec::new();
            values.make(12_345, 3, &mut value);
            assert_eq!(value.len(), size);
            let version = if size < HEADER { 0 } else { 3 };
            assert_eq!(values.check(12_345, &value, true), Ok(version));
            for at in 0..size {
                for bit in 0..8 {
                    let mut wrong = value.clone();
                    wrong[at] ^= 1 << bit;
                    assert!(values.check(12_345, &wrong, true).is_err(), "{size}: byte {at}");
                }
            }
            assert!(values.check(12_345, &value[1..], true).is_err());
        }
    }

    #[test]
    fn another_keys_value_is_named() {
        let values = Values::new(64, 1.0, 7);
        let mut value = Vec::new();
        values.make(5, 1, &mut value);
        assert_eq!(values.check(6, &value, false), Err(Flaw::ForeignKey { found: 5 }));
    }

    #[test]
    fn versions_and_seeds_differ() {
        let (a, b) = (Values::new(64, 1.0, 1), Values::new(64, 1.0, 2));
        let (mut x, mut y) = (Vec::new(), Vec::new());
        a.make(5, 1, &mut x);
        a.make(5, 2, &mut y);
        assert_ne!(x[HEADER..], y[HEADER..]);
        assert!(b.check(5, &x, false).is_err(), "a value of another seed passes");
    }

    #[test]
    fn compressible_values_repeat() {
        let values = Values::new(4096, 0.25, 1);
        let mut value = Vec::new();
        values.make(1, 1, &mut value);
        let repeats = value.windows(26).filter(|w| w[0] == w[25]).count();
        assert!(repeats > 2_500, "only {repeats} bytes repeat");
    }
}
