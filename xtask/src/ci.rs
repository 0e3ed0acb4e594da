//! `cargo xtask ci`: everything that must pass before a merge, cheapest first; at last the tests, and
//! a test of the tests.

use std::time::Instant;

use anyhow::Result;

use crate::run::{at_root, call};
use crate::{test, tidy, zoo};

/// Runs all checks and stops at the first that fails.
pub(crate) fn run() -> Result<()> {
    step("format", || call(&mut at_root("cargo", &["fmt", "--all", "--check"])))?;
    step("tidy", tidy::run)?;
    step("clippy", clippy)?;
    step("docs", docs)?;
    step("test", || test::run(&[]))?;
    step("zoo", zoo::check)
}

/// The workspace as it is built and tested, and the library as a user gets it: without features.
fn clippy() -> Result<()> {
    let strict = ["--", "-D", "warnings"];
    let all = ["clippy", "-q", "--workspace", "--all-targets", "--locked"];
    call(&mut at_root("cargo", &[&all[..], &strict].concat()))?;
    let plain = ["clippy", "-q", "-p", "lithify", "--no-default-features", "--locked"];
    call(&mut at_root("cargo", &[&plain[..], &strict].concat()))
}

fn docs() -> Result<()> {
    let args = ["doc", "-q", "--workspace", "--no-deps", "--document-private-items", "--locked"];
    call(at_root("cargo", &args).env("RUSTDOCFLAGS", "-D warnings"))
}

/// Names a check and its time on standard error.
fn step(name: &str, check: impl FnOnce() -> Result<()>) -> Result<()> {
    eprintln!("ci: {name}");
    let start = Instant::now();
    check()?;
    eprintln!("ci: {name} passed in {:.0} s", start.elapsed().as_secs_f64());
    Ok(())
}
