//! Zipfian ranks: rank `i` (from 0) comes with a weight of `1 / (i + 1)^theta`.
//!
//! Inversion in constant time after Gray et al., "Quickly Generating Billion-Record Synthetic
//! Databases" (SIGMOD 1994), as YCSB uses it. The sum of all weights is exact for the first
//! million ranks and an integral beyond (its error there is below 10^-9).

/// Ranks whose weights are summed one by one.
const EXACT: u64 = 1_000_000;
/// The domain of YCSB's scrambled generator, whatever the number of records.
const SCRAMBLED_DOMAIN: u64 = 10_000_000_000;

/// A generator of ranks.
#[derive(Clone, Debug)]
pub(crate) struct Zipf {
    n: u64,
    sum: f64,
    eta: f64,
    alpha: f64,
    second: f64,
}

impl Zipf {
    /// Ranks `0..n` with exponent `theta`, above 0 and below 1.
    pub(crate) fn new(n: u64, theta: f64) -> Zipf {
        assert!(n > 0 && theta > 0.0 && theta < 1.0, "{n} ranks with exponent {theta}");
        let sum = zeta(n, theta);
        let second = 1.0 + 0.5f64.powf(theta);
        let eta = (1.0 - (2.0 / n as f64).powf(1.0 - theta)) / (1.0 - second / sum);
        Zipf { n, sum, eta, alpha: 1.0 / (1.0 - theta), second }
    }

    /// The ranks that YCSB scrambles: a wide domain, to be hashed into the records.
    pub(crate) fn scrambled(theta: f64) -> Zipf {
        Zipf::new(SCRAMBLED_DOMAIN, theta)
    }

    /// A rank.
    #[inline]
    pub(crate) fn pick(&self, rng: &mut fastrand::Rng) -> u64 {
        let u = rng.f64();
        let weight = u * self.sum;
        if weight < 1.0 {
            return 0;
        }
        if weight < self.second {
            return 1.min(self.n - 1);
        }
        let rank = self.n as f64 * (self.eta * u - self.eta + 1.0).powf(self.alpha);
        (rank as u64).min(self.n - 1)
    }
}

/// The sum of `1 / i^theta` for `i` in `1..=n`.
fn zeta(n: u64, theta: f64) -> f64 {
    let exact = n.min(EXACT);
    let sum: f64 = (1..=exact).map(|i| (i as f64).powf(-theta)).sum();
    if n == exact {
        return sum;
    }
    // Midpoints: every term is the area of its unit interval.
    let integral = |x: f64| x.powf(1.0 - theta) / (1.0 - theta);
    sum + integral(n as f64 + 0.5) - integral(exact as f64 + 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_is_ycsbs_constant() {
        let got = zeta(SCRAMBLED_DOMAIN, 0.99);
        assert!((got - 26.469_028_201_783_02).abs() < 1e-6, "{got}");
        assert!((zeta(3, 0.5) - (1.0 + 0.5f64.sqrt() + (1.0f64 / 3.0).sqrt())).abs() < 1e-12);
    }

    #[test]
    fn ranks_come_by_their_weights() {
        let zipf = Zipf::new(1_000, 0.99);
        let mut rng = fastrand::Rng::with_seed(1);
        let mut hits = vec![0u32; 1_000];
        for _ in 0..200_000 {
            hits[zipf.pick(&mut rng) as usize] += 1;
        }
        let share = |rank: usize| f64::from(hits[rank]) / 2e5 * zipf.sum;
        assert!((share(0) - 1.0).abs() < 0.03, "{}", share(0));
        assert!((share(1) - 0.5).abs() < 0.03, "{}", share(1));
        let tail: u32 = hits[500..].iter().sum();
        let want = (zipf.sum - zeta(500, 0.99)) / zipf.sum;
        assert!((f64::from(tail) / 2e5 - want).abs() < 0.01, "{tail}");
    }

    #[test]
    fn one_record_is_enough() {
        let zipf = Zipf::new(1, 0.9);
        let mut rng = fastrand::Rng::with_seed(1);
        assert!((0..1_000).all(|_| zipf.pick(&mut rng) == 0));
    }
}
