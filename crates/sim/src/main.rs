//! The command line of the simulation: flags in, progress and a table out.
#![forbid(unsafe_code)]

mod results;
mod shortages;
mod sweeping;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use clap::{Parser, Subcommand};
use lithify::Policy;
use lithify_env::{Fs, Mono, OpenOpts, OsRt, PosixFs, Rt, RtOptions, read_full_at, write_all_at};
use lithify_sim::crash::Kind;
use lithify_sim::explore::{Failure, Reach, Tally, explore, replay_told};
use lithify_sim::plan::Plan;
use lithify_sim::shrink::shrink;

use results::{Line, Results};

/// A seventh of a life's time goes to the allocator of the system, which is slower at small pieces.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Crashes a database at every position of its disk log and checks what is left.
///
/// Each seed is one database at work on a simulated disk: settings, operations and the order of
/// background jobs follow from the seed. Everything it does to the disk is recorded. Then, at
/// every position of the record, crash images are made (C0 nothing unsynced arrived, C1 all of
/// it, C2 to C10 parts, torn, out of order, with garbage), opened, and held against a model:
/// whatever was acknowledged as durable must be there, and what is there must be the state after
/// some write, whole. Some images work on and crash again.
///
/// A failure is shrunk to a plan: a short text of choices that does the same each time. Keep it
/// under crates/sim/plans, where a test repeats it for ever.
#[derive(Parser)]
#[command(name = "lithify-sim", version, after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
struct Flags {
    #[command(subcommand)]
    other: Option<Other>,
    /// The first seed; equal seeds do the same on every machine.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Seeds to explore, one after the other.
    #[arg(long, default_value_t = 10)]
    runs: u64,
    /// Explore seeds for about this many seconds, however many they are.
    #[arg(long, conflicts_with = "runs")]
    seconds: Option<u64>,
    /// Explore seeds until this many images were opened and checked.
    #[arg(long, conflicts_with_all = ["runs", "seconds"])]
    recoveries: Option<u64>,
    /// Note each seed in this file, and go on behind the last one there.
    #[arg(long, value_name = "FILE")]
    results: Option<PathBuf>,
    /// Compaction policy of all runs (leveled, hybrid, tiered, df-leveled, df-tiered, bucket,
    /// bucket-df, universal, fifo); without it each seed chooses.
    #[arg(long, value_parser = policy)]
    policy: Option<Policy>,
    /// Crash images of each position; with 0 databases live and are not crashed, which is quick.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(0..=1000))]
    variants: u32,
    /// One image in so many works on and crashes again.
    #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u32).range(1..))]
    deeper: u32,
    /// Most crashes in a row.
    #[arg(long, default_value_t = 3)]
    depth: u32,
    /// Fail if one of the states that the tests are about was reached by no run.
    #[arg(long)]
    must_reach: bool,
    /// Repeat this plan instead of exploring, as often as given.
    #[arg(long, value_name = "FILE")]
    plan: Vec<PathBuf>,
    /// Tell each change of the disk while repeating a plan.
    #[arg(long, requires = "plan")]
    trace: bool,
    /// Where the plan of a failure is written.
    #[arg(long, value_name = "FILE", default_value = "failure.plan")]
    save: PathBuf,
    /// Seconds to make the plan of a failure smaller.
    #[arg(long, default_value_t = 60)]
    shrink: u64,
}

#[derive(Subcommand)]
enum Other {
    Sweep(sweeping::Flags),
    Short(shortages::Flags),
}

/// One seed in so many runs twice more with all its crashes, to see that it does the same; all others
/// do so without.
const TWICE: u64 = 100;

const EXAMPLES: &str = "\
Examples:
  lithify-sim                                  ten seeds, a first look
  lithify-sim --seconds 600 --seed 1000000     ten minutes of seeds that no other run takes
  lithify-sim --policy bucket-df --runs 100    one policy
  lithify-sim --plan failure.plan              see a failure again
  lithify-sim --plan failure.plan --shrink 300 make it smaller still";

pub(crate) fn policy(name: &str) -> Result<Policy> {
    let known = Policy::EVERY.map(Policy::name).join(", ");
    Policy::from_name(name).ok_or_else(|| anyhow!("`{name}` is none of {known}"))
}

fn main() -> ExitCode {
    let flags = Flags::parse();
    // A panic of the database is caught and reported as a failure, with its plan; a trace shows it
    // as it comes.
    if !flags.trace {
        std::panic::set_hook(Box::new(|_| {}));
    }
    let done = match &flags.other {
        Some(Other::Sweep(flags)) => sweeping::run(flags),
        Some(Other::Short(flags)) => shortages::run(flags),
        None if flags.plan.is_empty() => explore_all(&flags),
        None => repeat(&flags),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn explore_all(flags: &Flags) -> Result<()> {
    let reach = Reach {
        policy: flags.policy,
        variants: flags.variants,
        deeper: flags.deeper,
        depth: flags.depth,
    };
    let rt = OsRt::new(RtOptions::default());
    let mut tally = Tally::default();
    let mut told = Mono::ZERO;
    let policy = flags.policy.map_or("any", Policy::name);
    let head = format!(
        "variants {}, deeper {}, depth {}, policy {policy}",
        flags.variants, flags.deeper, flags.depth
    );
    let results = flags.results.as_ref().map(|path| Results::open(path, &head));
    let mut results = results.transpose()?;
    let mut seed = results.as_ref().and_then(Results::next_seed).unwrap_or(flags.seed);
    let before = results.as_ref().map_or(0, Results::recoveries);
    let goes_on = |seed: u64, tally: &Tally| match (flags.seconds, flags.recoveries) {
        (Some(seconds), _) => rt.now().since(Mono::ZERO) < Duration::from_secs(seconds),
        (_, Some(recoveries)) => before + tally.recoveries < recoveries,
        // Results may have begun with an earlier seed.
        _ => seed < flags.seed.saturating_add(flags.runs),
    };
    while goes_on(seed, &tally) {
        let (recoveries, operations) = (tally.recoveries, tally.operations);
        if let Err(failure) = explore(seed, &reach, &mut tally) {
            return report(flags, &rt, seed, &failure);
        }
        if let Some(results) = &mut results {
            let policy = tally.last_policy.map_or("none", Policy::name);
            let recoveries = tally.recoveries - recoveries;
            let operations = tally.operations - operations;
            results.note(&Line { seed, policy, recoveries, operations, sum: tally.sum })?;
        }
        let crashed = seed.is_multiple_of(TWICE);
        same_again(seed, &if crashed { reach } else { Reach { variants: 0, ..reach } })?;
        seed += 1;
        if rt.now().since(told) > Duration::from_secs(2) {
            told = rt.now();
            eprintln!(
                "{:>4} s  {:>5} seeds  {:>9} recoveries  {:>7.0} a core-minute",
                rt.now().nanos() / 1_000_000_000,
                tally.runs,
                tally.recoveries,
                rate(&tally, &rt)
            );
        }
    }
    print!("{}", table(&tally, &rt));
    if let Some(results) = &results {
        print!("{}", results.table());
    }
    let missed = tally.marks.missed();
    if flags.must_reach && !missed.is_empty() {
        bail!("no run reached: {}; run longer, or see what keeps them from it", missed.join(", "));
    }
    Ok(())
}

/// The same seed must do the same: two runs, every image compared.
fn same_again(seed: u64, reach: &Reach) -> Result<()> {
    let run = || {
        let mut tally = Tally::default();
        // A failure was reported before.
        let _ = explore(seed, reach, &mut tally);
        format!("{tally:?}")
    };
    match run() == run() {
        true => Ok(()),
        false => bail!("seed {seed} does not do the same twice; something draws its own chances"),
    }
}

fn rate(tally: &Tally, rt: &OsRt) -> f64 {
    tally.recoveries as f64 * 60.0 / rt.thread_cpu().as_secs_f64().max(1e-3)
}

fn table(tally: &Tally, rt: &OsRt) -> String {
    let mut rows = vec![
        ("seeds".to_owned(), tally.runs),
        ("operations".to_owned(), tally.operations),
        ("positions crashed".to_owned(), tally.positions),
        ("recoveries checked".to_owned(), tally.recoveries),
        ("images seen before".to_owned(), tally.twins),
        ("recoveries a core-minute".to_owned(), rate(tally, rt) as u64),
    ];
    for depth in 1..tally.by_depth.len() {
        rows.push((format!("after {depth} crashes"), tally.by_depth[depth]));
    }
    for kind in Kind::ALL {
        rows.push((format!("of kind {}", kind.name()), tally.by_kind[kind as usize]));
    }
    let rows: String = rows.iter().map(|(name, n)| format!("  {name:<28}{n:>10}\n")).collect();
    format!("{rows}reached in the first lives:\n{}no violation\n", tally.marks)
}

/// Tells a failure, makes its plan smaller, writes it down.
fn report(flags: &Flags, rt: &OsRt, seed: u64, failure: &Failure) -> Result<()> {
    eprintln!("seed {seed}: {}", failure.violation);
    let (plan, violation) = smaller(flags, rt, &failure.plan)
        .unwrap_or_else(|| (failure.plan.clone(), failure.violation.clone()));
    write(&flags.save, &plan.print())?;
    bail!(
        "seed {seed}: {violation}\n  see it again: lithify-sim --plan {}\n  then keep it as \
         crates/sim/plans/NAME.plan",
        flags.save.display()
    )
}

fn smaller(flags: &Flags, rt: &OsRt, plan: &Plan) -> Option<(Plan, lithify_sim::world::Violation)> {
    let until = rt.now() + Duration::from_secs(flags.shrink);
    eprintln!("making its plan smaller, for at most {} s", flags.shrink);
    shrink(plan, &mut || rt.now() < until)
}

fn repeat(flags: &Flags) -> Result<()> {
    let rt = OsRt::new(RtOptions::default());
    let mut failed = false;
    for path in &flags.plan {
        let text = read(path)?;
        let plan = Plan::parse(&text).map_err(|what| anyhow!("{}: {what}", path.display()))?;
        let told = replay_told(&plan, &mut |line| {
            if flags.trace {
                println!("{line}");
            }
        });
        match told {
            Ok(()) => println!("{}: no violation", path.display()),
            Err(violation) => {
                println!("{}: {violation}", path.display());
                failed = true;
                if let Some((plan, _)) = smaller(flags, &rt, &plan) {
                    write(&flags.save, &plan.print())?;
                }
            }
        }
    }
    if failed { bail!("a plan shows a violation") } else { Ok(()) }
}

fn read(path: &Path) -> Result<String> {
    let file = PosixFs::new().open(path, OpenOpts::read())?;
    let mut bytes = vec![0; file.len()? as usize];
    read_full_at(&*file, &mut bytes, 0)?;
    String::from_utf8(bytes).with_context(|| format!("{} is no text", path.display()))
}

fn write(path: &Path, text: &str) -> Result<()> {
    let file = PosixFs::new().open(path, OpenOpts::write().or_create())?;
    file.set_len(0)?;
    write_all_at(&*file, text.as_bytes(), 0)?;
    Ok(())
}
