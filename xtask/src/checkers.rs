//! `cargo xtask shuttle` and `cargo xtask loom`: the engine's threads under a model checker.
//!
//! Both replace the locks and atomics of the whole build (`--cfg shuttle`, `--cfg loom`), so each has
//! a target folder of its own.
//!
//! Leaves to others: the scenarios (`tests/schedules*` and `schedules.rs` of `env`, `writes`, `layers`, `db` and
//! `engine-fpga`; `models.rs` of `env` and `memtable`), and what a run of one is (`lithify_testkit::schedules`).

use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::repo;
use crate::run::{at_root, call, each};

/// Schedules of each scenario in a run by hand.
const SCHEDULES: &str = "10000";
/// Schedules of each scenario before a merge, and the most seconds for them.
const CHECK_SCHEDULES: &str = "4000";
const CHECK_SECONDS: &str = "2";
/// Preemptions in one execution, at most.
const PREEMPTIONS: &str = "3";

const USAGE: &str = "\
cargo xtask shuttle [--schedules N] [--seconds S] [--seed N] [--replay FILE] [SCENARIO]
cargo xtask loom [--preemptions N] [MODEL]

  SCENARIO, MODEL   only tests whose name contains this
  --seconds         most seconds for each scenario";

/// The scenarios under chosen schedules: 10,000 of each unless told otherwise.
pub(crate) fn shuttle(args: &[String]) -> Result<()> {
    let options = [
        ("--schedules", "LITHIFY_SCHEDULES"),
        ("--seconds", "LITHIFY_SECONDS"),
        ("--seed", "LITHIFY_SEED"),
        ("--replay", "LITHIFY_REPLAY"),
    ];
    let (variables, only) = read(args, &options)?;
    scenarios(&[&[("LITHIFY_SCHEDULES", SCHEDULES.to_owned())], &variables[..]].concat(), &only)
}

/// What runs before a merge: some schedules of each scenario, which follow from the commit.
pub(crate) fn check_shuttle() -> Result<()> {
    let variables = [
        ("LITHIFY_SCHEDULES", CHECK_SCHEDULES.to_owned()),
        ("LITHIFY_SECONDS", CHECK_SECONDS.to_owned()),
        ("LITHIFY_SEED", repo::commit().to_string()),
    ];
    scenarios(&variables, &[])
}

fn scenarios(variables: &[(&str, String)], only: &[String]) -> Result<()> {
    // The rooms' own `tests` know nothing of a checker: what is for it is in modules named `schedules`.
    let own = ["-p", "lithify-writes", "-p", "lithify-layers", "--lib"];
    let whole = ["-p", "lithify-env", "-p", "lithify", "--test", "schedules"];
    let card = ["-p", "lithify-engine-fpga", "--test", "faults"];
    let what = [&own[..], &whole[..], &card[..]];
    for what in what {
        call(checked("shuttle").args(what).arg("--no-run"))?;
    }
    let chosen = |what: &[&str]| {
        let mut command = checked("shuttle");
        command.args(what).args(["--", "--skip", "tests::"]).args(only);
        command
    };
    let counts = what.iter().map(|what| listed(&mut chosen(what))).collect::<Result<Vec<_>>>()?;
    check_some(&counts, only)?;
    // One program has one model at a time, because what is static in the engine belongs to it.
    let ran = each(what.len(), &what, |what| {
        let mut command = chosen(what);
        command.arg("--nocapture").args(["--test-threads", "1"]);
        call(command.envs(variables.iter().map(|(name, value)| (name, value))))
    });
    ran.map(drop)
}

/// How many tests a command would run.
fn listed(command: &mut Command) -> Result<usize> {
    let output = command.arg("--list").output().context("listing tests")?;
    if !output.status.success() {
        bail!("tests could not be listed:\n{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8_lossy(&output.stdout).lines().filter(|l| l.ends_with(": test")).count())
}

/// What runs nothing must not pass: each program has scenarios, and a name that is asked for is that of one.
fn check_some(counts: &[usize], only: &[String]) -> Result<()> {
    match only {
        [] if counts.contains(&0) => bail!("a program has no scenario: {counts:?}"),
        [] => Ok(()),
        only if counts.iter().all(|count| *count == 0) => {
            bail!("no name contains `{}`\n\n{USAGE}", only.join("` or `"))
        }
        _ => Ok(()),
    }
}

/// The models of the parts without locks, every order of each.
pub(crate) fn loom(args: &[String]) -> Result<()> {
    let (variables, only) = read(args, &[("--preemptions", "LOOM_MAX_PREEMPTIONS")])?;
    let models = |rooms: &[&str]| {
        let mut command = checked("loom");
        command.args(rooms).args(["--lib", "--"]);
        match &only[..] {
            [] => command.arg("models::"),
            only => command.args(only),
        };
        command.env("LOOM_MAX_PREEMPTIONS", PREEMPTIONS);
        command
    };
    let rooms = ["-p", "lithify-env", "-p", "lithify-memtable"];
    let counts =
        rooms.chunks(2).map(|room| listed(&mut models(room))).collect::<Result<Vec<_>>>()?;
    check_some(&counts, &only)?;
    let mut command = models(&rooms);
    call(command.args(["--nocapture", "--test-threads", "2"]).envs(variables))
}

/// `cargo test` with `checker` behind all locks.
fn checked(checker: &str) -> Command {
    let mut command = at_root("cargo", &["test", "--quiet", "--locked"]);
    command
        .env("RUSTFLAGS", format!("--cfg {checker}"))
        .env("CARGO_TARGET_DIR", repo::root().join("target").join(checker));
    command
}

type Variables = Vec<(&'static str, String)>;

/// Options as environment variables, and the rest.
fn read(args: &[String], options: &[(&str, &'static str)]) -> Result<(Variables, Vec<String>)> {
    let (mut variables, mut rest) = (Vec::new(), Vec::new());
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match options.iter().find(|(option, _)| option == arg) {
            Some((option, variable)) => {
                let value = args.next().with_context(|| format!("{option} needs a value"))?;
                variables.push((*variable, value.clone()));
            }
            None if arg.starts_with('-') => bail!("unknown option `{arg}`\n\n{USAGE}"),
            None => rest.push(arg.clone()),
        }
    }
    Ok((variables, rest))
}
