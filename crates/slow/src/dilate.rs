//! A runtime on which background work costs more processor time than it takes.
//!
//! A machine with few cores shows nothing of work that scales over many: its threads compete for
//! the cores instead of running side by side. [`DilatedRt`] lets each flush and compaction thread
//! sleep `factor - 1` times the processor time of every step, so that `n` threads need only
//! `n / factor` real cores and run beside each other like `n` cores that are `factor` times slower.
//! With clients and the device (see [`crate::ThrottledFs`]) slowed down by the same factor, every
//! rate is `factor` times smaller than on the machine that is modelled, and every ratio is its own.
//!
//! Keeps: jobs run in the order and on the threads of the inner runtime; what is slept is a multiple
//! of what was computed, whatever the length of the steps.
//! Leaves to others: transfers, whose time is the device's, and upkeep.

use std::time::Duration;

use lithify_env::{Class, Job, Mono, Rt, RtRef, Step, Ticket, Urgency, Wake};

/// Sleep is paid in pieces no shorter than this, because waking up takes a good part of a tenth of
/// it.
const PIECE: Duration = Duration::from_millis(1);

/// See the module.
pub struct DilatedRt {
    inner: RtRef,
    factor: f64,
}

impl DilatedRt {
    /// A runtime whose flushes and compactions take `factor` times as long to compute; 1 changes
    /// nothing.
    ///
    /// # Panics
    /// If `factor` is below 1 or not finite.
    pub fn new(inner: RtRef, factor: f64) -> Self {
        assert!(factor >= 1.0 && factor.is_finite(), "a factor from 1, not {factor}");
        Self { inner, factor }
    }
}

impl Rt for DilatedRt {
    fn now(&self) -> Mono {
        self.inner.now()
    }

    fn wall_seconds(&self) -> u64 {
        self.inner.wall_seconds()
    }

    fn seed(&self, who: &str) -> u64 {
        self.inner.seed(who)
    }

    fn spawn(&self, class: Class, job: Box<dyn Job>) {
        let job = match class {
            Class::Flush | Class::Compact => Box::new(Dilated {
                rt: self.inner.clone(),
                sleep_per_cpu: self.factor - 1.0,
                owed: Duration::ZERO,
                job,
            }),
            Class::Io | Class::Upkeep => job,
        };
        self.inner.spawn(class, job);
    }

    fn spawn_apart(&self, job: Box<dyn Job>) {
        self.inner.spawn_apart(job);
    }

    fn park(&self, ticket: &Ticket, deadline: Option<Mono>) -> Wake {
        self.inner.park(ticket, deadline)
    }

    fn breathe(&self) {
        self.inner.breathe();
    }
    fn spin(&self, ready: &dyn Fn() -> bool) -> bool {
        self.inner.spin(ready)
    }

    fn thread_cpu(&self) -> Duration {
        self.inner.thread_cpu()
    }

    fn threads(&self, class: Class) -> usize {
        self.inner.threads(class)
    }

    fn is_at_home(&self) -> bool {
        self.inner.is_at_home()
    }
}

/// A job that sleeps on its thread for what it computed.
struct Dilated {
    rt: RtRef,
    sleep_per_cpu: f64,
    owed: Duration,
    job: Box<dyn Job>,
}

impl Job for Dilated {
    fn step(&mut self) -> Step {
        let before = self.rt.thread_cpu();
        let step = self.job.step();
        let spent = self.rt.thread_cpu().saturating_sub(before);
        self.owed += spent.mul_f64(self.sleep_per_cpu);
        if self.owed >= PIECE {
            let from = self.rt.now();
            self.rt.park(&Ticket::new(), Some(from + self.owed));
            self.owed = self.owed.saturating_sub(self.rt.now() - from);
        }
        step
    }

    fn urgency(&self) -> Urgency {
        self.job.urgency()
    }

    fn panicked(&mut self, message: String) {
        self.job.panicked(message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lithify_env::sync::Arc;
    use lithify_env::sync::atomic::{AtomicU32, AtomicU64, Ordering};

    /// Time that moves by what is computed and by what is slept; jobs run where they are spawned.
    #[derive(Default)]
    struct Still {
        cpu: AtomicU64,
        slept: AtomicU64,
    }

    impl Rt for Still {
        fn now(&self) -> Mono {
            Mono(self.cpu.load(Ordering::Relaxed) + self.slept.load(Ordering::Relaxed))
        }
        fn wall_seconds(&self) -> u64 {
            0
        }
        fn seed(&self, _who: &str) -> u64 {
            0
        }
        fn spawn(&self, _class: Class, mut job: Box<dyn Job>) {
            while !matches!(job.step(), Step::Done) {}
        }
        fn park(&self, _ticket: &Ticket, deadline: Option<Mono>) -> Wake {
            let until = deadline.expect("sleeps end");
            self.slept.fetch_add((until - self.now()).as_nanos() as u64, Ordering::Relaxed);
            Wake::TimedOut
        }
        fn thread_cpu(&self) -> Duration {
            Duration::from_nanos(self.cpu.load(Ordering::Relaxed))
        }
        fn threads(&self, _class: Class) -> usize {
            1
        }
    }

    /// Computes for 0.3 ms a step.
    struct Work(Arc<Still>, AtomicU32);

    impl Job for Work {
        fn step(&mut self) -> Step {
            self.0.cpu.fetch_add(300_000, Ordering::Relaxed);
            if self.1.fetch_sub(1, Ordering::Relaxed) == 1 { Step::Done } else { Step::More }
        }
    }

    #[test]
    fn merging_takes_the_factor_longer_and_transfers_do_not() {
        let still = Arc::new(Still::default());
        let rt = DilatedRt::new(still.clone(), 10.0);
        for (class, slept_ms) in
            [(Class::Io, 0), (Class::Upkeep, 0), (Class::Compact, 270), (Class::Flush, 540)]
        {
            rt.spawn(class, Box::new(Work(still.clone(), AtomicU32::new(100))));
            let slept = Duration::from_nanos(still.slept.load(Ordering::Relaxed));
            assert_eq!(slept, Duration::from_millis(slept_ms), "{class:?}");
        }
    }
}
