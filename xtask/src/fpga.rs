//! `cargo xtask fpga`: the compaction unit of `hw/` is looked over, simulated, and held against its model.
//!
//! | chore | what it does |
//! |---|---|
//! | `lint` | Verilator's warnings over each shape of the unit |
//! | `check` | `lint`; then the units are compiled and do what the model does, slot by slot and as an engine |
//! | `mutants` | bugs are planted in the unit, one at a time, and each must be found |
//! | `synth`, `cycles` | what a unit takes of a card, and its rates (`fpga_synth`) |
//!
//! Keeps: nothing else in this project needs these tools. Without them `check` says what goes
//! unchecked, or fails if `LITHIFY_FPGA=1`.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::fpga_synth;
use crate::repo::root;
use crate::run::{at_root, call, each, has, install};

/// Bytes a beat and ways of the shapes that are looked over.
const SHAPES: [(u32, u32); 9] =
    [(16, 2), (16, 4), (16, 8), (32, 2), (32, 4), (32, 8), (64, 2), (64, 4), (64, 8)];
/// Sets of each kind that a unit and its twin are given.
const SETS: &str = "60";
/// Shapes at once.
const JOBS: usize = 2;

const USAGE: &str = "cargo xtask fpga lint | check | mutants | synth | cycles";

/// Runs a part of the chore.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["lint"] => need(&["verilator"]).and_then(|()| lint()),
        ["check"] => need(&["verilator", "g++"]).and_then(|()| checked()),
        ["mutants", rest @ ..] => {
            need(&["verilator", "g++", "python3"]).and_then(|()| mutants(rest))
        }
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
    twin()?;
    let tests = ["test", "--profile", "sim", "--locked", "-p", "lithify-engine-fpga"];
    call(&mut at_root("cargo", &[&tests[..], &["--features", "verilated"]].concat()))
}

/// A unit does what its twin in plain Python does, over sets of four kinds.
fn twin() -> Result<()> {
    if !has("python3") {
        eprintln!("note: there is no python3 here, so the unit was not held against its twin");
        return Ok(());
    }
    call(&mut at_root("hw/tb/build.sh", &["16", "4", "target/fpga"]))?;
    let sets = ["target/fpga/n4w16/run", "0", SETS, "small", "tags", "bad", "stops"];
    call(&mut at_root("hw/tb/seeds.py", &sets))
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
