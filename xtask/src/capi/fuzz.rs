//! Random calls: a program in C reads bytes as calls over slots of handles, with wild lengths and NULL, and ends
//! handles in any order. Memory that C and the library share is watched by the address sanitizer and its leaks.
//!
//! Keeps: lives follow from their seed, so a finding is found again by the seed that was told last.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::SANITIZED;
use crate::run::call;

/// How much is run: until both are reached.
#[derive(Clone, Copy)]
pub(super) struct Wish {
    pub(super) calls: u64,
    pub(super) seconds: u64,
    pub(super) seed: u64,
}

/// What runs before a merge.
pub(super) const SHARE: Wish = Wish { calls: 0, seconds: 20, seed: 1 };
const USAGE: &str = "cargo xtask capi fuzz [--calls N] [--seconds N] [--seed N]";

pub(super) fn wish(args: &[&str]) -> Result<Wish> {
    let mut wish = SHARE;
    for pair in args.chunks(2) {
        let [name, value] = pair else { bail!("{USAGE}") };
        let value: u64 = value.parse().context(USAGE)?;
        match *name {
            "--calls" => (wish.calls, wish.seconds) = (value, 0),
            "--seconds" => wish.seconds = value,
            "--seed" => wish.seed = value,
            _ => bail!("{USAGE}"),
        }
    }
    Ok(wish)
}

/// Builds the program and runs it.
///
/// # Errors
/// If it fails: it says where, and the last life that it told is the seed.
pub(super) fn run(room: &Path, place: &Path, wish: Wish) -> Result<()> {
    let binary = place.join("calls");
    let mut gcc = Command::new("gcc");
    gcc.args(SANITIZED).arg(room.join("tests/fuzz/calls.c"));
    gcc.arg("-I").arg(place.join("include")).arg("-L").arg(place).arg("-llithify");
    gcc.arg(format!("-Wl,-rpath,{}", place.display())).arg("-o").arg(&binary);
    call(&mut gcc)?;
    let numbers = [wish.seed, wish.calls, wish.seconds].map(|n| n.to_string());
    call(Command::new(&binary).args(numbers))
}
