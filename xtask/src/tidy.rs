//! `cargo xtask tidy`: what the compiler does not check about the house.
//!
//! Every finding names file, line, rule and the mend. There are no exceptions by comment: an
//! exception is a line in `floors.toml`, in `SAFETY.md` or in the rule itself.

mod bans;
mod dependencies;
mod floors;
mod foreign;
mod layers;
mod names;
mod openings;
mod testing;
mod unrun;
mod words;
mod zoo;

use anyhow::{Result, bail};

pub(crate) use floors::product_rooms;

use crate::repo::{self, Source};

/// One thing to mend.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    /// File, from the root.
    pub(crate) path: String,
    /// Line, from 1; 0 for the file as a whole.
    pub(crate) line: usize,
    /// The rule's name.
    pub(crate) rule: &'static str,
    /// What is wrong, and what to do instead.
    pub(crate) what: String,
}

impl Finding {
    pub(crate) fn new(path: &str, line: usize, rule: &'static str, what: String) -> Finding {
        Finding { path: path.to_owned(), line, rule, what }
    }
}

/// Checks everything and lists what is to be mended.
pub(crate) fn run() -> Result<()> {
    let sources = repo::sources()?;
    let mut findings = check(&sources)?;
    findings.sort();
    for f in &findings {
        eprintln!("{}:{}: [{}] {}", f.path, f.line.max(1), f.rule, f.what);
    }
    match findings.len() {
        0 => {
            eprintln!("tidy: {} files, nothing to mend", sources.len());
            Ok(())
        }
        n => bail!("tidy: {n} to mend"),
    }
}

fn check(sources: &[Source]) -> Result<Vec<Finding>> {
    let register = std::fs::read_to_string(repo::root().join("SAFETY.md"))?;
    let manifest = std::fs::read_to_string(repo::root().join("Cargo.toml"))?;
    let mut findings = floors::check()?;
    findings.extend(dependencies::check(&manifest));
    findings.extend(bans::check_register(sources, &register));
    findings.extend(zoo::check(sources)?);
    findings.extend(unrun::check(sources)?);
    findings.extend(testing::check()?);
    findings.extend(crate::plot::check()?);
    let exceeded = crate::house::exceeded(sources)?;
    findings.extend(
        exceeded.into_iter().map(|what| Finding::new("xtask/src/house.rs", 0, "house", what)),
    );
    findings.extend(layers::check(sources)?);
    findings.extend(names::check(sources)?);
    for source in sources {
        findings.extend(bans::check(source));
        findings.extend(foreign::check(source));
        findings.extend(openings::check(source));
        findings.extend(words::check(source));
    }
    Ok(findings)
}
