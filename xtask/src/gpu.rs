//! `cargo xtask gpu`: the kernels of `engine-gpu`.
//!
//! | chore | what it does |
//! |---|---|
//! | `check` | the kernels run on the emulator, as an engine, against the naive twin |
//!
//! Keeps: nothing else in this project needs a C++ compiler for these sources. Without one `check` says
//! what goes unchecked, or fails if `LITHIFY_GPU=1`.

use anyhow::{Result, bail};

use crate::run::{at_root, call, has, install};

const USAGE: &str = "cargo xtask gpu check";

/// Runs a part of the chore.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["check"] => need().and_then(|()| emulated()),
        _ => bail!("{USAGE}"),
    }
}

/// What runs before a merge.
pub(crate) fn check() -> Result<()> {
    match need() {
        Ok(()) => emulated(),
        Err(error) if std::env::var_os("LITHIFY_GPU").is_some_and(|v| v == "1") => Err(error),
        Err(error) => {
            eprintln!("note: {error:#};");
            eprintln!("      the kernels of engine-gpu were neither compiled nor run");
            Ok(())
        }
    }
}

/// Installs the compiler if it is missing.
fn need() -> Result<()> {
    if has("g++") { Ok(()) } else { install("g++") }
}

const TESTS: [&str; 8] =
    ["test", "--profile", "sim", "--locked", "-p", "lithify-engine-gpu", "--features", "emu"];

fn emulated() -> Result<()> {
    call(&mut at_root("cargo", &TESTS))
}
