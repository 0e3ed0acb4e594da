//! The bench's clock. The bench is a user of the store and not part of it, so it reads real
//! time directly; the store itself reads time through its injectable environment alone.

use std::time::{Duration, Instant};

/// The present moment.
#[inline]
#[expect(clippy::disallowed_methods, reason = "the bench measures real time from outside")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Processor time that this thread has used so far.
pub(crate) fn thread_cpu() -> Duration {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(t.tv_sec as u64, t.tv_nsec as u32)
}

/// CPU-seconds that this process has used so far, all threads.
pub(crate) fn cpu_seconds() -> f64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    t.tv_sec as f64 + t.tv_nsec as f64 / 1e9
}
