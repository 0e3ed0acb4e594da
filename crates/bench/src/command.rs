//! Entry points of binaries: `lithify bench` and the peers have the same flags and outputs.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{Parser, Subcommand};

use crate::compare::{self, CompareArgs, EngineCommand};
use crate::interrupt::{INTERRUPTED, Interrupt};
use crate::matrix::{self, MatrixArgs};
use crate::report::{RunReport, print_distributions, print_report};
use crate::run::run;
use crate::settings::{BenchArgs, EXAMPLES, OutputArgs};
use crate::stdout::StandardOutput;
use crate::store::StoreOpener;

/// Subcommands of `bench`; flatten them into a command line beside [`BenchArgs`].
#[derive(Clone, Debug, Subcommand)]
pub enum BenchSub {
    /// Run this store and its peers, or several of its policies, alternately with equal settings,
    /// and print ratios
    Compare(CompareArgs),
    /// Write amplification, speed and space of every compaction priority under several loads and
    /// shapes of the tree, beside RocksDB's
    Matrix(MatrixArgs),
}

/// Runs `lithify bench ...`. `own` is the command that starts this very bench as a process of
/// its own, for `compare`. True if the run was valid.
pub fn bench_main(
    opener: &dyn StoreOpener,
    own: EngineCommand,
    sub: Option<BenchSub>,
    args: BenchArgs,
) -> Result<bool> {
    match sub {
        Some(BenchSub::Compare(args)) => compare::compare(&opener.policies(), own, args),
        Some(BenchSub::Matrix(args)) => matrix::matrix(&opener.policies(), own, args),
        None => run_and_print(opener, args),
    }
}

/// The whole `main` of a peer's binary, whose flags are the bench's.
pub fn engine_main(opener: &dyn StoreOpener) -> ExitCode {
    /// The bench of Lithify over another engine: same workloads, flags and report
    #[derive(Parser)]
    #[command(after_help = EXAMPLES)]
    struct Engine {
        #[command(flatten)]
        args: BenchArgs,
    }
    let args = Engine::parse().args;
    let outcome = refuse_foreign(opener, &args).and_then(|()| run_and_print(opener, args));
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "error: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Refuses what only Lithify can do.
pub(crate) fn refuse_foreign(opener: &dyn StoreOpener, args: &BenchArgs) -> Result<()> {
    let timeline = args.output.timeline.as_ref().map(|_| "--timeline");
    match args.settings.own_flag().or(timeline) {
        None => Ok(()),
        Some(flag) => bail!("{flag}: {} cannot do that; leave it out", opener.identity().name),
    }
}

fn run_and_print(opener: &dyn StoreOpener, args: BenchArgs) -> Result<bool> {
    let report = run(opener, args.settings, &args.output, &Interrupt::heard()?)?;
    let printed = print(&report, &args.output);
    write_json(&report, &args.output)?;
    if report.interrupted {
        std::process::exit(i32::from(INTERRUPTED));
    }
    told(printed, report.valid)
}

/// What comes of a measurement that is `valid` or not, once it was `printed`. Whether someone reads on what is printed does
/// not make it valid.
///
/// # Errors
/// That of printing a valid one.
pub(crate) fn told(printed: std::io::Result<()>, valid: bool) -> Result<bool> {
    match valid {
        true => Ok(printed.map(|()| true)?),
        false => Ok(false),
    }
}

/// Tables to standard output, or to standard error when JSON takes standard output.
fn print(report: &RunReport, output: &OutputArgs) -> std::io::Result<()> {
    let table = |out: &mut dyn Write| {
        if !output.no_table {
            print_report(report, out)?;
        }
        if output.histogram {
            print_distributions(report, out)?;
        }
        out.flush()
    };
    match output.json_on_stdout() {
        true => table(&mut std::io::stderr().lock()),
        false => table(&mut StandardOutput::lock()),
    }
}

/// Writes `value` where `--json` says.
pub(crate) fn write_json(value: &impl serde::Serialize, output: &OutputArgs) -> Result<()> {
    let Some(path) = &output.json else { return Ok(()) };
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    if path.as_os_str() == "-" {
        return Ok(StandardOutput::tell(&text)?);
    }
    #[expect(clippy::disallowed_methods, reason = "a report is no file of the store")]
    std::fs::write(path, text).with_context(|| format!("writing {path:?}"))
}
