//! Side by side: runs engines as processes, alternately, and prints medians and ratios.
//!
//! Keeps: every engine gets exactly the same flags and an empty directory in every round; the
//! order is A B, A B, ..., so that a machine that changes over time hits all engines alike; a run
//! that is not valid takes part in nothing and makes the comparison fail.
//! Leaves to others: what an engine does with the flags, and measuring itself.
//!
//! Worked example, two rounds of one workload: A makes 300 and 340 kops/s, B makes 100 and
//! 120 kops/s. Medians 320 and 110; the ratio printed is of medians, 2.91.

mod also;
mod show;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, Result, bail};
use clap::Args;
use serde::{Deserialize, Serialize};

use crate::command::{told, write_json};
use crate::place::remove_own;
use crate::report::{EngineIdentity, RunReport, WorkloadReport};
use crate::settings::{BenchArgs, BenchSettings};
use crate::stdout::StandardOutput;
use crate::timeline::Activity;
use crate::usage::Usage;
use also::Also;

/// Exit status of an engine that could not run, because it does not know an argument for one.
const USAGE: i32 = 2;

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
    /// What it is set to, if not as the settings have it.
    pub preset: Option<Preset>,
}

/// A policy, and what else makes a preset: `hybrid:sub4` is `hybrid` with compactions in up to four
/// parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preset {
    /// As it was given.
    pub name: String,
    policy: String,
    /// Parts of a wide compaction, if not the settings' number.
    subcompactions: Option<usize>,
}

impl Preset {
    /// Reads `POLICY` or `POLICY:subN`.
    fn parse(name: &str) -> Preset {
        let parts =
            name.rsplit_once(":sub").and_then(|(policy, n)| Some((policy, n.parse().ok()?)));
        let (policy, subcompactions) = parts.map_or((name, None), |(policy, n)| (policy, Some(n)));
        Preset { name: name.to_owned(), policy: policy.to_owned(), subcompactions }
    }
}

/// Flags of `compare`.
#[derive(Clone, Debug, Args)]
#[command(about = None, long_about = None, after_help = EXAMPLES)]
pub struct CompareArgs {
    /// Engines to compare with, separated by commas
    #[arg(long = "peer", value_name = "NAME", value_delimiter = ',', default_value = "rocksdb")]
    pub peers: Vec<String>,
    /// Compare these policies of Lithify instead of engines; ratios are to the first. `hybrid:sub4`
    /// is `hybrid` with --subcompactions 4
    #[arg(long, value_name = "LIST", value_delimiter = ',', conflicts_with = "peers")]
    pub presets: Vec<String>,
    /// Rounds; every engine runs once in each
    #[arg(long, default_value_t = 3, value_name = "N")]
    pub rounds: usize,
    /// Run this, too, in each round and in an empty store, with flags of its own:
    /// `fillrandom:threads=4`
    #[arg(long, value_name = "WORKLOAD:FLAG=VALUE", value_delimiter = ',')]
    pub also: Vec<String>,
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
  Five engines, with one writer and with four:
      lithify bench compare --peer rocksdb,fjall,redb,lmdb --workloads fillrandom,readrandom \\
            --num 1M --also fillrandom:threads=4
  Sustained random writes of 1 KiB, five rounds, all runs as JSON:
      lithify bench compare --rounds 5 --workloads fillrandom --num 6M --value-size 1024 --wal off \\
            --level-multiplier 5 --direct-io-compaction --json compare.json
  Two compaction policies on a slow disk with a deep queue, and a picture of each run's jobs:
      lithify bench compare --presets hybrid,leveled --workloads fillrandom --num 1M \\
            --value-size 1024 --wal off --direct-io-compaction --background-threads 8 \\
            --throttle-bandwidth 200MiB --throttle-latency 200 --timeline jobs.svg
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
    /// What is divided by what.
    pub ratio: Ratio,
    /// True if every run was valid.
    pub valid: bool,
    /// What was wrong with the others.
    pub errors: Vec<String>,
    /// Medians and ratios, by workload and figure.
    pub figures: Vec<Figure>,
    /// Every run, in the order they were made.
    pub runs: Vec<RunReport>,
}

/// Which way round ratios are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ratio {
    /// Ours, the first, over each peer's.
    FirstOverOther,
    /// Each preset's over that of the first, which is the base.
    OtherOverFirst,
}

impl Ratio {
    fn of(self, first: f64, other: f64) -> Option<f64> {
        let (a, b) = match self {
            Ratio::FirstOverOther => (first, other),
            Ratio::OtherOverFirst => (other, first),
        };
        (b != 0.0).then(|| a / b)
    }
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
    /// First engine's median over each engine's, or with presets each preset's over the first's;
    /// the first is 1. None where the divisor is zero.
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
///
/// `policies` are those that `own` takes, for `--presets`; none if it does not say.
pub fn compare(policies: &[&str], own: EngineCommand, args: CompareArgs) -> Result<bool> {
    let wanted = Wanted::by(&args).map_err(Usage::of)?;
    let engines = match args.presets.is_empty() {
        true => {
            peers_can(&args).map_err(Usage::of)?;
            peers_of(own, &args)?
        }
        false => presets_of(policies, &own, &args.presets).map_err(Usage::of)?,
    };
    args.bench.output.check_places()?;
    let comparison = side_by_side(&engines, &args, &wanted)?;
    let printed = match args.bench.output.json_on_stdout() {
        true => show::print(&comparison, &mut std::io::stderr().lock()),
        false => show::print(&comparison, &mut StandardOutput::lock()),
    };
    write_json(&comparison, &args.bench.output)?;
    told(printed, comparison.valid)
}

/// Refuses what only Lithify can do.
fn peers_can(args: &CompareArgs) -> Result<()> {
    if let Some(flag) = args.bench.settings.own_flag() {
        bail!("{flag}: peers cannot do that; use it with --presets");
    }
    if args.bench.output.timeline.is_some() {
        bail!("--timeline: peers keep no log of their jobs; use it with --presets");
    }
    Ok(())
}

/// The engine itself and its peers.
fn peers_of(own: EngineCommand, args: &CompareArgs) -> Result<Vec<EngineCommand>> {
    let peers = args.peers.iter().map(|peer| find_peer(peer));
    std::iter::once(Ok(own)).chain(peers).collect()
}

/// The engine once for each policy in `presets`.
fn presets_of(
    policies: &[&str],
    own: &EngineCommand,
    presets: &[String],
) -> Result<Vec<EngineCommand>> {
    let of: Vec<Preset> = presets.iter().map(|name| Preset::parse(name)).collect();
    for (i, (name, preset)) in presets.iter().zip(&of).enumerate() {
        if !policies.is_empty() && !policies.contains(&preset.policy.as_str()) {
            bail!(
                "--presets {name}: there are {}, and each with :subN behind it",
                policies.join(", ")
            );
        }
        if presets[..i].contains(name) {
            bail!("--presets {name}: it is there twice");
        }
    }
    let with = |preset: Preset| EngineCommand {
        name: preset.name.clone(),
        preset: Some(preset),
        ..own.clone()
    };
    Ok(of.into_iter().map(with).collect())
}

/// What each engine does in a round.
struct Wanted {
    settings: BenchSettings,
    /// Further runs, which join the report of the first.
    further: Vec<(Also, BenchSettings)>,
}

impl Wanted {
    fn by(args: &CompareArgs) -> Result<Wanted> {
        if args.rounds == 0 {
            bail!("--rounds 0: give at least one round");
        }
        let settings = args.bench.settings.clone().resolve()?;
        if settings.use_existing_db {
            bail!("--use-existing-db: a comparison begins with empty stores");
        }
        let further = args.also.iter().map(|text| {
            let also = Also::parse(text)?;
            let settings = also.settings(&settings)?;
            Ok((also, settings))
        });
        Ok(Wanted { further: further.collect::<Result<_>>()?, settings })
    }
}

/// Runs `engines` alternately, each in a directory of its own that is removed afterwards.
fn side_by_side(
    engines: &[EngineCommand],
    args: &CompareArgs,
    wanted: &Wanted,
) -> Result<Comparison> {
    let Wanted { settings, further } = wanted;
    let quiet = args.bench.output.quiet;
    let mut runs = Vec::new();
    for round in 1..=args.rounds {
        for engine in engines {
            announce(quiet, &format!("round {round} of {}: {}", args.rounds, engine.name))?;
            let mut report = one_run(engine, settings, args, round)?;
            for (also, settings) in further {
                also.join(&mut report, one_run(engine, settings, args, round)?);
            }
            announce(quiet, &summary(&report))?;
            runs.push(report);
        }
    }
    let ratio = match args.presets.is_empty() {
        true => Ratio::FirstOverOther,
        false => Ratio::OtherOverFirst,
    };
    Ok(conclude(runs, args.rounds, ratio))
}

/// Runs `engine` once with `settings`, in a directory of its own.
fn one_run(
    engine: &EngineCommand,
    settings: &BenchSettings,
    args: &CompareArgs,
    round: usize,
) -> Result<RunReport> {
    let dir = settings.db.join(format!("{}-{round}", engine.name));
    remove_own(&dir)?;
    let mut own = BenchSettings { db: dir.clone(), ..settings.clone() };
    if let Some(preset) = &engine.preset {
        own.policy.clone_from(&preset.policy);
        own.subcompactions = preset.subcompactions.unwrap_or(own.subcompactions);
    }
    let mut flags = own.to_flags();
    if let Some(path) = &args.bench.output.timeline {
        let path = numbered(path, &engine.name, round);
        flags.push(format!("--timeline={}", path.to_string_lossy()));
    }
    let mut report = run_engine(engine, &flags, args.bench.output.quiet)?;
    if let Some(preset) = &engine.preset {
        report.engine.name.clone_from(&preset.name);
    }
    if !args.keep {
        remove_own(&dir)?;
    }
    Ok(report)
}

/// `jobs.svg` as `jobs-hybrid-1.svg`.
fn numbered(path: &Path, name: &str, round: usize) -> PathBuf {
    let part = |p: Option<&std::ffi::OsStr>| p.unwrap_or_default().to_string_lossy().into_owned();
    let (stem, ending) = (part(path.file_stem()), part(path.extension()));
    path.with_file_name(format!("{stem}-{name}-{round}.{ending}"))
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
        Some(program) => {
            Ok(EngineCommand { name: name.to_owned(), program, prefix: Vec::new(), preset: None })
        }
        None => bail!(
            "the peer `{name}` is not here; run `cargo xtask peers` in the repository, or name \
             its binary in ${variable}"
        ),
    }
}

/// Starts one engine's bench and reads its report.
pub(crate) fn run_engine(
    engine: &EngineCommand,
    flags: &[String],
    quiet: bool,
) -> Result<RunReport> {
    let mut command = Command::new(&engine.program);
    command.args(&engine.prefix).args(flags).args(["--json", "-", "--no-table"]);
    if quiet {
        command.arg("--quiet");
    }
    // Standard error stays ours: the engine's progress line shows there.
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let run = command.spawn().and_then(std::process::Child::wait_with_output);
    let output = run.with_context(|| format!("starting {:?}", engine.program))?;
    serde_json::from_slice(&output.stdout).with_context(|| no_report(engine, output.status))
}

/// Why there is no report. A peer is a program of its own, and may be older than this one.
fn no_report(engine: &EngineCommand, status: ExitStatus) -> String {
    let what = format!("{} ended with {status} and without a report", engine.name);
    match status.code() == Some(USAGE) && engine.prefix.is_empty() {
        true => {
            what + "; if it does not know an argument, it was built from another source than this \
                    program: `cargo xtask peers` builds it anew"
        }
        false => what,
    }
}

pub(crate) fn announce(quiet: bool, line: &str) -> Result<()> {
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

const PROBES: [Probe; 15] = [
    ("kops/s", |w| (w.ops > 0).then_some(w.ops_per_second / 1e3)),
    ("kops/s to quiescence", |w| {
        (w.ops > 0 && w.write_amplification.is_some()).then_some(w.ops_per_second_quiesced / 1e3)
    }),
    ("MB/s", |w| (w.bytes > 0).then_some(w.mb_per_second)),
    ("p99 us", |w| w.latency_us.as_ref().map(|l| l.p99)),
    ("p99.9 us", |w| w.latency_us.as_ref().map(|l| l.p999)),
    ("stall s", |w| w.write_amplification.map(|_| w.engine.stall_seconds)),
    ("ops > 10 ms, s", |w| w.write_amplification.map(|_| w.slow.seconds)),
    ("mean active jobs", |w| Some(busy(w)?.mean_compactions)),
    ("> half active, %", |w| Some(busy(w)?.over_half * 100.0)),
    ("peak active jobs", |w| Some(busy(w)?.peak_compactions as f64)),
    ("debt after load, MB", |w| {
        w.write_amplification.and(w.debt_bytes).map(|bytes| bytes as f64 / 1e6)
    }),
    ("runs after load", |w| w.write_amplification.and(w.runs).map(|runs| runs as f64)),
    ("write amp", |w| w.write_amplification),
    ("compaction MB/s/CPU", |w| w.compaction_mb_per_cpu_second),
    ("CPU s", |w| Some(w.cpu_seconds)),
];

/// How busy background jobs were, for workloads that make work for them.
fn busy(w: &WorkloadReport) -> Option<&Activity> {
    w.write_amplification.and(w.activity.as_ref())
}

/// Medians and ratios of `runs`; engines in the order of their first runs.
pub fn conclude(runs: Vec<RunReport>, rounds: usize, ratio: Ratio) -> Comparison {
    let mut engines: Vec<EngineIdentity> = Vec::new();
    for run in &runs {
        if !engines.contains(&run.engine) {
            engines.push(run.engine.clone());
        }
    }
    let errors: Vec<_> = runs
        .iter()
        .filter_map(|run| Some(format!("{}: {}", run.engine.name, run.fault()?)))
        .collect();
    let mut figures = Vec::new();
    for (place, name) in workload_places(&runs) {
        let mut add = |figure: &str, probe: &dyn Fn(&WorkloadReport) -> Option<f64>| {
            let spreads: Option<Vec<Spread>> = engines
                .iter()
                .map(|engine| {
                    let valid = runs.iter().filter(|r| r.valid && r.engine == *engine);
                    let mut values: Vec<f64> =
                        valid.filter_map(|r| probe(r.workloads.get(place)?)).collect();
                    spread(&mut values)
                })
                .collect();
            let Some(spreads) = spreads else { return };
            let own = spreads[0].median;
            let ratios = spreads.iter().map(|s| ratio.of(own, s.median)).collect();
            let (workload, figure) = (name.clone(), figure.to_owned());
            figures.push(Figure { workload, figure, spreads, ratios });
        };
        for (figure, probe) in PROBES {
            add(figure, &probe);
        }
        // Only policies share what a level means.
        for level in (0..deepest(&runs, place)).filter(|_| ratio == Ratio::OtherOverFirst) {
            let probe = |w: &WorkloadReport| {
                let at = w.write_amplification_by_level.get(level).copied();
                w.write_amplification.map(|_| at.unwrap_or(0.0))
            };
            add(&format!("write amp into L{level}"), &probe);
        }
    }
    Comparison { engines, rounds, ratio, valid: errors.is_empty(), errors, figures, runs }
}

/// Levels that any run wrote in the workload at `place`.
fn deepest(runs: &[RunReport], place: usize) -> usize {
    let levels = runs.iter().filter_map(|r| {
        let amplification = &r.workloads.get(place)?.write_amplification_by_level;
        amplification.iter().rposition(|&x| x > 0.0).map(|last| last + 1)
    });
    levels.max().unwrap_or(0)
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
pub(crate) fn spread(values: &mut [f64]) -> Option<Spread> {
    values.sort_by(f64::total_cmp);
    let (min, max) = (*values.first()?, *values.last()?);
    let mid = values.len() / 2;
    let median =
        if values.len() % 2 == 1 { values[mid] } else { (values[mid - 1] + values[mid]) / 2.0 };
    Some(Spread { median, min, max })
}

#[cfg(test)]
mod tests;
