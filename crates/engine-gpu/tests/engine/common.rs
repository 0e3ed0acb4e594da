//! What the tests of this room share: a clock that does not run, and figures.
#![allow(dead_code, reason = "without the emulator a part of it is unused")]

use std::time::Duration;

use lithify_engine::{Engine, Refusal, Session};
use lithify_env::{Class, Job, Mono, Rt, Ticket, Wake};
use lithify_merge::workload::Size;

pub(crate) const SMALL: Size = Size { entries: 80, value: 500 };

/// A clock that stands: engines of these tests have no threads and no tickets.
pub(crate) struct Still;

impl Rt for Still {
    fn now(&self) -> Mono {
        Mono(0)
    }
    fn wall_seconds(&self) -> u64 {
        0
    }
    fn seed(&self, _who: &str) -> u64 {
        0
    }
    fn spawn(&self, _class: Class, _job: Box<dyn Job>) {
        unreachable!("the engine of these tests has no jobs")
    }
    fn park(&self, _ticket: &Ticket, _deadline: Option<Mono>) -> Wake {
        unreachable!("the emulator is never waited for")
    }
    fn thread_cpu(&self) -> Duration {
        Duration::ZERO
    }
    fn threads(&self, _class: Class) -> usize {
        1
    }
}

/// A figure of an engine's report.
pub(crate) fn figure(engine: &dyn Engine, name: &str) -> u64 {
    let rows = engine.report();
    let row = rows.iter().find(|(of, _)| *of == name);
    row.unwrap_or_else(|| panic!("no figure {name}")).1 as u64
}

pub(crate) fn refusal(opened: Result<Box<dyn Session>, Refusal>) -> String {
    match opened {
        Ok(_) => panic!("it was not refused"),
        Err(refusal) => refusal.reason,
    }
}

/// How many cases: `few` by default, as many as `LITHIFY_SEEDS` says in a deep run.
pub(crate) fn seeds(few: u64) -> u64 {
    std::env::var("LITHIFY_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(few)
}

/// An engine over the emulator.
#[cfg(feature = "emu")]
pub(crate) fn engine() -> lithify_engine_gpu::GpuEngine {
    use lithify_engine_gpu::{Emu, GpuEngine, GpuOptions};
    GpuEngine::new(Box::new(Emu::new(1)), GpuOptions::default()).expect("the options make sense")
}
