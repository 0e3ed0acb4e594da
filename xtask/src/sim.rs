//! `cargo xtask sim`: the simulation, built with all assertions at nearly the speed of a release.

use std::process::Command;

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
    let seed = seed().to_string();
    let own = ["--seed", &seed, "--seconds", SECONDS];
    run(&[&KNOWN[..], &SAVE].concat().iter().map(|s| s.to_string()).collect::<Vec<_>>())?;
    run(&[&own[..], &SAVE].concat().iter().map(|s| s.to_string()).collect::<Vec<_>>())
}

/// The first 32 bits of the commit's name, 1 outside of a repository.
fn seed() -> u64 {
    let head = Command::new("git").args(["rev-parse", "HEAD"]).current_dir(repo::root()).output();
    let name = head.ok().filter(|out| out.status.success()).map(|out| out.stdout);
    let digits = name.as_ref().and_then(|n| n.get(..8)).and_then(|n| std::str::from_utf8(n).ok());
    digits.and_then(|d| u64::from_str_radix(d, 16).ok()).unwrap_or(1)
}
