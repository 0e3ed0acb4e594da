//! `cargo xtask watchers`: what `lithify serve` and `lithify top` cost a program that writes.
//!
//! A writer of its own for each turn puts the same entries: alone, beside `serve`, whose page and `/metrics` are asked
//! once a second, and beside `top`, in turns. Told are the processor time of the writer's process, which a busy machine
//! moves less than the clock on the wall, and that of the watcher.
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
/// How often the page is asked.
const ASKED_EVERY: Duration = Duration::from_secs(1);
/// Ticks of a process's clock in a second, as the system counts for programs.
const TICKS: f64 = 100.0;
/// The most of one processor that a watcher may take.
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

/// One turn: the time of the writer's process and of the watcher's, and how long it took, in seconds.
struct Turn {
    writer: f64,
    watcher: f64,
    wall: f64,
}

/// `[TURNS [ENTRIES]]`.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let mut args = args.iter();
    let turns = args.next().map_or(Ok(TURNS), |n| n.parse()).context("a number of turns")?;
    let entries = args.next().map_or(Ok(ENTRIES), |n| n.parse()).context("a number of entries")?;
    if turns == 0 || args.next().is_some() {
        bail!("cargo xtask watchers [TURNS [ENTRIES]]");
    }
    call(
        Command::new("cargo")
            .args(["build", "--release", "--locked", "-q", "-p", "lithify-cli"])
            .current_dir(repo::root()),
    )?;
    let program = repo::root().join("target/release/lithify");
    let place = std::env::temp_dir().join(format!("lithify-watchers-{}", std::process::id()));
    fs::create_dir_all(&place)?;
    let measured = measured(&program, &place, turns, entries);
    fs::remove_dir_all(&place)?;
    told(&measured?)
}

/// Each kind's turns. They alternate, and the one that begins changes.
fn measured(program: &Path, place: &Path, turns: usize, entries: u64) -> Result<[Vec<Turn>; 3]> {
    let mut all = [const { Vec::new() }; 3];
    for round in 0..turns {
        for at in (0..KINDS.len()).map(|at| (at + round) % KINDS.len()) {
            all[at].push(turn(program, place, entries, KINDS[at].0)?);
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

fn turn(program: &Path, place: &Path, entries: u64, who: Watcher) -> Result<Turn> {
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
    let mut watcher = watch(program, &dir, place, who, &mut writer)?;
    let mut asked = Instant::now();
    // The writer's times are read as long as it is there, its last ones when it has ended and is not waited for yet.
    while !is_over(writer.0.id())? {
        if let Some((_, Some(address))) = &mut watcher
            && asked.elapsed() >= ASKED_EVERY
        {
            asked = Instant::now();
            ask(address, "/state.json")?;
            ask(address, "/metrics")?;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let wall = began.elapsed().as_secs_f64();
    let time = spent(writer.0.id())?;
    let status = writer.0.wait()?;
    if !status.success() {
        bail!("the writer ended with {status}: {}", fs::read_to_string(place.join("bench.err"))?);
    }
    let watched = watcher.as_ref().map_or(Ok(0.0), |(child, _)| spent(child.0.id()))?;
    Ok(Turn { writer: time, watcher: watched, wall })
}

/// A process that ends with its owner.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts who watches, once there is something to watch; of `serve` also where it listens.
fn watch(
    program: &Path,
    dir: &Path,
    place: &Path,
    who: Watcher,
    writer: &mut Ended,
) -> Result<Option<(Ended, Option<String>)>> {
    let mut command = Command::new(program);
    match who {
        Watcher::Alone => return Ok(None),
        Watcher::Serve => {
            command.arg("serve").arg(dir).args(["--listen", "127.0.0.1:0"]).stdout(Stdio::piped())
        }
        Watcher::Top => command.arg("top").arg(dir).stdout(File::create(place.join("top.txt"))?),
    };
    while !dir.join("CURRENT").exists() {
        if is_over(writer.0.id())? {
            bail!("the writer ended before it made a database");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let mut child = Ended(command.stdin(Stdio::null()).spawn()?);
    let Some(out) = child.0.stdout.take() else { return Ok(Some((child, None))) };
    let mut line = String::new();
    BufReader::new(out).read_line(&mut line)?;
    let address = line.strip_prefix("http://").and_then(|rest| rest.split('/').next());
    let address = address.with_context(|| format!("`serve` said {line:?}"))?.to_owned();
    Ok(Some((child, Some(address))))
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

fn median(of: impl Iterator<Item = f64>) -> f64 {
    let mut all: Vec<f64> = of.collect();
    all.sort_by(f64::total_cmp);
    let at = all.len() / 2;
    if all.len().is_multiple_of(2) { f64::midpoint(all[at - 1], all[at]) } else { all[at] }
}

/// Prints the medians.
///
/// # Errors
/// If one that watches takes too much.
fn told(all: &[Vec<Turn>; 3]) -> Result<()> {
    let alone = &all[0];
    let mut over = Vec::new();
    for ((who, name), turns) in KINDS.iter().zip(all) {
        let writer = median(turns.iter().map(|t| t.writer));
        println!(
            "{name:6} writer {writer:6.2} s of processor time in {:6.2} s",
            median(turns.iter().map(|t| t.wall))
        );
        if *who == Watcher::Alone {
            continue;
        }
        let more = median(turns.iter().zip(alone).map(|(t, alone)| t.writer / alone.writer)) - 1.0;
        let share = median(turns.iter().map(|t| t.watcher / t.wall));
        println!(
            "       {:+.2}% in pairs; itself {:.2}% of one processor, {:.2}% of the writer's time",
            100.0 * more,
            100.0 * share,
            100.0 * median(turns.iter().map(|t| t.watcher / t.writer))
        );
        if share > MOST {
            over.push(*name);
        }
    }
    match over.is_empty() {
        true => Ok(()),
        false => bail!("{} took more than {}% of a processor", over.join(" and "), 100.0 * MOST),
    }
}
