//! `cargo xtask watchers`: what `lithify serve` and `lithify top` cost a program that writes.
//!
//! A writer of its own for each turn puts the same entries: alone, beside a crowd of `serve`, each of whose pages and
//! `/metrics` are asked once a second, and beside a crowd of `top`, in turns. What one of a crowd costs is the whole
//! crowd's cost by its number, and so is the error: turns of a writer differ by more than one watcher could ever cost.
//! Told are the processor time of the writer's process, which a busy machine moves less than the clock on the wall,
//! the clock on the wall, and the processor time of the watchers.
//!
//! Keeps: one that watches only looks, so all that it can take from a writer is what it takes of the machine.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::repo;
use crate::run::call;

/// Turns of each kind, and entries of 16 + 100 bytes that each puts.
const TURNS: usize = 9;
const ENTRIES: u64 = 3_000_000;
/// How many watch at once.
const CROWD: usize = 16;
/// How often the page is asked.
const ASKED_EVERY: Duration = Duration::from_secs(1);
/// Ticks of a process's clock in a second, as the system counts for programs.
const TICKS: f64 = 100.0;
/// The most of one processor that a watcher may take, and of the writer's processor time that it may add.
const MOST: f64 = 0.01;

/// Who watches.
#[derive(Clone, Copy, PartialEq)]
enum Watcher {
    Alone,
    Serve,
    Top,
}

const KINDS: [(Watcher, &str); 3] =
    [(Watcher::Alone, "alone"), (Watcher::Serve, "serve"), (Watcher::Top, "top")];

/// One turn: the processor time of the writer's process and of all watchers, and how long it took, in seconds.
struct Turn {
    writer: f64,
    watchers: f64,
    wall: f64,
}

/// What each turn does.
struct Load<'a> {
    program: &'a Path,
    place: &'a Path,
    entries: u64,
    crowd: usize,
}

/// `[TURNS [ENTRIES [WATCHERS]]]`.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let mut args = args.iter();
    let turns = args.next().map_or(Ok(TURNS), |n| n.parse()).context("a number of turns")?;
    let entries = args.next().map_or(Ok(ENTRIES), |n| n.parse()).context("a number of entries")?;
    let crowd = args.next().map_or(Ok(CROWD), |n| n.parse()).context("a number of watchers")?;
    if turns == 0 || crowd == 0 || args.next().is_some() {
        bail!("cargo xtask watchers [TURNS [ENTRIES [WATCHERS]]]");
    }
    call(
        Command::new("cargo")
            .args(["build", "--release", "--locked", "-q", "-p", "lithify-cli"])
            .current_dir(repo::root()),
    )?;
    let program = repo::root().join("target/release/lithify");
    let place = std::env::temp_dir().join(format!("lithify-watchers-{}", std::process::id()));
    fs::create_dir_all(&place)?;
    let measured = measured(&Load { program: &program, place: &place, entries, crowd }, turns);
    fs::remove_dir_all(&place)?;
    told(&measured?, crowd)
}

/// Each kind's turns. They alternate, and the one that begins changes.
fn measured(load: &Load<'_>, turns: usize) -> Result<[Vec<Turn>; 3]> {
    let mut all = [const { Vec::new() }; 3];
    for round in 0..turns {
        for at in (0..KINDS.len()).map(|at| (at + round) % KINDS.len()) {
            all[at].push(turn(load, KINDS[at].0)?);
        }
        let line: Vec<String> = KINDS
            .iter()
            .zip(&all)
            .map(|((_, name), of)| format!("{name} {:.2} s", of[round].writer))
            .collect();
        println!("writer's processor time: {}", line.join(", "));
    }
    Ok(all)
}

fn turn(load: &Load<'_>, who: Watcher) -> Result<Turn> {
    let Load { program, place, entries, crowd } = *load;
    let whole = place.join("bench");
    let _ = fs::remove_dir_all(&whole);
    // The bench has its database in a directory of its own below the one it is told.
    let dir = whole.join("db");
    let log = place.join("bench.txt");
    let mut writer = Ended(
        Command::new(program)
            .args([
                "bench",
                "--workloads",
                "fillrandom",
                "--value-size",
                "100",
                "--memtable-bytes",
                "4MiB",
            ])
            .args([
                "--file-bytes",
                "1MiB",
                "--level-base-bytes",
                "8MiB",
                "--num",
                &entries.to_string(),
                "--db",
            ])
            .arg(&whole)
            .stdin(Stdio::null())
            .stdout(File::create(&log)?)
            .stderr(File::create(place.join("bench.err"))?)
            .spawn()?,
    );
    let began = Instant::now();
    let crowd = if who == Watcher::Alone { 0 } else { crowd };
    until_there(&dir, &writer)?;
    let watchers: Vec<(Ended, Option<String>)> =
        (0..crowd).map(|_| watch(program, &dir, place, who)).collect::<Result<_>>()?;
    let mut asked = Instant::now();
    // The writer's times are read as long as it is there, its last ones when it has ended and is not waited for yet.
    while !is_over(writer.0.id())? {
        if asked.elapsed() >= ASKED_EVERY {
            asked = Instant::now();
            for address in watchers.iter().filter_map(|(_, address)| address.as_deref()) {
                ask(address, "/state.json")?;
                ask(address, "/metrics")?;
            }
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let wall = began.elapsed().as_secs_f64();
    let time = spent(writer.0.id())?;
    let status = writer.0.wait()?;
    if !status.success() {
        bail!("the writer ended with {status}: {}", fs::read_to_string(place.join("bench.err"))?);
    }
    let mut watched = 0.0;
    for (child, _) in &watchers {
        if is_over(child.0.id())? {
            bail!("one that watched ended before the writer");
        }
        watched += spent(child.0.id())?;
    }
    Ok(Turn { writer: time, watchers: watched, wall })
}

/// A process that ends with its owner.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits for the writer's database.
fn until_there(dir: &Path, writer: &Ended) -> Result<()> {
    while !dir.join("CURRENT").exists() {
        if is_over(writer.0.id())? {
            bail!("the writer ended before it made a database");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// Starts one who watches; of `serve` also where it listens.
fn watch(
    program: &Path,
    dir: &Path,
    place: &Path,
    who: Watcher,
) -> Result<(Ended, Option<String>)> {
    let mut command = Command::new(program);
    match who {
        Watcher::Serve => {
            command.arg("serve").arg(dir).args(["--listen", "127.0.0.1:0"]).stdout(Stdio::piped())
        }
        _ => command.arg("top").arg(dir).stdout(File::create(place.join("top.txt"))?),
    };
    let mut child = Ended(command.stdin(Stdio::null()).spawn()?);
    let Some(out) = child.0.stdout.take() else { return Ok((child, None)) };
    let mut line = String::new();
    BufReader::new(out).read_line(&mut line)?;
    let address = line.strip_prefix("http://").and_then(|rest| rest.split('/').next());
    let address = address.with_context(|| format!("`serve` said {line:?}"))?.to_owned();
    Ok((child, Some(address)))
}

fn ask(address: &str, path: &str) -> Result<()> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes())?;
    let mut back = Vec::new();
    stream.read_to_end(&mut back)?;
    match back.starts_with(b"HTTP/1.1 200") {
        true => Ok(()),
        false => bail!("{path}: {}", String::from_utf8_lossy(&back)),
    }
}

/// The fields of a process's `stat` behind its name.
fn stat(id: u32) -> Result<Vec<String>> {
    let path = PathBuf::from(format!("/proc/{id}/stat"));
    let text = fs::read_to_string(&path)
        .with_context(|| format!("{}: only Linux tells", path.display()))?;
    let (_, rest) = text.rsplit_once(')').context("a name in brackets")?;
    Ok(rest.split_whitespace().map(str::to_owned).collect())
}

/// Whether it has ended, and its owner has not waited for it.
fn is_over(id: u32) -> Result<bool> {
    Ok(stat(id)?.first().is_some_and(|state| state == "Z"))
}

/// User and system time of a process, seconds.
fn spent(id: u32) -> Result<f64> {
    let fields = stat(id)?;
    let ticks: u64 = fields
        .get(11..13)
        .context("its times")?
        .iter()
        .map(|n| n.parse::<u64>())
        .sum::<Result<_, _>>()?;
    Ok(ticks as f64 / TICKS)
}

/// The quarter, the middle and three quarters of them.
fn quartiles(of: impl Iterator<Item = f64>) -> [f64; 3] {
    let mut all: Vec<f64> = of.collect();
    all.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| {
        let at = (all.len() - 1) * quarter;
        match at % 4 {
            0 => all[at / 4],
            rest => {
                let part = rest as f64 / 4.0;
                all[at / 4] * (1.0 - part) + all[at / 4 + 1] * part
            }
        }
    })
}

/// Prints the medians; of pairs the quartiles, too.
///
/// # Errors
/// If one that watches takes too much, or costs the writer too much.
fn told(all: &[Vec<Turn>; 3], crowd: usize) -> Result<()> {
    let alone = &all[0];
    let crowd = crowd as f64;
    let mut over = Vec::new();
    for ((who, name), turns) in KINDS.iter().zip(all) {
        let [low, writer, high] = quartiles(turns.iter().map(|t| t.writer));
        let [_, wall, _] = quartiles(turns.iter().map(|t| t.wall));
        println!(
            "{name:6} writer {writer:6.2} s of processor time ({low:.2} to {high:.2}) in {wall:6.2} s"
        );
        if *who == Watcher::Alone {
            continue;
        }
        let more = |of: fn(&Turn) -> f64| {
            let pairs = turns.iter().zip(alone);
            quartiles(pairs.map(|(turn, alone)| (of(turn) / of(alone) - 1.0) / crowd))
        };
        let [low, time, high] = more(|t| t.writer).map(|part| 100.0 * part);
        println!(
            "       one of {crowd} {name}: {time:+.2}% of the writer's processor time in pairs ({low:+.2} to {high:+.2})"
        );
        let [low, longer, high] = more(|t| t.wall).map(|part| 100.0 * part);
        println!("       {longer:+.2}% of its time on the wall ({low:+.2} to {high:+.2})");
        let [_, share, _] = quartiles(turns.iter().map(|t| t.watchers / t.wall / crowd));
        println!("       itself {:.2}% of one processor", 100.0 * share);
        if share > MOST || time > 100.0 * MOST {
            over.push(*name);
        }
    }
    match over.is_empty() {
        true => Ok(()),
        false => bail!("{} took more than {}%", over.join(" and "), 100.0 * MOST),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_lie_between_what_was_measured() {
        assert_eq!(quartiles([3.0, 1.0, 2.0, 5.0, 4.0].into_iter()), [2.0, 3.0, 4.0]);
        assert_eq!(quartiles([1.0, 2.0].into_iter()), [1.25, 1.5, 1.75]);
        assert_eq!(quartiles([7.0].into_iter()), [7.0; 3]);
    }

    /// A crowd that takes a sixth of the writer's time is told as one that takes a hundredth each, and is refused
    /// beyond.
    #[test]
    fn a_crowd_costs_its_number_times_what_one_costs() {
        let turns = |writer: f64, watchers: f64| vec![Turn { writer, watchers, wall: 10.0 }];
        let all = |writer, watchers| [turns(10.0, 0.0), turns(writer, watchers), turns(10.0, 0.0)];
        assert!(told(&all(11.5, 0.1), 16).is_ok());
        assert!(told(&all(11.7, 0.1), 16).is_err(), "the writer pays");
        assert!(told(&all(10.0, 2.0), 16).is_err(), "the machine pays");
    }
}
