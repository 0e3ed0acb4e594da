//! What a life is judged by: areas under the active jobs, bytes by level and kind, waits by cause.
//!
//! Keeps: two spans, the load and then the drain; areas are exact, not sampled.

use std::collections::BTreeMap;

use lithify_base::MAX_LEVELS;
use lithify_plan::{Cause, Kind};

/// Length of a step of the series, nanoseconds.
pub const STEP: u64 = 100_000_000;

/// Zero of nothing, where [`Iterator::sum`] has minus zero, which is printed.
pub(crate) fn sum(of: impl Iterator<Item = f64>) -> f64 {
    of.fold(0.0, |all, one| all + one)
}

/// Jobs of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct KindTally {
    /// How many.
    pub jobs: u64,
    /// Bytes they read.
    pub read: u64,
    /// Bytes they wrote.
    pub written: u64,
    /// Job seconds.
    pub seconds: f64,
}

/// What was measured of a span of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Span {
    /// Its length.
    pub seconds: f64,
    /// Job seconds of compactions by (highest input level, output level).
    pub active: BTreeMap<(u8, u8), f64>,
    /// Job seconds of flushes.
    pub flushing: f64,
    /// Seconds with so many compactions active.
    pub at_once: Vec<f64>,
    /// Bytes written to each level.
    pub written: [u64; MAX_LEVELS],
    /// Compactions by kind.
    pub kinds: BTreeMap<Kind, KindTally>,
    /// Seconds a writer waited, by cause; slowed down, stopped.
    pub waited: BTreeMap<Cause, (f64, f64)>,
}

impl Span {
    /// Mean number of active compactions.
    pub fn mean_active(&self) -> f64 {
        sum(self.active.values().copied()) / self.seconds.max(1e-9)
    }
    /// Share of time with more than half of `slots` active.
    pub fn more_than_half(&self, slots: usize) -> f64 {
        let busy = sum(self.at_once.iter().skip(slots / 2 + 1).copied());
        busy / self.seconds.max(1e-9)
    }
    /// Seconds writers waited in all: slowed down, stopped.
    pub fn all_waits(&self) -> (f64, f64) {
        self.waited.values().fold((0.0, 0.0), |s, w| (s.0 + w.0, s.1 + w.1))
    }
    /// Bytes written to tables.
    pub fn all_written(&self) -> u64 {
        self.written.iter().sum()
    }
}

/// One tenth of a second.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Step {
    /// Mean active compactions by levels.
    pub active: BTreeMap<(u8, u8), f64>,
    /// Mean active flushes.
    pub flushes: f64,
    /// At its end: runs over the worst key of level 0.
    pub l0_depth: u32,
    /// At its end: bytes of compaction outstanding.
    pub debt: u64,
    /// User bytes written in it.
    pub bytes: f64,
    /// Share of it in which the writer waited.
    pub stalled: f64,
}

/// The measurements of a life.
#[derive(Debug, Default)]
pub struct Tally {
    /// The span that runs.
    pub span: Span,
    since: u64,
    now: u64,
    /// Pairs of levels that had jobs, with how many they have.
    active: Vec<((u8, u8), usize)>,
    flushes: usize,
    /// Steps that are over.
    pub steps: Vec<Step>,
    /// The step that runs.
    pub step: Step,
    /// True while the writer waits.
    pub stalled: bool,
}

impl Tally {
    /// Time goes on to `now`.
    pub fn advance(&mut self, now: u64) {
        while self.now < now {
            let step_end = (self.now / STEP + 1) * STEP;
            let to = now.min(step_end);
            self.add((to - self.now) as f64 / 1e9);
            self.now = to;
            if to == step_end {
                self.steps.push(std::mem::take(&mut self.step));
            }
        }
    }

    fn add(&mut self, seconds: f64) {
        let part = seconds * 1e9 / STEP as f64;
        let mut all = 0;
        for &(pair, jobs) in self.active.iter().filter(|a| a.1 > 0) {
            *self.span.active.entry(pair).or_default() += jobs as f64 * seconds;
            *self.step.active.entry(pair).or_default() += jobs as f64 * part;
            all += jobs;
        }
        self.span.flushing += self.flushes as f64 * seconds;
        self.step.flushes += self.flushes as f64 * part;
        self.step.stalled += if self.stalled { part } else { 0.0 };
        if self.span.at_once.len() <= all {
            self.span.at_once.resize(all + 1, 0.0);
        }
        self.span.at_once[all] += seconds;
    }

    fn jobs(&mut self, pair: (u8, u8)) -> &mut usize {
        let at = self.active.iter().position(|a| a.0 == pair).unwrap_or_else(|| {
            self.active.push((pair, 0));
            self.active.len() - 1
        });
        &mut self.active[at].1
    }

    /// A job begins (`levels` of a compaction).
    pub fn begin(&mut self, levels: Option<(u8, u8)>) {
        match levels {
            Some(pair) => *self.jobs(pair) += 1,
            None => self.flushes += 1,
        }
    }
    /// A job ends.
    pub fn end(&mut self, levels: Option<(u8, u8)>) {
        match levels {
            Some(pair) => *self.jobs(pair) -= 1,
            None => self.flushes -= 1,
        }
    }
    /// Ends the span that runs and begins the next one.
    pub fn cut(&mut self, now: u64) -> Span {
        self.advance(now);
        self.span.seconds = (now - self.since) as f64 / 1e9;
        self.since = now;
        std::mem::take(&mut self.span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn areas_are_exact() {
        let mut t = Tally::default();
        t.begin(Some((0, 1)));
        t.advance(50_000_000);
        t.begin(Some((1, 2)));
        t.advance(150_000_000);
        t.end(Some((0, 1)));
        t.advance(200_000_000);
        let span = t.cut(200_000_000);
        assert!((span.mean_active() - 1.5).abs() < 1e-9);
        assert!((span.more_than_half(2) - 0.5).abs() < 1e-9);
        assert_eq!(t.steps.len(), 2);
        assert!((t.steps[0].active[&(0, 1)] - 1.0).abs() < 1e-9);
        assert!((t.steps[1].active[&(1, 2)] - 1.0).abs() < 1e-9);
    }

    #[test]
    fn what_had_no_jobs_has_none_and_not_minus_none() {
        assert_eq!(format!("{:.2}", Span::default().mean_active()), "0.00");
    }
}
