//! Seeded pseudo-random numbers.
//!
//! Equal seeds give equal streams on every machine. Seeds come from [`crate::Rt::seed`]; nothing
//! in this crate draws entropy on its own except the real runtime, once, at its start. Not for
//! cryptography.

/// A small seeded generator (wyrand); cloning copies its position in the stream.
#[derive(Clone, Debug)]
pub struct Random(fastrand::Rng);

impl Random {
    /// The stream that belongs to `seed`.
    pub fn from_seed(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }

    /// A new generator whose stream is independent of the rest of this one.
    pub fn fork(&mut self) -> Self {
        Self(self.0.fork())
    }

    /// A uniform 64-bit number.
    pub fn next_u64(&mut self) -> u64 {
        self.0.u64(..)
    }

    /// A uniform number in `0..n`, and 0 when `n` is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        if n == 0 { 0 } else { self.0.u64(..n) }
    }

    /// True once in `n` draws on average; always for `n` of 0 or 1.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// A uniform number in `0.0..1.0`.
    pub fn unit(&mut self) -> f64 {
        self.0.f64()
    }

    /// Overwrites `bytes` with random ones.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        self.0.fill(bytes);
    }

    /// Puts `items` in a uniformly random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        self.0.shuffle(items);
    }
}

/// The seed of the part of the program called `who`, derived from one `root` seed.
///
/// FNV-1a over the name, then the finaliser of SplitMix64 (Steele, Lea, Flood, 2014), so that
/// similar names and neighbouring roots give unrelated seeds.
pub fn derive_seed(root: u64, who: &str) -> u64 {
    let name = who.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let mut z = root.wrapping_add(name).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_fixes_the_stream() {
        let draw = |seed| {
            let mut random = Random::from_seed(seed);
            let mut bytes = [0; 16];
            random.fill(&mut bytes);
            (random.next_u64(), random.below(1000), bytes)
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn bounds_hold_at_the_edges() {
        let mut random = Random::from_seed(1);
        assert_eq!(random.below(0), 0);
        assert_eq!(random.below(1), 0);
        assert!(random.one_in(0) && random.one_in(1));
        assert!((0..1000).all(|_| random.below(3) < 3));
        assert!((0..1000).all(|_| (0.0..1.0).contains(&random.unit())));
    }

    #[test]
    fn derived_seeds_differ_by_name_and_root() {
        let seeds = [derive_seed(1, "a"), derive_seed(1, "b"), derive_seed(2, "a")];
        assert_eq!(derive_seed(1, "a"), seeds[0]);
        assert!(seeds[0] != seeds[1] && seeds[0] != seeds[2] && seeds[1] != seeds[2]);
    }
}
