//! MixGraph: which keys a large production store was seen to touch, as a generator.
//!
//! The key space is cut into `ranges` equal key ranges. The `r`-th most wanted (from 1) is taken
//! with a weight of `a e^(b r) + c e^(d r)`, and which range that is, a seeded shuffle says; inside
//! a range all keys are alike. Model and constants: Cao, Dong, Vemuri and Du, "Characterizing,
//! Modeling, and Benchmarking RocksDB Key-Value Workloads at Facebook" (FAST 2020), the constants
//! as db_bench's documentation gives them for "Prefix_random".
//!
//! Worked example, 10 ranges of 1000 keys: weights 0.782, 0.055, 0.015, ... sum to 0.919, so the
//! first range takes 85% of all operations; with 50 ranges the flat tail takes more and the first
//! range 78%.
//!
//! db_bench itself ignores the ranges whenever one of its in-range constants is zero, so that its
//! "Prefix_random" is plain uniform; [`MixKeys::uniform`] reproduces that accident.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::keys::{Permutation, mix};

const A: f64 = 14.18;
const B: f64 = -2.917;
const C: f64 = 0.0164;
const D: f64 = -0.08082;
/// Scan lengths: a generalised Pareto distribution of this shape and scale, modulo a maximum, as
/// db_bench has it (the 5% beyond become uniform; cut off instead they would double the mean).
const SCAN_SHAPE: f64 = 2.517;
const SCAN_SCALE: f64 = 14.236;
const SCAN_MAX: u64 = 10_000;

/// Shares of puts, gets and seeks, `put:get:seek`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Mix {
    shares: [f64; 3],
}

/// An operation of a mix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MixOp {
    Put,
    Get,
    Seek,
}

impl Mix {
    /// Puts alone.
    pub const PUTS: Mix = Mix { shares: [1.0, 0.0, 0.0] };

    /// The operation that `coin`, uniform in 0 to 1, stands for.
    pub(crate) fn op(&self, coin: f64) -> MixOp {
        let at = coin * self.shares.iter().sum::<f64>();
        if at < self.shares[0] {
            MixOp::Put
        } else if at < self.shares[0] + self.shares[1] {
            MixOp::Get
        } else {
            MixOp::Seek
        }
    }
}

impl FromStr for Mix {
    type Err = String;

    fn from_str(text: &str) -> Result<Mix, String> {
        let wrong = || format!("`{text}` is no mix; give put:get:seek, for example 8:1:1");
        let shares: Result<Vec<f64>, _> = text.split(':').map(str::parse).collect();
        let shares: [f64; 3] = shares.map_err(|_| wrong())?.try_into().map_err(|_| wrong())?;
        let sound =
            shares.iter().all(|s| (0.0..=1e6).contains(s)) && shares.iter().any(|&s| s > 0.0);
        if sound { Ok(Mix { shares }) } else { Err(wrong()) }
    }
}

impl TryFrom<String> for Mix {
    type Error = String;

    fn try_from(text: String) -> Result<Mix, String> {
        text.parse()
    }
}

impl From<Mix> for String {
    fn from(mix: Mix) -> String {
        let [put, get, seek] = mix.shares;
        format!("{put}:{get}:{seek}")
    }
}

/// The keys of one phase.
#[derive(Clone, Debug)]
pub(crate) struct MixKeys {
    keys: u64,
    /// Sums of the weights up to each rank, the last being 1.
    sums: Vec<f64>,
    order: Permutation,
}

impl MixKeys {
    /// `keys` keys in `ranges` ranges.
    pub(crate) fn new(keys: u64, ranges: u64, seed: u64) -> MixKeys {
        let ranges = ranges.clamp(1, keys);
        let mut sum = 0.0;
        let mut sums: Vec<f64> = (1..=ranges)
            .map(|r| {
                let r = r as f64;
                sum += A * (B * r).exp() + C * (D * r).exp();
                sum
            })
            .collect();
        sums.iter_mut().for_each(|s| *s /= sum);
        MixKeys { keys, sums, order: Permutation::new(ranges, mix(seed ^ ranges)) }
    }

    /// All keys alike.
    pub(crate) fn uniform(keys: u64) -> MixKeys {
        MixKeys { keys, sums: vec![1.0], order: Permutation::new(1, 0) }
    }

    /// A key. `turn` moves every rank on to the range so many places further, so that what was
    /// hot cools down.
    #[inline]
    pub(crate) fn pick(&self, rng: &mut fastrand::Rng, turn: u64) -> u64 {
        let ranges = self.sums.len() as u64;
        let coin = rng.f64();
        let rank = self.sums.partition_point(|&sum| sum <= coin) as u64;
        let range = (self.order.at(rank.min(ranges - 1)) + turn % ranges) % ranges;
        let edge = |i: u64| (u128::from(self.keys) * u128::from(i) / u128::from(ranges)) as u64;
        rng.u64(edge(range)..edge(range + 1))
    }
}

/// Entries that a seek of the mix reads.
pub(crate) fn scan_length(rng: &mut fastrand::Rng) -> u64 {
    let u = 1.0 - rng.f64();
    let length = SCAN_SCALE * (u.powf(-SCAN_SHAPE) - 1.0) / SCAN_SHAPE;
    (length as u64 % SCAN_MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often each of `ranges` ranges is hit in `n` draws.
    fn hits(keys: &MixKeys, ranges: u64, turn: u64, n: u64) -> Vec<u64> {
        let mut rng = fastrand::Rng::with_seed(3);
        let mut hits = vec![0; ranges as usize];
        for _ in 0..n {
            let key = keys.pick(&mut rng, turn);
            hits[(key * ranges / keys.keys) as usize] += 1;
        }
        hits
    }

    #[test]
    fn the_first_range_is_as_hot_as_its_weight() {
        for (ranges, want) in [(10, 0.851), (50, 0.780)] {
            let keys = MixKeys::new(100_000, ranges, 1);
            let hits = hits(&keys, ranges, 0, 100_000);
            let hot = hits.iter().max().copied().unwrap_or(0) as f64 / 1e5;
            assert!((hot - want).abs() < 0.005, "{ranges}: {hot}");
            assert!(hits.iter().all(|&h| h > 0), "{ranges}: {hits:?}");
        }
    }

    #[test]
    fn a_turn_moves_the_heat_on_by_one_range() {
        let keys = MixKeys::new(100_000, 10, 1);
        let hottest = |turn| {
            let hits = hits(&keys, 10, turn, 10_000);
            (0..10).max_by_key(|&i| hits[i]).unwrap_or(0)
        };
        assert_eq!(hottest(1), (hottest(0) + 1) % 10);
        assert_eq!(hottest(10), hottest(0));
    }

    #[test]
    fn the_accident_is_uniform() {
        let keys = MixKeys::uniform(100_000);
        for hits in hits(&keys, 10, 5, 100_000) {
            assert!((9_500..10_500).contains(&hits), "{hits}");
        }
    }

    #[test]
    fn scans_are_short_with_a_long_tail() {
        let mut rng = fastrand::Rng::with_seed(1);
        let mut lengths: Vec<u64> = (0..10_001).map(|_| scan_length(&mut rng)).collect();
        lengths.sort_unstable();
        // The median of the distribution: 14.236 (2^2.517 - 1) / 2.517 = 26.7.
        assert!((22..32).contains(&lengths[5_000]), "{}", lengths[5_000]);
        let long = lengths.iter().filter(|&&l| l > 1_000).count();
        assert!((800..1_300).contains(&long), "{long} of 10001 scans are long");
        assert!(lengths[0] == 1 && lengths[10_000] < SCAN_MAX, "{}", lengths[10_000]);
    }

    #[test]
    fn mixes_are_parsed_and_shared_out() {
        let mix: Mix = "8:1:1".parse().expect("a mix");
        assert_eq!((mix.op(0.0), mix.op(0.79)), (MixOp::Put, MixOp::Put));
        assert_eq!(
            (mix.op(0.81), mix.op(0.89), mix.op(0.91)),
            (MixOp::Get, MixOp::Get, MixOp::Seek)
        );
        assert_eq!(String::from(mix).parse(), Ok(mix));
        assert_eq!("1:0:0".parse(), Ok(Mix::PUTS));
        for wrong in ["", "1:2", "1:2:3:4", "0:0:0", "-1:1:1", "a:b:c", "NaN:1:1"] {
            assert!(wrong.parse::<Mix>().is_err(), "{wrong}");
        }
    }
}
