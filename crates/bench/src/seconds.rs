//! Latency second by second: a histogram of some hundred bytes for each, whose steps are a fifth of a value wide.

use std::time::Duration;

/// Powers of two of nanoseconds, four steps each: up to 18 minutes.
const STEPS: usize = 4 * 40;

/// Operations of each second, by how long they took.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seconds(Vec<Second>);

#[derive(Clone, Debug)]
struct Second {
    counts: Box<[u32; STEPS]>,
    max: u64,
}

impl Default for Second {
    fn default() -> Second {
        Second { counts: Box::new([0; STEPS]), max: 0 }
    }
}

/// The step of a value: its highest bit and the two below it.
fn step(nanos: u64) -> usize {
    let n = nanos.max(4);
    let bit = 63 - n.leading_zeros() as usize;
    ((bit - 2) * 4 + (n >> (bit - 2)) as usize % 4).min(STEPS - 1)
}

/// The largest value of a step, in nanoseconds.
fn top(step: usize) -> u64 {
    let (bit, quarter) = (step / 4, step as u64 % 4);
    ((4 + quarter + 1) << bit) - 1
}

impl Seconds {
    /// An operation that ended in `second` took so long.
    #[inline]
    pub(crate) fn note(&mut self, second: usize, took: Duration) {
        if second >= self.0.len() {
            self.0.resize_with(second + 1, Second::default);
        }
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let of = &mut self.0[second];
        of.counts[step(nanos)] += 1;
        of.max = of.max.max(nanos);
    }

    /// Adds another lane's.
    pub(crate) fn merge(&mut self, other: &Seconds) {
        self.0.resize_with(self.0.len().max(other.0.len()), Second::default);
        for (sum, second) in self.0.iter_mut().zip(&other.0) {
            sum.counts.iter_mut().zip(&*second.counts).for_each(|(sum, n)| *sum += n);
            sum.max = sum.max.max(second.max);
        }
    }

    /// Of each second its median, 99th percentile and slowest, in microseconds; zeros where nothing ended.
    pub(crate) fn series(&self) -> Vec<[f64; 3]> {
        self.0.iter().map(Second::figures).collect()
    }
}

impl Second {
    fn figures(&self) -> [f64; 3] {
        let all: u64 = self.counts.iter().map(|&n| u64::from(n)).sum();
        let at = |share: f64| {
            let (due, mut seen) = ((all as f64 * share).ceil() as u64, 0);
            let reached = self.counts.iter().position(|&n| {
                seen += u64::from(n);
                seen >= due && seen > 0
            });
            reached.map_or(0.0, |step| top(step).min(self.max) as f64 / 1e3)
        };
        [at(0.5), at(0.99), self.max as f64 / 1e3]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_holds_its_values_and_they_are_near_its_top() {
        for nanos in [4u64, 5, 7, 8, 9, 100, 1000, 12_345, 1 << 20, (1 << 30) + 7] {
            let top = top(step(nanos));
            assert!(nanos <= top && top < nanos * 5 / 4 + 1, "{nanos} {top}");
        }
        assert_eq!(step(0), step(4));
        assert_eq!(step(u64::MAX), STEPS - 1);
    }

    #[test]
    fn each_second_has_its_own_percentiles() {
        let mut seconds = Seconds::default();
        (0..98).for_each(|_| seconds.note(0, Duration::from_micros(10)));
        let mut other = Seconds::default();
        (0..2).for_each(|_| other.note(0, Duration::from_millis(5)));
        other.note(2, Duration::from_micros(1));
        seconds.merge(&other);
        let series = seconds.series();
        let [median, high, max] = series[0];
        assert!((10.0..12.5).contains(&median), "{median}");
        assert_eq!((high, max), (5000.0, 5000.0), "a step's top is no more than the slowest");
        assert_eq!(series[1], [0.0; 3]);
        assert_eq!(series[2], [1.0; 3]);
    }
}
