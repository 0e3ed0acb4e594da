//! `cargo xtask fpga`: the compaction unit of `hw/` is looked over, simulated, and held against its model.
//!
//! | chore | what it does |
//! |---|---|
//! | `lint` | Verilator's warnings over each shape of the unit |
//! | `formal` | properties of modules are proven, and for each a bug makes it fail |
//! | `check` | `lint`, short proofs; then units are compiled and do what the model does, slot by slot and as an engine |
//! | `mutants` | bugs are planted in the unit, one at a time, and each must be found |
//! | `cover` | which lines and bits of the unit the sets of the bench pass |
//! | `full` | all of these at length, about an hour, with a table at the end |
//! | `synth`, `cycles` | what a unit takes of a card, and its rates (`fpga_synth`) |
//!
//! Keeps: nothing else in this project needs these tools. Without them `check` says what goes
//! unchecked, or fails if `LITHIFY_FPGA=1`.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Result, bail};

use crate::fpga_synth;
use crate::repo::root;
use crate::run::{at_root, call, each, has, install};

/// Bytes a beat and ways of the shapes that are looked over.
const SHAPES: [(u32, u32); 9] =
    [(16, 2), (16, 4), (16, 8), (32, 2), (32, 4), (32, 8), (64, 2), (64, 4), (64, 8)];
/// Sets of each kind that a unit and its twin are given.
const SETS: &str = "60";
/// At least as many as there are corners by name.
const CORNERS: &str = "40";
/// Shapes at once.
const JOBS: usize = 2;
/// Programs that the proofs need.
const PROVERS: [&str; 2] = ["yosys", "python3"];

/// Programs that the bench needs.
const BENCH: [&str; 3] = ["verilator", "g++", "python3"];

const USAGE: &str = "cargo xtask fpga lint | formal [name ...] | check | mutants [name ...] | cover | full \
     | synth [SHAPE ...] | cycles [SHAPE ...]";

/// Runs a part of the chore.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["lint"] => need(&["verilator"]).and_then(|()| lint()),
        ["check"] => need(&["verilator", "g++"]).and_then(|()| checked()),
        ["formal", rest @ ..] => need(&PROVERS).and_then(|()| formal(rest)),
        ["mutants", rest @ ..] => need(&BENCH).and_then(|()| mutants(rest)),
        ["cover"] => need(&BENCH).and_then(|()| cover()),
        ["full"] => need(&BENCH).and_then(|()| need(&PROVERS)).and_then(|()| full()),
        ["synth", rest @ ..] => fpga_synth::synth(rest),
        ["cycles", rest @ ..] => fpga_synth::cycles(rest),
        _ => bail!("{USAGE}"),
    }
}

/// What runs before a merge.
pub(crate) fn check() -> Result<()> {
    match need(&["verilator", "g++"]) {
        Ok(()) => checked(),
        Err(error) if std::env::var_os("LITHIFY_FPGA").is_some_and(|v| v == "1") => Err(error),
        Err(error) => {
            eprintln!("note: {error:#};");
            eprintln!(
                "      the compaction unit of hw/ was not simulated, only its model was tested"
            );
            Ok(())
        }
    }
}

/// Installs what is missing.
fn need(tools: &[&str]) -> Result<()> {
    // Programs are called like Debian's packages.
    tools.iter().filter(|tool| !has(tool)).try_for_each(|tool| install(tool))
}

fn checked() -> Result<()> {
    lint()?;
    if let Err(error) = need(&PROVERS).and_then(|()| formal(&["--quick"])) {
        // As with the tools of the simulation: without them nothing is proven.
        if PROVERS.iter().all(|tool| has(tool)) {
            return Err(error);
        }
        eprintln!("note: {error:#}; no property of hw/ was proven");
    }
    twin()?;
    engine(&[])
}

/// The units as parts of the engine, against the model and the CPU.
fn engine(settings: &[(&str, &str)]) -> Result<()> {
    let tests = ["test", "--profile", "sim", "--locked", "-p", "lithify-engine-fpga"];
    let mut command = at_root("cargo", &[&tests[..], &["--features", "verilated"]].concat());
    call(command.envs(settings.iter().copied()))
}

/// A unit does what its twin in plain Python does, over sets of each kind.
fn twin() -> Result<()> {
    if !has("python3") {
        eprintln!("note: there is no python3 here, so the unit was not held against its twin");
        return Ok(());
    }
    // Compiling takes longer than these sets.
    build(16, 4, "target/fpga", &[("OPT", "-O1")])?;
    seeds(16, 4, SETS, &["small", "tags", "bad", "stops", "hostile"])?;
    seeds(16, 4, CORNERS, &["corners"])
}

/// Builds the bench of a shape.
fn build(width: u32, ways: u32, into: &str, settings: &[(&str, &str)]) -> Result<()> {
    let mut command = at_root("hw/tb/build.sh", &[&width.to_string(), &ways.to_string(), into]);
    call(command.envs(settings.iter().copied()))
}

/// So many sets of each kind, on a shape that is built.
fn seeds(width: u32, ways: u32, sets: &str, modes: &[&str]) -> Result<()> {
    let run = format!("target/fpga/n{ways}w{width}/run");
    let mut command = at_root("hw/tb/seeds.py", &[&run, "0", sets]);
    call(command.args(modes))
}

fn formal(args: &[&str]) -> Result<()> {
    let mut command = at_root("python3", &["hw/formal/prove.py"]);
    call(command.args(args))
}

/// Lines and bits of n4w16 that the bench passes.
fn cover() -> Result<()> {
    build(16, 4, "target/fpga/cover", &[("COVERAGE", "1"), ("OPT", "-O1")])?;
    call(&mut at_root("python3", &["hw/tb/cover.py", "target/fpga/cover/n4w16/run"]))
}

/// Sets of each shape in `full`, and of n4w16: the first number of 20,000, the second of some.
const LONG_RUN: [&str; 2] = ["5000", "400"];

/// Everything, at length. A part that fails does not stop those behind it.
fn full() -> Result<()> {
    let mut rows: Vec<(String, f64, Result<()>)> = Vec::new();
    let mut part = |name: String, work: &dyn Fn() -> Result<()>| {
        eprintln!("fpga: {name}");
        let begun = Instant::now();
        let end = work();
        if let Err(error) = &end {
            eprintln!("fpga: {name}: {error:#}");
        }
        rows.push((name, begun.elapsed().as_secs_f64(), end));
    };
    part("lint of nine shapes".into(), &lint);
    part("proofs, and a bug for each property".into(), &|| formal(&[]));
    part("mutants".into(), &|| mutants(&[]));
    part("coverage of n4w16".into(), &cover);
    part("what a unit takes of a card".into(), &|| fpga_synth::synth(&[]));
    part("rates, beside the model's formula".into(), &|| fpga_synth::cycles(&[]));
    let all = ["small", "tags", "bad", "stops", "hostile", "states"];
    part("n4w16: 20,000 sets, and stops, hostile slots, states".into(), &|| {
        build(16, 4, "target/fpga", &[])?;
        seeds(16, 4, LONG_RUN[0], &["small", "tags", "bad", "hostile"])?;
        seeds(16, 4, "640", &["stops", "states"])?;
        seeds(16, 4, "40", &["large", "long", "corners"])
    });
    for (width, ways) in SHAPES.into_iter().filter(|&shape| shape != (16, 4)) {
        part(format!("n{ways}w{width}: sets of each kind"), &|| {
            build(width, ways, "target/fpga", &[("OPT", "-O1")])?;
            seeds(width, ways, LONG_RUN[1], &all)?;
            seeds(width, ways, "40", &["large", "long", "corners"])
        });
    }
    part("the engine over simulated units, the model, and faults".into(), &|| {
        engine(&[
            ("LITHIFY_FPGA_VERILATED", "300"),
            ("LITHIFY_FPGA_PLANS", "20000"),
            ("LITHIFY_FPGA_HOSTILE", "200000"),
            ("LITHIFY_FPGA_DEVICE", "10000"),
        ])
    });
    let seconds: f64 = rows.iter().map(|row| row.1).sum();
    println!("{:60} {:>8}", "part", "s");
    for (name, took, end) in &rows {
        println!("{name:60} {took:>8.0} {}", if end.is_ok() { "passed" } else { "FAILED" });
    }
    println!("{:60} {seconds:>8.0}", "sum");
    match rows.iter().filter(|row| row.2.is_err()).count() {
        0 => Ok(()),
        n => bail!("{n} parts failed"),
    }
}

/// Verilator's warnings, all of them and none waived.
fn lint() -> Result<()> {
    let modules = modules()?;
    let looked_over = each(JOBS, &SHAPES, |(width, ways)| {
        let shape = [format!("-GW={width}"), format!("-GN={ways}")];
        let mut command = at_root("verilator", &["--lint-only", "-Wall", "--top-module", "top"]);
        call(command.args(shape).args(&modules))
    });
    looked_over.map(|_| eprintln!("fpga: {} shapes, no warning", SHAPES.len()))
}

/// The modules of the unit; what all others name comes first.
pub(crate) fn modules() -> Result<Vec<PathBuf>> {
    let mut modules = Vec::new();
    for entry in root().join("hw/rtl").read_dir()? {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == "sv") {
            modules.push(path);
        }
    }
    let is_package = |path: &Path| path.file_stem().is_some_and(|stem| stem == "pkg");
    modules.sort_by_key(|path| (!is_package(path), path.clone()));
    Ok(modules)
}

fn mutants(args: &[&str]) -> Result<()> {
    let mut command = at_root("python3", &["hw/tb/mutants.py"]);
    call(command.args(args))
}
