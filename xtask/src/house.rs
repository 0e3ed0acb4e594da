//! `cargo xtask house`: how large the parts of the house are, and how much they hang together.
//!
//! Keeps: every measure is read from the sources and from `cargo metadata`. Each has a goal, and a
//! bound that `cargo xtask tidy` holds: the goal, or until it is reached the best that was. A
//! measure counts what ships: tests, examples and the rooms of the yard are left out, except where
//! it is about tests.
//!
//! ```text
//! measure                                now    held    goal   where
//! lines of the largest crate           16123   16500    6500   crates/db
//! modules in the largest import cycle      4       6       6   crates/plan: policy, ..
//! ```

mod functions;
mod imports;
mod structs;

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::repo::{self, Source};
use crate::run::at_root;

/// One line of the table.
pub(crate) struct Measure {
    /// What is counted.
    pub(crate) name: &'static str,
    /// How many there are.
    pub(crate) now: usize,
    /// Most that there may be today.
    pub(crate) held: usize,
    /// Most that there should be.
    pub(crate) goal: usize,
    /// Where the figure comes from, for the reader who wants to mend it.
    pub(crate) place: String,
}

/// Prints the table.
pub(crate) fn run() -> Result<()> {
    let measures = measure(&repo::sources()?)?;
    println!("{:<42}{:>8}{:>8}{:>8}   where", "measure", "now", "held", "goal");
    for m in &measures {
        println!("{:<42}{:>8}{:>8}{:>8}   {}", m.name, m.now, m.held, m.goal, m.place);
    }
    Ok(())
}

/// All measures.
///
/// # Errors
/// If `cargo metadata` can't be read.
pub(crate) fn measure(sources: &[Source]) -> Result<Vec<Measure>> {
    let rooms = crate::tidy::product_rooms()?;
    let ships = |s: &&Source| {
        let folder = s.package().rsplit('/').next().unwrap_or_default();
        rooms.contains(folder) && !s.is_test() && s.path[s.package().len()..].starts_with("/src/")
    };
    let product: Vec<&Source> = sources.iter().filter(ships).collect();
    let mut measures = vec![largest_crate(&product), largest_cycle(&product)];
    measures.push(widest_struct(&product));
    measures.extend(lengths(&product));
    measures.push(test_binaries()?);
    measures.push(hidden_actors(sources));
    Ok(measures)
}

fn by_package<'a>(product: &[&'a Source]) -> BTreeMap<&'a str, Vec<&'a Source>> {
    let mut packages: BTreeMap<&str, Vec<&Source>> = BTreeMap::new();
    for source in product {
        packages.entry(source.package()).or_default().push(source);
    }
    packages
}

/// Lines of product code with its comments, up to the inline tests of each file.
fn largest_crate(product: &[&Source]) -> Measure {
    let lines = |sources: &[&Source]| sources.iter().map(|s| s.product_lines().count()).sum();
    let sizes = by_package(product).into_iter().map(|(name, s)| (lines(&s), name.to_owned()));
    let (now, place) = sizes.max().unwrap_or_default();
    // The command line has outgrown the goal: what it reads and prints wants a crate of its own.
    Measure { name: "lines of the largest crate", now, held: 7450, goal: 6500, place }
}

fn largest_cycle(product: &[&Source]) -> Measure {
    let cycles = by_package(product).into_iter().map(|(name, sources)| {
        let members = imports::largest_cycle(&sources);
        let named = members.iter().map(|m| if m.is_empty() { "the root" } else { m });
        let mut place: Vec<&str> = named.take(6).collect();
        if members.len() > place.len() {
            place.push("..");
        }
        (members.len(), format!("{name}: {}", place.join(", ")))
    });
    let (now, place) = cycles.max().unwrap_or_default();
    Measure { name: "modules in the largest import cycle", now, held: 6, goal: 6, place }
}

fn widest_struct(product: &[&Source]) -> Measure {
    let all = product.iter().flat_map(|s| {
        let place = |(name, fields)| (fields, format!("{}: {name}", s.path));
        structs::fields(s).into_iter().map(place)
    });
    let (now, place) = all.max().unwrap_or_default();
    Measure {
        name: "fields of the widest struct that is no record",
        now,
        held: 15,
        goal: 15,
        place,
    }
}

/// How many functions are long, and how long the longest in a hundred are.
fn lengths(product: &[&Source]) -> [Measure; 2] {
    let of = |s: &&Source| {
        let path = s.path.clone();
        functions::lengths(s).into_iter().map(move |(n, name)| (n, format!("{path}: {name}")))
    };
    let mut all: Vec<(usize, String)> = product.iter().flat_map(of).collect();
    all.sort();
    let long: Vec<&str> =
        all.iter().filter(|(n, _)| *n > 60).map(|(_, place)| place.as_str()).collect();
    let at = (all.len() * 99).div_ceil(100).saturating_sub(1);
    let (p99, place) = all.get(at).cloned().unwrap_or_default();
    [
        Measure {
            name: "functions over 60 lines",
            now: long.len(),
            held: 0,
            goal: 0,
            place: long.join("; "),
        },
        Measure {
            name: "lines of 99 functions in 100, at most",
            now: p99,
            held: 45,
            goal: 45,
            place,
        },
    ]
}

/// Programs that `cargo test --workspace` links and runs.
fn test_binaries() -> Result<Measure> {
    let args = ["metadata", "--format-version=1", "--no-deps", "--offline"];
    let output = at_root("cargo", &args).output().context("starting cargo metadata")?;
    let metadata: Value = serde_json::from_slice(&output.stdout)
        .with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let targets = package["targets"].as_array().into_iter().flatten();
        let tested = targets.filter(|t| t["test"].as_bool() == Some(true)).count();
        *counts.entry(package["name"].as_str().unwrap_or_default().to_owned()).or_default() +=
            tested;
    }
    let now = counts.values().sum();
    let (most, package) = counts.into_iter().map(|(name, n)| (n, name)).max().unwrap_or_default();
    let place = format!("{most} of them in {package}");
    Ok(Measure { name: "test binaries of the workspace", now, held: 48, goal: 48, place })
}

/// Words that hide who does what, in sources with their comments.
const HIDING: [&str; 3] = [concat!("no", "body"), concat!("who", "ever"), concat!("some", "body")];

fn hidden_actors(sources: &[Source]) -> Measure {
    let count = |s: &Source| {
        let words = s.text.split(|c: char| !c.is_alphanumeric());
        words.filter(|word| HIDING.iter().any(|hiding| word.eq_ignore_ascii_case(hiding))).count()
    };
    let counts: Vec<(usize, &str)> = sources.iter().map(|s| (count(s), s.path.as_str())).collect();
    let now = counts.iter().map(|(n, _)| n).sum();
    let (most, path) = counts.into_iter().max().unwrap_or_default();
    let place = format!("{most} of them in {path}");
    Measure { name: "words that hide who does what", now, held: 0, goal: 0, place }
}

/// What is above its bound.
///
/// # Errors
/// As [`measure`].
pub(crate) fn exceeded(sources: &[Source]) -> Result<Vec<String>> {
    let above = |m: Measure| {
        (m.now > m.held).then(|| format!("{}: {}, at most {} ({})", m.name, m.now, m.held, m.place))
    };
    Ok(measure(sources)?.into_iter().filter_map(above).collect())
}
