//! What looks found, kept for a picture over time.
//!
//! Keeps: its memory is bounded. When it is full, neighbours become one: what adds up is added, of what stands at a
//! moment the larger counts, so a spike stays a spike and every sum stays what it was. A history of an hour has a
//! sample a second, one of a day a sample every half minute.

use std::time::Duration;

/// Most samples.
const SAMPLES_MAX: usize = 3600;

/// What happened between two looks, and how things stood at the second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// When the later look was, from the first one on.
    pub at: Duration,
    /// The time between the two.
    pub span: Duration,
    /// Bytes that logs and tables grew by.
    pub grown: [u64; 2],
    /// Microseconds that writes were stopped, and slowed.
    pub held: [u64; 2],
    /// Most runs of level 0 over one key.
    pub l0: u32,
    /// Jobs in flight.
    pub jobs: u32,
    /// Bytes of all tables.
    pub disk: u64,
}

/// Samples, oldest first.
#[derive(Default)]
pub struct History {
    samples: Vec<Sample>,
}

impl History {
    /// Adds the newest.
    pub fn add(&mut self, sample: Sample) {
        if self.samples.len() >= SAMPLES_MAX {
            self.samples = self.samples.chunks(2).map(joined).collect();
        }
        self.samples.push(sample);
    }

    /// Those that are newer than `after`.
    pub fn since(&self, after: Duration) -> &[Sample] {
        &self.samples[self.samples.partition_point(|sample| sample.at <= after)..]
    }
}

fn joined(pair: &[Sample]) -> Sample {
    let [first, second] = pair else { return pair[0] };
    let sum = |a: [u64; 2], b: [u64; 2]| [a[0] + b[0], a[1] + b[1]];
    Sample {
        at: second.at,
        span: first.span + second.span,
        grown: sum(first.grown, second.grown),
        held: sum(first.held, second.held),
        l0: first.l0.max(second.l0),
        jobs: first.jobs.max(second.jobs),
        disk: first.disk.max(second.disk),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_history_keeps_its_sums_and_its_spikes() {
        let mut history = History::default();
        let second = Duration::from_secs(1);
        for n in 1..=20_000u32 {
            let l0 = if n == 7777 { 99 } else { 3 };
            let at = second * n;
            history.add(Sample { at, span: second, grown: [1, 2], l0, ..Sample::default() });
        }
        let all = history.since(Duration::ZERO);
        assert!(all.len() <= SAMPLES_MAX);
        assert_eq!(all.iter().map(|s| s.grown[1]).sum::<u64>(), 40_000);
        assert_eq!(all.iter().map(|s| s.span).sum::<Duration>(), second * 20_000);
        assert_eq!(all.iter().map(|s| s.l0).max(), Some(99));
        assert!(all.is_sorted_by_key(|s| s.at));
        assert_eq!(history.since(second * 19_998).len(), 2);
        assert!(history.since(second * 20_000).is_empty());
    }
}
