//! `cargo xtask sim`: the simulation, built with all assertions at nearly the speed of a release.

use anyhow::Result;

use crate::repo;
use crate::run::{at_root, call};

/// Seeds that are always the same: together they reach every state that the tests are about.
const KNOWN: [&str; 7] = ["--seed", "1", "--runs", "120", "--variants", "1", "--must-reach"];
/// Seconds spent on seeds of the commit's own.
const SECONDS: &str = "40";
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
    let own = ["--seed", &seed, "--seconds", SECONDS];
    run(&[&KNOWN[..], &SAVE].concat().iter().map(|s| s.to_string()).collect::<Vec<_>>())?;
    run(&[&own[..], &SAVE].concat().iter().map(|s| s.to_string()).collect::<Vec<_>>())
}
