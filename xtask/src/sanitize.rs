//! `cargo xtask sanitize`: unsafe code and shared memory under the tools that a nightly compiler
//! brings. Not part of the tests, which need nothing but the pinned compiler.
//!
//! | tool | what runs under it |
//! |---|---|
//! | `address` | the checked concurrent stress of all policies; leaks count, too |
//! | `thread` | the same; the standard library is built along, else its own locks look like races |
//! | `miri` | the tests of the memtable and of IO buffers, slowly, with every pointer checked |

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::repo::root;
use crate::run::{at_root, call};

const TOOLS: [&str; 3] = ["address", "thread", "miri"];
/// Seconds for each policy unless told otherwise.
const SECONDS: &str = "60";
/// System calls go through the C library, where the tools see them: memory that one thread gave back to
/// the system and another got is a race to a tool that saw neither.
const SEEN_CALLS: &str = "--cfg rustix_use_libc";
const TRIPLE: &str = "x86_64-unknown-linux-gnu";

/// Runs the chore with `--seconds N` and the names of tools, or all of them.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let (mut seconds, mut chosen) = (SECONDS.to_owned(), Vec::new());
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        match arg.as_str() {
            "--seconds" => {
                rest.next().context("--seconds needs a number")?.clone_into(&mut seconds)
            }
            tool if TOOLS.contains(&tool) => chosen.push(tool),
            other => bail!("there is no sanitizer `{other}`; there are: {}", TOOLS.join(", ")),
        }
    }
    let Some(toolchain) = nightly() else {
        eprintln!("note: no nightly compiler is here, so nothing was done; to get one:");
        eprintln!("      rustup toolchain install nightly --component rust-src,miri");
        return Ok(());
    };
    let chosen = if chosen.is_empty() { TOOLS.to_vec() } else { chosen };
    for tool in &chosen {
        has_component(&toolchain, tool)?;
    }
    for tool in chosen {
        eprintln!("sanitize: {tool}");
        match tool {
            "miri" => miri(&toolchain)?,
            sanitizer => stress(&toolchain, sanitizer, &seconds)?,
        }
    }
    Ok(())
}

/// What a tool needs besides the compiler.
fn has_component(toolchain: &str, tool: &str) -> Result<()> {
    let (component, file) = match tool {
        "thread" => ("rust-src", "lib/rustlib/src/rust/library/Cargo.lock"),
        "miri" => ("miri", "bin/cargo-miri"),
        _ => return Ok(()),
    };
    let mut rustc = Command::new("rustc");
    rustc.args(["--print", "sysroot"]).env("RUSTUP_TOOLCHAIN", toolchain);
    let said = rustc.output().context("starting rustc")?;
    let sysroot = String::from_utf8_lossy(&said.stdout).into_owned();
    if Path::new(sysroot.trim()).join(file).exists() {
        return Ok(());
    }
    bail!(
        "`{tool}` needs the component {component}; to get it:\n       \
         rustup component add {component} --toolchain {toolchain}"
    );
}

fn stress(toolchain: &str, sanitizer: &str, seconds: &str) -> Result<()> {
    let mut command = at_root("cargo", &["test", "--quiet", "--locked", "--profile", "sim"]);
    if sanitizer == "thread" {
        command.arg("-Zbuild-std");
    }
    command
        .args(["--target", TRIPLE, "-p", "lithify", "--test", "stress", "--"])
        .args(["--nocapture", "--test-threads", "1", "every_read"])
        .env("RUSTUP_TOOLCHAIN", toolchain)
        .env("RUSTFLAGS", format!("-Zsanitizer={sanitizer} {SEEN_CALLS}"))
        .env("CARGO_TARGET_DIR", root().join("target/sanitize").join(sanitizer))
        .env("TSAN_OPTIONS", "halt_on_error=1")
        .env("STRESS_SECONDS", seconds)
        .env_remove("CARGO");
    call(&mut command)
}

/// The rooms that have unsafe code. Not the system calls: Miri knows few, and takes a mapping for an
/// allocation, which cannot be given back in parts.
fn miri(toolchain: &str) -> Result<()> {
    let rooms = [
        ("lithify-env", &["--lib"][..], "buf::"),
        ("lithify-memtable", &["--lib", "--test", "memtables"], ""),
    ];
    for (room, targets, tests) in rooms {
        let mut command = at_root("cargo", &["miri", "test", "--quiet", "--locked"]);
        command
            .args(["-p", room])
            .args(targets)
            .args(["--", tests])
            .env("RUSTUP_TOOLCHAIN", toolchain)
            .env("CARGO_TARGET_DIR", root().join("target/sanitize/miri"))
            .env_remove("CARGO");
        call(&mut command)?;
    }
    Ok(())
}

/// The name of a nightly compiler, if rustup has one.
fn nightly() -> Option<String> {
    let listed = Command::new("rustup").args(["toolchain", "list"]).output().ok()?;
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    let found = text.lines().find(|line| line.starts_with("nightly"))?;
    found.split_whitespace().next().map(str::to_owned)
}
