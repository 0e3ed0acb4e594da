//! The matrix of compaction options: every priority under several loads and shapes of the tree, on
//! this engine and its peers in turn, and what tuning four options together does.
//!
//! After Shen and Ge's study of RocksDB's compaction options, whose two experiments are rows of it:
//! options before and after tuning, and priorities under sequential insertion.
//!
//! Keeps: engines alternate case by case with the same settings, each begins with an empty store;
//! amplification counts the load to quiescence, so that no policy hides work in debt; every run ends
//! with a walk that checks every byte, and one that is not valid shows no figures and fails the whole.
//! Leaves to others: running an engine ([`crate::compare`]), and showing figures ([`show`]).
//!
//! A load fills a store with every key once and waits until it is quiet; then come as many
//! updates, which are measured, then random reads, then the check. Sequential insertion is measured
//! itself.

mod show;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::command::{told, write_json};
use crate::compare::{EngineCommand, announce, find_peer, run_engine, spread};
use crate::place::{check_can_write, remove_own};
use crate::report::RunReport;
use crate::settings::{BenchArgs, BenchSettings, CompactionPri, OWN_POLICY};
use crate::stdout::StandardOutput;
use crate::usage::Usage;
use crate::workload::Workload;

/// Flags of `matrix`.
#[derive(Clone, Debug, Args)]
#[command(about = None, long_about = None, after_help = EXAMPLES)]
pub struct MatrixArgs {
    /// Loads, separated by commas
    #[arg(long, value_enum, value_delimiter = ',', value_name = "LIST",
          default_values_t = [Load::Sequential, Load::Uniform, Load::Zipf, Load::Deletes, Load::Tuning])]
    pub(crate) loads: Vec<Load>,
    /// Shapes of the tree: policies, and with `:T` those that choose files, at a size ratio of T.
    /// RocksDB's leveled style has the rules of `hybrid`: it runs as that, and as `leveled` too
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "LIST",
        default_value = "hybrid:4,hybrid:8,hybrid:10,tiered,universal"
    )]
    pub(crate) shapes: Vec<Shape>,
    /// Priorities of the shapes that choose files [default: all]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "LIST")]
    pub(crate) priorities: Vec<CompactionPri>,
    /// Engines to compare with
    #[arg(long = "peer", value_name = "NAME", value_delimiter = ',', default_value = "rocksdb")]
    pub(crate) peers: Vec<String>,
    /// This engine alone
    #[arg(long, conflicts_with = "peers")]
    pub(crate) no_peer: bool,
    /// Rounds; medians are shown
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub(crate) rounds: usize,
    /// Write the tables as markdown to FILE
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
    /// Write the figures as CSV to FILE
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
    /// Sizes and the rest; workloads, policy, priority and ratio are the matrix's own.
    #[command(flatten)]
    pub(crate) bench: BenchArgs,
}

const EXAMPLES: &str = "\
Examples:
  All of it at a size of minutes, small levels so that size ratios count:
      lithify bench matrix --num 500K --wal off --memtable-bytes 1MiB --level-base-bytes 2MiB \\
            --file-bytes 512KiB --csv matrix.csv --markdown matrix.md
  Priorities under sequential insertion alone:
      lithify bench matrix --loads sequential --shapes hybrid:10,universal
  What tuning does:
      lithify bench matrix --loads tuning";

/// What is done to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Load {
    /// Keys are inserted in their order.
    Sequential,
    /// Uniformly random updates.
    Uniform,
    /// Updates by a Zipf distribution (`--zipf`).
    Zipf,
    /// Uniformly random updates, some of which delete (`--delete-percent`).
    Deletes,
    /// Insertion in random order with keys of 20 and values of 400 bytes, options before and after
    /// tuning: memtables, first level and files twice as large, a ratio of 8 instead of 10, filters of
    /// 10 bits instead of none.
    Tuning,
}

impl Load {
    fn name(self) -> &'static str {
        match self {
            Load::Sequential => "sequential",
            Load::Uniform => "uniform",
            Load::Zipf => "zipf",
            Load::Deletes => "deletes",
            Load::Tuning => "tuning",
        }
    }

    /// The workloads, of which the one before the reads is measured.
    fn workloads(self) -> Vec<Workload> {
        use Workload::*;
        let load: &[Workload] = match self {
            Load::Sequential => &[FillSeq],
            Load::Uniform => &[FillUniqueRandom, Overwrite],
            Load::Zipf => &[FillUniqueRandom, OverwriteZipf],
            Load::Deletes => &[FillUniqueRandom, OverwriteDelete],
            Load::Tuning => &[FillUniqueRandom],
        };
        load.iter().copied().chain([ReadRandom, Verify]).collect()
    }
}

/// A policy, with a size ratio if it has priorities.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Shape {
    policy: String,
    ratio: Option<u32>,
}

impl std::str::FromStr for Shape {
    type Err = String;
    fn from_str(text: &str) -> Result<Shape, String> {
        let Some((policy, ratio)) = text.split_once(':') else {
            return Ok(Shape { policy: text.to_owned(), ratio: None });
        };
        let ratio = ratio.parse().ok().filter(|t| (2..=100).contains(t));
        let ratio = ratio.ok_or_else(|| format!("`{text}`: give a ratio from 2 to 100"))?;
        Ok(Shape { policy: policy.to_owned(), ratio: Some(ratio) })
    }
}

impl Shape {
    /// How it is shown.
    fn name(&self) -> String {
        self.ratio.map_or_else(|| self.policy.clone(), |t| format!("{} T={t}", self.policy))
    }
    /// Whether engines in general have it; others are this engine's own.
    fn is_common(&self) -> bool {
        self.ratio.is_some() || self.policy == "universal"
    }
}

/// One thing to measure on every engine.
struct Case {
    load: Load,
    shape: String,
    variant: String,
    settings: BenchSettings,
    common: bool,
}

/// One measured case: figures by engine, none where an engine does not have it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    load: &'static str,
    shape: String,
    variant: String,
    figures: Vec<Option<Figures>>,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Figures {
    /// Bytes of tables written per byte of the load, to quiescence.
    write_amplification: f64,
    /// Thousands of writes per second under load.
    kops_per_second: f64,
    /// Bytes of the load in 10^6 per second.
    write_mb_per_second: f64,
    /// The same, to quiescence.
    quiesced_mb_per_second: f64,
    /// 99th percentile of a write, microseconds.
    p99_us: f64,
    /// Of random reads of the quiet store.
    read_mb_per_second: f64,
    /// Bytes on disk per byte of live keys and values.
    space_amplification: f64,
}

/// All of it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Matrix {
    engines: Vec<String>,
    rows: Vec<Row>,
    /// What was wrong with runs that are left out.
    errors: Vec<String>,
}

/// Runs the matrix and shows it. True if all runs were valid.
///
/// `policies` are those that `own` takes; none if it does not say.
pub(crate) fn matrix(policies: &[&str], own: EngineCommand, args: MatrixArgs) -> Result<bool> {
    let cases = cases(policies, &args).map_err(Usage::of)?;
    let mut engines = vec![own];
    if !args.no_peer {
        for peer in &args.peers {
            engines.push(find_peer(peer)?);
        }
    }
    args.bench.output.check_places()?;
    for (flag, file) in [("--markdown", &args.markdown), ("--csv", &args.csv)] {
        file.as_deref().map_or(Ok(()), |file| check_can_write(flag, file))?;
    }
    let matrix = measure(&engines, &cases, &args)?;
    let printed = match args.bench.output.json_on_stdout() {
        true => show::print(&matrix, &mut std::io::stderr().lock()),
        false => show::print(&matrix, &mut StandardOutput::lock()),
    };
    for (path, text) in [(&args.markdown, show::markdown(&matrix)), (&args.csv, show::csv(&matrix))]
    {
        let Some(path) = path else { continue };
        #[expect(clippy::disallowed_methods, reason = "a report is no file of the store")]
        std::fs::write(path, text).with_context(|| format!("writing {path:?}"))?;
    }
    write_json(&matrix, &args.bench.output)?;
    told(printed, matrix.errors.is_empty())
}

/// What is to be measured, in order.
fn cases(policies: &[&str], args: &MatrixArgs) -> Result<Vec<Case>> {
    let base = &args.bench.settings;
    if !base.workloads.is_empty() || base.policy != OWN_POLICY {
        bail!("--workloads and --policy: the matrix has its own; see --loads and --shapes");
    }
    if let Some(flag) = base.own_flag() {
        bail!("{flag}: peers cannot do that");
    }
    if args.bench.output.timeline.is_some() {
        bail!("--timeline: the matrix has many runs; use it with `bench compare --presets`");
    }
    if base.use_existing_db || args.rounds == 0 {
        bail!("the matrix begins with empty stores, and runs at least one round");
    }
    if let Some(shape) = args.shapes.iter().find(|s| !has(policies, &s.policy)) {
        bail!("--shapes {}: there are {}", shape.policy, policies.join(", "));
    }
    let priorities = match args.priorities.is_empty() {
        true => CompactionPri::value_variants(),
        false => &args.priorities,
    };
    let mut cases = Vec::new();
    for &load in &args.loads {
        for shape in &args.shapes {
            let case = |variant: &str, settings: BenchSettings| Case {
                load,
                shape: shape.name(),
                variant: variant.to_owned(),
                settings,
                common: shape.is_common(),
            };
            let mut settings = base.clone();
            settings.workloads = load.workloads();
            settings.policy.clone_from(&shape.policy);
            settings.level_multiplier = shape.ratio.map_or(base.level_multiplier, f64::from);
            if load == Load::Tuning {
                // Each shape once, as the ratio is among what is tuned.
                let name = shape.policy.clone();
                let first = cases.iter().all(|c: &Case| c.load != load || c.shape != name);
                if first && shape.is_common() {
                    let [before, after] = tuned(settings);
                    let case = |v: &str, s| Case { shape: name.clone(), ..case(v, s) };
                    cases.extend([case("before", before), case("after", after)]);
                }
                continue;
            }
            match shape.ratio {
                None => cases.push(case("", settings)),
                Some(_) => cases.extend(priorities.iter().map(|&pri| {
                    let name = pri.to_possible_value();
                    let name = name.as_ref().map_or("", clap::builder::PossibleValue::get_name);
                    case(name, BenchSettings { compaction_pri: pri, ..settings.clone() })
                })),
            }
        }
    }
    Ok(cases)
}

fn has(policies: &[&str], policy: &str) -> bool {
    policies.is_empty() || policies.contains(&policy)
}

/// The settings of the tuning experiment, before and after.
fn tuned(base: BenchSettings) -> [BenchSettings; 2] {
    let before = BenchSettings {
        key_size: 20,
        value_size: 400,
        level_multiplier: 10.0,
        bloom_bits: 0.0,
        ..base
    };
    let after = BenchSettings {
        memtable_bytes: before.memtable_bytes * 2,
        level_base_bytes: before.level_base_bytes * 2,
        file_bytes: before.file_bytes * 2,
        level_multiplier: 8.0,
        bloom_bits: 10.0,
        ..before.clone()
    };
    [before, after]
}

/// Runs every case on every engine, in as many rounds as asked for.
fn measure(engines: &[EngineCommand], cases: &[Case], args: &MatrixArgs) -> Result<Matrix> {
    let quiet = args.bench.output.quiet;
    let mut errors = Vec::new();
    let mut rows = Vec::new();
    for (n, case) in cases.iter().enumerate() {
        let what = format!("{} {} {}", case.load.name(), case.shape, case.variant);
        let mut found: Vec<Vec<Figures>> = vec![Vec::new(); engines.len()];
        for _ in 0..args.rounds {
            for (i, engine) in engines.iter().enumerate().filter(|(i, _)| *i == 0 || case.common) {
                announce(quiet, &format!("{} of {}: {what}: {}", n + 1, cases.len(), engine.name))?;
                let dir = args.bench.settings.db.join(format!("matrix-{}", engine.name));
                remove_own(&dir)?;
                let settings =
                    BenchSettings { db: dir.clone(), ..case.settings.clone() }.resolve()?;
                let report = run_engine(engine, &settings.to_flags(), quiet)?;
                remove_own(&dir)?;
                match figures(&report) {
                    Ok(figures) => found[i].push(figures),
                    Err(e) => errors.push(format!("{what}: {}: {e:#}", engine.name)),
                }
            }
        }
        rows.push(Row {
            load: case.load.name(),
            shape: case.shape.clone(),
            variant: case.variant.clone(),
            figures: found.iter().map(|all| Figures::median(all)).collect(),
        });
    }
    let engines = engines.iter().map(|e| e.name.clone()).collect();
    Ok(Matrix { engines, rows, errors })
}

/// The figures of a run: of its last load, its reads, and its check.
fn figures(report: &RunReport) -> Result<Figures> {
    if let Some(why) = report.fault() {
        bail!("{why}");
    }
    let [.., load, reads, check] = &report.workloads[..] else {
        bail!("the report has {} workloads", report.workloads.len());
    };
    let entry = (report.settings.key_size + report.settings.value_size) as u64;
    let seconds = load.seconds + load.quiesce_seconds;
    Ok(Figures {
        write_amplification: load.write_amplification.context("no write amplification")?,
        kops_per_second: load.ops_per_second / 1e3,
        write_mb_per_second: load.mb_per_second,
        quiesced_mb_per_second: load.bytes as f64 / 1e6 / seconds,
        p99_us: load.latency_us.as_ref().context("no latency")?.p99,
        read_mb_per_second: reads.mb_per_second,
        space_amplification: check.space_bytes as f64 / (check.found * entry) as f64,
    })
}

impl Figures {
    /// Each figure's median; none of nothing.
    fn median(all: &[Figures]) -> Option<Figures> {
        let of = |probe: fn(&Figures) -> f64| {
            let mut values: Vec<f64> = all.iter().map(probe).collect();
            spread(&mut values).map(|s| s.median)
        };
        Some(Figures {
            write_amplification: of(|f| f.write_amplification)?,
            kops_per_second: of(|f| f.kops_per_second)?,
            write_mb_per_second: of(|f| f.write_mb_per_second)?,
            quiesced_mb_per_second: of(|f| f.quiesced_mb_per_second)?,
            p99_us: of(|f| f.p99_us)?,
            read_mb_per_second: of(|f| f.read_mb_per_second)?,
            space_amplification: of(|f| f.space_amplification)?,
        })
    }
}
