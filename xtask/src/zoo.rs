//! `cargo xtask zoo`: measures the tests. Each bug of the zoo (`lithify_base::zoo`) is switched on
//! in turn, and the test that has to find it gets a minute of processor time for that.
//!
//! Keeps: one build serves all bugs; which bug a run has is said by `LITHIFY_ZOO`. What finds a
//! bug is also run without any, over the same seeds, and must find nothing then.
//! Leaves to others: the bugs (`crates/base/src/zoo.rs`), what finds them (`finders`).

mod finders;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use lithify_base::zoo::Bug;

use crate::programs::{self, Program};
use crate::repo::{self, root};
use crate::run::{at_root, each, spelled};
use finders::{Finder, finder};

/// Names the bug that a program of the zoo has; unset for none.
pub(crate) const VARIABLE: &str = "LITHIFY_ZOO";
/// Seconds of processor time in which a bug is to be found.
const SECONDS: u64 = 60;
/// Wall-clock seconds after which a run is given up: it hangs.
const PATIENCE: u64 = 1800;
/// Bugs hunted at once.
const JOBS: usize = 2;
/// How often a run is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Clock ticks a second in /proc: the same on all Linux machines we know.
const TICKS: u64 = 100;

/// What to do.
struct Wish {
    bugs: Vec<Bug>,
    seconds: u64,
    jobs: usize,
}

/// Runs the chore with `args`.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let (mut wish, mut rest) =
        (Wish { bugs: Bug::ALL.to_vec(), seconds: SECONDS, jobs: JOBS }, args.iter());
    while let Some(arg) = rest.next() {
        let mut number = || -> Result<u64> {
            let n = rest.next().with_context(|| format!("{arg} needs a number"))?;
            n.parse().with_context(|| format!("`{n}` is no number"))
        };
        match arg.as_str() {
            "--seconds" => wish.seconds = number()?,
            "--jobs" => wish.jobs = number()?.max(1) as usize,
            "--third" => wish.bugs = third(number()?),
            "--bug" => {
                let name = rest.next().context("--bug needs a name: --bug Z7")?;
                let bug = Bug::from_name(name).with_context(|| format!("no bug is `{name}`"))?;
                wish.bugs = vec![bug];
            }
            other => bail!("`{other}` is none of --bug, --third, --seconds, --jobs"),
        }
    }
    hunt(&wish)
}

/// What the tests run: a third of the bugs, which follows from the commit.
pub(crate) fn check() -> Result<()> {
    hunt(&Wish { bugs: third(repo::commit()), seconds: SECONDS, jobs: JOBS })
}

/// Every third bug from number `n` on.
fn third(n: u64) -> Vec<Bug> {
    Bug::ALL.iter().copied().skip((n % 3) as usize).step_by(3).collect()
}

/// How a run ended.
struct Ending {
    /// What the run says went wrong, if anything.
    found: Option<String>,
    /// Processor time, seconds.
    seconds: f64,
}

fn hunt(wish: &Wish) -> Result<()> {
    let programs = build(&wish.bugs)?;
    let endings: Vec<Ending> = each(wish.jobs, &wish.bugs, |&bug| {
        let ending = chase(&programs, &finder(bug), Some(bug), &[], wish.seconds)?;
        let how = ending.found.as_deref().unwrap_or("MISSED");
        eprintln!("{bug:<4} {:>6.1} s  {how}", ending.seconds);
        Ok(ending)
    })?;
    print!("{}", table(&wish.bugs, &endings));
    let missed: Vec<_> =
        wish.bugs.iter().zip(&endings).filter(|(_, e)| e.found.is_none()).collect();
    if !missed.is_empty() {
        let names: Vec<String> = missed.iter().map(|(bug, _)| format!("{bug} {bug:?}")).collect();
        bail!("not found within {} s: {}", wish.seconds, names.join(", "));
    }
    innocent(wish, &programs, &endings)
}

/// The same runs without a bug find nothing.
fn innocent(wish: &Wish, programs: &Programs, endings: &[Ending]) -> Result<()> {
    // The last seed that was needed, by finder.
    let mut needed: BTreeMap<Finder, u64> = BTreeMap::new();
    for (bug, ending) in wish.bugs.iter().zip(endings) {
        let last = needed.entry(finder(*bug)).or_default();
        *last = (*last).max(ending.found.as_deref().and_then(seed_of).unwrap_or(1));
    }
    let runs: Vec<(Finder, u64)> = needed.into_iter().collect();
    let guilty = each(wish.jobs, &runs, |(finder, last)| {
        let runs = last.to_string();
        let ending = chase(programs, finder, None, &["--runs", &runs], PATIENCE)?;
        Ok(ending.found.map(|what| format!("{finder}: {what}")))
    })?;
    let guilty: Vec<String> = guilty.into_iter().flatten().collect();
    match guilty.is_empty() {
        true => Ok(()),
        false => bail!("without any bug, something was found: {}", guilty.join("; ")),
    }
}

/// The programs that hunt, built with the zoo's feature.
struct Programs {
    sim: PathBuf,
    tests: BTreeMap<(&'static str, &'static str), PathBuf>,
}

/// Builds the simulation with the zoo in it, and says where it is.
pub(crate) fn simulation() -> Result<PathBuf> {
    let sim = compile(&["build", "-p", "lithify-sim", "--bin", "lithify-sim"])?;
    let built = sim.first().context("cargo built no simulation")?;
    // Aside, because a build without the feature takes its name.
    let sim = scratch()?.join("lithify-sim");
    std::fs::copy(&built.path, &sim)?;
    Ok(sim)
}

/// Builds what is needed to hunt `bugs`.
fn build(bugs: &[Bug]) -> Result<Programs> {
    let sim = simulation()?;
    let wanted: BTreeSet<(&str, &str)> =
        bugs.iter().filter_map(|&bug| finder(bug).program()).collect();
    let mut tests = BTreeMap::new();
    if wanted.is_empty() {
        return Ok(Programs { sim, tests });
    }
    let mut args = vec!["test", "--no-run", "-p", "lithify-sim"];
    for &(package, target) in &wanted {
        args.extend(["-p", package, "--test", target]);
    }
    let built = compile(&args)?;
    for (package, target) in wanted {
        let folder = root().join("crates").join(finders::folder(package));
        let found = built.iter().find(|b| b.folder == folder && b.target == target);
        let found = found.with_context(|| format!("cargo built no test {package} {target}"))?;
        tests.insert((package, target), found.path.clone());
    }
    Ok(Programs { sim, tests })
}

/// Has cargo build programs with the zoo in them.
fn compile(args: &[&str]) -> Result<Vec<Program>> {
    let zoo = ["--features", "lithify-sim/zoo", "--profile", "sim", "--quiet"];
    programs::build(&[args, &zoo].concat())
}

/// Where the runs leave what they say.
fn scratch() -> Result<PathBuf> {
    let scratch = root().join("target/zoo");
    std::fs::create_dir_all(&scratch)?;
    Ok(scratch)
}

/// Runs `finder` until it ends or has used `seconds` of processor time.
fn chase(
    programs: &Programs,
    finder: &Finder,
    bug: Option<Bug>,
    more: &[&str],
    seconds: u64,
) -> Result<Ending> {
    let scratch = scratch()?;
    let name = bug.map_or_else(|| format!("clean-{finder}"), |bug| bug.to_string());
    let name = name.replace([' ', ':', '/'], "-");
    let said = scratch.join(format!("{name}.txt"));
    let out = std::fs::File::create(&said)?;
    let mut command = match finder {
        Finder::Sim(flags) => {
            let mut command = at_root(&programs.sim.to_string_lossy(), flags);
            command.args(["--shrink", "0", "--save"]).arg(scratch.join(format!("{name}.plan")));
            if bug.is_some() {
                command.args(["--runs", "1000000"]);
            }
            command.args(more);
            command
        }
        Finder::Sweep(workload) => {
            at_root(&programs.sim.to_string_lossy(), &["sweep", "--workload", workload])
        }
        Finder::Test { package, target, test } => {
            let mut command = Command::new(&programs.tests[&(*package, *target)]);
            command.arg(test).current_dir(root().join("crates").join(finders::folder(package)));
            command.arg("--test-threads=1");
            command
        }
    };
    command.env_remove(VARIABLE).stdin(Stdio::null());
    command.stdout(out.try_clone()?).stderr(out);
    if let Some(bug) = bug {
        command.env(VARIABLE, bug.to_string());
    }
    let child = command.spawn().with_context(|| spelled(&command))?;
    let (ended, seconds) = wait(child, seconds)?;
    let text = std::fs::read_to_string(&said).unwrap_or_default();
    let found = match ended {
        Some(true) => None,
        Some(false) => Some(verdict(finder, &text)),
        // A test that has to end and does not is a find; one that is out of time is not.
        None => None,
    };
    Ok(Ending { found, seconds })
}

/// Whether the child ended well (`None` if it was ended for its time), and its processor time.
fn wait(mut child: Child, seconds: u64) -> Result<(Option<bool>, f64)> {
    let stat = PathBuf::from(format!("/proc/{}/stat", child.id()));
    let begin = Instant::now();
    let mut used = 0.0;
    loop {
        let wall = begin.elapsed().as_secs_f64();
        used = processor_time(&stat).unwrap_or(if stat.exists() { used } else { wall });
        if let Some(status) = child.try_wait()? {
            return Ok((Some(status.success()), used));
        }
        if used > seconds as f64 || wall > PATIENCE as f64 {
            child.kill()?;
            child.wait()?;
            return Ok((None, used));
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Processor time that a running program has used, seconds; `None` where that can't be told.
fn processor_time(stat: &Path) -> Option<f64> {
    let text = std::fs::read_to_string(stat).ok()?;
    // Behind the name, which is in brackets and may hold anything: fields 14 and 15 are ticks.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at)?.parse::<u64>().ok();
    Some((ticks(11)? + ticks(12)?) as f64 / TICKS as f64)
}

/// What the run says about what it found, in a line.
fn verdict(finder: &Finder, text: &str) -> String {
    let line = match finder {
        Finder::Sim(_) => text.lines().find(|line| line.starts_with("seed ")),
        Finder::Sweep(_) => text.lines().find(|line| line.starts_with("error: ")),
        Finder::Test { .. } => text.lines().find(|line| line.contains("... FAILED")),
    };
    let line = line.or(text.lines().last()).unwrap_or("it said nothing");
    line.trim_start_matches("test ").trim_end_matches(" ... FAILED").chars().take(160).collect()
}

/// The seed that a line of the simulation names.
fn seed_of(found: &str) -> Option<u64> {
    found.strip_prefix("seed ")?.split(':').next()?.parse().ok()
}

fn table(bugs: &[Bug], endings: &[Ending]) -> String {
    let mut out =
        String::from("| bug | name | found by | s | first sign |\n|---|---|---|---|---|\n");
    for (bug, ending) in bugs.iter().zip(endings) {
        let sign = ending.found.as_deref().unwrap_or("**missed**").replace('|', "/");
        let (finder, seconds) = (finder(*bug), ending.seconds);
        let _ = writeln!(out, "| {bug} | {bug:?} | {finder} | {seconds:.1} | {sign} |");
    }
    let mut seconds: Vec<f64> = endings.iter().map(|e| e.seconds).collect();
    seconds.sort_by(f64::total_cmp);
    let median = seconds.get(seconds.len() / 2).copied().unwrap_or_default();
    let found = endings.iter().filter(|e| e.found.is_some()).count();
    let _ = writeln!(out, "\n{found} of {} found, median {median:.1} s", bugs.len());
    out
}
