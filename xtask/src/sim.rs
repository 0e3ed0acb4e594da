//! `cargo xtask sim`: the simulation, built with all assertions at nearly the speed of a release.

use anyhow::Result;

use crate::run::{at_root, call, each};
use crate::{repo, zoo};

/// Seeds that are always the same: together they reach every state that the tests are about.
const KNOWN: [&str; 7] = ["--seed", "1", "--runs", "120", "--variants", "1", "--must-reach"];
/// Images that are opened and checked on seeds of the commit's own: so many, twice.
const RECOVERIES: &str = "60000";
/// From the commit's own seeds to those of the second half, which runs at the same time.
const HALF: u64 = 1_000_000_000;
/// Simulations at once: each has one thread at work at a time.
const JOBS: usize = 2;
/// The sweeps, all but their length: every position in four kinds, every sync, one call in so many.
const SWEEP: [&str; 7] = ["sweep", "--kinds", "4", "--after-sync", "2", "--every-call", EVERY_CALL];
/// Which calls fail follows from the commit.
const EVERY_CALL: &str = "199";

/// Builds the simulation and runs it with `args`.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let cargo = ["run", "--quiet", "--locked", "--profile", "sim", "-p", "lithify-sim", "--"];
    call(at_root("cargo", &cargo).args(args))
}

/// What the tests run: known seeds, and seeds that follow from the commit, so that running them
/// again changes nothing, and another commit sees others. They run in the build that the zoo needs
/// later, with all its bugs off: one build less.
pub(crate) fn check() -> Result<()> {
    let program = zoo::simulation()?;
    let seeds = [repo::commit(), repo::commit().wrapping_add(HALF)].map(|seed| seed.to_string());
    let known = [&KNOWN[..], &["--save", "target/known.plan"]].concat();
    let own = |half: usize, save| {
        vec!["--seed", &seeds[half], "--recoveries", RECOVERIES, "--save", save]
    };
    let sweep = [&SWEEP[..], &["--first-call", &seeds[0]]].concat();
    let all = [sweep, known, own(0, "target/failure.plan"), own(1, "target/failure-2.plan")];
    let ended = each(JOBS, &all, |flags| {
        call(at_root(&program.to_string_lossy(), flags).env_remove(zoo::VARIABLE))
    });
    ended.map(drop)
}
