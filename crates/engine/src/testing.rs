//! What tests of engines share: a clock that stands, what an engine says, and how many cases there are.

use std::time::Duration;

use lithify_env::{Class, Job, Mono, Rt, Ticket, Wake};
use lithify_merge::workload::Size;

use crate::{Engine, Refusal, Session};

/// Bounds of small cases, which still fill several blocks and files.
pub const SMALL: Size = Size { entries: 80, value: 500 };

/// A clock that stands, for engines without threads and tickets.
#[derive(Clone, Copy, Debug)]
pub struct FixedRt;

impl Rt for FixedRt {
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
        unreachable!("the engine has no jobs")
    }
    fn park(&self, _ticket: &Ticket, _deadline: Option<Mono>) -> Wake {
        unreachable!("the engine is never waited for")
    }
    fn thread_cpu(&self) -> Duration {
        Duration::ZERO
    }
    fn threads(&self, _class: Class) -> usize {
        1
    }
}

/// A figure of an engine's report.
///
/// # Panics
/// If it reports no such figure.
pub fn figure(engine: &dyn Engine, name: &str) -> u64 {
    let rows = engine.report();
    let row = rows.iter().find(|(of, _)| *of == name);
    row.unwrap_or_else(|| panic!("no figure {name}")).1 as u64
}

/// Why a session was not opened.
///
/// # Panics
/// If it was.
pub fn refusal(opened: Result<Box<dyn Session>, Refusal>) -> String {
    match opened {
        Ok(_) => panic!("it was not refused"),
        Err(refusal) => refusal.reason,
    }
}

/// How many cases a test runs: `few`, or in a deep run as many as the environment's `variable` says.
pub fn seeds(variable: &str, few: u64) -> u64 {
    std::env::var(variable).ok().and_then(|n| n.parse().ok()).unwrap_or(few)
}
