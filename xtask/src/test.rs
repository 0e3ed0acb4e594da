//! `cargo xtask test`: installs what the tests need, then runs all of them.
//!
//! Keeps: no test needs anything that is installed here. What is missing narrows a check (the
//! tables we write are not shown to RocksDB's own tool), and the test that is narrowed says so;
//! so does this chore.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::run::{at_root, call, caught, each, has, install};
use crate::{checkers, programs, sim};

/// A tool that some tests use if they find it.
struct Tool {
    name: &'static str,
    /// Debian's package.
    package: &'static str,
    /// What is not checked without it.
    without: &'static str,
}

const TOOLS: &[Tool] = &[
    Tool {
        name: "sst_dump",
        package: "rocksdb-tools",
        without: "tables and manifests written here are not shown to RocksDB's own tools",
    },
    Tool {
        name: "strace",
        package: "strace",
        without: "system calls are not disturbed from outside; a wrapper inside the process does it",
    },
    Tool {
        name: "apt-cache",
        package: "apt",
        without: "the test on the package index falls back to the list of installed packages",
    },
];

/// Programs of tests that take longest: begun first, so that the last ones to end are short.
const SLOW: [&str; 9] = [
    "crates/db faults",
    "crates/db processes",
    "crates/db compactions",
    "crates/db stress",
    "crates/sim lives",
    "crates/db files",
    "crates/sim metamorphic",
    "crates/cli program",
    "crates/db reads",
];
/// Programs of tests that run at once: most of them wait now and then.
const JOBS: usize = 2;

/// Installs, then runs `cargo test` with `args`, or all tests of the workspace without any.
pub(crate) fn run(args: &[String]) -> Result<()> {
    place_tools();
    if !args.is_empty() {
        return call(like_all(&mut at_root("cargo", &["test", "--locked"])).args(args));
    }
    programs_of_tests()?;
    call(like_all(&mut at_root("cargo", &["test", "--locked", "--workspace", "--doc", "-q"])))?;
    // All tests include the simulation at its own speed, and the threads under a model checker,
    // which are builds of their own.
    sim::check()?;
    checkers::loom(&[])
}

/// With the tools here, a test that can't use them is a failure and not a shrug.
fn like_all(command: &mut Command) -> &mut Command {
    if has("sst_dump") {
        command.env("LITHIFY_ORACLES", "1");
    }
    command
}

/// How long a program of tests may take; the slowest takes about a minute, more where the machine is busy.
const LONGEST: Duration = Duration::from_secs(15 * 60);

/// All programs of tests, some at once, the slowest of them first. What a program says is shown
/// in one piece once it has ended; a failure keeps no other program from running.
fn programs_of_tests() -> Result<()> {
    let mut all = programs::build(&["test", "--workspace", "--no-run", "-q"])?;
    all.retain(|program| program.is_test);
    all.sort_by_key(|p| SLOW.iter().position(|slow| p.name() == *slow).unwrap_or(SLOW.len()));
    let ended = each(JOBS, &all, |program| {
        let start = Instant::now();
        let (out, err, well) =
            caught(like_all(&mut program.command()), LONGEST).with_context(|| program.name())?;
        let (name, seconds) = (program.name(), start.elapsed().as_secs_f64());
        let passed = out.lines().filter(|line| line.ends_with("... ok")).count();
        match well {
            true => println!("passed {seconds:>6.1} s  {name}: {passed} tests"),
            false => println!("{out}{err}FAILED {seconds:>6.1} s  {name}"),
        }
        Ok(well)
    })?;
    let failed: Vec<String> =
        all.iter().zip(ended).filter(|(_, well)| !well).map(|(p, _)| p.name()).collect();
    match failed.is_empty() {
        true => Ok(()),
        false => bail!("tests failed in: {}", failed.join(", ")),
    }
}

/// Makes sure that every tool is here, or says what goes unchecked.
pub(crate) fn place_tools() {
    TOOLS.iter().for_each(place);
}

/// Makes sure `tool` is here, or says what goes unchecked.
fn place(tool: &Tool) {
    if has(tool.name) {
        return;
    }
    if let Err(error) = install(tool.package) {
        eprintln!("note: {} is not here and can't be installed ({error:#});", tool.package);
        eprintln!("      {}", tool.without);
    }
}
