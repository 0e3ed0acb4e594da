//! The grid: a policy against every static one with every static shape, on many machines under
//! many loads.
//!
//! Keeps: all contestants of a cell live through the same writes; what is compared is user bytes
//! per second until the tree is quiet. The *regret* of a cell is what the policy does of what the
//! best of the others does there: 1 is as good, 0.5 half as fast.
//! Leaves to others: which cells there are ([`cells`]), what is printed ([`show`], [`map`]).

mod cells;
mod map;
mod show;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::{Arg, Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use lithify_bench::fold::columns_of_terminal;
use lithify_bench::{StandardOutput, Usage, check_can_write};
use lithify_plan::PolicyKind;

use crate::command::limits::within;
use crate::setup::Setup;
use crate::world::{Life, live};
use cells::Cell;

/// Targets of L1 over four memtables that static opponents are tried with.
const SHAPES: [u64; 3] = [1, 4, 8];

/// How much less or more a put costs, and how much shorter or longer a life is, where the median counts.
const JITTER: f64 = 0.04;

/// Which cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Size {
    /// A sample in which each axis is varied about the cells that tell policies apart; a minute or two
    Coarse,
    /// Other sizes of values and memtables, other keys and lengths: to judge what was chosen on the coarse grid
    HeldOut,
    /// Lives of eight times the length, in which a tree comes to its own size: few cells; minutes
    Long,
    /// Every cell; hours
    Full,
}

/// Flags of the grid.
#[derive(Clone, Debug, Args)]
#[command(mut_args(of_a_grid))]
pub(crate) struct GridArgs {
    /// Judge a policy over a grid of machines and loads, against the best static one in each cell
    #[arg(long, value_name = "SIZE", num_args = 0..=1, default_missing_value = "coarse", help_heading = "Grid")]
    grid: Option<Size>,
    /// Static policies to be beaten: POLICY with L1 at 1, 4 and 8 times four memtables, POLICY:N with
    /// L1 at N times them [default: hybrid,df-leveled:1,tiered coarse, which have the best of all four
    /// within 3% in nearly every cell; hybrid:1,bucket:1,tiered long; hybrid,df-leveled,bucket,tiered full]; none: no report, for --csv
    #[arg(long, value_delimiter = ',', value_name = "LIST", help_heading = "Grid")]
    opponents: Vec<String>,
    /// Memtables that a life writes [default: 120 coarse, 150 held-out, 300 full, 960 long]
    #[arg(long, help_heading = "Grid")]
    flushes: Option<u64>,
    /// Processors of the modelled machines
    #[arg(long, default_value_t = 16.0, help_heading = "Grid")]
    grid_cores: f64,
    /// Lives at once [default: processors of this machine]
    #[arg(long, help_heading = "Grid")]
    jobs: Option<usize>,
    /// Lives of each contestant in each cell, or through each change, whose puts cost up to 4% more or less
    /// and which are as much longer or shorter: the median counts
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=63), help_heading = "Grid", requires = "beside")]
    tries: u32,
    /// Take every so many-th cell only
    #[arg(long, default_value_t = 1, help_heading = "Grid")]
    every: usize,
    /// Write a picture of all cells to FILE
    #[arg(long, value_name = "FILE", help_heading = "Grid")]
    svg: Option<PathBuf>,
    /// Fail if the regret of a cell is below this
    #[arg(long, value_name = "RATIO", help_heading = "Grid")]
    hold: Option<f64>,
    /// Fail if the regret of more than a twentieth of the cells is below this
    #[arg(long, value_name = "RATIO", help_heading = "Grid")]
    hold_most: Option<f64>,
}

/// Without a grid its flags would do nothing, but for the number of lives.
fn of_a_grid(flag: Arg) -> Arg {
    let is_of = flag.get_help_heading() == Some("Grid");
    match flag.get_id().as_str() {
        "grid" | "tries" => flag,
        // What conflicts with a flag is not missed where it requires it.
        _ if is_of => flag.requires("grid").conflicts_with_all(["change", "offer"]),
        _ => flag,
    }
}

impl GridArgs {
    pub(crate) fn asked(&self) -> bool {
        self.grid.is_some()
    }

    /// Refuses what makes no sense.
    pub(crate) fn check(&self) -> Result<()> {
        within("--grid-cores", self.grid_cores, 0.1, 4096.0)?;
        within("--every", self.every as f64, 1.0, 100_000.0)?;
        let given = [
            ("--flushes", self.flushes.map(|n| n as f64), 1.0, 20_000.0),
            ("--jobs", self.jobs.map(|n| n as f64), 1.0, 1024.0),
            ("--hold", self.hold, 0.0, 100.0),
            ("--hold-most", self.hold_most, 0.0, 100.0),
        ];
        for (flag, given, least, most) in given {
            given.map_or(Ok(()), |given| within(flag, given, least, most))?;
        }
        let beside = [
            ("--hold", self.hold.is_some()),
            ("--hold-most", self.hold_most.is_some()),
            ("--svg", self.svg.is_some()),
        ];
        match beside.iter().find(|(_, given)| *given && self.is_alone()) {
            Some((flag, _)) => bail!(
                "{flag} and --opponents none: there is nothing that the policy is beside; give opponents"
            ),
            None => Ok(()),
        }
    }

    /// True if there are to be no opponents.
    fn is_alone(&self) -> bool {
        self.opponents == ["none"]
    }

    /// Lives of each contestant, or through each change.
    pub(crate) fn tries(&self) -> u32 {
        self.tries
    }
}

/// A static policy with a static shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Contestant {
    policy: PolicyKind,
    shape: u64,
}

impl Contestant {
    fn name(&self) -> String {
        match self.shape {
            1 => self.policy.name().to_owned(),
            n => format!("{} {n}x", self.policy.name()),
        }
    }
}

/// What a life is judged by.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Score {
    /// User bytes per second to quiescence; 0 if the tree never came to rest.
    pub(crate) rate: f64,
    /// Bytes written per user byte.
    amplification: f64,
    /// Seconds in stops of more than 10 ms.
    long_waits: f64,
    /// Mean active compactions of the load.
    active: f64,
}

impl Score {
    fn of(life: &Life) -> Score {
        Score {
            rate: life.rate(),
            amplification: life.amplification(),
            long_waits: life.long_waits,
            active: life.load.mean_active(),
        }
    }
}

/// A cell after all its lives.
#[derive(Clone, Debug)]
struct Judged {
    cell: Cell,
    /// The judged policy.
    own: Score,
    /// The opponents, in their order.
    others: Vec<Score>,
}

/// A grid after all its lives.
struct Verdict {
    name: String,
    opponents: Vec<Contestant>,
    cells: Vec<Judged>,
}

impl Judged {
    /// The best of the opponents that `may` count, and its score.
    fn best(&self, opponents: &[Contestant], may: impl Fn(&Contestant) -> bool) -> (usize, Score) {
        let there = (0..opponents.len()).filter(|&i| may(&opponents[i]));
        let best = there.max_by(|&a, &b| self.others[a].rate.total_cmp(&self.others[b].rate));
        best.map_or((0, Score::default()), |i| (i, self.others[i]))
    }
    /// The judged policy's rate over that of the best opponent.
    fn regret(&self, opponents: &[Contestant]) -> f64 {
        self.own.rate / self.best(opponents, |_| true).1.rate.max(1.0)
    }
    /// The same over the best opponent that leaves one run on each level, as readers like it.
    fn among_leveled(&self, opponents: &[Contestant]) -> f64 {
        let leveled = |o: &Contestant| !o.policy.takes_runs();
        self.own.rate / self.best(opponents, leveled).1.rate.max(1.0)
    }
    /// The same over the best opponent with the default shape.
    fn gain(&self, opponents: &[Contestant]) -> f64 {
        self.own.rate / self.best(opponents, |o| o.shape == 1).1.rate.max(1.0)
    }
}

/// Lives through all cells for each of `chosen`, and tells.
///
/// # Errors
/// A life that broke an invariant, a file that can't be written.
pub(crate) fn run(args: &GridArgs, chosen: &[PolicyKind], csv: Option<&Path>) -> Result<ExitCode> {
    let began = Instant::now();
    let opponents = opponents(args).map_err(Usage::of)?;
    args.svg.as_deref().map_or(Ok(()), |file| check_can_write("--svg", file))?;
    let (cells, flushes) = match args.grid {
        None | Some(Size::Coarse) => (cells::coarse(), 120),
        Some(Size::HeldOut) => (cells::held_out(), 150),
        Some(Size::Full) => (cells::full(), 300),
        Some(Size::Long) => (cells::long(), 960),
    };
    let flushes = args.flushes.unwrap_or(flushes);
    let cells: Vec<Cell> = cells.into_iter().step_by(args.every).collect();
    let mut entrants: Vec<Contestant> =
        chosen.iter().map(|&policy| Contestant { policy, shape: 1 }).collect();
    entrants.extend(&opponents);
    let scores = live_all(args, &cells, &entrants, flushes)?;
    let seconds = began.elapsed().as_secs_f64();
    let told = format!("{} cells, {} lives in {seconds:.1} s\n", cells.len(), scores.len());
    StandardOutput::tell(&told)?;
    let mut held = true;
    for (i, policy) in chosen.iter().enumerate() {
        let judge = |(cell, scores): (&Cell, &[Score])| Judged {
            cell: *cell,
            own: scores[i],
            others: scores[chosen.len()..].to_vec(),
        };
        let verdict = Verdict {
            name: policy.name().to_owned(),
            opponents: opponents.clone(),
            cells: cells.iter().zip(scores.chunks(entrants.len())).map(judge).collect(),
        };
        if !opponents.is_empty() {
            StandardOutput::tell(&show::report(&verdict, columns_of_terminal()))?;
        }
        let many = chosen.len() > 1;
        let to = |path: &Path| if many { with_name(path, &verdict.name) } else { path.to_owned() };
        write(args.svg.as_deref().map(to), || map::draw(&verdict))?;
        write(csv.map(to), || show::csv(&verdict))?;
        held &= show::holds(&verdict, args.hold, args.hold_most);
    }
    Ok(if held { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn write(path: Option<PathBuf>, text: impl FnOnce() -> String) -> Result<()> {
    let Some(path) = path else { return Ok(()) };
    std::fs::write(&path, text()).with_context(|| format!("writing {}", path.display()))
}

/// `grid.svg` of a policy among several is `grid-hybrid.svg`.
fn with_name(path: &Path, name: &str) -> PathBuf {
    let part = |of: Option<&std::ffi::OsStr>| of.unwrap_or_default().to_string_lossy().into_owned();
    let (stem, end) = (part(path.file_stem()), part(path.extension()));
    path.with_file_name(format!("{stem}-{}.{end}", name.replace(' ', "-")))
}

fn opponents(args: &GridArgs) -> Result<Vec<Contestant>> {
    let usual = match args.grid {
        Some(Size::Full) => "hybrid,df-leveled,bucket,tiered",
        Some(Size::Long) => "hybrid:1,bucket:1,tiered",
        _ => "hybrid,df-leveled:1,tiered",
    };
    let list: Vec<&str> = match args.opponents.as_slice() {
        [] => usual.split(',').collect(),
        _ if args.is_alone() => Vec::new(),
        some => some.iter().map(String::as_str).collect(),
    };
    let mut all = Vec::new();
    for word in list {
        let (name, shape) = word.split_once(':').unzip();
        let Some(policy) = PolicyKind::from_name(name.unwrap_or(word)) else {
            bail!(
                "--opponents {word}: there is no such policy; there are {}",
                PolicyKind::names().join(", ")
            );
        };
        let shapes = match shape.map(str::parse::<u64>) {
            None if policy.takes_runs() => vec![1], // levels that pile up runs have no target
            None => SHAPES.to_vec(),
            Some(Ok(shape @ 1..=64)) => vec![shape],
            Some(_) => {
                bail!("--opponents {word}: there is no such shape; give a number from 1 to 64")
            }
        };
        all.extend(shapes.into_iter().map(|shape| Contestant { policy, shape }));
    }
    Ok(all)
}

/// `tries` setups about the same. A tree under load is sensitive: a put that costs a hundredth more may
/// change which job comes first, and a life that ends a moment later may have one large job less behind
/// its end.
pub(crate) fn varied(setup: &Setup, tries: u32) -> impl Iterator<Item = Setup> {
    (0..tries).map(move |i| {
        let part = (2 * i + 1) as f64 / tries as f64 - 1.0;
        let about = |x: f64| x * (1.0 + JITTER * part);
        let mut setup = setup.clone();
        setup.client_ns = about(setup.client_ns);
        setup.num = about(setup.num as f64) as u64;
        setup.keys = about(setup.keys as f64) as u64;
        setup
    })
}

/// The score of the life with the median rate among `tries`.
pub(crate) fn median(setup: &Setup, tries: u32) -> Result<Score> {
    let scores: Result<Vec<Score>> =
        varied(setup, tries).map(|setup| Ok(Score::of(&live(&setup)?))).collect();
    let mut scores = scores?;
    scores.sort_by(|a, b| a.rate.total_cmp(&b.rate));
    Ok(scores[scores.len() / 2])
}

/// The scores of all entrants in all cells, cell by cell.
fn live_all(
    args: &GridArgs,
    cells: &[Cell],
    entrants: &[Contestant],
    flushes: u64,
) -> Result<Vec<Score>> {
    let all = cells.len() * entrants.len();
    let next = AtomicUsize::new(0);
    let bar = ProgressBar::new(all as u64);
    let style = "{wide_bar} {human_pos} of {human_len} lives, {eta} left";
    bar.set_style(ProgressStyle::with_template(style).expect("it is constant"));
    let one = |i: usize| {
        let (cell, entrant) = (&cells[i / entrants.len()], entrants[i % entrants.len()]);
        let setup = cell.setup(entrant.policy, entrant.shape, flushes, args.grid_cores);
        let scored = median(&setup, args.tries);
        bar.inc(1);
        scored.with_context(|| format!("{} in cell {}", entrant.name(), cell.name()))
    };
    let work = || {
        let mut done = Vec::new();
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            if i >= all {
                return Ok(done);
            }
            done.push((i, one(i)?));
        }
    };
    let jobs =
        args.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let done: Vec<Result<Vec<(usize, Score)>>> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(|w| w.join().expect("a worker does not panic")).collect()
    });
    bar.finish_and_clear();
    let mut scores = vec![Score::default(); all];
    for part in done {
        for (i, score) in part? {
            scores[i] = score;
        }
    }
    Ok(scores)
}
