//! `cargo xtask fpga synth` and `cycles`: what a unit takes of a card, how deep its paths are, and how many bytes it
//! moves a cycle.
//!
//! | chore | what it does |
//! |---|---|
//! | `synth [--paths] [--kept] [SHAPE ...]` | maps shapes (n8w32 unless others are named) with Yosys and counts; or counts the netlists of the last time |
//! | `cycles [SHAPE ...]` | simulates rates (n8w16, n8w32, n8w64) and holds the model's formula against them |
//!
//! Keeps: every figure is ours. Sites and depth are counted in a netlist that no vendor's tool has seen, and the
//! clock is estimated from the depth alone, `0.12 n + 0.35 (n + 1)` ns for n levels; it is printed with `@est`.
//! Leaves to others: what a netlist says (`netlist`), whether a unit is right (`fpga`).

mod netlist;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::fpga::modules;
use crate::repo::root;
use crate::run::{at_root, call, has, install, spelled};
use netlist::{Row, Sites};

/// Where everything that is made goes.
const OUT: &str = "target/fpga";
/// Most that n8w32 may take, and its deepest path: LUTs, BRAM36, DSPs, levels.
const GATE: [(&str, u64); 4] = [("LUT", 80_000), ("BRAM36", 60), ("DSP", 120), ("n", 12)];
/// The depth that we would like.
const GOAL: u64 = 10;
/// GB/s@est of a unit that three times the paper's best asks for.
const RATE: f64 = 4.83;
/// Least bytes a cycle of n8w16, n8w32 and n8w64 with values of 1024 and of 64 bytes and keys of 16.
const FLOORS: [(u32, f64, f64); 3] = [(16, 15.0, 12.0), (32, 30.0, 26.0), (64, 55.0, 38.0)];
/// Bytes of entries in a set that is timed.
const SET: usize = 4 << 20;
/// How far the formula may be off.
const OFF: f64 = 0.01;

/// A unit's ways and bytes a beat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    ways: u32,
    width: u32,
}

impl Shape {
    /// `n8w32`.
    fn parse(word: &str) -> Result<Shape> {
        let parts = word.strip_prefix('n').and_then(|rest| rest.split_once('w'));
        let parsed = parts.and_then(|(n, w)| Some((n.parse().ok()?, w.parse().ok()?)));
        match parsed {
            Some((ways @ (2 | 4 | 8 | 16), width @ (16 | 32 | 64))) => Ok(Shape { ways, width }),
            _ => bail!("`{word}` is no shape; one is n8w32"),
        }
    }
    fn name(self) -> String {
        format!("n{}w{}", self.ways, self.width)
    }
}

/// Maps shapes and prints what they take.
///
/// # Errors
/// If a tool is missing or fails, or n8w32 takes more than it may.
pub(crate) fn synth(args: &[&str]) -> Result<()> {
    let paths = args.contains(&"--paths");
    let kept = args.contains(&"--kept");
    let words: Vec<&str> = args.iter().copied().filter(|word| !word.starts_with("--")).collect();
    let shapes = shapes(&words, &["n8w32"])?;
    need("yosys")?;
    let mut missed = Vec::new();
    for shape in shapes {
        let began = Instant::now();
        if !kept {
            map(shape)?;
        }
        let json = std::fs::read_to_string(netlist_of(shape))
            .with_context(|| format!("reading the netlist of {}", shape.name()))?;
        let rows = netlist::read(&json)?;
        println!("{}", table(&shape.name(), &rows, paths));
        let (sites, depth) = whole(&rows);
        let levels = u64::from(depth.div_ceil(16));
        let period = 0.12 * levels as f64 + 0.35 * (levels + 1) as f64;
        let rate = match timed() {
            Ok(()) => Some(rate(shape, 16, 1024)?.bytes_a_cycle),
            Err(error) => {
                eprintln!("note: {error:#}; no rate");
                None
            }
        };
        println!("{}: period {period:.2} ns, {:.0} MHz@est", shape.name(), 1000.0 / period);
        let gb = rate.map(|bytes| bytes / period);
        if let (Some(bytes), Some(gb)) = (rate, gb) {
            println!("{}: 16/1024 {bytes:.1} B/cycle, {gb:.2} GB/s@est", shape.name());
        }
        println!("{}: {} s\n", shape.name(), began.elapsed().as_secs());
        if shape == (Shape { ways: 8, width: 32 }) {
            let figures =
                [sites.logic + sites.memory, sites.bram18.div_ceil(2), sites.dsps, levels];
            for ((what, most), figure) in GATE.iter().zip(figures) {
                let verdict = if figure > *most { "MISSED" } else { "kept" };
                println!("{what} {figure} of at most {most}: {verdict}");
                if figure > *most {
                    missed.push(*what);
                }
            }
            println!(
                "n {levels}, goal {GOAL}: {}",
                if levels > GOAL { "missed" } else { "reached" }
            );
            if let Some(gb) = gb {
                println!(
                    "{gb:.2} GB/s@est of at least {RATE}: {}",
                    if gb < RATE { "MISSED" } else { "kept" }
                );
                if gb < RATE {
                    missed.push("GB/s@est");
                }
            }
        }
    }
    println!(
        "Counted by us in Yosys' netlist and estimated from its depth; not a vendor's figures."
    );
    if !missed.is_empty() {
        bail!("n8w32 misses: {}", missed.join(", "));
    }
    Ok(())
}

/// The shapes named, or those that stand for none.
fn shapes(words: &[&str], otherwise: &[&str]) -> Result<Vec<Shape>> {
    let words = if words.is_empty() { otherwise } else { words };
    words.iter().map(|word| Shape::parse(word)).collect()
}

fn need(tool: &str) -> Result<()> {
    if has(tool) { Ok(()) } else { install(tool) }
}

/// What a simulation needs.
fn timed() -> Result<()> {
    ["verilator", "g++", "python3"].iter().try_for_each(|tool| need(tool))
}

/// Yosys' netlist of a shape, hierarchy kept: each module is mapped once.
fn map(shape: Shape) -> Result<()> {
    std::fs::create_dir_all(root().join(OUT))?;
    let to = netlist_of(shape).display().to_string();
    let mut script = String::from("read_verilog -sv");
    for module in modules()? {
        write!(script, " {}", module.display())?;
    }
    // Wide multiplexers of the card's slices would make shifters larger by 40 %.
    write!(
        script,
        "; hierarchy -check -top top -chparam W {} -chparam N {}; \
         synth_xilinx -family xcup -top top -nowidelut -noiopad -noclkbuf; \
         setattr -unset src */*; write_json {to}",
        shape.width, shape.ways
    )?;
    let log = format!("{OUT}/{}.log", shape.name());
    call(&mut at_root("yosys", &["-qq", "-l", &log, "-p", &script]))
}

fn netlist_of(shape: Shape) -> PathBuf {
    root().join(OUT).join(format!("{}.json", shape.name()))
}

/// All modules together, and the deepest path.
fn whole(rows: &[Row]) -> (Sites, u32) {
    let mut sites = Sites::default();
    for row in rows {
        sites.add(row.sites);
    }
    (sites, rows.iter().map(|row| row.depth).max().unwrap_or_default())
}

fn table(shape: &str, rows: &[Row], paths: bool) -> String {
    let mut text = format!(
        "{:<14}{:>5}{:>8}{:>8}{:>8}{:>8}{:>8}{:>6}{:>6}\n",
        shape, "", "LUT", "logic", "memory", "FF", "BRAM36", "DSP", "n"
    );
    let mut line = |name: &str, instances: String, sites: Sites, depth: u32| {
        let _ = writeln!(
            text,
            "{name:<14}{instances:>5}{:>8}{:>8}{:>8}{:>8}{:>8}{:>6}{:>6.1}",
            sites.logic + sites.memory,
            sites.logic,
            sites.memory,
            sites.ffs,
            sites.bram18 as f64 / 2.0,
            sites.dsps,
            f64::from(depth) / 16.0
        );
    };
    for row in rows {
        line(&row.module, row.instances.to_string(), row.sites, row.depth);
    }
    let (sites, depth) = whole(rows);
    line("all", String::new(), sites, depth);
    if paths {
        for row in rows {
            let _ = writeln!(
                text,
                "{:<14}{:.1}: {}",
                row.module,
                f64::from(row.depth) / 16.0,
                row.path
            );
        }
    }
    text
}

/// What a simulated set took.
struct Timed {
    bytes_a_cycle: f64,
    cycles: u64,
    /// What the model's formula says.
    formula: u64,
}

/// Times a set of one key and value size: `hw/tb/twin.py` makes it, the unit's bench runs it.
fn rate(shape: Shape, key: usize, value: usize) -> Result<Timed> {
    let name = shape.name();
    let runner = format!("{OUT}/{name}/run");
    let sources =
        modules()?.into_iter().chain(["shim.cpp", "run.cpp"].map(|f| root().join("hw/tb").join(f)));
    let newest = sources.filter_map(|path| path.metadata().ok()?.modified().ok()).max();
    let built = root().join(&runner).metadata().and_then(|about| about.modified()).ok();
    if built < newest {
        let build = [shape.width.to_string(), shape.ways.to_string(), OUT.to_owned()];
        call(at_root("hw/tb/build.sh", &build).stdout(std::process::Stdio::null()))?;
    }
    let slot = format!("{OUT}/{name}.in");
    let out = format!("{OUT}/{name}.out");
    let sizes =
        [shape.ways.to_string(), value.to_string(), SET.to_string(), slot.clone(), key.to_string()];
    call(&mut at_root("hw/tb/twin.py", &[&["rate".to_owned()][..], &sizes[..]].concat()))?;
    // Memory answers after 100 cycles; nothing is withheld.
    let words = ["1", "100", "100", "0", &slot, &out];
    let mut command = at_root(&runner, &words);
    let told = command.output().with_context(|| format!("starting `{}`", spelled(&command)))?;
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    if !told.contains("code 0,") {
        bail!("{name}, {key}/{value}: {told}");
    }
    let status = std::fs::read(root().join(&out))?;
    let at = status.len() - 256;
    let word = |from: usize| {
        status[at + from..].first_chunk::<8>().map_or(0, |bytes| u64::from_le_bytes(*bytes))
    };
    let (bytes, cycles) = (word(32), word(208));
    let width = shape.width.to_string();
    let example =
        ["run", "-q", "--locked", "-p", "lithify-engine-fpga", "--example", "cycles", "--"];
    let mut model = at_root("cargo", &[&example[..], &[width.as_str(), slot.as_str()]].concat());
    let said = model.output().with_context(|| format!("starting `{}`", spelled(&model)))?;
    let formula = String::from_utf8_lossy(&said.stdout).trim().parse();
    let formula = formula.with_context(|| String::from_utf8_lossy(&said.stderr).into_owned())?;
    Ok(Timed { bytes_a_cycle: bytes as f64 / cycles as f64, cycles, formula })
}

/// Simulates rates and prints them beside what the formula of the model says.
///
/// # Errors
/// If a tool is missing or fails, a rate is below its floor, or the formula is off by more than 1 %.
pub(crate) fn cycles(args: &[&str]) -> Result<()> {
    timed()?;
    let mut missed = Vec::new();
    println!(
        "Bytes of entries a cycle, simulated, in sets of {} MiB; keys and values in bytes",
        SET >> 20
    );
    println!(
        "{:<10}{:>5}{:>7}{:>10}{:>10}{:>10}{:>8}",
        "shape", "key", "value", "B/cycle", "cycles", "formula", "off"
    );
    for shape in shapes(args, &["n8w16", "n8w32", "n8w64"])? {
        for (key, value) in points(shape) {
            let timed = rate(shape, key, value)?;
            let off = timed.formula as f64 / timed.cycles as f64 - 1.0;
            let name = shape.name();
            println!(
                "{name:<10}{key:>5}{value:>7}{:>10.2}{:>10}{:>10}{:>7.2}%",
                timed.bytes_a_cycle,
                timed.cycles,
                timed.formula,
                100.0 * off
            );
            if timed.bytes_a_cycle < floor(shape, key, value) {
                missed.push(format!("{name} {key}/{value} is too slow"));
            }
            if off.abs() > OFF {
                missed.push(format!("{name} {key}/{value}: the formula is off"));
            }
        }
    }
    if !missed.is_empty() {
        bail!("missed: {}", missed.join("; "));
    }
    Ok(())
}

/// Sizes of keys and values that a shape is timed with: the paper's grid for n8w32.
fn points(shape: Shape) -> Vec<(usize, usize)> {
    if shape != (Shape { ways: 8, width: 32 }) {
        return vec![(16, 1024), (16, 64)];
    }
    let keys = [16, 32, 64, 128];
    let all =
        keys.iter().flat_map(|&key| [64, 128, 256, 512, 1024, 4096].map(|value| (key, value)));
    all.collect()
}

/// Least bytes a cycle; 0 where none is asked for.
fn floor(shape: Shape, key: usize, value: usize) -> f64 {
    let mine =
        FLOORS.iter().find(|(width, ..)| *width == shape.width && shape.ways == 8 && key == 16);
    mine.map_or(0.0, |&(_, large, small)| match value {
        1024 => large,
        64 => small,
        _ => 0.0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_is_parsed_or_refused() {
        assert_eq!(Shape::parse("n8w32").unwrap(), Shape { ways: 8, width: 32 });
        assert!(["n8", "w32", "n3w32", "n8w8", ""].iter().all(|word| Shape::parse(word).is_err()));
    }
}
