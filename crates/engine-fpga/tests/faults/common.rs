//! What the test programs of this room share: engines over the model, and a clock that does not run.
#![allow(dead_code, reason = "each program uses a part of it")]

use std::time::Duration;

use lithify_engine::{Engine, Refusal, Session};
use lithify_engine_fpga::card::Card;
use lithify_engine_fpga::{FpgaEngine, FpgaOptions, ModelCard, ModelOptions};
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
        unreachable!("a model is never waited for")
    }
    fn thread_cpu(&self) -> Duration {
        Duration::ZERO
    }
    fn threads(&self, _class: Class) -> usize {
        1
    }
}

/// Small slots, so that a case makes a card of a few MiB.
pub(crate) fn options() -> FpgaOptions {
    FpgaOptions { set_bytes: 256 << 10, ..FpgaOptions::default() }
}

pub(crate) fn model(units: usize, ways: usize, width: usize) -> ModelOptions {
    ModelOptions { units, ways, width, memory: units * 3 * (2 << 20), ..ModelOptions::default() }
}

pub(crate) fn engine(card: ModelOptions, options: FpgaOptions) -> FpgaEngine {
    FpgaEngine::new(Box::new(ModelCard::new(card)), options).expect("the model suits")
}

pub(crate) fn over(card: Box<dyn Card>, options: FpgaOptions) -> FpgaEngine {
    FpgaEngine::new(card, options).expect("the card suits")
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

/// How many cases: `few` by default, as many as the variable says in a deep run.
pub(crate) fn seeds(variable: &str, few: u64) -> u64 {
    std::env::var(variable).ok().and_then(|n| n.parse().ok()).unwrap_or(few)
}
