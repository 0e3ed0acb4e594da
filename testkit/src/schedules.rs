//! Runs a scenario of a few threads under many schedules (with `--cfg shuttle` only).
//!
//! Half of the schedules switch threads at random; the other half keeps to priorities that change
//! at few moments (PCT: Burckhardt, Kothari, Musuvathi and Nagarakatte, "A randomized scheduler with
//! probabilistic guarantees of finding bugs", ASPLOS 2010), which finds what needs few switches at
//! the right places. Every atomic and every lock is a place to switch at; memory is sequentially
//! consistent here, weaker orders are loom's.
//!
//! | variable | means |
//! |---|---|
//! | `LITHIFY_SCHEDULES` | schedules of each scenario, [`SCHEDULES`] if not set |
//! | `LITHIFY_SECONDS` | most seconds for each scenario |
//! | `LITHIFY_SEED` | another set of schedules |
//! | `LITHIFY_REPLAY` | a file with the one schedule to run |
//!
//! A failing schedule is written to a file, which the message names.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "this stands around the checker, in real time"
)]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use shuttle::scheduler::{
    PctScheduler, RandomScheduler, ReplayScheduler, Schedule, Scheduler, Task, TaskId,
};
pub use shuttle::thread;
use shuttle::{Config, FailurePersistence, MaxSteps, Runner};

/// Schedules of each scenario unless it is said.
pub const SCHEDULES: usize = 200;
/// Moments at which PCT changes priorities, and one.
const DEPTH: usize = 3;
/// Steps after which a schedule is taken for a hang.
const STEPS_MAX: usize = 3_000_000;
/// Stack of a thread; the checker's default is too small for a database.
const STACK: usize = 1 << 20;
/// Schedules from which on a scenario must have come out in more than one way.
const ENOUGH: usize = 100;

/// Runs `scenario` under many schedules. What it answers says how it came out (who was first, say):
/// a scenario that comes out in one way only has no race in it, and is a defect.
///
/// # Panics
/// If a schedule fails, hangs or deadlocks; or if all come out alike.
pub fn explore<T>(name: &str, scenario: fn() -> T)
where
    T: Ord + std::fmt::Debug + Send + 'static,
{
    let outcomes: Arc<Mutex<BTreeMap<T, usize>>> = Arc::default();
    let told = outcomes.clone();
    let run = move || {
        let outcome = scenario();
        *told.lock().unwrap_or_else(PoisonError::into_inner).entry(outcome).or_default() += 1;
    };
    if let Ok(file) = std::env::var("LITHIFY_REPLAY") {
        let mut schedule = ReplayScheduler::new_from_file(&file).expect("a schedule in a file");
        schedule.set_allow_incomplete();
        Runner::new(schedule, config()).run(run);
        return;
    }
    let schedules = number("LITHIFY_SCHEDULES").unwrap_or(SCHEDULES as u64) as usize;
    let seconds = number("LITHIFY_SECONDS").map(Duration::from_secs);
    // Scenarios see different numbers, whatever the seed.
    let seed = name.bytes().fold(number("LITHIFY_SEED").unwrap_or(1), |seed, byte| {
        (seed ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let half = schedules.div_ceil(2);
    let random = explore_by(RandomScheduler::new_from_seed(seed, half), seconds, run.clone());
    let pct = explore_by(PctScheduler::new_from_seed(seed, DEPTH, half), seconds, run);
    let outcomes = outcomes.lock().unwrap_or_else(PoisonError::into_inner);
    println!("{name}: {random} random schedules, {pct} of PCT; {outcomes:?}");
    assert!(
        random + pct < ENOUGH || outcomes.len() > 1,
        "{name} comes out in one way only: {outcomes:?}"
    );
}

fn explore_by(
    scheduler: impl Scheduler + 'static,
    seconds: Option<Duration>,
    run: impl Fn() + Send + Sync + 'static,
) -> usize {
    let end = seconds.map(|seconds| Instant::now() + seconds / 2);
    Runner::new(Timed { scheduler: Some(scheduler), end }, config()).run(run)
}

/// A scheduler that begins no schedule after a moment. The checker's own bound on time takes a
/// scheduler that is dropped before its last schedule for one that failed, and says so.
struct Timed<S> {
    scheduler: Option<S>,
    end: Option<Instant>,
}

impl<S: Scheduler> Timed<S> {
    fn inner(&mut self) -> &mut S {
        self.scheduler.as_mut().expect("asked before the end only")
    }
}

impl<S: Scheduler> Scheduler for Timed<S> {
    fn new_execution(&mut self) -> Option<Schedule> {
        if self.end.is_some_and(|end| Instant::now() > end) {
            std::mem::forget(self.scheduler.take());
        }
        self.scheduler.as_mut()?.new_execution()
    }
    fn next_task(
        &mut self,
        runnable: &[&Task],
        current: Option<TaskId>,
        yields: bool,
    ) -> Option<TaskId> {
        self.inner().next_task(runnable, current, yields)
    }
    fn next_u64(&mut self) -> u64 {
        self.inner().next_u64()
    }
}

fn config() -> Config {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../target/schedules"));
    std::fs::create_dir_all(&folder).expect("a folder for failing schedules");
    let mut config = Config::new();
    config.stack_size = STACK;
    config.max_steps = MaxSteps::FailAfter(STEPS_MAX);
    config.silence_warnings = true;
    config.failure_persistence = FailurePersistence::File(Some(folder));
    config
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|n| n.parse().expect("a number"))
}
