//! Side by side: runs engines as processes, alternately, and prints medians and ratios.
//!
//! Keeps: every engine gets exactly the same flags and an empty directory in every round; the
//! order is A B, A B, ..., so that a machine that changes over time hits all engines alike; a run
//! that is not valid takes part in nothing and makes the comparison fail.
//! Leaves to others: what an engine does with the flags, and measuring itself.
//!
//! Worked example, two rounds of one workload: A makes 300 and 340 kops/s, B makes 100 and
//! 120 kops/s. Medians 320 and 110; the ratio printed is of medians, 2.91.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use clap::Args;
use serde::{Deserialize, Serialize};

use crate::command::write_json;
use crate::place::remove_own;
use crate::report::{EngineIdentity, RunReport, WorkloadReport, align_right, table};
use crate::settings::{BenchArgs, BenchSettings};
use crate::units::three_digits;

/// Variable that names the RocksDB peer's binary; other peers likewise.
const PEER_VARIABLE: &str = "LITHIFY_PEER_";

/// How to start an engine's bench.
#[derive(Clone, Debug)]
pub struct EngineCommand {
    /// Short name for tables.
    pub name: String,
    /// Program.
    pub program: PathBuf,
    /// Arguments before the bench's flags, for example `["bench"]`.
    pub prefix: Vec<String>,
}

/// Flags of `compare`.
#[derive(Clone, Debug, Args)]
#[command(about = None, long_about = None, after_help = EXAMPLES)]
pub struct CompareArgs {
    /// Engines to compare with, separated by commas
    #[arg(long = "peer", value_name = "NAME", value_delimiter = ',', default_value = "rocksdb")]
    pub peers: Vec<String>,
    /// Rounds; every engine runs once in each
    #[arg(long, default_value_t = 3, value_name = "N")]
    pub rounds: usize,
    /// Keep the directories of all runs
    #[arg(long)]
    pub keep: bool,
    /// What each engine runs.
    #[command(flatten)]
    pub bench: BenchArgs,
}

const EXAMPLES: &str = "\
Examples:
  The tour, three rounds next to RocksDB:
      lithify bench compare --peer rocksdb
  Sustained random writes of 1 KiB, five rounds, all runs as JSON:
      lithify bench compare --rounds 5 --workloads fillrandom --num 6M --value-size 1024 --wal off \\
            --level-multiplier 5 --direct-io-compaction --json compare.json
  Compaction alone on one thread:
      lithify bench compare --workloads fillrandom,compact --num 20M --value-size 32 --wal off \\
            --no-auto-compaction --background-threads 1 --direct-io-compaction";

/// The outcome of a comparison.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Comparison {
    /// The engines; the first is the one that ratios are of.
    pub engines: Vec<EngineIdentity>,
    /// Rounds run.
    pub rounds: usize,
    /// True if every run was valid.
    pub valid: bool,
    /// What was wrong with the others.
    pub errors: Vec<String>,
    /// Medians and ratios, by workload and figure.
    pub figures: Vec<Figure>,
    /// Every run, in the order they were made.
    pub runs: Vec<RunReport>,
}

/// One figure of one workload for all engines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Workload.
    pub workload: String,
    /// What is measured, with its unit.
    pub figure: String,
    /// By engine, in the order of [`Comparison::engines`].
    pub spreads: Vec<Spread>,
    /// First engine's median over each engine's; the first is 1. None where a median is zero.
    pub ratios: Vec<Option<f64>>,
}

/// Median and extremes over the rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Median (mean of the middle two for an even number of rounds).
    pub median: f64,
    /// Least.
    pub min: f64,
    /// Greatest.
    pub max: f64,
}

/// Runs `own` and the peers alternately and prints the comparison. True if all runs were valid.
pub fn compare(own: EngineCommand, args: CompareArgs) -> Result<bool> {
    let mut engines = vec![own];
    for peer in &args.peers {
        engines.push(find_peer(peer)?);
    }
    let comparison = side_by_side(&engines, &args)?;
    if args.bench.output.json_on_stdout() {
        print_comparison(&comparison, &mut std::io::stderr().lock())?;
    } else {
        print_comparison(&comparison, &mut std::io::stdout().lock())?;
    }
    write_json(&comparison, &args.bench.output)?;
    Ok(comparison.valid)
}

/// Runs `engines` alternately, each in a directory of its own that is removed afterwards.
fn side_by_side(engines: &[EngineCommand], args: &CompareArgs) -> Result<Comparison> {
    if args.rounds == 0 {
        bail!("--rounds 0: give at least one round");
    }
    let settings = args.bench.settings.clone().resolve()?;
    if settings.use_existing_db {
        bail!("--use-existing-db: a comparison begins with empty stores");
    }
    let quiet = args.bench.output.quiet;
    let mut runs = Vec::new();
    for round in 1..=args.rounds {
        for engine in engines {
            announce(quiet, &format!("round {round} of {}: {}", args.rounds, engine.name))?;
            let dir = settings.db.join(format!("{}-{round}", engine.name));
            remove_own(&dir)?;
            let own = BenchSettings { db: dir.clone(), ..settings.clone() };
            let report = run_engine(engine, &own.to_flags(), quiet)?;
            if !args.keep {
                remove_own(&dir)?;
            }
            announce(quiet, &summary(&report))?;
            runs.push(report);
        }
    }
    Ok(conclude(runs, args.rounds))
}

/// The command of peer `name`: from `$LITHIFY_PEER_<NAME>`, else beside the running program,
/// else in the `peers` folder of the repository that the program or the working directory is in.
pub fn find_peer(name: &str) -> Result<EngineCommand> {
    let binary = format!("lithify-peer-{name}");
    let variable = format!("{PEER_VARIABLE}{}", name.to_uppercase());
    let mut places = Vec::new();
    if let Some(path) = std::env::var_os(&variable) {
        places.push(PathBuf::from(path));
    } else {
        let exe = std::env::current_exe().unwrap_or_default();
        let cwd = std::env::current_dir().unwrap_or_default();
        places.extend(exe.parent().map(|dir| dir.join(&binary)));
        for start in [&cwd, &exe] {
            let up = start.ancestors();
            places.extend(
                up.map(|d| d.join("peers").join(name).join("target/release").join(&binary)),
            );
        }
    }
    match places.into_iter().find(|path| path.is_file()) {
        Some(program) => Ok(EngineCommand { name: name.to_owned(), program, prefix: Vec::new() }),
        None => bail!(
            "the peer `{name}` is not here; run `cargo xtask peers` in the repository, or name \
             its binary in ${variable}"
        ),
    }
}

/// Starts one engine's bench and reads its report.
fn run_engine(engine: &EngineCommand, flags: &[String], quiet: bool) -> Result<RunReport> {
    let mut command = Command::new(&engine.program);
    command.args(&engine.prefix).args(flags).args(["--json", "-", "--no-table"]);
    if quiet {
        command.arg("--quiet");
    }
    // Standard error stays ours: the engine's progress line shows there.
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let run = command.spawn().and_then(std::process::Child::wait_with_output);
    let output = run.with_context(|| format!("starting {}", engine.program.display()))?;
    serde_json::from_slice(&output.stdout).with_context(|| {
        format!("{} ended with {} and without a report", engine.name, output.status)
    })
}

fn announce(quiet: bool, line: &str) -> Result<()> {
    if quiet {
        return Ok(());
    }
    Ok(writeln!(std::io::stderr(), "{line}")?)
}

fn summary(report: &RunReport) -> String {
    if let Some(error) = &report.error {
        return format!("  INVALID: {error}");
    }
    let parts: Vec<_> = report
        .workloads
        .iter()
        .map(|w| format!("{} {:.1} s + {:.1} s", w.workload, w.seconds, w.quiesce_seconds))
        .collect();
    format!("  {}", parts.join(", "))
}

/// A figure's name and where a workload's report has it.
type Probe = (&'static str, fn(&WorkloadReport) -> Option<f64>);

const PROBES: [Probe; 9] = [
    ("kops/s", |w| (w.ops > 0).then_some(w.ops_per_second / 1e3)),
    ("kops/s to quiescence", |w| {
        (w.ops > 0 && w.write_amplification.is_some()).then_some(w.ops_per_second_quiesced / 1e3)
    }),
    ("MB/s", |w| (w.bytes > 0).then_some(w.mb_per_second)),
    ("p99.9 us", |w| w.latency_us.as_ref().map(|l| l.p999)),
    ("stall s", |w| w.write_amplification.map(|_| w.engine.stall_seconds)),
    ("ops > 10 ms, s", |w| w.write_amplification.map(|_| w.slow.seconds)),
    ("write amp", |w| w.write_amplification),
    ("compaction MB/s/CPU", |w| w.compaction_mb_per_cpu_second),
    ("CPU s", |w| Some(w.cpu_seconds)),
];

/// Medians and ratios of `runs`; engines in the order of their first runs.
pub fn conclude(runs: Vec<RunReport>, rounds: usize) -> Comparison {
    let mut engines: Vec<EngineIdentity> = Vec::new();
    for run in &runs {
        if !engines.contains(&run.engine) {
            engines.push(run.engine.clone());
        }
    }
    let errors: Vec<_> = runs
        .iter()
        .filter(|run| !run.valid)
        .map(|run| {
            let why = run.error.as_deref().unwrap_or("no reason given");
            format!("{}: {why}", run.engine.name)
        })
        .collect();
    let mut figures = Vec::new();
    for (place, name) in workload_places(&runs) {
        for (figure, probe) in PROBES {
            let spreads: Option<Vec<Spread>> = engines
                .iter()
                .map(|engine| {
                    let valid = runs.iter().filter(|r| r.valid && r.engine == *engine);
                    let mut values: Vec<f64> =
                        valid.filter_map(|r| probe(r.workloads.get(place)?)).collect();
                    spread(&mut values)
                })
                .collect();
            let Some(spreads) = spreads else { continue };
            let own = spreads[0].median;
            let ratios =
                spreads.iter().map(|s| (s.median != 0.0).then(|| own / s.median)).collect();
            figures.push(Figure {
                workload: name.clone(),
                figure: figure.to_owned(),
                spreads,
                ratios,
            });
        }
    }
    Comparison { engines, rounds, valid: errors.is_empty(), errors, figures, runs }
}

/// Places of workloads in the runs' lists, with their names; a workload that comes again is
/// told apart by its number.
fn workload_places(runs: &[RunReport]) -> Vec<(usize, String)> {
    let Some(longest) = runs.iter().max_by_key(|run| run.workloads.len()) else {
        return Vec::new();
    };
    let mut times = BTreeMap::new();
    let workloads = longest.workloads.iter().enumerate();
    workloads
        .map(|(place, w)| {
            let n = times.entry(&w.workload).and_modify(|n| *n += 1).or_insert(1);
            (place, if *n == 1 { w.workload.clone() } else { format!("{} #{n}", w.workload) })
        })
        .collect()
}

/// Median and extremes, or `None` of nothing. Sorts `values`.
fn spread(values: &mut [f64]) -> Option<Spread> {
    values.sort_by(f64::total_cmp);
    let (min, max) = (*values.first()?, *values.last()?);
    let mid = values.len() / 2;
    let median =
        if values.len() % 2 == 1 { values[mid] } else { (values[mid - 1] + values[mid]) / 2.0 };
    Some(Spread { median, min, max })
}

/// Prints medians, extremes and ratios as a table to `out`.
pub fn print_comparison(comparison: &Comparison, out: &mut dyn Write) -> std::io::Result<()> {
    let mut heading = vec!["workload".to_owned(), "figure".to_owned()];
    for engine in &comparison.engines {
        heading.push(format!("{} {}", engine.name, engine.version));
        heading.push("min..max".to_owned());
    }
    for engine in comparison.engines.iter().skip(1) {
        heading.push(format!("ratio to {}", engine.name));
    }
    let mut table = table(heading);
    let mut last = "";
    for figure in &comparison.figures {
        let name = if figure.workload == last { "" } else { &figure.workload };
        last = &figure.workload;
        let mut row = vec![name.to_owned(), figure.figure.clone()];
        for s in &figure.spreads {
            row.push(three_digits(s.median));
            row.push(format!("{}..{}", three_digits(s.min), three_digits(s.max)));
        }
        for ratio in figure.ratios.iter().skip(1) {
            row.push(ratio.map_or_else(|| "-".to_owned(), |r| format!("{r:.2}")));
        }
        table.add_row(row);
    }
    align_right(&mut table);
    writeln!(out, "medians of {} alternating rounds, equal settings", comparison.rounds)?;
    writeln!(out, "{table}")?;
    for error in &comparison.errors {
        writeln!(out, "INVALID RUN, left out: {error}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
