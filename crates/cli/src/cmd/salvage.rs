//! `salvage`: what is readable of a damaged directory, as a new database.

use std::path::PathBuf;

use anyhow::{Result, bail};
use lithify::salvage::{Lost, SalvageReport, SalvagedFamily};
use lithify::{Builder, Settings};
use lithify_base::{shown, shown_path};
use lithify_lsm::picture::readable;
use serde_json::{Value, json};

use crate::engines::{self, EngineArg};
use crate::failure::stuck;
use crate::open::{DirArg, OperatorArg};
use crate::output;
use crate::progress::Progress;
use crate::text::escape;

const EXAMPLES: &str = "\
Examples:
  lithify salvage fruit --to fruit-salvaged
  lithify salvage fruit --to fruit-salvaged --json | jq -r '.lost[].file'

The damaged directory is only read, and refused while another process has it open for writing. The new
one opens as no database before all is in it: remove it if the salvage does not finish, and try again.
Blocks, tables and logs that pass their checks are taken, the newest version of each key by its
number; all else is listed with its place and its keys. A lost stretch may have held newer values and deletions: keys in it may be missing, show an older value,
or be back although they were deleted. All column families are taken out; one of which only a log
knows, so that nothing says its name, becomes `unnamed-N`. If a copy of the damaged files exists,
restoring those is better.

Exit code 0 if nothing was lost or left out, 1 if something was: the new database is complete as far as listed.";

/// `lithify salvage`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Salvage {
    #[command(flatten)]
    dir: DirArg,
    /// Directory of the new database: absent or empty
    #[arg(long, value_name = "NEW")]
    to: PathBuf,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    operator: OperatorArg,
    #[command(flatten)]
    engine: EngineArg,
}

impl Salvage {
    pub(crate) fn run(self) -> Result<()> {
        let dir = self.dir.dir()?;
        let bar = Progress::entries();
        let engines = self.engine.engines()?;
        let builder = self.operator.builder(Settings::default())?;
        let builder = engines.iter().cloned().fold(builder, Builder::engine);
        let report = builder.salvage(&dir, &self.to, &mut |n| bar.count(n));
        drop(bar);
        let mut report = report?;
        report.notes.extend(engines::troubles(&engines));
        let printed = if self.json { as_json(&report) } else { as_text(&report) };
        // Also if the reader of the report goes away: what is lost decides the exit code.
        match report.lost.len() {
            0 if report.left_out > 0 => stuck(
                format!(
                    "{} of {} with merge operands are left out",
                    output::count(report.left_out, "key"),
                    shown_path(&dir)
                ),
                "name the operator they were written with: --merge-operator",
            ),
            0 => printed,
            1 => bail!("1 stretch of {} is lost", shown_path(&dir)),
            n => bail!("{n} stretches of {} are lost", shown_path(&dir)),
        }
    }
}

fn as_text(report: &SalvageReport) -> Result<()> {
    for lost in &report.lost {
        output::line(&format!("lost: {lost}"))?;
    }
    for note in &report.notes {
        output::line(&format!("note: {note}"))?;
    }
    if report.families.len() > 1 {
        for family in &report.families {
            let keys = output::count(family.keys, "key");
            let size = readable(family.bytes);
            output::line(&format!("family `{}`: {keys}, {size}", shown(&family.name)))?;
        }
    }
    output::line(&format!(
        "read: {} of {} in {}, {} of logs",
        output::count(report.entries, "entry"),
        output::count(report.blocks, "block"),
        output::count(report.tables, "table"),
        output::count(report.batches, "write"),
    ))?;
    let keys = output::count(report.keys, "key");
    output::line(&format!("written: {keys}, {}", readable(report.bytes)))
}

fn as_json(report: &SalvageReport) -> Result<()> {
    let lost: Vec<Value> = report.lost.iter().map(stretch).collect();
    let families: Vec<Value> = report.families.iter().map(family).collect();
    output::json(&json!({
        "complete": report.lost.is_empty() && report.left_out == 0,
        "manifest": report.manifest,
        "families": families,
        "keys": report.keys,
        "bytes": report.bytes,
        "tables": report.tables,
        "blocks": report.blocks,
        "entries": report.entries,
        "writes_of_logs": report.batches,
        "lost": lost,
        "left_out": report.left_out,
        "notes": report.notes,
    }))
}

fn family(taken: &SalvagedFamily) -> Value {
    json!({
        "name": taken.name,
        "keys": taken.keys,
        "bytes": taken.bytes,
        "tables": taken.tables,
        "entries": taken.entries,
    })
}

fn stretch(lost: &Lost) -> Value {
    json!({
        "file": lost.file,
        "family": lost.family,
        "offset": lost.offset,
        "bytes": lost.bytes,
        "from": lost.from.as_deref().map(escape),
        "up_to": lost.up_to.as_deref().map(escape),
        "entries": lost.entries,
        "cause": lost.cause,
    })
}
