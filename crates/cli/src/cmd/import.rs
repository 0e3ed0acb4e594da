//! `import`: a directory of RocksDB or LevelDB becomes a database of ours.

use std::path::PathBuf;

use anyhow::Result;
use lithify::import::{ImportOptions, ImportProgress, ImportReport, ImportStage, Maker};
use lithify::{Builder, Settings};
use lithify_lsm::picture::readable;
use serde_json::json;

use crate::engines::{self, EngineArg};
use crate::open::{OperatorArg, SetArg, no_file};
use crate::output;
use crate::progress::Progress;

const EXAMPLES: &str = "\
Examples:
  lithify import rocks fruit                        a new database; `rocks` stays as it is
  lithify import rocks fruit --verify               and compare the two, key by key
  lithify import --in-place rocks --keep rocks-old  the directory itself, with a way back
  lithify compact --settle fruit                    the way back to RocksDB, whenever you like

Tables are hard-linked, not rewritten (copied if the new directory is on another file system); what
the logs hold is taken over. The other program must have closed the directory. First everything
is read once; what cannot be taken over is refused by its name before anything is written: blobs,
user-defined timestamps, wide columns, comparators and merge operators that only
the program knows. All column families are taken over.

In place: LevelDB cannot open the directory afterwards, RocksDB only once it is settled. With --keep
the directory as it was is kept under another name, at the cost of names only, and is the way
back. If an import into a new directory is interrupted, remove that directory and start anew; or, if
it opens, it is whole.";

/// `lithify import`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Import {
    /// Directory of RocksDB or LevelDB; it is only read
    #[arg(value_name = "FROM", required_unless_present = "in_place")]
    from: Option<PathBuf>,
    /// Directory of the new database: absent or empty
    #[arg(value_name = "TO", required_unless_present = "in_place")]
    to: Option<PathBuf>,
    /// Make this directory itself a database of Lithify
    #[arg(long, value_name = "DIR", conflicts_with_all = ["from", "to"])]
    in_place: Option<PathBuf>,
    /// Keep the directory as it was in this one: absent or empty, on the same file system
    #[arg(long, value_name = "OLD", requires = "in_place", conflicts_with_all = ["from", "to"])]
    keep: Option<PathBuf>,
    /// Compare old and new afterwards, key by key
    #[arg(long)]
    verify: bool,
    /// Believe the properties of tables instead of reading every entry first
    #[arg(long)]
    quick: bool,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    set: SetArg,
    #[command(flatten)]
    operator: OperatorArg,
    #[command(flatten)]
    engine: EngineArg,
}

impl Import {
    pub(crate) fn run(self) -> Result<()> {
        if let Some(from) = self.in_place.as_ref().or(self.from.as_ref()) {
            no_file(from, "a database is a directory; name that")?;
        }
        let options = ImportOptions { quick: self.quick, verify: self.verify };
        let mut settings = Settings::default();
        self.set.apply(&mut settings)?;
        let engines = self.engine.engines()?;
        let builder =
            engines.iter().cloned().fold(self.operator.builder(settings)?, Builder::engine);
        let bar = Progress::stages();
        let watch = &mut |ImportProgress { stage, done, total }| {
            bar.stage(named(stage));
            bar.show(done, total);
        };
        let report = match (&self.in_place, &self.from, &self.to) {
            (Some(dir), ..) => builder.import_in_place(dir, self.keep.as_deref(), options, watch),
            (None, Some(from), Some(to)) => builder.import(from, to, options, watch),
            _ => unreachable!("clap asks for both"),
        };
        drop(bar);
        let mut report = report?;
        report.notes.extend(engines::troubles(&engines));
        if self.json { as_json(&report) } else { self.as_text(&report) }
    }

    fn as_text(&self, report: &ImportReport) -> Result<()> {
        output::line(&format!(
            "taken over from {}: {}, {}; {} linked, {} copied; {} of logs",
            report.maker,
            output::count(report.tables, "table"),
            readable(report.bytes),
            report.linked,
            report.copied,
            output::count(report.batches, "write"),
        ))?;
        for note in &report.notes {
            output::line(&format!("note: {note}"))?;
        }
        if let Some(keys) = report.keys {
            output::line(&format!("compared: {} alike", output::count(keys, "key")))?;
        }
        if self.in_place.is_some() && report.maker == Maker::LevelDb {
            output::line(match &self.keep {
                Some(_) => {
                    "LevelDB cannot open this directory any more; what was kept is the way back"
                }
                None => "LevelDB cannot open this directory any more",
            })?;
        }
        Ok(())
    }
}

fn as_json(report: &ImportReport) -> Result<()> {
    output::json(&json!({
        "maker": report.maker.to_string(),
        "tables": report.tables,
        "bytes": report.bytes,
        "linked": report.linked,
        "copied": report.copied,
        "writes_of_logs": report.batches,
        "keys_compared": report.keys,
        "notes": report.notes,
    }))
}

/// What a stage is called beside the bar.
fn named(stage: ImportStage) -> &'static str {
    match stage {
        ImportStage::Survey => "reading",
        ImportStage::Link => "linking",
        ImportStage::Logs => "logs",
        ImportStage::Verify => "comparing",
    }
}
