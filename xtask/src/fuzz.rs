//! `cargo xtask fuzz`: runs the fuzzers over every target of `crates/hostile`, some seconds each.
//!
//! Keeps: the pinned compiler is enough, and the C++ one that libFuzzer comes for. Seeds are only
//! read; what a run learns goes into a scratch folder below `target`. A failing input is left in
//! `fuzz/found`: made a seed, it is replayed by every later test run.
//! Leaves to others: what is a failure (`crates/hostile`, and the allocator of `fuzz/src/main.rs`).

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::repo::{self, root};
use crate::run::{at_root, call, each, has, install};

/// Longest input, bytes.
const INPUT_MAX: u32 = 4096;
/// Longest run of one input, seconds: a hang, also where many others want the processor.
const TIMEOUT: u32 = 20;
/// Seconds for each target unless told otherwise.
const SECONDS: u32 = 20;
/// Seconds for each before a merge: a minute and a half for all of them, two at once.
const CHECK_SECONDS: u32 = 8;
/// Targets at once.
const JOBS: usize = 2;
/// Coverage for libFuzzer (a counter per edge, and the operands of comparisons), and AddressSanitizer
/// for the rooms with unsafe code.
const INSTRUMENT: &str = "-Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares \
    -Zsanitizer=address -Ccodegen-units=1 --cfg fuzzing";
/// Where libFuzzer says how far it came.
const EXECUTED: &str = "stat::number_of_executed_units:";

/// What to do.
struct Wish {
    seconds: u32,
    jobs: usize,
    /// Where the making up of bytes begins; chosen by libFuzzer unless it is said.
    seed: Option<u64>,
    targets: Vec<String>,
    /// The folder of what is learnt, one below it for each target.
    learnt: PathBuf,
}

/// Runs the chore with `--seconds N`, `--seed N`, `--jobs N` and the names of targets, or all.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let learnt = root().join("target/fuzz/corpus");
    let mut wish = Wish { seconds: SECONDS, jobs: JOBS, seed: None, targets: Vec::new(), learnt };
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        let mut number = || -> Result<u64> {
            let n = rest.next().with_context(|| format!("{arg} needs a number"))?;
            n.parse().with_context(|| format!("`{n}` is no number"))
        };
        match arg.as_str() {
            "--seconds" => wish.seconds = number()?.try_into().context("too many seconds")?,
            "--seed" => wish.seed = Some(number()?),
            "--jobs" => wish.jobs = number()?.max(1) as usize,
            name => wish.targets.push(name.to_owned()),
        }
    }
    let all = targets()?;
    if let Some(unknown) = wish.targets.iter().find(|name| !all.contains(name)) {
        bail!("there is no target `{unknown}`; there are: {}", all.join(", "));
    }
    if wish.targets.is_empty() {
        wish.targets = all;
    }
    if !has("c++") {
        bail!("libFuzzer comes as C++ source, and there is no c++ here (`apt install g++`)");
    }
    hunt(&wish)
}

/// What runs before a merge: all targets, from nothing but the seeds, with bytes that follow from
/// the commit.
pub(crate) fn check() -> Result<()> {
    if !has("c++") && install("g++").is_err() {
        eprintln!("note: there is no c++ here, which libFuzzer needs, so nothing was fuzzed");
        return Ok(());
    }
    let learnt = root().join("target/fuzz/check");
    if learnt.exists() {
        fs::remove_dir_all(&learnt)?;
    }
    let seed = Some(repo::commit());
    hunt(&Wish { seconds: CHECK_SECONDS, jobs: JOBS, seed, targets: targets()?, learnt })
}

fn hunt(wish: &Wish) -> Result<()> {
    let program = build()?;
    // Failures are told in the end, so that one target does not hide the others.
    let runs = each(wish.jobs, &wish.targets, |name| {
        let run = fuzz(&program, name, wish);
        match &run {
            Ok(executions) => eprintln!("fuzz: {name:<13} {executions:>9} executions"),
            Err(error) => eprintln!("fuzz: {name} FAILED\n{error:#}"),
        }
        Ok(run.ok())
    })?;
    let total: u64 = runs.iter().flatten().sum();
    eprintln!("fuzz: {total} executions over {} targets", wish.targets.len());
    let failed: Vec<&str> = wish
        .targets
        .iter()
        .zip(&runs)
        .filter(|(_, r)| r.is_none())
        .map(|(name, _)| name.as_str())
        .collect();
    match failed.is_empty() {
        true => Ok(()),
        false => bail!("failing inputs are in fuzz/found: {}", failed.join(", ")),
    }
}

/// The targets are the folders of seeds; a test sees to it that they are all there.
fn targets() -> Result<Vec<String>> {
    let corpus = root().join("fuzz/corpus");
    let entries = fs::read_dir(&corpus).with_context(|| corpus.display().to_string())?;
    let mut names = Vec::new();
    for entry in entries {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

fn build() -> Result<PathBuf> {
    let triple = "x86_64-unknown-linux-gnu";
    let scratch = root().join("target/fuzz");
    let args = ["build", "-q", "--locked", "--release", "--manifest-path", "fuzz/Cargo.toml"];
    let mut command = at_root("cargo", &args);
    // A target given by name keeps the flags from build scripts.
    command.args(["--target", triple, "--target-dir"]).arg(&scratch);
    // The sanitizer comes with every compiler; only its flag is for those who ask.
    command.env("RUSTC_BOOTSTRAP", "1").env("RUSTFLAGS", INSTRUMENT);
    call(&mut command)?;
    Ok(scratch.join(triple).join("release/lithify-fuzz"))
}

/// Fuzzes one target; executions, or the end of what libFuzzer said when it failed.
fn fuzz(program: &Path, name: &str, wish: &Wish) -> Result<u64> {
    let (learnt, found) = (wish.learnt.join(name), root().join("fuzz/found"));
    fs::create_dir_all(&learnt)?;
    fs::create_dir_all(&found)?;
    let said = wish.learnt.join(format!("{name}.txt"));
    let out = File::create(&said).with_context(|| said.display().to_string())?;
    let mut command = Command::new(program);
    command
        .arg(&learnt)
        .arg(root().join("fuzz/corpus").join(name))
        .arg(format!("-max_total_time={}", wish.seconds))
        .arg(format!("-max_len={INPUT_MAX}"))
        .arg(format!("-timeout={TIMEOUT}"))
        .arg(format!("-artifact_prefix={}/{name}-", found.display()))
        .args(["-print_final_stats=1", "-verbosity=0"])
        // A target limits the length of its files, and takes a refusal for an error.
        .arg("-handle_xfsz=0")
        // libFuzzer takes 32 bits, and 0 for none.
        .args(wish.seed.map(|seed| format!("-seed={}", (seed as u32).max(1))))
        .env("LITHIFY_TARGET", name)
        .current_dir(root())
        .stdin(Stdio::null())
        .stdout(out.try_clone()?)
        .stderr(out);
    let status = command.status().with_context(|| program.display().to_string())?;
    let text = String::from_utf8_lossy(&fs::read(&said)?).into_owned();
    if !status.success() {
        let lines: Vec<&str> = text.lines().collect();
        let end = lines[lines.len().saturating_sub(60)..].join("\n");
        bail!("{end}\n{name} ended with {status}");
    }
    let executed = text.lines().find_map(|line| line.strip_prefix(EXECUTED));
    executed
        .and_then(|n| n.trim().parse().ok())
        .with_context(|| format!("{} does not say how far {name} came", said.display()))
}
