//! `cargo xtask fuzz`: runs the fuzzers over every target of `crates/hostile`, some seconds each.
//!
//! Keeps: seeds are only read; what a run learns goes into a scratch folder below `target`. A
//! failing input is left in `fuzz/found`: made a seed, it is replayed by every later test run.
//! Leaves to others: what is a failure (`crates/hostile`, and the allocator of `fuzz/src/main.rs`).

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::repo::root;
use crate::run::{at_root, call, has};

/// Longest input, bytes.
const INPUT_MAX: u32 = 4096;
/// Longest run of one input, seconds.
const TIMEOUT: u32 = 5;
/// Seconds for each target unless told otherwise.
const SECONDS: u32 = 20;
/// Coverage for libFuzzer: a counter per edge, and the operands of comparisons.
const INSTRUMENT: &str = "-Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares \
    -Ccodegen-units=1 --cfg fuzzing";

/// Runs the chore with `--seconds N` and the names of targets, or all of them.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let (mut seconds, mut chosen) = (SECONDS, Vec::new());
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        match arg.as_str() {
            "--seconds" => {
                let n = rest.next().context("--seconds needs a number")?;
                seconds = n.parse().with_context(|| format!("`{n}` is no number of seconds"))?;
            }
            name => chosen.push(name.to_owned()),
        }
    }
    let all = targets()?;
    if let Some(unknown) = chosen.iter().find(|name| !all.contains(name)) {
        bail!("there is no target `{unknown}`; there are: {}", all.join(", "));
    }
    if chosen.is_empty() {
        chosen = all;
    }
    let Some(toolchain) = nightly() else {
        eprintln!("note: no nightly compiler is here (`rustup toolchain install nightly`), so");
        eprintln!("      nothing was fuzzed; `cargo test -p lithify-hostile` replays the seeds");
        return Ok(());
    };
    if !has("c++") {
        bail!("libFuzzer comes as C++ source, and there is no c++ here (`apt install g++`)");
    }
    let program = build(&toolchain)?;
    let mut failed = Vec::new();
    for name in &chosen {
        if let Err(error) = fuzz(&program, name, seconds) {
            eprintln!("{error:#}");
            failed.push(name.as_str());
        }
    }
    match failed.is_empty() {
        true => Ok(()),
        false => bail!("failing inputs are in fuzz/found: {}", failed.join(", ")),
    }
}

/// The targets are the folders of seeds; a test sees to it that they are all there.
fn targets() -> Result<Vec<String>> {
    let corpus = root().join("fuzz/corpus");
    let entries = std::fs::read_dir(&corpus).with_context(|| corpus.display().to_string())?;
    let mut names = Vec::new();
    for entry in entries {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

/// The name of a nightly compiler, if rustup has one.
pub(crate) fn nightly() -> Option<String> {
    let listed = Command::new("rustup").args(["toolchain", "list"]).output().ok()?;
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    let found = text.lines().find(|line| line.starts_with("nightly"))?;
    found.split_whitespace().next().map(str::to_owned)
}

fn build(toolchain: &str) -> Result<PathBuf> {
    let triple = "x86_64-unknown-linux-gnu";
    let scratch = root().join("target/fuzz");
    let args = ["build", "-q", "--release", "--manifest-path", "fuzz/Cargo.toml"];
    let mut command = at_root("cargo", &args);
    // A target given by name keeps the flags from build scripts.
    command
        .args(["--target", triple, "--target-dir"])
        .arg(&scratch)
        .env("RUSTUP_TOOLCHAIN", toolchain)
        .env("RUSTFLAGS", INSTRUMENT)
        .env_remove("CARGO");
    call(&mut command)?;
    Ok(scratch.join(triple).join("release/lithify-fuzz"))
}

fn fuzz(program: &PathBuf, name: &str, seconds: u32) -> Result<()> {
    let learnt = root().join("target/fuzz/corpus").join(name);
    let found = root().join("fuzz/found");
    std::fs::create_dir_all(&learnt)?;
    std::fs::create_dir_all(&found)?;
    eprintln!("fuzz: {name}");
    let mut command = Command::new(program);
    command
        .arg(&learnt)
        .arg(root().join("fuzz/corpus").join(name))
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-max_len={INPUT_MAX}"))
        .arg(format!("-timeout={TIMEOUT}"))
        .arg(format!("-artifact_prefix={}/{name}-", found.display()))
        .args(["-print_final_stats=1", "-verbosity=0"])
        .env("LITHIFY_TARGET", name)
        .current_dir(root());
    call(&mut command)
}
