//! `cargo xtask sim`: the simulation, built with all assertions at nearly the speed of a release.

use anyhow::Result;

use crate::repo;
use crate::run::{at_root, call};

/// Seeds that are always the same: together they reach every state that the tests are about.
const KNOWN: [&str; 7] = ["--seed", "1", "--runs", "120", "--variants", "1", "--must-reach"];
/// Images that are opened and checked on seeds of the commit's own.
const RECOVERIES: &str = "200000";
/// The sweeps, all but their length: every position in four kinds, every sync, one call in so many.
const SWEEP: [&str; 7] = ["sweep", "--kinds", "4", "--after-sync", "2", "--every-call", EVERY_CALL];
/// Which calls fail follows from the commit.
const EVERY_CALL: &str = "199";
/// Where the plan of a failure is put.
const SAVE: [&str; 2] = ["--save", "target/failure.plan"];

/// Builds the simulation and runs it with `args`.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let cargo = ["run", "--quiet", "--locked", "--profile", "sim", "-p", "lithify-sim", "--"];
    call(at_root("cargo", &cargo).args(args))
}

/// What the tests run: known seeds, and seeds that follow from the commit, so that running them
/// again changes nothing, and another commit sees others.
pub(crate) fn check() -> Result<()> {
    let seed = repo::commit().to_string();
    let own = ["--seed", &seed, "--recoveries", RECOVERIES];
    let sweep = [&SWEEP[..], &["--first-call", &seed]].concat();
    for flags in [[&KNOWN[..], &SAVE].concat(), [&own[..], &SAVE].concat(), sweep] {
        run(&flags.iter().map(|s| (*s).to_string()).collect::<Vec<_>>())?;
    }
    Ok(())
}
