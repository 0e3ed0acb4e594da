//! What the C interface costs: the same puts, gets and steps of an iterator from C and from Rust, in turns.
//!
//! Keeps: figures are medians over rounds of the ratio of two neighbours in time; the machine's own noise is told
//! by the smallest and the largest of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::repo::root;
use crate::run::{at_root, call};

/// Entries of a run, a power of two.
const ENTRIES: &str = "262144";
/// Runs of each, in turns, unless told otherwise.
pub(super) const ROUNDS: usize = 15;

/// Prints for each operation what C takes of Rust's time.
pub(super) fn run(room: &Path, place: &Path, rounds: usize) -> Result<()> {
    let example = ["build", "--release", "--locked", "-p", "lithify-capi", "--example", "cost"];
    call(&mut at_root("cargo", &example))?;
    let home = place.join("cost");
    fs::create_dir_all(&home)?;
    let c = home.join("cost");
    let mut gcc = Command::new("gcc");
    gcc.args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror"]);
    gcc.arg(room.join("tests/cost/cost.c"))
        .arg("-I")
        .arg(place.join("include"))
        .arg("-L")
        .arg(place);
    gcc.arg("-llithify").arg(format!("-Wl,-rpath,{}", place.display())).arg("-o").arg(&c);
    call(&mut gcc)?;
    let rust = root().join("target/release/examples/cost");
    let mut ratios: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for round in 0..rounds {
        // Each goes first as often as the other.
        let (mut of_c, mut of_rust) = (BTreeMap::new(), BTreeMap::new());
        for first in [round % 2 == 0, round % 2 != 0] {
            match first {
                true => of_c = times(&c, &home)?,
                false => of_rust = times(&rust, &home)?,
            }
        }
        for (what, time) in of_c {
            let other = of_rust.get(&what).context("the two programs tell different things")?;
            ratios.entry(what).or_default().push(time / other);
        }
    }
    for (what, mut all) in ratios {
        all.sort_by(f64::total_cmp);
        let (least, median, most) = (all[0], all[all.len() / 2], all[all.len() - 1]);
        println!("{what:<5} C / Rust {median:.3} ({least:.3} to {most:.3})");
    }
    Ok(())
}

/// The lines `what nanoseconds` of one run in a new directory.
fn times(program: &Path, home: &Path) -> Result<BTreeMap<String, f64>> {
    let data = home.join("data");
    if data.exists() {
        fs::remove_dir_all(&data)?;
    }
    let output = Command::new(program).arg(&data).args([ENTRIES, "1"]).output()?;
    if !output.status.success() {
        bail!("{}: {}", program.display(), String::from_utf8_lossy(&output.stderr));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let line = |line: &str| {
        let (what, time) = line.split_once(' ')?;
        Some((what.to_owned(), time.parse().ok()?))
    };
    text.lines().map(|l| line(l).with_context(|| l.to_owned())).collect()
}
