//! The real runtime: worker threads, the machine's clocks, its entropy.
//!
//! Each class has a lane: a queue of ready jobs, the jobs that wait for a ticket, and threads that
//! start when there is work for them. Dropping the runtime lets every current step end, joins the
//! threads and drops the jobs that are left; a caller that needs a job's result waits for its ticket
//! before.

use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

use super::fork;
use super::lane::Lane;
use crate::clock::Mono;
use crate::random::derive_seed;
use crate::rt::{Class, Job, Rt, Wake};
use crate::sync::Arc;
use crate::ticket::Ticket;

/// How long a thread that spins does so: several times what a short write takes, and about what a sleep
/// and a wake-up cost.
#[cfg(not(any(shuttle, loom)))]
const SPIN: Duration = Duration::from_micros(10);
/// Looks between two looks at the clock.
#[cfg(not(any(shuttle, loom)))]
const SPIN_LOOKS: u32 = 16;

/// How many threads work on what, and how eagerly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtOptions {
    /// Threads of [`Class::Flush`]; at least 1, as for all classes.
    pub flush_threads: usize,
    /// Threads of [`Class::Compact`].
    pub compact_threads: usize,
    /// Threads of [`Class::Io`].
    pub io_threads: usize,
    /// Threads of [`Class::Upkeep`].
    pub upkeep_threads: usize,
    /// What is added to the nice value of the thread that makes the runtime, for all of these threads, 0 to 19; for those of
    /// [`Class::Flush`], which writers wait for, half of that. Best effort: a thread begins with the value of the one that
    /// starts it, and may not take it back.
    pub background_nice: u8,
    /// Root of all seeds; drawn from the system's entropy if `None`.
    pub seed: Option<u64>,
}

impl Default for RtOptions {
    /// One flush, two compaction, two IO and one upkeep thread at normal priority.
    fn default() -> Self {
        Self {
            flush_threads: 1,
            compact_threads: 2,
            io_threads: 2,
            upkeep_threads: 1,
            background_nice: 0,
            seed: None,
        }
    }
}

impl RtOptions {
    fn threads(&self, class: Class) -> usize {
        let threads = match class {
            Class::Flush => self.flush_threads,
            Class::Compact => self.compact_threads,
            Class::Io => self.io_threads,
            Class::Upkeep => self.upkeep_threads,
        };
        threads.max(1)
    }

    /// The nice value of the threads of a class, if it is another one than that of this thread.
    fn nice(&self, class: Class) -> Option<i32> {
        let own = || rustix::process::getpriority_process(Some(rustix::thread::gettid()));
        let more = i32::from(self.background_nice);
        let more = if class == Class::Flush { more / 2 } else { more };
        (more > 0).then(|| (own().unwrap_or(0) + more).min(19))
    }
}

/// The present, for waits with a deadline.
#[cfg(not(any(shuttle, loom)))]
pub(crate) fn present() -> Instant {
    Instant::now()
}

/// The machine's monotonic clock, counted from the runtime's start.
#[derive(Clone, Copy, Debug)]
pub(super) struct OsClock {
    origin: Instant,
}

impl OsClock {
    fn start() -> Self {
        let origin = Instant::now();
        #[cfg(any(shuttle, loom))]
        crate::sync::locks::time::begin_at(origin);
        Self { origin }
    }

    #[cfg(not(any(shuttle, loom)))]
    pub(super) fn now(self) -> Mono {
        Mono::ZERO + self.origin.elapsed()
    }

    #[cfg(any(shuttle, loom))]
    pub(super) fn now(self) -> Mono {
        Mono::ZERO + (crate::sync::locks::time::present() - self.origin)
    }

    /// The same instant for the system; `None` if it lies beyond what the system can express.
    pub(super) fn instant(self, at: Mono) -> Option<Instant> {
        self.origin.checked_add(Duration::from_nanos(at.nanos()))
    }
}

/// Worker threads and the machine's clocks.
pub struct OsRt {
    clock: OsClock,
    seed: u64,
    /// The process that has its threads.
    process: u32,
    /// The process has more than one processor: another thread may be at work while one spins.
    #[cfg(not(any(shuttle, loom)))]
    several: bool,
    lanes: [Arc<Lane>; Class::ALL.len()],
    /// Jobs that may wait for all others: each that is ready has a thread.
    apart: Arc<Lane>,
}

impl OsRt {
    /// A runtime without a thread yet: each starts when there is work for it.
    pub fn new(options: RtOptions) -> Self {
        let clock = OsClock::start();
        let lane = |class, threads| Lane::new(class, threads, options.nice(class), clock);
        Self {
            clock,
            seed: options.seed.unwrap_or_else(|| RandomState::new().hash_one(std::process::id())),
            process: fork::id(),
            #[cfg(not(any(shuttle, loom)))]
            several: super::processors().is_some_and(|n| n > 1),
            lanes: Class::ALL.map(|class| lane(class, options.threads(class))),
            apart: lane(Class::Upkeep, usize::MAX),
        }
    }

    fn lane(&self, class: Class) -> &Arc<Lane> {
        &self.lanes[class.index()]
    }

    fn all(&self) -> impl Iterator<Item = &Arc<Lane>> {
        self.lanes.iter().chain([&self.apart])
    }
}

impl Rt for OsRt {
    fn now(&self) -> Mono {
        self.clock.now()
    }

    fn wall_seconds(&self) -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
    }

    fn seed(&self, who: &str) -> u64 {
        derive_seed(self.seed, who)
    }

    fn spawn(&self, class: Class, job: Box<dyn Job>) {
        self.lane(class).push(job);
    }

    fn spawn_apart(&self, job: Box<dyn Job>) {
        self.apart.push(job);
    }

    fn park(&self, ticket: &Ticket, deadline: Option<Mono>) -> Wake {
        ticket.block(deadline.and_then(|at| self.clock.instant(at)))
    }

    #[cfg(not(any(shuttle, loom)))]
    fn spin(&self, ready: &dyn Fn() -> bool) -> bool {
        if !self.several {
            return ready();
        }
        let start = Instant::now();
        loop {
            for _ in 0..SPIN_LOOKS {
                if ready() {
                    return true;
                }
                std::hint::spin_loop();
            }
            if start.elapsed() > SPIN {
                return ready();
            }
        }
    }

    fn thread_cpu(&self) -> Duration {
        let spent = clock_gettime(ClockId::ThreadCPUTime);
        Duration::new(spent.tv_sec.max(0) as u64, spent.tv_nsec.max(0) as u32)
    }

    fn threads(&self, class: Class) -> usize {
        self.lane(class).threads()
    }

    fn is_at_home(&self) -> bool {
        self.process == fork::id()
    }
}

impl Drop for OsRt {
    fn drop(&mut self) {
        if !self.is_at_home() {
            // No thread is left to join, and the jobs are the parent's: their end is no business
            // of a copy, which would remove files that the parent is writing.
            self.all().cloned().for_each(std::mem::forget);
            return;
        }
        self.all().for_each(|lane| lane.close());
        self.all().for_each(|lane| lane.join());
    }
}
