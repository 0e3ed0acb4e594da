//! `cargo xtask ci`: everything that must pass before a merge, cheapest first; at last the tests, a grid
//! of modelled machines, the compaction unit in simulation, some minutes of chosen schedules and of hostile
//! bytes, and a test of the tests.

use std::time::Instant;

use anyhow::{Context, Result};

use crate::run::{at_root, call};
use crate::{capi, checkers, fpga, fuzz, gpu, python, test, tidy, zoo};

/// Runs all checks and stops at the first that fails.
pub(crate) fn run() -> Result<()> {
    step("format", || call(&mut at_root("cargo", &["fmt", "--all", "--check"])))?;
    step("tidy", tidy::run)?;
    step("lock files", lock_files)?;
    step("packages", packages)?;
    step("clippy", clippy)?;
    step("docs", docs)?;
    step("test", || test::run(&[]))?;
    step("grid", grid)?;
    step("fpga", fpga::check)?;
    step("gpu", gpu::check)?;
    step("capi", capi::check)?;
    step("python", || python::run(&[]))?;
    step("shuttle", checkers::check_shuttle)?;
    step("fuzz", fuzz::check)?;
    step("zoo", zoo::check)
}

/// The workspace as it is built and tested, the library as a user gets it: without features, and the program with
/// a simulated card and a GPU.
fn clippy() -> Result<()> {
    let strict = ["--", "-D", "warnings"];
    let all = ["clippy", "-q", "--workspace", "--all-targets", "--locked"];
    call(&mut at_root("cargo", &[&all[..], &strict].concat()))?;
    let plain = ["clippy", "-q", "-p", "lithify", "--no-default-features", "--locked"];
    call(&mut at_root("cargo", &[&plain[..], &strict].concat()))?;
    let engines = ["clippy", "-q", "-p", "lithify-cli", "--features", "fpga,gpu"];
    let whole = ["--all-targets", "--locked"];
    call(&mut at_root("cargo", &[&engines[..], &whole, &strict].concat()))
}

/// Workspaces that nothing else here builds.
const LOCKED: [&str; 6] = [
    "fuzz/Cargo.toml",
    "peers/rocksdb/Cargo.toml",
    "peers/fjall/Cargo.toml",
    "peers/redb/Cargo.toml",
    "peers/lmdb/Cargo.toml",
    "python/Cargo.toml",
];

/// The workspaces that nothing else here builds name the dependencies that our rooms have now.
fn lock_files() -> Result<()> {
    for manifest in LOCKED {
        let args = ["update", "-q", "--workspace", "--locked", "--manifest-path", manifest];
        call(&mut at_root("cargo", &args))
            .with_context(|| format!("to mend it: cargo update -w --manifest-path {manifest}"))?;
    }
    Ok(())
}

/// What is not published.
const YARD: [&str; 5] =
    ["lithify-sim", "lithify-hostile", "lithify-testkit", "lithify-capi", "xtask"];

/// What is published can be packaged, each with the others as they are here. Nothing is built: that costs as much as the
/// whole workspace, and is `cargo package` without `--no-verify`.
fn packages() -> Result<()> {
    let args = ["package", "-q", "--workspace", "--no-verify", "--allow-dirty", "--locked"];
    let yard = YARD.iter().flat_map(|name| ["--exclude", name]);
    let mut command = at_root("cargo", &args);
    call(command.args(yard).args(["--target-dir", "target/packages"]))
}

fn docs() -> Result<()> {
    let args = ["doc", "-q", "--workspace", "--no-deps", "--document-private-items", "--locked"];
    call(at_root("cargo", &args).env("RUSTDOCFLAGS", "-D warnings"))
}

/// What the default policy does of what the best one does, in the worst cell of the coarse grid. One life each: whether a short
/// one ends with a large job decides a fifth.
const WORST_REGRET: &str = "0.72";
/// The same in all cells but a twentieth.
const MOST_REGRET: &str = "0.93";

/// What the default policy does of what the better of `hybrid` and `bucket` does, in the worst of four long lives.
const LONG_REGRET: &str = "0.95";

/// No machine and load of the lab's coarse grid is worse for the default than it was, nor any of four long lives.
fn grid() -> Result<()> {
    let lab = ["run", "-q", "--release", "-p", "lithify-lab", "--locked", "--", "--grid"];
    let coarse = ["--hold", WORST_REGRET, "--hold-most", MOST_REGRET];
    let long = ["long", "--every", "13", "--opponents", "hybrid:1,bucket:1", "--hold", LONG_REGRET];
    call(&mut at_root("cargo", &[&lab[..], &coarse].concat()))?;
    call(&mut at_root("cargo", &[&lab[..], &long].concat()))
}

/// Names a check and its time on standard error.
fn step(name: &str, check: impl FnOnce() -> Result<()>) -> Result<()> {
    eprintln!("ci: {name}");
    let start = Instant::now();
    check()?;
    eprintln!("ci: {name} passed in {:.0} s", start.elapsed().as_secs_f64());
    Ok(())
}
