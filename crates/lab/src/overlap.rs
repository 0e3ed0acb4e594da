//! How often keys of different files meet, from how often each key is written.
//!
//! Keeps: entries of a file among `w` keys stand for a number of writes to them, and files that are
//! merged stand for the sum of their writes. With uniform keys that is the rule of [`crate::space`].
//!
//! Worked example, uniform keys: 1000 writes to 1000 keys leave 1000 (1 - 1/e) = 632 entries; two
//! such files stand for 2000 writes and leave 1000 (1 - 1/e^2) = 865.

use std::sync::Arc;

/// Points of a curve per factor of e in writes per key.
const POINTS: f64 = 16.0;
/// Logarithms of the least and the most writes per key of a curve.
const ENDS: (f64, f64) = (-18.0, 18.0);

/// How often keys of different inputs meet.
#[derive(Clone, Debug)]
pub enum Overlap {
    /// As often as chance has it if all keys are alike.
    Random,
    /// Never: every key is written once.
    None,
    /// As often as chance has it if some are written more often.
    Skewed(Arc<Curve>),
}

impl Overlap {
    /// Different keys among `n` writes to `of` keys.
    pub fn distinct(&self, n: f64, of: f64) -> f64 {
        match self {
            Overlap::Random if of > 1.0 => of * -(n * (-1.0 / of).ln_1p()).exp_m1(),
            Overlap::Random => n.min(of),
            Overlap::None => n,
            Overlap::Skewed(curve) => of * curve.distinct(n / of),
        }
    }

    /// Different keys of files that have so many entries each among `width` keys.
    pub fn union(&self, entries: &[f64], width: f64) -> f64 {
        match (self, entries) {
            (_, [one]) => *one,
            (Overlap::None, _) => entries.iter().sum(),
            (Overlap::Random, _) => {
                let absent = |e: &f64| 1.0 - (e / width).min(1.0);
                width * (1.0 - entries.iter().map(absent).product::<f64>())
            }
            (Overlap::Skewed(curve), _) => {
                width * curve.distinct(entries.iter().map(|e| curve.writes(e / width)).sum())
            }
        }
    }
}

/// Different keys per key over writes per key, where the hot keys lie scattered.
#[derive(Debug, PartialEq)]
pub struct Curve {
    /// Logarithms of different keys per key, at equal steps of the logarithm of writes per key.
    points: Vec<f64>,
}

impl Curve {
    /// Of `keys` keys, of which the `i`-th most wanted comes with a weight of `1 / i^theta`.
    pub fn zipf(keys: u64, theta: f64) -> Curve {
        // Ranks in groups that grow by a fiftieth: first rank of each, and how many there are.
        let mut groups: Vec<(f64, f64)> = Vec::new();
        let mut first = 1;
        while first <= keys {
            let next = (first + first / 50 + 1).min(keys + 1);
            groups.push((((first + next - 1) as f64 / 2.0).powf(-theta), (next - first) as f64));
            first = next;
        }
        let weights: f64 = groups.iter().map(|(weight, n)| weight * n).sum();
        let at = |x: f64| {
            let each = x * keys as f64 / weights;
            let there = |(weight, n): &(f64, f64)| n * -(-each * weight).exp_m1();
            (groups.iter().map(there).sum::<f64>() / keys as f64).ln()
        };
        let steps = ((ENDS.1 - ENDS.0) * POINTS) as usize;
        Curve { points: (0..=steps).map(|i| at((ENDS.0 + i as f64 / POINTS).exp())).collect() }
    }

    /// Different keys per key after `x` writes per key.
    fn distinct(&self, x: f64) -> f64 {
        let at = (x.ln().clamp(ENDS.0, ENDS.1) - ENDS.0) * POINTS;
        let low = (at as usize).min(self.points.len() - 2);
        let (a, b) = (self.points[low], self.points[low + 1]);
        (a + (b - a) * (at - low as f64)).exp().min(x)
    }

    /// Writes per key that leave `y` different keys per key.
    fn writes(&self, y: f64) -> f64 {
        let log = y.ln();
        let high = self.points.partition_point(|p| *p < log).clamp(1, self.points.len() - 1);
        let (a, b) = (self.points[high - 1], self.points[high]);
        let part = if b > a { ((log - a) / (b - a)).clamp(0.0, 1.0) } else { 1.0 };
        (ENDS.0 + ((high - 1) as f64 + part) / POINTS).exp().max(y)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_of_many_writes_meet() {
        assert!((Overlap::Random.distinct(1000.0, 1000.0) - 632.3).abs() < 0.5);
        assert_eq!(Overlap::None.distinct(1000.0, 1000.0), 1000.0);
    }

    #[test]
    fn a_zipf_curve_counts_what_draws_leave() {
        let keys = 20_000u64;
        let weights: Vec<f64> = (1..=keys).map(|i| (i as f64).powf(-0.99)).collect();
        let mut sums = weights.clone();
        (1..sums.len()).for_each(|i| sums[i] += sums[i - 1]);
        let all = *sums.last().unwrap();
        let mut rng = fastrand::Rng::with_seed(7);
        let mut draw = |n: usize| -> Vec<bool> {
            let mut seen = vec![false; keys as usize];
            for _ in 0..n {
                let coin = rng.f64() * all;
                seen[sums.partition_point(|s| *s <= coin)] = true;
            }
            seen
        };
        let overlap = Overlap::Skewed(Arc::new(Curve::zipf(keys, 0.99)));
        let count = |seen: &[bool]| seen.iter().filter(|s| **s).count() as f64;
        for n in [200, 5_000, 60_000] {
            let (a, b) = (draw(n), draw(3 * n));
            let one = overlap.distinct(n as f64, keys as f64);
            assert!((one / count(&a) - 1.0).abs() < 0.07, "{n}: {one} of {}", count(&a));
            let both: Vec<bool> = a.iter().zip(&b).map(|(a, b)| a | b).collect();
            let union = overlap.union(&[count(&a), count(&b)], keys as f64);
            assert!((union / count(&both) - 1.0).abs() < 0.05, "{n}: {union}, {}", count(&both));
        }
    }

    #[test]
    fn writes_are_the_inverse_of_distinct() {
        let curve = Curve::zipf(1_000_000, 0.99);
        for x in [1e-6, 0.01, 0.3, 1.0, 5.0, 40.0] {
            let back = curve.writes(curve.distinct(x));
            assert!((back / x - 1.0).abs() < 0.01, "{x} comes back as {back}");
        }
    }
}
