//! What an engine says of itself while it works: level 0 and debt now and then, by a thread beside the load.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::clock::now;
use crate::store::Store;

/// How often it is asked.
const EVERY: Duration = Duration::from_millis(100);

/// How an engine stood at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Reading {
    /// Seconds since the store was opened.
    pub(crate) seconds: f64,
    /// Runs of level 0.
    pub(crate) l0_runs: Option<u64>,
    /// Bytes that compaction still has to rewrite.
    pub(crate) debt_bytes: Option<u64>,
}

/// Does `work`, and reads beside it if `wanted`.
pub(crate) fn beside<T>(
    store: &dyn Store,
    opened: Instant,
    wanted: bool,
    work: impl FnOnce() -> T,
) -> (T, Vec<Reading>) {
    if !wanted {
        return (work(), Vec::new());
    }
    let stop = AtomicBool::new(false);
    let read = || {
        let mut readings = Vec::new();
        loop {
            if let Ok(stats) = store.stats() {
                readings.push(Reading {
                    seconds: (now() - opened).as_secs_f64(),
                    l0_runs: stats.l0_runs,
                    debt_bytes: stats.debt_bytes,
                });
            }
            if stop.load(Ordering::Acquire) {
                return readings;
            }
            std::thread::park_timeout(EVERY);
        }
    };
    std::thread::scope(|scope| {
        let reader = scope.spawn(read);
        let end = End { stop: &stop, reader: reader.thread() };
        let done = work();
        drop(end);
        (done, reader.join().unwrap_or_default())
    })
}

/// Ends the reader, even if the work panics.
struct End<'a> {
    stop: &'a AtomicBool,
    reader: &'a std::thread::Thread,
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.reader.unpark();
    }
}
