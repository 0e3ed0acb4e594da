//! `verify`: every byte of every file that counts and every invariant, without opening the database.
//!
//! Goes on after damage, so that one run lists all of it; says what is certain damage and what a
//! crash leaves behind as well.

use anyhow::{Result, bail};
use lithify::verify::{Finding, Grade, Report};
use lithify_base::{shown, shown_path};
use lithify_lsm::picture::readable;
use serde_json::{Value, json};

use crate::dirs::TableDirArg;
use crate::open::DirArg;
use crate::output;
use crate::progress::Progress;

const EXAMPLES: &str = "\
Examples:
  lithify verify fruit
  lithify verify fruit --json | jq -r '.findings[].file'

Checked: CURRENT, IDENTITY, the manifest and the options; of every table each byte, the order of
entries, index, filter, counts and bounds; the logs and what they promise; and that no older value
of a key hides a newer one. The event log (EVENTS) is text for people and is not looked into.

Exit code 1 if anything is found. `damaged` is certain; `unfinished` is the end of a file that a
crash or a running writer can leave behind as well: open the database once, and verify again.
`not checked` is a column family whose order of keys only the program that made it knows. Nothing is
changed; `lithify salvage` takes out what is good.";

/// `lithify verify`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Verify {
    #[command(flatten)]
    dir: DirArg,
    #[command(flatten)]
    table_dirs: TableDirArg,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

impl Verify {
    pub(crate) fn run(self) -> Result<()> {
        let dir = self.dir.dir()?;
        let bar = Progress::bytes();
        let mut watch = |p: lithify::verify::Progress| bar.show(p.done, p.total);
        let report = self.table_dirs.builder()?.verify(&dir, &mut watch)?;
        drop(bar);
        let printed = if self.json { as_json(&report) } else { as_text(&report) };
        // Also if the reader of the report goes away: faults decide the exit code.
        match report.findings.len() {
            0 => printed,
            1 => bail!("1 fault in {}", shown_path(&dir)),
            n => bail!("{n} faults in {}", shown_path(&dir)),
        }
    }
}

fn as_text(report: &Report) -> Result<()> {
    for finding in &report.findings {
        output::line(&format!("{}: {}", word(finding.grade), finding))?;
    }
    for name in &report.orphans {
        output::line(&format!("not needed: {}", shown(name)))?;
    }
    for name in &report.foreign {
        output::line(&format!("not ours: {}", shown(name)))?;
    }
    output::line(&format!(
        "read: {}, {}, {}, {} in {}, {}",
        output::count(report.tables, "table"),
        output::count(report.blocks, "block"),
        output::count(report.entries, "entry"),
        output::count(report.batches, "write"),
        output::count(report.logs, "log"),
        readable(report.bytes),
    ))?;
    if report.is_clean() {
        output::line(&format!("all good, {}", output::count(report.keys, "key")))?;
    }
    Ok(())
}

fn as_json(report: &Report) -> Result<()> {
    let findings: Vec<Value> = report.findings.iter().map(finding).collect();
    output::json(&json!({
        "good": report.is_clean(),
        "tables": report.tables,
        "blocks": report.blocks,
        "entries": report.entries,
        "logs": report.logs,
        "writes_in_logs": report.batches,
        "bytes": report.bytes,
        "keys": report.keys,
        "findings": findings,
        "not_needed": report.orphans,
        "not_ours": report.foreign,
    }))
}

fn finding(finding: &Finding) -> Value {
    json!({
        "grade": word(finding.grade),
        "family": finding.family,
        "file": finding.error.file(),
        "offset": finding.error.offset(),
        "what": finding.error.to_string(),
    })
}

fn word(grade: Grade) -> &'static str {
    match grade {
        Grade::Damage => "damaged",
        Grade::Torn => "unfinished",
        Grade::Unchecked => "not checked",
    }
}
