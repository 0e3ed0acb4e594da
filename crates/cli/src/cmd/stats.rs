//! `stats`: what a database holds and where, as it lies on disk.

use anyhow::Result;
use comfy_table::{CellAlignment, Table, TableStyle};
use lithify_lsm::picture::readable;
use serde_json::json;

use crate::open::TreeArg;
use crate::output;

const EXAMPLES: &str = "\
Examples:
  lithify stats --db fruit
  lithify stats --db fruit --json | jq .disk_bytes

The database is opened for reading only, so counters of a running process are not here; see its
event log (the file EVENTS) for those.";

/// `lithify stats`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Stats {
    #[command(flatten)]
    db: TreeArg,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

impl Stats {
    pub(crate) fn run(self) -> Result<()> {
        let db = self.db.for_reading()?;
        let stats = db.stats();
        if self.json { as_json(&stats) } else { as_table(&stats) }
    }
}

fn as_json(stats: &lithify::Stats) -> Result<()> {
    let levels: Vec<_> = stats
        .levels
        .iter()
        .map(|l| json!({ "level": l.level, "runs": l.runs, "files": l.files, "bytes": l.bytes }))
        .collect();
    output::json(&json!({
        "levels": levels,
        "disk_bytes": stats.disk_bytes,
        "debt_bytes": stats.debt_bytes,
        "writes_in_no_table": stats.memtable_entries,
        "table_memory_bytes": stats.table_memory,
        "last_sequence": stats.last_sequence,
    }))
}

fn as_table(stats: &lithify::Stats) -> Result<()> {
    let mut table = Table::new();
    table.load_style(TableStyle::new());
    table.set_header(["level", "runs", "files", "bytes"]);
    for l in stats.levels.iter().filter(|l| l.files > 0) {
        table.add_row([
            format!("L{}", l.level),
            l.runs.to_string(),
            l.files.to_string(),
            readable(l.bytes),
        ]);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    if stats.disk_bytes > 0 {
        output::line(&table.to_string())?;
    }
    for (what, figure) in [
        ("tables on disk", readable(stats.disk_bytes)),
        ("compaction debt", readable(stats.debt_bytes)),
        ("writes not yet in tables", output::grouped(stats.memtable_entries)),
        ("last sequence number", stats.last_sequence.to_string()),
    ] {
        output::line(&format!("{what:<26} {figure}"))?;
    }
    Ok(())
}
