//! Processors shared by the tasks that compute: with more tasks than cores each gets an equal part.
//!
//! Keeps one clock of service: it runs at full speed up to as many tasks as cores and at
//! `cores / tasks` above, so a task ends when that clock has advanced by its work.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::world::Task;

/// The processors.
#[derive(Debug)]
pub struct Cores {
    cores: f64,
    /// Nanoseconds of service that a task got that was there all the time.
    service: f64,
    /// When `service` was right.
    at: u64,
    /// Ends in terms of `service` (as bits, which order like positive numbers), ties by arrival.
    tasks: BinaryHeap<Reverse<(u64, u64, Task)>>,
    arrivals: u64,
    /// Core nanoseconds spent.
    pub spent: f64,
}

impl Cores {
    /// `cores` idle processors.
    pub fn new(cores: f64) -> Cores {
        Cores {
            cores: cores.max(0.01),
            service: 0.0,
            at: 0,
            tasks: BinaryHeap::new(),
            arrivals: 0,
            spent: 0.0,
        }
    }

    /// From now on there are so many.
    pub fn set_cores(&mut self, now: u64, cores: f64) {
        self.advance(now);
        self.cores = cores.max(0.01);
    }

    /// How many there are now.
    pub fn count(&self) -> f64 {
        self.cores
    }

    fn speed(&self) -> f64 {
        (self.cores / self.tasks.len().max(1) as f64).min(1.0)
    }

    fn advance(&mut self, now: u64) {
        let served = now.saturating_sub(self.at) as f64 * self.speed();
        self.spent += served * self.tasks.len() as f64;
        self.service += served;
        self.at = self.at.max(now);
    }

    /// Starts a task of `work` nanoseconds on a core of its own.
    pub fn start(&mut self, now: u64, work: f64, task: Task) {
        self.advance(now);
        self.arrivals += 1;
        let end = (self.service + work.max(0.0)).to_bits();
        self.tasks.push(Reverse((end, self.arrivals, task)));
    }

    /// When the next task ends, if no other comes before.
    pub fn next_end(&self) -> Option<u64> {
        let Reverse((end, ..)) = self.tasks.peek()?;
        let left = (f64::from_bits(*end) - self.service).max(0.0) / self.speed();
        Some(self.at + left.ceil() as u64)
    }

    /// Takes the task that ends at `now`, which is what [`Cores::next_end`] said.
    pub fn end(&mut self, now: u64) -> Option<Task> {
        self.advance(now);
        self.tasks.pop().map(|Reverse((.., task))| task)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_share_the_cores() {
        let mut c = Cores::new(2.0);
        for (work, job) in [(100.0, 1), (100.0, 2), (200.0, 3), (200.0, 4)] {
            c.start(0, work, Task::Job(job));
        }
        // Four tasks at half speed: the first two end at 200; then two at full speed for 100.
        let mut ends = Vec::new();
        while let Some(at) = c.next_end() {
            let Some(Task::Job(job)) = c.end(at) else { panic!("no other task was started") };
            ends.push((at, job));
        }
        assert_eq!(ends, [(200, 1), (200, 2), (300, 3), (300, 4)]);
        assert!((c.spent - 600.0).abs() < 1.0);
    }
}
