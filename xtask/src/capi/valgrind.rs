//! The tests in C under valgrind: no access that is none, and nothing of ours lost at the end.
//!
//! Keeps: what is left at the end and is no leak is named in `tests/valgrind.supp`, each with its reason. The
//! library is built to ask the C library for the clock: the kernel's own, which it asks otherwise, is not where
//! valgrind says that it is.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use super::c_files;
use crate::repo::root;
use crate::run::{at_root, call, has, install};

/// A status that no test ends with.
const FOUND: &str = "--error-exitcode=9";

/// Builds the library, and runs all groups of tests.
pub(super) fn run(room: &Path, place: &Path) -> Result<()> {
    if !has("gcc") {
        bail!("the tests in C need gcc, and it is not here");
    }
    if !has("valgrind") {
        install("valgrind")?;
    }
    let (cargo, home) = (root().join("target/valgrind"), place.join("valgrind"));
    let mut build = at_root("cargo", &["build", "-p", "lithify-capi", "--locked"]);
    call(build.env("RUSTFLAGS", "--cfg rustix_use_libc").env("CARGO_TARGET_DIR", &cargo))?;
    let data = home.join("data");
    if data.exists() {
        fs::remove_dir_all(&data)?;
    }
    fs::create_dir_all(&data)?;
    fs::copy(cargo.join("debug/liblithify_c.so"), home.join("liblithify.so.0"))?;
    super::link("liblithify.so.0", &home.join("liblithify.so"))?;
    let tests = home.join("tests");
    let mut gcc = Command::new("gcc");
    gcc.args(["-std=gnu11", "-g", "-O1", "-Wall", "-Wextra", "-Werror"]);
    gcc.args(c_files(&room.join("tests/c"))?).arg("-I").arg(room.join("include"));
    gcc.arg("-L").arg(&home).arg("-llithify").arg(format!("-Wl,-rpath,{}", home.display()));
    call(gcc.arg("-o").arg(&tests))?;
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--leak-check=full", "--errors-for-leak-kinds=definite,indirect,possible"]);
    let known = room.join("tests/valgrind.supp");
    valgrind.args(["--num-callers=40", FOUND]).arg(format!("--suppressions={}", known.display()));
    // The trace of a panic that a test asks for keeps what it read of the library's debug information.
    call(valgrind.arg(&tests).arg(&data).env("RUST_BACKTRACE", "0"))
}
