//! A run of all steps: each a process of its own with a limit of time, then the table *predicted | measured | ratio*,
//! for people and as JSON.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::Serialize;

use crate::Asked;
use crate::steps::{Found, STEPS};

/// What was written down before.
const PREDICTIONS: &str = include_str!("../predictions.toml");
/// A figure that is off by more is looked into.
const OFF: f64 = 2.0;

/// A step, as it is kept.
#[derive(Serialize)]
struct Row {
    no: u8,
    name: &'static str,
    seconds: f64,
    #[serde(flatten)]
    found: Found,
    table: Vec<Line>,
}

/// A figure beside what was predicted.
#[derive(Serialize)]
struct Line {
    name: String,
    predicted: Option<f64>,
    measured: Option<f64>,
    ratio: Option<f64>,
    is_off: bool,
}

/// Everything of a run.
#[derive(Serialize)]
struct Results<'a> {
    /// `gpu`, or `emulator`: whose figures say nothing of a GPU.
    device: &'a str,
    is_quick: bool,
    seconds: f64,
    steps: Vec<Row>,
}

pub(crate) fn run(asked: &Asked, out: &Path) -> Result<ExitCode> {
    std::fs::create_dir_all(out).with_context(|| format!("{out:?}"))?;
    let predictions: toml::Table = PREDICTIONS.parse()?;
    let start = Instant::now();
    let mut rows = Vec::new();
    for (no, name, about, limit) in STEPS {
        if !asked.only.is_empty() && !asked.only.contains(&no) {
            continue;
        }
        eprintln!("step {no}: {about}");
        let began = Instant::now();
        let found = in_a_process(asked, no, Duration::from_secs(limit));
        let of = predictions.get(name).and_then(toml::Value::as_table);
        let mut table = lines(of, &found);
        // The emulator's time is no figure of a GPU.
        table.iter_mut().for_each(|line| line.is_off &= !asked.emulator);
        rows.push(Row { no, name, seconds: began.elapsed().as_secs_f64(), found, table });
    }
    let device = if asked.emulator { "emulator" } else { "gpu" };
    let seconds = start.elapsed().as_secs_f64();
    let results = Results { device, is_quick: asked.quick, seconds, steps: rows };
    let text = text(&results);
    std::fs::write(out.join("results.json"), serde_json::to_string_pretty(&results)?)?;
    std::fs::write(out.join("table.txt"), &text)?;
    print!("{text}");
    let failed = results.steps.iter().any(|row| row.found.failed.is_some());
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Runs a step in a process of its own, for so long at most.
fn in_a_process(asked: &Asked, no: u8, limit: Duration) -> Found {
    let failed = |what: String| Found { failed: Some(what), ..Found::default() };
    let ended = |told: &str, what: String| Found { figures: figures(told), ..failed(what) };
    let mut command = match std::env::current_exe() {
        Ok(this) => Command::new(this),
        Err(error) => return failed(error.to_string()),
    };
    command.args(["step", &no.to_string()]).args(asked.flags());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return failed(error.to_string()),
    };
    let said = [read(child.stdout.take()), read(child.stderr.take())];
    let code = wait(&mut child, limit);
    let [told, complaint] = said.map(|one| one.join().unwrap_or_default());
    match (code, told.lines().last().map(serde_json::from_str)) {
        (None, _) => ended(&told, format!("it took more than {} s", limit.as_secs())),
        (Some(0), Some(Ok(found))) => found,
        (Some(code), _) => {
            let last = complaint.lines().last().unwrap_or("");
            ended(&told, format!("it ended with {code}: {last}"))
        }
    }
}

/// The figures that a step printed before it ended.
fn figures(told: &str) -> Vec<(String, f64)> {
    told.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Reads a pipe to its end beside what else goes on, so that it never fills.
fn read(of: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut text = Vec::new();
        if let Some(mut of) = of {
            // What cannot be read is missed by the caller.
            let _ = of.read_to_end(&mut text);
        }
        String::from_utf8_lossy(&text).into_owned()
    })
}

/// The exit code; none if the limit came first, and the process was ended.
fn wait(child: &mut Child, limit: Duration) -> Option<i32> {
    let start = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status.code().unwrap_or(-1)),
            Ok(None) if start.elapsed() < limit => std::thread::sleep(Duration::from_millis(20)),
            Ok(None) | Err(_) => {
                // It may be in a call of the driver that never returns.
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
        }
    }
}

/// Figures beside their predictions; a prediction without a figure has a line, too.
fn lines(predicted: Option<&toml::Table>, found: &Found) -> Vec<Line> {
    let number = |of: &toml::Value| of.as_float().or(of.as_integer().map(|n| n as f64));
    let known = |name: &str| predicted.and_then(|of| of.get(name)).and_then(number);
    let line = |name: &str, measured: Option<f64>| {
        let predicted = known(name);
        let ratio = measured.zip(predicted).filter(|(_, p)| *p != 0.0).map(|(m, p)| m / p);
        let is_off = match (measured, predicted) {
            (Some(m), Some(0.0)) => m != 0.0,
            _ => ratio.is_some_and(|r| !(1.0 / OFF..=OFF).contains(&r)),
        };
        Line { name: name.to_owned(), predicted, measured, ratio, is_off }
    };
    let mut all: Vec<Line> =
        found.figures.iter().map(|(name, value)| line(name, Some(*value))).collect();
    for name in predicted.into_iter().flat_map(toml::Table::keys) {
        if !all.iter().any(|of| of.name == *name) {
            all.push(line(name, None));
        }
    }
    all
}

fn text(results: &Results<'_>) -> String {
    let mut text = match results.device {
        "emulator" => {
            "THE EMULATOR, small sizes: this tries the kit and says nothing of a GPU.\n".to_owned()
        }
        _ => String::new(),
    };
    text += &format!("{:<34} {:>12} {:>12} {:>8}\n", "", "predicted", "measured", "ratio");
    let number = |n: Option<f64>| n.map_or("-".to_owned(), |n| format!("{n:.3}"));
    for row in &results.steps {
        text += &format!("step {}: {} ({:.1} s)\n", row.no, row.name, row.seconds);
        if let Some(why) = &row.found.not_run {
            text += &format!("  NOT RUN: {why}\n");
        }
        if let Some(what) = &row.found.failed {
            text += &format!("  FAILED: {what}\n");
        }
        for line in &row.table {
            let mark = if line.is_off { "  off by more than 2x" } else { "" };
            text += &format!(
                "  {:<32} {:>12} {:>12} {:>8}{mark}\n",
                line.name,
                number(line.predicted),
                number(line.measured),
                number(line.ratio)
            );
        }
        for note in &row.found.notes {
            text += &format!("  {note}\n");
        }
    }
    text + &format!("{:.0} s\n", results.seconds)
}
