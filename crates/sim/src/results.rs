//! A file with a line for each seed that was explored, so that a long run can be stopped at any time,
//! goes on where it was, and leaves something to point at.
//!
//! ```text
//! # variants 2, deeper 12, depth 3, policy any
//! 17 bucket-df 2518 1130 90f1c3a25d0b6e77      seed, policy, recoveries, operations, sum over all images
//! ```
//! Keeps: seeds are in order, without a gap; a line cut short by a kill is written again.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, anyhow, ensure};
use lithify_env::{FileRef, Fs, OpenOpts, PosixFs, write_all_at};

/// The results of a run.
pub(crate) struct Results {
    file: FileRef,
    at: u64,
    /// The first seed.
    first: Option<u64>,
    /// The last seed.
    last: Option<u64>,
    /// Recoveries by policy.
    by_policy: BTreeMap<String, u64>,
}

/// What is noted of a seed.
pub(crate) struct Line<'a> {
    pub(crate) seed: u64,
    pub(crate) policy: &'a str,
    pub(crate) recoveries: u64,
    pub(crate) operations: u64,
    pub(crate) sum: u64,
}

impl Results {
    /// Opens `path` and takes in what it has; a new one begins with `head`, an old one must.
    pub(crate) fn open(path: &Path, head: &str) -> Result<Results> {
        let fs = PosixFs::new();
        let text = match fs.len(path)? {
            Some(_) => crate::read(path)?,
            None => String::new(),
        };
        let file = fs.open(path, OpenOpts::write().or_create())?;
        // What comes after the last line is a line that was cut short.
        let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
        let mut results = Results {
            file,
            at: whole.len() as u64,
            first: None,
            last: None,
            by_policy: BTreeMap::new(),
        };
        results.file.set_len(results.at)?;
        if whole.is_empty() {
            results.append(&format!("# {head}\n"))?;
            return Ok(results);
        }
        let same = whole.lines().next() == Some(&format!("# {head}"));
        ensure!(same, "{} is of a run with other flags; take another file", path.display());
        for line in whole.lines().skip(1) {
            results.take(line).with_context(|| format!("{}: `{line}`", path.display()))?;
        }
        Ok(results)
    }

    fn take(&mut self, line: &str) -> Result<()> {
        let words: Vec<&str> = line.split(' ').collect();
        let [seed, policy, recoveries, ..] = words[..] else {
            return Err(anyhow!("a line has a seed, a policy and a number of recoveries"));
        };
        self.count(seed.parse()?, policy, recoveries.parse()?)
    }

    fn count(&mut self, seed: u64, policy: &str, recoveries: u64) -> Result<()> {
        ensure!(self.last.is_none_or(|last| last + 1 == seed), "seeds come in order");
        self.first.get_or_insert(seed);
        self.last = Some(seed);
        *self.by_policy.entry(policy.to_owned()).or_default() += recoveries;
        Ok(())
    }

    fn append(&mut self, text: &str) -> Result<()> {
        write_all_at(&*self.file, text.as_bytes(), self.at)?;
        self.at += text.len() as u64;
        Ok(())
    }

    /// Notes a seed.
    pub(crate) fn note(&mut self, line: &Line<'_>) -> Result<()> {
        let Line { seed, policy, recoveries, operations, sum } = line;
        self.count(*seed, policy, *recoveries)?;
        self.append(&format!("{seed} {policy} {recoveries} {operations} {sum:016x}\n"))
    }

    /// The seed to go on with, if there were any.
    pub(crate) fn next_seed(&self) -> Option<u64> {
        self.last.map(|last| last + 1)
    }

    /// Recoveries so far.
    pub(crate) fn recoveries(&self) -> u64 {
        self.by_policy.values().sum()
    }

    /// All of it, as a table.
    pub(crate) fn table(&self) -> String {
        let seeds = format!("{} to {}", self.first.unwrap_or(0), self.last.unwrap_or(0));
        let row = |(name, n): (&String, &u64)| format!("  {name:<28}{n:>10}\n");
        let rows: String = self.by_policy.iter().map(row).collect();
        let all = self.recoveries();
        format!("over all parts of the run, seeds {seeds}:\n{rows}  {:<28}{all:>10}\n", "all")
    }
}
